#include "shell/words.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "base/text.h"

namespace nlaunch::shell {

std::string program_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_shell(const std::string& program) {
  const auto name = program_name(program);
  return name == "bash" || name == "sh" || name == "dash";
}

bool is_of_system(const std::filesystem::path& path) {
  const auto folder = path.parent_path();
  return folder == "/usr/bin" || folder == "/bin" || folder == "/usr/local/bin";
}

bool kills_by_name(const Words& argv) {
  return is_any_of(program_name(argv.at(0)), {"pkill", "killall"});
}

bool kills(const Words& argv) {
  const auto name = program_name(argv.at(0));
  if (name == "kill") {
    const bool by_option = argv.size() > 2 && is_any_of(argv[1], {"-s", "-n"}) && argv[2] == "0";
    return !by_option && !has(argv, "-0") && !has(argv, "-l") && !has(argv, "-L");
  }
  const bool fuser = name == "fuser" && std::ranges::any_of(argv, [](const auto& word) {
                       return word == "--kill" ||
                              (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.contains('k'));
                     });
  return fuser || kills_by_name(argv);
}

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_port(const std::string& text) {
  constexpr std::uint16_t kFirst = 1024;
  return text::whole_number<std::uint16_t>(text).value_or(0) >= kFirst;
}

bool names_port(const Words& words, const std::string& port) {
  return std::ranges::any_of(words, [&](const auto& word) {
    return word == port || word.ends_with("=" + port) || word.contains(":" + port) ||
           word.ends_with("/" + port);
  });
}

bool has_port_of(const Words& words, const Words& query) {
  return std::ranges::any_of(words, [&](const auto& word) {
    const auto port = word.substr(word.find_last_of("=:") + 1);
    return is_port(port) && names_port(query, port);
  });
}

bool has(const Words& argv, std::string_view word) {
  return std::ranges::find(argv, word) != argv.end();
}

Words rest(const Words& argv, std::size_t from) {
  return from >= argv.size() ? Words() : Words(argv.begin() + static_cast<std::ptrdiff_t>(from), argv.end());
}

std::string call_of(const Words& argv) {
  const auto is_file = [](const std::string& word) { return word.ends_with(".py") || word.ends_with(".sh"); };
  auto first = std::find_if(argv.begin() + 1, argv.end(), is_file);
  if (first == argv.end())
    first = std::find_if(argv.begin() + 1, argv.end(),
                         [](const std::string& word) { return !word.starts_with('-'); });
  const auto name = program_name(argv.at(0));
  return first == argv.end() ? name : name + " " + program_name(*first);
}

std::uint64_t seconds_of_sleep(const Words& argv) {
  static const RE2 kTime(R"((\d{1,9})(?:\.\d*)?([smhd]?))");
  static const std::map<std::string, std::uint64_t> kUnits{
      {"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  std::uint64_t seconds = 0;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    std::uint64_t number = 0;
    std::string unit;
    if (RE2::FullMatch(argv[i], kTime, &number, &unit)) seconds += number * kUnits.at(unit);
  }
  return seconds;
}

bool follows_file(const Words& argv) {
  static const RE2 kFollows(R"(-(?:\d+|[qvz])*[fF].*|--follow.*)");  // -f, -fn0, -100f
  return program_name(argv[0]) == "tail" &&
         std::ranges::any_of(argv, [](const auto& word) { return RE2::FullMatch(word, kFollows); });
}

bool waits_forever(const Words& argv) {
  const auto name = program_name(argv[0]);
  if (name == "sleep") return has(argv, "infinity") || has(argv, "inf");
  const bool ends = std::ranges::any_of(argv, [](const auto& word) { return word.starts_with("--pid"); });
  return follows_file(argv) && !ends;
}

namespace {

/// What a shell is called with, up to its first operand.
struct ShellCall {
  bool text = false;      ///< -c
  bool commands = false;  ///< -s
  std::size_t operand = 0;
};

ShellCall call_of_shell(const Words& argv) {
  ShellCall call{.operand = argv.size()};
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    const bool ends = word == "--" || word == "-";
    const bool is_option = word.size() > 1 && (word[0] == '-' || word[0] == '+');
    if (ends || !is_option) {
      call.operand = ends ? i + 1 : i;
      break;
    }
    const bool is_long = word.starts_with("--");
    call.text = call.text || (!is_long && word[0] == '-' && word.contains('c'));
    call.commands = call.commands || (!is_long && word[0] == '-' && word.contains('s'));
    // -euo pipefail
    const bool names_one = !is_long && (word.ends_with('o') || word.ends_with('O'));
    if (names_one || word == "--rcfile" || word == "--init-file") ++i;
  }
  return call;
}

}  // namespace

std::optional<std::string> script_of_shell(const Words& argv) {
  const auto call = call_of_shell(argv);
  if (call.text || call.commands || call.operand >= argv.size()) return std::nullopt;
  return argv[call.operand];
}

std::optional<std::string> text_of_shell(const Words& argv) {
  const auto call = call_of_shell(argv);
  return is_shell(argv[0]) && call.text && call.operand < argv.size() ? std::optional(argv[call.operand])
                                                                      : std::nullopt;
}

bool reads_commands(const Words& argv) {
  const auto call = call_of_shell(argv);
  return is_shell(argv[0]) && !call.text && (call.commands || call.operand >= argv.size());
}

std::optional<std::string> option(const Words& argv, std::size_t end, std::string_view letter,
                                  std::string_view name) {
  std::optional<std::string> value;
  for (std::size_t i = 1; i < end; ++i) {
    const std::string_view word = argv[i];
    if (!name.empty() && word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=') {
      value = word.substr(name.size() + 1);
    } else if ((word == name || word == letter) && !word.empty() && i + 1 < end) {
      value = argv[i + 1];
    } else if (letter.size() == 2 && word.starts_with(letter) && word.size() > 2) {
      value = word.substr(2);
    }
  }
  return value;
}

std::optional<std::uint32_t> number_option(const Words& argv, std::size_t end, std::string_view letter,
                                           std::string_view name) {
  const auto value = option(argv, end, letter, name);
  return value ? text::whole_number<std::uint32_t>(value->substr(value->rfind('-') + 1)) : std::nullopt;
}

std::size_t program_at(const Words& argv, std::size_t from, const Options& valued) {
  for (std::size_t i = from; i < argv.size(); ++i) {
    if (argv[i] == "--") return i + 1;
    if (argv[i].size() < 2 || argv[i][0] != '-') return i;
    if (valued.contains(argv[i])) ++i;
  }
  return argv.size();
}

std::size_t behind_runners(const Words& argv, std::size_t from) {
  struct Runner {
    std::set<std::string, std::less<>> names;
    Options valued;
  };
  static const std::array<Runner, 2> kRunners{
      {{{"uv", "poetry", "pixi"},
        {"--with", "--extra", "--group", "--python", "-p", "--project", "--directory", "--env-file",
         "--active-project", "--index", "--with-requirements"}},
       {{"conda", "mamba", "micromamba"}, {"-n", "--name", "-p", "--prefix", "--cwd"}}}};
  while (from + 1 < argv.size() && argv[from + 1] == "run") {
    const auto* const runner = std::ranges::find_if(
        kRunners, [&](const Runner& one) { return one.names.contains(program_name(argv[from])); });
    if (runner == kRunners.end()) break;
    from = program_at(argv, from + 2, runner->valued);
  }
  return from;
}

}  // namespace nlaunch::shell
