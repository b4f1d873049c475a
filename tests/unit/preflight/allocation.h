#pragma once
#include <fmt/format.h>
#include <memory>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "preflight/examine.h"
#include "preflight/groups/trials.h"
#include "preflight/search/bisection.h"
#include "sys/files.h"
#include "unit/preflight/fixture.h"

/// An allocation of many nodes in which a time is a number: what ranks say of it is computed, not waited for.
namespace nlaunch::preflight {

struct Allocation {
  static constexpr double kWithin = 350e9;  // bus bandwidth between the GPUs of a node, as on 4 H200
  static constexpr double kAcross = 90e9;   // and between nodes, as on GH200 with four network cards
  static constexpr double kFloor = 50e9;    // what the site expects across nodes

  std::uint32_t nodes;
  std::uint32_t gpus;
  plan::Plan plan{};
  std::vector<std::string> hosts{};
  // What is wrong with it.
  std::map<std::uint32_t, double> slow_network{};  ///< times as slow, by node
  std::map<std::uint32_t, double> slow_gpus{};
  std::map<UnitPair, double> slow_link{};  ///< between neighbours in the ring
  std::set<std::uint32_t> mute{};          ///< nodes whose probes never speak
  std::set<std::uint32_t> hang{};          ///< nodes with which no collective ends
  std::map<std::uint32_t, std::string> version{};
  std::map<std::uint32_t, std::uint32_t> looks_like{};  ///< another node
  mutable std::mt19937 random{1};

  Allocation(std::uint32_t node_count, std::uint32_t gpu_count) : nodes(node_count), gpus(gpu_count) {
    plan.node.count = nodes;
    plan.node.gpus = gpus;
    plan::Role role;
    role.name = "learner";
    role.kind = RoleKind::learner;
    role.count = nodes * gpus;
    role.gpus = 1;
    role.rendezvous = Rendezvous::torch;
    plan.roles.push_back(role);
    plan::Group world{"learner world", plan::GroupKind::world, Backend::nccl, {}};
    for (std::uint32_t node = 0; node < nodes; ++node) {
      hosts.push_back(fmt::format("nid{:06}", node + 1000));
      plan::Group group{fmt::format("node {}", node), plan::GroupKind::node, Backend::nccl, {}};
      for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
        const auto index = node * gpus + gpu;
        plan::Process process;
        process.index = index;
        process.node = node;
        process.rank = static_cast<std::int32_t>(index);
        process.local_rank = gpu;
        process.local_size = gpus;
        process.gpus = {static_cast<std::uint16_t>(gpu)};
        plan.processes.push_back(process);
        group.members.push_back({index, static_cast<std::uint16_t>(gpu)});
      }
      world.members.insert(world.members.end(), group.members.begin(), group.members.end());
      if (gpus > 1) plan.groups.push_back(group);
    }
    plan.groups.push_back(world);
    plan.expected.all_reduce_busbw = {
        {gpus, VersionRange::parse(">1").value(), 128U << 20U, kFloor, "site.yaml:9:3"}};
  }

  [[nodiscard]] std::vector<Rank> ranks_of(std::uint32_t node) const {
    std::vector<Rank> out;
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      const auto index = node * gpus + gpu;
      Rank rank{index,
                static_cast<std::uint16_t>(gpu),
                node,
                gpu,
                fmt::format("learner rank {} ({} GPU {})", index, hosts[node], gpu),
                static_cast<int>(gpu)};
      const auto other = version.find(node);
      rank.library = Machine::wheel(other == version.end() ? "2.28.9" : other->second);
      out.push_back(std::move(rank));
    }
    return out;
  }

  [[nodiscard]] std::vector<Findings> findings() const {
    std::vector<Findings> out(nodes);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      out[node].ranks = ranks_of(node);
      out[node].summary.host = hosts[node];
    }
    return out;
  }

  [[nodiscard]] Identity identity(std::uint32_t node, std::uint32_t gpu) const {
    const auto other = looks_like.find(node);
    const auto& host = hosts[other == looks_like.end() ? node : other->second];
    const auto bus = fmt::format("00{}9:01:00.0", gpu);
    const auto uuid = fmt::format("GPU-{:04}-{}", node, gpu);
    return {host + "/boot",
            "hostname and boot id",
            "0,1,2,3",
            static_cast<int>(gpu),
            "0000" + bus,
            uuid,
            uuid,
            "",
            std::uint64_t{90} << 30U};
  }

  static double factor(const std::map<std::uint32_t, double>& slow, std::uint32_t node) {
    const auto found = slow.find(node);
    return found == slow.end() ? 1 : found->second;
  }
  [[nodiscard]] double link(std::uint32_t a, std::uint32_t b) const {
    const auto found = slow_link.find({std::min(a, b), std::max(a, b)});
    return found == slow_link.end() ? 1 : found->second;
  }

  /// Bytes/s over each link of a ring through these nodes, which is as fast as its slowest part.
  [[nodiscard]] double rate(const std::vector<std::uint32_t>& ring) const {
    double slowest = 1;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      slowest = std::max(slowest, factor(slow_gpus, ring[i]));
      if (ring.size() == 1) continue;
      slowest =
          std::max({slowest, factor(slow_network, ring[i]), link(ring[i], ring[(i + 1) % ring.size()])});
    }
    std::uniform_real_distribution<double> noise(0.95, 1.05);
    return (ring.size() == 1 ? kWithin : kAcross) / slowest * noise(random);
  }
  [[nodiscard]] bool hangs(const std::vector<std::uint32_t>& ring) const {
    return ring.size() > 1 && std::ranges::any_of(ring, [this](auto node) { return hang.contains(node); });
  }
  [[nodiscard]] double seconds(Collective op, std::uint64_t bytes, std::size_t ranks, double rate) const {
    return bus_bandwidth(op, bytes, 1, ranks) / rate + 2e-5;
  }

  [[nodiscard]] std::vector<std::uint32_t> ring_of(const std::vector<std::size_t>& members) const {
    std::vector<std::uint32_t> ring;
    for (const auto rank : members) {
      const auto node = static_cast<std::uint32_t>(rank / gpus);
      if (ring.empty() || ring.back() != node) ring.push_back(node);
    }
    return ring;
  }
};

/// Probes that say at once what the real ones would say in time.
class PlayedProbes : public Probes {
 public:
  PlayedProbes(sys::Loop& loop, const Allocation& allocation, const ProbeStart& start)
      : loop_(loop), allocation_(allocation), wanted_(start.wanted), running_(start.ranks.size()) {
    for (const auto rank : wanted_) running_[rank] = true;
    const auto spec = sys::read_regular_file(start.folder + "/spec.json", 64U << 20U);
    spec_ = nlohmann::json::parse(*spec);
    groups_of_.resize(start.ranks.size());
    for (const auto& group : spec_["groups"]) {
      members_.push_back(group["members"].get<std::vector<std::size_t>>());
      const auto ring = allocation.ring_of(members_.back());
      rates_.push_back(allocation.rate(ring));
      hangs_.push_back(allocation.hangs(ring));
      for (const auto rank : members_.back()) groups_of_[rank].push_back(members_.size() - 1);
    }
  }

  void start(Tell tell) override {
    tell_ = std::move(tell);
    for (const auto rank : wanted_) {
      const auto node = static_cast<std::uint32_t>(rank / allocation_.gpus);
      if (!allocation_.mute.contains(node)) identify(rank, node);
    }
  }
  void say(std::size_t rank, const std::string& line) override {
    if (line.starts_with("go")) loop_.post([this, rank] { play(rank); });
  }
  void kill() override {
    loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
      if (alive.expired()) return;  // all had ended by themselves
      for (std::size_t rank = 0; rank < running_.size(); ++rank) end(rank);
    });
  }

 private:
  void line(std::size_t rank, const nlohmann::json& said) { tell_({rank, probe_news::Said{said.dump()}}); }
  void end(std::size_t rank) {
    if (!running_[rank]) return;
    running_[rank] = false;
    tell_({rank, probe_news::Ended{"exited with code 0"}});
  }

  void identify(std::size_t rank, std::uint32_t node) {
    const auto one = allocation_.identity(node, static_cast<std::uint32_t>(rank % allocation_.gpus));
    line(rank, {{"event", "identity"},
                {"host_id", one.host_id},
                {"host_id_source", one.host_id_source},
                {"visible_devices", one.visible_devices},
                {"gpu",
                 {{"device", one.device},
                  {"bus_id", one.bus_id},
                  {"uuid", one.uuid},
                  {"nvml_uuid", one.nvml_uuid},
                  {"free_bytes", one.free_bytes}}}});
  }

  void play(std::size_t rank) {
    if (!running_[rank]) return;
    for (const auto index : groups_of_[rank]) {
      const auto& group = spec_["groups"][index];
      const auto& name = group["name"];
      line(rank, {{"event", "joining"}, {"group", name}});
      line(rank, {{"event", "joined"}, {"group", name}});
      if (hangs_[index]) {
        line(rank, {{"event", "error"},
                    {"phase", "collective"},
                    {"group", name},
                    {"kind", "deadline"},
                    {"text", "not done within 20s"}});
        return end(rank);
      }
      const auto op = value_of<Collective>(group["op"].get<std::string>()).value();
      const auto ranks = members_[index].size();
      for (const std::uint64_t bytes : group["sizes"]) {
        const auto seconds = allocation_.seconds(op, bytes, ranks, rates_[index]);
        line(rank, {{"event", "result"},
                    {"group", name},
                    {"bytes", bytes},
                    {"elements", bytes / 4},
                    {"wrong", 0},
                    {"seconds", seconds},
                    {"busbw", bus_bandwidth(op, bytes, seconds, ranks)}});
      }
    }
    for (const auto index : groups_of_[rank]) {
      const auto& group = spec_["groups"][index];
      if (!group["transport"].get<bool>()) continue;
      line(rank, {{"event", "transport"},
                  {"group", group["name"]},
                  {"network", "AWS Libfabric"},
                  {"pairs", {{{"from", 0}, {"to", 1}, {"via", "P2P"}}}}});
    }
    line(rank, {{"event", "done"}});
    end(rank);
  }

  sys::Loop& loop_;
  const Allocation& allocation_;
  std::vector<std::size_t> wanted_;
  std::vector<bool> running_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  nlohmann::json spec_;
  std::vector<std::vector<std::size_t>> members_;  ///< by group
  std::vector<double> rates_;
  std::vector<bool> hangs_;
  std::vector<std::vector<std::size_t>> groups_of_;  ///< by rank
  Tell tell_;
};

}  // namespace nlaunch::preflight
