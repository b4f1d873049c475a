#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "preflight/preflight.h"

/// The figures of a machine when it was well, to hold later ones against.
namespace nlaunch::preflight {

struct Baseline {
  /// Figures of other hardware say nothing. All but `nodes` is what every node has, joined where they differ.
  struct Hardware {
    std::string gpu;   ///< model
    std::string gpus;  ///< on a node: "4"
    std::string arch;
    std::size_t nodes = 0;
  };
  /// The median of all that were measured of a name.
  struct Value {
    std::string name;  ///< "all_reduce of node (nccl, 4 ranks) at 128MiB", "p2p"
    double value = 0;  ///< a rate: more is better
    std::string unit;  ///< "B/s", "FLOP/s"
  };
  Hardware hardware;
  std::string driver;  ///< informational, as is the next one
  std::string nccl;
  std::int64_t time = 0;  ///< of the report, seconds since 1970
  std::vector<Value> values;
};

Baseline baseline_of(const Report& report);

/// Rows "baseline": a figure that is more than 5 % below its value warns, more than 20 % fails; what is
/// better is said, and not judged. Of other hardware nothing is compared: one row *unknown* says what
/// differs. `name` of the file, for people.
std::vector<Row> compare(const Baseline& baseline, const Report& report, const std::string& name);

/// {"format", "version", "time", "hardware": {gpu,gpus,arch,nodes}, "driver", "nccl",
///  "values": [{name,value,unit}]}
nlohmann::json to_json(const Baseline& baseline);
/// A file that is missing, no baseline, or of a later version is an error that says what to type.
Result<Baseline> read_baseline(const std::string& path);

}  // namespace nlaunch::preflight
