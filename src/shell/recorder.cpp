#include "shell/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "shell/absent_files.h"
#include "shell/answers.h"
#include "shell/failing.h"
#include "shell/launchers.h"
#include "shell/mpirun.h"
#include "shell/notes.h"
#include "shell/pipes.h"
#include "shell/places.h"
#include "shell/recorded_commands.h"
#include "shell/script_end.h"
#include "shell/stand_ins.h"
#include "shell/submissions.h"
#include "shell/tasks_of_shells.h"
#include "shell/tools.h"
#include "shell/tracee.h"
#include "shell/waits.h"
#include "shell/watched_output.h"
#include "sys/files.h"
#include "sys/proc.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

constexpr int kNotFound = 127;
constexpr int kFailed = 1;

class Recorder final : public Watcher {
 public:
  Recorder(const RecordRequest& request, ScratchLayer& layer, OwnFiles own)
      : request_(request),
        layer_(layer),
        own_(std::move(own)),
        written_(layer),
        notes_(request, layer, written_, places_, recording_),
        places_(request.script, layer, own_),
        scripts_(own_),
        absent_files_(request, layer, own_, places_, scripts_, notes_, recording_),
        commands_(layer, own_, pipes_, places_, written_, recording_),
        submissions_(request, layer, own_, places_, written_) {}

  bool prepare() {
    layer_.permit(own_.trace());
    layer_.permit(own_.output());
    make_given_files(request_, layer_, written_);
    constexpr std::uint64_t kLargest = 1U << 20U;
    static const RE2 kListsJobs(R"((?m)^[^#\n]*\bjobs\s*(?:-\w|[|)>`]|$))");
    lists_jobs_ =
        RE2::PartialMatch(sys::read_regular_file(request_.script, kLargest).value_or(""), kListsJobs);
    make_folder_that_is_not_here(request_.chdir);
    return make_own_files(own_, request_);
  }

  /// The program that starts the script: bash, or a script that starts it on each node.
  std::vector<std::string> start_of_script() {
    std::error_code error;
    std::vector<std::string> script{fs::absolute(request_.script, error)};
    script.insert(script.end(), request_.arguments.begin(), request_.arguments.end());
    if (request_.per_node) return {start_on_each_node(script)};
    script.insert(script.begin(), {"/bin/bash", "--noprofile", "--norc"});
    return script;
  }

  [[nodiscard]] std::string folder() const { return folder_of(request_); }

  [[nodiscard]] bool seems_there(const std::string& folder) const override {
    return absent_files_.may_be_there(folder);
  }

  std::string on_start(const ProgramStart& start) override {
    const auto known = recording_.commands.size();
    places_.read();
    auto own = tasks_.with_task(start);
    if (start.path == own_.other()) own.background = own.background || in_background_.contains(start.pid);
    auto program = stand_in_of(own);
    const bool is_new = recording_.commands.size() > known;
    has_begun_ = is_new && (recording_.commands.back().fate != Fate::answered ||
                            !start.file(STDOUT_FILENO).starts_with("pipe:"));
    const bool stands_in = program.starts_with(own_.answers());
    if (is_new && recording_.commands.back().fate == Fate::recorded && stands_in)
      stand_ins_.insert(start.pid);
    // A shell that has exec'd another program sources nothing.
    if (program == start.path && !is_shell(program))
      programs_.insert(start.pid);
    else
      programs_.erase(start.pid);
    return program;
  }

  std::string stand_in_of(const ProgramStart& start) {
    if (fs::path(start.path).parent_path() == own_.answers()) return start.path;
    auto argv = start.argv;
    if (start.path == own_.other() && !argv.empty()) argv.erase(argv.begin());  // the handler's arguments
    if (argv.empty()) return answer({"", kNotFound});
    if (is_searched_elsewhere(start, argv[0])) return {};
    pipes_.note(start);
    // What goes where the script's own output does, nobody reads.
    const auto prints_to = start.file(STDOUT_FILENO);
    const bool is_seen_only = prints_to.empty() || prints_to == own_.output();
    if (const auto said = printed_by(argv); said && !is_seen_only) {
      recording_.printed.push_back({places_.line_of(start.pid), std::string(text::trim(*said))});
      note(start, std::move(argv), Fate::answered);
      return answer({*said + "\n"});
    }
    const auto program = program_name(start.path);
    if (is_of_system(start.path) && only_computes(program) && !layer_.covers(start.path))
      return is_shell(program) ? start_of_shell(start, argv, program) : start_of_tool(start, argv, program);
    if (auto interpreter = interpreter_of(start.path))
      return script("exec {} {} \"$@\"\n", *interpreter, text::shell_quote(start.path));
    if (auto said = answer_of(argv, request_.allocation, node_of_process(start)))
      return answer_to(start, std::move(argv), *said);
    return start_of_program(start, std::move(argv));
  }

  /// A tool of the system, which runs, unless it looks at the output of programs that do not.
  std::string start_of_tool(const ProgramStart& start, const Words& argv, const std::string& name) {
    const auto line = places_.line_of(start.pid);
    if (succeeds(start, line)) return answer({});
    notes_.guess(line, start, argv, pipes_.writer_to(start));
    // `python train.py | grep -v Warning`: what the program prints is not known.
    const bool is_filter = name.ends_with("grep") && !only_asks(start) &&
                           written_.is_of_job(start.file(STDIN_FILENO)) &&
                           !start.file(STDOUT_FILENO).starts_with("pipe:");
    if (is_filter) return answer({});
    if (output_.is_watched_by(start, argv)) return answer_to_search(start, argv);
    if (Tools::places_files(name)) {
      const bool can = tools_.sources_are_here(start, argv);
      written_.copied(start, argv);
      if (can) tools_.places(start.pid, recording_.commands.size());
      note(start, argv, Fate::recorded);
      if (failing_.is_now(recording_.commands)) return answer({"", kFailed});
      return can ? start.path : answer({});
    }
    if (changes_files(name)) {
      const bool in_task = task_of(start.environment).has_value();
      if (in_task)
        note(start, argv, Fate::recorded);
      else
        notes_.done_here(line, argv);
      if (in_task && failing_.is_now(recording_.commands)) return answer({"", kFailed});
      if (name == "mkdir" && !in_task) written_.mkdir(start, argv);
      return start.path;
    }
    if (name == "date" && has(argv, fmt::format("@{}", failing_.now()))) return start.path;
    if (auto path = tools_.canonical_path(start, argv)) return answer({*path + "\n"});
    tools_.runs(start, argv, name);
    output_.passes_on(start, argv);
    // The same for all tasks.
    if (name == "date" && Tools::tells_time(argv))
      return script("exec /usr/bin/date -d @{} \"$@\"\n", failing_.now());
    return start.path;
  }

  [[nodiscard]] bool succeeds(const ProgramStart& start, std::uint32_t line) const {
    const auto& lines = request_.succeeding;
    const auto* place = lines.empty() ? nullptr : places_.of(start.pid);
    return place != nullptr &&
           std::ranges::find(lines, ScriptLine{layer_.unmapped(place->script), line}) != lines.end();
  }

  /// A tool that looks for something in the output of a program that does not run.
  std::string answer_to_search(const ProgramStart& start, const Words& argv) {
    const auto line = places_.line_of(start.pid);
    if (follows_file(argv)) output_.follows(start);
    const bool guessed = output_.is_guessed_by(start, argv);
    if (guessed) recording_.guessed.push_back({line, text::shell_join(argv)});
    if (guessed) recording_.searches.insert(line);
    note(start, argv, Fate::answered);
    const bool found = output_.is_found_by(start, argv) != (guessed && failing_.is_otherwise(line));
    return answer({"", found ? 0 : kFailed});
  }

  /// A program that queries the cluster or waits.
  std::string answer_to(const ProgramStart& start, Words argv, Answer said) {
    const auto name = program_name(argv[0]);
    const auto line = places_.line_of(start.pid);
    const bool gets_none = request_.unanswered.contains(line) && asks_host(argv);
    if (failing_.concerns(argv) || commands_.asks_killed(argv) || gets_none) said = refused(argv);
    if (Allocation::is_port(text::trim(said.text))) said.text = free_port(start) + "\n";
    static const Options kKnown{"hostname",      "getent", "host",  "dig",    "nslookup", "ray",
                                "get_free_port", "conda",  "mamba", "sbatch", "curl",     "wget"};
    const bool of_user = name == "getent" && (has(argv, "passwd") || has(argv, "group"));
    const bool lists_hosts = name == "scontrol" && !has(argv, "job");
    if (of_user || is_page(said) || (!kKnown.contains(name) && !lists_hosts && !is_port_or_address(said)))
      notes_.made_up(line, start, argv);
    if (asks_by_exit_code(argv) && !start.file(STDOUT_FILENO).starts_with("pipe:"))
      recording_.guessed.push_back({line, text::shell_join(argv)});
    if (auto job = name == "sbatch" ? submissions_.read(start, argv) : std::nullopt)
      recording_.submitted.push_back(std::move(*job));
    note(start, std::move(argv), Fate::answered);
    const auto until = name == "sleep" && failing_.server() ? until_of(start.environment) : std::nullopt;
    if (until && failing_.now() >= *until) return script("kill -TERM $PPID\n");
    return answer(failing_.is_now(recording_.commands) ? Answer{"", kFailed} : said);
  }

  /// A program that is recorded, and the tasks that it starts if it is a launcher.
  std::string start_of_program(const ProgramStart& start, Words argv) {
    const auto name = program_name(argv[0]);
    const auto started = started_by(argv, request_.allocation);
    note(start, std::move(argv), started ? Fate::launcher : Fate::recorded);
    if (!started) return answer({"", failing_.is_now(recording_.commands) ? kFailed : 0});
    launchers_.insert(start.pid);
    make_folder_that_is_not_here(started->folder);
    tasks_.starts(started->tasks, request_.all_tasks);
    StartOfTasks how{recording_.commands.size() - 1, steps_, is_mpirun(name), {}};
    if (name == "timeout" && failing_.server()) how.until = end_of_timeout(started->argv);
    if (!started->tasks.empty()) ++steps_;
    return scripts_.put(script_of_tasks(*started, how, request_, own_));
  }

  /// Of the cluster; nothing if it is empty.
  void make_folder_that_is_not_here(const std::string& folder) {
    std::error_code error;
    if (folder.empty() || fs::exists(folder, error)) return;
    recording_.not_here.push_back(folder);
    (void)layer_.make_folder(folder);
  }

  /// When `timeout 10m PROGRAM`, the last command, ends its program; nullopt: never.
  std::optional<std::uint64_t> end_of_timeout(const Words& program) const {
    const auto& argv = recording_.commands.back().argv;
    if (argv.size() < program.size() + 2) return std::nullopt;
    const auto seconds = seconds_of_sleep({"sleep", argv[argv.size() - program.size() - 1]});
    return seconds == 0 ? std::nullopt : std::optional(failing_.now() + seconds);
  }

  /// A search for a free port tries each once, while a wait for a server retries. A server that has the port
  /// in its arguments has been started.
  bool on_connection(pid_t pid, const std::string& address, std::uint16_t port) override {
    places_.read();
    const auto node = node_of(address);
    const Words argv{kConnection +
                     (node              ? Allocation::host(*node)
                      : is_own(address) ? "localhost"
                                        : address) +
                     fmt::format("/{}", port)};
    const bool gets_none = failing_.silent() || request_.unanswered.contains(places_.line_of(pid));
    const bool answers = gets_none
                             ? !node && !is_own(address)
                             : !commands_.asks_killed(argv) &&
                                   (commands_.is_served(std::to_string(port)) || commands_.asks_again(argv));
    ProgramStart bash;
    bash.pid = pid;
    bash.environment = sys::initial_environment(pid);
    bash.folder = folder();
    note(bash, argv, Fate::answered);
    return answers;
  }
  static bool is_own(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

  [[nodiscard]] bool starts_others(pid_t pid) const override { return launchers_.contains(pid); }
  [[nodiscard]] bool only_stands_in(pid_t pid) const override { return stand_ins_.contains(pid); }
  [[nodiscard]] bool has_begun() const override { return has_begun_; }
  [[nodiscard]] bool outlives_its_end() const override {
    return !failing_.server() || failing_.server_hangs();
  }
  [[nodiscard]] bool lists_jobs() const override { return lists_jobs_; }
  [[nodiscard]] bool never_ends() const override { return failing_.server_hangs(); }
  void on_kill(pid_t pid) override { commands_.killed(pid); }
  [[nodiscard]] bool may_be_ahead() const override { return failing_.may_be_ahead(); }
  [[nodiscard]] std::chrono::seconds ahead() const override { return failing_.ahead(); }
  void on_fork(pid_t parent, pid_t child) override {
    places_.read();
    places_.forked(parent, child, is_in_front(parent));
    tools_.forked(parent);
  }
  /// A shell that runs in front of the one that forked it reads the same standard input; bash gives one in
  /// the background /dev/null, and one of a pipeline its pipe.
  [[nodiscard]] bool is_in_front(pid_t shell) const {
    const auto above = places_.parent_of(shell);
    if (!above) return false;
    const auto input_of = [](pid_t pid) {
      std::error_code error;
      return fs::read_symlink(fmt::format("/proc/{}/fd/0", pid), error);
    };
    const auto own = input_of(shell);
    return !own.empty() && own == input_of(*above);
  }
  void on_end(pid_t pid, int status) override {
    launchers_.erase(pid);
    stand_ins_.erase(pid);
    in_background_.erase(pid);
    places_.read();
    places_.ended(pid);
    tools_.ended(pid, status);
    programs_.erase(pid);
    note_end_of_called(pid, status);
    const auto step = tasks_.ended(pid);
    if (!step) return;
    constexpr int kSignal = 128;
    const auto code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignal + WTERMSIG(status);
    auto line = *step;
    const auto* place = places_.of_shell(pid);
    if (request_.per_node && place != nullptr) {
      line = place->line;
      // For a script that runs once: one that ends with a test, or with a watching loop.
      if (!place->command.starts_with("exit ") && nothing_follows(request_.script, line)) return;
    }
    constexpr int kKilled = kSignal + SIGKILL;
    const bool only_waited = code == kKilled && waits_.node_killed(line);
    if (code != 0 && !only_waited) recording_.failed.push_back({line, std::to_string(code)});
  }
  [[nodiscard]] bool has_seen_enough() const override {
    const bool gives_up = counts_waits_.value_or(false) && waits_.in_a_row() < kWaitsThatAreCounted;
    return waits_.too_many() && !gives_up && !request_.per_node;
  }

  std::string stand_in(pid_t pid, const std::string& path, Missing asked) override {
    places_.read();
    if (path == kAskedByHandler) {
      if (ignores_interrupts(pid)) in_background_.insert(pid);
      return "/dev/null";
    }
    if (asked == Missing::folder && path == Allocation::kHome) return "/dev/null";
    if (programs_.contains(pid)) return "";
    constexpr std::size_t kForAWhile = 20;
    return absent_files_.stand_in({.shell = pid,
                                   .asked = asked,
                                   .has_waited = waits_.in_a_row() >= kForAWhile,
                                   .background = ignores_interrupts(pid),
                                   .in_task = tasks_.of(pid).has_value()},
                                  path);
  }

  void on_change(pid_t pid, const std::string& path) override {
    const auto task = tasks_.of(pid);
    if (!task) return;
    written_.by_task(path);
    writers_[path].insert(task->rank);
  }
  void on_no_folder(const std::string& path) override { notes_.no_folder(path); }

  /// What the script printed.
  [[nodiscard]] std::string output() const {
    constexpr std::uint64_t kLargest = 64U << 20U;
    return sys::read_regular_file(own_.output(), kLargest).value_or("");
  }

  Recording take(const GuardedEnd& end) {
    constexpr int kSignal = 128;
    auto end_code = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : kSignal + WTERMSIG(end.status);
    places_.read();
    keep_trace();
    note_waits_of_tasks();
    keep_shells_above();
    keep_environment();
    recording_.all_tasks = request_.all_tasks;
    recording_.may_differ = !request_.all_tasks && tasks_.branch();
    commands_.finish();
    recording_.stopped = end.stopped.empty() && waits_.node_waited() ? "waits" : end.stopped;
    // A slow machine does not get to the limit of questions.
    const bool waits_for_failed = failing_.server() && recording_.stopped == "time" &&
                                  !counts_waits_.value_or(false) && waits_.in_a_row() > kWaitsOfFailure / 4;
    if (waits_for_failed) recording_.stopped = "waits";
    if (recording_.stopped == "waits" && counts_waits_.value_or(false)) recording_.stopped = "time";
    recording_.waits = recording_.stopped == "waits";
    recording_.cut = end.cut;
    // `which` looks for what is not here in the recorder's own folder, too.
    std::erase_if(recording_.asked_for,
                  [&](const Absent& one) { return one.name.starts_with(own_.folder.native()); });
    if (!end.stopped.empty() || end.cut) recording_.failed.clear();  // those were stopped here
    if (const auto end_of_script = places_.last_of_the_script()) {
      recording_.last_line = recording_.waits ? waits_.last_line() : end_of_script->line;
      recording_.at_its_end =
          !end_of_script->command.starts_with("exit ") &&
          nothing_follows(request_.script, recording_.last_line) &&
          !(recording_.waits && something_follows_loop(request_.script, recording_.last_line)) &&
          traced_at_early_end_ != places_.trace().commands().size();
    }
    if (request_.per_node && !recording_.failed.empty()) {
      recording_.last_line = recording_.failed[0].line;
      end_code = text::whole_number<int>(recording_.failed[0].name).value_or(1);
      recording_.at_its_end = false;
      recording_.failed.clear();
    }
    notes_.finish(layer_.without_layer(output()), environment_of(request_, own_),
                  [this](const std::string& pipe) {
                    return pipes_.is_read_by_shell(pipe) || pipes_.ends_in_file(pipe, own_.folder.native());
                  });
    recording_.exit_code = end_code;
    if (recording_.exit_code != 0)
      recording_.last_line = std::max(recording_.last_line, line_of_last_message());
    return std::move(recording_);
  }

 private:
  /// `while [ ! -f done ]; do sleep 1; done` of a task, for a file that another task writes: here that one
  /// has run before.
  void note_waits_of_tasks() {
    static const RE2 kLoop(R"((?:^|[;&|{(]|\bthen|\belse|\bdo)\s*(?:while|until)\b)");
    for (const auto& one : recording_.traced) {
      const auto words = shell::words_of(one.text);
      const auto test = std::ranges::find_if(words, [](const auto& word) {
        return word == "-f" || word == "-e" || word == "-s" || word == "-d";
      });
      const auto task = tasks_.of(one.shell);
      if (!task || words.empty() || test == words.end() || test + 1 == words.end()) continue;
      if (words[0] != "[" && words[0] != "[[" && words[0] != "test") continue;
      const auto writers = writers_.find((fs::path(folder()) / *(test + 1)).lexically_normal());
      const bool by_other = writers != writers_.end() && !writers->second.contains(task->rank);
      const auto line = one.line + (one.line_of_text > 0 ? one.line_of_text - 1 : 0);
      const bool known =
          std::ranges::any_of(recording_.waited_for, [&](const auto& other) { return other.line == line; });
      if (by_other && !known && RE2::PartialMatch(places_.text_of_line(one.script, line), kLoop))
        recording_.waited_for.push_back({line, *(test + 1), *test, 0, true});
    }
  }

  void keep_trace() {
    recording_.assignments = places_.trace().assignments();
    for (auto& one : recording_.assignments) {
      one.script = layer_.unmapped(one.script);
      one.value = without_own(std::move(one.value), own_);
    }
    recording_.traced = places_.take_traced();
    for (auto& one : recording_.traced) {
      one.script = layer_.unmapped(one.script);
      one.text = without_own(std::move(one.text), own_);
    }
  }

  /// Shells that ran nothing may be between two shells.
  void keep_shells_above() {
    constexpr int kDeepest = 100;  // more than any script nests
    std::set<pid_t> shells;
    for (const auto& one : recording_.traced) shells.insert(one.shell);
    for (const auto shell : shells) {
      auto below = shell;
      auto above = places_.parent_of(below);
      for (int depth = 0;
           above && !shells.contains(*above) && !places_.is_new_shell(below) && depth < kDeepest; ++depth)
        above = places_.parent_of(below = *above);
      if (above && shells.contains(*above) && !places_.is_new_shell(below))
        recording_.shells_above.emplace(shell, *above);
    }
  }

  void keep_environment() {
    for (const auto& entry : environment_of(request_, own_)) {
      // Variables that belong to this job only count as set by the script.
      const bool given = std::ranges::find(request_.variables, entry) != request_.variables.end() ||
                         entry.starts_with("SLURM_ARRAY_TASK_ID=");
      if (is_own_variable(entry)) continue;
      recording_.environment.push_back(without_own(entry, own_));
      if (given) recording_.given.push_back(entry.substr(0, entry.find('=')));
    }
  }

  /// A command that bash cannot expand is not traced: bash's message gives its line. 0 if the last line of
  /// the output is no such message.
  [[nodiscard]] std::uint32_t line_of_last_message() const {
    static const RE2 kLine(R"((.*): line (\d+): .*)");
    std::string of;
    std::uint32_t line = 0;
    const auto said = output();
    const auto trimmed = text::trim(said);
    const auto last = std::string(trimmed.substr(trimmed.rfind('\n') + 1));
    return RE2::FullMatch(last, kLine, &of, &line) && places_.is_the_script(of) ? line : 0;
  }

  /// The path of a script that does so node by node. It is recorded as a step.
  std::string start_on_each_node(const Words& script) {
    const auto nodes = request_.allocation.nodes;
    Words argv{"srun", fmt::format("--nodes={}", nodes), "--ntasks-per-node=1", "bash"};
    argv.insert(argv.end(), script.begin(), script.end());
    const auto& step = commands_.add_launcher(std::move(argv), folder());
    recording_.per_node = true;
    tasks_.starts(started_by(step.argv, request_.allocation)->tasks, request_.all_tasks);
    return scripts_.put(script_of_nodes(script, request_));
  }

  /// A PATH search tries each directory; a program found in none is recorded where it looks last.
  bool is_searched_elsewhere(const ProgramStart& start, const std::string& name) const {
    std::error_code error;
    const auto there = layer_.covers(start.path) || fs::exists(start.path, error);
    if (there || name.find('/') != std::string::npos) return false;
    const auto path = value_of(start.environment, "PATH").value_or("");
    return !path.empty() && !is_last_of_path(path, start.path, start.pid);
  }

  /// True if the program's directory is the last one of a PATH search.
  bool is_last_of_path(const std::string& path, const std::string& program, pid_t pid) const {
    const auto last = layer_.resolved(path.substr(path.rfind(':') + 1), true, pid);
    return last && *last == fs::path(program).parent_path();
  }

  [[nodiscard]] std::optional<std::string> printed_by(const Words& argv) const {
    const auto line = text::join(argv, " ");
    // A command in a shell's text or after a launcher belongs to the command that starts it.
    const bool starts_it = is_shell(argv[0]) || started_by(argv, request_.allocation).has_value();
    for (const auto& [part, said] : request_.prints)
      if (starts_it ? line.starts_with(part) : line.find(part) != std::string::npos) return said;
    return std::nullopt;
  }

  /// A marker that is recognized wherever it appears.
  [[nodiscard]] bool is_port_or_address(const Answer& said) const {
    const auto text = std::string(text::trim(said.text));
    return Allocation::is_port(text) || node_of(text).has_value();
  }

  /// bash really runs, and sh runs as bash, which traces what it does; a script that exists only on the
  /// cluster is recorded.
  std::string start_of_shell(const ProgramStart& start, const Words& argv, const std::string& program) {
    places_.becomes_shell(start.pid, reads_commands(argv));
    // A shell within the shell of a task is one of its commands.
    const auto parent = places_.parent_of(start.pid);
    const bool is_within = parent && tasks_.of(*parent);
    if (const auto task = task_of(start.environment); task && !is_within) {
      const auto* place = places_.of(start.pid);
      const auto step = launcher_of(start.environment);
      const auto line = step && *step < recording_.commands.size() ? recording_.commands[*step].line : 0;
      tasks_.began(start.pid, *task, line > 0 || place == nullptr ? line : place->line);
    }
    const auto file = script_of_shell(argv);
    if (file) {
      called_[start.pid] = (fs::path(start.folder) / *file).lexically_normal();
      const auto path = layer_.resolved(fs::path(start.folder) / *file, true, start.pid);
      std::error_code error;
      if (path && !fs::exists(layer_.map_to_read(*path), error)) {
        notes_.absent(*path);
        note(start, argv, Fate::recorded);
        return answer({"", failing_.is_now(recording_.commands) ? kFailed : 0});
      }
    }
    // This machine's login files are not those of the cluster.
    const bool login = std::ranges::any_of(argv, [](const auto& word) {
      return word == "--login" || (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.contains('l'));
    });
    if (login && !has(argv, "--noprofile"))
      return script("export BASH_ENV={}\nexec /bin/bash --noprofile \"$@\"\n", own_.start());
    const bool tells = program == "bash" && value_of(start.environment, "BASH_ENV") == own_.start();
    return tells ? start.path
                 : script("export BASH_ENV={} PATH=\"${{PATH:-/usr/bin:/bin}}:{}\"\nexec /bin/bash \"$@\"\n",
                          own_.start(), own_.programs());
  }

  /// The shell in a script's first line, with its options; empty for another program.
  std::optional<std::string> interpreter_of(const std::string& path) const {
    const auto where = layer_.map_to_read(path);
    const auto descriptor = sys::open_regular_file(where);
    if (!descriptor) return std::nullopt;
    std::array<char, 128> begin{};
    const std::string_view text(begin.data(), sys::read_up_to(descriptor->get(), begin));
    if (!text.starts_with("#!")) return std::nullopt;
    auto words = text::split(text::trim(text.substr(2, text.find('\n') - 2)), ' ');
    if (program_name(words[0]) == "env" && words.size() > 1) words.erase(words.begin());
    if (!is_shell(words[0])) return std::nullopt;
    words[0] = "/bin/bash";
    return text::shell_join(words);
  }

  /// Each time another one, as long as there are any; for a task always the same.
  std::string free_port(const ProgramStart& start) {
    if (task_of(start.environment)) return std::to_string(Allocation::kPortOfTask);
    const auto port = next_port_;
    if (next_port_ + 1 < Allocation::kPortOfTask) ++next_port_;
    return std::to_string(port);
  }

  std::uint32_t node_of_process(const ProgramStart& start) const {
    const auto task = task_of(start.environment);
    return task ? task->node : 0;
  }

  void note(const ProgramStart& start, Words argv, Fate fate) {
    const auto& command = commands_.add(start, std::move(argv), fate);
    if (fate == Fate::answered && !command.background && program_name(command.argv[0]) == "sleep")
      failing_.slept(command.argv);
    if (fate != Fate::answered) return waits_.acted();
    waits_.asked(command.line);
    if (request_.failing && waits_.too_many() && !counts_waits_)
      counts_waits_ = counts_turns(command.script, command.line);
  }

  /// True if something near this line compares numbers: the loop in which it waits gives up some time.
  [[nodiscard]] bool counts_turns(const std::string& script, std::uint32_t line) const {
    constexpr std::uint32_t kNear = 12;
    static const RE2 kCompares(
        R"re(\s-(?:ge|gt|le|lt|eq|ne)\s|\(\(|\bseq\s|\{\d+\.\.\d+\}|SECONDS|\btimeout\s)re");
    for (auto at = line > kNear ? line - kNear : 1; at <= line + kNear; ++at)
      if (RE2::PartialMatch(places_.text_of_line(script, at), kCompares)) return true;
    return false;
  }

  /// A script that this one starts exited with a failure before its end.
  void note_end_of_called(pid_t pid, int status) {
    const auto called = called_.find(pid);
    if (called == called_.end()) return;
    const auto script = std::exchange(called->second, {});
    called_.erase(called);
    const auto* place = places_.of_shell(pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 0 || place == nullptr ||
        !place->command.starts_with("exit ") || nothing_follows(layer_.map_to_read(script), place->line))
      return;
    recording_.ended_early.push_back({place->line, std::to_string(WEXITSTATUS(status)), script});
    traced_at_early_end_ = places_.trace().commands().size();
  }

  std::string answer(const Answer& said) {
    if (request_.per_node && waits_.ends_node()) return scripts_.put("kill -9 $PPID\n");
    return scripts_.answer(said.text, said.code);
  }

  template <class... T>
  std::string script(fmt::format_string<T...> format, T&&... arguments) {
    return scripts_.put(fmt::format(format, std::forward<T>(arguments)...));
  }

  const RecordRequest& request_;
  ScratchLayer& layer_;
  OwnFiles own_;
  Recording recording_;
  Pipes pipes_;
  Written written_;
  Notes notes_;
  Places places_;
  StandInScripts scripts_;
  AbsentFiles absent_files_;
  RecordedCommands commands_;
  Submissions submissions_;
  Failing failing_{request_};
  Tools tools_{layer_, own_, places_, written_, notes_, recording_};
  WatchedOutput output_{written_, notes_, pipes_, failing_};
  TasksOfShells tasks_{places_};
  std::size_t steps_ = 0;  ///< that have begun
  std::uint16_t next_port_ = Allocation::kFirstPort;
  static constexpr std::size_t kWaitsOfFailure = 720;        ///< then a server that has exited is not noticed
  static constexpr std::size_t kWaitsThatAreCounted = 3000;  ///< in a loop with a limit
  std::optional<bool> counts_waits_{};                       ///< the loop in which it waits has one
  Waits waits_{request_.failing ? Waits(kWaitsOfFailure) : Waits()};
  std::set<pid_t> launchers_;  ///< that run
  bool has_begun_ = true;
  bool lists_jobs_ = false;
  std::set<pid_t> in_background_;                           ///< that bash started with &
  std::set<pid_t> stand_ins_;                               ///< of programs
  std::map<std::string, std::set<std::uint32_t>> writers_;  ///< files that tasks wrote: their ranks
  std::map<pid_t, std::string> called_;                     ///< scripts that run, by their shells
  std::optional<std::size_t> traced_at_early_end_;          ///< of the last of them that failed
  std::set<pid_t> programs_;                                ///< processes that are no longer shells
};

/// Removed with all that is in it.
struct TemporaryFolder {
  fs::path path;
  ~TemporaryFolder() {
    std::error_code error;
    make_passable(path);
    fs::remove_all(path, error);
  }
  /// Restores access that a script removed with chmod.
  static void make_passable(const fs::path& folder) {
    std::error_code error;
    fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, error);
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      if (fs::is_directory(entry->symlink_status(error))) make_passable(entry->path());
    }
  }
};

}  // namespace

std::string Recording::broken_text() const {
  static const RE2 kBroken(R"((?m)^\S+: -c: (line \d+: (?:syntax error|unexpected EOF).*)$)");
  std::string said;
  RE2::PartialMatch(output, kBroken, &said);
  return said;
}

const Assignment* Recording::origin(const std::string& name, const std::string& value) const {
  const Assignment* found = nullptr;
  for (const auto& one : assignments) {
    if (one.name == name && one.value == value) found = &one;
  }
  return found;
}

namespace {

/// `signal` gets the signal that requested this process to stop meanwhile.
Result<Recording> record_until(const RecordRequest& request, int& signal) {
  const HeldSignals held;
  std::error_code error;
  auto name = (fs::temp_directory_path(error) / "nlaunch-record-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return failure("shell.scratch", "cannot create the directory {}; set TMPDIR to choose another place",
                   name);
  const TemporaryFolder scratch{fs::canonical(name, error)};
  const OwnFiles own{scratch.path / "own"};
  fs::create_directory(own.folder, error);
  fs::create_directory(scratch.path / "layer", error);
  ScratchLayer layer(scratch.path / "layer");
  Recorder recorder(request, layer, own);
  if (!recorder.prepare()) return failure("shell.scratch", "cannot write to {}", name);
  const sys::UniqueFd output(::open(own.output().c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  GuardedProgram program;
  program.argv = recorder.start_of_script();
  program.environment = environment_of(request, own);
  program.folder = recorder.folder();
  const sys::UniqueFd input(::open(own.input().c_str(), O_RDONLY | O_CLOEXEC));
  program.in = input.get();
  program.out = output.get();
  program.limits = request.limits;
  const auto end = run_guarded(program, layer, recorder);
  if (!end) return std::unexpected(end.error());
  signal = end->signal;
  auto recording = recorder.take(*end);
  constexpr std::size_t kKept = 64U << 10U;
  const auto said = recorder.output();
  recording.output = layer.without_layer(said.substr(said.size() - std::min(said.size(), kKept)));
  return recording;
}

}  // namespace

Result<Recording> record(const RecordRequest& request) {
  int signal = 0;
  auto recording = record_until(request, signal);
  if (signal == 0 && recording && recording->may_differ) {
    auto all = request;
    all.all_tasks = true;
    recording = record_until(all, signal);
  }
  if (signal != 0) ::raise(signal);
  return recording;
}

}  // namespace nlaunch::shell
