#include "supervise/investigation.h"

#include <utility>

namespace nlaunch::supervise {
namespace {

/// Time limit of the collection on each node (evidence/spec.h), plus a margin for its answer.
constexpr Duration kForEvidence = std::chrono::seconds(33);

}  // namespace

void Investigation::begin(Done done) {
  done_ = std::move(done);
  folder_ = (options_.evidence / utc_stamp()).string();
  awaited_ = options_.nodes;
  deadline_ = loop_.after(kForEvidence, [this] {
    deadline_.reset();
    judge();
  });
  options_.collect({folder_});
}

void Investigation::on(const process_event::Collected& collected) {
  if (awaited_ == 0) return;
  if (!collected.trouble.empty()) options_.say("evidence: " + collected.trouble);
  if (--awaited_ == 0) judge();
}

void Investigation::stop() {
  if (deadline_) loop_.cancel(*deadline_);
  deadline_.reset();
  awaited_ = 0;
}

void Investigation::judge() {
  stop();
  Judgement judgement;
  if (options_.judge) judgement = options_.judge(folder_, options_.progress());
  options_.record("evidence", {{"folder", folder_}, {"verdict", judgement.sentence}});
  if (!judgement.sentence.empty()) options_.say(judgement.sentence);
  for (const auto& line : judgement.lines) options_.say("  " + line);
  options_.say("evidence: " + folder_);
  std::exchange(done_, nullptr)(folder_, judgement);
}

}  // namespace nlaunch::supervise
