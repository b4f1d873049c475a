#include "preflight/prober.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "preflight/events.h"

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;

/// After a rank has failed, the others may say what they saw of it.
constexpr Duration kLastWords = 1s;
constexpr Duration kAskWhetherCancelled = 100ms;

class Prober {
 public:
  Prober(sys::Loop& loop, Probes& probes, const ProbeWork& work) : loop_(loop), probes_(probes), work_(work) {
    outcome_.reports.resize(work.ranks);
    running_.assign(work.ranks, true);
  }

  ~Prober() {
    for (const auto timer : {silence_, last_words_, asking_}) {
      if (timer) loop_.cancel(*timer);
    }
  }

  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  ProbeOutcome run() {
    heard();
    watch_for_cancel();
    loop_.post([this] { probes_.start([this](const ProbeNews& news) { hear(news); }); });
    loop_.run();
    return std::move(outcome_);
  }

 private:
  void hear(const ProbeNews& news);
  void hear(std::size_t rank, const probe_news::Said& said);
  void hear(std::size_t rank, const probe_news::Ended& ended);
  void hear(std::size_t rank, const probe_news::Stuck& stuck);
  void hear(std::size_t rank, const probe_news::Lost& lost);
  bool hand_around(std::size_t rank, const std::string& line);
  void gone(std::size_t rank);
  void consider();
  void go();
  void heard();
  void watch_for_cancel();
  void finish();

  sys::Loop& loop_;
  Probes& probes_;
  const ProbeWork& work_;
  ProbeOutcome outcome_;
  std::vector<bool> running_;
  std::size_t ended_ = 0;
  std::size_t known_ = 0;  ///< have said who they are
  bool failed_ = false;
  bool finishing_ = false;
  std::optional<sys::Loop::TimerId> silence_;
  std::optional<sys::Loop::TimerId> last_words_;
  std::optional<sys::Loop::TimerId> asking_;
};

void Prober::hear(const ProbeNews& news) {
  std::visit([&](const auto& what) { hear(news.rank, what); }, news.what);
  consider();
}

void Prober::hear(std::size_t rank, const probe_news::Said& said) {
  auto& report = outcome_.reports[rank];
  const bool known = report.identity.has_value();
  if (!hand_around(rank, said.line) && !read_event(said.line, report)) return;
  heard();
  if (!known && report.identity) ++known_;
  failed_ = failed_ || !report.errors.empty();
}

/// The id of a communicator is for the other ranks of its group.
bool Prober::hand_around(std::size_t rank, const std::string& line) {
  const auto id = nlohmann::json::parse(line, nullptr, false);
  if (!id.is_object() || id.value("event", "") != "id") return false;
  const auto group = std::ranges::find(work_.groups, id.value("group", ""), &GroupTrial::name);
  if (group == work_.groups.end()) return false;
  for (const auto member : group->members) {
    if (member != rank) probes_.say(member, fmt::format("id {} {}", id.value("key", ""), id.value("id", "")));
  }
  return true;
}

void Prober::hear(std::size_t rank, const probe_news::Ended& ended) {
  auto& report = outcome_.reports[rank];
  if (!finishing_ && !report.done && report.errors.empty()) {
    report.end = ended.how;
    failed_ = true;
  }
  gone(rank);
}

void Prober::hear(std::size_t rank, const probe_news::Stuck& stuck) {
  outcome_.reports[rank].stuck = stuck.state;
  gone(rank);
}

void Prober::hear(std::size_t rank, const probe_news::Lost& lost) {
  outcome_.reports[rank].end = "is gone: " + lost.why;
  failed_ = true;
  gone(rank);
}

void Prober::gone(std::size_t rank) {
  if (running_[rank]) ++ended_;
  running_[rank] = false;
}

/// Decides what is next, from all that has been heard.
void Prober::consider() {
  if (ended_ == work_.ranks) return loop_.stop();
  if (finishing_) return;
  if (failed_ && !last_words_) {
    last_words_ = loop_.after(outcome_.went ? kLastWords : Duration(0), [this] { finish(); });
  }
  if (known_ == work_.ranks && !outcome_.went && !last_words_) go();
}

void Prober::go() {
  if (!work_.fit(outcome_.reports)) return finish();
  outcome_.went = true;
  heard();
  for (std::size_t rank = 0; rank < work_.ranks; ++rank) probes_.say(rank, "go");
}

void Prober::heard() {
  if (silence_) loop_.cancel(*silence_);
  silence_ = loop_.after(outcome_.went ? work_.to_work : work_.to_identify, [this] {
    silence_.reset();
    finish();
  });
}

void Prober::watch_for_cancel() {
  if (!work_.cancelled) return;
  asking_ = loop_.after(kAskWhetherCancelled, [this] {
    if (!finishing_ && work_.cancelled()) {
      outcome_.cancelled = true;
      finish();
    }
    watch_for_cancel();
  });
}

void Prober::finish() {
  if (std::exchange(finishing_, true)) return;
  probes_.kill();
}

}  // namespace

ProbeOutcome run_probes(sys::Loop& loop, Probes& probes, const ProbeWork& work) {
  return Prober(loop, probes, work).run();
}

}  // namespace nlaunch::preflight
