#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "preflight/preflight.h"

/// The figures of a machine when it was healthy, to compare later ones with.
namespace nlaunch::preflight {

struct Baseline {
  /// Figures of other hardware are not comparable. All but `nodes` describes every node, joined if they
  /// differ.
  struct Hardware {
    std::string gpu;   ///< model
    std::string gpus;  ///< on a node: "4"
    std::string arch;
    std::size_t nodes = 0;
  };
  /// The median of all measurements of a name.
  struct Value {
    std::string name;  ///< "all_reduce of node (nccl, 4 ranks) at 128MiB", "p2p"
    double value = 0;  ///< a rate: higher is better
    std::string unit;  ///< "B/s", "FLOP/s"
  };
  Hardware hardware;
  std::string driver;  ///< informational, as is the next one
  std::string nccl;
  std::int64_t time = 0;  ///< of the report, seconds since 1970
  std::vector<Value> values;
};

Baseline baseline_of(const Report& report);

/// Rows "baseline": a figure more than 5 % below its value warns, more than 20 % fails; improvements are
/// reported and not judged. With other hardware nothing is compared: one row *unknown* says what differs.
/// `name` of the file, for people.
std::vector<Row> compare(const Baseline& baseline, const Report& report, const std::string& name);

/// {"format", "version", "time", "hardware": {gpu,gpus,arch,nodes}, "driver", "nccl",
///  "values": [{name,value,unit}]}
nlohmann::json to_json(const Baseline& baseline);
/// A file that is missing, not a baseline, or of a later version is an error that says what to type.
Result<Baseline> read_baseline(const std::string& path);

}  // namespace nlaunch::preflight
