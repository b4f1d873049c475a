#include "report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "base/format.h"
#include "base/text.h"
#include "report/run_report_facts.h"

namespace nlaunch::report {
namespace {

using record::Interval;
using record::Json;
using record::Phase;
using record::Timeline;

constexpr double kMinute = 60;
constexpr double kHour = 3600;
constexpr double kDay = 86400;
constexpr double kPercent = 100;

std::vector<plan::Metric> metrics_of(const Json& plan) {
  std::vector<plan::Metric> out;
  const auto& metrics = record::at(record::at(plan, "watch"), "metrics");
  if (!metrics.is_array()) return out;
  for (const auto& metric : metrics)
    out.push_back({record::text_at(metric, "name"), record::text_at(metric, "pattern")});
  return out;
}

bool is_engine(const Json& plan, const std::string& process) {
  const auto& roles = record::at(plan, "roles");
  const auto name = process.substr(0, process.find('.'));
  return roles.is_array() && std::ranges::any_of(roles, [&](const Json& role) {
           return record::text_at(role, "name") == name && record::text_at(role, "kind") == "engine";
         });
}

/// From the start of the first engine until all of them were ready for the first time.
std::optional<double> engines_ready_after(const RunReport& report) {
  std::optional<double> first;
  double ready = 0;
  for (const auto& row : report.timeline.processes) {
    if (row.spans.empty() || !is_engine(report.files->plan, row.name)) continue;
    const auto& start = row.spans.front();
    if (start.state != record::ProcessSpan::State::starting || row.spans.size() < 2) return std::nullopt;
    first = std::min(first.value_or(start.time.begin), start.time.begin);
    ready = std::max(ready, start.time.end);
  }
  return first ? std::optional(ready - *first) : std::nullopt;
}

std::string share_text(double share) {
  return fmt::format("{:.1f} %", share * kPercent);
}

/// "1.20 s/step, 31.0 s"
std::string before_text(const RunReport::Before& before) {
  std::string out = before.state;
  if (const auto times = before.timeline.step_times(); times.count > 0)
    out += fmt::format(", {:.3g} s/step", times.median);
  out += ", " + time_span(before.timeline.seconds);
  for (const auto& [name, of] : before.metrics)
    out += fmt::format(", {} {:.3g} → {:.3g}", name, of.first, of.last);
  return text::printable(out);
}

std::string phase_table(const RunReport& report, const Paint& paint) {
  const auto& timeline = report.timeline;
  Table table({"where the time went", "time", "share", timeline.gpus > 0 ? "GPU hours" : ""});
  for (const auto phase : phases_of(timeline)) {
    const auto seconds = timeline.in(phase);
    const auto name = std::string(title_of(phase));
    table.add({phase == Phase::productive ? paint.green(name) : name, time_span(seconds),
               share_text(seconds / timeline.seconds),
               timeline.gpus > 0 ? hours_text(timeline.gpu_hours(phase)) : ""});
  }
  return table.empty() ? "" : table.str(paint);
}

std::string cost_table(const RunReport& report, const Paint& paint) {
  constexpr std::size_t kMost = 12;
  const auto& timeline = report.timeline;
  Table table({"what cost time", "time", timeline.gpus > 0 ? "GPU hours" : "", "of this"});
  const auto costs = record::costs_of(timeline);
  for (const auto& cost : std::span(costs).first(std::min(kMost, costs.size())))
    table.add({cause_line(cost.cause), time_span(cost.total()),
               timeline.gpus > 0 ? hours_text(timeline.gpu_hours(cost)) : "",
               text::join(parts_of(cost), ", ")});
  auto out = table.empty() ? "" : table.str(paint);
  if (costs.size() > kMost) out += fmt::format("and {} more; --json has all of them\n", costs.size() - kMost);
  return out;
}

std::string process_table(const RunReport& report, const Paint& paint) {
  constexpr std::size_t kMost = 40;
  Table table({"process", "node", "ready after", "starts", "end"});
  const auto rows = processes_that_matter(report.timeline, kMost);
  for (const auto* row : rows)
    table.add({row->name, text::printable(row->host), ready_text(*row), starts_text(*row), end_text(*row)});
  auto out = table.empty() ? "" : table.str(paint);
  if (rows.size() < report.timeline.processes.size())
    out +=
        fmt::format("and {} more; --json has all of them\n", report.timeline.processes.size() - rows.size());
  return out;
}

Json cost_json(const Timeline& timeline, const record::Cost& cost) {
  const auto& cause = cost.cause;
  Json out{{"cause", cause_line(cause)}, {"kind", title_of(cause.kind)}};
  if (!cause.job.empty()) out["job"] = cause.job;
  if (cause.attempt) out["attempt"] = *cause.attempt;
  if (cause.restart > 0) out["restart"] = cause.restart;
  out["seconds"] = cost.total();
  out["gpu_hours"] = timeline.gpu_hours(cost);
  out["phases"] = Json::array();
  for (std::size_t i = 0; i < record::kPhases; ++i) {
    if (cost.seconds[i] > 0)
      out["phases"].push_back({{"phase", title_of(static_cast<Phase>(i))}, {"seconds", cost.seconds[i]}});
  }
  return out;
}

std::string metric_table(const RunReport& report, const Paint& paint) {
  Table table({"metric", "first → last", "median", "least – most", "values"});
  for (const auto& [name, of] : report.metrics) {
    table.add({text::printable(name), fmt::format("{:.4g} → {:.4g}", of.first, of.last),
               fmt::format("{:.4g}", of.median), fmt::format("{:.4g} – {:.4g}", of.least, of.most),
               std::to_string(of.values)});
  }
  return table.empty() ? "" : table.str(paint);
}

}  // namespace

std::string time_span(double seconds) {
  constexpr double kMost = 1e12;
  seconds = std::clamp(seconds, 0.0, kMost);
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 2 * kMinute) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds);
  constexpr std::uint64_t kOf = 60;
  if (seconds < 2 * kHour) return fmt::format("{}m{:02}s", whole / kOf, whole % kOf);
  if (seconds < 2 * kDay) return fmt::format("{}h{:02}m", whole / kOf / kOf, whole / kOf % kOf);
  constexpr std::uint64_t kHours = 24;
  return fmt::format("{}d{:02}h", whole / kOf / kOf / kHours, whole / kOf / kOf % kHours);
}

std::string hours_text(double hours) {
  return hours < 1 ? fmt::format("{:.3f}", hours) : fmt::format("{:.1f}", hours);
}

bool is_well(const RunReport& report) {
  return report.alive || report.state == "finished";
}

RunReport report_of(const record::RunFiles& files, std::string state, double now, bool alive, bool metrics) {
  RunReport out{.files = &files,
                .timeline = record::timeline_of(files, now, alive),
                .state = std::move(state),
                .alive = alive};
  if (const auto wanted = metrics_of(files.plan); metrics && !wanted.empty()) {
    out.printed = bench::read_printed(files.folder, wanted);
    out.metrics = bench::summarized(out.printed);
  }
  return out;
}

std::string facts_line(const RunReport& report) {
  std::vector<std::string> facts;
  if (const auto& timeline = report.timeline; !timeline.steps.empty()) {
    facts.push_back(text::count(counted_steps(timeline), "step"));
    if (const auto times = timeline.step_times(); times.count > 0)
      facts.push_back(fmt::format("{:.2f} s/step (p90 {:.2f})", times.median, times.p90));
  }
  for (const auto& [name, of] : report.metrics)
    facts.push_back(text::printable(fmt::format("{} {:.3g} → {:.3g}", name, of.first, of.last)));
  if (const auto ready = engines_ready_after(report))
    facts.push_back("engines ready after " + time_span(*ready));
  return text::join(facts, ", ");
}

std::string headline(const RunReport& report) {
  const auto facts = facts_line(report);
  return fmt::format("{} {} {}{}", text::printable(report.state), report.timeline.over ? "after" : "for",
                     time_span(report.timeline.seconds), facts.empty() ? "" : ": " + facts);
}

std::vector<Phase> phases_of(const Timeline& timeline) {
  std::vector<Phase> out;
  for (std::size_t i = 0; i < record::kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (timeline.in(phase) > 0) out.push_back(phase);
  }
  return out;
}

std::uint64_t counted_steps(const Timeline& timeline) {
  std::vector<std::uint64_t> kept;
  for (const auto& step : timeline.steps)
    if (!step.lost) kept.push_back(step.number);
  if (kept.empty()) return 0;
  // Steps are reported some at a time: the first report of a run that began at 0 is of about as many as the
  // next one; a run that was resumed begins far above that.
  const auto apart = kept.size() > 1 && kept[1] > kept[0] ? kept[1] - kept[0] : 1;
  std::uint64_t steps = kept[0] <= 2 * apart ? kept[0] : 1;
  for (std::size_t i = 1; i < kept.size(); ++i) steps += kept[i] > kept[i - 1] ? kept[i] - kept[i - 1] : 1;
  return steps;
}

std::string ready_text(const record::ProcessRow& row) {
  if (row.spans.empty() || row.spans.front().state != record::ProcessSpan::State::starting) return "";
  if (row.spans.front().end.empty() && row.spans.size() > 1)
    return time_span(row.spans.front().time.seconds());
  return "never";
}

std::string starts_text(const record::ProcessRow& row) {
  const auto ends = static_cast<std::size_t>(
      std::ranges::count_if(row.spans, [](const auto& span) { return !span.end.empty(); }));
  const bool goes_on = !row.spans.empty() && row.spans.back().end.empty();
  return std::to_string(ends + (goes_on ? 1 : 0));
}

std::string end_text(const record::ProcessRow& row) {
  return row.spans.empty() ? "" : text::printable(row.spans.back().end);
}

std::vector<const record::ProcessRow*> processes_that_matter(const Timeline& timeline, std::size_t most) {
  std::vector<const record::ProcessRow*> out;
  for (const auto& row : timeline.processes) out.push_back(&row);
  if (out.size() <= most) return out;
  std::ranges::stable_sort(out,
                           [](const auto* a, const auto* b) { return a->spans.size() > b->spans.size(); });
  out.resize(most);
  std::ranges::sort(out, [&](const auto* a, const auto* b) { return a < b; });
  return out;
}

std::string ettr_text(const Timeline& timeline) {
  const auto all = timeline.ettr();
  if (!all) return "";
  auto out = share_text(*all);
  const auto queue = timeline.in(Phase::queue);
  if (queue > 0 && queue < timeline.seconds)
    out += fmt::format("; {} without the queue",
                       share_text(timeline.in(Phase::productive) / (timeline.seconds - queue)));
  if (timeline.seconds > kHour)
    out += fmt::format("; {} in the last hour",
                       share_text(*timeline.ettr({timeline.seconds - kHour, timeline.seconds})));
  return out;
}

std::string gpu_hours_text(const Timeline& timeline) {
  if (timeline.gpus == 0) return "";
  double all = 0;
  for (const auto phase : phases_of(timeline)) all += timeline.gpu_hours(phase);
  if (all <= 0) return "";
  const auto productive = timeline.gpu_hours(Phase::productive);
  return fmt::format("{}, of which {} productive ({})", hours_text(all), hours_text(productive),
                     share_text(productive / all));
}

std::string cause_line(const record::Cause& cause) {
  using Kind = record::Cause::Kind;
  auto out = std::string(title_of(cause.kind));
  if (cause.kind == Kind::walltime && !cause.job.empty()) out += " of job " + cause.job;
  const bool by_name = cause.kind == Kind::first_start || cause.kind == Kind::finished;
  if (by_name || cause.kind == Kind::walltime) return text::printable(out);
  if (!cause.what.empty()) out = cause.kind == Kind::stall ? "stall: " + cause.what : cause.what;
  if (!cause.why.empty()) out += ": " + cause.why;
  return text::printable(cause.restart > 0 ? fmt::format("restart {}: {}", cause.restart, out) : out);
}

std::vector<std::string> parts_of(const record::Cost& cost) {
  std::vector<std::pair<double, Phase>> parts;
  constexpr double kLeast = 0.01;
  for (std::size_t i = 0; i < record::kPhases; ++i)
    if (cost.seconds[i] > kLeast * cost.total()) parts.emplace_back(cost.seconds[i], static_cast<Phase>(i));
  std::ranges::sort(parts, std::greater<>());
  std::vector<std::string> out;
  for (const auto& [seconds, phase] : parts)
    out.push_back(fmt::format("{} {}", title_of(phase), time_span(seconds)));
  return out;
}

std::vector<std::pair<std::string, std::string>> cause_of_end(const RunReport& report) {
  const auto& summary = report.files->summary;
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out.emplace_back(name, text::printable(value));
  };
  // The summary is of an earlier job while another one runs.
  if (report.alive || record::number_at(summary, "exit_code") == 0) return out;
  add("what", record::text_at(summary, "sentence"));
  if (!report.files->attempts.empty()) {
    const auto& findings = record::at(report.files->attempts.back().diagnosis, "findings");
    if (findings.is_array() && !findings.empty()) {
      add("why", record::text_at(findings.front(), "why"));
      add("fix", record::text_at(findings.front(), "fix"));
    }
  }
  add("next", record::text_at(summary, "advice"));
  return out;
}

std::string run_report_text(const RunReport& report, const Paint& paint) {
  const auto& files = *report.files;
  const bool well = is_well(report);
  const auto answer = headline(report);
  auto out = fmt::format("{} {}\n{}\n", paint.bold(text::printable(record::text_at(files.plan, "name"))),
                         files.folder.filename().string(), well ? paint.green(answer) : paint.red(answer));
  for (const auto& [name, value] : cause_of_end(report))
    out += fmt::format("{} {}\n", paint.dim(name + ":"), value);
  for (const auto& link : report.timeline.links)
    out += fmt::format("{} {} ({})\n", paint.dim(link.kind + ":"), link.url, link.process);
  if (report.before)
    out += fmt::format("{} {} ({})\n", paint.dim("the run before:"), before_text(*report.before),
                       report.before->id);
  if (const auto ettr = ettr_text(report.timeline); !ettr.empty())
    out += fmt::format("{} {}\n", paint.dim("ETTR:"), ettr);
  if (const auto hours = gpu_hours_text(report.timeline); !hours.empty())
    out += fmt::format("{} {}\n", paint.dim("GPU hours:"), hours);
  if (const auto times = report.timeline.step_times(); times.count > 0) {
    out += fmt::format("{} median {}, p90 {}, longest {}, {} slow\n", paint.dim("step time:"),
                       time_span(times.median), time_span(times.p90), time_span(times.longest), times.slow);
  }
  for (const auto& part : {phase_table(report, paint), cost_table(report, paint), metric_table(report, paint),
                           process_table(report, paint)})
    if (!part.empty()) out += "\n" + part;
  return out + fmt::format("\n{} {}\n", paint.dim("run directory:"), files.folder.string());
}

nlohmann::ordered_json run_report_json(const RunReport& report) {
  const auto& timeline = report.timeline;
  auto out = stamped<nlohmann::ordered_json>(formats::kReport);
  out["run"] = report.files->folder.filename().string();
  out["name"] = record::text_at(report.files->plan, "name");
  out["state"] = report.state;
  out["seconds"] = timeline.seconds;
  out["gpus"] = timeline.gpus;
  out["ettr"] = timeline.ettr() ? Json(*timeline.ettr()) : Json(nullptr);
  const Interval last_hour{timeline.seconds - kHour, timeline.seconds};
  out["ettr_last_hour"] = timeline.seconds > kHour ? Json(*timeline.ettr(last_hour)) : Json(nullptr);
  out["links"] = Json::array();
  for (const auto& link : timeline.links)
    out["links"].push_back({{"kind", link.kind}, {"url", link.url}, {"process", link.process}});
  out["phases"] = Json::array();
  for (const auto phase : phases_of(timeline)) {
    out["phases"].push_back({{"phase", title_of(phase)},
                             {"seconds", timeline.in(phase)},
                             {"gpu_hours", timeline.gpu_hours(phase)}});
  }
  out["causes"] = Json::array();
  for (const auto& cost : record::costs_of(timeline)) out["causes"].push_back(cost_json(timeline, cost));
  const auto times = timeline.step_times();
  out["steps"] = {{"count", counted_steps(timeline)},
                  {"median", times.median},
                  {"p90", times.p90},
                  {"longest", times.longest},
                  {"slow", times.slow},
                  {"lost", std::ranges::count_if(timeline.steps, &record::TrainingStep::lost)}};
  out["metrics"] = Json::object();
  for (const auto& [name, of] : report.metrics)
    out["metrics"][name] = {
        {"count", of.values}, {"first", of.first}, {"last", of.last}, {"median", of.median}};
  out["processes"] = Json::array();
  for (const auto& row : timeline.processes) {
    Json spans = Json::array();
    for (const auto& span : row.spans) {
      spans.push_back(
          {{"state", state_name(span.state)}, {"begin", span.time.begin}, {"end", span.time.end}});
      if (!span.end.empty()) spans.back()["how"] = span.end;
    }
    out["processes"].push_back({{"name", row.name}, {"host", row.host}, {"spans", std::move(spans)}});
  }
  return out;
}

std::string_view state_name(record::ProcessSpan::State state) {
  constexpr std::string_view kNames[] = {"starting", "up", "stale"};
  return kNames[static_cast<std::size_t>(state)];
}

namespace {

/// Times and GPU hours of many runs, under one name each.
class Sums {
 public:
  explicit Sums(std::size_t names) : rows_(names) {}
  void add(std::size_t name, double seconds, double hours) {
    rows_[name].seconds += seconds;
    rows_[name].hours += hours;
    ++rows_[name].count;
  }
  struct Row {
    double seconds = 0;
    double hours = 0;
    std::size_t count = 0;
  };
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] Row all() const {
    Row out;
    for (const auto& row : rows_) {
      out.seconds += row.seconds;
      out.hours += row.hours;
    }
    return out;
  }

 private:
  std::vector<Row> rows_;
};

std::string phases_of_all(const Sums& sums, const Paint& paint) {
  const auto all = sums.all();
  Table table({"where the time went", "time", "share", all.hours > 0 ? "GPU hours" : ""});
  for (std::size_t i = 0; i < record::kPhases; ++i) {
    const auto& row = sums.rows()[i];
    if (row.seconds <= 0) continue;
    table.add({std::string(title_of(static_cast<Phase>(i))), time_span(row.seconds),
               share_text(row.seconds / all.seconds), all.hours > 0 ? hours_text(row.hours) : ""});
  }
  return table.empty() ? "" : "\n" + table.str(paint);
}

/// `all`: of all runs, productive time included.
std::string causes_of_all(const Sums& sums, const Sums::Row& all, const Paint& paint) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < record::kCauses; ++i)
    if (sums.rows()[i].seconds > 0) order.push_back(i);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    return std::pair(sums.rows()[i].hours, sums.rows()[i].seconds);
  });
  const bool gpus = all.hours > 0;
  Table table({"what cost time", "times", "time", gpus ? "GPU hours" : "",
               gpus ? "of all GPU hours" : "of all time"});
  for (const auto i : order) {
    const auto& row = sums.rows()[i];
    table.add({std::string(title_of(static_cast<record::Cause::Kind>(i))), std::to_string(row.count),
               time_span(row.seconds), gpus ? hours_text(row.hours) : "",
               share_text(gpus ? row.hours / all.hours : row.seconds / all.seconds)});
  }
  return table.empty() ? "" : "\n" + table.str(paint);
}

}  // namespace

std::string runs_report_text(const std::vector<RunReport>& reports, const Paint& paint) {
  Table table({"name", "run", "state", "time", "steps", "s/step", "ETTR", "GPU hours"});
  Sums phases(record::kPhases);
  Sums causes(record::kCauses);
  for (const auto& report : reports) {
    const auto& timeline = report.timeline;
    double of_run = 0;
    for (const auto phase : phases_of(timeline)) {
      phases.add(static_cast<std::size_t>(phase), timeline.in(phase), timeline.gpu_hours(phase));
      of_run += timeline.gpu_hours(phase);
    }
    for (const auto& cost : record::costs_of(timeline))
      causes.add(static_cast<std::size_t>(cost.cause.kind), cost.total(), timeline.gpu_hours(cost));
    const auto times = timeline.step_times();
    const auto ettr = timeline.ettr();
    table.add({text::printable(record::text_at(report.files->plan, "name")),
               report.files->folder.filename().string(), report.state, time_span(timeline.seconds),
               std::to_string(counted_steps(timeline)),
               times.count > 0 ? fmt::format("{:.3g}", times.median) : "", ettr ? share_text(*ettr) : "",
               timeline.gpus > 0 ? hours_text(of_run) : ""});
  }
  if (reports.empty()) return "";
  return table.str(paint) + phases_of_all(phases, paint) + causes_of_all(causes, phases.all(), paint);
}

}  // namespace nlaunch::report
