#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The TCP sockets of processes, according to /proc/PID/net/tcp, tcp6 and their descriptors.
namespace nlaunch::sys {

struct TcpSocket {
  struct End {
    std::string address;  ///< as inet_ntop(3) prints it
    std::uint16_t port = 0;
    /// "127.0.0.1:80", "[::1]:80"
    [[nodiscard]] std::string str() const;
  };
  std::string inode;
  End local{};
  End peer{};
  unsigned state = 0;        ///< as in the kernel's include/net/tcp_states.h
  std::uint64_t unsent = 0;  ///< bytes, as `unread`
  std::uint64_t unread = 0;
  uid_t user = 0;  ///< of the process that made it
};
inline constexpr unsigned kTcpListen = 10;

/// All sockets of the network namespace of a process; empty if they cannot be read.
std::vector<TcpSocket> tcp_sockets(pid_t pid);
/// Its descriptors that are sockets of any kind, with their inodes.
std::vector<std::pair<int, std::string>> open_sockets(pid_t pid);

/// The owner of a listening socket.
struct PortOwner {
  enum class Of {
    own,      ///< one of the given processes
    other,    ///< none of them
    unknown,  ///< no such socket is seen (gVisor, another network namespace), or a process's descriptors are
              ///< not
  };
  Of of = Of::unknown;
  std::string name{};  ///< for `other`, if visible: "python3 (pid 4711)"
};
/// `address`, as above, is an address in the caller's network namespace to which a connection was made.
PortOwner port_owner(const std::string& address, std::uint16_t port, const std::vector<pid_t>& own);

/// A process that listens on a port of this machine.
struct PortHolder {
  pid_t pid = 0;          ///< 0: it is hidden from this user
  std::string program{};  ///< "python3 -m http.server"; empty likewise
  uid_t user = 0;
  /// Left to the caller: a directory service that has to be asked for it can take its time.
  std::string user_name{};
  std::string run{};      ///< the id of the nlaunch run that started it; empty: none, or not visible
  std::string run_dir{};  ///< the directory of that run
  /// It runs as this user.
  [[nodiscard]] bool is_own() const;
  /// "server.py (pid 4711, user alice) of run 20260131-120000-17"
  [[nodiscard]] std::string str() const;
  /// What frees the port: "stop that run with `nlaunch stop /runs/grpo/20260131-120000-17`".
  [[nodiscard]] std::string how_to_free() const;
};
/// The sockets that listen in the caller's network namespace.
std::vector<TcpSocket> listening_sockets();
/// Who listens there, according to these sockets. `address`: as of `port_owner`; empty: any address. `first`:
/// the processes that are asked before all others. Empty if nobody is seen to listen there, or if it is
/// unknown who does: the holder is hidden, and so are the descriptors of one of `first`.
std::optional<PortHolder> port_holder(const std::vector<TcpSocket>& listening, const std::string& address,
                                      std::uint16_t port, const std::vector<pid_t>& first = {});

/// The addresses on which these processes listen, by port.
std::vector<TcpSocket::End> listening_ends(const std::vector<pid_t>& pids);

}  // namespace nlaunch::sys
