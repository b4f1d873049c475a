#include "report/bench_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "report/bench_text.h"
#include "report/curve.h"
#include "report/html.h"

namespace nlaunch::report {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="nlaunch">
<title>{}</title>
<style>
:root {{
  --paper: #fff; --panel: #f6f7f9; --ink: #1b1f24; --soft: #59636e; --line: #d9dee4; --fail: #b3261e; --pass: #1a7044;
  --c0: #0067a5; --c1: #c2500a; --c2: #007a5a; --c3: #a8487f; --c4: #4b9cd3; --c5: #b58900;
}}
@media screen and (prefers-color-scheme: dark) {{
  :root {{
    --paper: #14171b; --panel: #1d2126; --ink: #e4e8ec; --soft: #9aa5b1; --line: #323940; --fail: #ff8a80; --pass: #6fcf97;
    --c0: #5fb0ee; --c1: #f29552; --c2: #3fc79a; --c3: #e291bf; --c4: #9bd0f5; --c5: #e3c04f;
  }}
}}
* {{ box-sizing: border-box; }}
body {{
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere;
}}
h1 {{ margin: 0; font-size: 2.2rem; line-height: 1.15; letter-spacing: -.02em; }}
h2 {{ margin: 2.5rem 0 .75rem; font-size: 1.2rem; }}
header {{ border-left: 6px solid var(--pass); padding-left: 1.25rem; }}
header.missed {{ border-color: var(--fail); }}
.missed h1, td.missed {{ color: var(--fail); }}
p, .note {{ max-width: 52rem; }} .note, small {{ color: var(--soft); }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }}
th {{ font-weight: 600; font-size: .85rem; color: var(--soft); }}
td.number {{ white-space: nowrap; }}
code, pre {{ font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }}
pre {{ margin: .5rem 0 1rem; padding: .75rem; background: var(--panel); overflow-x: auto; white-space: pre-wrap; }}
summary {{ cursor: pointer; padding: .25rem 0; }}
.chart {{ margin: 0; }} svg {{ width: 100%; height: auto; }}
svg text {{ font-size: 12px; fill: var(--soft); }} svg .x {{ text-anchor: middle; }} svg .y, svg .end {{ text-anchor: end; }}
svg .grid {{ stroke: var(--line); }} svg g path {{ fill: none; stroke: var(--c); stroke-width: 2; }}
svg circle {{ fill: var(--c); }} svg .band {{ fill: var(--c); opacity: .18; stroke: none; }}
.key {{ display: inline-block; width: 1.4em; height: .3em; margin: 0 .35em .2em 1em; background: var(--c); }}
.c0 {{ --c: var(--c0); }} .c1 {{ --c: var(--c1); }} .c2 {{ --c: var(--c2); }}
.c3 {{ --c: var(--c3); }} .c4 {{ --c: var(--c4); }} .c5 {{ --c: var(--c5); }}
</style>
</head>
<body>
)";

std::string cell(const std::string& text, std::string_view kind = "") {
  if (kind.empty()) return fmt::format("<td>{}</td>", html(text));
  return fmt::format("<td class={}>{}</td>", kind, html(text));
}

std::string head_row(const std::vector<std::string>& names) {
  std::string out = "<tr>";
  for (const auto& name : names) out += fmt::format("<th scope=col>{}</th>", html(name));
  return out + "</tr>\n";
}

std::string_view verdict_of(int code) {
  if (code == exit_code::bench_missed) return "A target was missed";
  if (code == exit_code::bench_failed) return "An arm could not be measured";
  return "Measured";
}

std::string header(const bench::Bench& bench) {
  const int code = bench::code_of(bench);
  return fmt::format(
      "<header class={}><h1>{}</h1>\n<p>{} on {}: {} of each of {}, in random order (seed "
      "{}).</p></header>\n",
      code == exit_code::ok ? "held" : "missed", verdict_of(code), html(bench.name), html(bench.site),
      text::count(bench.repeats, "repeat"), text::count(bench.arms.size(), "arm"), bench.seed);
}

std::string times(const bench::Bench& bench) {
  std::string out = "<h2>Times</h2>\n<div class=wide><table>\n" +
                    head_row({"workload", "group", "arm", "median step", "95 %", "bus bandwidth", "target",
                              "NCCL chose", "against the first"});
  for (const auto& line : bench::lines(bench)) {
    const auto targets = targets_text(line);
    const bool missed = targets.find("MISSED") != std::string::npos;
    const bool interval = line.interval.high > 0;
    out += "<tr>" + cell(line.workload) +
           cell(fmt::format("{} ({} × {})", line.group, line.ranks, name_of(line.backend))) +
           cell(bench.arms[line.arm].arm.name) + cell(preflight::time_text(line.median), "number") +
           cell(interval ? fmt::format("{} – {}", preflight::time_text(line.interval.low),
                                       preflight::time_text(line.interval.high))
                         : "",
                "number") +
           cell(format_rate(line.busbw), "number") + cell(targets, missed ? "missed" : "") +
           cell(line.chosen) + cell(line.reference ? "" : bench::verdict_text(line.verdict)) + "</tr>\n";
  }
  return out + "</table></div>\n";
}

/// A curve for each arm, group and operation that was timed at two sizes or more.
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
  return "<h2>Bus bandwidth against size</h2>\n" + drawn +
         "<p class=note>The band is the 95 % interval of the median.</p>\n";
}

std::string failed(const bench::Bench& bench) {
  std::string out;
  for (const auto& one : bench::failures(bench)) {
    if (one.causes.empty()) continue;
    const auto& arm = bench.arms[one.arm];
    out += fmt::format("<p><b>{}</b>: {}</p>\n<ul>", html(arm.arm.name),
                       arm.refused.empty() ? failures_text(one) : "could not be bound");
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
  auto out = "<h2>What differs between the arms</h2>\n<div class=wide><table>\n" + head_row(names);
  for (const auto& one : differ) {
    out += "<tr>" + cell(one.role) + cell(one.name);
    for (const auto& value : one.values) out += fmt::format("<td><code>{}</code></td>", html(value));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string environments(const bench::Bench& bench) {
  std::string out = "<h2>The whole environment of each arm</h2>\n<p class=note>Secrets are masked.</p>\n";
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
  return fmt::format(kHead, html("bench of " + bench.name)) + header(bench) + curves(bench) + times(bench) +
         failed(bench) + differing(bench) + environments(bench) + "</body>\n</html>\n";
}

}  // namespace nlaunch::report
