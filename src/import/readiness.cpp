#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "import/job.h"
#include "shell/allocation.h"
#include "shell/answers.h"

namespace nlaunch::import {
namespace {

constexpr const char* kOtherTimeout = "10m";
/// A query that a script repeats so often without an answer is a wait.
constexpr std::size_t kTimesOfWait = 2;

/// The port that an argument of a server names: "--port 8000", "--bind=0.0.0.0:8000".
bool names_port(const shell::Words& argv, const std::string& port) {
  return std::ranges::any_of(argv, [&](const auto& word) {
    return word == port || word.ends_with("=" + port) || word.ends_with(":" + port);
  });
}

/// True for a curl that sends something: it is not a wait, and acts once.
bool sends(const shell::Words& argv) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto& word = argv[i];
    const bool method = word == "-X" || word == "--request";
    if (method && i + 1 < argv.size() && argv[i + 1] != "GET" && argv[i + 1] != "HEAD") return true;
    if (word == "-d" || word == "-F" || word == "-T" || word.starts_with("-XP") ||
        word.starts_with("--data") || word.starts_with("--json") || word.starts_with("--form") ||
        word.starts_with("--post-"))
      return true;
  }
  return false;
}

/// "node:8000" of "http://node:8000/health".
std::string host_of_url(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return std::string(url.substr(0, url.find_first_of("/?")));
}

/// What grep looks for, as RE2 reads it; nothing if that is not known.
std::optional<std::string> pattern_of_grep(const shell::Words& argv) {
  std::string flags = shell::program_name(argv[0]).substr(0, 1);  // egrep, fgrep
  std::optional<std::string> pattern;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto& word = argv[i];
    if (word.starts_with("--") || (word.size() == 2 && word[0] == '-' && (word[1] == 'm' || word[1] == 'f')))
      return std::nullopt;
    if (word == "-e" && i + 1 < argv.size()) {
      pattern = argv[++i];
    } else if (word.size() > 1 && word[0] == '-') {
      flags += word.substr(1);
    } else if (!pattern) {
      pattern = word;
    }
  }
  const auto has = [&](const char* any) { return flags.find_first_of(any) != std::string::npos; };
  if (!pattern || has("vfLxw")) return std::nullopt;
  std::string expression = has("F") ? RE2::QuoteMeta(*pattern) : *pattern;
  if (!has("eEPF")) {  // a basic expression, in which these characters stand for themselves
    expression.clear();
    for (std::size_t i = 0; i < pattern->size(); ++i) {
      const char c = (*pattern)[i];
      const bool escaped = c == '\\' && i + 1 < pattern->size();
      const char next = escaped ? (*pattern)[++i] : c;
      const bool special = std::string_view("+?(){}|").contains(next);
      if (special != escaped) expression += '\\';
      expression += next;
    }
  }
  if (has("i")) expression = "(?i)" + expression;
  return RE2(expression, RE2::Quiet).ok() ? std::optional(expression) : std::nullopt;
}

class Readiness {
 public:
  explicit Readiness(Job& job) : job_(job) {}

  void find() {
    for (std::size_t i = 0; i < job_.recording.commands.size(); ++i) {
      const auto& command = job_.recording.commands[i];
      const bool given = std::ranges::any_of(
          job_.recording.printed, [&](const shell::Absent& one) { return one.line == command.line; });
      if (command.fate != shell::Fate::answered || given) continue;
      const auto name = shell::program_name(command.argv[0]);
      if (name == "curl" || name == "wget") {
        for (const auto& word : command.argv) asks_by_http(i, word);
      } else if ((name == "nc" || name == "ncat") && command.argv.size() > 2) {
        asks_port(i, command.argv[command.argv.size() - 2], command.argv.back());
      } else if (name.ends_with("grep") || name == "tail") {
        watches_log(i);
      } else if (command.argv[0].starts_with(shell::kConnection)) {
        const auto place = std::string_view(command.argv[0]).substr(shell::kConnection.size());
        const auto slash = place.rfind('/');
        asks_port(i, std::string(place.substr(0, slash)), std::string(place.substr(slash + 1)));
      }
    }
    for (const auto& file : job_.recording.waited_for) waits_for_file(file);
  }

 private:
  /// `until grep -q ready server.log`, `tail -f server.log | grep -m1 ready`: it waits for a line of a
  /// program in the background.
  void watches_log(std::size_t command) {
    const auto& asks = job_.recording.commands[command];
    const bool looks = shell::program_name(asks.argv[0]) != "tail";
    const bool follows = shell::has(asks.argv, "-f") || shell::has(asks.argv, "-F");
    const auto i = writer_of(asks);
    if (!i || asks.background || !(looks || follows) || shell::names_failure(text::join(asks.argv, " ")))
      return;
    auto& role = job_.out.roles[*i];
    auto& part = job_.out.parts[job_.kept[*i].part];
    const auto pattern = looks ? pattern_of_grep(asks.argv) : std::nullopt;
    if (pattern && (!role.ready || role.ready->line == 0)) {  // also in place of an engine's default
      role.ready = ImportedReady{.log = escaped(*pattern), .timeout = kServerTimeout, .line = asks.line};
      job_.out.became[command] = fmt::format("`ready` of {}", role.name);
    } else if (!pattern && part.problem.empty()) {
      part.problem = fmt::format(
          "after it, the script waits for a line of its output (line {}) in a way that import does not "
          "recognise: use until grep -q LINE FILE, or wait for its port (nc, curl)",
          asks.line);
    }
  }

  /// The last program in the background before a command that writes a file of its arguments.
  [[nodiscard]] std::optional<std::size_t> writer_of(const shell::RecordedCommand& asks) const {
    std::optional<std::size_t> found;
    bool is_before_others = false;
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      const auto& part = job_.part_of(job_.kept[i]);
      const auto& first = job_.recording.commands[part.commands[0]];
      if (&first > &asks) is_before_others = true;
      const auto file = first.files.find(1);
      if (&first > &asks || !part.background || job_.kept[i].exits) continue;
      const bool is_named = std::ranges::any_of(asks.argv, [&](const auto& word) {
        const auto path = (std::filesystem::path(asks.folder) / word).lexically_normal();
        return (file != first.files.end() && path == file->second) || is_copied_to(part, word);
      });
      if (is_named) found = i;
    }
    return is_before_others ? found : std::nullopt;
  }

  /// `server | tee server.log &`
  [[nodiscard]] bool is_copied_to(const Part& part, const std::string& file) const {
    return std::ranges::any_of(job_.recording.traced, [&](const auto& one) {
      return one.line == part.line && one.script == part.script && one.text.starts_with("tee ") &&
             shell::has(shell::words_of(one.text), file);
    });
  }

  void asks_port(std::size_t command, const std::string& host, const std::string& port) {
    if (ready_at(command, port, "")) return;
    shell::Allocation::names_host(host) ? waits_for_nobody(command) : asks_elsewhere(command, host);
  }

  void asks_by_http(std::size_t command, const std::string& word) {
    const auto port = port_of_url(word);
    const auto& asks = job_.recording.commands[command];
    const bool is_url = port || word.starts_with("http://") || word.starts_with("https://");
    if (!is_url) return;
    if (!shell::Allocation::names_host(word)) return asks_elsewhere(command, host_of_url(word));
    if (sends(asks.argv)) {
      sends_once(command, word);
    } else if (port && !ready_at(command, *port, word)) {
      waits_for_nobody(command);
    }
  }

  /// A query to a generating server has no lasting effect; the effect of other requests is unknown.
  void sends_once(std::size_t command, const std::string& url) {
    const auto& asks = job_.recording.commands[command];
    const auto what = fmt::format("this {} sends a single request to {}", shell::program_name(asks.argv[0]),
                                  text::printable(host_of_url(url)));
    if (url.find("/v1/") == std::string::npos && !url.ends_with("/generate"))
      return job_.out.not_said.push_back(
          {asks.line, what + ", which no role can do: let a program of the job send it"});
    job_.out.became[command] = "left out: it sends a single request";
    job_.remark(asks.line, what + ": it is not imported");
  }

  void asks_elsewhere(std::size_t command, const std::string& host) {
    const auto& asks = job_.recording.commands[command];
    auto text =
        fmt::format("this {} sends a request to {}, which is not a host of the job: it is not imported",
                    shell::program_name(asks.argv[0]), text::printable(host));
    job_.out.became[command] = "left out: it sends a request to a host outside the job";
    auto& notes = job_.out.remarks[Destination::roles];
    if (std::ranges::find(notes, text, &Remark::text) == notes.end())
      notes.push_back({asks.line, std::move(text)});
  }

  /// "8000" of "http://node:8000/health", and of "localhost:8000/health".
  static std::optional<std::string> port_of_url(std::string_view url) {
    if (url.starts_with("https:") || url.starts_with('-')) return std::nullopt;
    const auto scheme = url.find("://");
    if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
    const auto host = url.substr(0, url.find('/'));
    const auto colon = host.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto port = host.substr(colon + 1);
    return text::whole_number<std::uint16_t>(port) ? std::optional(std::string(port)) : std::nullopt;
  }

  /// A wait that no role is known to answer becomes a separate role that runs before what follows.
  void waits_for_nobody(std::size_t command) {
    const auto& asks = job_.recording.commands[command];
    const auto next = std::ranges::find_if(
        job_.kept, [&](const Kept& kept) { return job_.part_of(kept).commands[0] > command; });
    if (next == job_.kept.end()) return;  // it blocks nothing
    const bool connects = asks.argv[0].starts_with(shell::kConnection);
    if (connects &&
        std::ranges::count(job_.recording.commands, asks.argv, &shell::RecordedCommand::argv) == 1) {
      job_.out.became[command] = "left out: nobody answered";
      return job_.remark(asks.line,
                         "the script checks whether this port is in use; while recording, it was free");
    }
    const auto* silence = silence_at(asks.line);
    const bool tries = std::ranges::any_of(asks.argv, [](const auto& word) {
      return word.starts_with("--retry") || word.starts_with("--tries") || word == "-t";
    });
    if (silence != nullptr && !tries && silence->times > 0 && silence->times < kTimesOfWait)
      return checks_once(command, *silence);
    if (asks.task)
      return job_.out.not_said.push_back(
          {asks.line, fmt::format("a task of a step waits for an answer to `{}`, but no program that the "
                                  "script starts is known to answer it: start that program with a command "
                                  "that names its port (--port N)",
                                  text::printable(text::shell_join(asks.argv)))});
    const auto known = std::ranges::find_if(job_.out.roles, [&](const auto& role) {
      return role.asks && job_.recording.commands[*role.asks].argv == asks.argv;
    });
    if (known != job_.out.roles.end()) return;
    ImportedRole role;
    role.name = job_.free_name("wait");
    role.asks = command;
    role.line = asks.line;
    const bool compares = std::ranges::any_of(
        asks.argv, [](const auto& word) { return word.find("http_code") != std::string::npos; });
    role.command = {"bash", "-c",
                    compares   ? "until \"$@\" | grep -q '200$'; do sleep 5; done"
                    : connects ? "until (: > \"$1\") 2> /dev/null; do sleep 5; done"
                               : "until \"$@\"; do sleep 5; done",
                    "wait"};
    for (const auto& word : asks.argv) role.command.push_back(escaped(word));
    role.ready = ImportedReady{.exited = true, .line = 0};
    role.remarks.push_back(
        {asks.line, "it waits as the script does, until this exits with code 0" + limit_of(silence)});
    job_.out.became[command] = role.name;
    job_.preparing.push_back({next->stage, Before::waits, role.name});
    job_.out.roles.push_back(std::move(role));
  }

  /// What the script does without an answer to the query on a line; nullptr: it was not tried.
  [[nodiscard]] const lint::Unanswered* silence_at(std::uint32_t line) const {
    const auto found = std::ranges::find(job_.script.unanswered, line, &lint::Unanswered::line);
    return found == job_.script.unanswered.end() ? nullptr : &*found;
  }

  /// What the script does when it has asked often enough.
  [[nodiscard]] std::string limit_of(const lint::Unanswered* silence) const {
    if (silence == nullptr || silence->waits || !silence->exit_code || silence->times < kTimesOfWait)
      return {};
    const bool same = silence->others.empty() && silence->missing.empty();
    return fmt::format(
        "; after {} times without an answer the script {}, and the run waits on", silence->times,
        *silence->exit_code != job_.recording.exit_code ? fmt::format("ends with {}", *silence->exit_code)
        : same                                          ? "goes on"
                                                        : "does something else");
  }

  /// `curl -s localhost:8000/health && echo up`: it asks, and goes on either way.
  void checks_once(std::size_t command, const lint::Unanswered& otherwise) {
    const auto& asks = job_.recording.commands[command];
    const auto query = text::printable(text::shell_join(asks.argv));
    job_.out.became[command] = "left out: it only asks";
    std::string then;
    if (!otherwise.others.empty())
      then = fmt::format("it starts {} (line {})", text::printable(otherwise.others[0].name),
                         otherwise.others[0].line);
    else if (!otherwise.missing.empty())
      then = fmt::format("it does not start {} (line {})", text::printable(otherwise.missing[0].name),
                         otherwise.missing[0].line);
    else if (otherwise.exit_code && *otherwise.exit_code != job_.recording.exit_code)
      then = fmt::format("it exits with {}", *otherwise.exit_code);
    if (then.empty())
      return job_.remark(asks.line, fmt::format("the script asks `{}` once, and starts the same programs "
                                                "whether it gets an answer or not: it is not imported",
                                                query));
    job_.out.not_said.push_back(
        {asks.line,
         fmt::format("the script asks `{}` once, and if nobody answers, {}: a plan cannot do one or the "
                     "other. Take the check out, and leave in the script what is to happen",
                     query, then)});
  }

  /// `while [ ! -f ready.txt ]; do sleep 5; done`
  void waits_for_file(const shell::AwaitedFile& file) {
    const auto next = std::ranges::find_if(
        job_.kept, [&](const Kept& kept) { return job_.part_of(kept).commands[0] >= file.command; });
    if (next == job_.kept.end()) return;  // it blocks nothing
    if (file.in_task)
      return job_.out.not_said.push_back(
          {file.line,
           fmt::format("a task of a step waits for the file {}, which no role can do: let its program "
                       "wait",
                       text::printable(file.name))});
    ImportedRole role;
    role.name = job_.free_name("wait");
    role.line = file.line;
    role.command = {"bash", "-c", fmt::format("until [ {} \"$1\" ]; do sleep 5; done", file.test), "wait",
                    escaped(file.name)};
    role.ready = ImportedReady{.exited = true, .line = 0};
    role.remarks.push_back({file.line, fmt::format("it waits until {} is there, however long that takes",
                                                   text::printable(file.name))});
    job_.preparing.push_back({next->stage, Before::waits, role.name});
    job_.out.roles.push_back(std::move(role));
  }

  /// Ray's own ports; the readiness of its workers covers them.
  [[nodiscard]] bool is_port_of_ray(const std::string& port) const {
    return std::ranges::any_of(job_.kept, [&](const auto& kept) {
      return is_ray(kept) &&
             (port == "8265" || port == "6379" || names_port(job_.part_of(kept).program, port));
    });
  }

  /// Returns false if no role is known to answer.
  bool ready_at(std::size_t command, const std::string& port, const std::string& url) {
    if (is_port_of_ray(port)) return true;
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      auto& role = job_.out.roles[i];
      const auto& part = job_.part_of(job_.kept[i]);
      const bool beside = part.in_step && job_.step_of(part.commands[0]) == job_.step_of(command);
      const auto server = node_of_server(part.program);
      if ((part.commands[0] > command && !beside) || job_.kept[i].exits || job_.kept[i].main ||
          is_ray(job_.kept[i]) || server == ServerNode::other)
        continue;
      const bool own = role.ready && role.ready->http.contains(":" + port + "/");
      const bool by_default = job_.kept[i].work.work == Work::engine && !option_of(part.program, "--port") &&
                              port == port_of_engine(part);
      if (!own && !by_default && !names_port(part.program, port)) continue;
      const auto path = url.find('/', url.find("://") == std::string::npos ? 0 : url.find("://") + 3);
      const bool is_local =
          url.find("localhost") != std::string::npos || url.find("127.0.0.1") != std::string::npos;
      const auto host = server == ServerNode::differs_by_task ? fmt::format("${{role.{}.0.host}}", role.name)
                        : is_local                            ? "127.0.0.1"
                                                              : "${self.host}";
      const auto* timeout = role.kind == RoleKind::engine ? kServerTimeout : kOtherTimeout;
      role.ready = ImportedReady{.timeout = timeout, .line = job_.recording.commands[command].line};
      if (url.empty())
        role.ready->tcp = fmt::format("{}:{}", host, port);
      else
        role.ready->http = fmt::format("http://{}:{}{}", host, port,
                                       path == std::string::npos ? "/" : escaped(url.substr(path)));
      job_.out.became[command] = fmt::format("`ready` of {}", role.name);
      return true;
    }
    return false;
  }

  Job& job_;
};

}  // namespace

namespace {

/// Between these two commands. Its loop sleeps.
bool waits_for_a_file(const Job& job, std::size_t first, std::size_t last) {
  return std::ranges::any_of(job.recording.waited_for, [&](const shell::AwaitedFile& file) {
    return file.command > first && file.command <= last;
  });
}

}  // namespace

void import_delays(Job& job) {
  for (std::size_t i = 0; i < job.kept.size(); ++i) {
    const auto& kept = job.kept[i];
    const auto& part = job.part_of(kept);
    auto& role = job.out.roles[i];
    if (role.ready || !part.background || kept.exits) continue;
    const auto next = std::ranges::find_if(job.kept, [&](const Kept& other) {
      return other.stage > kept.stage && job.part_of(other).commands[0] > part.commands[0];
    });
    if (next == job.kept.end()) continue;
    if (waits_for_a_file(job, part.commands[0], job.part_of(*next).commands[0])) continue;
    std::uint64_t seconds = 0;
    std::map<std::pair<std::uint32_t, shell::Words>, int> rounds;
    for (auto k = part.commands[0]; k < job.part_of(*next).commands[0]; ++k) {
      const auto& command = job.recording.commands[k];
      const auto& first = job.recording.commands[part.commands[0]].task;
      const bool here = !command.task || (first && first->rank == command.task->rank &&
                                          job.in_one_step(part, job.part_of(*next)));
      if (shell::program_name(command.argv[0]) != "sleep" || command.background || !here) continue;
      if (++rounds[{command.line, command.argv}] == 2)
        job.out.parts[kept.part].problem = fmt::format(
            "after it, the script waits in a loop (line {}) for something that import does not "
            "recognise: wait for its exit (wait $PID), for its port (nc, curl), or for a fixed time",
            command.line);
      seconds += shell::seconds_of_sleep(command.argv);
    }
    constexpr std::uint64_t kMost = 600;  // a longer sleep is part of a polling loop
    if (seconds > 0 && seconds <= kMost) role.ready = ImportedReady{.delay = fmt::format("{}s", seconds)};
  }
}

void tell_of_added_waits(Job& job) {
  for (std::size_t i = 0; i < job.kept.size(); ++i) {
    auto& role = job.out.roles[i];
    const bool is_added = role.ready && !role.ready->http.empty() && role.ready->line == 0;
    const auto next = std::ranges::find_if(job.kept, [&](const Kept& other) {
      return other.stage > job.kept[i].stage &&
             job.part_of(other).commands[0] > job.part_of(job.kept[i]).commands[0];
    });
    if (!is_added || next == job.kept.end() || next->waited) continue;
    const auto first = job.part_of(job.kept[i]).commands[0];
    const auto last = job.part_of(*next).commands[0];
    bool waits = waits_for_a_file(job, first, last);
    for (auto k = first; k < last; ++k)
      waits = waits || shell::program_name(job.recording.commands[k].argv[0]) == "sleep";
    if (!waits)
      role.remarks.push_back({job.part_of(*next).line,
                              fmt::format("the script starts {} at once: here it starts when {} answers",
                                          next->name, role.name)});
  }
}

void tell_of_lost_delays(Job& job) {
  constexpr std::uint64_t kLeast = 5;  // seconds that matter
  std::set<std::uint32_t> said;
  for (std::size_t k = 0; k < job.recording.commands.size(); ++k) {
    const auto& command = job.recording.commands[k];
    const bool sleeps = command.fate == shell::Fate::answered && !command.background &&
                        shell::program_name(command.argv[0]) == "sleep" &&
                        !shell::waits_forever(command.argv);
    if (!sleeps || shell::seconds_of_sleep(command.argv) < kLeast) continue;
    const bool is_before_one =
        std::ranges::any_of(job.kept, [&](const Kept& kept) { return job.part_of(kept).commands[0] > k; });
    // What runs in the background before it, and is waited for until it is ready, is why it is there.
    bool covered = waits_for_a_file(job, k, job.recording.commands.size()) &&
                   std::ranges::count_if(job.recording.commands, [&](const auto& other) {
                     return other.line == command.line && other.argv == command.argv;
                   }) > 1;
    for (std::size_t i = 0; i < job.kept.size(); ++i) {
      const auto first = job.part_of(job.kept[i]).commands[0];
      // Behind a program that has run in front since, it is no delay for the server any more.
      const bool is_over = std::ranges::any_of(job.kept, [&](const Kept& other) {
        const auto& part = job.part_of(other);
        return !part.background && !is_ray(other) && part.commands[0] > first && part.commands[0] < k;
      });
      covered = covered || (!is_over && job.part_of(job.kept[i]).background && first < k &&
                            (job.out.roles[i].ready || is_ray(job.kept[i])));
    }
    if (is_before_one && !covered) job.out.became[k] = "left out: the next program starts at once";
    if (is_before_one && !covered && said.insert(command.line).second)
      job.remark(command.line, fmt::format("`{}` is not imported: the next program starts at once",
                                           text::shell_join(command.argv)));
  }
}

void import_readiness(Job& job) {
  Readiness(job).find();
}

}  // namespace nlaunch::import
