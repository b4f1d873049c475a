#include "report/run_prometheus.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace nlaunch::report {
namespace {

using record::Phase;
using record::TrainingStep;

/// How many steps were finished, those included that were done again later: a count that only grows. Steps
/// are reported some at a time, so each report stands for all steps since the one before.
double finished_steps(const std::vector<TrainingStep>& steps) {
  double sum = 0;
  const TrainingStep* before = nullptr;
  for (const auto& step : steps) {
    const bool went_on = before != nullptr && step.number > before->number;
    sum += went_on ? static_cast<double>(step.number - before->number) : 1;
    before = &step;
  }
  return sum;
}

/// The starts of a process after its first.
double restarts_of(const record::ProcessRow& row) {
  const auto ends =
      std::ranges::count_if(row.spans, [](const record::ProcessSpan& span) { return !span.end.empty(); });
  const bool goes_on = !row.spans.empty() && row.spans.back().end.empty();
  return static_cast<double>(std::max<std::ptrdiff_t>(ends + (goes_on ? 1 : 0), 1) - 1);
}

std::string role_of_process(const std::string& process) {
  return process.substr(0, process.find('.'));
}

class RunPage {
 public:
  RunPage(const TopView& view, Exposition::Format format) : view_(view), page_(format) {}

  std::string str(const std::vector<GpuSample>& gpus) {
    add_run();
    add_steps();
    add_time();
    add_metrics();
    if (view_.processes.size() <= kMostProcessSeries) add_processes();
    add_gpus(gpus);
    return page_.take();
  }

 private:
  using Labels = Exposition::Labels;

  void sample(double value, const Labels& more = {}) {
    Labels labels{{"run", view_.run}};
    labels.insert(labels.end(), more.begin(), more.end());
    page_.sample(value, labels);
  }
  void one(std::string_view name, std::string_view help, double value) {
    page_.gauge(name, help);
    sample(value);
  }

  void add_run() {
    page_.gauge("nlaunch_run_info", "The run, always 1.");
    sample(1, {{"name", view_.name}, {"site", view_.site}});
    one("nlaunch_run_up", "1 while the run goes on, 0 once it has ended.", view_.alive ? 1 : 0);
    page_.gauge("nlaunch_run_state", "1 for the state of the run: running, or its outcome.");
    sample(1, {{"state", view_.state}});
    one("nlaunch_run_attempt", "Number of the attempt, counted from 0.", view_.attempt);
  }

  void add_steps() {
    const auto& steps = view_.timeline.steps;
    if (steps.empty()) return;
    one("nlaunch_run_step", "Newest training step, as the learners count.",
        static_cast<double>(steps.back().step));
    page_.counter("nlaunch_run_steps", "Training steps that were finished, including repeated ones.");
    sample(finished_steps(steps));
    const bool timed = steps.back().seconds > 0;
    if (!timed && view_.step_times.count == 0) return;
    page_.gauge("nlaunch_run_step_seconds", "Time of a training step: the last one, median and p90.");
    if (timed) sample(steps.back().seconds, {{"stat", "last"}});
    if (view_.step_times.count == 0) return;
    sample(view_.step_times.median, {{"stat", "median"}});
    sample(view_.step_times.p90, {{"stat", "p90"}});
  }

  /// The phases are no counters: productive time becomes lost when its steps have to be repeated.
  void add_time() {
    page_.gauge("nlaunch_run_phase_seconds", "Time of the run in each phase so far.");
    for (std::size_t i = 0; i < record::kPhases; ++i) {
      const auto phase = static_cast<Phase>(i);
      sample(view_.timeline.in(phase), {{"phase", std::string(title_of(phase))}});
    }
    if (const auto ettr = view_.timeline.ettr())
      one("nlaunch_run_ettr_ratio", "Effective training time ratio: productive time over all time.", *ettr);
    if (view_.walltime_left)
      one("nlaunch_run_walltime_left_seconds", "Time until the scheduler ends the job.",
          *view_.walltime_left);
  }

  void add_metrics() {
    if (view_.metrics.empty()) return;
    page_.gauge("nlaunch_run_metric", "Newest value of each of watch.metrics.");
    for (const auto& [name, values] : view_.metrics)
      if (!values.empty()) sample(values.back(), {{"metric", name}});
  }

  void of_process(double value, const std::string& process) {
    sample(value, {{"process", process}, {"role", role_of_process(process)}});
  }

  void add_processes() {
    if (view_.processes.empty()) return;
    page_.gauge("nlaunch_process_up", "1 if the process runs.");
    for (const auto& process : view_.processes) of_process(process.alive ? 1 : 0, process.name);
    page_.gauge("nlaunch_process_ready", "1 if the process runs and is ready.");
    for (const auto& process : view_.processes)
      of_process(process.alive && process.state != "starting" ? 1 : 0, process.name);
    page_.counter("nlaunch_process_restarts", "Starts of the process after its first, in all attempts.");
    std::map<std::string, double> restarts;
    for (const auto& row : view_.timeline.processes) restarts[row.name] = restarts_of(row);
    for (const auto& process : view_.processes) of_process(restarts[process.name], process.name);
    if (std::ranges::none_of(view_.processes, [](const auto& process) { return process.step.has_value(); }))
      return;
    page_.gauge("nlaunch_process_step", "Newest training step that the process has reported.");
    for (const auto& process : view_.processes)
      if (process.step) of_process(static_cast<double>(*process.step), process.name);
  }

  /// Names, units and help as in etc/default-counters.csv, and labels as in
  /// internal/pkg/rendermetrics/render_metrics.go of dcgm-exporter 4.5.3-4.8.2. Its labels `device` and
  /// `modelName` are not sampled. NVML counts memory that the driver reserves as used, DCGM does not.
  void add_gpus(const std::vector<GpuSample>& gpus) {
    if (gpus.empty()) return;
    constexpr double kMiB = 1 << 20;
    using Value = std::optional<double> (*)(const GpuSample&);
    struct Row {
      std::string_view name, help;
      Value value;
    };
    constexpr Row kRows[] = {
        {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", [](const GpuSample& gpu) { return gpu.busy; }},
        {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).",
         [](const GpuSample& gpu) -> std::optional<double> {
           if (!gpu.memory_used) return std::nullopt;
           return *gpu.memory_used / kMiB;
         }},
        {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).",
         [](const GpuSample& gpu) -> std::optional<double> {
           if (!gpu.memory_used || !gpu.memory_total) return std::nullopt;
           return (*gpu.memory_total - *gpu.memory_used) / kMiB;
         }},
        {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", [](const GpuSample& gpu) { return gpu.power; }},
    };
    for (const auto& [name, help, value] : kRows) {
      if (std::ranges::none_of(gpus, [&](const GpuSample& gpu) { return value(gpu).has_value(); })) continue;
      page_.gauge(name, help);
      for (const auto& gpu : gpus)
        if (const auto known = value(gpu)) page_.sample(*known, labels_of(gpu));
    }
    page_.gauge("nlaunch_process_gpu_info", "A GPU that the process uses, always 1.");
    for (const auto& gpu : gpus)
      for (const auto& process : gpu.processes) {
        auto labels = labels_of(gpu);
        labels.insert(labels.end(), {{"process", process}, {"role", role_of_process(process)}});
        page_.sample(1, labels);
      }
  }

  [[nodiscard]] Labels labels_of(const GpuSample& gpu) const {
    Labels labels{{"gpu", std::to_string(gpu.number)}};
    if (!gpu.uuid.empty()) labels.emplace_back("UUID", gpu.uuid);
    if (!gpu.bus_id.empty()) labels.emplace_back("pci_bus_id", gpu.bus_id);
    labels.emplace_back("Hostname", gpu.host);
    labels.emplace_back("run", view_.run);
    return labels;
  }

  const TopView& view_;
  Exposition page_;
};

}  // namespace

std::string run_prometheus(const TopView& view, const std::vector<GpuSample>& gpus,
                           Exposition::Format format) {
  return RunPage(view, format).str(gpus);
}

std::string scrape_targets_json(const std::string& run, const std::vector<ScrapeTarget>& targets) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& target : targets) {
    nlohmann::ordered_json entry{{"targets", {target.address}}};
    if (!target.process.empty())
      entry["labels"] = {
          {"run", run}, {"role", target.role}, {"process", target.process}, {"replica", target.replica}};
    out.push_back(std::move(entry));
  }
  return json_text(out, 2) + "\n";
}

}  // namespace nlaunch::report
