#include "sys/port_owner.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "sys/files.h"

namespace nlaunch::sys {
namespace {

constexpr std::size_t kLargestTable = 64 << 20;
using Address = std::array<unsigned char, 16>;  ///< of IPv4 as IPv6 has it, ::ffff:1.2.3.4
constexpr Address kAny4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
constexpr Address kAny6{};

std::optional<Address> read_address(const std::string& text) {
  Address address = kAny4;
  if (::inet_pton(AF_INET, text.c_str(), address.data() + 12) == 1) return address;
  if (::inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  return std::nullopt;
}

/// "0100007F": words of four bytes, each as the machine has it.
std::optional<Address> read_hex(std::string_view hex) {
  if (hex.size() != 8 && hex.size() != 32) return std::nullopt;
  Address address = kAny4;
  auto* at = address.data() + (hex.size() == 8 ? 12 : 0);
  for (; !hex.empty(); hex.remove_prefix(8), at += 4) {
    std::uint32_t word = 0;
    if (std::from_chars(hex.data(), hex.data() + 8, word, 16).ec != std::errc()) return std::nullopt;
    std::memcpy(at, &word, sizeof word);
  }
  return address;
}

/// The inodes of the sockets that listen on the port, on exactly this address or else on all.
std::set<std::string> listening(const Address& address, std::uint16_t port) {
  constexpr const char* kListen = "0A";
  std::set<std::string> exact;
  std::set<std::string> all;
  for (const auto* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::istringstream lines(read_regular_file(table, kLargestTable).value_or(""));
    std::string line;
    std::getline(lines, line);  // the heading
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
      const auto colon = local.find(':');
      if (state != kListen || colon == std::string::npos) continue;
      std::uint16_t number = 0;
      std::from_chars(local.data() + colon + 1, local.data() + local.size(), number, 16);
      const auto bound = read_hex(std::string_view(local).substr(0, colon));
      if (number != port || !bound) continue;
      if (*bound == address) exact.insert(inode);
      if (*bound == kAny4 || *bound == kAny6) all.insert(inode);
    }
  }
  return exact.empty() ? all : exact;
}

enum class Holds { yes, no, unseen };

/// Whether a process has one of these sockets open.
Holds holds(pid_t pid, const std::set<std::string>& inodes) {
  constexpr std::string_view kSocket = "socket:[";
  const auto folder = fmt::format("/proc/{}/fd", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (!entries) return errno == ENOENT ? Holds::no : Holds::unseen;
  while (const auto* entry = ::readdir(entries.get())) {
    std::array<char, 64> target{};
    const auto size = ::readlinkat(::dirfd(entries.get()), entry->d_name, target.data(), target.size());
    const std::string_view link(target.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    if (!link.starts_with(kSocket) || !link.ends_with(']')) continue;
    const auto inode = link.substr(kSocket.size(), link.size() - kSocket.size() - 1);
    if (inodes.contains(std::string(inode))) return Holds::yes;
  }
  return Holds::no;
}

}  // namespace

PortOwner port_owner(const std::string& address, std::uint16_t port, const std::vector<pid_t>& own) {
  const auto wanted = read_address(address);
  const auto inodes = wanted ? listening(*wanted, port) : std::set<std::string>();
  if (inodes.empty()) return {};
  bool unseen = false;
  for (const auto pid : own) {
    const auto answer = holds(pid, inodes);
    if (answer == Holds::yes) return {PortOwner::Of::own};
    unseen = unseen || answer == Holds::unseen;
  }
  if (unseen) return {};
  PortOwner found{PortOwner::Of::other};
  for_each_process([&](const ProcessInfo& process) {
    if (found.name.empty() && holds(process.pid, inodes) == Holds::yes)
      found.name =
          fmt::format("{} (pid {})", process_title(command_line(process.pid), process.name), process.pid);
  });
  return found;
}

}  // namespace nlaunch::sys
