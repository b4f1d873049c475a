#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "sys/files.h"

namespace nlaunch::sys {

/// A line-based conversation with a TCP server, for programs that may block. Nothing here waits past the
/// deadline with which it was opened.
class TcpClient {
 public:
  using Clock = std::chrono::steady_clock;

  /// `address`: "127.0.0.1:28028", "[::1]:80", "localhost:80".
  static Result<TcpClient> connect(std::string_view address, Clock::time_point deadline);

  Result<void> send(std::string_view text);
  /// The next line, without its newline.
  Result<std::string> read_line();
  /// Everything until the server closes the connection, up to `limit` bytes.
  Result<std::string> read_rest(std::size_t limit);

 private:
  TcpClient(UniqueFd socket, std::string address, Clock::time_point deadline)
      : socket_(std::move(socket)), address_(std::move(address)), deadline_(deadline) {}
  /// Waits for `events`; false at the deadline.
  [[nodiscard]] bool await(short events) const;
  /// Reads once into `buffer_`; false at the end of the stream.
  Result<bool> fill();

  UniqueFd socket_;
  std::string address_;
  Clock::time_point deadline_;
  std::string buffer_;
};

}  // namespace nlaunch::sys
