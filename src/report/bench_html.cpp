#include "report/bench_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/answer.h"
#include "report/bench_text.h"
#include "report/curve.h"
#include "report/html.h"
#include "report/pages.h"

namespace nlaunch::report {
namespace {

std::string cell(const std::string& text, std::string_view kind = "") {
  if (kind.empty()) return fmt::format("<td>{}</td>", html(text));
  return fmt::format("<td class={}>{}</td>", kind, html(text));
}

std::string head_row(const std::vector<std::string>& names) {
  std::string out = "<tr>";
  for (const auto& name : names) out += fmt::format("<th scope=col>{}</th>", html(name));
  return out + "</tr>\n";
}

std::string header(const bench::Bench& bench) {
  const bool well = bench::code_of(bench) == exit_code::ok;
  std::string out;
  for (const auto& sentence : bench::answer(bench))
    out += fmt::format("<{0}>{1}</{0}>\n", out.empty() ? "h1" : "p", html(sentence));
  return fmt::format(
      "<header class=\"answer {}\">{}<p class=note>{} on {}: {} of each of {}, in random order (seed {}).</p>"
      "</header>\n",
      well ? "held" : "missed", out, html(bench.name), html(bench.site), text::count(bench.repeats, "repeat"),
      text::count(bench.arms.size(), "arm"), bench.seed);
}

std::string times(const bench::Bench& bench) {
  std::string out = "<h2>Times</h2>\n<div class=wide><table>\n" +
                    head_row({"workload", "group", "arm", "median step", "95 %", "bus bandwidth", "target",
                              "NCCL chose", "vs. first arm"});
  for (const auto& line : bench::lines(bench)) {
    const auto targets = targets_text(line);
    const bool missed = targets.find("MISSED") != std::string::npos;
    const bool interval = line.interval.high > 0;
    out += "<tr>" + cell(line.workload) +
           cell(fmt::format("{} ({} × {})", line.group, line.ranks, name_of(line.backend)), "text") +
           cell(bench.arms[line.arm].arm.name, "name") + cell(preflight::time_text(line.median), "number") +
           cell(interval ? fmt::format("{} – {}", preflight::time_text(line.interval.low),
                                       preflight::time_text(line.interval.high))
                         : "",
                "number") +
           cell(format_rate(line.busbw), "number") + cell(targets, missed ? "missed" : "") +
           cell(line.chosen, "text") +
           cell(line.reference ? "" : bench::verdict_text(line.verdict), "sentence") + "</tr>\n";
  }
  return out + "</table></div>\n";
}

/// A curve for each arm, group and operation with at least two sizes.
std::string curves(const bench::Bench& bench) {
  std::vector<Curve> all;
  for (const auto& line : bench::lines(bench)) {
    if (line.bytes == 0) continue;
    const auto& workloads = bench.arms[line.arm].workloads;
    const auto workload = std::ranges::find_if(
        workloads, [&](const plan::BenchWorkload& one) { return one.work.name == line.workload; });
    if (workload == workloads.end()) continue;
    const auto& work = workload->work;
    const auto name = fmt::format("{}: {} over {}{}", bench.arms[line.arm].arm.name,
                                  name_of(work.step.front().op), line.group, work.busy ? ", busy" : "");
    auto curve = std::ranges::find(all, name, &Curve::name);
    if (curve == all.end()) curve = all.insert(all.end(), Curve{name, {}});
    const auto rate = [&](double seconds) {
      return seconds > 0 ? line.busbw * line.median / seconds : line.busbw;
    };
    curve->points.push_back({line.bytes, line.busbw, rate(line.interval.high), rate(line.interval.low)});
  }
  for (auto& curve : all) std::ranges::sort(curve.points, {}, &Curve::Point::bytes);
  const auto drawn = curves_html(all, {});
  if (drawn.empty()) return "";
  return "<h2>Bus bandwidth by message size</h2>\n" + drawn +
         "<p class=note>The band is the 95 % interval of the median.</p>\n";
}

std::string failed(const bench::Bench& bench) {
  std::string out;
  for (const auto& one : bench::failures(bench)) {
    if (one.causes.empty()) continue;
    const auto& arm = bench.arms[one.arm];
    out += fmt::format("<p><b>{}</b>: {}</p>\n<ul>", html(arm.arm.name),
                       arm.refused.empty() ? failures_text(one) : "cannot be bound");
    for (const auto& cause : one.causes) out += fmt::format("<li>{}</li>", html(cause));
    out += "</ul>\n";
  }
  return out.empty() ? "" : "<h2>Failures</h2>\n" + out;
}

std::string differing(const bench::Bench& bench) {
  const auto differ = bench::differences(bench);
  if (differ.empty()) return "";
  std::vector<std::string> names{"role", "variable"};
  for (const auto& arm : bench.arms) names.push_back(arm.arm.name);
  auto out = "<h2>Differences between the arms</h2>\n<div class=wide><table>\n" + head_row(names);
  for (const auto& one : differ) {
    out += "<tr>" + cell(one.role) + cell(one.name);
    for (const auto& value : one.values) out += fmt::format("<td><code>{}</code></td>", html(value));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string environments(const bench::Bench& bench) {
  std::string out = "<h2>Full environment of each arm</h2>\n<p class=note>Secrets are masked.</p>\n";
  for (const auto& arm : bench.arms) {
    for (const auto& [role, environment] : arm.environments) {
      out += fmt::format("<details><summary>{}, role {} <small>{}</small></summary><pre>", html(arm.arm.name),
                         html(role), text::count(environment.size(), "variable"));
      for (const auto& [name, value] : environment) out += fmt::format("{}={}\n", html(name), html(value));
      out += "</pre></details>\n";
    }
  }
  return out;
}

}  // namespace

std::string bench_html(const bench::Bench& bench) {
  return page("bench of " + bench.name, header(bench) + curves(bench) + times(bench) + failed(bench) +
                                            differing(bench) + environments(bench));
}

}  // namespace nlaunch::report
