#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// A chart of rates by message size, both axes logarithmic, as SVG that uses the colours of the page.
namespace nlaunch::report {

struct Curve {
  struct Point {
    std::uint64_t bytes = 0;
    double rate = 0;   ///< bytes/s
    double least = 0;  ///< if many were measured, else the same as `rate`
    double most = 0;
  };
  std::string name;
  std::vector<Point> points;  ///< by size
};

/// What is drawn in addition to the curves.
struct CurveMark {
  std::uint64_t bytes = 0;  ///< size of an expectation; 0: a limit, for all sizes
  double rate = 0;          ///< bytes/s
  std::string name;         ///< of the curve that it belongs to
};

/// The chart with its legend. Empty if no curve has two sizes.
std::string curves_html(const std::vector<Curve>& curves, const std::vector<CurveMark>& marks);

}  // namespace nlaunch::report
