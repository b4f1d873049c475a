#include <fmt/format.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "base/text.h"
#include "lint/guards.h"
#include "lint/programs.h"
#include "lint/questions.h"
#include "lint/script_input.h"
#include "lint/script_text.h"
#include "lint/trials.h"
#include "shell/words.h"
#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::lint {
namespace {

namespace fs = std::filesystem;

/// Of a file that is read for its lines.
constexpr std::uint64_t kLargestSource = 1U << 20U;

/// A temporary file with this text, for bash.
struct TemporaryScript {
  fs::path folder;
  std::string path;
  explicit TemporaryScript(const std::string& text) {
    std::error_code error;
    auto name = (fs::temp_directory_path(error) / "nlaunch-lint-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return;
    folder = fs::canonical(name, error);
    path = folder / "script.sh";
    (void)sys::write_file_atomically(path, text, 0644);
  }
  TemporaryScript(const TemporaryScript&) = delete;
  TemporaryScript& operator=(const TemporaryScript&) = delete;
  ~TemporaryScript() {
    std::error_code error;
    if (!folder.empty()) fs::remove_all(folder, error);
  }
};

/// The syntax error that `bash -n` reports.
std::optional<Unread> syntax_error(const SourceLines& lines, const std::string& path) {
  sys::SpawnRequest request;
  request.argv = {"/bin/bash", "-n", path};
  const auto result = sys::run_command(std::move(request), std::chrono::seconds(10));
  // Of a broken `[[ ]]`, bash tells and still exits with 0.
  if (!result || (result->status.ok() && !result->err.contains(": syntax error"))) return std::nullopt;
  constexpr std::string_view kLine = ": line ";
  std::string said;
  for (const auto& line : text::split(result->err, '\n')) {
    if (said.empty() && line.find(kLine) != std::string::npos &&
        line.find(": warning: ") == std::string::npos)
      said = line;
  }
  const auto at = said.find(kLine);
  if (at == std::string::npos) return std::nullopt;
  const auto rest = std::string_view(said).substr(at + kLine.size());
  const auto colon = std::min(rest.find(": "), rest.size());
  const auto line = text::whole_number<std::uint32_t>(rest.substr(0, colon)).value_or(0);
  return Unread{.span = lines.whole(std::min(line, lines.count())),
                .severity = Severity::error,
                .message = fmt::format("bash cannot parse this: {}",
                                       text::printable(rest.substr(std::min(colon + 2, rest.size())))),
                .why = "the script ends there; the rest was not examined"};
}

/// The text with a word of the same length in place of each `<placeholder>`, which bash takes for
/// redirections.
std::string with_filled_placeholders(std::string text) {
  static const RE2 kPlaceholder(R"re((^|[\s="':/{])<([A-Za-z][A-Za-z0-9_ -]*)>)re");
  while (RE2::Replace(&text, kPlaceholder, R"(\1_\2_)")) {
  }
  return text;
}

/// The text of a `bash -c` that bash cannot parse: what is in it does not start.
std::optional<Unread> broken_text(const shell::Recording& recording, const SourceLines& lines,
                                  const std::string& path) {
  constexpr std::size_t kMost = 8;
  const auto said = recording.broken_text();
  if (said.empty()) return std::nullopt;
  std::set<std::string> looked_at;
  for (const auto& command : recording.commands) {
    const auto inner = std::ranges::find_if(command.argv, shell::is_shell);
    const auto text =
        inner == command.argv.end() ? std::nullopt : shell::text_of_shell({inner, command.argv.end()});
    if (!text || shell::program_name(command.script) != shell::program_name(path) ||
        !looked_at.insert(*text).second || looked_at.size() > kMost)
      continue;
    sys::SpawnRequest request;
    request.argv = {"/bin/bash", "-n", "-c", *text};
    const auto result = sys::run_command(std::move(request), std::chrono::seconds(10));
    if (!result || result->status.ok()) continue;
    return Unread{
        .span = lines.whole(command.line),
        .severity = Severity::error,
        .message = "bash cannot parse the text that this gives to a shell: " + text::printable(said),
        .why = "nothing of it starts, and the rest of the script goes on without it"};
  }
  return std::nullopt;
}

/// A program whose output goes to a missing directory does not start. It is examined as if the directory
/// existed, and the missing directory is noted.
Result<PassedGuards> record_all(shell::RecordRequest request) {
  auto first = shell::record(request);
  if (!first) return std::unexpected(first.error());
  auto recording = pass_guards(request, std::move(*first));
  const auto no_folder = recording.recording.no_folder;
  if (no_folder.empty()) return recording;
  for (const auto& one : no_folder) request.existing.push_back(one.name.substr(0, one.name.rfind('/') + 1));
  auto again = shell::record(request);
  if (!again) return recording;
  auto passed = pass_guards(request, std::move(*again));
  auto& all = passed.recording.no_folder;
  all.insert(all.begin(), no_folder.begin(), no_folder.end());
  return passed;
}

/// How many paths in the script do not exist, relative to where it was recorded.
std::size_t missing(const shell::Recording& recording, const std::string& folder) {
  const auto is_gone = [&](const shell::RecordedCommand& command) {
    const auto& program = command.argv[0];
    std::error_code error;
    if (shell::program_name(program) == "sbatch")
      return std::any_of(command.argv.begin() + 1, command.argv.end(), [&](const std::string& word) {
        const bool script = word.ends_with(".sh") || word.ends_with(".sbatch") || word.ends_with(".slurm");
        return script && !word.starts_with('/') && !word.starts_with('-') &&
               !fs::exists(fs::path(command.folder) / word, error);
      });
    return program.find('/') != std::string::npos && !program.starts_with('/') &&
           !fs::exists(fs::path(command.folder) / program, error);
  };
  const auto of_job = [&](const std::string& path) { return path.starts_with(folder + "/"); };
  return recording.unread.size() + recording.no_folder.size() +
         static_cast<std::size_t>(std::ranges::count_if(recording.not_here, of_job)) +
         static_cast<std::size_t>(std::ranges::count_if(recording.commands, is_gone));
}

/// Records in the directory where lint is called, as bash and sbatch would; in the script's own directory if
/// more of its paths exist there.
Result<PassedGuards> record_where_it_fits(shell::RecordRequest request) {
  std::error_code error;
  const auto own = fs::absolute(request.script, error).parent_path().lexically_normal().native();
  request.folder = fs::current_path(error).native();
  if (request.folder == own) return record_all(request);
  auto here = record_all(request);
  const auto of_here = here ? missing(here->recording, request.folder) : 0;
  if (of_here == 0) return here;
  request.folder = own;
  auto there = record_all(request);
  return there && missing(there->recording, own) < of_here ? there : here;
}

/// What was assumed of the cluster, so that the script went on.
Unread told_of(const std::vector<Guard>& guards, const SourceLines& lines, const std::string& path) {
  std::error_code error;
  const auto is_told = [](const Guard& guard) { return !guard.unbound; };
  const auto& first = *std::ranges::find_if(guards, is_told);
  const auto more = static_cast<std::size_t>(std::ranges::count_if(guards, is_told)) - 1;
  const bool of_user = std::ranges::any_of(
      guards, [](const Guard& guard) { return !guard.variables.empty() || guard.arguments > 0; });
  Unread told;
  told.span = {lines.file(), 0, 0, 1};
  if (first.script == fs::absolute(path, error).native()) {
    told.span = lines.whole(first.line);
  } else if (auto text = sys::read_regular_file(first.script, kLargestSource)) {
    const SourceLines sourced(std::make_shared<const SourceFile>(SourceFile{first.script, std::move(*text)}));
    told.span = sourced.whole(first.line);
  }
  told.severity = Severity::note;
  told.message = fmt::format(
      "lint assumed that {}{}: without that, the script does not get to its end on this machine", first.what,
      more == 0 ? "" : fmt::format(", and passed {}", text::count(more, "other test")));
  told.why = "the lines below were examined as they run on the cluster";
  if (of_user) told.instead = "pass its arguments after --, its variables as --env NAME=VALUE";
  return told;
}

/// Variables without which set -u ends the script: where it first uses them.
void add_unbound(const std::vector<Guard>& guards, const SourceLines& lines, const std::string& path,
                 Script& script) {
  std::error_code error;
  const auto own = fs::absolute(path, error).native();
  const auto most = script.unset.size() + 3;
  for (const auto& guard : guards) {
    if (script.unset.size() >= most) return;
    if (!guard.unbound || fs::absolute(guard.script, error).native() != own) continue;
    const auto name = guard.variables.front().substr(0, guard.variables.front().find('='));
    script.unset.push_back({.name = name,
                            .span = lines.find(name, guard.line, lines.end_of_command(guard.line)),
                            .ends_script = true});
  }
}

/// The programs of another recording in the order of these: those in the background start in any order. Empty
/// if they are not the same ones.
std::vector<Program> in_order_of(const std::vector<Program>& known, std::vector<Program> others) {
  std::vector<Program> ordered;
  for (const auto& one : known) {
    const auto is_it = [&](const Program& other) {
      return other.words[0] == one.words[0] && other.span.line == one.span.line;
    };
    // Of a loop, rather the one with the same arguments.
    auto found = std::ranges::find_if(
        others, [&](const Program& other) { return is_it(other) && other.words == one.words; });
    if (found == others.end()) found = std::ranges::find_if(others, is_it);
    if (found == others.end()) return {};
    ordered.push_back(std::move(*found));
    others.erase(found);
  }
  return others.empty() ? ordered : std::vector<Program>();
}

/// The script as the next job, of another day, or another task of the array, would run it. nullptr if it does
/// not start the same programs.
std::shared_ptr<const Script> in_next_job(const std::shared_ptr<const SourceFile>& file,
                                          shell::RecordRequest request, const std::string& path,
                                          const Script& script) {
  constexpr std::uint64_t kDay = 24 * 60 * 60;
  request.allocation.job_id = "535353";
  request.later = kDay + 3661;  // another hour, minute and second, too
  const auto& tasks = request.allocation.array;
  if (!tasks.empty())
    request.allocation.array_task =
        tasks.back() == request.allocation.array_task ? tasks.front() : tasks.back();
  const auto recording = shell::record(request);
  if (!recording) return nullptr;
  auto next =
      std::make_shared<Script>(std::move(*script_input(file, *recording, request.allocation, path).script));
  next->programs = in_order_of(script.programs, std::move(next->programs));
  return next->programs.empty() ? nullptr : next;
}

/// A script that starts its servers only if nobody answers: then it has more programs.
void look_at_the_other_branch(PassedGuards& passed) {
  auto request = passed.request;
  request.unanswered = questions_for_nobody(passed.recording);
  if (request.unanswered.empty() || !passed.recording.whole()) return;
  auto other = shell::record(request);
  const auto programs = [](const shell::Recording& recording) {
    return std::ranges::count(recording.commands, shell::Fate::recorded, &shell::RecordedCommand::fate);
  };
  if (!other || !other->whole() || other->waits || programs(*other) <= programs(passed.recording)) return;
  passed.recording = std::move(*other);
  passed.request = std::move(request);
}

/// `outputs/checkpoint-*` with 1 or 2 in place of its last star, and 1 in that of the others.
std::string match_of(std::string pattern, char last) {
  pattern[pattern.rfind('*')] = last;
  std::ranges::replace(pattern, '*', '1');
  const auto name = shell::program_name(pattern);
  const bool is_whole = pattern.ends_with('/') || name.contains('.');
  return is_whole ? pattern : pattern + "/";
}

/// Patterns of a loop or of ls for which nothing is here: `for ckpt in outputs/checkpoint-*`.
std::set<std::string> patterns_without_match(const shell::Recording& recording, const SourceLines& lines) {
  constexpr std::size_t kMost = 4;
  std::string loops;
  static const RE2 kLoop(R"re(\bfor\s+\w+\s+in\s|\bls\b|=\()re");
  for (const auto number : lines_of_commands(lines))
    if (RE2::PartialMatch(lines.line(number), kLoop)) loops += std::string(lines.line(number)) + "\n";
  std::set<std::string> patterns;
  for (const auto& one : recording.traced) {
    if (!one.text.contains('*')) continue;
    for (const auto& word : shell::words_of(one.text)) {
      auto name = word;
      while (name.ends_with('/')) name.pop_back();
      name = shell::program_name(name);
      const bool is_pattern = name.contains('*') && name.size() > 1 &&
                              word.find_first_of("$?[]{}()<>|;&\"' \n\\") == std::string::npos;
      if (is_pattern && loops.contains(name) && patterns.size() < kMost) patterns.insert(word);
    }
  }
  return patterns;
}

/// A loop over files of the cluster runs for two of them: a single turn shows little of it.
void look_at_two_turns(PassedGuards& passed, const SourceLines& lines) {
  const auto patterns = patterns_without_match(passed.recording, lines);
  if (patterns.empty() || !passed.recording.stopped.empty()) return;
  auto request = passed.request;
  for (const auto& pattern : patterns)
    for (const char last : {'1', '2'}) request.existing.push_back(match_of(pattern, last));
  auto other = shell::record(request);
  const bool further = other && (other->whole() || !passed.recording.whole()) &&
                       other->commands.size() > passed.recording.commands.size();
  if (!further) return;
  passed.recording = std::move(*other);
  passed.request = std::move(request);
}

/// The scripts that it submits, each once, as they are called first.
std::vector<SubmittedScript> submitted_scripts(const std::vector<shell::Submission>& submissions,
                                               const SourceLines& lines) {
  constexpr std::size_t kMost = 8;
  std::vector<SubmittedScript> scripts;
  for (const auto& one : submissions) {
    const bool known = std::ranges::find(scripts, one.script, &SubmittedScript::path) != scripts.end();
    if (!one.script.empty() && !known && scripts.size() < kMost)
      scripts.push_back({one.script, one.arguments, one.variables, one.options, lines.whole(one.line)});
  }
  return scripts;
}

}  // namespace

LintInput recorded_script(const std::shared_ptr<const SourceFile>& file, const ScriptJob& job) {
  auto input = script_input(file, job.options);
  if (job.nodes) input.nodes = *job.nodes;
  // bash treats each carriage return as part of a word, so nothing it does would be what is meant.
  if (file->text.find("\r\n") != std::string::npos) return input;
  static const RE2 kJinja(R"re((?m)^\s*\{%-?\s*(?:if|for|set|block|include|macro|raw|extends)\b)re");
  if (RE2::PartialMatch(file->text, kJinja)) {
    Unread told;
    told.span = {file, 0, 0, 1};
    told.severity = Severity::note;
    told.message = "this is a template of Jinja, and no script yet";
    told.why = "nothing in it was examined";
    told.instead = "lint the script that it renders to";
    LintInput empty;
    empty.files = input.files;
    empty.script.emplace().file = file;
    empty.script->unread.push_back(std::move(told));
    return empty;
  }
  std::error_code error;
  const bool is_file = fs::is_regular_file(file->name, error);
  auto copy = is_file ? nullptr : std::make_unique<TemporaryScript>(file->text);
  auto wrong = syntax_error(SourceLines(file), is_file ? file->name : copy->path);
  std::optional<Unread> unfilled;
  if (const auto filled = with_filled_placeholders(file->text);
      wrong && wrong->span.line > 0 && filled != file->text) {
    copy = std::make_unique<TemporaryScript>(filled);
    unfilled = std::exchange(wrong, syntax_error(SourceLines(file), copy->path));
    unfilled->why = "a placeholder has to be filled in: the rest was examined as if they all were";
    if (wrong && wrong->span.line == unfilled->span.line) unfilled.reset();
  }
  const bool there = is_file && copy == nullptr;
  const auto path = there ? file->name : copy->path;
  shell::RecordRequest request;
  request.script = path;
  if (is_file && !there) request.folder = fs::absolute(file->name, error).parent_path().native();
  request.arguments = job.arguments;
  request.keeps_trace = file->text.find("set +") != std::string::npos;
  request.variables = variables_of_job(input.batch, job.variables);
  request.prints = job.prints;
  request.existing = job.existing;
  request.allocation = allocation_of(input);
  request.allocation.nodes = job.nodes.value_or(request.allocation.nodes);
  request.allocation.gpus_per_node = job.gpus.value_or(request.allocation.gpus_per_node);
  request.allocation.other_hosts = true;
  auto recording = there ? record_where_it_fits(request) : record_all(request);
  if (recording) look_at_two_turns(*recording, SourceLines(file));
  if (recording) look_at_the_other_branch(*recording);
  if (recording) {
    auto unread = std::move(input.script->unread);
    input = script_input(file, recording->recording, request.allocation, path, job.options);
    if (recording->recording.stopped.empty() && recording->recording.at_its_end) {
      input.script->exit_code = recording->recording.exit_code;
      input.script->last_line = recording->recording.last_line;
    }
    input.submitted = submitted_scripts(recording->recording.submitted, SourceLines(file));
    input.script->trials = try_failures(recording->request, recording->recording, input);
    input.script->failed_values = try_values(recording->request, recording->recording, file, *input.script);
    input.script->failed_submission = try_submission(recording->request, recording->recording, file);
    if (ran_to_its_end(*input.script) && !input.script->programs.empty())
      input.script->in_next_job = in_next_job(file, recording->request, path, *input.script);
    add_unbound(recording->guards, SourceLines(file), path, *input.script);
    if (std::ranges::any_of(recording->guards, [](const Guard& guard) { return !guard.unbound; }))
      input.script->unread.push_back(told_of(recording->guards, SourceLines(file), path));
    if (job.nodes) input.nodes = *job.nodes;
    if (job.gpus) input.gpus = *job.gpus;
    // The syntax error already covers what bash reports on the wrong line.
    if (wrong) input.script->unread.clear();
    if (auto broken = broken_text(recording->recording, SourceLines(file), path))
      input.script->unread.push_back(std::move(*broken));
  } else {
    Unread all;
    all.span = {file, 0, 0, 1};
    all.message = "bash could not be run here: " + recording.error().first_message();
    all.why = "only the #SBATCH lines were examined";
    input.script->unread.push_back(std::move(all));
  }
  for (const auto& broken : {unfilled, wrong})
    if (broken) input.script->unread.push_back(*broken);
  input.given = job.variables;
  input.existing = job.existing;
  return input;
}

}  // namespace nlaunch::lint
