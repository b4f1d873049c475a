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
#include "evidence/sources/resume_guard.h"
#include "evidence/sources/tree.h"
#include "evidence/spec.h"

/// Where evidence comes from. A source is a function in the file of its subject in evidence/sources/, with an
/// entry of its own.
namespace nlaunch::evidence {

/// What a source works on: a process of the plan, or with `subject` null the host.
struct CollectContext {
  using Clock = std::chrono::steady_clock;

  const Spec& spec;
  const Subject* subject = nullptr;
  Tree tree;                     ///< the processes of the subject, looked at before anything was attached
  std::filesystem::path folder;  ///< an existing one, for the files of this subject or host
  const Masker& masker;          ///< over all that is written
  ResumeGuard& thaw;             ///< to be told whom a debugger stops
  Clock::time_point deadline{};  ///< of this source: it does not work past it

  [[nodiscard]] Duration left() const;
  /// Masks `text` and writes it; false where the folder takes nothing.
  [[nodiscard]] bool write(const std::string& name, const std::string& text) const;
};

/// What is not there, and what a person can do about it.
struct Missing {
  std::string what;  ///< "Python stacks"
  std::string why;
  std::string install;  ///< what to install or permit; may be empty
};

/// What came of it: names of files, and what is missing.
struct Found {
  std::vector<std::string> got;
  std::vector<Missing> missing;
};

struct Source {
  int order;              ///< in what is reported, and within its lane
  std::string_view name;  ///< "Python stacks"
  enum class Of { process, host };
  Of of;
  Duration bound;  ///< of the whole deadline it takes at most this
  /// Sources of one lane work one after the other (a process has one debugger at a time), lanes all at once.
  int lane;
  Found (*collect)(const CollectContext& context);
};

/// All sources of one kind, in their order.
std::vector<const Source*> sources(Source::Of of);

}  // namespace nlaunch::evidence
