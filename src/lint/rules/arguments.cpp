#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Arguments of programs that these refuse, or take for something else.
namespace nlaunch::lint {
namespace {

/// Calls `look` with the first program of each line.
template <class Look>
void each_program(const LintInput& input, const Look& look) {
  if (input.script) each_line(*input.script, [&](const Program& program, const auto&) { look(program); });
}

void check_without_m(const LintInput& input, Report& report) {
  static const RE2 kModule(R"re([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)re");
  static const RE2 kFile(R"re(.*\.(?:py[a-z0-9]?|pex|egg|zip|so|sh|txt|ya?ml|json))re");
  static const RE2 kPython(R"re(python[0-9.]*)re");
  each_program(input, [&](const Program& program) {
    if (!RE2::FullMatch(shell::program_name(program.words[0]), kPython)) return;
    std::size_t at = 1;
    while (at < program.words.size() && program.words[at].starts_with('-')) {
      const auto& option = program.words[at];
      if (option.starts_with("-m") || option.starts_with("-c") || option == "-") return;
      at += option == "-W" || option == "-X" ? 2 : 1;
    }
    if (at >= program.words.size()) return;
    const auto& word = program.words[at];
    if (!RE2::FullMatch(word, kModule) || RE2::FullMatch(word, kFile)) return;
    report.error(program.span, {fmt::format("python gets {} as the name of a file", text::printable(word)),
                                "it looks like a module, which python finds only with -m",
                                fmt::format("python -m {}", text::printable(word)), ""});
  });
}

const Registered<Rule> without_m_rule{{
    .order = 540,
    .name = "without-m",
    .title = "a module of Python that is started without -m",
    .explain = "`python a.b.c` opens a file with that name. `python -m a.b.c` runs the module.",
    .source = "Python documentation, Command line and environment",
    .check = check_without_m,
}};

void check_wrong_case(const LintInput& input, Report& report) {
  static const shell::Options kPrograms{
      "torchrun", "python", "python3", "accelerate", "deepspeed", "ray",         "srun",           "sbatch",
      "scontrol", "mpirun", "vllm",    "nvidia-smi", "apptainer", "singularity", "docker",         "bash",
      "conda",    "rsync",  "echo",    "sleep",      "curl",      "export",      "huggingface-cli"};
  each_program(input, [&](const Program& program) {
    const auto& name = program.words[0];
    const auto lower = text::lower(name);
    if (name == lower || !kPrograms.contains(lower)) return;
    report.error(program.span,
                 {fmt::format("{} is no command", text::printable(name)),
                  "the names of commands are case-sensitive: bash does not find it", lower, ""});
  });
}

const Registered<Rule> wrong_case_rule{{
    .order = 541,
    .name = "wrong-case",
    .title = "a command in the wrong case",
    .explain = "TORCHRUN is not torchrun.",
    .source = "bash(1), Command Execution",
    .check = check_wrong_case,
}};

/// The option that a value belongs to: "--runtime-env-json" for the word behind it, or `NAME=` before it.
std::string option_of(const shell::Words& words, std::size_t at) {
  const auto& word = words[at];
  const auto brace = word.find('{');
  const auto equals = word.rfind('=', brace);
  if (brace > 0 && equals != std::string::npos) return word.substr(0, equals);
  return words[at - 1].starts_with('-') ? words[at - 1] : std::string();
}

/// Where JSON is broken: "line 5, column 7"; empty if it is not.
std::string place_of_error(const std::string& text) {
  try {
    [[maybe_unused]] const auto parsed = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    static const RE2 kPlace(R"re(at (line \d+, column \d+))re");
    std::string place;
    RE2::PartialMatch(error.what(), kPlace, &place);
    return place.empty() ? "its end" : place;
  }
  return {};
}

/// Where the JSON in an argument is broken, and the option that it belongs to; empty if it is not.
std::pair<std::string, std::string> broken_json_in(const shell::Words& words) {
  static const RE2 kBegins(R"re(^\{\s*"[^"]*"\s*:)re");
  static const RE2 kOfPython(R"re(:\s*(?:True|False|None)\b)re");
  static const RE2 kTakesJson(R"re((?i)json|kwargs|config|args|env|overrid|^-d$|^--data)re");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto option = option_of(words, i);
    const auto brace = words[i].find('{');
    const auto value = brace == std::string::npos ? std::string() : words[i].substr(brace);
    const bool is_json = RE2::PartialMatch(value, kBegins) && text::trim(value).ends_with('}') &&
                         RE2::PartialMatch(option, kTakesJson) && !RE2::PartialMatch(value, kOfPython);
    if (auto place = is_json ? place_of_error(value) : std::string(); !place.empty()) return {place, option};
  }
  return {};
}

void check_broken_json(const LintInput& input, Report& report) {
  if (!input.script) return;
  std::set<std::uint32_t> told;
  for (const auto& program : input.script->programs) {
    const auto [place, option] = broken_json_in(program.words);
    if (place.empty() || !told.insert(program.span.line).second) continue;
    report.error(program.span,
                 {fmt::format("the JSON of {} is broken at {}", text::printable(option), place),
                  fmt::format("{} refuses it, or what it asks does", shown_name(program)),
                  "look for a comma or a quote that is missing or too much before that place", ""});
  }
  for (const auto& file : input.script->own_files) {
    const auto content = text::trim(file.text);
    if (!file.path.ends_with(".json") || !content.starts_with('{') || content.contains("/rec/")) continue;
    const auto place = place_of_error(std::string(content));
    if (place.empty()) continue;
    report.error(file.span,
                 {fmt::format("the JSON in {} is broken at {}",
                              text::printable(shell::program_name(file.path)), place),
                  "the program that gets the file cannot parse it",
                  "look for a comma or a quote that is missing or too much before that place", ""});
  }
}

const Registered<Rule> broken_json_rule{{
    .order = 542,
    .name = "broken-json",
    .title = "an argument or a file that should be JSON",
    .explain =
        "Reported for values of options that take JSON, if they begin like a JSON object and cannot be "
        "parsed.",
    .source = "RFC 8259",
    .check = check_broken_json,
}};

/// "'" if the word opens a quote that it does not close: `'{"a":`, `--x='{"a":`.
std::string opened_quote(const std::string& word) {
  static const RE2 kOpens(R"re(^(?:-{0,2}[\w.+-]+=)?(['"]).)re");
  std::string quote;
  return RE2::PartialMatch(word, kOpens, &quote) && std::ranges::count(word, quote[0]) == 1 ? quote
                                                                                            : std::string();
}

/// How many words a text in literal quotes, or an object of JSON, became; 0: it is one.
std::size_t parts_of_text(const shell::Words& words, std::size_t at) {
  static const RE2 kObject(R"re(^(?:-{0,2}[\w.+-]+=)?\{["'][^{}]*$)re");
  auto end = opened_quote(words[at]);
  if (end.empty() && RE2::PartialMatch(words[at], kObject)) end = "}";
  if (end.empty()) return 0;
  for (auto i = at + 1; i < words.size(); ++i) {
    if (words[i].ends_with(end)) return i - at + 1;
    if (words[i].starts_with("--")) return 0;
  }
  return 0;
}

void check_parted_value(const LintInput& input, Report& report) {
  // The shell at the other end takes the quotes off.
  static const shell::Options kPassOn{"ssh", "pdsh", "clush", "echo", "printf", "tmux", "screen", "parallel"};
  each_program(input, [&](const Program& program) {
    if (kPassOn.contains(shell::program_name(program.words[0]))) return;
    for (std::size_t i = 1; i < program.words.size(); ++i) {
      const auto parts = parts_of_text(program.words, i);
      if (parts == 0) continue;
      return report.error(
          program.span,
          {fmt::format("{} gets {} in {} words", shown_name(program),
                       text::printable(program.words[i] + " …"), parts),
           "quotes within a variable do not group: bash splits its value at each blank, and passes them on",
           "an array: ARGS=(--option '{\"a\": 1}'), and \"${ARGS[@]}\"", ""});
    }
  });
}

const Registered<Rule> parted_value_rule{{
    .order = 543,
    .name = "parted-value",
    .title = "a value that bash has split at its blanks",
    .explain = "Reported if an argument begins with a quote or a brace, and a later one ends with it.",
    .source = "bash(1), Word Splitting; Quote Removal",
    .check = check_parted_value,
}};

/// Those of its parser, without the dashes.
constexpr auto kOptionsOfTorchrun = std::to_array<std::string_view>({
    "nnodes",
    "nproc-per-node",
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "rdzv-conf",
    "standalone",
    "max-restarts",
    "monitor-interval",
    "start-method",
    "event-log-handler",
    "role",
    "module",
    "no-python",
    "run-path",
    "log-dir",
    "redirects",
    "tee",
    "local-ranks-filter",
    "node-rank",
    "master-addr",
    "master-port",
    "local-addr",
    "logs-specs",
    "numa-binding",
    "signals-to-handle",
    "virtual-local-rank",
    "duplicate-stdout-filters",
    "duplicate-stderr-filters",
    "help",
    "use-env",
    "use-agent-store",
    "shutdown-timeout",
});

void check_torchrun_option(const LintInput& input, Report& report) {
  static const shell::Options kFlags{"standalone", "module", "no-python",         "run-path",
                                     "use-env",    "help",   "virtual-local-rank"};
  each_program(input, [&](const Program& program) {
    const auto launcher = launcher_of(program);
    if (!launcher || launcher->name != "torchrun" || shell::program_name(program.words[0]) != "torchrun")
      return;
    for (std::size_t i = 1; i < program.words.size() && program.words[i].starts_with('-'); ++i) {
      const auto& word = program.words[i];
      if (!word.starts_with("--")) {
        if (word != "-m" && word.size() == 2) ++i;  // -r 3, -t 3
        continue;
      }
      auto name = word.substr(2, word.find('=') - 2);
      std::ranges::replace(name, '_', '-');
      const auto* known = std::ranges::find_if(kOptionsOfTorchrun,
                                               [&](std::string_view one) { return one.starts_with(name); });
      if (known == kOptionsOfTorchrun.end())
        return report.error(program.span,
                            {fmt::format("torchrun has no option --{}", text::printable(name)),
                             "it refuses to start. Options of the training go behind its script",
                             "torchrun OPTIONS SCRIPT, and then the options of the script", ""});
      if (!word.contains('=') && !kFlags.contains(*known)) ++i;
    }
  });
}

const Registered<Rule> torchrun_option_rule{{
    .order = 544,
    .name = "torchrun-option",
    .title = "an option that torchrun does not have",
    .explain = "torchrun parses what is before the script. What is behind it belongs to the script.",
    .source = "torch/distributed/run.py, get_args_parser@2.10",
    .check = check_torchrun_option,
}};

/// Behind the text of `bash -c`: what this shell gets as $0, $1, …, but does not read.
std::string unread_by_text(const shell::Words& words) {
  static const RE2 kReads(
      R"re(\$(?:[0-9@*#]|\{[0-9@*#])|\bshift\b|\bgetopts\b|\bBASH_ARG|(?:^|[;&|\s])(?:source|\.)\s)re");
  static const shell::Options kNames{"_", "--", "bash", "sh", "dash", "-"};
  constexpr std::size_t kText = 2;  // bash -c TEXT
  for (std::size_t i = 0; i + kText + 1 < words.size(); ++i) {
    if (!shell::is_shell(words[i])) continue;
    const auto& option = words[i + 1];
    const bool gets_text = option.starts_with('-') && option.ends_with('c') && !option.starts_with("--");
    if (!gets_text || RE2::PartialMatch(words[i + kText], kReads)) return {};
    const auto& more = words[i + kText + 1];
    return kNames.contains(more) && words.size() == i + kText + 2 ? std::string() : more;
  }
  return {};
}

void check_unread_arguments(const LintInput& input, Report& report) {
  each_program(input, [&](const Program& program) {
    const auto more = unread_by_text(program.words);
    if (more.empty()) return;
    report.warning(program.span, {fmt::format("{} is behind the text of bash -c, which does not read it",
                                              text::printable(more)),
                                  "bash makes it $0 of that shell: the program in the text does not get it",
                                  "put it within the quotes", ""});
  });
}

const Registered<Rule> unread_arguments_rule{{
    .order = 545,
    .name = "unread-arguments",
    .title = "words behind the text of bash -c that nothing reads",
    .explain = "What follows the text of bash -c becomes $0, $1, … there. Reported if the text has none of "
               "these.",
    .source = "bash(1), -c",
    .check = check_unread_arguments,
}};

void check_count_as_devices(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kCount(
      R"re(\b((?:CUDA|HIP|ROCR|NVIDIA)_VISIBLE_DEVICES)=["']?\$\{?(SLURM_GPUS(?:_PER_NODE|_ON_NODE|_PER_TASK)?|GPUS(?:_PER_NODE|_PER_TASK)?|(?:NUM_?|N_?)GPUS?(?:_PER_NODE)?|GPU_COUNT|NPROC_PER_NODE)\}?["']?(?:\s|;|$))re");
  static const RE2 kOneNumber(R"re(\d+)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string devices;
    std::string count;
    if (!RE2::PartialMatch(lines.command(number), kCount, &devices, &count)) continue;
    // GPUS=0,1 is a list.
    bool is_list = count == "GPUS";
    for (const auto& environment : input.environments)
      for (const auto& setting : environment.settings)
        if (setting.name == count && setting.value)
          is_list = !RE2::FullMatch(*setting.value, kOneNumber) || *setting.value == "0";
    if (is_list) continue;
    report.error(lines.whole(number), {fmt::format("{} gets the number of GPUs, ${}", devices, count),
                                       "it takes the indices of GPUs: 4 is the fifth one alone",
                                       fmt::format("{}=$(seq -s, 0 $(({} - 1)))", devices, count), ""});
  }
}

const Registered<Rule> count_as_devices_rule{{
    .order = 546,
    .name = "count-as-devices",
    .title = "the number of GPUs where their indices are meant",
    .explain = "CUDA_VISIBLE_DEVICES=4 makes the GPU with index 4 visible, not four of them.",
    .source = "CUDA C++ Programming Guide, CUDA Environment Variables",
    .check = check_count_as_devices,
}};

void check_parallel_size(const LintInput& input, Report& report) {
  constexpr std::uint32_t kRare = 7;
  each_program(input, [&](const Program& program) {
    if (!is_engine(program)) return;
    const auto size = number_of(program, {"--tensor-parallel-size", "-tp", "--tp", "--tp-size"});
    if (!size || *size < kRare || (*size % kRare != 0 && (*size % 2 == 0 || *size % 3 == 0))) return;
    report.note(program.span,
                {fmt::format("few models can be split over {} GPUs", *size),
                 "the number of attention heads must be a multiple of the tensor-parallel size: the engine "
                 "refuses to start otherwise",
                 "4 or 8, with the other GPUs for another engine or the data-parallel size", ""});
  });
}

const Registered<Rule> parallel_size_rule{{
    .order = 547,
    .name = "parallel-size",
    .title = "a tensor-parallel size that few models permit",
    .explain = "Reported for multiples of 7, and other sizes above it that neither 2 nor 3 divides.",
    .source = "vllm/config/model.py, verify_with_parallel_config",
    .check = check_parallel_size,
}};

void check_glued_options(const LintInput& input, Report& report) {
  static const RE2 kGlued(R"re(^--[a-z][\w-]*=[^"'{\[]*[^\s"'=,/-](--[a-z][\w-]*)(?:=|$))re");
  each_program(input, [&](const Program& program) {
    std::string second;
    const auto found = std::ranges::find_if(
        program.words, [&](const auto& word) { return RE2::PartialMatch(word, kGlued, &second); });
    if (found == program.words.end() || found->contains("://")) return;
    report.error(program.span,
                 {fmt::format("{} is within the value of {}", second, found->substr(0, found->find('='))),
                  "there is no blank between the two options: the first gets a wrong value, and "
                  "the second is not given",
                  "a blank", ""});
  });
}

const Registered<Rule> glued_options_rule{{
    .order = 565,
    .name = "glued-options",
    .title = "two options without a blank between them",
    .explain = "Reported for a value with another option in it.",
    .check = check_glued_options,
}};

void check_literal_quotes_of_value(const LintInput& input, Report& report) {
  static const RE2 kQuoted(R"re((?:--?[\w-]+=)?(?:'[^']+'|"[^"]+"))re");
  each_program(input, [&](const Program& program) {
    if (shell::is_any_of(shell::program_name(program.words[0]),
                         {"ssh", "pdsh", "echo", "printf", "tmux", "screen"}) ||
        shell::is_shell(program.words[0]) || !program.span.file)
      return;
    const auto line = SourceLines(program.span.file).command(program.span.line);
    const auto found = std::find_if(program.words.begin() + 1, program.words.end(), [&](const auto& word) {
      // Not what the line itself quotes twice: "'x'".
      return RE2::FullMatch(word, kQuoted) && !line.contains(word);
    });
    if (found == program.words.end()) return;
    report.warning(program.span,
                   {fmt::format("{} gets {}, with the quotes", shown_name(program), text::printable(*found)),
                    "quotes within a variable are characters: bash takes none of them off",
                    "an array without them, and \"${ARGS[@]}\"", ""});
  });
}

const Registered<Rule> quotes_of_value_rule{{
    .order = 566,
    .name = "quotes-of-value",
    .title = "an argument with quotes that were meant for bash",
    .explain = "ARGS=\"--name 'a'\" and then $ARGS: the program gets 'a' with its quotes.",
    .source = "bash(1), Quote Removal",
    .check = check_literal_quotes_of_value,
}};

void check_device_gap(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kDevices(R"re(\b((?:CUDA|HIP|ROCR)_VISIBLE_DEVICES)=["']?(\d(?:,\d+)+))re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string name;
    std::string list;
    if (!RE2::PartialMatch(lines.line(number), kDevices, &name, &list)) continue;
    std::vector<std::uint32_t> devices;
    for (const auto& one : text::split(list, ','))
      devices.push_back(text::whole_number<std::uint32_t>(one).value_or(0));
    constexpr std::size_t kSeveral = 4;
    const auto size = static_cast<std::uint32_t>(devices.size());
    // 0 to N, with one left out: N is one too many for a node of N GPUs.
    const bool is_shifted = devices.size() >= kSeveral && std::ranges::is_sorted(devices) &&
                            devices.front() == 0 && devices.back() == size && size % 4 == 0;
    if (!is_shifted) continue;
    std::uint32_t missing = 0;
    while (devices[missing] == missing) ++missing;
    report.warning(
        lines.whole(number),
        {fmt::format("{} leaves out {}, and names {}", name, missing, devices.back()),
         fmt::format("a node with {} GPUs has none with this index: CUDA ignores it and what follows", size),
         fmt::format("0 to {}", size - 1), ""});
  }
}

const Registered<Rule> device_gap_rule{{
    .order = 576,
    .name = "device-gap",
    .title = "a list of GPUs that leaves one out and names one too many",
    .explain = "Reported for lists from 0 to N with N indices.",
    .source = "CUDA C++ Programming Guide, CUDA Environment Variables",
    .check = check_device_gap,
}};

}  // namespace
}  // namespace nlaunch::lint
