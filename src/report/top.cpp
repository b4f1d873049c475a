#include "report/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/text.h"
#include "report/run_report.h"
#include "report/run_report_facts.h"

namespace nlaunch::report {
namespace {

using record::Phase;

constexpr double kGiB = 1024. * 1024 * 1024;
constexpr std::size_t kHeadLines = 5;  ///< above the table's own head, without the links
constexpr const char* kKeys = "q quit · ↑↓ select · Enter log · / filter · e evidence · s stop";

std::size_t width_of(const std::string& text) {
  return display_width(text);
}

/// Pieces that go into one line as far as there is room.
class LineBuilder {
 public:
  explicit LineBuilder(std::size_t width) : left_(width) {}
  LineBuilder& add(std::string text, Style style = Style::plain) {
    if (left_ == 0 || text.empty()) return *this;
    text = fitted(text, left_);
    left_ -= width_of(text);
    line_.push_back({std::move(text), style});
    return *this;
  }
  /// With a dot before it, unless it is the first.
  LineBuilder& item(std::string text, Style style = Style::plain) {
    if (text.empty()) return *this;
    constexpr std::size_t kLeast = 8;  // less of it says nothing
    if (!line_.empty()) {
      if (left_ < kLeast) return *this;
      add(" · ", Style::dim);
    }
    return add(std::move(text), style);
  }
  ScreenLine take() { return std::move(line_); }

 private:
  std::size_t left_;
  ScreenLine line_;
};

Style style_of(const TopView& view) {
  if (view.alive || view.state == "finished") return Style::good;
  return view.state == "not started" ? Style::warn : Style::bad;
}

ScreenLine title(const TopView& view, std::size_t width) {
  LineBuilder line(width);
  line.add(view.name, Style::bold).add(" on " + view.site);
  line.item(view.state, style_of(view));
  line.item("up " + time_span(view.timeline.seconds));
  if (view.walltime_left) {
    constexpr double kSoon = 600;
    line.item(time_span(std::max(0.0, *view.walltime_left)) + " to the walltime",
              *view.walltime_left < kSoon ? Style::warn : Style::plain);
  }
  if (view.attempt > 0) line.item(fmt::format("attempt {}", view.attempt), Style::warn);
  return line.item(view.run, Style::dim).take();
}

/// The stage that is waited for; null: none.
const TopStage* waiting_stage(const TopView& view) {
  if (!view.alive) return nullptr;
  const auto stage =
      std::ranges::find_if(view.stages, [](const TopStage& one) { return one.ready < one.of; });
  return stage != view.stages.end() && stage->awaited ? &*stage : nullptr;
}

/// "waiting for engine.3 on nid001 (12 of 16 ready), 2m10s of 10m"
std::string wait_text(const TopView& view, const TopStage& stage) {
  const auto& process = view.processes[*stage.awaited];
  return fmt::format("waiting for {}{} ({} of {} ready), {}{}", process.name,
                     process.node.empty() ? "" : " on " + process.node, stage.ready, stage.of,
                     time_span(process.in_state), stage.timeout > 0 ? " of " + time_span(stage.timeout) : "");
}

ScreenLine progress(const TopView& view, std::size_t width) {
  constexpr std::size_t kShown = 30;
  const auto& timeline = view.timeline;
  LineBuilder line(width);
  if (timeline.steps.empty()) {
    const auto phase = timeline.phases.empty() ? Phase::preflight : timeline.phases.back().phase;
    return line.add(view.alive ? std::string(title_of(phase)) : "no training step was reported", Style::dim)
        .take();
  }
  line.add(fmt::format("step {}", timeline.steps.back().step), Style::bold);
  if (view.step_times.count > 0)
    line.item(fmt::format("{:.3g} s/step, p90 {:.3g}", view.step_times.median, view.step_times.p90));
  line.item(sparkline(view.step_seconds, kShown));
  if (const auto ettr = timeline.ettr()) {
    constexpr double kPercent = 100;
    line.item(fmt::format("ETTR {:.0f} %", *ettr * kPercent));
  }
  return line.take();
}

ScreenLine metrics(const TopView& view, std::size_t width) {
  constexpr std::size_t kShown = 16;
  LineBuilder line(width);
  for (const auto& [name, values] : view.metrics)
    if (!values.empty())
      line.item(fmt::format("{} {:.3g} {}", text::printable(name), values.back(), sparkline(values, kShown)));
  return line.take();
}

ScreenLine stages(const TopView& view, std::size_t width) {
  LineBuilder line(width);
  bool waits = view.alive;
  for (const auto& stage : view.stages) {
    const bool done = stage.ready == stage.of;
    const auto text = fmt::format("{} {}/{}", stage.roles, stage.ready, stage.of);
    line.item(done    ? text
              : waits ? "waiting for " + text
                      : text,
              done    ? Style::good
              : waits ? Style::warn
                      : Style::dim);
    if (!done) waits = false;
  }
  return line.take();
}

/// What was found last that a person should know.
ScreenLine finding(const TopView& view, std::size_t width) {
  const auto& marks = view.timeline.marks;
  if (marks.empty()) return {};
  return LineBuilder(width)
      .add(time_span(marks.back().at) + "  ", Style::dim)
      .add(text::printable(marks.back().what), Style::warn)
      .take();
}

/// Pages of experiment trackers: whole ones, and of the first one as much as there is room for.
ScreenLine links(const TopView& view, std::size_t width) {
  constexpr std::size_t kBetween = 3;
  constexpr std::size_t kForMore = 10;  // " · 12 more"
  const auto& all = view.timeline.links;
  LineBuilder line(width);
  std::size_t used = 0;
  std::size_t shown = 0;
  for (const auto& link : all) {
    used += (shown > 0 ? kBetween : 0) + link.kind.size() + 1 + link.url.size();
    if (shown > 0 && used + (shown + 1 < all.size() ? kForMore : 0) > width) break;
    line.item(link.kind + " ", Style::dim).add(link.url);
    ++shown;
  }
  if (shown < all.size()) line.item(fmt::format("{} more", all.size() - shown), Style::dim);
  return line.take();
}

struct Column {
  std::string head;
  std::vector<std::string> cells;
  bool right = false;  ///< numbers

  [[nodiscard]] std::size_t width() const {
    std::size_t out = 0;
    for (const auto& cell : cells) out = std::max(out, width_of(cell));
    return out == 0 ? 0 : std::max(out, width_of(head));
  }
};

std::string memory_text(const TopProcess& process) {
  if (!process.memory_used) return "";
  if (!process.memory_total) return fmt::format("{:.0f} GiB", *process.memory_used / kGiB);
  return fmt::format("{:.0f}/{:.0f} GiB", *process.memory_used / kGiB, *process.memory_total / kGiB);
}

std::vector<Column> columns(const TopView& view, const std::vector<std::size_t>& rows) {
  std::vector<Column> out{{"process", {}},      {"node", {}},        {"gpu", {}},        {"busy", {}, true},
                          {"memory", {}, true}, {"power", {}, true}, {"step", {}, true}, {"state", {}}};
  for (const auto row : rows) {
    const auto& process = view.processes[row];
    std::size_t column = 0;
    for (const auto& cell : {process.name, process.node, process.gpus,
                             process.busy ? fmt::format("{:.0f} %", *process.busy) : "", memory_text(process),
                             process.power ? fmt::format("{:.0f} W", *process.power) : "",
                             process.step ? std::to_string(*process.step) : "", process.state})
      out[column++].cells.push_back(text::printable(cell));
  }
  return out;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const auto gap = std::string(width - std::min(width, width_of(text)), ' ');
  return right ? gap + text : text + gap;
}

/// Where all columns are too wide, those that matter least go first, then the state is shortened.
std::vector<std::size_t> widths_of(const std::vector<Column>& columns, std::size_t width) {
  constexpr std::size_t kGap = 2;
  constexpr std::size_t kMostOfState = 28;
  constexpr std::size_t kLastLine = 20;
  constexpr std::size_t kLeaveOut[] = {5, 2, 4, 3, 1};  // power, gpu, memory, busy, node
  std::vector<std::size_t> out;
  for (const auto& column : columns) out.push_back(column.width());
  out.back() = std::min(out.back(), kMostOfState);
  const auto total = [&] {
    return std::accumulate(out.begin(), out.end(), std::size_t{0},
                           [](std::size_t sum, std::size_t one) { return sum + (one > 0 ? one + kGap : 0); });
  };
  for (const auto column : kLeaveOut)
    if (total() + kLastLine > width) out[column] = 0;
  return out;
}

std::vector<ScreenLine> table(const TopView& view, const TopChoice& choice,
                              const std::vector<std::size_t>& rows, std::size_t first_shown,
                              std::size_t width) {
  const auto all = columns(view, rows);
  const auto widths = widths_of(all, width);
  std::vector<ScreenLine> out;
  LineBuilder head(width);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (widths[i] > 0) head.add(padded(all[i].head, widths[i], all[i].right) + "  ", Style::dim);
  out.push_back(head.add("last line", Style::dim).take());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto& process = view.processes[rows[row]];
    const bool selected = choice.selected == first_shown + row;
    LineBuilder line(width);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (widths[i] == 0) continue;
      auto style = selected ? Style::selected : Style::plain;
      if (i + 1 == all.size() && !selected)
        style = process.failed ? Style::bad : process.alive ? Style::good : Style::dim;
      line.add(padded(fitted(all[i].cells[row], widths[i]), widths[i], all[i].right) + "  ", style);
    }
    out.push_back(
        line.add(text::printable(process.last_line), selected ? Style::selected : Style::dim).take());
  }
  return out;
}

std::size_t room_for_rows(const TopView& view, const Screen& screen) {
  constexpr std::size_t kTableHeadAndKeys = 2;
  if (screen.height == 0) return view.processes.size();
  const auto others = kHeadLines + (view.timeline.links.empty() ? 0 : 1) + kTableHeadAndKeys;
  return screen.height > others ? screen.height - others : 1;
}

/// The first row that is shown, so that the selected one is among them.
std::size_t first_row(const TopChoice& choice, std::size_t rows, std::size_t room) {
  const auto selected = choice.selected.value_or(0);
  if (rows <= room || selected < room) return 0;
  return std::min(selected, rows - 1) + 1 - room;
}

}  // namespace

std::vector<ScreenLine> footer(const TopView& view, std::size_t width) {
  std::vector<ScreenLine> out{title(view, width)};
  if (const auto* stage = waiting_stage(view)) {
    const auto& process = view.processes[*stage->awaited];
    out.push_back(LineBuilder(width).add(wait_text(view, *stage), Style::warn).take());
    out.push_back(LineBuilder(width)
                      .add(process.name + " │ ", Style::dim)
                      .add(text::printable(process.last_line), Style::dim)
                      .take());
    return out;
  }
  out.push_back(progress(view, width));
  auto last = metrics(view, width);
  if (last.empty()) last = finding(view, width);
  out.push_back(last.empty() ? stages(view, width) : std::move(last));
  return out;
}

std::string waiting_text(const TopView& view) {
  const auto* stage = waiting_stage(view);
  if (stage == nullptr) return "";
  const auto& last = view.processes[*stage->awaited].last_line;
  return wait_text(view, *stage) + (last.empty() ? "" : "; last line: " + text::printable(last));
}

std::string sparkline(const std::vector<double>& values, std::size_t width) {
  constexpr std::string_view kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty() || width == 0) return "";
  const auto count = std::min(width, values.size());
  const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
  const auto [least, most] = std::minmax_element(first, values.end());
  const double range = *most - *least;
  std::string out;
  for (auto value = first; value != values.end(); ++value) {
    const double share = std::isfinite(range) && range > 0 ? (*value - *least) / range : 0;
    const auto bar = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * (std::size(kBars) - 1) + 0.5);
    out += kBars[std::min(bar, std::size(kBars) - 1)];
  }
  return out;
}

std::vector<std::size_t> top_order(const TopView& view, const std::string& filter) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < view.processes.size(); ++i) {
    const auto& one = view.processes[i];
    const auto has = [&](const std::string& text) { return text.find(filter) != std::string::npos; };
    if (filter.empty() || has(one.name) || has(one.node) || has(one.state)) out.push_back(i);
  }
  std::uint64_t most = 0;
  for (const auto& process : view.processes) most = std::max(most, process.step.value_or(0));
  // Ranks print a step at slightly different times: one step is not behind.
  const auto behind = [&](std::size_t index) {
    const auto& step = view.processes[index].step;
    return step && *step + 1 < most ? most - *step : 0;
  };
  std::ranges::stable_sort(out, [&](std::size_t a, std::size_t b) {
    return std::tuple(!view.processes[a].failed, behind(b)) <
           std::tuple(!view.processes[b].failed, behind(a));
  });
  return out;
}

std::vector<std::size_t> top_rows(const TopView& view, const TopChoice& choice, const Screen& screen) {
  auto rows = top_order(view, choice.filter);
  const auto room = room_for_rows(view, screen);
  const auto first = first_row(choice, rows.size(), room);
  const auto last = std::min(rows.size(), first + room);
  return {rows.begin() + static_cast<std::ptrdiff_t>(first),
          rows.begin() + static_cast<std::ptrdiff_t>(last)};
}

std::vector<ScreenLine> top_screen(const TopView& view, const TopChoice& choice, const Screen& screen) {
  const auto width = screen.width;
  std::vector<ScreenLine> out{title(view, width), progress(view, width), metrics(view, width),
                              stages(view, width), finding(view, width)};
  if (!view.timeline.links.empty()) out.insert(out.begin() + 1, links(view, width));
  if (screen.height == 0) std::erase_if(out, [](const ScreenLine& line) { return line.empty(); });
  const auto rows = top_rows(view, choice, screen);
  const auto all = top_order(view, choice.filter).size();
  const auto first = first_row(choice, all, room_for_rows(view, screen));
  for (auto& line : table(view, choice, rows, first, width)) out.push_back(std::move(line));
  if (screen.height == 0) return out;
  out.resize(screen.height - 1);
  LineBuilder keys(width);
  if (!choice.message.empty()) {
    keys.add(choice.message, Style::bold);
  } else {
    keys.add(kKeys, Style::dim);
    if (rows.size() < all) keys.item(fmt::format("{} of {} shown", rows.size(), all), Style::dim);
    if (!choice.filter.empty()) keys.item("filter: " + choice.filter, Style::bold);
  }
  out.push_back(keys.take());
  return out;
}

std::string screen_text(const std::vector<ScreenLine>& lines, const Paint& paint) {
  const auto shown = [&](const Piece& piece) -> std::string {
    switch (piece.style) {
      case Style::bold:
        return paint.bold(piece.text);
      case Style::dim:
        return paint.dim(piece.text);
      case Style::good:
        return paint.green(piece.text);
      case Style::warn:
        return paint.yellow(piece.text);
      case Style::bad:
        return paint.red(piece.text);
      case Style::plain:
      case Style::selected:
        return piece.text;
    }
    return piece.text;
  };
  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (const auto& piece : line) text += shown(piece);
    const auto end = text.find_last_not_of(' ');
    out += text.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
  }
  return out;
}

}  // namespace nlaunch::report
