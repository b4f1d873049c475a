#include "diagnose/run_folder.h"

#include <re2/re2.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

#include "sys/files.h"
#include "sys/run_file.h"
#include "sys/wait_status.h"

namespace nlaunch::diagnose {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kAttempt = "attempt-";

fs::path last_attempt(const fs::path& folder) {
  fs::path last;
  int highest = -1;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    int number = -1;
    if (!name.starts_with(kAttempt) || !sys::is_folder_itself(entry.path())) continue;
    std::from_chars(name.data() + kAttempt.size(), name.data() + name.size(), number);
    if (number <= highest) continue;
    highest = number;
    last = entry.path();
  }
  return last;
}

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

/// The exit code of a process as in a shell: 137 for SIGKILL. Nothing while it runs.
std::optional<int> code_of(const Json& process) {
  const auto end = process.find("end");
  if (end == process.end() || !end->is_object()) return std::nullopt;
  if (const auto signal = sys::signal_number(text_in(*end, "signal")); signal > 0) return kOfSignals + signal;
  const auto code = number_in(*end, "code");
  return code ? std::optional(static_cast<int>(*code)) : std::nullopt;
}

/// By a person or the scheduler.
bool was_asked_to_end(const Json& summary) {
  const auto outcome = text_in(summary, "outcome");
  return outcome == "interrupted" || outcome == "terminated" || outcome == "walltime";
}

Standing standing_of(const Json& process, const RunFolder& run, const Json& summary) {
  const auto outcome = text_in(summary, "outcome");
  if (outcome == "finished") return Standing::well;
  if (text_in(process, "name") == run.first) return Standing::failed;
  const auto ended = number_in(process, "ended_ms");
  const auto decided = number_in(summary, "decided_ms");
  const bool by_itself = ended && decided && *ended <= *decided;
  if (by_itself) return code_of(process) == 0 ? Standing::well : Standing::unknown;
  return was_asked_to_end(summary) ? Standing::asked : decided ? Standing::stopped : Standing::unknown;
}

std::string whole_number_in(const Json& object, const char* key) {
  const auto number = number_in(object, key);
  return number ? std::to_string(static_cast<std::int64_t>(*number)) : "";
}

void read_lost_child(const Json& summary, RunFolder& run) {
  const auto child = summary.find("lost_child");
  if (child == summary.end() || !child->is_object()) return;
  const auto end = child->find("end");
  std::string how;
  if (end != child->end() && end->is_object())
    how = end->contains("signal") ? text_in(*end, "signal") : "exited";
  run.lost_child = {text_in(*child, "process"), text_in(*child, "name"), whole_number_in(*child, "pid"), how};
}

void read_cause(const Json& summary, RunFolder& run) {
  const auto known = summary.find("explanation");
  if (known == summary.end() || !known->is_object()) return;
  const auto sure = known->find("sure");
  run.cause = {text_in(*known, "class"), text_in(*known, "why"), text_in(*known, "fix"),
               sure != known->end() && sure->is_boolean() && sure->get<bool>()};
}

/// The last hang that was found while the run was watched, if that is why it was stopped.
void read_hang(const Json& summary, RunFolder& run) {
  const auto watch = summary.find("watch");
  if (text_in(summary, "outcome") != "stalled" || watch == summary.end() || !watch->is_object()) return;
  const auto findings = watch->find("findings");
  if (findings == watch->end() || !findings->is_array() || findings->empty()) return;
  const auto& last = findings->back();
  const auto verdict = last.is_object() ? last.find("verdict") : last.end();
  if (!last.is_object() || verdict == last.end() || !verdict->is_object()) return;
  KnownHang hang;
  const auto sure = verdict->find("sure");
  hang.sure = sure != verdict->end() && sure->is_boolean() && sure->get<bool>();
  hang.sentence = text_in(*verdict, "sentence");
  const auto culprits = verdict->find("culprits");
  if (culprits != verdict->end() && culprits->is_array()) {
    for (const auto& one : *culprits) {
      if (!one.is_object()) continue;
      if (hang.culprits.empty()) hang.doing = text_in(one, "doing");
      hang.culprits.push_back({text_in(one, "process"), text_in(one, "program"), whole_number_in(one, "pid"),
                               text_in(one, "why")});
    }
  }
  run.hang = std::move(hang);
}

/// "RuntimeError: CUDA error: out of memory", without the further lines of its message.
std::string exception_text(const Json& exception) {
  const auto type = text_in(exception, "type");
  const auto message = text_in(exception, "message");
  const auto line = message.substr(0, message.find('\n'));
  return type.empty() || line.empty() ? type + line : type + ": " + line;
}

/// Whether it recorded an exception before the run was decided.
bool read_exception(const Json& process, const Json& summary, RunFolder& run) {
  const auto exception = process.find("exception");
  if (exception == process.end() || !exception->is_object()) return false;
  const auto decided = number_in(summary, "decided_ms");
  const auto at = number_in(*exception, "raised_ms");
  if (decided && at && *at > *decided) return false;
  if (text_in(process, "name") == run.first) run.exception = exception_text(*exception);
  return true;
}

void read_process(const Json& process, const Json& summary, RunFolder& run) {
  const auto name = text_in(process, "name");
  if (name == run.first) {
    const auto ended = number_in(process, "ended_ms");
    const auto decided = number_in(summary, "decided_ms");
    // Otherwise nlaunch stopped it.
    if (!ended || !decided || *ended <= *decided) run.code = code_of(process);
    const auto program = text_in(process, "program");
    // A command of a shell is in the pid's tree, under another name.
    run.first_known = {name, program.ends_with(" -c") ? "" : program, whole_number_in(process, "pid"), ""};
  }
  if (const auto early = text_in(process, "ended_early"); !early.empty() && !run.ended_early)
    run.ended_early = {name, "", whole_number_in(process, "pid"), early};
  run.standing[name] = standing_of(process, run, summary);
  if (const auto host = text_in(process, "host"); !host.empty()) run.hosts[name] = host;
  if (const auto bytes = number_in(process, "log_when_decided"))
    run.log_when_decided[name] = static_cast<std::uint64_t>(std::max(0.0, *bytes));
}

/// Returns those that recorded an exception before the run was decided.
std::set<std::string> read_processes(const KnownSummary& summary, RunFolder& run) {
  std::set<std::string> raised;
  const auto read = [&](const Json& process) {
    if (!process.is_object()) return;
    read_process(process, *summary.json, run);
    if (read_exception(process, *summary.json, run)) raised.insert(text_in(process, "name"));
  };
  const auto listed = summary.json->find("processes");
  if (listed != summary.json->end() && listed->is_array()) std::ranges::for_each(*listed, read);
  for (std::size_t i = 0; i < summary.processes.count; ++i) read(summary.processes.at(i));
  return raised;
}

}  // namespace

std::optional<RunFolder> read_run_folder(const fs::path& folder, const KnownSummary* known_summary) {
  std::error_code error;
  const auto attempt = last_attempt(folder);
  if (attempt.empty() || !fs::is_regular_file(folder / "plan.json", error)) return std::nullopt;
  RunFolder run;
  run.folder = folder;
  run.attempt = attempt;
  for (const auto& part : {attempt / "errors", attempt / "logs", attempt / "nccl", attempt}) {
    if (!sys::is_folder_itself(part)) continue;
    for (const auto& entry : fs::directory_iterator(part, error)) {
      std::error_code gone;
      if (entry.path().extension() == ".log" && fs::is_regular_file(entry.symlink_status(gone)))
        run.logs.push_back(entry.path());
    }
  }
  std::ranges::sort(run.logs);
  Result<std::optional<Json>> read;
  KnownSummary in_file;
  if (known_summary == nullptr) {
    read = sys::read_run_file(folder / "summary.json", formats::kSummary);
    if (read && *read) in_file.json = &**read;
    known_summary = &in_file;
  }
  if (!read) {
    run.unread = read.error();
  } else if (known_summary->json != nullptr && known_summary->json->is_object()) {
    const auto& summary = *known_summary->json;
    run.first = text_in(summary, "first");
    run.what = text_in(summary, "sentence");
    const auto code = summary.find("exit_code");
    run.failed = code != summary.end() && code->is_number() && *code != 0 && !was_asked_to_end(summary);
    const auto raised = read_processes(*known_summary, run);
    run.out_of_memory = number_in(summary, "oom_kills").value_or(0) > 0;
    read_lost_child(summary, run);
    read_hang(summary, run);
    read_cause(summary, run);
    std::erase_if(run.logs, [&](const fs::path& log) {
      return is_error_record(log) && !raised.contains(log.stem().string());
    });
    std::ranges::stable_partition(run.logs, [&](const fs::path& log) {
      return !run.first.empty() && process_of_file(log.string()) == run.first;
    });
  }
  return run;
}

std::string process_of_file(const std::string& path) {
  static const re2::RE2 kFile(R"(attempt-\d+/(?:errors|logs|nccl)/([\w-]+\.\d+)\.[^/]*$)");
  std::string process;
  re2::RE2::PartialMatch(path, kFile, &process);
  return process;
}

bool is_error_record(const fs::path& path) {
  return path.parent_path().filename() == "errors";
}

}  // namespace nlaunch::diagnose
