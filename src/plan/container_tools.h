#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "plan/container.h"

/// The tools that container.h knows, one row each.
namespace nlaunch::plan {

inline constexpr const char* kPreload = "LD_PRELOAD";

/// The input of one start.
struct Passing {
  const Variables& env;    ///< the whole environment
  const Variables& given;  ///< what the plan sets
  Words options{};         ///< of the tool
  Variables beside{};      ///< additional variables of the tool's own environment

  [[nodiscard]] const std::string* find(std::string_view name) const {
    const auto found = std::ranges::find(env, name, &Variables::value_type::first);
    return found == env.end() ? nullptr : &found->second;
  }
};

struct Tool {
  std::string_view name;     ///< of the program
  std::string_view verbs{};  ///< that start a program, a blank around each: options follow the verb, and the
                             ///< image follows them. Empty: options are last
  std::size_t (*values)(const std::string& option) = nullptr;  ///< how many words after it are values
  std::string_view alone{};                                    ///< options that are always added
  void (*mount)(const Mount& mount, Words& options) = nullptr;
  std::string_view separators{};  ///< characters that a mounted path cannot contain
  void (*pass)(Passing& passing) = nullptr;
  Passage::Of passes = Passage::Of::all;    ///< which variables the tool passes by default
  std::string_view cleaning{};              ///< options that remove variables ...
  Passage::Of cleaned = Passage::Of::plan;  ///< ... and leave these
  std::string_view processes{};             ///< names of its own processes
  std::string_view refused{};               ///< why nothing can be started with it
  std::string_view instead{};
};

std::span<const Tool> container_tools();
/// True if the word is in a list that has a blank around each word.
bool is_among(std::string_view list, std::string_view word);

}  // namespace nlaunch::plan
