#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// A chart of rates against message sizes, both logarithmic, as SVG whose colours are the page's own.
namespace nlaunch::report {

struct Curve {
  struct Point {
    std::uint64_t bytes = 0;
    double rate = 0;   ///< bytes/s
    double least = 0;  ///< where many were measured, else the same
    double most = 0;
  };
  std::string name;
  std::vector<Point> points;  ///< by size
};

/// What is drawn beside the curves.
struct CurveMark {
  std::uint64_t bytes = 0;  ///< of an expectation; 0: a limit, for all sizes
  double rate = 0;          ///< bytes/s
  std::string name;         ///< of the curve that it belongs to
};

/// The chart with its legend. Empty where no curve has two sizes.
std::string curves_html(const std::vector<Curve>& curves, const std::vector<CurveMark>& marks);

}  // namespace nlaunch::report
