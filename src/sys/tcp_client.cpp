#include "sys/tcp_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "sys/net_check.h"

namespace nlaunch::sys {
namespace {

bool await_on(int fd, short events, TcpClient::Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<Duration>(deadline - TcpClient::Clock::now()).count();
    if (left <= 0) return false;
    pollfd watched{fd, events, 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(std::min<Duration::rep>(left, 1000000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

/// A connected socket, or the errno.
std::expected<UniqueFd, int> connect_to(const addrinfo& info, TcpClient::Clock::time_point deadline) {
  UniqueFd fd(::socket(info.ai_family, info.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info.ai_protocol));
  if (!fd) return std::unexpected(errno);
  if (::connect(fd.get(), info.ai_addr, info.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return std::unexpected(errno);
  if (!await_on(fd.get(), POLLOUT, deadline)) return std::unexpected(ETIMEDOUT);
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return std::unexpected(error);
  return fd;
}

}  // namespace

Result<TcpClient> TcpClient::connect(std::string_view address, Clock::time_point deadline) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return failure("sys.connect", "{}", endpoint.error());
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(endpoint->host.c_str(), endpoint->port.c_str(), &hints, &found);
      error != 0) {
    return failure("sys.connect", "{}: {}", address, ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, &::freeaddrinfo);
  int reason = 0;
  for (const addrinfo* info = addresses.get(); info != nullptr; info = info->ai_next) {
    auto fd = connect_to(*info, deadline);
    if (fd) return TcpClient(std::move(*fd), std::string(address), deadline);
    reason = fd.error();
  }
  return failure("sys.connect", "{}: {}", address, std::strerror(reason));
}

bool TcpClient::await(short events) const {
  return await_on(socket_.get(), events, deadline_);
}

Result<void> TcpClient::send(std::string_view text) {
  while (!text.empty()) {
    if (!await(POLLOUT)) return failure("sys.connection", "{} does not accept data", address_);
    const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent < 0) return failure("sys.connection", "{}: {}", address_, std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<bool> TcpClient::fill() {
  std::array<char, 65536> block;
  for (;;) {
    if (!await(POLLIN)) return failure("sys.connection", "{} did not answer in time", address_);
    const auto got = ::recv(socket_.get(), block.data(), block.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) return failure("sys.connection", "{}: {}", address_, std::strerror(errno));
    buffer_.append(block.data(), static_cast<std::size_t>(got));
    return got > 0;
  }
}

Result<std::string> TcpClient::read_line() {
  constexpr std::size_t kLongest = 1U << 20U;
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      auto line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (buffer_.size() > kLongest)
      return failure("sys.connection", "{} sent a line that is too long", address_);
    const auto more = fill();
    if (!more) return std::unexpected(more.error());
    if (!*more) return failure("sys.connection", "{} closed the connection", address_);
  }
}

Result<std::string> TcpClient::read_rest(std::size_t limit) {
  for (;;) {
    if (buffer_.size() > limit)
      return failure("sys.connection", "{} sent more than {} bytes", address_, limit);
    const auto more = fill();
    if (!more) return std::unexpected(more.error());
    if (!*more) return std::move(buffer_);
  }
}

}  // namespace nlaunch::sys
