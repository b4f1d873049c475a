#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace nlaunch::record {

/// A file of a run directory that goes into a bundle.
struct Item {
  std::string path;  ///< relative to the run directory; may contain any bytes
  std::uint64_t size = 0;
};

/// A file that does not, and why.
struct LeftOut {
  std::string path;
  std::string why;
};

struct Inventory {
  std::vector<Item> items;  ///< sorted by path
  std::vector<LeftOut> left_out;
};

/// Which files of a run directory go into a bundle: those of nlaunch, NCCL and PyTorch, and small files of
/// the run's programs. Does not follow links and opens nothing but directories.
Inventory take_inventory(const std::filesystem::path& run);

/// Largest size of a file that a program itself writes to the run directory and that is still included.
inline constexpr std::uint64_t kLargestForeign = 1U << 20U;

}  // namespace nlaunch::record
