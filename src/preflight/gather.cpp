#include "preflight/gather.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sys/files.h"

namespace nlaunch::preflight {
namespace {

/// Empty when the port is free on all of this node's addresses.
std::string ask_port(std::uint16_t port) {
  const sys::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(port);
  const bool bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  return bound && ::listen(fd.get(), 1) == 0 ? "" : std::strerror(errno);
}

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
    for (const auto port : process.ports) out.push_back({process.name, port, ask_port(port)});
  }
  return out;
}

std::vector<FolderFact> ask_folders(const plan::BoundNode& node, const std::string& run_folder) {
  std::vector<FolderFact> out{ask_folder("run directory", run_folder)};
  if (!node.scratch.empty()) out.push_back(ask_folder("scratch", node.scratch));
  return out;
}

}  // namespace nlaunch::preflight
