#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <map>

#include "preflight/ask_probe.h"
#include "preflight/checks.h"
#include "preflight/gather.h"
#include "preflight/preflight.h"
#include "preflight/prober.h"
#include "preflight/role_library.h"
#include "preflight/trials.h"
#include "sys/files.h"

namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class Run {
 public:
  explicit Run(const Request& request)
      : request_(request),
        evidence_{.plan = request.plan,
                  .node = request.node,
                  .level = request.level,
                  .deadlines = request.deadlines} {}

  Report go() {
    const auto begin = Clock::now();
    gather();
    judge(Stage::before);
    if (request_.level == PreflightLevel::standard && !evidence_.ranks.empty()) probe();
    report_.level = request_.level;
    report_.verdict = worst(report_.rows);
    report_.elapsed = std::chrono::duration_cast<Duration>(Clock::now() - begin);
    return std::move(report_);
  }

 private:
  void gather();
  void probe();
  [[nodiscard]] ProbeWork work(const std::string& folder);
  bool judge(Stage stage);
  void add(Row row);

  const Request& request_;
  Evidence evidence_;
  Report report_;
};

void Run::gather() {
  evidence_.ranks = make_ranks(request_.plan, request_.node);
  // NVML and each role's Python take a fifth of a second and more: they are asked at the same time.
  auto machine = std::async(std::launch::async, [this] {
    const auto known = nlohmann::json::parse(request_.facts, nullptr, false);
    return known.is_object() ? read_machine_facts(known) : ask_machine_facts(request_.probe);
  });
  std::map<std::uint32_t, std::future<LibraryFact>> libraries;
  for (const auto& rank : evidence_.ranks) {
    const auto role = request_.plan.processes[rank.process].role;
    if (rank.device < 0 || libraries.contains(role)) continue;
    libraries[role] = std::async(std::launch::async, [this, bound = rank.bound] {
      return find_role_library(request_.node.processes[bound], request_.probe);
    });
  }
  for (auto& [role, library] : libraries) evidence_.libraries[role] = library.get();
  evidence_.machine = machine.get();
  evidence_.ports = ask_ports(request_.node);
  evidence_.folders = ask_folders(request_.node, request_.folder);
  evidence_.groups = make_trials(evidence_);
}

void Run::add(Row row) {
  if (request_.on_row) request_.on_row(row);
  report_.rows.push_back(std::move(row));
}

/// True when no row of the stage fails.
bool Run::judge(Stage stage) {
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

ProbeWork Run::work(const std::string& folder) {
  ProbeWork work;
  for (std::size_t i = 0; i < evidence_.ranks.size(); ++i) {
    const auto& bound = request_.node.processes[evidence_.ranks[i].bound];
    std::error_code error;
    work.probes.push_back(
        {{request_.probe, "rank", "--spec", folder + "/spec.json", "--index", fmt::format("{}", i)},
         probe_environment(bound),
         fs::is_directory(bound.workdir, error) ? bound.workdir : folder,
         bound.cpus,
         fmt::format("{}/probe.{}.err", folder, i)});
  }
  // The probes keep their own deadlines and say more; these are for those that cannot.
  constexpr Duration kSlack{500};
  work.to_identify = request_.deadlines.join + kSlack;
  work.to_work = std::max(request_.deadlines.join, request_.deadlines.op) + kSlack;
  work.cancelled = request_.cancelled;
  work.fit = [this](const std::vector<RankReport>& reports) {
    evidence_.reports = reports;
    return judge(Stage::identity);
  };
  return work;
}

/// Takes away what only the ranks needed to find each other; logs stay.
void tidy(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("nccl-id.") || name.starts_with("gloo.")) gone.push_back(entry.path());
    if (name.ends_with(".err") && entry.file_size(error) == 0) gone.push_back(entry.path());
  }
  for (const auto& path : gone) fs::remove_all(path, error);
}

void Run::probe() {
  const auto folder = request_.folder + "/preflight";
  std::error_code error;
  fs::remove_all(folder, error);  // ids of an earlier preflight would lead ranks astray
  auto made = sys::make_private_folder(folder);
  if (made)
    made = sys::write_file_atomically(folder + "/spec.json", make_spec(evidence_, folder).dump(1) + "\n");
  if (!made) return add(unknown("identity", "preflight folder", made.error().items().front().message));
  auto outcome = run_probes(work(folder));
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

Report run(const Request& request) {
  return Run(request).go();
}

}  // namespace nlaunch::preflight
