#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/json.h"
#include "base/text.h"
#include "report/html.h"
#include "report/pages.h"
#include "report/run_report.h"
#include "report/run_report_facts.h"

namespace nlaunch::report {
namespace {

using record::Interval;
using record::Phase;
using record::Timeline;

// Of the drawings, in their own units.
constexpr double kWide = 900;
constexpr double kLabels = 130;
constexpr double kMargin = 12;
constexpr double kRow = 20;
constexpr double kAxis = 24;
constexpr std::size_t kMostProcesses = 64;
constexpr std::size_t kMostPoints = 1500;
constexpr std::size_t kMostSeries = 6;  ///< more colours cannot be told apart

/// A linear axis with a tick at round values.
struct TimeAxis {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;
  [[nodiscard]] double at(double value) const {
    return from + (high > low ? (value - low) / (high - low) : 0) * (to - from);
  }
};

/// About six of them.
double tick_of(double range, bool time) {
  constexpr double kTicks = 6;
  const auto least = range / kTicks;
  if (time) {
    for (const double step : {1., 2., 5., 10., 20., 30., 60., 120., 300., 600., 1200., 1800., 3600., 7200.,
                              21600., 43200., 86400.})
      if (step >= least) return step;
  }
  const auto power = std::pow(10, std::floor(std::log10(std::max(least, 1e-12))));
  for (const double step : {1., 2., 5.})
    if (step * power >= least) return step * power;
  return 10 * power;
}

std::string time_axis(const TimeAxis& x, double top, double bottom) {
  std::string out;
  const auto step = tick_of(x.high - x.low, true);
  for (double value = 0; value <= x.high; value += step) {
    out += fmt::format("<path class=grid d=\"M{0:.1f} {1}V{2}\"/><text class=x x={0:.1f} y={3}>{4}</text>\n",
                       x.at(value), top, bottom, bottom + 16, value == 0 ? "0" : time_span(value));
  }
  return out;
}

std::string value_axis(const TimeAxis& y, double left, double right) {
  constexpr int kMost = 20;
  std::string out;
  const auto step = tick_of(y.high - y.low, false);
  const auto first = std::ceil(y.low / step) * step;
  for (int i = 0; i < kMost; ++i) {
    const auto value = first + i * step;
    if (!std::isfinite(value) || value > y.high + step / 1e6) break;
    out +=
        fmt::format("<path class=grid d=\"M{1} {0:.1f}H{2}\"/><text class=y x={3} y={4:.1f}>{5:.4g}</text>\n",
                    y.at(value), left, right, left - 6, y.at(value) + 4, value);
  }
  return out;
}

std::string box(std::string_view kind, const TimeAxis& x, const Interval& time, double top, double height,
                const std::string& title) {
  // What is shorter than a pixel must be seen all the same.
  const auto width = std::max(1.0, x.at(time.end) - x.at(time.begin));
  return fmt::format("<rect class=\"{}\" x={:.1f} y={} width={:.1f} height={}><title>{}</title></rect>\n",
                     kind, x.at(time.begin), top, width, height, html(title));
}

std::string row_label(const std::string& name, double top) {
  constexpr std::size_t kMost = 18;
  const auto characters = text::characters(name);
  std::string shown = name;
  if (characters.size() > kMost)
    shown =
        "…" +
        name.substr(static_cast<std::size_t>(characters[characters.size() - kMost + 1].data() - name.data()));
  return fmt::format("<text x=0 y={}>{}</text>\n", top + 13, html(shown));
}

std::string phase_class(Phase phase) {
  return fmt::format("phase p{}", static_cast<int>(phase));
}

std::string legend(const Timeline& timeline) {
  std::string out = "<p class=note>";
  for (const auto phase : phases_of(timeline))
    out += fmt::format("<span class=whole><span class=\"key p{}\"></span>{}</span> ", static_cast<int>(phase),
                       title_of(phase));
  return out + "</p>\n";
}

/// A row for the run, and one for each process.
std::string gantt(const Timeline& timeline) {
  const auto rows = processes_that_matter(timeline, kMostProcesses);
  const double bottom = kRow * static_cast<double>(rows.size() + 1) + 4;
  const TimeAxis x{0, timeline.seconds, kLabels, kWide - kMargin};
  auto out = fmt::format(
      "<h2>What happened when</h2>\n{}<div class=wide><svg viewBox=\"0 0 {} {}\" role=img "
      "aria-label=\"Phases of the run and of each process against time\">\n",
      legend(timeline), kWide, bottom + kAxis);
  out += time_axis(x, 0, bottom) + row_label("the run", 0);
  for (const auto& span : timeline.phases) {
    out += box(phase_class(span.phase), x, span.time, 2, kRow - 4,
               fmt::format("{}: {}, from {}", title_of(span.phase), time_span(span.time.seconds()),
                           time_span(span.time.begin)));
  }
  double top = kRow;
  for (const auto* row : rows) {
    out += row_label(row->name, top);
    for (const auto& span : row->spans) {
      out += box(fmt::format("state {}", state_name(span.state)), x, span.time, top + 3, kRow - 8,
                 fmt::format("{}: {}, {}{}", row->name, state_name(span.state),
                             time_span(span.time.seconds()), span.end.empty() ? "" : ", then " + span.end));
      if (!span.end.empty() && !record::exited_well(span.end))
        out += fmt::format("<path class=exit d=\"M{:.1f} {}v{}\"><title>{}</title></path>\n",
                           x.at(span.time.end), top + 1, kRow - 4, html(span.end));
    }
    top += kRow;
  }
  out += "</svg></div>\n";
  if (rows.size() < timeline.processes.size())
    out += fmt::format("<p class=note>{} of {} processes: those that started most often.</p>\n", rows.size(),
                       timeline.processes.size());
  return out;
}

std::vector<const record::TrainingStep*> shown_steps(const Timeline& timeline) {
  std::vector<const record::TrainingStep*> known;
  for (const auto& step : timeline.steps)
    if (step.seconds > 0) known.push_back(&step);
  if (known.size() <= kMostPoints) return known;
  const auto apart = known.size() / kMostPoints + 1;
  std::vector<const record::TrainingStep*> out;
  std::size_t slow = 0;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (i % apart == 0 || (known[i]->slow && ++slow < kMostPoints)) out.push_back(known[i]);
  return out;
}

std::string step_chart(const Timeline& timeline) {
  const auto steps = shown_steps(timeline);
  if (steps.size() < 2) return "";
  constexpr double kHeight = 200;
  const auto times = timeline.step_times();
  const TimeAxis x{0, timeline.seconds, 60, kWide - kMargin};
  double most = times.longest;
  for (const auto* step : steps) most = std::max(most, step->seconds);
  const TimeAxis y{0, most * 1.05, kHeight, 8};
  auto out = fmt::format(
      "<h2>Time of each training step, seconds</h2>\n<p>Median {}, p90 {}, longest {}; {} of {} took more "
      "than twice the median.</p>\n<div class=wide><svg viewBox=\"0 0 {} {}\" role=img "
      "aria-label=\"Seconds of each training step against time\">\n",
      time_span(times.median), time_span(times.p90), time_span(times.longest), times.slow, times.count, kWide,
      kHeight + kAxis);
  out += time_axis(x, 8, kHeight) + value_axis(y, 60, kWide - kMargin);
  for (const auto* step : steps) {
    out +=
        fmt::format("<circle class=\"{}\" cx={:.1f} cy={:.1f} r={}><title>step {}: {}{}</title></circle>\n",
                    step->lost   ? "lost"
                    : step->slow ? "slow"
                                 : "c0",
                    x.at(step->at), y.at(step->seconds), step->slow ? 4 : 2.5, step->step,
                    time_span(step->seconds), step->lost ? ", lost" : "");
  }
  return out + "</svg></div>\n";
}

std::string line(const std::vector<std::pair<double, double>>& points, const TimeAxis& x, const TimeAxis& y,
                 std::size_t colour) {
  std::string path;
  for (const auto& [at, value] : points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(at), y.at(value));
  return fmt::format("<g class=c{}><path d=\"{}\"/></g>\n", colour, path);
}

std::string ettr_chart(const Timeline& timeline) {
  constexpr double kWindow = 3600;
  constexpr int kSamples = 200;
  constexpr double kHeight = 140;
  constexpr double kPercent = 100;
  if (timeline.steps.empty()) return "";
  const TimeAxis x{0, timeline.seconds, 60, kWide - kMargin};
  const TimeAxis y{0, kPercent, kHeight, 8};
  std::vector<std::pair<double, double>> all;
  std::vector<std::pair<double, double>> window;
  for (int i = 1; i <= kSamples; ++i) {
    const auto at = timeline.seconds * i / kSamples;
    all.emplace_back(at, timeline.ettr({0, at}).value_or(0) * kPercent);
    if (timeline.seconds > kWindow)
      window.emplace_back(at, timeline.ettr({std::max(0.0, at - kWindow), at}).value_or(0) * kPercent);
  }
  auto out = fmt::format(
      "<h2>Effective training time ratio, %</h2>\n<p class=note><span class=\"key c2\"></span>since the "
      "start{} (<a href=\"https://arxiv.org/abs/2410.21680\">Kokolis et al.</a>: productive time over all "
      "time, the queue included)</p>\n<div class=wide><svg viewBox=\"0 0 {} {}\" role=img "
      "aria-label=\"Effective training time ratio against time\">\n",
      window.empty() ? "" : " <span class=\"key c1\"></span>in the hour before", kWide, kHeight + kAxis);
  out += time_axis(x, 8, kHeight) + value_axis(y, 60, kWide - kMargin) + line(all, x, y, 2);
  if (!window.empty()) out += line(window, x, y, 1);
  return out + "</svg></div>\n";
}

/// Of each process that printed it, against the number of the value.
std::string metric_chart(const RunReport& report, const std::string& name) {
  constexpr double kHeight = 160;
  constexpr double kNarrow = 440;
  std::vector<std::vector<double>> series;
  for (const auto& [process, metrics] : report.printed) {
    const auto of = metrics.find(name);
    if (of != metrics.end() && of->second.size() > 1 && series.size() < kMostSeries)
      series.push_back(of->second);
  }
  if (series.empty()) return "";
  const auto& printed = report.metrics.at(name);
  std::size_t longest = 0;
  for (const auto& values : series) longest = std::max(longest, values.size());
  const auto size = std::max(std::abs(printed.least), std::abs(printed.most));
  const auto room = std::max({(printed.most - printed.least) * 0.05, size * 1e-6, 1e-9});
  const TimeAxis x{0, static_cast<double>(longest - 1), 60, kNarrow - kMargin};
  const TimeAxis y{printed.least - room, printed.most + room, kHeight, 8};
  auto out = fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=img aria-label=\"{}\">\n",
      html(name), kNarrow, kHeight + 8, html(name));
  out += value_axis(y, 60, kNarrow - kMargin);
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto apart = series[i].size() / kMostPoints + 1;
    std::vector<std::pair<double, double>> points;
    for (std::size_t at = 0; at < series[i].size(); at += apart)
      points.emplace_back(static_cast<double>(at), series[i][at]);
    out += line(points, x, y, i);
  }
  return out + "</svg></figure>\n";
}

std::string metrics(const RunReport& report) {
  std::string charts;
  for (const auto& [name, of] : report.metrics) charts += metric_chart(report, name);
  return charts.empty() ? "" : "<h2>Metrics</h2>\n<div class=charts>\n" + charts + "</div>\n";
}

std::string cells(const std::vector<std::string>& row, std::string_view tag = "td") {
  std::string out = "<tr>";
  for (const auto& one : row) out += fmt::format("<{0}>{1}</{0}>", tag, html(one));
  return out + "</tr>\n";
}

std::string phases(const RunReport& report) {
  const auto& timeline = report.timeline;
  const auto row = [&](std::vector<std::string> of, const std::string& hours) {
    if (timeline.gpus > 0) of.push_back(hours);
    return of;
  };
  auto out = "<h2>Where the time went</h2>\n<div class=wide><table>\n" +
             cells(row({"", "time", "share"}, "GPU hours"), "th");
  for (const auto phase : phases_of(timeline)) {
    constexpr double kPercent = 100;
    out += cells(row({std::string(title_of(phase)), time_span(timeline.in(phase)),
                      fmt::format("{:.1f} %", timeline.in(phase) / timeline.seconds * kPercent)},
                     hours_text(timeline.gpu_hours(phase))));
  }
  out += "</table></div>\n";
  if (const auto ettr = ettr_text(timeline); !ettr.empty())
    out += fmt::format("<p>Effective training time ratio: {}</p>\n", html(ettr));
  return out;
}

/// A list whose lines break between its parts, not within one.
std::string unbroken(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) {
    if (!out.empty()) out += ", ";
    for (const char c : part) out += c == ' ' ? std::string("\u00a0") : std::string(1, c);
  }
  return out;
}

std::string costs(const RunReport& report) {
  constexpr std::size_t kMost = 40;
  const auto& timeline = report.timeline;
  const auto all = record::costs_of(timeline);
  if (all.empty()) return "";
  const bool gpus = timeline.gpus > 0;
  const auto row = [&](std::vector<std::string> of, const std::string& hours) {
    if (gpus) of.insert(of.begin() + 2, hours);
    return of;
  };
  auto out = fmt::format("<h2>{} by cause</h2>\n", gpus ? "GPU hours" : "Time");
  if (const auto hours = gpu_hours_text(timeline); !hours.empty())
    out += fmt::format("<p>GPU hours: {}</p>\n", html(hours));
  out += "<div class=wide><table>\n" + cells(row({"what cost time", "time", "of this"}, "GPU hours"), "th");
  for (const auto& cost : std::span(all).first(std::min(kMost, all.size())))
    out += cells(row({cause_line(cost.cause), time_span(cost.total()), unbroken(parts_of(cost))},
                     hours_text(timeline.gpu_hours(cost))));
  out += "</table></div>\n";
  if (all.size() > kMost)
    out += fmt::format("<p class=note>The {} most expensive of {} causes.</p>\n", kMost, all.size());
  return out;
}

std::string processes(const RunReport& report) {
  const auto rows = processes_that_matter(report.timeline, kMostProcesses);
  if (rows.empty()) return "";
  const bool nodes = std::ranges::any_of(rows, [](const auto* row) { return !row->host.empty(); });
  const auto row = [&](const std::string& name, const std::string& node, std::vector<std::string> rest) {
    if (nodes) rest.insert(rest.begin(), node);
    rest.insert(rest.begin(), name);
    return rest;
  };
  auto out = "<h2>Processes</h2>\n<div class=wide><table>\n" +
             cells(row("process", "node", {"ready after", "starts", "end"}), "th");
  for (const auto* one : rows)
    out += cells(row(one->name, one->host, {ready_text(*one), starts_text(*one), end_text(*one)}));
  return out + "</table></div>\n";
}

/// How busy each GPU was, as nlaunch sampled it.
std::string gpu_use(const RunReport& report) {
  if (report.alive) return "";  // the summary is of an earlier job
  const auto& devices = record::at(report.files->summary, "devices");
  std::string rows;
  if (devices.is_array()) {
    for (const auto& process : devices) {
      const auto& of = record::at(process, "devices");
      if (!of.is_array()) continue;
      for (const auto& device : of) {
        if (!record::at(device, "busy_percent").is_number()) continue;
        rows += cells({record::text_at(process, "process"), record::text_at(process, "host"),
                       record::text_at(device, "bus_id"),
                       fmt::format("{:.0f} %", record::number_at(device, "busy_percent")),
                       fmt::format("{:.0f} W", record::number_at(device, "power_watts"))});
      }
    }
  }
  if (rows.empty()) return "";
  return "<h2>GPUs</h2>\n<div class=wide><table>\n" +
         cells({"process", "node", "bus id", "busy, median", "power, median"}, "th") + rows +
         "</table></div>\n";
}

std::string marks(const RunReport& report) {
  if (report.timeline.marks.empty()) return "";
  std::string out = "<details><summary>Events</summary>\n<div class=wide><table>\n";
  for (const auto& mark : report.timeline.marks) out += cells({time_span(mark.at), mark.what});
  return out + "</table></div></details>\n";
}

std::string short_value(const record::Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string made_from(const RunReport& report) {
  const auto& lock = report.files->lock;
  std::string rows;
  const auto& git = record::at(lock, "git");
  if (git.is_object())
    rows += cells({"commit", record::text_at(git, "commit") + " " + record::text_at(git, "branch")});
  for (const auto* kind : {"libraries", "wheels"}) {
    const auto& of = record::at(lock, kind);
    if (!of.is_object()) continue;
    for (const auto& [name, value] : of.items()) rows += cells({name, short_value(value)});
  }
  if (rows.empty()) return "";
  return "<details><summary>Commit, libraries, wheels</summary>\n<div class=wide><table>\n" + rows +
         "</table></div></details>\n";
}

std::string header(const RunReport& report) {
  const bool well = is_well(report);
  auto out =
      fmt::format("<header class={}><h1>{} {} {}</h1>\n<p>{}, run {}</p>\n<p>{}</p>\n",
                  well ? "held" : "missed", html(report.state), report.timeline.over ? "after" : "for",
                  time_span(report.timeline.seconds), html(record::text_at(report.files->plan, "name")),
                  html(report.files->folder.filename().string()), html(facts_line(report)));
  for (const auto& [name, value] : cause_of_end(report))
    out += fmt::format("<p><b>{}:</b> {}</p>\n", name, html(value));
  for (const auto& link : report.timeline.links)
    out += fmt::format("<p>{}: <a href=\"{}\" rel=noreferrer>{}</a> ({})</p>\n", html(link.kind),
                       html(link.url), html(link.url), html(link.process));
  if (report.before) {
    const auto now = report.timeline.step_times();
    const auto then = report.before->timeline.step_times();
    if (now.count > 0 && then.count > 0)
      out += fmt::format("<p class=note>The run before, {}: {}/step; this one: {}/step.</p>\n",
                         html(report.before->id), time_span(then.median), time_span(now.median));
  }
  return out + "</header>\n";
}

}  // namespace

std::string run_report_html(const RunReport& report) {
  return page("report of " + record::text_at(report.files->plan, "name"),
              header(report) + phases(report) + costs(report) + gantt(report.timeline) +
                  step_chart(report.timeline) + metrics(report) + ettr_chart(report.timeline) +
                  processes(report) + gpu_use(report) + marks(report) + made_from(report));
}

}  // namespace nlaunch::report
