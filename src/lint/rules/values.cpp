#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/registry.h"
#include "base/text.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/values.h"

/// Values that their readers do not accept, or read as something else.
namespace nlaunch::lint {
namespace {

/// The effect of a value that its owner does not know, if the table's `choice` alone does not tell.
struct Consequence {
  std::string_view name;
  std::string_view what;
};
constexpr std::array<Consequence, 10> kConsequences{{
    {"NCCL_DEBUG", "NCCL then prints nothing at all, not even warnings, and failures have no message"},
    {"NCCL_P2P_LEVEL", "NCCL silently ignores it (the names are case-sensitive)"},
    {"NCCL_NET_GDR_LEVEL", "NCCL silently ignores it (the names are case-sensitive)"},
    {"FI_CXI_RX_MATCH_MODE", "cxi warns in its own log and uses hardware"},
    {"NCCL_LAUNCH_MODE", "anything but GROUP means PARALLEL"},
    {"NCCL_DEBUG_SUBSYS", "an unknown name is silently dropped"},
    {"GLOO_LOG_LEVEL", "any other word is treated as ERROR"},
    {"TORCH_CPP_LOG_LEVEL", "PyTorch prints a warning to stderr and uses the default"},
    {"TORCH_DISTRIBUTED_DEBUG",
     "PyTorch aborts the program at startup: \"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or "
     "DETAIL.\""},
    {"TORCH_SYMMMEM", "PyTorch rejects it, and the program exits, when symmetric memory is first used"},
}};

std::string consequence(const Variable& variable) {
  for (const auto& one : kConsequences) {
    if (one.name == variable.name) return std::string(one.what);
  }
  if (variable.owner == "vLLM") return "vLLM rejects it: the engine exits with a ValueError at startup";
  return fmt::format("{} does not accept it: most likely it silently uses its default", variable.owner);
}

std::string instead_of(const Setting& setting, const Variable& variable) {
  if (setting.name == "NCCL_DEBUG") return "NCCL_DEBUG=WARN";
  std::vector<std::string> words;
  for (const auto& one : variable.values) words.emplace_back(one.value);
  const auto lower = text::lower(*setting.value);
  const auto begun = std::ranges::find_if(words, [&](const std::string& word) {  // "soft" for software
    return lower.size() > 2 && text::lower(word).starts_with(lower);
  });
  const auto near = begun != words.end() ? std::optional(*begun) : text::nearest(*setting.value, words);
  return near ? fmt::format("{}={}", setting.name, *near)
              : fmt::format("use one of these; for details: nlaunch env --doc {}", setting.name);
}

/// True for owners that parse integers like C and silently misread some.
bool reads_as_c(std::string_view owner) {
  return owner == "NCCL" || owner == "libfabric";
}

std::string owner_source(const Variable& variable) {
  return fmt::format("{}: {}", variable.owner, variable.source);
}

/// PyTorch has several ways to read its variables: the source file tells which.
enum class TorchReader {
  none,    ///< not PyTorch's
  cvar,    ///< c10d's getCvarBool and getCvarInt (Utils.hpp): words for yes and no, std::stoi
  native,  ///< the rest of its C++: check_env (c10/util/env.h) for booleans, strtol or std::stoi
  python,  ///< int(), or a comparison with "1"
};

TorchReader torch_reader(const Variable& variable) {
  if (variable.owner != "PyTorch") return TorchReader::none;
  const std::string_view source = variable.source;
  if (source.find(".py") != std::string_view::npos) return TorchReader::python;
  const bool c10d = source.starts_with("torch/csrc/distributed/c10d/");
  return c10d && source.find("NCCLUtils") == std::string_view::npos ? TorchReader::cvar : TorchReader::native;
}

/// The words that an owner accepts as booleans, each surrounded by spaces, and the effect of any other word.
struct BooleanWords {
  std::string_view words;
  std::string_view otherwise;
};

std::optional<BooleanWords> boolean_words(const Variable& variable) {
  constexpr std::string_view kEnds = "it aborts the program at startup";
  constexpr std::string_view kLibfabric = " 0 1 true false yes no on off ";
  constexpr std::string_view kCvar = " 0 1 y n yes no t f true false ";
  if (variable.owner == "libfabric")
    return BooleanWords{kLibfabric, "libfabric warns in its own log and uses the default"};
  if (variable.owner == "aws-ofi-nccl") return BooleanWords{" 0 1 true false ", kEnds};
  switch (torch_reader(variable)) {
    case TorchReader::cvar:
      return BooleanWords{kCvar, kEnds};
    case TorchReader::native:
      return BooleanWords{" 0 1 ", "PyTorch ignores it, at best with a warning"};
    case TorchReader::python:
      return BooleanWords{kCvar, "PyTorch compares it with 1: what other words mean depends on the release"};
    case TorchReader::none:
      return std::nullopt;
  }
  return std::nullopt;
}

void check_boolean(const Setting& setting, const Variable& variable, Report& report) {
  const auto taken = boolean_words(variable);
  const auto word = fmt::format(" {} ", text::lower(*setting.value));
  if (!taken || taken->words.find(word) != std::string_view::npos) return;
  report.error(setting.span,
               {fmt::format("{}={} is not a boolean for {}", setting.name, *setting.value, variable.owner),
                std::string(taken->otherwise), fmt::format("{}=1 or {}=0", setting.name, setting.name),
                owner_source(variable)});
}

/// "a plain number of seconds", if the name contains the unit.
std::string plain_number(std::string_view name) {
  if (name.ends_with("_SEC")) return "a plain number of seconds";
  if (name.ends_with("_MILSEC")) return "a plain number of milliseconds";
  return "a plain number";
}

/// c10d reads the leading digits (std::stoi), and rejects a text that does not start with one.
void check_torch_number(const Setting& setting, const Variable& variable, Report& report) {
  const auto& value = *setting.value;
  const auto read = read_decimal(value);
  if (read.whole) return;
  const auto reader = torch_reader(variable);
  if (read.digits && reader != TorchReader::python) {
    report.error(setting.span, {fmt::format("{}={} is not a plain number: PyTorch reads {}", setting.name,
                                            value, read.value),
                                "PyTorch reads the leading digits and silently ignores the rest",
                                plain_number(setting.name), owner_source(variable)});
    return;
  }
  report.error(setting.span,
               {fmt::format("{}={} is not a number for PyTorch", setting.name, value),
                reader == TorchReader::native
                    ? "PyTorch reads 0 or rejects it, depending on the release"
                    : "PyTorch rejects it, and the program exits when process groups are created, or earlier",
                plain_number(setting.name), owner_source(variable)});
}

void check_c_number(const Setting& setting, const Variable& variable, Report& report) {
  const auto& value = *setting.value;
  const auto read = read_number(value);
  if (!read.whole) {
    report.error(
        setting.span,
        {fmt::format("{}={} is not a number: {} reads {}", setting.name, value, variable.owner, read.value),
         fmt::format("{} silently reads the leading digits, or 0 if there are none", variable.owner),
         is_word(value, {"true", "yes", "on"})    ? setting.name + "=1"
         : is_word(value, {"false", "no", "off"}) ? setting.name + "=0"
                                                  : "a plain number",
         owner_source(variable)});
  } else if (read.octal && read.value != 0) {
    report.warning(
        setting.span,
        {fmt::format("{}={} is octal: {} reads {}", setting.name, value, variable.owner, read.value),
         "a leading 0 makes the number octal", "remove the leading 0", owner_source(variable)});
  }
}

bool is_in_quotes(const std::string& value) {
  return value.size() > 1 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front();
}

const Variable* known_variable(const Setting& setting) {
  // Quotes inside a value have their own rule.
  if (setting.unset || !setting.value || setting.value->empty() || is_in_quotes(*setting.value))
    return nullptr;
  const auto all = find_variables(setting.name);
  return all.empty() ? nullptr : all.front();
}

void check_number(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    const auto* variable = known_variable(setting);
    if (variable == nullptr) return;
    const bool boolean = variable->type == ValueType::boolean;
    if (boolean && variable->owner != "NCCL") {
      check_boolean(setting, *variable, report);
    } else if ((boolean || variable->type == ValueType::integer) && reads_as_c(variable->owner)) {
      check_c_number(setting, *variable, report);
    } else if (variable->type == ValueType::integer && variable->owner == "PyTorch") {
      check_torch_number(setting, *variable, report);
    }
  });
}

const Registered<Rule> not_a_number_rule{{
    .order = 60,
    .name = "not-a-number",
    .title = "a value that is read as a different number than it looks",
    .explain =
        "NCCL reads numbers with strtoll in base 0 and checks nothing: true is 0, 1M is 1, 010 is 8. "
        "libfabric does the same. PyTorch's process groups read the leading digits (std::stoi: 10m is 10) "
        "and reject a value that does not start with a digit; as booleans they accept 1, y, yes, t, "
        "true and their opposites in any case, and reject the rest. aws-ofi-nccl rejects both at program "
        "startup.",
    .source = "NCCL src/misc/param.cc (ncclLoadParam); libfabric src/var.c; PyTorch "
              "torch/csrc/distributed/c10d/Utils.hpp (getCvarInt, getCvarBool)",
    .check = check_number,
}};

void check_choice(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    const auto* variable = known_variable(setting);
    if (variable == nullptr || variable->values.empty()) return;
    const auto* release = environment.release(variable->owner);
    std::vector<std::string> words;
    if (variable->type == ValueType::choice) words = {*setting.value};
    if (variable->type == ValueType::list && setting.name != "NCCL_ALGO" && setting.name != "NCCL_PROTO") {
      words = read_list(*setting.value).words;
    }
    for (const auto& word : words) {
      const auto* value = find_value(*variable, word);
      if (value == nullptr) {
        report.error(setting.span,
                     {fmt::format("{} does not know '{}': it accepts {}", setting.name, word,
                                  shown_values(*variable, release)),
                      consequence(*variable), instead_of(setting, *variable), owner_source(*variable)});
      } else if (release != nullptr && value->since && *release < *value->since) {
        report.error(setting.span,
                     {fmt::format("{} {} does not know {}={} yet", variable->owner, release->str(),
                                  setting.name, word),
                      fmt::format("added in {}; {}", value->since->str(), consequence(*variable)),
                      fmt::format("one of {}", shown_values(*variable, release)), owner_source(*variable)});
      }
    }
  });
}

const Registered<Rule> unknown_value_rule{{
    .order = 70,
    .name = "unknown-value",
    .title = "a value that its reader does not know",
    .explain = "Levels, modes and names are compared with a list, sometimes case-sensitively. Values not on "
               "the list are silently dropped, or turn off more than intended. vLLM, and PyTorch for "
               "TORCH_DISTRIBUTED_DEBUG, reject them at startup.",
    .source = "the catalogue of variables: nlaunch env --doc NAME",
    .check = check_choice,
}};

void check_range(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    const auto* variable = known_variable(setting);
    if (variable == nullptr || variable->type != ValueType::integer || variable->values.size() != 1) return;
    const auto& range = variable->values.front().value;
    const auto dots = range.find("..");
    const auto read = read_number(*setting.value);
    if (dots == std::string::npos || !read.whole) return;
    const auto low = read_number(range.substr(0, dots));
    const auto high = read_number(range.substr(dots + 2));
    const bool below = low.whole && read.value < low.value;
    const bool above = high.whole && read.value > high.value;
    if (!below && !above) return;
    report.error(setting.span,
                 {fmt::format("{}={} is outside the range {} to {}", setting.name, *setting.value, low.value,
                              high.whole ? fmt::format("{}", high.value) : "any"),
                  variable->owner == "libfabric"
                      ? "it is ignored: the default is used, with a warning in the library's own log"
                      : "it is not checked here; the layer that receives it rejects or truncates it",
                  "use a number in this range", owner_source(*variable)});
  });
}

const Registered<Rule> out_of_range_rule{{
    .order = 80,
    .name = "out-of-range",
    .title = "a number that its reader does not accept",
    .explain = "An out-of-range number is replaced by the default. cxi, for example, warns only in its own "
               "log.",
    .source = "the catalogue of variables: nlaunch env --doc NAME",
    .check = check_range,
}};

void check_algorithms(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    if (setting.name != "NCCL_ALGO" && setting.name != "NCCL_PROTO") return;
    const auto* variable = known_variable(setting);
    if (variable == nullptr) return;
    const auto* release = environment.release("NCCL");
    const Version per_function{{2, 24, 3}};
    const bool old = release != nullptr && *release < per_function;
    const bool single = setting.value->find_first_of(";:") != std::string::npos;
    if (old && single) {
      report.error(setting.span,
                   {fmt::format("NCCL {} does not support per-function lists", release->str()),
                    "it treats the text as the name of an unknown algorithm, and so turns all of "
                    "them off",
                    "use a plain list, or NCCL 2.24.3 or newer", owner_source(*variable)});
      return;
    }
    for (const auto& entry : text::split(*setting.value, ';')) {
      const auto list = read_list(std::string_view(entry).substr(entry.find(':') + 1));
      for (const auto& word : list.words) {
        if (find_value(*variable, word) != nullptr) continue;
        report.error(
            setting.span,
            {fmt::format("{} does not know '{}': it accepts {}", setting.name, word,
                         shown_values(*variable, release)),
             old ? std::string("before 2.24 an unknown name turns off everything that is not named correctly")
                 : std::string("from 2.24 NCCL refuses to create a communicator; earlier releases "
                               "turned off everything that was not named correctly"),
             fmt::format("one of {}", shown_values(*variable, release)), owner_source(*variable)});
      }
    }
  });
}

const Registered<Rule> unknown_algorithm_rule{{
    .order = 90,
    .name = "unknown-algorithm",
    .title = "a name in NCCL_ALGO or NCCL_PROTO that NCCL does not know",
    .explain = "Before 2.24 an unknown name was skipped, and since a list first turns everything off, a "
               "single typo left nothing. From 2.24 it is an error when the communicator is created. "
               "Per-function lists (allreduce:ring) also came with 2.24.",
    .source = "NCCL src/graph/tuning.cc (parseList), 2.23.4 and 2.24.3",
    .check = check_algorithms,
}};

/// A collective, and the algorithms that NCCL has for it.
struct Collective {
  std::string_view name;
  std::string_view algorithms;  ///< surrounded by spaces
};
constexpr std::array<Collective, 5> kCollectives{{
    {"allreduce", " tree ring collnetdirect collnetchain nvls nvlstree "},
    {"allgather", " ring collnetdirect nvls pat "},
    {"reducescatter", " ring collnetdirect nvls pat "},
    {"broadcast", " ring "},
    {"reduce", " ring "},
}};

/// The collectives for which a value of NCCL_ALGO leaves no algorithm.
std::vector<std::string> collectives_without_algorithm(const std::string& value) {
  std::vector<std::string> none;
  for (const auto& collective : kCollectives) {
    std::optional<WordList> list;
    for (const auto& entry : text::split(value, ';')) {
      const auto colon = entry.find(':');
      const bool fits = colon == std::string::npos || text::lower(entry.substr(0, colon)) == collective.name;
      if (fits) list = read_list(std::string_view(entry).substr(colon == std::string::npos ? 0 : colon + 1));
    }
    if (!list) continue;
    const auto left =
        std::ranges::any_of(text::split(text::trim(collective.algorithms), ' '), [&](const std::string& one) {
          const bool named = std::ranges::any_of(
              list->words, [&](const std::string& word) { return text::lower(word) == one; });
          return named != list->inverted;
        });
    if (!left) none.emplace_back(collective.name);
  }
  return none;
}

void check_algorithm_missing(const LintInput& input, Report& report) {
  const Version refuses{{2, 24, 3}};
  each_value(
      input, report, "NCCL_ALGO",
      [&](const Environment& environment, const Setting& setting, const std::string& value) {
        const auto* release = environment.release("NCCL");
        if (value.empty() || (release != nullptr && *release < refuses)) return;
        for (const auto& entry : text::split(value, ';')) {  // another rule reports unknown names
          for (const auto& word : read_list(std::string_view(entry).substr(entry.find(':') + 1)).words) {
            const auto* variable = known_variable(setting);
            if (variable == nullptr || find_value(*variable, word) == nullptr) return;
          }
        }
        const auto none = collectives_without_algorithm(value);
        if (none.empty()) return;
        Report::Saying saying{
            fmt::format("NCCL_ALGO={} leaves no algorithm for {}", value, text::join(none, ", ")),
            "from 2.24 NCCL rejects such a collective (\"No algorithm/protocol available for "
            "function\"); earlier releases kept Ring for all but all-reduces",
            value.find_first_of(";:^") == std::string::npos
                ? fmt::format("NCCL_ALGO=\"allreduce:{}\", or leave it out", value)
                : "add Ring to the list of each of them, or leave it out",
            ""};
        if (release != nullptr) {
          report.error(setting.span, std::move(saying));
        } else {
          report.warning(setting.span, std::move(saying));
        }
      });
}

const Registered<Rule> algorithm_missing_rule{{
    .order = 95,
    .name = "algorithm-missing",
    .title = "NCCL_ALGO names no algorithm that a collective has",
    .explain =
        "All-reduces have Tree, Ring, CollNetDirect, CollNetChain, NVLS and NVLSTree; all-gathers and "
        "reduce-scatters have Ring, CollNetDirect, NVLS and PAT; broadcasts and reduces have only Ring. A "
        "list without a prefix applies to all of them. Up to 2.23 NCCL kept Ring for collectives that "
        "the list left without an algorithm; from 2.24 it rejects the call.",
    .source = "NCCL src/graph/tuning.cc, src/enqueue.cc@2.30.7",
    .check = check_algorithm_missing,
}};

void check_literal_quotes(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (setting.unset || !setting.value || !is_in_quotes(*setting.value) ||
        find_variables(setting.name).empty())
      return;
    const auto& value = *setting.value;
    report.error(setting.span, {fmt::format("the quotes are part of the value: {}={}", setting.name, value),
                                "a shell removes one pair of quotes, Docker's --env-file none: the program "
                                "reads the rest as characters",
                                fmt::format("{}={}", setting.name, value.substr(1, value.size() - 2)), ""});
  });
}

const Registered<Rule> literal_quotes_rule{{
    .order = 102,
    .name = "literal-quotes",
    .title = "a value with quotes that are never removed",
    .explain =
        "export NAME=\"'value'\" passes the inner quotes on. So does a file for docker run --env-file, "
        "whose lines are used verbatim.",
    .source = "bash(1), QUOTING; Docker docs, docker run --env-file",
    .check = check_literal_quotes,
}};

/// major.minor.stepping, as libhsakmt reads it.
bool is_gfx_version(const std::string& value) {
  const auto parts = text::split(value, '.');
  constexpr std::array<unsigned, 3> kMost{63, 255, 255};
  if (parts.size() != kMost.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = text::whole_number<unsigned>(parts[i]);
    if (!number || *number > kMost[i]) return false;
  }
  return true;
}

/// "9.0.10" for gfx90a: the last two digits of the name are hexadecimal; empty for another text.
std::string version_of_gfx(const std::string& name) {
  static const RE2 kName("gfx(\\d{1,2})([0-9a-f])([0-9a-f])(?::.*)?");
  std::string major, minor, stepping;
  if (!RE2::FullMatch(name, kName, &major, &minor, &stepping)) return {};
  constexpr int kHex = 16;
  return fmt::format("{}.{}.{}", major, std::stoi(minor, nullptr, kHex), std::stoi(stepping, nullptr, kHex));
}

/// Kernels that are built for one architecture do not run on a GPU that claims to be another one.
void check_gfx_fits(const Environment& environment, const Setting& setting, const std::string& version,
                    Report& report) {
  auto list = environment.value("PYTORCH_ROCM_ARCH").value_or("");
  std::ranges::replace(list, ',', ';');
  std::ranges::replace(list, ' ', ';');
  std::string first;
  for (const auto& name : text::split(list, ';')) {
    if (name.empty()) continue;
    const auto of_name = version_of_gfx(name);
    if (of_name.empty() || of_name == version) return;
    if (first.empty()) first = name;
  }
  if (first.empty()) return;
  report.warning(
      setting.span,
      {fmt::format("HSA_OVERRIDE_GFX_VERSION={} is not {}, for which PYTORCH_ROCM_ARCH builds", version,
                   first),
       fmt::format("{} is {}: what is built for it does not run on a GPU that claims to be another", first,
                   version_of_gfx(first)),
       fmt::format("HSA_OVERRIDE_GFX_VERSION={}, or leave it out", version_of_gfx(first)), ""});
}

void check_gfx_version(const LintInput& input, Report& report) {
  each_value(input, report, "HSA_OVERRIDE_GFX_VERSION",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               if (is_gfx_version(value)) check_gfx_fits(environment, setting, value, report);
               if (value.empty() || is_gfx_version(value)) return;
               report.error(
                   setting.span,
                   {fmt::format("HSA_OVERRIDE_GFX_VERSION={} is not major.minor.stepping", value),
                    "ROCm's runtime rejects it as invalid and finds no GPU",
                    "use three numbers: 9.4.2 for gfx942, 9.0.10 for gfx90a, 10.3.0 for gfx1030", ""});
             });
}

const Registered<Rule> gfx_version_rule{{
    .order = 104,
    .name = "gfx-version",
    .title = "HSA_OVERRIDE_GFX_VERSION that is not a version",
    .explain =
        "It must be three decimal numbers separated by dots: up to 63, 255 and 255. gfx90a is 9.0.10, since "
        "that name writes the stepping in hexadecimal.",
    .source = "ROCR-Runtime libhsakmt/src/topology.c",
    .check = check_gfx_version,
}};

void check_random_port(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kPort(R"re((?i)^\s*(?:export\s+)?(\w*port\w*)=["']?\$\{?RANDOM\}?["']?\s*(?:$|[;#]))re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string name;
    if (!RE2::PartialMatch(lines.line(number), kPort, &name)) continue;
    return report.warning(lines.whole(number),
                          {fmt::format("{} may be below 1024: $RANDOM is between 0 and 32767", name),
                           "users cannot listen there: one of 32 jobs fails with \"Permission denied\"",
                           fmt::format("{}=$((20000 + RANDOM % 10000))", name), ""});
  }
}

const Registered<Rule> random_port_rule{{
    .order = 297,
    .name = "random-port",
    .title = "a random port that may be a privileged one",
    .explain = "Only root can listen on ports below 1024 (net.ipv4.ip_unprivileged_port_start).",
    .source = "bash(1), RANDOM; ip(7)",
    .check = check_random_port,
}};

}  // namespace
}  // namespace nlaunch::lint
