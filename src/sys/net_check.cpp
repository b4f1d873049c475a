#include "sys/net_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <charconv>

#include "base/text.h"
#include "sys/loop_access.h"

namespace nlaunch::sys {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0;
}

/// How many redirects a GET follows.
constexpr int kMostRedirects = 5;
constexpr std::size_t kLongestLocation = 500;

/// The status of "HTTP/1.1 200 OK", or 0.
int status_of(std::string_view head) {
  const auto blank = head.find(' ');
  if (!head.starts_with("HTTP/") || blank == std::string_view::npos) return 0;
  int status = 0;
  std::from_chars(head.data() + blank + 1, head.data() + head.size(), status);
  return status;
}

/// Redirects after which the same GET must be sent elsewhere.
bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 307 || status == 308;
}

/// The value of `Location` in the head of an answer, or empty.
std::string location_of(std::string_view head) {
  constexpr std::string_view kName = "location:";
  while (!head.empty()) {
    const auto end = std::min(head.find('\n'), head.size());
    const auto line = head.substr(0, end);
    if (text::lower(line.substr(0, kName.size())) == kName)
      return std::string(text::trim(line.substr(kName.size())).substr(0, kLongestLocation));
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return {};
}

/// The redirect target of an answer for `url`, if it is on the same host.
std::optional<HttpUrl> redirected(const HttpUrl& url, const std::string& location) {
  if (location.starts_with('/') && !location.starts_with("//")) {
    return HttpUrl{url.endpoint, url.host_header, location};
  }
  auto next = parse_http_url(location);
  if (!next || next->endpoint.host != url.endpoint.host) return std::nullopt;
  return std::move(*next);
}

}  // namespace

std::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !is_port(text.substr(colon + 1))) {
    return std::unexpected(fmt::format("'{}' is not HOST:PORT with a port from 1 to 65535", text));
  }
  auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return Endpoint{std::string(host), std::string(text.substr(colon + 1))};
}

std::expected<HttpUrl, std::string> parse_http_url(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) {
    return std::unexpected(fmt::format("'{}' does not start with http:// (https is not supported)", text));
  }
  const auto rest = text.substr(kScheme.size());
  const auto slash = rest.find('/');
  const auto host = rest.substr(0, slash);
  const bool has_port = host.rfind(':') != std::string_view::npos && !host.ends_with(']');
  auto endpoint = parse_endpoint(has_port ? std::string(host) : fmt::format("{}:80", host));
  if (!endpoint) {
    return std::unexpected(
        fmt::format("'{}' is not http://HOST[:PORT][/PATH] with a port from 1 to 65535", text));
  }
  return HttpUrl{std::move(*endpoint), std::string(host),
                 slash == std::string_view::npos ? "/" : std::string(rest.substr(slash))};
}

struct NetCheck::State : std::enable_shared_from_this<State> {
  State(Loop& loop, Done on_done)
      : resolver(LoopAccess::context(loop)),
        socket(LoopAccess::context(loop)),
        timer(LoopAccess::context(loop)),
        done(std::move(on_done)) {}

  void start(const Endpoint& endpoint, Duration timeout) {
    timer.expires_after(timeout);
    timer.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->finish("no answer in time");
    });
    look_up(endpoint);
  }

  void look_up(const Endpoint& endpoint) {
    error_code not_an_address;
    const auto address = asio::ip::make_address(endpoint.host, not_an_address);
    if (!not_an_address) {
      std::uint16_t port = 0;
      std::from_chars(endpoint.port.data(), endpoint.port.data() + endpoint.port.size(), port);
      return connect(std::array{tcp::endpoint(address, port)});
    }
    resolver.async_resolve(endpoint.host, endpoint.port,
                           [self = shared_from_this()](const error_code& error, const auto& found) {
                             if (error) return self->finish(error.message());
                             self->connect(found);
                           });
  }

  template <class Endpoints>
  void connect(const Endpoints& endpoints) {
    asio::async_connect(socket, endpoints, [self = shared_from_this()](const error_code& error, const auto&) {
      if (error) return self->finish(error.message());
      self->note_peer();
      if (!self->url) return self->finish(std::nullopt);
      self->send();
    });
  }

  /// A connection to one of this machine's own addresses comes from the same address, or uses loopback.
  void note_peer() {
    error_code error;
    const auto remote = socket.remote_endpoint(error);
    if (error) return;
    const auto local = socket.local_endpoint(error);
    own_peer.reset();
    if (remote.address().is_loopback() || remote.address() == local.address())
      own_peer = Peer{remote.address().to_string(), remote.port()};
  }

  void send() {
    const auto content =
        body ? fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body->size()) : "";
    request = fmt::format(
        "{} {} HTTP/{}\r\nHost: {}\r\nUser-Agent: nlaunch\r\nAccept: */*\r\nConnection: close\r\n{}\r\n{}",
        body ? "POST" : "GET", url->target, most > 0 ? "1.0" : "1.1",  // 1.0 is answered in one piece
        url->host_header, content, body.value_or(""));
    answer.clear();
    asio::async_write(socket, asio::buffer(request),
                      [self = shared_from_this()](const error_code& error, auto) {
                        if (error) return self->finish(error.message());
                        self->receive();
                      });
  }

  void receive() {
    socket.async_read_some(
        asio::buffer(block), [self = shared_from_this()](const error_code& error, auto got) {
          self->answer.append(self->block.data(), got);
          const bool first_line = self->answer.find('\n') != std::string::npos;
          const bool all = error || self->answer.size() > std::max(kLongestHead, self->most);
          if (error && !first_line) return self->finish("closed the connection without an answer");
          if ((!first_line || self->most > 0) && !all) return self->receive();
          const bool head = all || self->answer.find("\r\n\r\n") != std::string::npos;
          if (is_redirect(status_of(self->answer)) && !head) return self->receive();
          self->judge();
        });
  }

  void judge() {
    status = status_of(answer);
    if (status >= 200 && status < 300) return finish(std::nullopt);
    if (!is_redirect(status)) {
      return finish(status == 0 ? "did not answer in HTTP" : fmt::format("answered {}", status));
    }
    const auto location = location_of(answer);
    const auto next = redirected(*url, location);
    if (!next || redirects == kMostRedirects) {
      const auto where = location.empty() ? "" : fmt::format(" to {}", text::printable(location));
      return finish(fmt::format("answered {}{}", status, where));
    }
    ++redirects;
    url = *next;
    error_code ignored;
    socket.close(ignored);
    look_up(url->endpoint);
  }

  void finish(CheckResult result) {
    const auto then = std::exchange(done, nullptr);
    abandon();
    if (then) then(std::move(result));
  }

  void abandon() {
    done = nullptr;
    error_code ignored;
    resolver.cancel();
    socket.close(ignored);
    timer.cancel();
  }

  static constexpr std::size_t kLongestHead = 4096;
  tcp::resolver resolver;
  tcp::socket socket;
  asio::steady_timer timer;
  Done done;
  std::optional<HttpUrl> url;         ///< next target of a GET; empty: a connection is enough
  std::optional<std::string> body{};  ///< of a POST
  std::size_t most = 0;               ///< wanted bytes of an answer; 0: its head is enough
  std::optional<Peer> own_peer;
  int redirects = 0;
  int status = 0;
  std::string request;
  std::array<char, 1024> block{};
  std::string answer;
};

NetCheck::~NetCheck() {
  state_->abandon();
}

const std::optional<NetCheck::Peer>& NetCheck::own_peer() const {
  return state_->own_peer;
}

int NetCheck::status() const {
  return state_->status;
}

std::unique_ptr<NetCheck> NetCheck::tcp(Loop& loop, const Endpoint& endpoint, Duration timeout, Done done) {
  auto state = std::make_shared<State>(loop, std::move(done));
  state->start(endpoint, timeout);
  return std::unique_ptr<NetCheck>(new NetCheck(std::move(state)));
}

std::unique_ptr<NetCheck> NetCheck::http(Loop& loop, const HttpUrl& url, Duration timeout, Done done) {
  auto state = std::make_shared<State>(loop, std::move(done));
  state->url = url;
  state->start(url.endpoint, timeout);
  return std::unique_ptr<NetCheck>(new NetCheck(std::move(state)));
}

std::unique_ptr<NetCheck> NetCheck::fetch(Loop& loop, const HttpUrl& url, Duration timeout, std::size_t limit,
                                          Fetched fetched) {
  auto state = std::make_shared<State>(loop, nullptr);
  state->done = [state = state.get(), fetched = std::move(fetched)](const CheckResult& why) {
    if (why) return fetched(std::unexpected(*why));
    const auto end = state->answer.find("\r\n\r\n");
    constexpr std::size_t kBlank = 4;
    fetched(end == std::string::npos ? std::string() : state->answer.substr(end + kBlank));
  };
  state->url = url;
  state->most = limit;
  state->start(url.endpoint, timeout);
  return std::unique_ptr<NetCheck>(new NetCheck(std::move(state)));
}

std::unique_ptr<NetCheck> NetCheck::post(Loop& loop, const HttpUrl& url, std::string json, Duration timeout,
                                         Done done) {
  auto state = std::make_shared<State>(loop, std::move(done));
  state->url = url;
  state->body = std::move(json);
  state->start(url.endpoint, timeout);
  return std::unique_ptr<NetCheck>(new NetCheck(std::move(state)));
}

}  // namespace nlaunch::sys
