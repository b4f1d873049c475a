#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "base/secrets.h"
#include "base/units.h"
#include "evidence/sources/tree.h"
#include "evidence/spec.h"

/// Where evidence comes from. A source is a function in the file of its subject in evidence/sources/, and
/// registers itself there.
namespace nlaunch::evidence {

/// What a source works on: a process of the plan, or the host if `subject` is null.
struct CollectContext {
  using Clock = std::chrono::steady_clock;

  const Spec& spec;
  const Subject* subject = nullptr;
  Tree tree;                     ///< the processes of the subject, examined before anything was attached
  std::filesystem::path folder;  ///< an existing one, for the files of this subject or host
  const Masker& masker;          ///< over everything that is written
  Clock::time_point deadline{};  ///< of this source: it does not run past it

  [[nodiscard]] Duration left() const;
  /// Masks `text` and writes it; false if the directory is not writable.
  [[nodiscard]] bool write(const std::string& name, const std::string& text) const;
};

/// What is missing, and what a person can do about it.
struct Missing {
  std::string what;  ///< "Python stacks"
  std::string why;
  std::string install;  ///< what to install or allow; may be empty
};

/// The result: names of files, and what is missing.
struct Found {
  std::vector<std::string> got;
  std::vector<Missing> missing;
};

struct Source {
  int order;              ///< in the report, and within its lane
  std::string_view name;  ///< "Python stacks"
  enum class Of { process, host };
  Of of;
  Duration bound;  ///< the share of the whole deadline that it can take at most
  /// Sources of one lane run one after the other (a process has one debugger at a time); lanes run in
  /// parallel.
  int lane;
  Found (*collect)(const CollectContext& context);
};

/// All sources of one kind, in their order.
std::vector<const Source*> sources(Source::Of of);

}  // namespace nlaunch::evidence
