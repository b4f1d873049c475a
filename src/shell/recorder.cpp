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
#include "shell/notes.h"
#include "shell/pipes.h"
#include "shell/places.h"
#include "shell/recorded_commands.h"
#include "shell/stand_ins.h"
#include "shell/submissions.h"
#include "shell/tracee.h"
#include "shell/waits.h"
#include "sys/files.h"
#include "sys/proc.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

constexpr int kNotFound = 127;
constexpr int kFailed = 1;

bool is_mpi(const std::string& name) {
  return name.starts_with("mpi") || name == "orterun";
}

/// False for a line that closes a block, is a comment, or only prints or exits: it starts nothing.
bool is_command(std::string_view line) {
  constexpr std::array<std::string_view, 6> kCloses{"fi", "done", "esac", "}", ";;", "else"};
  constexpr std::array<std::string_view, 3> kStartNothing{"echo", "printf", "exit"};
  line = text::trim(line);
  const bool is_simple = line.find_first_of("`|;&") == std::string_view::npos && !line.contains("$(");
  const auto name = line.substr(0, line.find(' '));
  return !line.empty() && !line.starts_with('#') && std::ranges::find(kCloses, line) == kCloses.end() &&
         !(is_simple && std::ranges::find(kStartNothing, name) != kStartNothing.end());
}

/// True if the command on a line is the last of its file.
bool nothing_follows(const std::string& script, std::uint32_t line) {
  constexpr std::uint64_t kLargest = 1U << 20U;
  const auto content = sys::read_regular_file(script, kLargest);
  if (!content || line == 0) return false;
  const auto lines = text::split(*content, '\n');
  std::size_t next = line;  // counted from 0
  while (next < lines.size() && lines[next - 1].ends_with('\\')) ++next;
  return std::none_of(lines.begin() + static_cast<std::ptrdiff_t>(std::min(next, lines.size())), lines.end(),
                      is_command);
}

/// `while busy; do sleep 1; done; python b.py`: what is behind a loop on its last line.
bool something_follows_loop(const std::string& script, std::uint32_t line) {
  constexpr std::uint64_t kLargest = 1U << 20U;
  const auto content = sys::read_regular_file(script, kLargest);
  const auto lines = text::split(content.value_or(""), '\n');
  if (line == 0 || line > lines.size()) return false;
  static const RE2 kBehind(R"(\bdone\b[^;&|#]*(?:[;&|]+\s*)+[^\s;&|#)}])");
  return RE2::PartialMatch(lines[line - 1], kBehind);
}

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
    std::error_code error;
    if (!request_.chdir.empty() && !fs::exists(request_.chdir, error)) {
      recording_.not_here.push_back(request_.chdir);
      (void)layer_.make_folder(request_.chdir);
    }
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
    auto own = of_its_task(start);
    if (start.path == own_.other()) own.background = own.background || in_background_.contains(start.pid);
    auto program = stand_in_of(own);
    const bool is_new = recording_.commands.size() > known;
    has_begun_ = is_new && (recording_.commands.back().fate != Fate::answered ||
                            !file_of(start, STDOUT_FILENO).starts_with("pipe:"));
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

  /// After `env -i`, the environment does not tell the task; the process, or one above it, had another one.
  ProgramStart of_its_task(ProgramStart start) {
    places_.read();
    if (launcher_of(start.environment)) {
      auto& own = own_variables_[start.pid];
      own.clear();
      std::ranges::copy_if(start.environment, std::back_inserter(own), is_own_variable);
      return start;
    }
    constexpr int kDeepest = 50;
    std::optional<pid_t> pid = start.pid;
    for (int i = 0; pid && i < kDeepest; ++i, pid = places_.parent_of(*pid))
      if (const auto own = own_variables_.find(*pid); own != own_variables_.end()) {
        start.environment.insert(start.environment.end(), own->second.begin(), own->second.end());
        break;
      }
    return start;
  }

  std::string stand_in_of(const ProgramStart& start) {
    places_.read();
    if (fs::path(start.path).parent_path() == own_.answers()) return start.path;
    auto argv = start.argv;
    if (start.path == own_.other() && !argv.empty()) argv.erase(argv.begin());  // the handler's arguments
    if (argv.empty()) return answer({"", kNotFound});
    if (is_searched_elsewhere(start, argv[0])) return {};
    pipes_.note(start);
    const auto name = program_name(argv[0]);
    const auto program = program_name(start.path);
    // What goes where the script's own output does, nobody reads.
    const auto prints_to = file_of(start, STDOUT_FILENO);
    const bool is_seen_only = prints_to.empty() || prints_to == own_.output();
    if (const auto said = printed_by(argv); said && !is_seen_only) {
      recording_.printed.push_back({places_.line_of(start.pid), std::string(text::trim(*said))});
      note(start, std::move(argv), Fate::answered);
      return answer({*said + "\n"});
    }
    const bool runs = is_of_system(start.path) && only_computes(program) && !layer_.covers(start.path);
    if (runs && is_shell(program)) return start_of_shell(start, argv, program);
    if (runs) notes_.guess(places_.line_of(start.pid), start, argv, pipes_.writer_to(start));
    // `python train.py | grep -v Warning`: what the program prints is not known.
    const bool is_filter = runs && program.ends_with("grep") && !only_asks(start) &&
                           written_.is_of_job(file_of(start, STDIN_FILENO)) &&
                           !file_of(start, STDOUT_FILENO).starts_with("pipe:");
    if (is_filter) return answer({});
    if (runs && watches_output(start, argv)) {
      if (follows_file(argv)) shows_output_.insert(file_of(start, STDOUT_FILENO));
      const bool finds = !failing_.server_hangs() && looks_for_failure(start, argv) == failing_.server();
      const bool of_finished = shows_finished_.contains(file_of(start, STDIN_FILENO));
      if (failing_.has_begun() ? may_see_failure(start, argv) : of_finished)
        recording_.guessed.push_back({places_.line_of(start.pid), text::shell_join(argv)});
      note(start, std::move(argv), Fate::answered);
      return answer({"", finds ? 0 : kFailed});
    }
    if (runs && places_files(program)) {
      const bool can = sources_are_here(start, argv);
      written_.copied(start, argv);
      if (can) copies_[start.pid] = recording_.commands.size();
      note(start, std::move(argv), Fate::recorded);
      return can ? start.path : answer({});
    }
    if (runs && changes_files(program)) {
      const bool in_task = task_of(start.environment).has_value();
      if (in_task)
        note(start, argv, Fate::recorded);
      else
        notes_.done_here(places_.line_of(start.pid), argv);
      if (program == "mkdir" && !in_task) written_.mkdir(start, argv);
      return start.path;
    }
    if (runs && program == "xargs") note_xargs(start, argv);
    if (runs && program == "sed") note_edited(start, argv);
    if (runs) {
      static const Options kOfNow{"date", "mktemp", "nproc", "id", "whoami", "uuidgen", "shuf", "uname"};
      if (program == "date" && has(argv, fmt::format("@{}", failing_.now()))) return start.path;
      if (kOfNow.contains(program)) notes_.made_up(places_.line_of(start.pid), start, argv);
      // The same for all tasks.
      if (program == "date" && tells_time(argv))
        return script("exec /usr/bin/date -d @{} \"$@\"\n", failing_.now());
      if (auto path = canonical_path(start, argv)) return answer({*path + "\n"});
      const bool finds_own = program == "which" && names_own_program(argv);
      if (finds_own || looks_at_this_machine(argv)) notes_.made_up(places_.line_of(start.pid), start, argv);
      if (program == "tee") note_tee(start, argv);
      if (program.ends_with("awk") && file_of(start, STDIN_FILENO).starts_with("pipe:"))
        awks_[start.pid] = {places_.line_of(start.pid), text::shell_join(argv)};
      static const Options kShow{"cat",  "tac", "head", "tail", "sed", "awk",
                                 "gawk", "cut", "sort", "tr",   "uniq"};
      if (kShow.contains(program)) note_shown(start, argv);
      const auto out = file_of(start, STDOUT_FILENO);
      const bool writes =
          out.starts_with('/') && out != "/dev/null" && !out.starts_with(own_.folder.native());
      notes_.read_by(places_.line_of(start.pid), start, argv, writes);
      notes_.contents(places_.line_of(start.pid), start, argv, writes);
      return start.path;
    }
    if (auto interpreter = interpreter_of(start.path))
      return script("exec {} {} \"$@\"\n", *interpreter, text::shell_quote(start.path));
    if (auto said = answer_of(argv, request_.allocation, node_of_process(start))) {
      if (failing_.concerns(argv) || commands_.asks_killed(argv)) said = Answer{"", kFailed};
      if (Allocation::is_port(text::trim(said->text))) said->text = free_port(start) + "\n";
      static const Options kKnown{"hostname",      "getent", "host",  "dig",    "nslookup", "ray",
                                  "get_free_port", "conda",  "mamba", "sbatch", "curl",     "wget"};
      const bool of_user = name == "getent" && (has(argv, "passwd") || has(argv, "group"));
      const bool lists_hosts = name == "scontrol" && !has(argv, "job");
      if (of_user || is_page(*said) || (!kKnown.contains(name) && !lists_hosts && !is_port_or_address(*said)))
        notes_.made_up(places_.line_of(start.pid), start, argv);
      if (asks_by_exit_code(argv) && !file_of(start, STDOUT_FILENO).starts_with("pipe:"))
        recording_.guessed.push_back({places_.line_of(start.pid), text::shell_join(argv)});
      if (auto job = name == "sbatch" ? submissions_.read(start, argv) : std::nullopt)
        recording_.submitted.push_back(std::move(*job));
      note(start, std::move(argv), Fate::answered);
      const auto until = name == "sleep" && failing_.server() ? until_of(start.environment) : std::nullopt;
      if (until && failing_.now() >= *until) return script("kill -TERM $PPID\n");
      return answer(failing_.is_now(recording_.commands) ? Answer{"", kFailed} : *said);
    }
    const auto started = started_by(argv, request_.allocation);
    note(start, std::move(argv), started ? Fate::launcher : Fate::recorded);
    if (!started) return answer({"", failing_.is_now(recording_.commands) ? kFailed : 0});
    launchers_.insert(start.pid);
    note_unrecorded(started->tasks);
    StartOfTasks how{recording_.commands.size() - 1, steps_, is_mpi(name), {}};
    if (name == "timeout" && failing_.server()) how.until = end_of_timeout(started->argv);
    if (!started->tasks.empty()) ++steps_;
    return scripts_.put(script_of_tasks(*started, how, request_, own_));
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
    const bool answers = failing_.silent()
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
  [[nodiscard]] bool never_ends() const override { return failing_.server_hangs(); }
  void on_kill(pid_t pid) override { commands_.killed(pid); }
  [[nodiscard]] bool may_be_ahead() const override { return failing_.may_be_ahead(); }
  [[nodiscard]] std::chrono::seconds ahead() const override { return failing_.ahead(); }
  void on_fork(pid_t parent, pid_t child) override {
    places_.read();
    places_.forked(parent, child, is_in_front(parent));
    xargs_.erase(parent);
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
    own_variables_.erase(pid);
    places_.read();
    places_.ended(pid);
    if (const auto one = awks_.find(pid); one != awks_.end()) {
      constexpr int kError = 2;  // of mawk and gawk: the program is wrong
      if (WIFEXITED(status) && WEXITSTATUS(status) == kError) recording_.broken.push_back(one->second);
      awks_.erase(one);
    }
    if (const auto one = xargs_.find(pid); one != xargs_.end()) {
      recording_.idle.push_back(one->second);
      xargs_.erase(one);
    }
    programs_.erase(pid);
    if (const auto copy = copies_.find(pid); copy != copies_.end()) {
      recording_.commands[copy->second].fails = status != 0;
      copies_.erase(copy);
    }
    note_end_of_called(pid, status);
    const auto shell = shells_of_tasks_.find(pid);
    if (shell == shells_of_tasks_.end()) return;
    constexpr int kSignal = 128;
    const auto code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignal + WTERMSIG(status);
    auto line = shell->second;
    shells_of_tasks_.erase(shell);
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
  [[nodiscard]] bool has_seen_enough() const override { return waits_.too_many() && !request_.per_node; }

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
                                   .in_task = task_of_shell(pid).has_value()},
                                  path);
  }

  void on_change(pid_t pid, const std::string& path) override {
    if (task_of_shell(pid)) written_.by_task(path);
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
    keep_shells_above();
    keep_environment();
    recording_.all_tasks = request_.all_tasks;
    recording_.may_differ = !request_.all_tasks && branches_by_task();
    commands_.finish();
    recording_.stopped = end.stopped.empty() && waits_.node_waited() ? "waits" : end.stopped;
    // A slow machine does not get to the limit of questions.
    const bool waits_for_failed =
        failing_.server() && recording_.stopped == "time" && waits_.in_a_row() > kWaitsOfFailure / 4;
    if (waits_for_failed) recording_.stopped = "waits";
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
  void note_tee(const ProgramStart& start, const Words& argv) {
    written_.tee(start, argv);
    if (has(argv, "-a") || has(argv, "--append")) return;
    for (std::size_t i = 1; i < argv.size(); ++i)
      if (!argv[i].starts_with('-'))
        recording_.teed.push_back({places_.line_of(start.pid),
                                   (fs::path(start.folder) / argv[i]).lexically_normal().native(),
                                   places_.of(start.pid) == nullptr ? "" : places_.of(start.pid)->script});
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
    note_unrecorded(started_by(step.argv, request_.allocation)->tasks);
    return scripts_.put(script_of_nodes(script, request_));
  }

  /// The size of a step in which some tasks represent others.
  void note_unrecorded(const std::vector<Task>& tasks) {
    const auto recorded = recorded_for(tasks, request_.all_tasks);
    for (std::size_t i = 0; i < recorded.size(); ++i)
      if (recorded[i] != i) unrecorded_ = std::max(unrecorded_, tasks.size());
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

  /// The output of a recorded program is among its arguments.
  [[nodiscard]] bool names_output(const ProgramStart& start, const Words& argv) const {
    return std::ranges::any_of(argv, [&](const auto& word) { return is_output(start, word); });
  }

  [[nodiscard]] bool is_output(const ProgramStart& start, const std::string& word) const {
    return written_.is_made_by_job((fs::path(start.folder) / word).lexically_normal());
  }

  /// `grep -qi error server.log`: nothing goes wrong here. The name of the log says nothing.
  [[nodiscard]] bool looks_for_failure(const ProgramStart& start, const Words& argv) const {
    return program_name(argv[0]).ends_with("grep") && std::ranges::any_of(argv, [&](const auto& word) {
             return names_failure(word) && !is_output(start, word);
           });
  }

  /// `tail -1 train.log |`: what it prints is made of the output of a recorded program.
  void note_shown(const ProgramStart& start, const Words& argv) {
    const auto in = file_of(start, STDIN_FILENO);
    const auto out = file_of(start, STDOUT_FILENO);
    const bool finished =
        shows_finished_.contains(in) || std::ranges::any_of(argv, [&](const auto& word) {
          return notes_.is_finished_output((fs::path(start.folder) / word).lexically_normal());
        });
    if (names_output(start, argv) || shows_output_.contains(in)) shows_output_.insert(out);
    if (finished) shows_finished_.insert(out);
  }

  /// It looks at the output of what has failed: what it finds there is not known.
  [[nodiscard]] bool may_see_failure(const ProgramStart& start, const Words& argv) const {
    return failing_.server() || !names_output(start, argv) ||
           std::ranges::any_of(argv, [&](const auto& word) {
             return failing_.wrote((fs::path(start.folder) / word).lexically_normal());
           });
  }

  static std::string file_of(const ProgramStart& start, int descriptor) {
    const auto found = start.files.find(descriptor);
    return found == start.files.end() ? std::string() : found->second;
  }

  /// `grep -q ready server.log` on the output of a recorded program, `cat server.log | grep -q ready`, and
  /// any `tail -f`, which does not end.
  [[nodiscard]] bool watches_output(const ProgramStart& start, const Words& argv) const {
    const auto name = program_name(argv[0]);
    const bool looks = name == "grep" || name == "egrep";
    const auto in = file_of(start, STDIN_FILENO);
    // `curl -s localhost:8000/v1/models | grep -q NAME`
    const auto writer = looks && only_asks(start) ? pipes_.writer_to(start) : Words();
    if (!writer.empty() && asks_by_http(writer) && asks_host(writer)) return true;
    const bool wants_output = !only_asks(start) && file_of(start, STDOUT_FILENO).starts_with("pipe:");
    return follows_file(argv) || (looks && !wants_output && names_output(start, argv)) ||
           (looks && in.starts_with("pipe:") && shows_output_.contains(in));
  }

  /// A marker that is recognized wherever it appears.
  [[nodiscard]] bool is_port_or_address(const Answer& said) const {
    const auto text = std::string(text::trim(said.text));
    return Allocation::is_port(text) || node_of(text).has_value();
  }

  /// The current time, not that of a given moment or a file.
  static bool tells_time(const Words& argv) {
    return std::ranges::none_of(argv, [](const auto& word) {
      return word.starts_with("-d") || word.starts_with("-f") || word.starts_with("-r") ||
             word.starts_with("-s") || word.starts_with("--date") || word.starts_with("--file") ||
             word.starts_with("--reference") || word.starts_with("--set");
    });
  }

  /// `realpath PATH`, `readlink -f PATH` of what is not here: nothing says that it is a link.
  [[nodiscard]] std::optional<std::string> canonical_path(const ProgramStart& start,
                                                          const Words& argv) const {
    const auto name = program_name(argv[0]);
    const bool asks =
        (name == "realpath" &&
         std::ranges::none_of(argv, [](const auto& word) { return word.starts_with("--relative"); })) ||
        (name == "readlink" && (has(argv, "-f") || has(argv, "-m") || has(argv, "-e") ||
                                has(argv, "--canonicalize") || has(argv, "-en") || has(argv, "-fn")));
    if (!asks || argv.size() < 2 || argv.back().empty() || argv.back().starts_with('-')) return std::nullopt;
    const auto path = (fs::path(start.folder) / argv.back()).lexically_normal();
    const auto resolved = layer_.resolved(path, true, start.pid);
    std::error_code error;
    if (resolved && fs::exists(layer_.map_to_read(*resolved), error)) return std::nullopt;
    auto text = path.native();
    if (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
  }

  /// True if a program is found only because the recorder has put it there.
  [[nodiscard]] bool names_own_program(const Words& argv) const {
    return std::ranges::any_of(argv, [&](const auto& word) {
      std::error_code error;
      return word.find('/') == std::string::npos && fs::exists(own_.programs() + "/" + word, error);
    });
  }

  /// `ls /sys/class/net`, `cat /proc/meminfo`
  static bool looks_at_this_machine(const Words& argv) {
    return std::ranges::any_of(argv, [](const auto& word) {
      return word.starts_with("/sys/") ||
             (word.starts_with("/proc/") && !word.starts_with("/proc/sys/kernel/random"));
    });
  }

  /// What it does is part of the job, and the script may build on it here.
  static bool places_files(const std::string& program) {
    constexpr std::array<std::string_view, 5> kNames{"cp", "mv", "ln", "install", "dd"};
    return std::ranges::find(kNames, program) != kNames.end();
  }

  /// Until it starts something.
  void note_xargs(const ProgramStart& start, const Words& argv) {
    static const Options kValued{"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s"};
    const auto words = rest(argv, program_at(argv, 1, kValued));
    if (!words.empty() && !only_computes(program_name(words[0])))
      xargs_[start.pid] = {places_.line_of(start.pid), text::shell_join(words)};
  }

  [[nodiscard]] bool sources_are_here(const ProgramStart& start, const Words& argv) const {
    std::vector<fs::path> paths;
    for (std::size_t i = 1; i < argv.size(); ++i)
      if (!argv[i].starts_with('-')) paths.push_back(fs::path(start.folder) / argv[i]);
    if (paths.size() < 2) return false;
    paths.back() = paths.back().parent_path();
    const bool links = program_name(argv[0]) == "ln";
    if (links) paths.erase(paths.begin(), paths.end() - 1);
    return std::ranges::all_of(paths, [&](const auto& path) {
      const auto resolved = layer_.resolved(path, true, start.pid);
      std::error_code error;
      return resolved && fs::exists(layer_.map_to_read(*resolved), error);
    });
  }

  /// bash really runs, and sh runs as bash, which traces what it does; a script that exists only on the
  /// cluster is recorded.
  std::string start_of_shell(const ProgramStart& start, const Words& argv, const std::string& program) {
    places_.becomes_shell(start.pid, reads_commands(argv));
    // A shell within the shell of a task is one of its commands.
    const auto parent = places_.parent_of(start.pid);
    const bool is_within = parent && task_of_shell(*parent);
    if (const auto task = task_of(start.environment); task && !is_within) {
      tasks_.try_emplace(start.pid, *task);
      const auto* place = places_.of(start.pid);
      const auto step = launcher_of(start.environment);
      const auto line = step && *step < recording_.commands.size() ? recording_.commands[*step].line : 0;
      shells_of_tasks_.try_emplace(start.pid, line > 0 || place == nullptr ? line : place->line);
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
    if (fate == Fate::answered)
      waits_.asked(command.line);
    else
      waits_.acted();
  }

  /// `sed -i SCRIPT FILE` on a file that exists only on the cluster.
  void note_edited(const ProgramStart& start, const Words& argv) {
    const bool in_place = std::ranges::any_of(
        argv, [](const auto& word) { return word.starts_with("-i") || word.starts_with("--in-place"); });
    const auto path = layer_.resolved(fs::path(start.folder) / argv.back(), true, start.pid);
    std::error_code error;
    if (in_place && path && !fs::exists(layer_.map_to_read(*path), error))
      notes_.unread(places_.line_of(start.pid), *path);
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

  // --- Tasks that others stand for ---

  /// True if a task compares its number with that of a task that was not recorded: `[ $SLURM_NODEID -eq 5 ]`.
  [[nodiscard]] bool branches_by_task() const {
    return unrecorded_ > 0 &&
           std::ranges::any_of(places_.trace().commands(), [&](const TracedCommand& command) {
             const auto task = task_of_shell(command.shell);
             return task && compares_tasks(command.text, *task, unrecorded_);
           });
  }

  [[nodiscard]] std::optional<Task> task_of_shell(pid_t pid) const {
    constexpr int kDeepest = 50;
    for (int i = 0; i < kDeepest; ++i) {
      const auto found = tasks_.find(pid);
      if (found != tasks_.end()) return found->second;
      const auto parent = places_.parent_of(pid);
      if (!parent) return std::nullopt;
      pid = *parent;
    }
    return std::nullopt;
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
  std::size_t steps_ = 0;  ///< that have begun
  std::uint16_t next_port_ = Allocation::kFirstPort;
  static constexpr std::size_t kWaitsOfFailure = 720;  ///< then a server that has exited is not noticed
  Waits waits_{request_.failing ? Waits(kWaitsOfFailure) : Waits()};
  std::map<pid_t, std::uint32_t> shells_of_tasks_;  ///< the lines of their steps
  std::set<pid_t> launchers_;                       ///< that run
  bool has_begun_ = true;
  std::set<pid_t> in_background_;                            ///< that bash started with &
  std::set<pid_t> stand_ins_;                                ///< of programs
  std::map<pid_t, std::string> called_;                      ///< scripts that run, by their shells
  std::optional<std::size_t> traced_at_early_end_;           ///< of the last of them that failed
  std::map<pid_t, std::vector<std::string>> own_variables_;  ///< of processes in a launcher
  std::map<pid_t, Task> tasks_;                              ///< of the shells that began them
  std::size_t unrecorded_ = 0;            ///< tasks of the largest step that was not recorded completely
  std::map<pid_t, std::size_t> copies_;   ///< cp and similar programs that run here: which command
  std::map<pid_t, Absent> awks_;          ///< those that read a pipe
  std::map<pid_t, Absent> xargs_;         ///< those that have started nothing
  std::set<std::string> shows_output_;    ///< pipes into which `cat` prints the output of a recorded program
  std::set<std::string> shows_finished_;  ///< those of one that has run
  std::set<pid_t> programs_;              ///< processes that are no longer shells
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
