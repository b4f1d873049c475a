#include "preflight/gather.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sys/tcp_port.h"

namespace nlaunch::preflight {
namespace {

FolderFact ask_folder(std::string what, const std::string& path) {
  FolderFact fact{std::move(what), path, 0, ""};
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) {
    fact.error = std::strerror(errno);
    return fact;
  }
  fact.free = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (::access(path.c_str(), W_OK) != 0)
    fact.error = fmt::format("cannot be written to: {}", std::strerror(errno));
  return fact;
}

}  // namespace

std::vector<PortFact> ask_ports(const plan::BoundNode& node) {
  std::vector<PortFact> out;
  for (const auto& process : node.processes) {
    for (const auto port : process.ports) {
      const auto trouble = sys::try_to_listen(port);
      out.push_back({process.name, port, trouble ? trouble.message() : ""});
    }
  }
  return out;
}

std::vector<FolderFact> ask_folders(const plan::BoundNode& node, const std::string& run_folder) {
  std::vector<FolderFact> out{ask_folder("run directory", run_folder)};
  if (!node.scratch.empty()) out.push_back(ask_folder("scratch", node.scratch));
  return out;
}

}  // namespace nlaunch::preflight
