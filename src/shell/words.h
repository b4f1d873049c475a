#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// Helpers for the words of a command line.
namespace nlaunch::shell {

using Words = std::vector<std::string>;
using Options = std::set<std::string, std::less<>>;

/// "/usr/bin/srun" → "srun"
std::string program_name(const std::string& path);
/// bash, sh or dash, by its name or its path.
bool is_shell(const std::string& program);
/// True for a file in a directory of the system's programs, from which alone they run.
bool is_of_system(const std::filesystem::path& path);
bool has(const Words& argv, std::string_view word);
bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words);
/// pkill, killall
bool kills_by_name(const Words& argv);
/// Those, `fuser -k`, and kill unless it only asks (`kill -0`).
bool kills(const Words& argv);

/// True for the number of a port that a user may listen on.
bool is_port(const std::string& text);
/// True if a word has this port: "8000", "--port=8000", "http://localhost:8000/health", "/dev/tcp/HOST/8000".
bool names_port(const Words& words, const std::string& port);
/// True if one of the words is a port that the query names, or has it as its value: `--port 8000`,
/// "--port=8000".
bool has_port_of(const Words& words, const Words& query);
/// The words starting at an index.
Words rest(const Words& argv, std::size_t from);

/// How long `sleep 4h 30` takes, in whole seconds; words that are no time count as 0.
std::uint64_t seconds_of_sleep(const Words& argv);
/// `tail -f FILE`
bool follows_file(const Words& argv);
/// What tells one program from another with other options: "python train.py" for `python -u train.py --lr 1`.
std::string call_of(const Words& argv);

/// `sleep infinity`, and `tail -f FILE` without --pid
bool waits_forever(const Words& argv);

/// The text that a shell is given on its command line: `bash -lc TEXT`; nullopt if it is given none.
std::optional<std::string> text_of_shell(const Words& argv);

/// "job.sh" for `bash -x job.sh A`; nullopt for `bash -c TEXT`, or a shell that is given none.
std::optional<std::string> script_of_shell(const Words& argv);
/// A shell that gets its commands as its standard input: `bash`, `bash -s ARGUMENTS`.
bool reads_commands(const Words& argv);

/// The last value of an option before word `end`: `-n 2`, `-n2`, `--ntasks=2`, `--ntasks 2`. Either name may
/// be empty.
std::optional<std::string> option(const Words& argv, std::size_t end, std::string_view letter,
                                  std::string_view name);
/// For a range, "1-4", the maximum.
std::optional<std::uint32_t> number_option(const Words& argv, std::size_t end, std::string_view letter,
                                           std::string_view name);

/// The index of the first word that is neither an option nor the value of one of `valued`: the program that a
/// launcher starts. argv.size() if there is none.
std::size_t program_at(const Words& argv, std::size_t from, const Options& valued);

/// The index of the program behind those that only choose its environment, `uv run`, `poetry run`, `pixi
/// run`, `conda run`: `from` if there is none of them.
std::size_t behind_runners(const Words& argv, std::size_t from = 0);

}  // namespace nlaunch::shell
