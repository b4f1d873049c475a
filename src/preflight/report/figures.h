#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "preflight/preflight.h"

/// What is said of many figures, and how one is written.
namespace nlaunch::preflight {

struct Spread {
  double least = 0;
  double median = 0;  ///< of an even number the larger of the two in the middle
  double most = 0;
};

/// Of at least one value.
Spread spread_of(std::vector<double> values);

/// "GPU 2 → GPU 5", "nid001 GPU 3": what a figure is of.
std::string place_of(const Figure& figure);

/// "390.1 GB/s", "612.3 TFLOP/s", "95.1 µs", by its unit.
std::string figure_text(double value, std::string_view unit);

}  // namespace nlaunch::preflight
