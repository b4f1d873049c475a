#pragma once
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "sys/loop.h"

/// Checks whether a server answers, on a Loop, without blocking it.
namespace nlaunch::sys {

struct Endpoint {
  std::string host;  ///< name or address; without the brackets of an IPv6 address
  std::string port;
};
/// "HOST:PORT", "[::1]:80". The error is a sentence for the user.
std::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

struct HttpUrl {
  Endpoint endpoint;
  std::string host_header;
  std::string target = "/";
};
/// "http://HOST[:PORT][/PATH]"; https is an error that says so.
std::expected<HttpUrl, std::string> parse_http_url(std::string_view text);

/// The result of a check: empty on success, else the reason: "connection refused", "answered 503".
using CheckResult = std::optional<std::string>;

/// A check in progress; destroying it cancels it without calling `done`.
class NetCheck {
 public:
  using Done = std::function<void(CheckResult)>;
  ~NetCheck();
  NetCheck(const NetCheck&) = delete;
  NetCheck& operator=(const NetCheck&) = delete;

  /// Succeeds if a connection is accepted.
  static std::unique_ptr<NetCheck> tcp(Loop& loop, const Endpoint& endpoint, Duration timeout, Done done);
  /// Succeeds if a GET is answered with 2xx; a redirect (301, 302, 307, 308) on the same host is followed.
  static std::unique_ptr<NetCheck> http(Loop& loop, const HttpUrl& url, Duration timeout, Done done);
  /// The same for a POST of JSON.
  static std::unique_ptr<NetCheck> post(Loop& loop, const HttpUrl& url, std::string json, Duration timeout,
                                        Done done);
  /// The body of a GET, up to `limit` bytes, or why there is none.
  using Fetched = std::function<void(std::expected<std::string, std::string>)>;
  static std::unique_ptr<NetCheck> fetch(Loop& loop, const HttpUrl& url, Duration timeout, std::size_t limit,
                                         Fetched fetched);
  /// Of the last HTTP answer; 0: there was none.
  [[nodiscard]] int status() const;
  /// The last peer, if it was an address of this machine.
  struct Peer {
    std::string address;  ///< as inet_ntop(3) writes it
    std::uint16_t port = 0;
  };
  [[nodiscard]] const std::optional<Peer>& own_peer() const;

 private:
  struct State;
  explicit NetCheck(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace nlaunch::sys
