#include "preflight/examine.h"

#include <filesystem>

#include "base/json.h"
#include "preflight/checks.h"
#include "preflight/prober.h"
#include "preflight/trials.h"
#include "sys/files.h"

namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class Examiner {
 public:
  Examiner(sys::Loop& loop, const Examination& request)
      : loop_(loop),
        request_(request),
        evidence_{.plan = request.plan, .hosts = request.hosts, .deadlines = request.deadlines} {}

  Report go(std::vector<Findings> findings) {
    const auto begin = Clock::now();
    take(std::move(findings));
    evidence_.groups = make_trials(evidence_);
    judge(Stage::before);
    if (request_.level == PreflightLevel::standard && !evidence_.ranks.empty()) probe();
    report_.level = request_.level;
    report_.verdict = worst(report_.rows);
    report_.elapsed = std::chrono::duration_cast<Duration>(Clock::now() - begin);
    return std::move(report_);
  }

 private:
  void take(std::vector<Findings> findings);
  void probe();
  [[nodiscard]] ProbeWork work();
  bool judge(Stage stage);
  void add(Row row);

  sys::Loop& loop_;
  const Examination& request_;
  Evidence evidence_;
  Report report_;
};

void Examiner::take(std::vector<Findings> findings) {
  for (std::size_t node = 0; node < findings.size(); ++node) {
    for (auto& row : findings[node].rows) {
      if (!request_.hosts.empty()) row.hosts = {request_.hosts[node]};
      add(std::move(row));
    }
    auto& ranks = findings[node].ranks;
    evidence_.ranks.insert(evidence_.ranks.end(), ranks.begin(), ranks.end());
  }
}

void Examiner::add(Row row) {
  if (request_.on_row) request_.on_row(row);
  report_.rows.push_back(std::move(row));
}

/// True when no row of the stage fails.
bool Examiner::judge(Stage stage) {
  bool fit = true;
  for (const auto& check : checks()) {
    if (check.stage != stage) continue;
    for (auto& row : check.judge(evidence_)) {
      fit = fit && row.status != Status::fail;
      add(std::move(row));
    }
  }
  return fit;
}

ProbeWork Examiner::work() {
  // The probes keep their own deadlines and say more; these are for those that cannot.
  constexpr Duration kSlack{500};
  const auto& deadlines = request_.deadlines;
  return {evidence_.ranks.size(),
          evidence_.groups,
          deadlines.join + kSlack,
          std::max(deadlines.join, deadlines.op) + kSlack,
          [this](const std::vector<RankReport>& reports) {
            evidence_.reports = reports;
            return judge(Stage::identity);
          },
          request_.cancelled};
}

/// Takes away the logs in which nothing stands.
void tidy(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".err") && entry.file_size(error) == 0) gone.push_back(entry.path());
  }
  for (const auto& path : gone) fs::remove_all(path, error);
}

void Examiner::probe() {
  const auto folder = request_.folder + "/preflight";
  std::error_code error;
  fs::remove_all(folder, error);  // what is left of an earlier preflight would lead ranks astray
  auto made = sys::make_private_folder(folder);
  if (made) {
    made = sys::write_file_atomically(folder + "/spec.json",
                                      json_text(make_spec(evidence_, folder, request_.addresses), 1) + "\n");
  }
  if (!made) return add(unknown("identity", "preflight folder", made.error().items().front().message));
  const auto probes = request_.probes(evidence_.ranks, folder);
  auto outcome = run_probes(loop_, *probes, work());
  const bool judged = !evidence_.reports.empty();
  evidence_.reports = std::move(outcome.reports);
  evidence_.went = outcome.went;
  report_.cancelled = outcome.cancelled;
  if (report_.cancelled) return add(unknown("identity", "preflight", "cancelled"));
  if (!judged) judge(Stage::identity);
  judge(Stage::after);
  report_.measurements = measurements(evidence_);
  tidy(folder);
}

}  // namespace

Report examine(sys::Loop& loop, const Examination& request, std::vector<Findings> findings) {
  return Examiner(loop, request).go(std::move(findings));
}

}  // namespace nlaunch::preflight
