#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "diagnose/finding.h"

/// What a run directory says about the process that a finding is about, and what the finding means with it.
namespace nlaunch::diagnose {

/// From plan.json, and bound.HOST.json of its node. Unknown texts are empty. An origin is the place in the
/// experiment: "grpo.yaml:7:12".
struct ProcessFacts {
  std::string process;
  std::string role, role_origin;
  std::string command_origin;
  std::string venv, venv_origin;
  std::string workdir, workdir_origin;
  std::string rendezvous;      ///< "torch", "none"
  std::string experiment;      ///< path of the experiment file
  std::string python;          ///< path of the Python that its command runs, or of the first on its PATH
  std::string python_version;  ///< "3.11.7"
  bool python_named = false;   ///< its command runs that Python
};

/// Nothing if plan.json does not have the role of the process, or cannot be read. `host`: the name of its
/// node; empty on a single machine.
std::optional<ProcessFacts> read_process_facts(const std::filesystem::path& run_folder,
                                               const std::filesystem::path& attempt,
                                               const std::string& process, const std::string& host);

/// Whether `complete` has more to say about findings of this signature.
bool depends_on_process(const std::string& signature);
/// Replaces the general `why` and `fix` of a missing module, program or script, and of a missing rendezvous,
/// by what they mean for this process.
void complete(Finding& finding, const ProcessFacts& facts);

}  // namespace nlaunch::diagnose
