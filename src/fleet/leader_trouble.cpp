#include <algorithm>
#include <csignal>

#include "base/exit_code.h"
#include "base/text.h"
#include "fleet/leader.h"
#include "session/interrupts.h"
#include "sys/files.h"

// What goes wrong with several nodes before their processes start, as messages.
namespace nlaunch::fleet {
namespace {

constexpr Duration kForLastWords = std::chrono::seconds(2);
constexpr std::size_t kLastLines = 10;

/// The output of an agent that exits because it cannot start.
bool gives_up(std::string_view line) {
  return line.starts_with("nlaunch agent on ") && line.contains(": error: ");
}

/// The output of an agent that goes on: it is no reason for anything.
bool goes_on(std::string_view line) {
  return line.starts_with("nlaunch agent on ") &&
         (line.ends_with("; connecting another way") || line.contains(": it cannot relay for other nodes: "));
}

}  // namespace

/// An agent that cannot start makes srun kill the others. The reason appears in its log a moment later.
session::AttemptHost::Refused Leader::refuse_unmet() {
  bool over = false;
  const auto patience = loop_.after(kForLastWords, [&] {
    over = true;
    loop_.stop();
  });
  waiting_ = [] { return false; };  // an agent that is lost, and the exit of the starter, stop the loop
  while (!starter_end_ && !over && session::Interrupts::received() == 0 && guardian_.alive()) loop_.run();
  waiting_ = nullptr;
  loop_.cancel(patience);
  const auto log = starter_log();
  if (step_terminated_ && std::ranges::none_of(text::split(log, '\n'), gives_up)) ::raise(SIGTERM);
  return refuse(trouble());
}

/// Not every node could check itself.
preflight::Report Leader::report_of_absent() const {
  preflight::Report report;
  report.cancelled = session::Interrupts::received() != 0 || !guardian_.alive();
  for (const auto& agent : own()) {
    if (agent.findings) continue;
    report.rows.push_back(preflight::failed(
        "node", agent.host, agent.lost.empty() ? "did not answer in time" : agent.lost,
        "an agent that answers", {launcher_->look_at(agent.host), preflight::Responsible::admin}));
    // A node that only waited for lost ones is not to blame.
    if (!agent.lost.empty()) report.rows.back().hosts = {agent.host};
  }
  report.verdict = preflight::worst(report.rows);
  return report;
}

// --- what went wrong ---

/// The output of the starter and of agents without a connection.
std::string Leader::starter_log() const {
  constexpr std::uint64_t kLimit = 16U << 20U;
  auto lines =
      text::split(sys::read_regular_file(paths_.attempt / launcher_->log(), kLimit).value_or(""), '\n');
  std::erase_if(lines, goes_on);
  return text::join(lines, "\n");
}

std::string Leader::trouble() const {
  if (!guardian_.alive()) return "nlaunch was killed before anything was started";
  if (!misfit_.empty()) return misfit_;
  const auto log = starter_log();
  auto lines = text::split(text::trim(log), '\n');
  // An agent that gave up on its own comes before those that srun killed because of it.
  const auto gave_up = std::ranges::find_if(lines, gives_up);
  if (gave_up != lines.end()) return text::printable(*gave_up);
  std::vector<std::string> missing;
  for (std::size_t node = 0; node < own().size(); ++node) {
    const auto& agent = agents_[node];
    const auto name = agent.host.empty() ? fmt::format("replica {}", node) : agent.host;
    if (!agent.lost.empty()) return fmt::format("node {}: {}", name, agent.lost);
    if (!agent.has_connected()) missing.push_back(name);
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  const auto said = text::printable(text::join(lines, "; "));
  if (starter_end_)
    return fmt::format("{} {}{}{}", launcher_->starter(), starter_end_->str(), said.empty() ? "" : ": ",
                       said);
  if (!missing.empty()) {
    auto why = rejected_;
    if (!said.empty()) why.push_back(said);
    return fmt::format("no agent connected from {} within {}{}{}", text::join(missing, ", "),
                       format_duration(launcher_->patience()), why.empty() ? "" : ": ",
                       text::join(why, "; "));
  }
  return "the agents did not answer in time";
}

/// The starter's log knows why a node died; the exit of its agent is only a symptom.
std::string Leader::lost() const {
  const auto gone = std::ranges::find_if(own(), [](const Agent& agent) { return !agent.lost.empty(); });
  if (gone == own().end()) return starter_end_ ? trouble() : "";
  const auto log = starter_log();
  const auto said = text::printable(text::join(text::split(text::trim(log), '\n'), "; "));
  return fmt::format("node {}: {}{}{}", gone->host, gone->lost, said.empty() ? "" : "; ", said);
}

session::AttemptHost::Refused Leader::refuse(const std::string& sentence, int code) const {
  // After a stop request, the user sees only that.
  if (session::Interrupts::received() == 0) caller_.console.say(fmt::format("nlaunch: {}\n", sentence));
  const bool theirs = gives_up(sentence) || sentence == misfit_;
  return {theirs ? exit_code::bad_input : code, "not-started", sentence};
}

}  // namespace nlaunch::fleet
