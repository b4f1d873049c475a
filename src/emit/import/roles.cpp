#include "emit/import/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/secrets.h"
#include "base/text.h"
#include "config/names.h"
#include "emit/import/command_line.h"
#include "emit/import/containers.h"
#include "emit/import/environment.h"
#include "emit/import/programs.h"
#include "emit/import/ray.h"
#include "emit/import/ready.h"
#include "emit/import/wrappers.h"

namespace nlaunch::emit {
namespace {

constexpr std::size_t kMostPrograms = 32;  // engines, helpers: more is no script that a person wrote

class Roles {
 public:
  Roles(const Doings& doings, const JobSize& size, Imported& out) : doings_(doings), size_(size), out_(out) {}

  void make() {
    sort();
    if (ray_head_ != nullptr) {
      head_ = "${role.ray-head.hosts}";
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
  void remark(Remark one) { out_.remarks[Place::roles].push_back(std::move(one)); }

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

  std::string unused(std::string name) {
    auto free = name;
    for (unsigned i = 2; std::ranges::find(out_.roles, free, &ImportedRole::name) != out_.roles.end(); ++i)
      free = fmt::format("{}-{}", name, i);
    return free;
  }

  void add(ImportedRole made, const Launch& launch) {
    contain(launch, head_, made, out_);
    out_.roles.push_back(std::move(made));
  }

  ImportedRole role(const Launch& launch, std::string name, RoleKind kind) {
    ImportedRole made;
    made.name = unused(std::move(name));
    made.kind = kind;
    made.line = launch.line;
    contain(launch, head_, made, out_);
    if (!launch.output.empty())
      made.remarks.push_back(
          {launch.line, fmt::format("its output went to {}: here it is in attempt-N/logs/ of "
                                    "the run directory",
                                    launch.output)});
    if (!launch.loop.empty()) made.remarks.push_back({launch.line, launch.loop});
    made.remarks.insert(made.remarks.end(), launch.remarks.begin(), launch.remarks.end());
    if (launch.passes_arguments)
      made.remarks.push_back(
          {launch.line, "\"$@\": what the script was given besides goes to the end of the command"});
    for (const auto& [variable, value, line, weak] : launch.variables) {
      if (weak && is_exported(variable)) continue;
      for (const auto& doubt : value.doubts)
        made.remarks.push_back(
            {doubt.line > 0 ? doubt.line : line, fmt::format("of {}: {}", variable, doubt.text)});
      if (variable == "LD_PRELOAD") {
        preload(made, value, line);
      } else if (variable == "CUDA_VISIBLE_DEVICES") {
        // its number of GPUs
      } else if (config::is_reserved_variable(variable)) {
        made.remarks.push_back({line, fmt::format("{} is nlaunch's own for each process", variable)});
      } else if (value.has(Piece::Kind::shell)) {
        made.remarks.push_back(
            {line, fmt::format("{} for this command, made when the script runs: {}", variable, kThatLine)});
      } else if (looks_like_secret(variable)) {
        out_.secrets.push_back(
            {variable, "env", "", line,
             "was for one command: it is taken from the environment in which nlaunch is called"});
      } else if (const auto text = plain_text(value, head_)) {
        if (!import_joined(variable, *text, line, made.environment))
          made.environment.set.push_back({variable, *text, line, ""});
      } else {
        made.remarks.push_back(
            {line, fmt::format("{} is the first node's address, which nlaunch has in $MASTER_ADDR: {}",
                               variable, kThatLine)});
      }
    }
    return made;
  }

  [[nodiscard]] bool is_exported(const std::string& name) const {
    const auto found = std::ranges::find(doings_.variables, name, &Exported::name);
    return found != doings_.variables.end() && found->exported;
  }

  void preload(ImportedRole& made, const Value& value, std::uint32_t line) {
    const auto text = value.text();
    if (!text) {
      made.remarks.push_back({line,
                              "LD_PRELOAD of a file that is only known when the script runs: name it under "
                              "libraries in the profile, and here: preload: [NAME]"});
      return;
    }
    for (const auto& path : library_paths(*text)) {
      made.preload.push_back(library(path, line));
    }
  }

  std::string library(const std::string& path, std::uint32_t line) {
    const auto known = std::ranges::find(out_.libraries, path, &ImportedLibrary::path);
    if (known != out_.libraries.end()) return known->name;
    auto name = library_name(path);
    if (std::ranges::find(out_.libraries, name, &ImportedLibrary::name) != out_.libraries.end())
      name += fmt::format("-{}", out_.libraries.size());
    out_.libraries.push_back({name, path, line});
    return name;
  }

  std::vector<Value> all_words(const Launch& launch) const {
    auto words = launch.prefix;
    words.insert(words.end(), launch.words.begin(), launch.words.end());
    return words;
  }

  /// The command, with what may be another one when the script runs.
  void command(ImportedRole& made, const std::vector<Value>& words) {
    made.command = command_line(words, head_);
    for (const auto& word : words) {
      for (const auto& doubt : word.doubts) say(made, doubt.line > 0 ? doubt.line : made.line, doubt.text);
      for (const auto& piece : word.pieces) {
        if (piece.kind != Piece::Kind::shell) continue;
        for (const auto& name : variables_in(piece.text)) {
          if (is_only_the_scripts(name))
            say(made, made.line,
                fmt::format("{} is a variable of the script, which no process here has{}", name,
                            doings_.values.of_variable(name).has(Piece::Kind::head)
                                ? ": ${role.NAME.hosts} are the hosts of a role"
                                : ""));
        }
      }
    }
  }

  static void say(ImportedRole& made, std::uint32_t line, const std::string& text) {
    const auto same = [&](const Remark& one) { return one.line == line && one.text == text; };
    if (std::ranges::none_of(made.remarks, same)) made.remarks.push_back({line, text});
  }

  [[nodiscard]] bool is_only_the_scripts(const std::string& name) const {
    if (config::is_reserved_variable(name)) return false;
    const auto one = std::ranges::find(doings_.variables, name, &Exported::name);
    if (one == doings_.variables.end()) return doings_.values.knows(name);  // an array
    return !one->exported || !one->sure || !plain_text(one->value, head_);
  }

  /// On how many nodes it runs.
  [[nodiscard]] std::uint32_t nodes_of(const Launch& launch) const {
    auto nodes = size_.nodes;
    if (!launch.step) return nodes;
    std::uint32_t tasks = 0;
    bool said = false;
    for (const auto& [name, value] : launch.options) {
      if (name == "nodes" && number_of(value) > 0) {
        nodes = std::min(nodes, number_of(value));
        said = true;
      }
      if (name == "ntasks") tasks = number_of(value);
      if (name == "nodelist" && value.find_first_of(",[") == std::string::npos && !said) nodes = 1;
    }
    return !said && tasks > 0 ? std::min(nodes, tasks) : nodes;
  }

  /// So many on each node of its step: where that has not all nodes of the job, so many in all.
  void place(ImportedRole& made, const Launch& launch, std::uint32_t each) const {
    const auto nodes = nodes_of(launch);
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
    auto made = role(launch, name_of_program(launch), RoleKind::service);
    made.each_node = on_every_node(launch);
    command(made, all_words(launch));
    made.gpus = devices(launch);
    out_.roles.push_back(std::move(made));
  }

  [[nodiscard]] bool on_every_node(const Launch& launch) const {
    if (!launch.step || size_.nodes < 2) return false;
    std::uint32_t nodes = size_.nodes;
    for (const auto& [name, value] : launch.options) {
      if (name == "nodes" || name == "ntasks") nodes = number_of(value);
      if (name == "nodelist") return false;
    }
    return nodes >= size_.nodes;
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
      auto made = role(*launch, "engine", RoleKind::engine);
      made.gpus = gpus;
      if (on_every_node(*launch)) made.per_node = 1;
      auto port = launch->option("--port").value_or("8000");
      if (choose_port(words)) {
        made.ports = {"http"};
        port = kChosenPort;
        made.remarks.push_back(
            {made.line, fmt::format("its port is made when the script runs: nlaunch chooses "
                                    "one, and others have it by ${{role.{}.addrs}}",
                                    made.name)});
      }
      command(made, words);
      made.ready = ImportedReady{fmt::format("http://${{self.host}}:{}/health", port), "", {}, "20m", 0};
      out_.roles.push_back(std::move(made));
    }
  }

  // ------------------------------------------------------------------- the training
  void ray_trainer(const Launch& launch) {
    auto made = role(launch, "trainer", RoleKind::service);
    made.ends_run = true;
    auto words = launch.words;
    if (launch.program == "ray") {  // ray job submit ... -- command
      const auto end = std::ranges::find_if(words, [](const auto& word) { return word.known() == "--"; });
      if (end != words.end()) words.erase(words.begin(), end + 1);
    }
    words.insert(words.begin(), launch.prefix.begin(), launch.prefix.end());
    command(made, words);
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
    auto made = role(launch, "learner", RoleKind::learner);
    auto words = launch.words;
    const auto free = size_.gpus - std::min(size_.gpus, gpus_of_engines());
    const bool module =
        launch.mentions("torch.distributed.run") || launch.mentions("torch.distributed.launch");
    const auto tasks = tasks_of(launch);
    if (launch.program == "torchrun" || module) {
      made.rendezvous = true;
      place(made, launch, ranks_of_torchrun(words, nodes_of(launch) < size_.nodes ? size_.gpus : free));
      made.gpus = 1;
      made.remarks.push_back(
          {launch.line, "torchrun's work is nlaunch's: it starts the ranks itself, one for each GPU"});
    } else if (launch.program == "accelerate" || launch.program == "deepspeed") {
      made.rendezvous = true;
      place(made, launch, 1);
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
      place(made, launch, tasks);
      made.gpus = free > 0 ? std::max(1U, free / tasks) : 0;
    } else {
      made.gpus = devices(launch) > 0 ? devices(launch) : free;
      if (launch.step && size_.nodes > 1) place(made, launch, 1);
      made.rendezvous = sets_rendezvous();
    }
    if (launch.program == "bash" || launch.program == "sh" || launch.program.ends_with(".sh"))
      made.remarks.push_back(
          {launch.line, "what is in that script was not read: it can be imported by itself"});
    words.insert(words.begin(), launch.prefix.begin(), launch.prefix.end());
    command(made, words);
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

  [[nodiscard]] std::uint32_t tasks_of(const Launch& launch) const {
    if (!launch.step) return 1;
    auto tasks = size_.tasks;
    for (const auto& [name, value] : launch.options) {
      if (name == "ntasks-per-node") tasks = number_of(value);
      if (name == "ntasks" && number_of(value) > 0)
        tasks = std::max(1U, number_of(value) / std::max(1U, nodes_of(launch)));
    }
    return tasks;
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
      out_.remarks[Place::node].push_back(
          {0, "no directive says how many GPUs a node has: so many are asked for"});
    }
  }

  const Doings& doings_;
  const JobSize& size_;
  Imported& out_;
  std::string head_;
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

}  // namespace nlaunch::emit
