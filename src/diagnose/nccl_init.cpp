#include <fmt/format.h>

#include "base/text.h"
#include "diagnose/analysis.h"

/// Communicators of which not all ranks arrived: NCCL's `Init START` without `Init COMPLETE`.
namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kNcclInit = "nccl-init";
constexpr int kMissing = 42;  // more than a timeout, less than a reason
constexpr std::size_t kMostComms = 4096;
constexpr std::size_t kMostRanksOfComm = 65536;
constexpr std::size_t kMostCulprits = 256;

struct Comm {
  unsigned size = 0;
  std::set<unsigned> started;
  std::size_t completed = 0;
  std::optional<Finding> first;
};

class NcclInit : public Analysis {
 public:
  void on_match(const Match& match) override {
    const bool start = match.signature->id == "nccl.init-start";
    if (!start && match.signature->id != "nccl.init-complete") return;
    const auto id = std::string(match["comm"]);
    const auto rank = text::whole_number<unsigned>(match["rank"]);
    const auto size = text::whole_number<unsigned>(match["world"]);
    if (id.empty() || !rank || !size || (!comms_.contains(id) && comms_.size() >= kMostComms)) return;
    auto& comm = comms_[id];
    comm.size = *size;
    if (!start) {
      ++comm.completed;
    } else if (comm.started.size() < kMostRanksOfComm) {
      comm.started.insert(*rank);
      if (!comm.first) comm.first = finding_at(match, "nccl-init-incomplete", kNcclInit, kMissing);
    }
  }

  [[nodiscard]] std::vector<Finding> findings(const World& /*world*/) const override {
    for (const auto& [id, comm] : comms_) {
      if (comm.first && comm.completed == 0) return {incomplete(comm)};
    }
    return {};
  }

 private:
  static Finding incomplete(const Comm& comm) {
    auto finding = *comm.first;
    finding.culprits.clear();
    finding.count = comm.started.size();
    finding.confidence = Confidence::unsure;
    std::vector<std::string> missing;
    for (unsigned rank = 0; rank < comm.size && rank < kMostRanksOfComm; ++rank) {
      if (comm.started.contains(rank)) continue;
      missing.push_back(std::to_string(rank));
      if (missing.size() > kMostCulprits) continue;
      Origin origin;
      origin.rank = missing.back();
      finding.culprits.push_back(std::move(origin));
    }
    finding.why =
        fmt::format("a communicator of {} did not initialize: {} of its ranks started, none completed",
                    text::count(comm.size, "rank"), comm.started.size());
    if (!missing.empty())
      finding.why +=
          fmt::format("; {} {} not in these logs", listed(missing), missing.size() == 1 ? "is" : "are");
    finding.fix = missing.empty()
                      ? "all ranks arrived: check their network (NCCL_SOCKET_IFNAME, firewall, plugin) with "
                        "NCCL_DEBUG=INFO"
                      : "read the logs of those ranks: they failed earlier, hang, or were not started";
    finding.source = "NVIDIA/nccl src/init.cc@2.27.7";
    return finding;
  }

  std::map<std::string, Comm> comms_;
};

const Registered<AnalysisEntry> nccl_init_analysis{{
    .order = 20,
    .name = "nccl-init",
    .title = "communicators that started to initialize and did not complete, and their missing ranks",
    .make = make_analysis<NcclInit>,
}};

}  // namespace
}  // namespace nlaunch::diagnose
