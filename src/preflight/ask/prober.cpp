#include "preflight/ask/prober.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "preflight/ask/events.h"

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;

/// After a rank has failed, the others can report what they saw of it.
constexpr Duration kLastWords = 1s;
constexpr Duration kAskWhetherCancelled = 100ms;

class Prober {
 public:
  Prober(sys::Loop& loop, Probes& probes, const ProbeWork& work) : loop_(loop), probes_(probes), work_(work) {
    outcome_.reports.resize(work.of);
    group_of_.resize(work.of);
    outcome_.went = work.apart;
    is_closed_.resize(work.groups.size());
    running_.assign(work.of, false);
    for (const auto rank : work.ranks) running_[rank] = true;
    for (std::size_t i = 0; i < work.groups.size(); ++i) {
      groups_[work.groups[i].name] = i;
      unknown_.push_back(work.groups[i].members.size());
      for (const auto rank : work.groups[i].members) group_of_[rank] = i;
    }
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
    loop_.post([this] { probes_.start([this](const ProbeNews& news) { on(news); }); });
    loop_.run();
    return std::move(outcome_);
  }

 private:
  void on(const ProbeNews& news);
  void on(std::size_t rank, const probe_news::Said& said);
  void on(std::size_t rank, const probe_news::Ended& ended);
  void on(std::size_t rank, const probe_news::Stuck& stuck);
  void on(std::size_t rank, const probe_news::Lost& lost);
  bool hand_around(std::size_t rank, const nlohmann::json& line);
  bool note_phase(std::size_t rank, const nlohmann::json& line) const;
  void know(std::size_t rank);
  void gone(std::size_t rank);
  void close_group(std::size_t rank);
  void consider();
  void go();
  void send_off(const std::vector<std::size_t>& ranks);
  void heard();
  void watch_for_cancel();
  void finish();
  void tell(std::size_t rank) const;

  sys::Loop& loop_;
  Probes& probes_;
  const ProbeWork& work_;
  ProbeOutcome outcome_;
  std::vector<bool> running_;
  std::map<std::string, std::size_t, std::less<>> groups_;  ///< by name
  std::vector<std::size_t> group_of_;                       ///< by rank: one of its groups
  std::vector<std::size_t> unknown_;  ///< by group: ranks that have not identified themselves
  std::vector<bool> is_closed_;       ///< by group: one of its ranks has failed or exited
  std::size_t closed_ = 0;
  std::size_t ended_ = 0;
  std::size_t known_ = 0;  ///< have identified themselves
  std::size_t done_ = 0;   ///< have reported that they are done
  bool failed_ = false;
  bool finishing_ = false;
  std::optional<sys::Loop::TimerId> silence_;
  std::optional<sys::Loop::TimerId> last_words_;
  std::optional<sys::Loop::TimerId> asking_;
};

void Prober::on(const ProbeNews& news) {
  std::visit([&](const auto& what) { on(news.rank, what); }, news.what);
  consider();
}

void Prober::on(std::size_t rank, const probe_news::Said& said) {
  auto& report = outcome_.reports[rank];
  const bool known = report.identity.has_value();
  const bool done = report.done;
  const auto line = parse_json(said.line);
  if (note_phase(rank, line)) return;
  if (!hand_around(rank, line) && !read_event(line, report)) return;
  heard();
  if (!known && report.identity) know(rank);
  if (!done && report.done) ++done_;
  tell(rank);
  failed_ = failed_ || !report.errors.empty();
  if (!report.errors.empty()) close_group(rank);
}

/// The overall progress. For a group, its first rank represents it: it is in its node's group, in the world,
/// and in the weight sync.
void Prober::tell(std::size_t rank) const {
  if (!work_.progress || work_.apart) return;
  if (!outcome_.went)
    return work_.progress(fmt::format("{} of {} probes started", known_, work_.ranks.size()));
  if (rank != 0) return;
  for (const auto& group : work_.groups) {
    const auto progress = outcome_.reports[rank].groups.find(group.name);
    if (progress == outcome_.reports[rank].groups.end()) continue;
    const auto done = progress->second.results.size();
    if (done == group.sizes.size()) continue;
    work_.progress(progress->second.joined
                       ? fmt::format("{}: {} of {} sizes", group.name, done, group.sizes.size())
                       : fmt::format("{}: {} ranks connecting", group.name, group.members.size()));
    return;
  }
}

/// A probe that is on another machine has another clock: the phase ended when its line arrived.
bool Prober::note_phase(std::size_t rank, const nlohmann::json& line) const {
  if (!line.is_object() || line.value("event", "") != "phase") return false;
  if (work_.timeline == nullptr) return true;
  const auto end = Timeline::Clock::now();
  const auto took = std::chrono::duration<double>(line.value("seconds", 0.0));
  work_.timeline->add(fmt::format("rank {}", rank), line.value("name", ""),
                      end - std::chrono::duration_cast<Timeline::Clock::duration>(took), end);
  return true;
}

/// The id of a communicator is for the other ranks of its group.
bool Prober::hand_around(std::size_t rank, const nlohmann::json& line) {
  if (!line.is_object() || line.value("event", "") != "id") return false;
  const auto group = groups_.find(line.value("group", ""));
  if (group == groups_.end()) return false;
  const auto words = fmt::format("id {} {}", line.value("key", ""), line.value("id", ""));
  for (const auto member : work_.groups[group->second].members) {
    if (member != rank) probes_.say(member, words);
  }
  return true;
}

/// A rank has identified itself.
void Prober::know(std::size_t rank) {
  ++known_;
  if (!work_.apart) return;
  const auto group = group_of_[rank];
  if (--unknown_[group] == 0) send_off(work_.groups[group].members);
}

void Prober::on(std::size_t rank, const probe_news::Ended& ended) {
  auto& report = outcome_.reports[rank];
  if (!finishing_ && !report.done && report.errors.empty()) {
    report.end = ended.how;
    failed_ = true;
  }
  gone(rank);
}

void Prober::on(std::size_t rank, const probe_news::Stuck& stuck) {
  outcome_.reports[rank].stuck = stuck.state;
  gone(rank);
}

void Prober::on(std::size_t rank, const probe_news::Lost& lost) {
  outcome_.reports[rank].end = "was lost: " + lost.why;
  failed_ = true;
  gone(rank);
}

void Prober::gone(std::size_t rank) {
  if (running_[rank]) ++ended_;
  running_[rank] = false;
  close_group(rank);
}

/// Nothing more can be learnt about the group of this rank than the last messages of the others.
void Prober::close_group(std::size_t rank) {
  if (!work_.apart || is_closed_[group_of_[rank]]) return;
  is_closed_[group_of_[rank]] = true;
  ++closed_;
}

/// Decides the next step, from everything received so far.
void Prober::consider() {
  if (ended_ == work_.ranks.size()) return loop_.stop();
  if (finishing_) return;
  if (done_ == work_.ranks.size()) return finish();  // a rank may stay until it is killed
  const bool over = work_.apart ? closed_ == work_.groups.size() : failed_;
  if (over && !last_words_) {
    last_words_ = loop_.after(outcome_.went ? kLastWords : Duration(0), [this] { finish(); });
  }
  if (known_ == work_.ranks.size() && !outcome_.went && !last_words_) go();
}

void Prober::go() {
  if (!work_.fit(outcome_.reports)) return finish();
  outcome_.went = true;
  heard();
  send_off(work_.ranks);
}

void Prober::send_off(const std::vector<std::size_t>& ranks) {
  const auto words = fmt::format("go {}", room_for_messages(outcome_.reports, ranks));
  for (const auto rank : ranks) probes_.say(rank, words);
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

std::uint64_t room_for_messages(const std::vector<RankReport>& reports,
                                const std::vector<std::size_t>& ranks) {
  constexpr std::uint64_t kAlways = 128U << 20U;               // bytes
  constexpr std::uint64_t kForNccl = std::uint64_t{2} << 30U;  // its buffers on large nodes
  auto room = std::numeric_limits<std::uint64_t>::max();
  for (const auto rank : ranks) {
    const auto& identity = reports[rank].identity;
    if (!identity || identity->free_bytes == 0) continue;
    const auto free = identity->free_bytes;
    room = std::min(room, (free - std::min(free, kForNccl)) / 2);
  }
  return std::max(room, kAlways);
}

ProbeOutcome run_probes(sys::Loop& loop, Probes& probes, const ProbeWork& work) {
  return Prober(loop, probes, work).run();
}

}  // namespace nlaunch::preflight
