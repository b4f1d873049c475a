#include "shell/notes.h"

#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text.h"
#include "shell/stand_ins.h"
#include "sys/files.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestScript = 1U << 20U;

/// The script reads what a program prints.
bool is_piped(const ProgramStart& start) {
  return start.file(STDOUT_FILENO).starts_with("pipe:");
}

/// Set by Slurm in a job or a step (sbatch(1) and srun(1) of 24.11, output environment variables). Others
/// whose name begins so are a site's: SLURM_TMPDIR.
bool is_of_slurm(std::string_view name) {
  static const Options kNames{"SLURM_CLUSTER_NAME",
                              "SLURM_CONF",
                              "SLURM_CPUS_ON_NODE",
                              "SLURM_DISTRIBUTION",
                              "SLURM_DIST_PLANESIZE",
                              "SLURM_EXPORT_ENV",
                              "SLURM_GPUS_ON_NODE",
                              "SLURM_GPU_BIND",
                              "SLURM_GPU_FREQ",
                              "SLURM_GTIDS",
                              "SLURM_HINT",
                              "SLURM_JOBID",
                              "SLURM_JOB_ACCOUNT",
                              "SLURM_JOB_DEPENDENCY",
                              "SLURM_JOB_END_TIME",
                              "SLURM_JOB_GID",
                              "SLURM_JOB_GPUS",
                              "SLURM_JOB_ID",
                              "SLURM_JOB_LICENSES",
                              "SLURM_JOB_NAME",
                              "SLURM_JOB_NODELIST",
                              "SLURM_JOB_NUM_NODES",
                              "SLURM_JOB_PARTITION",
                              "SLURM_JOB_QOS",
                              "SLURM_JOB_RESERVATION",
                              "SLURM_JOB_START_TIME",
                              "SLURM_JOB_UID",
                              "SLURM_JOB_USER",
                              "SLURM_LAUNCH_NODE_IPADDR",
                              "SLURM_LOCALID",
                              "SLURM_NNODES",
                              "SLURM_NODEID",
                              "SLURM_NODELIST",
                              "SLURM_NODE_ALIASES",
                              "SLURM_NPROCS",
                              "SLURM_NTASKS",
                              "SLURM_NTASKS_PER_CORE",
                              "SLURM_NTASKS_PER_GPU",
                              "SLURM_NTASKS_PER_SOCKET",
                              "SLURM_OVERCOMMIT",
                              "SLURM_OVERLAP",
                              "SLURM_PRIO_PROCESS",
                              "SLURM_PROCID",
                              "SLURM_PROFILE",
                              "SLURM_RESTART_COUNT",
                              "SLURM_SCRIPT_CONTEXT",
                              "SLURM_SHARDS_ON_NODE",
                              "SLURM_SUBMIT_DIR",
                              "SLURM_SUBMIT_HOST",
                              "SLURM_TASKS_PER_NODE",
                              "SLURM_TASK_PID",
                              "SLURM_THREADS_PER_CORE",
                              "SLURM_TOPOLOGY_ADDR",
                              "SLURM_TOPOLOGY_ADDR_PATTERN",
                              "SLURM_TRES_PER_TASK",
                              "SLURM_UMASK",
                              "SLURM_WORKING_CLUSTER",
                              "SLURMD_NODENAME"};
  constexpr std::array<std::string_view, 8> kPrefixes{"SLURM_ARRAY_", "SLURM_CONTAINER", "SLURM_CPU_BIND",
                                                      "SLURM_HET_",   "SLURM_MEM_BIND",  "SLURM_PTY_",
                                                      "SLURM_SRUN_",  "SLURM_STEP"};
  return kNames.contains(name) || name.contains("_HET_GROUP_") ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

/// Set by bash itself, or by Slurm for a task.
bool is_of_bash(std::string_view name) {
  constexpr std::array<std::string_view, 16> kNames{
      "RANDOM", "SECONDS", "LINENO", "EUID",  "UID",   "PPID",     "PWD",        "OLDPWD",
      "IFS",    "OPTARG",  "OPTIND", "REPLY", "SHLVL", "HOSTTYPE", "PIPESTATUS", "FUNCNAME"};
  constexpr std::array<std::string_view, 5> kPrefixes{"BASH", "OMPI_", "PMI", "EPOCH", "OSTYPE"};
  return std::ranges::find(kNames, name) != kNames.end() || is_of_slurm(name) ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::string folder_of(const RecordRequest& request) {
  std::error_code error;
  if (!request.folder.empty()) return request.folder;
  return fs::absolute(request.script, error).parent_path().lexically_normal();
}

std::vector<Absent> placeholders_in(const std::string& script) {
  static const RE2 kAngles(R"((<[A-Za-z][^<>]*>))");
  static const RE2 kBraces(R"((<[A-Za-z][^<>]*>|\{[^{}$]*\}))");
  std::vector<Absent> found;
  std::uint32_t number = 0;
  for (const auto& line : text::split(script, '\n')) {
    ++number;
    const auto trimmed = text::trim(line);
    const bool directive = trimmed.starts_with("#SBATCH");
    if (trimmed.starts_with('#') && !directive) continue;
    auto text = std::string(trimmed);
    if (directive) text = text.substr(0, text.find(" #", 1));
    std::string placeholder;
    for (re2::StringPiece rest(text);
         RE2::FindAndConsume(&rest, directive ? kBraces : kAngles, &placeholder);)
      found.push_back({number, placeholder});
  }
  return found;
}

namespace {

enum class InnerTexts { kept, left_out };

/// A line without what is in single quotes, where bash expands nothing. `inner`: texts that another shell
/// reads and expands.
std::string expanded_by_bash(const std::string& line, InnerTexts inner) {
  static const RE2 kForShell(R"((^|\s)(-[a-z]*c|eval|trap|ssh\s+\S+)\s+$)");
  std::string rest;
  bool in_double = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '\\') {
      rest += line.substr(at++, 2);
      continue;
    }
    if (c == '"') in_double = !in_double;
    const auto end = c == '\'' && !in_double ? line.find('\'', at + 1) : std::string::npos;
    if (end == std::string::npos) {
      rest += c;
      continue;
    }
    if (inner == InnerTexts::kept && RE2::PartialMatch(rest, kForShell))
      rest += line.substr(at, end - at + 1);
    at = end;
  }
  return rest;
}

}  // namespace

std::vector<Absent> unset_in(const std::string& script, const std::string& texts,
                             std::set<std::string> known) {
  static const RE2 kSets(
      R"(\b([A-Za-z_]\w*)(?:\[[^\]]*\])?[:+]?=|(?:\(\(|,)[ \t]*(?:\+\+|--)?([A-Za-z_]\w*)[ \t]*(?:\+\+|--|[-+*/%&|^]?=[^=]|\)\))|)"
      R"(\b(?:for|select|let|local|declare|export|readonly|mapfile|readarray|read|getopts|printf -v|typeset)((?:[ \t]+[^\s;|&<>]+)+))");
  std::string name;
  std::string counter;
  std::string words;
  static const RE2 kComment(R"((?m)^[ \t]*#.*$)");
  auto commands = texts;
  RE2::GlobalReplace(&commands, kComment, "");
  for (re2::StringPiece rest(commands); RE2::FindAndConsume(&rest, kSets, &name, &counter, &words);) {
    known.insert(name);
    known.insert(counter);
    for (const auto& word : text::split(words, ' ')) {
      const auto begin = std::min(word.find_first_not_of('('), word.size());
      known.insert(word.substr(begin, word.find_first_of("=[+", begin) - begin));
    }
  }
  // The script provides for its being empty.
  static const RE2 kTested(R"(-[nzv]\s+"?\$?\{?([A-Za-z_]\w*))");
  for (re2::StringPiece rest(commands); RE2::FindAndConsume(&rest, kTested, &name);) known.insert(name);
  std::vector<Absent> unset;
  static const RE2 kUses(R"((?:^|[^\\$])\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}))");
  std::uint32_t number = 0;
  for (const auto& line : text::split(script, '\n')) {
    ++number;
    // A test whether it is set handles the unset case; awk has its own variables.
    static const RE2 kNoUse(R"(^\s*#|\bawk\b|\[\s+-[znv]\s)");
    if (RE2::PartialMatch(line, kNoUse)) continue;
    std::string braced;
    const auto text = expanded_by_bash(line, InnerTexts::kept);
    const auto use = [&] {
      if (!is_of_bash(name) && known.insert(name).second) unset.push_back({number, name});
    };
    for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, kUses, &name, &braced);) {
      if (name.empty()) name = braced;
      use();
    }
    // $(( NAME + 1 )): there, names need no $.
    static const RE2 kArithmetic(
        R"((?:\$|(?:^|[;&|!]|\b(?:if|elif|while|until|do|then|else|for))\s*)\(\(((?:[^()]|\([^()]*\))*)\)\))");
    static const RE2 kName(R"((?:^|[^\w$#{.])([A-Za-z_]\w*))");
    static const RE2 kCommand(R"(\$\([^()]*\)|\$\{[^}]*\})");
    std::string expression;
    for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, kArithmetic, &expression);) {
      RE2::GlobalReplace(&expression, kCommand, "0");
      for (re2::StringPiece names(expression); RE2::FindAndConsume(&names, kName, &name);) use();
    }
  }
  return unset;
}

std::vector<Absent> missing_arguments_in(const std::string& script, std::size_t given,
                                         const std::set<std::uint32_t>& ran) {
  static const RE2 kFunction(R"(^(\s*)(?:function\s+[\w-]+|[\w-]+\s*\(\)))");
  // It takes its arguments apart itself, or provides for one that is missing.
  static const RE2 kParses(
      R"((?m)^\s*set\s+--|\b(?:shift|getopts)\b|\bcase\s+"?\$\{?1|\$#|-[nz]\s+"?\$\{?[1-9])");
  static const RE2 kUses(R"((?:^|[^\\$])\$(?:([1-9])|\{([1-9])\}))");
  static const RE2 kExpansion(R"(\$\{[^}]*\})");
  std::vector<Absent> missing;
  if (RE2::PartialMatch(script, kParses)) return missing;
  std::set<std::string> once;
  std::optional<std::string> end_of_function;  // its closing brace is as far to the right as its name
  std::uint32_t number = 0;
  for (const auto& line : text::split(script, '\n')) {
    ++number;
    std::string indent;
    if (end_of_function) {
      if (line.starts_with(*end_of_function + "}")) end_of_function.reset();
      continue;
    }
    if (RE2::PartialMatch(line, kFunction, &indent)) {
      auto rest = line;
      RE2::GlobalReplace(&rest, kExpansion, "");
      if (rest.find('}') == std::string::npos) end_of_function = indent;
      continue;
    }
    if (!ran.contains(number) || line.find("awk") != std::string::npos) continue;
    const auto text = expanded_by_bash(line, InnerTexts::left_out);
    std::string bare;
    std::string braced;
    for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, kUses, &bare, &braced);) {
      const auto& name = bare.empty() ? braced : bare;
      const auto place = static_cast<std::size_t>(name[0] - '0');
      if (place > given && once.insert(name).second) missing.push_back({number, name});
    }
  }
  return missing;
}

std::vector<Absent> not_opened_in(const std::string& output) {
  static const RE2 kMissing(R"((?m)^(\S+): line (\d+): (\S+): No such file or directory$)");
  std::vector<Absent> missing;
  std::string script;
  std::uint32_t line = 0;
  std::string path;
  for (re2::StringPiece rest(output); RE2::FindAndConsume(&rest, kMissing, &script, &line, &path);)
    missing.push_back({line, path, script});
  return missing;
}

Words files_printed_by(const Words& argv) {
  static const std::map<std::string, std::size_t> kFirstFile{
      {"cat", 1}, {"head", 1}, {"tail", 1}, {"sort", 1}, {"wc", 1}, {"ls", 1},
      {"cut", 1}, {"grep", 2}, {"sed", 2},  {"awk", 2},  {"jq", 2}, {"find", 1}};
  static const Options kBeforePaths{"-L", "-P", "-H"};
  const auto first = kFirstFile.find(program_name(argv[0]));
  if (first == kFirstFile.end()) return {};
  Words files;
  std::size_t words = 0;
  // `-e PROGRAM`, `-ne PROGRAM`: then the first word is a file.
  const auto is_program = [&](const std::string& word) {
    return first->second > 1 && word.size() > 1 && word[0] == '-' && word[1] != '-' && word.ends_with('e');
  };
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto& word = argv[i];
    if (is_program(word) && first->first != "awk" && first->first != "jq") {
      words = first->second;
      ++i;
      continue;
    }
    if (word.starts_with('-') && first->first == "find" && !kBeforePaths.contains(word)) break;
    if (word.starts_with('-') || word.empty() || ++words < first->second) continue;
    // Others take numbers and fields: `head -n 5`.
    if (first->first == "find" || word.find_first_of("/.") != std::string::npos) files.push_back(word);
  }
  return files;
}

void Notes::absent(const std::string& path) {
  if (std::ranges::find(recording_.not_here, path) == recording_.not_here.end())
    recording_.not_here.push_back(path);
}

void Notes::unread(std::uint32_t line, const std::string& path, bool is_sourced) {
  recording_.unread.push_back({line, path, "", found_in(path), is_sourced});
}

std::string Notes::found_in(const std::string& path) const {
  std::error_code error;
  const auto folder = folder_of(request_);
  const auto own = fs::absolute(request_.script, error).parent_path().lexically_normal();
  const auto named =
      fs::path(path).is_absolute() ? fs::path(path).lexically_relative(folder) : fs::path(path);
  const bool there = own != folder && !named.empty() && fs::exists(own / named, error);
  return there ? own.native() : "";
}

void Notes::made_up(std::uint32_t line, const ProgramStart& start, const Words& argv) {
  if (!is_piped(start)) return;
  auto words = text::shell_join(argv);
  const auto known = std::ranges::find(recording_.made_up, words, &Absent::name);
  if (known == recording_.made_up.end()) recording_.made_up.push_back({line, std::move(words)});
}

void Notes::done_here(std::uint32_t line, const Words& argv) {
  const auto known = std::ranges::find(recording_.done_here, line, &Absent::line);
  if (known == recording_.done_here.end()) recording_.done_here.push_back({line, text::shell_join(argv)});
}

void Notes::read_by(std::uint32_t line, const ProgramStart& start, const Words& argv, bool writes) {
  if (!is_piped(start) && !writes) return;
  for (const auto& file : files_printed_by(argv)) {
    const auto path = layer_.resolved(fs::path(start.folder) / file, true, start.pid);
    std::error_code error;
    // `find out`, where a program has been given `out`.
    const bool may_be_made = file.find_first_of("/.") == std::string::npos &&
                             std::ranges::any_of(recording_.commands, [&](const RecordedCommand& command) {
                               return command.fate == Fate::recorded && has(command.argv, file);
                             });
    if (path && !may_be_made && !fs::exists(layer_.map_to_read(*path), error)) unread(line, *path);
  }
}

bool Notes::has_unknown_contents(const std::string& path) const {
  std::error_code error;
  const auto where = layer_.map_to_read(path);
  if (fs::is_regular_file(where, error) &&
      is_of_given(sys::read_regular_file(where, kLargestScript).value_or("")))
    return true;
  const bool given = written_.is_given(path) || written_.is_given(path + "/");
  if (!given && !written_.is_made_by_job(path)) return false;
  return !fs::exists(where, error) || fs::is_empty(where, error);
}

bool Notes::may_be_written(const std::string& path, const std::string& folder) const {
  const auto relative = fs::path(path).lexically_relative(folder).native();
  return std::ranges::any_of(recording_.commands, [&](const RecordedCommand& command) {
    return command.fate == Fate::recorded &&
           std::any_of(command.argv.begin() + 1, command.argv.end(), [&](const std::string& word) {
             return names_path(word, path, false) ||
                    (!relative.empty() && relative != "." && names_path(word, relative, false));
           });
  });
}

void Notes::guess(std::uint32_t line, const ProgramStart& start, const Words& argv, const Words& writer) {
  const auto name = program_name(argv[0]);
  const bool silent = start.file(STDOUT_FILENO) == "/dev/null";
  if (only_asks(start) && !writer.empty() && tells_of_machine(program_name(writer[0])))
    return add_guess(line, text::shell_join(writer) + " | " + text::shell_join(argv));
  const bool compares = name == "cmp" || name == "diff";
  if (!only_asks(start) && !compares && !(name == "ls" && silent)) return;
  auto operands = rest(argv, 1);
  std::erase_if(operands, [](const auto& word) { return word.starts_with('-') || word.empty(); });
  if (name.ends_with("grep") && !operands.empty()) operands.erase(operands.begin());
  for (const auto& operand : operands) {
    const auto path = layer_.resolved(fs::path(start.folder) / operand, true, start.pid);
    std::error_code error;
    if (!path) continue;
    const bool gone = !fs::exists(layer_.map_to_read(*path), error);
    if (gone || is_finished_output(*path)) return add_guess(line, text::shell_join(argv));
  }
}

void Notes::add_guess(std::uint32_t line, std::string command) {
  if (std::ranges::find(recording_.guessed, command, &Absent::name) == recording_.guessed.end())
    recording_.guessed.push_back({line, std::move(command)});
}

bool Notes::is_finished_output(const std::string& path) const {
  bool found = written_.is_finished_by_tee(path);
  for (std::size_t i = 0; i < recording_.commands.size(); ++i) {
    const auto& command = recording_.commands[i];
    const bool writes =
        std::ranges::any_of(command.files, [&](const auto& one) { return one.second == path; });
    if (command.fate != Fate::recorded || !writes) continue;
    const auto by = is_finishing_ ? command.waited.by : places_.waited(i).by;
    const bool waited_for = std::ranges::any_of(by, [](const auto& one) { return !one.kills; });
    if (command.background && !waited_for) return false;
    found = true;
  }
  return found;
}

void Notes::contents(std::uint32_t line, const ProgramStart& start, const Words& argv, bool writes) {
  static const Options kReaders{"cat", "head", "tail", "sort",  "wc",   "cut",   "grep",   "egrep",
                                "sed", "awk",  "gawk", "jq",    "tac",  "uniq",  "split",  "shuf",
                                "tr",  "join", "comm", "paste", "fold", "rev",   "base64", "md5sum",
                                "od",  "nl",   "dd",   "diff",  "cmp",  "tsort", "column", "sha256sum",
                                "ls",  "find", "du",   "stat"};
  const auto name = program_name(argv[0]);
  const bool piped = is_piped(start);
  // `sed -i`, `sort -o FILE`, `split`: they write files themselves.
  const bool in_place =
      name == "split" || std::ranges::any_of(argv, [&](const auto& word) {
        return (name == "sed" && (word.starts_with("-i") || word.starts_with("--in-place"))) ||
               (name == "sort" && (word.starts_with("-o") || word.starts_with("--output")));
      });
  // The script also reads grep's exit code.
  if (!kReaders.contains(name) || (!piped && !writes && !in_place && !name.ends_with("grep"))) return;
  std::vector<std::string> paths;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto path = argv[i].starts_with('-') || argv[i].empty()
                          ? std::unexpected(0)
                          : layer_.resolved(fs::path(start.folder) / argv[i], true, start.pid);
    if (path) paths.push_back(path->native());
    // `ls DIR/`
    if (path && paths.back().size() > 1 && paths.back().ends_with('/')) paths.back().pop_back();
  }
  if (const auto in = start.files.find(STDIN_FILENO); in != start.files.end()) paths.push_back(in->second);
  // `ls out | wc -l` behind `python train.py --out out`, which did not run.
  static const Options kLists{"ls", "find", "du"};
  std::error_code error;
  const auto is_not_here = [&](const auto& path) {
    return path.starts_with('/') && !fs::exists(layer_.map_to_read(path), error);
  };
  if (piped && kLists.contains(name) && std::ranges::any_of(paths, [&](const auto& path) {
        return may_be_written(path, start.folder) || is_not_here(path);
      }))
    made_up(line, start, argv);
  for (auto& path : paths)
    if (has_unknown_contents(path))
      reading_.push_back({{line, std::move(path)}, piped && !in_place ? start.files.at(STDOUT_FILENO) : ""});
}

void Notes::finish(const std::string& output, const std::vector<std::string>& environment,
                   const std::function<bool(const std::string& pipe)>& is_read) {
  is_finishing_ = true;
  std::error_code error;
  const auto own = fs::absolute(request_.script, error).lexically_normal().native();
  for (auto& one : not_opened_in(output)) {
    if (one.script == own || one.script.find('/') == std::string::npos) one.script.clear();
    const auto name = fs::path(one.name).lexically_normal().native();  // ./logs/a.log
    const bool writes = std::ranges::any_of(
        no_folder_, [&](const auto& path) { return path == name || path.ends_with("/" + name); });
    if (writes)
      recording_.no_folder.push_back(one);
    else
      unread(one.line, one.name);
  }
  for (auto& [one, pipe] : reading_)
    if (pipe.empty() || is_read(pipe)) recording_.contents.push_back(std::move(one));
  const auto script = sys::read_regular_file(request_.script, kLargestScript).value_or("");
  recording_.placeholders = placeholders_in(script);
  finish_contents(script);
  finish_sourced();
  finish_unset(script, environment);
  finish_written();
  finish_tests();
}

/// `[ -s FILE ]` of what a program has printed into the file: it is empty here.
void Notes::finish_tests() {
  for (const auto& one : recording_.traced) {
    const auto words = words_of(one.text);
    const auto test = std::ranges::find(words, "-s");
    if (words.empty() || (words[0] != "[" && words[0] != "[[" && words[0] != "test") || test == words.end() ||
        test + 1 == words.end() ||
        std::ranges::find(recording_.waited_for, one.line, &AwaitedFile::line) != recording_.waited_for.end())
      continue;
    const auto tells = [&](const RecordedCommand& command) {
      return is_finished_output((fs::path(command.folder) / *(test + 1)).lexically_normal());
    };
    if (std::ranges::any_of(recording_.commands, tells)) add_guess(one.line, one.text);
  }
}

/// `read X < FILE`, `done < FILE`, found in the text since no program starts.
void Notes::finish_contents(const std::string& script) {
  static const RE2 kReads(
      R"((?:\b(?:read|mapfile|readarray|done)\b[^#]*[^<]|\$\(\s*)<\s*"?([^\s"<>;&|()]+))");
  static const RE2 kVariable(R"(\$\{?(\w+)\}?)");
  std::uint32_t number = 0;
  for (const auto& line : text::split(script, '\n')) {
    ++number;
    std::string path;
    if (!RE2::PartialMatch(line, kReads, &path)) continue;
    std::string name;
    constexpr int kMost = 10;
    for (int i = 0; i < kMost && RE2::PartialMatch(path, kVariable, &name); ++i) {
      std::string value;
      for (const auto& one : recording_.assignments)
        if (one.name == name) value = one.value;
      std::erase(value, '\\');
      RE2::Replace(&path, kVariable, value);
    }
    path = (fs::path(folder_of(request_)) / path).lexically_normal();
    if (has_unknown_contents(path)) recording_.contents.push_back({number, path});
  }
}

/// `source FILE` of a file that only appears to exist: what it sets is unknown.
void Notes::finish_sourced() {
  std::error_code error;
  const auto own = fs::absolute(request_.script, error).native();
  for (const auto& one : recording_.traced) {
    const auto words = words_of(one.text);
    if (words.size() < 2 || (words[0] != "source" && words[0] != ".")) continue;
    const auto named = fs::path(words[1]).lexically_normal().native();
    const auto& given = written_.all_given();
    const auto found = std::ranges::find_if(
        given, [&](const auto& path) { return path == named || path.ends_with("/" + named); });
    if (found == given.end() || !has_unknown_contents(*found) ||
        std::ranges::find(recording_.sourced, *found, &Absent::name) != recording_.sourced.end())
      continue;
    recording_.sourced.push_back({one.script == own ? one.line : 0, *found});
  }
}

/// As bash names it: `source ./env.sh`.
std::string Notes::text_of(const std::string& script) const {
  const auto path = (fs::path(folder_of(request_)) / script).lexically_normal();
  return sys::read_regular_file(layer_.map_to_read(path), kLargestScript).value_or("");
}

void Notes::finish_unset(const std::string& script, const std::vector<std::string>& environment) {
  auto texts = script;
  std::set<std::string> known;
  std::set<std::string> scripts;
  constexpr std::size_t kMostScripts = 20;
  for (const auto& one : recording_.assignments) {
    known.insert(one.name);
    if (scripts.size() < kMostScripts) scripts.insert(one.script);
  }
  for (const auto& one : recording_.traced)
    if (scripts.size() < kMostScripts) scripts.insert(one.script);
  scripts.erase("");
  for (const auto& file : scripts) texts += "\n" + text_of(file);
  for (const auto& entry : environment) known.insert(entry.substr(0, entry.find('=')));
  for (const auto& entry : request_.variables) known.insert(entry.substr(0, entry.find('=')));
  std::set<std::uint32_t> ran;
  for (const auto& one : recording_.traced)
    if (one.line_of_text == 0 && program_name(one.script) == program_name(request_.script))
      ran.insert(one.line);
  recording_.missing_arguments = missing_arguments_in(script, request_.arguments.size(), ran);
  // `eval "$(python plan.py --emit env)"` sets what the program prints.
  const auto lines = text::split(script, '\n');
  static const RE2 kEval(R"re((?:^|[;&|({]|\bthen|\bdo|\belse)\s*eval\s)re");
  const bool evaluates = std::ranges::any_of(recording_.commands, [&](const RecordedCommand& command) {
    return command.fate == Fate::recorded && command.output_is_read && command.line > 0 &&
           command.line <= lines.size() && RE2::PartialMatch(lines[command.line - 1], kEval);
  });
  if (evaluates) return;
  recording_.unset = unset_in(script, texts, known);
  for (const auto& one : recording_.unset) known.insert(one.name);
  // For scripts that it sources or starts, only what they reached.
  std::error_code error;
  scripts.erase(fs::absolute(request_.script, error).native());
  for (const auto& file : scripts) {
    if (file.starts_with("/usr/") || file.starts_with("/bin/")) continue;
    for (auto& one : unset_in(text_of(file), texts, known)) {
      const bool has_run = std::ranges::any_of(recording_.traced, [&](const auto& command) {
        return command.line == one.line && command.script == file;
      });
      if (!has_run || !known.insert(one.name).second) continue;
      one.script = file;
      recording_.unset.push_back(std::move(one));
    }
  }
}

void Notes::finish_written() {
  for (const auto& file : written_.files()) {
    if (file.text == "") continue;  // a log, or a marker file
    const bool told = std::ranges::any_of(recording_.commands, [&](const auto& command) {
      return std::ranges::find(command.given, file.path, &WrittenFile::path) != command.given.end();
    });
    if (!told) recording_.written.push_back(file.path);
  }
}

}  // namespace nlaunch::shell
