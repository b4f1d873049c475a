#include "preflight/examine.h"

#include <algorithm>

#include "preflight/ask/local_probes.h"
#include "preflight/checks.h"
#include "preflight/groups/expectations.h"
#include "preflight/groups/trials.h"
#include "preflight/groups/try_groups.h"
#include "preflight/preflight.h"
#include "preflight/search/bisect.h"
#include "preflight/search/ladder.h"

namespace nlaunch::preflight {
namespace {

using Clock = std::chrono::steady_clock;

Duration since(Clock::time_point begin) {
  return std::chrono::duration_cast<Duration>(Clock::now() - begin);
}

class Examiner {
 public:
  Examiner(sys::Loop& loop, const Examination& request)
      : loop_(loop), request_(request), observations_(observations_for(request, {})) {}

  Report go(std::vector<Findings> findings) {
    const auto begin = Clock::now();
    take(std::move(findings));
    observations_.groups = make_trials(observations_);
    judge(Stage::before);
    for (auto& figure : clock_figures(observations_)) observations_.figures.push_back(std::move(figure));
    const bool any = std::ranges::any_of(observations_.ranks, &std::string::empty, &Rank::no_probe);
    if (request_.options.level >= PreflightLevel::standard && any) {
      if (!request_.options.ladder || climb()) probe();
    }
    judge(Stage::measured);
    report_.figures = std::move(observations_.figures);
    report_.nodes = std::move(observations_.nodes);
    report_.level = request_.options.level;
    report_.plan = request_.plan.name;
    report_.site = request_.plan.site;
    report_.time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    explain_by_users(report_.rows);
    report_.verdict = worst(report_.rows);
    report_.elapsed = since(begin);
    return std::move(report_);
  }

  Measured measure(std::vector<Rank> ranks, std::vector<GroupTrial> trials) {
    observations_.ranks = std::move(ranks);
    observations_.groups = std::move(trials);
    try_plan();
    return {std::move(report_.rows), std::move(observations_.reports), observations_.went, report_.cancelled};
  }

 private:
  void take(std::vector<Findings> findings);
  bool climb();
  void probe();
  bool try_plan();
  void search();
  void cancel();
  bool judge(Stage stage);
  void add(Row row);
  void add(std::vector<Row> rows);

  sys::Loop& loop_;
  const Examination& request_;
  Observations observations_;
  Report report_;
  bool judged_identity_ = false;
};

void Examiner::take(std::vector<Findings> findings) {
  for (std::size_t node = 0; node < findings.size(); ++node) {
    for (auto& row : findings[node].rows) {
      if (!request_.hosts.empty()) row.hosts = {request_.hosts[node]};
      add(std::move(row));
    }
    for (auto& figure : findings[node].figures) {
      if (!request_.hosts.empty()) figure.host = request_.hosts[node];
      observations_.figures.push_back(std::move(figure));
    }
    for (auto& print : findings[node].fingerprints) {
      print.node = static_cast<std::uint32_t>(node);
      observations_.fingerprints.push_back(std::move(print));
    }
    observations_.nodes.push_back(std::move(findings[node].summary));
    auto& ranks = findings[node].ranks;
    observations_.ranks.insert(observations_.ranks.end(), ranks.begin(), ranks.end());
  }
}

void Examiner::add(Row row) {
  report_.rows.push_back(std::move(row));
}

void Examiner::add(std::vector<Row> rows) {
  for (auto& row : rows) add(std::move(row));
}

/// True if no row of the stage fails.
bool Examiner::judge(Stage stage) {
  bool fit = true;
  judged_identity_ = judged_identity_ || stage == Stage::identity;
  for (const auto* check : checks()) {
    if (check->stage != stage) continue;
    for (auto& row : check->judge(observations_)) {
      fit = fit && row.status != Status::fail;
      add(std::move(row));
    }
  }
  return fit;
}

/// The rungs below the plan's own groups. True if these are next.
bool Examiner::climb() {
  request_.options.tell("ladder, starting with one GPU");
  auto lower = climb_ladder(loop_, request_, observations_);
  add(std::move(lower.rows));
  if (lower.cancelled) cancel();
  return lower.all_well;
}

void Examiner::cancel() {
  report_.cancelled = true;
  add(unknown("identity", "preflight", "cancelled"));
}

void Examiner::probe() {
  const auto begin = Clock::now();
  const auto before = report_.rows.size();
  request_.options.tell(fmt::format("{} groups of the plan", observations_.groups.size()));
  if (!try_plan()) return;
  if (request_.options.ladder) {
    const std::vector<Row> judged(report_.rows.begin() + static_cast<std::ptrdiff_t>(before),
                                  report_.rows.end());
    add(top_rung(judged, since(begin)));
  }
  search();
  report_.measurements = measurements(observations_);
  set_expectations(observations_, report_.measurements);
}

/// False if nothing more can be tried.
bool Examiner::try_plan() {
  const auto fit = [this](const std::vector<RankReport>& reports) {
    observations_.reports = reports;
    return judge(Stage::identity);
  };
  const auto cancelled =
      try_groups(loop_, request_, observations_, {.folder = request_.folder + "/preflight", .fit = fit});
  if (!cancelled) {
    add(unknown("identity", "preflight directory", cancelled.error().first_message()));
    return false;
  }
  if (*cancelled) {
    cancel();
    return false;
  }
  if (!observations_.went && !judged_identity_) judge(Stage::identity);
  judge(Stage::after);
  return true;
}

/// Which part of a failing or slow group is to blame.
void Examiner::search() {
  const auto wrong = complaints(observations_);
  if (wrong.empty()) return;
  request_.options.tell("searching for the culprit");
  auto found = bisect(loop_, request_, observations_, wrong);
  add(std::move(found.rows));
  std::ranges::move(found.figures, std::back_inserter(observations_.figures));
  if (found.cancelled) cancel();
}

}  // namespace

Measured measure(sys::Loop& loop, const Examination& request, std::vector<Rank> ranks,
                 std::vector<GroupTrial> trials) {
  return Examiner(loop, request).measure(std::move(ranks), std::move(trials));
}

Report examine(sys::Loop& loop, const Examination& request, std::vector<Findings> findings) {
  return Examiner(loop, request).go(std::move(findings));
}

namespace {

Examination examination_here(sys::Loop& loop, const Request& request) {
  return {.plan = request.plan,
          .options = request.options,
          .deadlines = request.deadlines,
          .folder = request.folder,
          .cancelled = request.cancelled,
          .probes = [&](const ProbeStart& start) {
            return std::make_unique<LocalProbes>(
                loop, LocalProbes::Options{request.node, start.ranks, 0, start.folder, request.probe,
                                           start.wanted});
          }};
}

}  // namespace

Measured measure(const Request& request, std::vector<Rank> ranks, std::vector<GroupTrial> trials) {
  sys::Loop loop;
  return measure(loop, examination_here(loop, request), std::move(ranks), std::move(trials));
}

Report run(const Request& request) {
  const auto begin = std::chrono::steady_clock::now();
  sys::Loop loop;
  request.options.tell("checking this machine");
  auto findings = look(request);
  request.options.took("look at this machine", begin);
  auto report = examine(loop, examination_here(loop, request), {std::move(findings)});
  report.elapsed = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  return report;
}

}  // namespace nlaunch::preflight
