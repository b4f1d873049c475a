#include "preflight/gather.h"

#include <algorithm>

#include "plan/fixed_ports.h"
#include "sys/proc.h"
#include "sys/tcp_port.h"
#include "sys/tcp_sockets.h"

namespace nlaunch::preflight {
namespace {

void add(std::vector<Folder>& folders, Folder folder) {
  if (folder.path.empty()) return;
  if (std::ranges::find(folders, folder.path, &Folder::path) == folders.end())
    folders.push_back(std::move(folder));
}

}  // namespace

std::vector<PortFact> ask_ports(const plan::Plan& plan, const plan::BoundNode& node) {
  std::vector<PortFact> out;
  for (const auto& process : node.processes) {
    for (const auto port : process.ports) out.push_back({process.name, port, "", true});
    for (const auto port : plan::fixed_ports_of(plan.role_of(plan.processes[process.process]))) {
      if (std::ranges::find(out, port.number, &PortFact::port) != out.end()) continue;
      const auto trouble = sys::try_to_listen(port.number);
      auto& fact =
          out.emplace_back(PortFact{process.name, port.number, trouble ? trouble.message() : "", port.sure});
      auto holder = trouble ? sys::port_holder(sys::listening_sockets(), "", port.number) : std::nullopt;
      if (!holder) continue;
      holder->user_name = sys::user_name(holder->user);
      fact.holder = holder->str();
      fact.remedy = holder->how_to_free();
    }
  }
  return out;
}

std::vector<Folder> folders_of(const NodeObservations& observations, const std::string& run_folder) {
  std::vector<Folder> out;
  add(out, {"run directory", run_folder});
  add(out, {"scratch", observations.node.scratch});
  add(out, {"shared memory", "/dev/shm", Folder::Use::write});
  if (observations.for_the_machine())
    return out;  // the directory where its check was started is not a process's workdir
  for (const auto& [role, process] : observations.first_of_roles())
    add(out, {observations.plan.roles[role].name + "'s workdir", process->workdir, Folder::Use::look});
  return out;
}

}  // namespace nlaunch::preflight
