#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace nlaunch::record {

/// A file of a run directory that goes into a bundle.
struct Item {
  std::string path;  ///< below the run's folder, any bytes
  std::uint64_t size = 0;
};

/// What does not, and why.
struct LeftOut {
  std::string path;
  std::string why;
};

struct Inventory {
  std::vector<Item> items;  ///< sorted by path
  std::vector<LeftOut> left_out;
};

/// What of a run's folder goes into a bundle: what nlaunch, NCCL and PyTorch leave there, and small files of
/// the run's programs. Links are not followed; nothing is opened but folders.
Inventory take_inventory(const std::filesystem::path& run);

/// What a program may leave in the run's folder of its own and still be taken along.
inline constexpr std::uint64_t kLargestForeign = 1U << 20U;

}  // namespace nlaunch::record
