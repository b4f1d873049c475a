#include "import/roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/containers.h"
#include "import/programs.h"
#include "import/ray.h"
#include "import/ready.h"
#include "import/role_maker.h"
#include "import/steps.h"

namespace nlaunch::import {
namespace {

constexpr std::size_t kMostPrograms = 32;  // engines, helpers: more is no script that a person wrote

class Roles {
 public:
  Roles(const Doings& doings, const JobSize& size, Imported& out)
      : doings_(doings), size_(size), out_(out), maker_(doings, out) {}

  void make() {
    sort();
    if (ray_head_ != nullptr) {
      maker_.set_head("${role.ray-head.hosts}");
      add(ray_head_role(*ray_head_, gpus_of_ray() > 0), *ray_head_);
      if (size_.nodes > 1 && ray_worker_ != nullptr)
        add(ray_worker_role(*ray_worker_, size_.nodes * gpus_of_ray()), *ray_worker_);
      if (size_.nodes > 1 && ray_worker_ == nullptr)
        remark({ray_head_->line, "no `ray start --address` for the other nodes was found: they have no Ray"});
    }
    for (const auto* launch : helpers_) helper(*launch);
    engines();
    if (trainer_ != nullptr) ray_head_ != nullptr ? ray_trainer(*trainer_) : learner(*trainer_);
    order();
    import_readiness(doings_, out_);
    count_gpus();
  }

 private:
  void remark(Remark one) { out_.remarks[Destination::roles].push_back(std::move(one)); }

  void sort() {
    for (const auto& launch : doings_.launches) {
      const auto work = work_of(launch);
      if (work == Work::ray_head && ray_head_ == nullptr) ray_head_ = &launch;
      if (work == Work::ray_worker && ray_worker_ == nullptr) ray_worker_ = &launch;
      if (work == Work::engine && engines_.size() < kMostPrograms) engines_.push_back(&launch);
      if (work != Work::helper) continue;
      if (trainer_ == nullptr || training_score(launch) >= training_score(*trainer_)) trainer_ = &launch;
    }
    if (trainer_ != nullptr && trainer_->background && training_score(*trainer_) < 2) trainer_ = nullptr;
    for (const auto& launch : doings_.launches) {
      if (work_of(launch) != Work::helper || &launch == trainer_) continue;
      if (launch.background && helpers_.size() < kMostPrograms) {
        helpers_.push_back(&launch);
      } else {
        const bool after = trainer_ != nullptr && trainer_ < &launch;
        remark({launch.line, fmt::format("{}; {}, roles run together", kThatLine,
                                         after ? "it starts when the training has ended: run it afterwards"
                                               : "it ends before the others start: run it beforehand")});
      }
    }
  }

  [[nodiscard]] std::uint32_t gpus_of_ray() const {
    return size_.gpus > 0 ? size_.gpus : number_of(ray_head_->option("--num-gpus"));
  }

  void add(ImportedRole made, const Launch& launch) {
    contain(launch, maker_.head(), made, out_);
    out_.roles.push_back(std::move(made));
  }

  /// So many on each node of its step: where that has not all nodes of the job, so many in all.
  void destination(ImportedRole& made, const Launch& launch, std::uint32_t each) const {
    const auto nodes = nodes_of(launch, size_);
    if (nodes == size_.nodes) {
      made.per_node = each;
      return;
    }
    made.count = each * nodes;
    made.remarks.push_back(
        {launch.line, fmt::format("its step has {} of the job's {} nodes: nlaunch places {} where there "
                                  "are free GPUs",
                                  nodes, size_.nodes, made.count)});
  }

  // ------------------------------------------------------------------- helpers
  void helper(const Launch& launch) {
    auto made = maker_.make(launch, name_of_program(launch), RoleKind::service);
    made.each_node = on_every_node(launch, size_);
    maker_.set_command(made, all_words(launch));
    made.gpus = devices(launch);
    out_.roles.push_back(std::move(made));
  }

  // ------------------------------------------------------------------- engines
  void engines() {
    for (const auto* launch : engines_) {
      auto words = all_words(*launch);
      const auto gpus = std::max({1U, devices(*launch),
                                  number_of(launch->option("--tensor-parallel-size")) *
                                      std::max(1U, number_of(launch->option("--data-parallel-size"))),
                                  number_of(launch->option("--tensor_parallel_size")),
                                  number_of(launch->option("--tp-size")), number_of(launch->option("--tp")),
                                  number_of(launch->option("-tp"))});
      auto made = maker_.make(*launch, "engine", RoleKind::engine);
      made.gpus = gpus;
      if (on_every_node(*launch, size_)) made.per_node = 1;
      auto port = launch->option("--port").value_or("8000");
      if (choose_port(words)) {
        made.ports = {"http"};
        port = kChosenPort;
        made.remarks.push_back(
            {made.line, fmt::format("its port is made when the script runs: nlaunch chooses "
                                    "one, and others have it by ${{role.{}.addrs}}",
                                    made.name)});
      }
      maker_.set_command(made, words);
      made.ready = ImportedReady{fmt::format("http://${{self.host}}:{}/health", port), "", {}, "20m", 0};
      out_.roles.push_back(std::move(made));
    }
  }

  // ------------------------------------------------------------------- the training
  void ray_trainer(const Launch& launch) {
    auto made = maker_.make(launch, "trainer", RoleKind::service);
    made.ends_run = true;
    auto words = launch.words;
    if (launch.program == "ray") {  // ray job submit ... -- command
      const auto end = std::ranges::find_if(words, [](const auto& word) { return word.known() == "--"; });
      if (end != words.end()) words.erase(words.begin(), end + 1);
    }
    words.insert(words.begin(), launch.prefix.begin(), launch.prefix.end());
    maker_.set_command(made, words);
    made.environment.set.push_back({"RAY_ADDRESS", "${role.ray-head.addrs}", 0, ""});
    auto preload = std::move(made.preload);
    made.preload.clear();
    if (!preload.empty())
      made.remarks.push_back({launch.line,
                              "LD_PRELOAD was the driver's. Its learners are Ray's actors: they have it in "
                              "${role.learner.env_file}"});
    out_.roles.push_back(std::move(made));
    std::vector<std::string> spawners{"ray-head"};
    if (size_.nodes > 1 && ray_worker_ != nullptr) spawners.emplace_back("ray-worker");
    auto actors = ray_actors(launch, size_.nodes, gpus_of_ray());
    for (auto& one : actors) {
      one.spawned_by = spawners;
      if (one.kind == RoleKind::learner && one.name == "learner") one.preload = preload;
      out_.roles.push_back(std::move(one));
    }
  }

  void learner(const Launch& launch) {
    auto made = maker_.make(launch, "learner", RoleKind::learner);
    auto words = launch.words;
    const auto free = size_.gpus - std::min(size_.gpus, gpus_of_engines());
    const bool module =
        launch.mentions("torch.distributed.run") || launch.mentions("torch.distributed.launch");
    const auto tasks = tasks_of(launch, size_);
    if (launch.program == "torchrun" || module) {
      made.rendezvous = true;
      destination(made, launch,
                  ranks_of_torchrun(words, nodes_of(launch, size_) < size_.nodes ? size_.gpus : free));
      made.gpus = 1;
      made.remarks.push_back(
          {launch.line, "torchrun's work is nlaunch's: it starts the ranks itself, one for each GPU"});
    } else if (launch.program == "accelerate" || launch.program == "deepspeed") {
      made.rendezvous = true;
      destination(made, launch, 1);
      if (launch.program == "deepspeed" && launch.option("--hostfile"))
        made.remarks.push_back(
            {launch.line,
             "--hostfile: deepspeed would start its ranks by ssh, from each node. Take it away, or "
             "make its ranks nlaunch's: the program without deepspeed, per_node and gpus: 1"});
      const auto all = number_of(launch.option("--num_processes"));
      made.gpus = std::max({1U, devices(launch),
                            all > 0 ? (all + size_.nodes - 1) / size_.nodes
                                    : std::max(free, number_of(launch.option("--num_gpus")))});
      if (free > 0) made.gpus = std::min(made.gpus, free);
    } else if (tasks > 1) {
      made.rendezvous = true;
      destination(made, launch, tasks);
      made.gpus = free > 0 ? std::max(1U, free / tasks) : 0;
    } else {
      made.gpus = devices(launch) > 0 ? devices(launch) : free;
      if (launch.step && size_.nodes > 1) destination(made, launch, 1);
      made.rendezvous = sets_rendezvous();
    }
    if (launch.program == "bash" || launch.program == "sh" || launch.program.ends_with(".sh"))
      made.remarks.push_back(
          {launch.line, "what is in that script was not read: it can be imported by itself"});
    words.insert(words.begin(), launch.prefix.begin(), launch.prefix.end());
    maker_.set_command(made, words);
    out_.roles.push_back(std::move(made));
  }

  [[nodiscard]] bool sets_rendezvous() const {
    return std::ranges::any_of(doings_.variables, [](const auto& one) { return one.name == "MASTER_ADDR"; });
  }

  [[nodiscard]] std::uint32_t gpus_of_engines() const {
    std::uint32_t all = 0;
    for (const auto& one : out_.roles) all += one.kind == RoleKind::engine ? one.gpus : 0;
    return all;
  }

  // ------------------------------------------------------------------- all of them
  void order() {
    std::vector<std::vector<std::string>> stages(4);
    for (const auto& one : out_.roles) {
      if (!one.spawned_by.empty()) continue;
      const bool last = one.kind == RoleKind::learner || one.ends_run.value_or(false);
      const std::size_t stage = last                           ? 3
                                : one.name == "ray-worker"     ? 1
                                : one.kind == RoleKind::engine ? 2
                                                               : 0;
      stages[stage].push_back(one.name);
    }
    std::erase_if(stages, [](const auto& stage) { return stage.empty(); });
    if (stages.size() > 1) out_.start = std::move(stages);
  }

  /// Without a directive that says it: what the roles want on one node.
  void count_gpus() {
    std::uint32_t wanted = 0;
    for (const auto& one : out_.roles) {
      const auto places = one.per_node > 0 ? one.per_node
                          : one.count > 0  ? (one.count + size_.nodes - 1) / size_.nodes
                                           : 1;
      wanted += places * one.gpus;
    }
    out_.gpus = size_.gpus > 0 ? size_.gpus : wanted;
    std::uint64_t all = 0;
    for (const auto& one : out_.roles) {
      const auto processes = one.per_node > 0 ? one.per_node * size_.nodes
                             : one.count > 0  ? one.count
                             : one.each_node  ? size_.nodes
                                              : 1;
      all += std::uint64_t{processes} * one.gpus;
    }
    const auto there = std::uint64_t{out_.gpus} * size_.nodes;
    if (all > there) {
      remark(
          {0, fmt::format(
                  "the roles ask for {} GPUs, and the job has {}: in the script some of them share GPUs or "
                  "do not run together, here each process has its own",
                  all, there)});
    } else if (size_.gpus == 0 && wanted > 0) {
      out_.remarks[Destination::node].push_back(
          {0, "no directive says how many GPUs a node has: so many are asked for"});
    }
  }

  const Doings& doings_;
  const JobSize& size_;
  Imported& out_;
  RoleMaker maker_;
  const Launch* ray_head_ = nullptr;
  const Launch* ray_worker_ = nullptr;
  const Launch* trainer_ = nullptr;
  std::vector<const Launch*> engines_;
  std::vector<const Launch*> helpers_;
};

}  // namespace

void import_roles(const Doings& doings, const JobSize& size, Imported& out) {
  Roles(doings, size, out).make();
}

}  // namespace nlaunch::import
