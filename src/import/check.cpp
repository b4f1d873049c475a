#include "import/check.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/secrets.h"
#include "base/text.h"
#include "import/markers.h"
#include "import/ray.h"
#include "import/secrets.h"
#include "import/together.h"
#include "plan/environment.h"
#include "plan/references.h"

namespace nlaunch::import {
namespace {

/// Replaces hosts with their addresses, since either can be used for the other.
std::string with_addresses(std::string text) {
  static const RE2 kHost(R"(rec-node-(\d+))");
  std::string number;
  for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, kHost, &number);) {
    const auto node = text::whole_number<std::uint32_t>(number).value_or(0);
    const auto host = fmt::format("rec-node-{}", number);
    const auto at = static_cast<std::size_t>(rest.data() - text.data()) - host.size();
    const auto address = shell::Allocation::address(node);
    text.replace(at, host.size(), address);
    rest = re2::StringPiece(text.data() + at + address.size(), text.size() - at - address.size());
  }
  return text;
}

/// nlaunch chooses the GPUs and the port.
bool is_chosen(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames{"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "MASTER_PORT",
                                                   "LD_PRELOAD"};
  return std::ranges::find(kNames, name) != kNames.end();
}

class Check {
 public:
  Check(const Imported& imported, const shell::Recording& recording, const plan::Plan& plan)
      : imported_(imported), recording_(recording), plan_(plan) {
    node_.scratch = "/rec/scratch";
    node_.cache = "/rec/cache";
    for (auto& process : plan_.processes) give_ports(process);
  }

  std::vector<Difference> run() {
    if (!place()) return std::move(found_);
    std::vector<std::string> addresses;
    for (const auto node : recorded_node_) addresses.push_back(shell::Allocation::address(node));
    const plan::NodeNames names(plan_, node_, addresses, {"424242", "/rec/run", "/rec/run/attempt-1"});
    for (const auto& role : imported_.roles) {
      if (!role.part) continue;
      const auto& part = imported_.parts[*role.part];
      for (std::size_t i = 0; i < part.commands.size(); ++i) {
        const auto* process = process_of(role, part.recorded[i]);
        if (process != nullptr) compare(role, part, i, *process, names);
      }
    }
    for (const auto& role : imported_.roles)
      if (role.writes) files(role, imported_.parts[*role.writes], names);
    return std::move(found_);
  }

 private:
  /// Of a port that the batch script has chosen, only the first process of a role has that very port.
  void give_ports(plan::Process& process) const {
    const auto role = std::ranges::find(imported_.roles, plan_.role_of(process).name, &ImportedRole::name);
    for (std::size_t i = 0; i < process.ports.size(); ++i) {
      const bool is_known = role != imported_.roles.end() && i < role->port_markers.size();
      const auto marker = is_known ? text::whole_number<std::uint16_t>(role->port_markers[i]) : std::nullopt;
      const bool is_its_own = process.index == 0 || marker == shell::Allocation::kPortOfTask;
      process.ports[i] = marker && is_its_own ? *marker : std::uint16_t{1};
    }
  }

  void tell(std::uint32_t line, std::string what) {
    constexpr std::size_t kMost = 200;
    if (found_.size() < kMost) found_.push_back({line, std::move(what)});
  }

  [[nodiscard]] const plan::Process* process_of(const ImportedRole& role, std::size_t index) const {
    for (const auto& process : plan_.processes)
      if (plan_.role_of(process).name == role.name && process.index == index) return &process;
    return nullptr;
  }

  /// Maps each node of the plan to one of the recorded job.
  bool place() {
    recorded_node_.assign(plan_.node.count, UINT32_MAX);
    std::set<std::uint32_t> taken;
    for (const auto& role : imported_.roles) {
      if (!role.part) continue;
      const auto& part = imported_.parts[*role.part];
      for (std::size_t i = 0; i < part.tasks.size(); ++i) {
        const auto* process = process_of(role, i);
        if (process == nullptr) {
          tell(part.line, fmt::format("{}: the plan has no process for task {} on node {}", role.name, i,
                                      part.tasks[i].node));
          continue;
        }
        auto& node = recorded_node_.at(process->node);
        if (node == UINT32_MAX && taken.insert(part.tasks[i].node).second) node = part.tasks[i].node;
        if (node != part.tasks[i].node)
          tell(part.line,
               fmt::format("{}.{}: the plan puts it on node {}, together with programs that the script "
                           "runs on another node; in the script it is on node {}",
                           role.name, i, process->node, part.tasks[i].node));
      }
      const auto planned = std::ranges::count_if(
          plan_.processes, [&](const auto& process) { return plan_.role_of(process).name == role.name; });
      if (static_cast<std::size_t>(planned) > part.tasks.size())
        tell(part.line,
             fmt::format("{}: the plan has {}, the script {}", role.name,
                         text::count(static_cast<std::size_t>(planned), "process"), part.tasks.size()));
    }
    for (auto& node : recorded_node_) {
      for (std::uint32_t other = 0; node == UINT32_MAX; ++other)
        if (taken.insert(other).second) node = other;
    }
    return found_.empty();
  }

  void compare(const ImportedRole& role, const Part& part, std::size_t index, const plan::Process& process,
               const plan::NodeNames& names) {
    const auto& command = recording_.commands[part.commands[index]];
    const auto& planned = plan_.role_of(process);
    const auto name = plan_.name_of(process);
    Diagnostics problems;
    const auto resolved = [&](const std::string& text) {
      return with_addresses(names.resolve(text, &process, problems));
    };
    shell::Words argv;
    for (const auto* list : {&planned.wrapper, &planned.command})
      for (const auto& word : *list) argv.push_back(resolved(word));
    auto wanted = with_input(part.lines[index], part.input ? command.input : std::nullopt);
    if (part.may_fail) wanted = going_on(std::move(wanted));
    if (role.ray) wanted = with_block(std::move(wanted));
    if (role.sees_gpus_of_ray) wanted.insert(wanted.begin(), kWithoutVisible.begin(), kWithoutVisible.end());
    if (!role.handed_over.empty()) {
      const auto front = wanted.begin() + static_cast<std::ptrdiff_t>(planned.wrapper.size());
      const auto line = line_with_variables({front, wanted.end()}, role.handed_over);
      wanted.erase(front, wanted.end());
      wanted.insert(wanted.end(), {"bash", "-c", line});
    }
    if (!role.globs.empty()) wanted = {"bash", "-c", line_with_globs(wanted, role.globs)};
    for (auto& word : wanted) word = with_addresses(std::move(word));
    words(part.line, name, argv, wanted);
    if (const auto folder = resolved(planned.workdir); folder != command.folder)
      tell(part.line,
           fmt::format("{}: it runs in '{}', but in '{}' in the script", name, folder, command.folder));
    variables(part.line, name, process, command, resolved);
    for (const auto& problem : problems.items()) tell(part.line, problem.message);
  }

  /// On the node of each recorded program, or on one node for all, a process writes the files that it is
  /// given.
  void files(const ImportedRole& role, const Part& part, const plan::NodeNames& names) {
    const bool in_task = std::ranges::any_of(part.files, &PartFile::in_task);
    for (std::size_t i = 0; i < part.commands.size(); ++i) {
      const auto node = part.tasks[part.recorded[i]].node;
      const auto process = std::ranges::find_if(plan_.processes, [&](const auto& one) {
        return plan_.role_of(one).name == role.name && (!in_task || recorded_node_.at(one.node) == node);
      });
      if (process == plan_.processes.end()) {
        tell(part.line, fmt::format("{}: it has no process on node {}", role.name, node));
        continue;
      }
      std::vector<PartFile> given;
      for (const auto& file : recording_.commands[part.commands[i]].given)
        given.push_back({with_addresses(file.path), with_addresses(file.text.value_or("")), file.executable});
      Diagnostics problems;
      shell::Words planned;
      for (const auto& word : plan_.role_of(*process).command)
        planned.push_back(with_addresses(names.resolve(word, &*process, problems)));
      words(part.line, plan_.name_of(*process), planned, command_of_files(given));
      for (const auto& problem : problems.items()) tell(part.line, problem.message);
    }
  }

  void words(std::uint32_t line, const std::string& name, const shell::Words& planned,
             const shell::Words& wanted) {
    if (planned.size() != wanted.size())
      return tell(line, fmt::format("{}: it has {}, but {} in the script", name,
                                    text::count(planned.size(), "argument"), wanted.size()));
    for (std::size_t i = 0; i < planned.size(); ++i) {
      if (planned[i] == wanted[i]) continue;
      tell(line, planned[i].find(kMasked) != std::string::npos
                     ? fmt::format("{}: argument {} contains a secret, which a plan never contains", name, i)
                     : fmt::format("{}: argument {} is '{}', but '{}' in the script", name, i, planned[i],
                                   wanted[i]));
    }
  }

  template <class Resolve>
  void variables(std::uint32_t line, const std::string& name, const plan::Process& process,
                 const shell::RecordedCommand& command, const Resolve& resolve) {
    const auto& role = plan_.role_of(process);
    auto base = plan::inherit(recording_.environment).kept;
    if (plan_.modules.loads()) base.try_emplace("LD_LIBRARY_PATH", "/rec/modules/lib");
    auto operations = role.env;
    std::set<std::string> of_nlaunch;
    for (auto& op : operations) {
      op.value = resolve(op.value);
      if (op.layer == plan::Layer::nlaunch || op.origin.starts_with("(built in)")) of_nlaunch.insert(op.name);
    }
    auto planned = plan::apply(base, operations,
                               {plan_.node.count, plan_.node.gpu_model, plan_.node.arch, role.kind, {}});
    for (const auto& [variable, value] : ranks(process)) planned[variable] = value;
    const auto wanted = plan::to_environment(command.environment);
    std::set<std::string> all;
    for (const auto& [variable, value] : planned) all.insert(variable);
    for (const auto& [variable, value] : wanted) all.insert(variable);
    for (const auto& variable : all) {
      if (is_chosen(variable) || is_secret(variable)) continue;
      const auto plans = planned.find(variable);
      const auto wants = wanted.find(variable);
      if (wants == wanted.end()) {
        // A module that the script loads later is loaded for all programs.
        if (variable == "LD_LIBRARY_PATH" && plans->second == "/rec/modules/lib") continue;
        const bool own = of_nlaunch.contains(variable) || is_rank(variable) || is_set_by_slurm(variable);
        if (!own)
          tell(line, fmt::format("{}: {} is '{}', but not set in the script", name, variable, plans->second));
        continue;
      }
      const auto value = with_addresses(wants->second);
      const bool own_host = variable == "MASTER_ADDR" && (value == "localhost" || value == "127.0.0.1");
      if (own_host && recorded_node_.size() == 1) continue;
      if (variable == "MASTER_ADDR" && plans != planned.end() && is_of_interface(plans->second, value))
        continue;
      if (plans != planned.end() && is_same(variable, with_addresses(plans->second), value)) continue;
      if (is_set_by_slurm(variable)) {
        if (plans == planned.end() || !is_of_task(variable)) continue;
      }
      tell(line,
           plans == planned.end()
               ? fmt::format("{}: {} is not set, but '{}' in the script", name, variable, value)
               : fmt::format("{}: {} is '{}', but '{}' in the script", name, variable, plans->second, value));
    }
  }

  /// "10.77.0.1i" for `MASTER_ADDR="${host}i"`: at some sites the name of the host on another network.
  static bool is_of_interface(const std::string& planned, const std::string& wanted) {
    static const RE2 kSuffix(kSuffixOfNetwork);
    return wanted.starts_with(planned) && RE2::FullMatch(wanted.substr(planned.size()), kSuffix);
  }

  /// For a list that was empty before, `/a:` and `/a` are the same.
  static bool is_same(const std::string& variable, std::string planned, std::string wanted) {
    if (variable.ends_with("PATH")) {
      for (auto* text : {&planned, &wanted}) {
        if (text->ends_with(':')) text->pop_back();
        if (text->starts_with(':')) text->erase(0, 1);
      }
    }
    return planned == wanted;
  }

  [[nodiscard]] bool is_secret(const std::string& variable) const {
    return std::ranges::find(plan_.secrets, variable, &plan::Secret::name) != plan_.secrets.end();
  }

  static bool is_of_task(std::string_view name) {
    constexpr std::array<std::string_view, 5> kNames{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",
                                                     "SLURM_NTASKS", "SLURM_ARRAY_TASK_ID"};
    return name.starts_with("OMPI_COMM_WORLD_") || std::ranges::find(kNames, name) != kNames.end();
  }

  static bool is_rank(std::string_view name) {
    constexpr std::array<std::string_view, 9> kNames{"RANK",      "WORLD_SIZE",  "LOCAL_RANK",
                                                     "NODE_RANK", "GROUP_RANK",  "LOCAL_WORLD_SIZE",
                                                     "NNODES",    "MASTER_ADDR", "MASTER_PORT"};
    return std::ranges::find(kNames, name) != kNames.end();
  }

  /// As nlaunch sets them for a rendezvous (launch/bind/own_environment.cpp).
  [[nodiscard]] std::map<std::string, std::string> ranks(const plan::Process& process) const {
    const auto& role = plan_.role_of(process);
    if (role.rendezvous != Rendezvous::torch) return {};
    const auto first =
        std::ranges::find_if(plan_.processes, [&](const auto& other) { return other.role == process.role; });
    std::map<std::string, std::string> all{
        {"MASTER_ADDR", shell::Allocation::address(recorded_node_.at(first->node))}};
    if (role.gpus > 1) {
      all["NNODES"] = std::to_string(role.count);
      all["NODE_RANK"] = std::to_string(process.index);
      return all;
    }
    all["RANK"] = std::to_string(process.rank);
    all["WORLD_SIZE"] = std::to_string(role.count);
    all["LOCAL_RANK"] = std::to_string(process.local_rank);
    all["LOCAL_WORLD_SIZE"] = std::to_string(process.local_size);
    all["NODE_RANK"] = all["GROUP_RANK"] = std::to_string(process.node_rank);
    return all;
  }

  const Imported& imported_;
  const shell::Recording& recording_;
  plan::Plan plan_;
  plan::BoundNode node_;
  std::vector<std::uint32_t> recorded_node_;  ///< by the plan's
  std::vector<Difference> found_;
};

}  // namespace

std::vector<Difference> differences(const Imported& imported, const shell::Recording& recording,
                                    const plan::Plan& plan) {
  auto found = Check(imported, recording, plan).run();
  auto together = differences_together(imported, recording, plan);
  found.insert(found.end(), std::make_move_iterator(together.begin()),
               std::make_move_iterator(together.end()));
  return found;
}

}  // namespace nlaunch::import
