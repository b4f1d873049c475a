#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "plan/container.h"

/// The tools that container.h knows, a row each.
namespace nlaunch::plan {

inline constexpr const char* kPreload = "LD_PRELOAD";

/// What one start needs.
struct Passing {
  const Variables& env;    ///< the whole environment
  const Variables& given;  ///< what the plan asks for
  Words options{};         ///< of the tool
  Variables beside{};      ///< further variables of the tool's own environment

  [[nodiscard]] const std::string* find(std::string_view name) const {
    const auto found = std::ranges::find(env, name, &Variables::value_type::first);
    return found == env.end() ? nullptr : &found->second;
  }
};

struct Tool {
  std::string_view name;     ///< of the program
  std::string_view verbs{};  ///< that start a program, a blank around each: options stand behind the verb,
                             ///< and the image behind them. Empty: options stand last
  std::size_t (*values)(const std::string& option) = nullptr;  ///< how many words behind it are its values
  std::string_view alone{};                                    ///< what is added to the options in any case
  void (*mount)(const Mount& mount, Words& options) = nullptr;
  std::string_view separators{};  ///< which no path that is mounted may have
  void (*pass)(Passing& passing) = nullptr;
  Passage::Of passes = Passage::Of::all;    ///< variables, by itself
  std::string_view cleaning{};              ///< options that take variables away ...
  Passage::Of cleaned = Passage::Of::plan;  ///< ... and leave these
  std::string_view processes{};             ///< names of its own processes
  std::string_view refused{};               ///< why nothing can be started behind it
  std::string_view instead{};
};

std::span<const Tool> container_tools();
/// The word is in a list that has a blank around each.
bool is_among(std::string_view list, std::string_view word);

}  // namespace nlaunch::plan
