#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "preflight/preflight.h"

/// A summary of many figures, and the format of one.
namespace nlaunch::preflight {

struct Spread {
  double least = 0;
  double median = 0;  ///< for an even number the larger of the two in the middle
  double most = 0;
};

/// Of at least one value.
Spread spread_of(std::vector<double> values);

/// "GPU 2 → GPU 5", "nid001 GPU 3": the subject of a figure.
std::string place_of(const Figure& figure);

/// "390.1 GB/s", "612.3 TFLOP/s", "95.1 µs", by its unit.
std::string figure_text(double value, std::string_view unit);

}  // namespace nlaunch::preflight
