#include "report/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.h"
#include "report/html.h"

namespace nlaunch::report {
namespace {

// In the units of the drawing.
constexpr double kWidth = 760;
constexpr double kHeight = 380;
constexpr double kLeft = 72;
constexpr double kRight = 20;
constexpr double kTop = 34;
constexpr double kBottom = 44;
/// More curves cannot be told apart.
constexpr std::size_t kMostCurves = 6;

/// A logarithmic axis.
class Axis {
 public:
  Axis(double low, double high, double from, double to)
      : low_(std::log2(low)), span_(std::max(std::log2(high) - std::log2(low), 1.0)), from_(from), to_(to) {}
  [[nodiscard]] double at(double value) const {
    return from_ + (std::log2(value) - low_) / span_ * (to_ - from_);
  }

 private:
  double low_, span_, from_, to_;
};

class Chart {
 public:
  Chart(const std::vector<Curve>& curves, const std::vector<CurveMark>& marks)
      : curves_(curves), marks_(marks) {
    for (const auto& curve : curves) {
      for (const auto& point : curve.points) take(point);
    }
    for (const auto& mark : marks) high_ = std::max(high_, mark.rate);
    low_ = std::pow(10, std::floor(std::log10(low_)));
    high_ = std::pow(10, std::ceil(std::log10(high_ * 1.05)));
    x_ = Axis(static_cast<double>(least_), static_cast<double>(most_), kLeft, kWidth - kRight);
    y_ = Axis(low_, high_, kHeight - kBottom, kTop);
  }

  std::string draw() {
    out_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"Bus bandwidth by message size\">\n",
                       kWidth, kHeight);
    grid();
    for (const auto& mark : marks_) draw_mark(mark);
    for (std::size_t i = 0; i < curves_.size(); ++i) draw_curve(i);
    return out_ + "</svg>\n";
  }

 private:
  void take(const Curve::Point& point) {
    if (point.least <= 0) return;
    least_ = std::min(least_, point.bytes);
    most_ = std::max(most_, point.bytes);
    low_ = std::min(low_, point.least);
    high_ = std::max(high_, point.most);
  }

  void line(double x1, double y1, double x2, double y2, std::string_view kind) {
    out_ += fmt::format("<line x1={:.1f} y1={:.1f} x2={:.1f} y2={:.1f} class={} />\n", x1, y1, x2, y2, kind);
  }
  void label(double x, double y, std::string_view kind, const std::string& text) {
    out_ += fmt::format("<text x={:.1f} y={:.1f} class={}>{}</text>\n", x, y, kind, html(text));
  }

  void grid() {
    for (double rate = low_; rate <= high_ * 1.01; rate *= 10) {
      line(kLeft, y_.at(rate), kWidth - kRight, y_.at(rate), "grid");
      label(kLeft - 8, y_.at(rate) + 4, "y", rate_text(rate));
    }
    // Eight steps are enough for every range: 8 B to 4 GiB is 29 doublings.
    constexpr int kSteps = 8;
    const auto doublings =
        static_cast<int>(std::lround(std::log2(static_cast<double>(most_) / static_cast<double>(least_))));
    const int step = std::max(1, (doublings + kSteps - 1) / kSteps);
    const auto first = static_cast<int>(std::ceil(std::log2(static_cast<double>(least_))));
    for (int power = first; power <= first + doublings; power += step) {
      const auto size = std::uint64_t{1} << static_cast<unsigned>(power);
      if (size > most_) break;
      line(x_.at(static_cast<double>(size)), kTop, x_.at(static_cast<double>(size)), kHeight - kBottom,
           "grid");
      label(x_.at(static_cast<double>(size)), kHeight - kBottom + 18, "x", format_size(size));
    }
    label(kLeft + (kWidth - kRight - kLeft) / 2, kHeight - 6, "x", "message size");
    label(4, kTop - 16, "axis", "bus bandwidth");
  }

  void draw_mark(const CurveMark& mark) {
    if (mark.bytes == 0) {
      line(kLeft, y_.at(mark.rate), kWidth - kRight, y_.at(mark.rate), "limit");
      label(kWidth - kRight - 4, y_.at(mark.rate) - 5, "end", "links: " + rate_text(mark.rate));
      return;
    }
    constexpr double kHalf = 9;
    const auto x = x_.at(static_cast<double>(mark.bytes));
    const auto y = y_.at(mark.rate);
    out_ += fmt::format(
        "<g class=\"floor c{}\"><title>{}: at least {} expected at {}</title><path d=\"M{:.1f} "
        "{:.1f}h{:.1f}m{:.1f} 0v8\"/></g>\n",
        std::ranges::find(curves_, mark.name, &Curve::name) - curves_.begin(), html(mark.name),
        rate_text(mark.rate), format_size(mark.bytes), x - kHalf, y, 2 * kHalf, -kHalf);
  }

  void draw_curve(std::size_t index) {
    const auto& curve = curves_[index];
    band(curve, index);
    std::string path;
    for (const auto& point : curve.points)
      path += step_to(path, static_cast<double>(point.bytes), point.rate);
    out_ += fmt::format("<g class=c{}><path d=\"{}\"/>", index, path);
    for (const auto& point : curve.points) {
      if (point.rate <= 0) continue;
      out_ += fmt::format("<circle cx={:.1f} cy={:.1f} r=3.5><title>{}, {}: {}</title></circle>",
                          x_.at(static_cast<double>(point.bytes)), y_.at(point.rate), html(curve.name),
                          format_size(point.bytes), rate_text(point.rate));
    }
    out_ += "</g>\n";
  }

  /// From the minimum to the maximum of many groups.
  void band(const Curve& curve, std::size_t index) {
    std::string path;
    for (const auto& point : curve.points)
      path += step_to(path, static_cast<double>(point.bytes), point.most);
    for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point)
      path += step_to(path, static_cast<double>(point->bytes), point->least);
    const bool flat = std::ranges::all_of(
        curve.points, [](const Curve::Point& point) { return point.least == point.most; });
    if (!flat) out_ += fmt::format("<path class=\"band c{}\" d=\"{}Z\"/>\n", index, path);
  }

  std::string step_to(const std::string& path, double bytes, double rate) {
    if (rate <= 0) return "";
    return fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_.at(bytes), y_.at(rate));
  }

  const std::vector<Curve>& curves_;
  const std::vector<CurveMark>& marks_;
  std::uint64_t least_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most_ = 1;
  double low_ = std::numeric_limits<double>::max();
  double high_ = 1;
  Axis x_{1, 2, 0, 1};
  Axis y_{1, 2, 0, 1};
  std::string out_;
};

std::string legend(const std::vector<Curve>& curves, const std::vector<CurveMark>& marks) {
  std::string out = "<p class=legend>";
  for (std::size_t i = 0; i < curves.size(); ++i)
    out +=
        fmt::format("<span class=whole><span class=\"key c{}\"></span>{}</span> ", i, html(curves[i].name));
  const auto is_floor = [](const CurveMark& mark) { return mark.bytes > 0; };
  if (std::ranges::any_of(marks, is_floor)) out += "<span class=\"key floor\"></span>expected at least ";
  if (!std::ranges::all_of(marks, is_floor)) out += "<span class=\"key limit\"></span>capacity of the links";
  return out + "</p>\n";
}

}  // namespace

std::string curves_html(const std::vector<Curve>& curves, const std::vector<CurveMark>& marks) {
  auto shown = curves;
  std::erase_if(shown, [](const Curve& curve) { return curve.points.size() < 2; });
  const bool more = shown.size() > kMostCurves;
  if (more) shown.resize(kMostCurves);
  if (shown.empty()) return "";
  return fmt::format("<figure class=chart>{}</figure>\n{}{}", Chart(shown, marks).draw(),
                     legend(shown, marks),
                     more ? "<p class=note>The other groups are in the table below.</p>\n" : "");
}

}  // namespace nlaunch::report
