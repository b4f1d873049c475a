#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/assigned.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/words.h"

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

/// The path as people write it: relative to the directory of the script or the user's home, if it is below
/// one of them.
std::string shown_path(const Script& script, const std::string& path) {
  const std::string home = std::string(shell::Allocation::kHome) + "/";
  const bool own = !script.folder.empty() && path.starts_with(script.folder + "/");
  return text::printable(own                      ? path.substr(script.folder.size() + 1)
                         : path.starts_with(home) ? "~/" + path.substr(home.size())
                                                  : path);
}

/// `rm -f FILE` of the script itself; nullptr if there is none.
const ScriptCommand* removal_of(const Script& script, const std::string& path) {
  const auto name = path.substr(path.rfind('/') + 1);
  const auto found = std::ranges::find_if(script.commands, [&](const ScriptCommand& command) {
    return command.words[0] == "rm" && command.span.file == script.file &&
           std::any_of(command.words.begin() + 1, command.words.end(), [&](const std::string& word) {
             return word == path || word.substr(word.rfind('/') + 1) == name;
           });
  });
  return found == script.commands.end() ? nullptr : &*found;
}

/// `echo … >> history.txt`
bool is_appended(const Script& script, const std::string& path) {
  const auto name = path.substr(path.rfind('/') + 1);
  const RE2 appends(fmt::format(R"re(>>\s*["']?[^<>|;&\n]*{})re", RE2::QuoteMeta(name)), RE2::Latin1);
  return RE2::PartialMatch(script.file->text, appends);
}

/// A file that the script writes and gives to a program, under the same name in each job.
void check_shared_file(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || !input.script->in_next_job) return;
  const auto& script = *input.script;
  for (const auto& file : script.own_files) {
    const auto& next = script.in_next_job->own_files;
    const auto same = std::ranges::find(next, file.path, &OwnFile::path);
    if (same == next.end() || is_of_node(script, file.path) || is_appended(script, file.path)) continue;
    const auto name = shown_path(script, file.path);
    const bool names_hosts = shell::Allocation::names_node(file.text);
    const auto* removal = removal_of(script, file.path);
    const bool at_end = removal != nullptr && removal->span.line > file.span.line;
    const std::string instead = fmt::format("{}.$SLURM_JOB_ID", name);
    if (names_hosts)
      report.warning(file.span,
                     {fmt::format("{} names the hosts of this job, and each job writes the same file", name),
                      "of two jobs at once, one starts its programs on the nodes of the other", instead, ""});
    else if (file.text != same->text)
      report.warning(file.span, {fmt::format("{} is written anew by each job, with values of that job", name),
                                 "of two jobs at once, one reads the values of the other", instead, ""});
    else if (at_end)
      report.warning(
          removal->span,
          {fmt::format("this removes {}, which other jobs with this script use, too", name),
           "of two jobs at once, the one that ends first takes the file from the other", instead, ""});
  }
}

const Registered<Rule> shared_file_rule{{
    .order = 494,
    .name = "shared-file",
    .title = "a file that jobs overwrite or remove for each other",
    .explain =
        "bash ran the script as two jobs of different days: a program is given a file that has the same "
        "name in both, and that names the hosts of the job, has other contents, or is removed.",
    .source = "sbatch(1), SLURM_JOB_ID",
    .check = check_shared_file,
}};

/// A file that the script truncates when it starts what writes to it.
struct Truncated {
  std::string path;
  SourceSpan span;
  bool by_tee = false;
};

/// `program > FILE`: a redirection of its own, and not of the loop around it.
bool redirects_itself(const SourceSpan& span) {
  static const RE2 kRedirects(R"re((?:^|[^0-9>&=<-]|\b1|&)>\|?\s*[^&>\s(])re");
  return RE2::PartialMatch(SourceLines(span.file).command(span.line), kRedirects);
}

/// The output of programs, once for all tasks of a step.
std::vector<Truncated> truncated_by(const Script& script) {
  std::vector<Truncated> files;
  const auto add = [&](const std::string& path, const SourceSpan& span, bool by_tee) {
    if (span.file == script.file && !path.empty() && !is_of_node(script, path) && !path.starts_with("/dev/"))
      files.push_back({path, span, by_tee});
  };
  std::optional<std::size_t> step;
  for (const auto& program : script.programs) {
    const bool other_task = program.step && program.step == step;
    step = program.step;
    if (program.works && !other_task) add(program.output, program.span, false);
  }
  for (const auto& file : script.teed) add(file.path, file.span, true);
  return files;
}

/// A command of the script is given the file, or reads it: it may keep what is in it.
bool is_used(const Script& script, const std::string& path) {
  const auto name = path.substr(path.rfind('/') + 1);
  const RE2 reads(fmt::format(R"re(<\s*["']?[^<>|;&\n]*{})re", RE2::QuoteMeta(name)), RE2::Latin1);
  return RE2::PartialMatch(script.file->text, reads) ||
         std::ranges::any_of(script.commands, [&](const ScriptCommand& command) {
           return command.words[0] != "tee" && command.words[0] != "echo" && command.words[0] != "touch" &&
                  std::any_of(command.words.begin() + 1, command.words.end(),
                              [&](const std::string& word) { return word.contains(name); });
         });
}

/// `mv log log.1`, `cat log >> all`, or a program reads it: the next run overwrites nothing that is missed.
bool is_kept(const Script& script, const std::string& path) {
  const auto name =
      R"re((?:^|[\s"'/=]))re" + RE2::QuoteMeta(path.substr(path.rfind('/') + 1)) + R"re((?:$|[\s"';|&)]))re";
  const RE2 keeps(R"re((?m)\b(?:mv|cp|gzip|zstd|tar|rsync|scp|rm)\b[^\n]*)re" + name + R"re(|)re" + name +
                      R"re([^\n]*>>|<\s*["']?[^<>|;&\n]*)re" + name,
                  RE2::Latin1);
  const auto file = path.substr(path.rfind('/') + 1);
  const bool is_given = std::ranges::any_of(script.programs, [&](const Program& one) {
    return one.works && std::any_of(one.words.begin() + 1, one.words.end(), [&](const std::string& word) {
             return word == file || word.ends_with("/" + file);
           });
  });
  return is_given || RE2::PartialMatch(without_comments(SourceLines(script.file)), keeps);
}

/// True if it has told of a run that overwrites its own output.
bool tell_of_own_overwriting(const Script& script, const std::vector<Truncated>& files, Report& report) {
  for (auto one = files.begin(); one != files.end(); ++one) {
    if ((!one->by_tee && !redirects_itself(one->span)) || is_used(script, one->path)) continue;
    const auto again =
        std::find_if(one + 1, files.end(), [&](const Truncated& other) { return other.path == one->path; });
    if (again == files.end() || (!again->by_tee && !redirects_itself(again->span))) continue;
    const auto name = shown_path(script, one->path);
    report.warning(again->span,
                   {again->span.line == one->span.line
                        ? fmt::format("each time it runs, this line overwrites {}", name)
                        : fmt::format("this overwrites {}, the output of line {}", name, one->span.line),
                    "the file is truncated when it is opened: only the last output is left",
                    again->by_tee ? "tee -a, or another name" : ">> FILE, or another name", ""});
    return true;
  }
  return false;
}

void check_log_overwritten(const LintInput& input, Report& report) {
  constexpr std::array<std::string_view, 1> kTold{"output-overwritten"};
  if (!input.script || !input.script->in_next_job || has_other_job_id(*input.script)) return;
  const auto& script = *input.script;
  const auto files = truncated_by(script);
  const bool array = has_tasks_at_once(input);
  if (tell_of_own_overwriting(script, files, report) && !array) return;
  if (!array && report.has_any_of(kTold)) return;
  const auto next = truncated_by(*script.in_next_job);
  std::vector<std::string> names;
  const Truncated* first = nullptr;
  for (const auto& one : files) {
    const auto name = shown_path(script, one.path);
    if (std::ranges::find(next, one.path, &Truncated::path) == next.end() || is_kept(script, one.path) ||
        std::ranges::find(names, name) != names.end())
      continue;
    if (first == nullptr) first = &one;
    names.push_back(name);
  }
  if (first == nullptr) return;
  const bool job = input.slurm || !input.batch.empty();
  const auto more = names.size() > 2 ? fmt::format(", and {} more", names.size() - 2) : "";
  if (names.size() > 2) names.resize(2);
  const auto all = text::join(names, more.empty() ? " and " : ", ") + more;
  report.note(first->span, {array ? fmt::format("all tasks of the array write {}", all)
                                  : fmt::format("the next run of this script overwrites {}", all),
                            array ? "each truncates it, and what they print is mixed"
                                  : "what a run has printed is lost when the script is started again",
                            job ? "NAME-$SLURM_JOB_ID.log" : "NAME-$(date +%F-%H%M%S).log", ""});
}

const Registered<Rule> log_overwritten_rule{{
    .order = 495,
    .name = "log-overwritten",
    .title = "an output that another run overwrites",
    .explain =
        "bash ran the script twice, as of different days and jobs: the file has the same name in both, "
        "and > or tee truncates it.",
    .source = "bash(1), REDIRECTION; tee(1)",
    .check = check_log_overwritten,
}};

/// `if [ ! -f train.parquet ]; then` above it.
bool is_made_if_missing(const SourceLines& lines, std::uint32_t number) {
  constexpr std::uint32_t kAbove = 8;
  static const RE2 kMissing(
      R"re(\bif\s+(?:!\s+\[\[?\s+|\[\[?\s+!\s+)-[defs]\s|(?:\[\[?|\btest)\s+-[defs]\s[^\n]*\|\|\s*\{)re");
  static const RE2 kEnd(R"re(^\s*(?:(?:fi|else|elif)\b|\}))re");
  for (auto at = number; at > 0 && at + kAbove > number; --at) {
    if (RE2::PartialMatch(lines.line(at), kMissing)) return true;
    if (RE2::PartialMatch(lines.line(at), kEnd)) return false;
  }
  return false;
}

/// `echo step,score > results.csv` above what appends to it.
void check_results_emptied(const LintInput& input, Report& report) {
  if (!input.script || has_tasks_at_once(input)) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  static const RE2 kEmpties(
      R"re(^\s*(?:echo|printf|:)\s?(?:[^<>|&]*[^<>|&0-9])?>\s*("[^"]+"|[^\s;|&"'>]+)\s*$)re");
  static const RE2 kResults(R"re(\.(?:csv|tsv|txt|jsonl?|md|log)$)re");
  if (moves_by_variable(script)) return;
  std::vector<std::string> plain;
  for (std::uint32_t at = 0; at <= lines.count(); ++at) plain.push_back(without_quoting(lines.line(at)));
  for (const auto number : lines_of_commands(lines)) {
    std::string file;
    if (!RE2::PartialMatch(std::string(lines.line(number)), kEmpties, &file) ||
        is_made_if_missing(lines, number))
      continue;
    const auto path = lasting_text(script, without_quoting(file));
    if (!RE2::PartialMatch(path, kResults) || is_of_node(script, path) || is_kept(script, path)) continue;
    std::uint32_t appends = 0;
    for (auto at = number + 1; at <= lines.count() && appends == 0; ++at) {
      const auto& line = plain[at];
      const auto place = line.find(without_quoting(file));
      if (place == std::string::npos) continue;
      const bool by_shell = line.substr(0, place).find(">>") != std::string::npos;
      if (by_shell || RE2::PartialMatch(line, R"re(open\(.*,\s*a\))re")) appends = at;
    }
    if (appends == 0) continue;
    return report.note(
        lines.whole(number),
        {fmt::format("the next run of this script empties {}, to which line {} appends",
                     text::printable(without_quoting(file)), appends),
         "the results of the run before are lost, and two runs at once mix theirs",
         "a name with $(date +%F-%H%M%S), or write the first line only if the file is not there", ""});
  }
}

const Registered<Rule> results_emptied_rule{{
    .order = 527,
    .name = "results-emptied",
    .title = "a list of results that the next run empties",
    .explain =
        "> truncates the file before the script appends to it. Not reported if the name has the date or "
        "the job's id in it, or if the script moves the file.",
    .source = "bash(1), REDIRECTION",
    .check = check_results_emptied,
}};

/// The file that `flock FILE COMMAND`, or `flock 9` behind `exec 9> FILE`, locks; empty if unknown.
std::string locked_file(const Script& script, const ScriptCommand& command) {
  static const shell::Options kValued{"-w", "--timeout", "--wait", "-E", "--conflict-exit-code"};
  const auto at = shell::program_at(command.words, 1, kValued);
  if (at >= command.words.size()) return "";
  const auto& word = command.words[at];
  if (!text::whole_number<int>(word)) return word;
  const RE2 opens(R"re([\s;(}])re" + word + R"re(>>?\s*"?([^\s"';|&]+))re");
  std::string file;
  RE2::PartialMatch(script.file->text, opens, &file);
  return lasting_text(script, without_quoting(file));
}

/// `[ -d /tmp/data ] || tar xf data.tar -C /tmp` behind the lock, or with it.
bool protects_files_of_node(const SourceLines& lines, std::uint32_t number) {
  constexpr std::uint32_t kNear = 4;
  static const RE2 kOfNode(
      R"re(["'\s=](?:/tmp|/dev/shm|/var/tmp|/local\w*|/scratch/local|\$\{?(?:TMPDIR|SLURM_TMPDIR))\b)re");
  static const RE2 kLock(R"re(\bflock\s[^;|&]*?(?:\s\d+|/\S+)|\d>+\s*\S+|\bexec\s+\d+[^;]*)re");
  for (auto at = number; at <= std::min(number + kNear, lines.count()); ++at) {
    auto line = std::string(lines.line(at));
    RE2::GlobalReplace(&line, kLock, " ");
    if (RE2::PartialMatch(line, kOfNode)) return true;
  }
  return false;
}

void check_local_lock(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  const SourceLines lines(input.script->file);
  for (const auto& command : input.script->commands) {
    if (shell::program_name(command.words[0]) != "flock") continue;
    const auto file = locked_file(*input.script, command);
    if (file.empty() || !is_of_node(*input.script, file) || protects_files_of_node(lines, command.span.line))
      continue;
    return report.note(
        command.span,
        {fmt::format("the lock {} is on the disk of the node", text::printable(file)),
         "jobs on other nodes have a lock of their own, and change what they share at the same time",
         "a file on the shared file system that the lock protects", ""});
  }
}

const Registered<Rule> local_lock_rule{{
    .order = 528,
    .name = "local-lock",
    .title = "a lock that jobs on other nodes do not see",
    .explain = "/tmp and /dev/shm are each node's own. Reported for flock in a job.",
    .source = "flock(1)",
    .check = check_local_lock,
}};

/// A directory that a training is told to write to: "--output_dir", "ckpt/sft".
struct OutputDirectory {
  const Program* program = nullptr;
  std::string option;  ///< "--output_dir ", "save_dir="
  std::string path;
};

/// `--output_dir PATH`, `--save-dir=PATH`, `trainer.default_local_dir=PATH`; nullopt: none, or on the node.
std::optional<OutputDirectory> output_directory(const Script& script, const Program& program) {
  static const RE2 kOption(
      R"re((?i)(?:^--?|^|\.)((?:output|out|save|ckpt|checkpoints?|results?|work|exp|experiment|run|default_local)[-_]?(?:dir|directory|path|folder)|save|out|output)$)re");
  static const RE2 kPath(R"re(^[\w./~][\w./+~=@-]*[A-Za-z][\w./+~=@-]*$)re");
  for (std::size_t i = 1; i < program.words.size(); ++i) {
    const auto& word = program.words[i];
    const auto equals = word.find('=');
    const bool next = equals == std::string::npos && word.starts_with('-') && i + 1 < program.words.size();
    const auto option = word.substr(0, equals);
    const auto path = next                          ? program.words[i + 1]
                      : equals == std::string::npos ? ""
                                                    : word.substr(equals + 1);
    static const shell::Options kValues{"true", "false", "none", "null", "True", "False", "None"};
    if (!RE2::PartialMatch(option, kOption) || !RE2::FullMatch(path, kPath) || kValues.contains(path) ||
        is_of_node(script, path))
      continue;
    return OutputDirectory{&program, next ? option + " " : option + "=", path};
  }
  return std::nullopt;
}

bool trains(const Program& program) {
  static const RE2 kTrains(R"re((?i)train|tune|sft|dpo|grpo|ppo|pretrain|distill)re");
  return launcher_of(program) || RE2::PartialMatch(shown_name(program), kTrains);
}

/// The path is in the script's text, and not as a default that can be replaced: `${OUT:-ckpt}`.
bool is_written_out(const Script& script, const std::string& path) {
  const auto folder = path.substr(0, path.find_last_not_of('/') + 1);
  const auto name = folder.substr(folder.rfind('/') + 1);
  const auto& text = script.file->text;
  const bool by_default = text.contains("-" + path + "}") || text.contains("=" + path + "}") ||
                          text.contains("-" + name + "}") || text.contains("=" + name + "}");
  static const RE2 kGiven(R"re(\bgetopts\b|\$OPTARG\b|\bshift\b)re");
  return text.contains(name) && !by_default && !RE2::PartialMatch(text, kGiven);
}

/// Trainings that write into the same directory each time the script runs.
void check_shared_output(const LintInput& input, Report& report) {
  if (!input.script || !input.script->in_next_job || has_other_job_id(*input.script)) return;
  const auto& script = *input.script;
  // A run that goes on where the last one stopped needs the same one.
  static const RE2 kGoesOn(
      R"re((?i)resum|requeue|from_checkpoint|from-checkpoint|auto_continue|overwrite|\bwhile\s+\[\[?\s+-[ed]|\[\[?\s+(?:!\s+)?-e\s)re");
  if (RE2::PartialMatch(without_comments(SourceLines(script.file)), kGoesOn)) return;
  const bool array = has_tasks_at_once(input);
  const SourceLines lines(script.file);
  for (const auto& program : script.programs) {
    const bool loads = shell::has(program.words, "--load");
    if (!program.works || !trains(program) || loads || program.span.file != script.file) continue;
    const auto output = output_directory(script, program);
    if (!output || !is_written_out(script, output->path) || is_made_if_missing(lines, program.span.line))
      continue;
    const bool same = std::ranges::any_of(script.in_next_job->programs, [&](const Program& one) {
      const auto next = output_directory(*script.in_next_job, one);
      return one.span.line == program.span.line && next && next->path == output->path;
    });
    if (!same) continue;
    const bool job = input.slurm || !input.batch.empty();
    return report.note(
        program.span,
        {array ? fmt::format("all tasks of the array write into {}", text::printable(output->path))
               : fmt::format("the next run of this script writes into {} too", text::printable(output->path)),
         array ? "they overwrite each other's checkpoints"
               : "it overwrites what this one has saved, and two runs at once mix their checkpoints",
         fmt::format("{}{}-{}", output->option,
                     text::printable(output->path.substr(0, output->path.find_last_not_of('/') + 1)),
                     job ? "$SLURM_JOB_ID" : "$(date +%F-%H%M%S)"),
         ""});
  }
}

const Registered<Rule> shared_output_rule{{
    .order = 500,
    .name = "shared-output",
    .title = "trainings that save into the same directory",
    .explain = "bash ran the script as two jobs of different days: the directory has the same name in both. "
               "Not reported for a script that resumes, or whose directory can be given.",
    .source = "sbatch(1), SLURM_JOB_ID",
    .check = check_shared_output,
}};

/// Where a program keeps its results: the value of --save, --output_dir and the like; empty if it has none.
std::string kept_in(const Program& program) {
  auto kept = value_of(program, {"--save", "--output_dir", "--output-dir", "--save_dir", "--save-dir",
                                 "--save_path", "--save-path", "--checkpoint_dir", "--checkpoint-dir",
                                 "--checkpoint-path", "--ckpt_dir"})
                  .value_or("");
  while (kept.size() > 1 && kept.ends_with('/')) kept.pop_back();
  return kept;
}

void check_results_removed(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& script = *input.script;
  const auto names = [](const shell::Words& words, const std::string& path) {
    return std::ranges::any_of(
        words, [&](const auto& word) { return word == path || word.starts_with(path + "/"); });
  };
  for (const auto& program : script.programs) {
    const auto kept = program.works ? kept_in(program) : std::string();
    if (kept.empty() || program.span.file != script.file || is_of_node(script, kept)) continue;
    const auto behind = std::ranges::find_if(script.commands, [&](const ScriptCommand& one) {
      return one.span.file == script.file && one.span.line > program.span.line &&
             shell::program_name(one.words[0]) == "rm" && one.words.size() > 2 &&
             names({one.words.back()}, kept) && one.words.back().size() <= kept.size() + 1;
    });
    if (behind == script.commands.end()) continue;
    // Copied, converted or evaluated before that, or started again.
    const auto uses = [&](const auto& one) {
      return one.span.file == script.file && one.span.line > program.span.line &&
             one.span.line < behind->span.line && names(one.words, kept);
    };
    if (std::ranges::any_of(script.programs, uses) || std::ranges::any_of(script.commands, uses)) continue;
    return report.error(behind->span, {fmt::format("this removes what {} of line {} has written",
                                                   shown_name(program), program.span.line),
                                       "nothing has copied it before: the results of the run are lost",
                                       "remove it before the run, or leave this out", ""});
  }
}

const Registered<Rule> results_removed_rule{{
    .order = 554,
    .name = "results-removed",
    .title = "an rm of the directory that a program has written to",
    .explain = "Reported for the value of --save, --output_dir and the like, if no command between the two "
               "names it.",
    .source = "rm(1)",
    .check = check_results_removed,
}};

}  // namespace
}  // namespace nlaunch::lint
