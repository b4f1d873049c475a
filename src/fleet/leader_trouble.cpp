#include <algorithm>
#include <csignal>

#include "base/exit_code.h"
#include "base/text.h"
#include "fleet/leader.h"
#include "session/interrupts.h"
#include "sys/files.h"

// What goes wrong with several nodes before their processes are started, in words for a person.
namespace nlaunch::fleet {
namespace {

constexpr Duration kForLastWords = std::chrono::seconds(2);
constexpr std::size_t kLastLines = 10;

/// What an agent says that ends by itself, because it cannot begin.
bool gives_up(std::string_view line) {
  return line.starts_with("nlaunch agent on ") && line.contains(": error: ");
}

}  // namespace

/// An agent that cannot begin makes srun end the others. Why it could not comes through its log, a moment
/// later.
session::AttemptHost::Refused Leader::refuse_unmet() {
  bool over = false;
  const auto patience = loop_.after(kForLastWords, [&] {
    over = true;
    loop_.stop();
  });
  waiting_ = [] { return false; };  // an agent that goes, and the end of the starter, stop the loop
  while (!starter_end_ && !over && session::Interrupts::received() == 0 && guardian_.alive()) loop_.run();
  waiting_ = nullptr;
  loop_.cancel(patience);
  const auto log = starter_log();
  if (step_told_to_end_ && std::ranges::none_of(text::split(log, '\n'), gives_up)) ::raise(SIGTERM);
  return refuse(trouble());
}

/// Not every node could look at itself.
preflight::Report Leader::report_of_absent() const {
  preflight::Report report;
  report.cancelled = session::Interrupts::received() != 0 || !guardian_.alive();
  for (const auto& agent : own()) {
    if (agent.findings) continue;
    report.rows.push_back(preflight::failed(
        "node", agent.host, agent.lost.empty() ? "did not answer in time" : agent.lost,
        "an agent that answers", {launcher_->look_at(agent.host), preflight::Responsible::admin}));
    // Who only waited for others that are gone is not to blame.
    if (!agent.lost.empty()) report.rows.back().hosts = {agent.host};
  }
  report.verdict = preflight::worst(report.rows);
  return report;
}

// --- what went wrong ---

/// What the starter and agents without a connection have said.
std::string Leader::starter_log() const {
  constexpr std::uint64_t kLimit = 16U << 20U;
  return sys::read_regular_file(paths_.attempt / launcher_->log(), kLimit).value_or("");
}

std::string Leader::trouble() const {
  if (!guardian_.alive()) return "nlaunch was killed before anything was started";
  if (!misfit_.empty()) return misfit_;
  const auto log = starter_log();
  auto lines = text::split(text::trim(log), '\n');
  // Who gave up by itself comes before those whom srun ended for it.
  const auto gave_up = std::ranges::find_if(lines, gives_up);
  if (gave_up != lines.end()) return text::printable(*gave_up);
  std::vector<std::string> missing;
  for (std::size_t node = 0; node < own().size(); ++node) {
    const auto& agent = agents_[node];
    const auto name = agent.host.empty() ? fmt::format("replica {}", node) : agent.host;
    if (!agent.lost.empty()) return fmt::format("node {}: {}", name, agent.lost);
    if (!agent.channel) missing.push_back(name);
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  const auto said = text::printable(text::join(lines, "; "));
  if (starter_end_)
    return fmt::format("{} {}{}{}", launcher_->starter(), starter_end_->str(), said.empty() ? "" : ": ",
                       said);
  if (!missing.empty()) {
    auto why = rejected_;
    if (!said.empty()) why.push_back(said);
    return fmt::format("no agent came from {} within {}{}{}", text::join(missing, ", "),
                       format_duration(launcher_->patience()), why.empty() ? "" : ": ",
                       text::join(why, "; "));
  }
  return "the agents did not answer in time";
}

/// The starter's log knows of a node that has died; its agent's end is no more than a sign of that.
std::string Leader::lost() const {
  const auto gone = std::ranges::find_if(own(), [](const Agent& agent) { return !agent.lost.empty(); });
  if (gone == own().end()) return starter_end_ ? trouble() : "";
  const auto log = starter_log();
  const auto said = text::printable(text::join(text::split(text::trim(log), '\n'), "; "));
  return fmt::format("node {}: {}{}{}", gone->host, gone->lost, said.empty() ? "" : "; ", said);
}

session::AttemptHost::Refused Leader::refuse(const std::string& sentence, int code) const {
  // Who was told to stop hears of that alone.
  if (session::Interrupts::received() == 0) caller_.console.say(fmt::format("nlaunch: {}\n", sentence));
  const bool theirs = gives_up(sentence) || sentence == misfit_;
  return {theirs ? exit_code::bad_input : code, "not-started", sentence};
}

}  // namespace nlaunch::fleet
