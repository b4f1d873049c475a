#include "shell/watched_output.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "shell/answers.h"

namespace nlaunch::shell {
namespace {

std::string path_of(const ProgramStart& start, const std::string& word) {
  return (std::filesystem::path(start.folder) / word).lexically_normal();
}

bool is_grep(const Words& argv) {
  const auto name = program_name(argv[0]);
  return name == "grep" || name == "egrep";
}

}  // namespace

bool WatchedOutput::is_output(const ProgramStart& start, const std::string& word) const {
  return written_.is_made_by_job(path_of(start, word));
}

bool WatchedOutput::names_output(const ProgramStart& start, const Words& argv) const {
  return std::ranges::any_of(argv, [&](const auto& word) { return is_output(start, word); });
}

/// `grep -qi error server.log`: nothing goes wrong here. The name of the log says nothing.
bool WatchedOutput::looks_for_failure(const ProgramStart& start, const Words& argv) const {
  return program_name(argv[0]).ends_with("grep") && std::ranges::any_of(argv, [&](const auto& word) {
           return names_failure(word) && !is_output(start, word);
         });
}

/// It looks at the output of what has failed: what it finds there is not known.
bool WatchedOutput::may_see_failure(const ProgramStart& start, const Words& argv) const {
  return failing_.server() || !names_output(start, argv) ||
         std::ranges::any_of(argv, [&](const auto& word) { return failing_.wrote(path_of(start, word)); });
}

void WatchedOutput::passes_on(const ProgramStart& start, const Words& argv) {
  static const Options kTools{"cat",  "tac", "head", "tail", "sed", "awk",
                              "gawk", "cut", "sort", "tr",   "uniq"};
  if (!kTools.contains(program_name(start.path))) return;
  const auto in = start.file(STDIN_FILENO);
  const auto out = start.file(STDOUT_FILENO);
  const bool finished = shows_finished_.contains(in) || std::ranges::any_of(argv, [&](const auto& word) {
                          return notes_.is_finished_output(path_of(start, word));
                        });
  if (names_output(start, argv) || shows_output_.contains(in)) shows_output_.insert(out);
  if (finished) shows_finished_.insert(out);
}

void WatchedOutput::follows(const ProgramStart& start) {
  shows_output_.insert(start.file(STDOUT_FILENO));
}

bool WatchedOutput::is_watched_by(const ProgramStart& start, const Words& argv) const {
  const bool looks = is_grep(argv);
  const auto in = start.file(STDIN_FILENO);
  // `curl -s localhost:8000/v1/models | grep -q NAME`
  const auto writer = only_asks(start) ? pipes_.writer_to(start) : Words();
  if (!writer.empty() && asks_by_http(writer) && asks_host(writer)) return true;
  const bool wants_output = !only_asks(start) && start.file(STDOUT_FILENO).starts_with("pipe:");
  return follows_file(argv) || (looks && !wants_output && names_output(start, argv)) ||
         (looks && in.starts_with("pipe:") && shows_output_.contains(in));
}

bool WatchedOutput::is_found_by(const ProgramStart& start, const Words& argv) const {
  return !failing_.server_hangs() && looks_for_failure(start, argv) == failing_.server();
}

bool WatchedOutput::is_guessed_by(const ProgramStart& start, const Words& argv) const {
  return failing_.has_begun() ? may_see_failure(start, argv)
                              : shows_finished_.contains(start.file(STDIN_FILENO));
}

}  // namespace nlaunch::shell
