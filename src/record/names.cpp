#include "record/names.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "launch/job/allocation.h"
#include "sys/files.h"

namespace nlaunch::record {
namespace {

namespace fs = std::filesystem;
using Kind = Redactor::Kind;

struct Variable {
  std::string_view name;
  Kind kind;
};
constexpr std::array kVariables{
    Variable{"USER", Kind::user},
    Variable{"LOGNAME", Kind::user},
    Variable{"SUDO_USER", Kind::user},
    Variable{"SLURM_JOB_USER", Kind::user},
    Variable{"HOME", Kind::home},
    Variable{"HOSTNAME", Kind::host},
    Variable{"HOST", Kind::host},
    Variable{"SLURM_SUBMIT_HOST", Kind::host},
    Variable{"SLURMD_NODENAME", Kind::host},
    Variable{"SLURM_JOB_NODELIST", Kind::nodes},
    Variable{"SLURM_NODELIST", Kind::nodes},
    Variable{"SLURM_STEP_NODELIST", Kind::nodes},
    Variable{"SLURM_JOB_ACCOUNT", Kind::account},
    Variable{"SLURM_ACCOUNT", Kind::account},
    Variable{"SBATCH_ACCOUNT", Kind::account},
    Variable{"SALLOC_ACCOUNT", Kind::account},
};

/// Keys with these names, anywhere in the files.
constexpr std::array kKeys{
    Variable{"host", Kind::host},      Variable{"hosts", Kind::host},
    Variable{"nodelist", Kind::nodes}, Variable{"account", Kind::account},
    Variable{"budget", Kind::account}, Variable{"workspace", Kind::account},
};

void add_nodes(const std::string& list, Redactor& redactor) {
  const auto nodes = launch::expand_nodelist(list);
  for (const auto& node : nodes.value_or(std::vector<std::string>())) redactor.add(Kind::host, node);
  if (list.find('[') != std::string::npos) redactor.add(Kind::nodes, list);
}

void add(Kind kind, const std::string& name, Redactor& redactor) {
  if (kind == Kind::nodes) return add_nodes(name, redactor);
  redactor.add(kind, name);
  if (kind == Kind::home) redactor.add(Kind::user, fs::path(name).filename());
}

void add_variable(std::string_view name, const std::string& value, Redactor& redactor) {
  for (const auto& variable : kVariables) {
    if (variable.name == name) add(variable.kind, value, redactor);
  }
}

/// A string, or the strings of a list.
void add_all(Kind kind, const Json& value, Redactor& redactor) {
  if (value.is_string()) return add(kind, value.get<std::string>(), redactor);
  if (!value.is_array()) return;
  for (const auto& one : value) {
    if (one.is_string()) add(kind, one.get<std::string>(), redactor);
  }
}

void add_keys(const Json& json, Redactor& redactor) {
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    for (const auto& known : kKeys) {
      if (key == known.name) add_all(known.kind, value, redactor);
    }
    add_keys(value, redactor);
  }
}

void add_environments(const Json& bound, Redactor& redactor) {
  for (const auto& process : at(bound, "processes")) {
    const auto& environment = at(process, "env");
    if (!environment.is_object()) continue;
    for (const auto& [name, value] : environment.items()) {
      if (value.is_string()) add_variable(name, value.get<std::string>(), redactor);
    }
  }
}

/// The owner of the run, and the caller: for an account of a person, also the home directory. System accounts
/// identify nobody.
void add_account(uid_t uid, Redactor& redactor) {
  constexpr uid_t kFirstOfPeople = 1000;  // Debian Policy, 9.2.2
  const auto* account = uid < kFirstOfPeople ? nullptr : ::getpwuid(uid);
  if (account == nullptr) return;
  redactor.add(Kind::user, account->pw_name);
  redactor.add(Kind::home, account->pw_dir);
}

/// "/home/alice/..." identifies a person even if no variable does.
void add_home_of(const std::string& path, Redactor& redactor) {
  constexpr std::string_view kHomes = "/home/";
  if (!path.starts_with(kHomes)) return;
  const auto end = path.find('/', kHomes.size());
  if (end != std::string::npos) add(Kind::home, path.substr(0, end), redactor);
}

}  // namespace

void collect_names(const RunFiles& run, const std::vector<std::string>& environment, Redactor& redactor) {
  for (const auto& event : run.events) add_keys(event, redactor);
  for (const auto& attempt : run.attempts) {
    for (const auto& [host, bound] : attempt.bound) {
      redactor.add(Kind::host, host);
      add_keys(bound, redactor);
      add_environments(bound, redactor);
    }
    add_keys(attempt.preflight, redactor);
    add_keys(attempt.audit, redactor);
    add_keys(read_json(attempt.folder / "nodes.json"), redactor);
    for (const auto& folder : evidence_folders(attempt)) {
      for (const auto& host : sys::names_in(folder)) {
        if (sys::is_folder_itself(folder / host)) redactor.add(Kind::host, host);
      }
    }
  }
  for (const auto* json : {&run.plan, &run.summary}) add_keys(*json, redactor);
  for (const auto& [host, libraries] : at(run.lock, "libraries_on").items()) redactor.add(Kind::host, host);
  add_home_of(text_at(run.plan, "experiment"), redactor);
  for (const auto& entry : environment) {
    const auto equals = entry.find('=');
    if (equals != std::string::npos)
      add_variable(entry.substr(0, equals), entry.substr(equals + 1), redactor);
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) redactor.add(Kind::host, host.data());
  struct stat info {};
  if (::stat(run.folder.c_str(), &info) == 0) add_account(info.st_uid, redactor);
  add_account(::getuid(), redactor);
}

}  // namespace nlaunch::record
