#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "lint/rule.h"
#include "shell/allocation.h"

/// Files and directories that variables name: logs, caches, nccl.conf.
namespace nlaunch::lint {
namespace {

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, std::max<std::size_t>(1, slash));
}

/// True if a command of the script creates directories and names this one.
bool is_made(const LintInput& input, const std::string& folder) {
  if (!input.script) return false;
  return std::ranges::any_of(input.script->commands, [&](const ScriptCommand& command) {
    return command.words[0] == "mkdir" && std::ranges::any_of(command.words, [&](const std::string& word) {
             return word == folder || word.starts_with(folder + "/");
           });
  });
}

void check_debug_folder(const LintInput& input, Report& report) {
  each_value(input, report, "NCCL_DEBUG_FILE",
             [&](const Environment&, const Setting& setting, const std::string& value) {
               const auto folder = folder_of(value);
               if (folder.empty() || value.find("${") != std::string::npos || value.find('%') < folder.size())
                 return;
               if (!input.folder_exists || input.folder_exists(folder) || is_made(input, folder)) return;
               report.warning(setting.span,
                              {fmt::format("the directory {} of NCCL_DEBUG_FILE does not exist", folder),
                               "NCCL does not create it and silently writes to standard output instead",
                               fmt::format("run `mkdir -p {}` before the programs start", folder), ""});
             });
}

const Registered<Rule> debug_folder_rule{{
    .order = 300,
    .name = "debug-folder",
    .title = "NCCL_DEBUG_FILE in a directory that does not exist",
    .explain = "NCCL opens the file but does not create directories. If the file cannot be opened, NCCL "
               "writes to standard output.",
    .source = "NCCL src/debug.cc",
    .check = check_debug_folder,
}};

void check_shared_cache(const LintInput& input, Report& report) {
  constexpr std::array<std::string_view, 5> kCaches{"TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
                                                    "RAY_TMPDIR", "CUDA_CACHE_PATH", "TORCH_EXTENSIONS_DIR"};
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (std::ranges::find(kCaches, setting.name) == kCaches.end() || !setting.value) return;
    const bool of_all = *setting.value == "/tmp" || *setting.value == "/tmp/";
    if (of_all && setting.name != "RAY_TMPDIR" && setting.exported)
      report.note(
          setting.span,
          {fmt::format("{}={} is the same for all users and jobs of the node", setting.name, *setting.value),
           "they write into one directory: a file of another user cannot be replaced, and one of another "
           "job may be used",
           "/tmp/$USER-$SLURM_JOB_ID", ""});
    if (!input.shared_file_system) return;
    const auto system = input.shared_file_system(*setting.value);
    if (system.empty()) return;
    report.warning(
        setting.span,
        {fmt::format("{} is on a shared file system ({})", setting.name, system),
         setting.name == "RAY_TMPDIR" ? "Ray's sockets do not work there"
                                      : "processes on different nodes see each other's half-written files",
         fmt::format(
             "use a directory on the node's local disk: /tmp/$USER-$SLURM_JOB_ID (nlaunch: ${{node.{}}})",
             setting.name == "RAY_TMPDIR" ? "scratch" : "cache"),
         ""});
  });
}

const Registered<Rule> shared_cache_rule{{
    .order = 310,
    .name = "shared-cache",
    .title = "a cache or socket directory that nodes, users or jobs share",
    .explain = "Triton, Inductor and CUDA write their caches without regard to other nodes; Ray's sockets "
               "do not work on a network file system.",
    .source = "triton-lang/triton issues; Ray docs, --temp-dir",
    .check = check_shared_cache,
}};

void check_nccl_conf(const LintInput& input, Report& report) {
  for (const auto& conf : input.conf) {
    for (const auto& environment : input.environments) {
      const auto* setting = environment.find(conf.name);
      report.of(environment.name);
      if (setting == nullptr) {
        report.warning(
            conf.span,
            {fmt::format("{} sets {}, which nothing here asks for", conf.span.file->name, conf.name),
             "NCCL loads every line of this file into the environment of each process that uses it",
             "set it explicitly where you want it: the environment takes precedence over the file", ""});
      } else if (setting->unset) {
        report.warning(setting->span,
                       {fmt::format("{} is unset here, but {} sets it again", conf.name, conf.span.where()),
                        "NCCL reads its configuration file inside the process",
                        fmt::format("set {} to the value you want", conf.name), ""});
      }
    }
  }
}

const Registered<Rule> nccl_conf_rule{{
    .order = 320,
    .name = "nccl-conf",
    .title = "an nccl.conf that overrides the profile",
    .explain = "NCCL loads /etc/nccl.conf and ~/.nccl.conf (or $NCCL_CONF_FILE) into the environment of the "
               "process: any variable, including those of other libraries.",
    .source = "NCCL src/misc/param.cc",
    .check = check_nccl_conf,
}};

/// A list of the job's hosts in a file whose name is the same in each job.
void check_shared_file(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  constexpr std::array<std::string_view, 4> kOfNode{"/tmp/", "/dev/shm/", "/run/", "/var/tmp/"};
  for (const auto& file : input.script->own_files) {
    const bool of_job = file.path.find(shell::Allocation{}.job_id) != std::string::npos;
    const bool of_node =
        std::ranges::any_of(kOfNode, [&](std::string_view folder) { return file.path.starts_with(folder); });
    // A copy of the script for bash is in a temporary directory itself.
    const bool own = file.path.starts_with(input.script->folder + "/");
    if (!file.names_hosts || of_job || (of_node && !own)) continue;
    const auto name = own ? file.path.substr(input.script->folder.size() + 1) : file.path;
    report.warning(file.span,
                   {fmt::format("{} names the hosts of this job, and each job writes the same file",
                                text::printable(name)),
                    "of two jobs at once, one starts its programs on the nodes of the other",
                    fmt::format("{}.$SLURM_JOB_ID", text::printable(name)), ""});
  }
}

const Registered<Rule> shared_file_rule{{
    .order = 494,
    .name = "shared-file",
    .title = "a list of hosts that jobs overwrite for each other",
    .explain = "A file in a shared directory needs the job's id in its name if each job writes it anew.",
    .source = "sbatch(1), SLURM_JOB_ID",
    .check = check_shared_file,
}};

}  // namespace
}  // namespace nlaunch::lint
