#include "sys/tcp_sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <set>
#include <string_view>

#include "base/text.h"
#include "sys/proc.h"
#include "sys/proc_threads.h"
#include "sys/spawn.h"

namespace nlaunch::sys {
namespace {

template <class Number>
Number hex(std::string_view text) {
  constexpr int kBase = 16;
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, kBase);
  return value;
}

/// "0100007F:1F90", or the longer form of tcp6: words in host byte order.
TcpSocket::End read_end(std::string_view text) {
  constexpr std::size_t kWord = 8;
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon % kWord != 0) return {std::string(text), 0};
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < colon / kWord && i < words.size(); ++i)
    words.at(i) = hex<std::uint32_t>(text.substr(i * kWord, kWord));
  std::array<char, INET6_ADDRSTRLEN> out{};
  ::inet_ntop(colon > kWord ? AF_INET6 : AF_INET, words.data(), out.data(), out.size());
  return {out.data(), hex<std::uint16_t>(text.substr(colon + 1))};
}

/// An IPv4 address without the prefix that it has in an IPv6 socket.
std::string_view plain(std::string_view address) {
  constexpr std::string_view kMapped = "::ffff:";
  return address.starts_with(kMapped) ? address.substr(kMapped.size()) : address;
}

/// Those that listen on the port, on exactly this address or else on all addresses. Without an address: those
/// of any.
std::vector<TcpSocket> at_port(const std::vector<TcpSocket>& listening, std::string_view address,
                               std::uint16_t port) {
  std::vector<TcpSocket> exact;
  std::vector<TcpSocket> all;
  for (const auto& socket : listening) {
    if (socket.local.port != port) continue;
    const auto bound = plain(socket.local.address);
    if (address.empty() || bound == plain(address)) exact.push_back(socket);
    if (bound == "0.0.0.0" || bound == "::") all.push_back(socket);
  }
  return exact.empty() ? all : exact;
}

/// The first of the sockets that the process has open; null: it has none.
const TcpSocket* held_by(pid_t pid, const std::vector<TcpSocket>& sockets) {
  const auto open = open_sockets(pid);
  const auto found = std::ranges::find_if(sockets, [&](const TcpSocket& socket) {
    return std::ranges::any_of(open, [&](const auto& one) { return one.second == socket.inode; });
  });
  return found == sockets.end() ? nullptr : &*found;
}

bool hides_its_files(pid_t pid) {
  return ::access(fmt::format("/proc/{}/fd", pid).c_str(), R_OK | X_OK) != 0 && errno == EACCES;
}

}  // namespace

std::string TcpSocket::End::str() const {
  return address.contains(':') ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

std::vector<TcpSocket> tcp_sockets(pid_t pid) {
  std::vector<TcpSocket> sockets;
  for (const char* name : {"net/tcp", "net/tcp6"}) {
    const auto table = read_proc_file(pid, name);
    if (!table) continue;
    for (const auto& line : text::split(*table, '\n')) {
      std::vector<std::string> fields;
      for (auto& field : text::split(line, ' ')) {
        if (!field.empty()) fields.push_back(std::move(field));
      }
      constexpr std::size_t kUser = 7;
      constexpr std::size_t kInode = 9;
      if (fields.size() <= kInode || fields[0] == "sl") continue;
      const auto colon = fields[4].find(':');
      sockets.push_back({fields[kInode], read_end(fields[1]), read_end(fields[2]), hex<unsigned>(fields[3]),
                         hex<std::uint64_t>(fields[4].substr(0, colon)),
                         hex<std::uint64_t>(fields[4].substr(colon + 1)),
                         text::whole_number<uid_t>(fields[kUser]).value_or(0)});
    }
  }
  return sockets;
}

std::vector<std::pair<int, std::string>> open_sockets(pid_t pid) {
  constexpr std::string_view kSocket = "socket:[";
  std::vector<std::pair<int, std::string>> sockets;
  for (const auto& [fd, target] : open_files(pid)) {
    if (target.starts_with(kSocket))
      sockets.emplace_back(fd, target.substr(kSocket.size(), target.size() - kSocket.size() - 1));
  }
  return sockets;
}

PortOwner port_owner(const std::string& address, std::uint16_t port, const std::vector<pid_t>& own) {
  const auto sockets = at_port(listening_sockets(), address, port);
  if (sockets.empty()) return {};
  const auto holds_one = [&](pid_t pid) { return held_by(pid, sockets) != nullptr; };
  if (std::ranges::any_of(own, holds_one)) return {PortOwner::Of::own};
  if (std::ranges::any_of(own, hides_its_files)) return {};
  PortOwner found{PortOwner::Of::other};
  for_each_process([&](const ProcessInfo& process) {
    if (found.name.empty() && holds_one(process.pid))
      found.name =
          fmt::format("{} (pid {})", process_title(command_line(process.pid), process.name), process.pid);
  });
  return found;
}

std::vector<TcpSocket> listening_sockets() {
  auto sockets = tcp_sockets(::getpid());
  std::erase_if(sockets, [](const TcpSocket& socket) { return socket.state != kTcpListen; });
  return sockets;
}

bool PortHolder::is_own() const {
  return user == ::geteuid();
}

std::string PortHolder::str() const {
  const auto who = user_name.empty() ? fmt::format("uid {}", user) : fmt::format("user {}", user_name);
  const auto what = pid == 0 ? fmt::format("a process of {}", who)
                             : fmt::format("{} (pid {}, {})", text::printable(program), pid, who);
  return run.empty() ? what : fmt::format("{} of run {}", what, text::printable(run));
}

std::string PortHolder::how_to_free() const {
  if (!run_dir.empty())
    return fmt::format("stop that run with `nlaunch stop {}`", text::shell_quote(run_dir));
  if (is_own() && pid != 0) return fmt::format("stop it with `kill {}`", pid);
  return user_name.empty() ? fmt::format("ask the user with uid {} to stop it", user)
                           : fmt::format("ask user {} to stop it", user_name);
}

std::optional<PortHolder> port_holder(const std::vector<TcpSocket>& listening, const std::string& address,
                                      std::uint16_t port, const std::vector<pid_t>& first) {
  const auto sockets = at_port(listening, address, port);
  if (sockets.empty()) return std::nullopt;
  PortHolder holder{.user = sockets.front().user};
  const auto ask = [&](pid_t pid) {
    const auto* socket = holder.pid == 0 ? held_by(pid, sockets) : nullptr;
    if (socket == nullptr) return;
    holder.pid = pid;
    holder.user = socket->user;
  };
  std::ranges::for_each(first, ask);
  if (holder.pid == 0) for_each_process([&](const ProcessInfo& process) { ask(process.pid); });
  if (holder.pid == 0)
    return std::ranges::any_of(first, hides_its_files) ? std::nullopt : std::optional(holder);
  const auto info = process_info(holder.pid);
  holder.program = process_title(command_line(holder.pid), info ? info->name : "");
  // launch/bind/own_environment.cpp sets them.
  const auto environment = initial_environment(holder.pid);
  holder.run = env_value(environment, "NLAUNCH_RUN_ID");
  holder.run_dir = env_value(environment, "NLAUNCH_RUN_DIR");
  return holder;
}

std::vector<TcpSocket::End> listening_ends(const std::vector<pid_t>& pids) {
  std::set<std::string> inodes;
  for (const auto pid : pids)
    for (const auto& [fd, inode] : open_sockets(pid)) inodes.insert(inode);
  std::vector<TcpSocket::End> ends;
  for (const auto& socket : listening_sockets())
    if (inodes.contains(socket.inode)) ends.push_back(socket.local);
  std::ranges::stable_sort(ends, {}, &TcpSocket::End::port);
  return ends;
}

}  // namespace nlaunch::sys
