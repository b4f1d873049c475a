#include "sys/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "sys/loop_access.h"

namespace nlaunch::sys {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kLargestRequest = 8192;
constexpr std::uint8_t kMostConnections = 32;
constexpr std::chrono::seconds kForTheRequest{5};
constexpr std::chrono::seconds kForTheAnswer{10};
/// After which it tries again to accept: the process may have no descriptor left.
constexpr std::chrono::seconds kAfterTrouble{1};

/// A socket address of either family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  sockaddr_in& v4() { return *reinterpret_cast<sockaddr_in*>(&storage); }
  sockaddr_in6& v6() { return *reinterpret_cast<sockaddr_in6*>(&storage); }
};

std::optional<SocketAddress> socket_address(const Endpoint& endpoint) {
  const auto port = htons(text::whole_number<std::uint16_t>(endpoint.port).value_or(0));
  SocketAddress out;
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &out.v4().sin_addr) == 1) {
    out.v4().sin_family = AF_INET;
    out.v4().sin_port = port;
    out.size = sizeof(sockaddr_in);
    return out;
  }
  if (::inet_pton(AF_INET6, endpoint.host.c_str(), &out.v6().sin6_addr) != 1) return std::nullopt;
  out.v6().sin6_family = AF_INET6;
  out.v6().sin6_port = port;
  out.size = sizeof(sockaddr_in6);
  return out;
}

}  // namespace

std::expected<Endpoint, std::string> parse_listen(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto port = text.substr(colon == std::string_view::npos ? 0 : colon + 1);
  std::string host = "127.0.0.1";
  if (colon != std::string_view::npos) host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Endpoint endpoint{std::move(host), std::string(port)};
  if (!text::whole_number<std::uint16_t>(port) || !socket_address(endpoint))
    return std::unexpected(
        fmt::format("'{}' is not a port from 0 to 65535, or ADDRESS:PORT with a numeric address", text));
  return endpoint;
}

std::expected<UniqueFd, std::string> listen_on(const Endpoint& endpoint) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kWait{500};
  constexpr std::chrono::milliseconds kGlance{20};
  auto address = socket_address(endpoint);
  if (!address) return std::unexpected(fmt::format("'{}' is not a numeric address", endpoint.host));
  UniqueFd fd(::socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
    return std::unexpected(std::strerror(errno));
  const auto until = Clock::now() + kWait;
  while (::bind(fd.get(), address->get(), address->size) != 0) {
    if (errno != EADDRINUSE || Clock::now() >= until) return std::unexpected(std::strerror(errno));
    std::this_thread::sleep_for(kGlance);
  }
  if (::listen(fd.get(), int{kMostConnections}) != 0) return std::unexpected(std::strerror(errno));
  return fd;
}

Endpoint own_endpoint(int listening) {
  SocketAddress address;
  std::string text(INET6_ADDRSTRLEN, '\0');
  if (::getsockname(listening, address.get(), &address.size) != 0) return {};
  const bool is_v6 = address.storage.ss_family == AF_INET6;
  const void* bytes = is_v6 ? static_cast<const void*>(&address.v6().sin6_addr) : &address.v4().sin_addr;
  if (::inet_ntop(address.storage.ss_family, bytes, text.data(), INET6_ADDRSTRLEN) == nullptr) return {};
  const auto port = ntohs(is_v6 ? address.v6().sin6_port : address.v4().sin_port);
  return {text.c_str(), std::to_string(port)};
}

std::string text_of(const Endpoint& endpoint) {
  const auto& [host, port] = endpoint;
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool is_loopback_host(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const auto end = std::min(bracketed ? host.find(']') : host.find(':'), host.size());
  const auto name = host.substr(bracketed ? 1 : 0, end - (bracketed ? 1 : 0));
  const auto port = host.substr(std::min(bracketed ? end + 1 : end, host.size()));
  if (!port.empty() && (!port.starts_with(':') || !text::whole_number<std::uint16_t>(port.substr(1))))
    return false;
  if (bracketed) return name == "::1" && end < host.size();
  if (text::lower(name) == "localhost") return true;
  constexpr std::uint32_t kNetwork = 127;
  in_addr address{};
  return ::inet_pton(AF_INET, std::string(name).c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24U == kNetwork;
}

struct HttpServer::State : std::enable_shared_from_this<State> {
  /// A connection, from its request to the end of its answer.
  struct Connection : std::enable_shared_from_this<Connection> {
    Connection(tcp::socket socket, std::shared_ptr<State> of)
        : stream(std::move(socket)), buffer(kLargestRequest), server(std::move(of)) {}

    void read() {
      parser.header_limit(kLargestRequest);
      stream.expires_after(kForTheRequest);
      http::async_read(
          stream, buffer, parser, [self = shared_from_this()](const error_code& error, std::size_t) {
            // A server that is gone answers nothing; neither does one whose peer is.
            if (self->server->closed || error == beast::error::timeout ||
                error == http::error::end_of_stream || error == boost::asio::error::operation_aborted)
              return self->close();
            self->reading = false;
            self->answer(!error);
          });
    }

    void answer(bool understood) {
      const auto& request = parser.get();
      const auto asked = std::string_view(request.target());
      auto result = http::status::ok;
      if (!understood)
        result = http::status::bad_request;
      else if (server->on_loopback && !may_ask(request))
        result = http::status::forbidden;
      else if (request.method() != http::verb::get)
        result = http::status::method_not_allowed;
      else if (asked.substr(0, asked.find('?')) != server->path)
        result = http::status::not_found;
      response.result(result);
      if (result == http::status::ok) {
        auto page = server->handler(std::string_view(request[http::field::accept]));
        response.set(http::field::content_type, page.type);
        response.body() = std::move(page.body);
      } else {
        response.set(http::field::content_type, "text/plain; charset=utf-8");
        response.body() = fmt::format("{}\n", std::string_view(http::obsolete_reason(result)));
      }
      if (result == http::status::method_not_allowed) response.set(http::field::allow, "GET");
      response.keep_alive(false);
      response.prepare_payload();
      stream.expires_after(kForTheAnswer);
      http::async_write(stream, response, [self = shared_from_this()](const error_code&, std::size_t) {
        error_code ignored;
        self->stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
        self->close();
      });
    }

    /// HTTP/1.0 has no Host, and no browser speaks it.
    static bool may_ask(const http::request<http::empty_body>& request) {
      const auto host = request.find(http::field::host);
      return host == request.end() || is_loopback_host(std::string_view(host->value()));
    }

    void close() {
      stream.close();
      std::erase(server->connections, shared_from_this());
    }

    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    http::request_parser<http::empty_body> parser;
    http::response<http::string_body> response;
    bool reading = true;  ///< its request has not arrived
    std::shared_ptr<State> server;
  };

  State(Loop& loop, const UniqueFd& listening, std::string page, Handler handle)
      : acceptor(LoopAccess::context(loop)),
        retry(LoopAccess::context(loop)),
        path(std::move(page)),
        handler(std::move(handle)) {
    const int own = ::fcntl(listening.get(), F_DUPFD_CLOEXEC, 0);  // asio closes what it is given
    error_code ignored;
    const auto host = own_endpoint(own).host;
    on_loopback = host == "::1" || host.starts_with("127.");
    acceptor.assign(host.contains(':') ? tcp::v6() : tcp::v4(), own, ignored);
  }

  void accept() {
    acceptor.async_accept([self = shared_from_this()](const error_code& error, tcp::socket socket) {
      if (self->closed) return;
      if (error) return self->accept_later();
      if (self->make_room()) {
        const auto made = std::make_shared<Connection>(std::move(socket), self);
        self->connections.push_back(made);
        made->read();
      }
      self->accept();
    });
  }

  /// For one more connection. False: all of them are being answered.
  bool make_room() {
    if (connections.size() < kMostConnections) return true;
    const auto oldest =
        std::ranges::find_if(connections, [](const auto& connection) { return connection->reading; });
    if (oldest == connections.end()) return false;
    (*oldest)->close();  // which takes it out of the list
    return true;
  }

  void accept_later() {
    retry.expires_after(kAfterTrouble);
    retry.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && !self->closed) self->accept();
    });
  }

  void close() {
    closed = true;
    error_code ignored;
    acceptor.close(ignored);
    retry.cancel();
    for (const auto& connection : std::exchange(connections, {})) connection->stream.close();
  }

  tcp::acceptor acceptor;
  boost::asio::steady_timer retry;
  std::string path;
  Handler handler;
  std::vector<std::shared_ptr<Connection>> connections;  ///< the oldest first
  bool on_loopback = false;
  bool closed = false;
};

HttpServer::HttpServer(Loop& loop, UniqueFd listening, std::string path, Handler handler)
    : state_(std::make_shared<State>(loop, listening, std::move(path), std::move(handler))) {
  state_->accept();
}

HttpServer::~HttpServer() {
  state_->close();
}

}  // namespace nlaunch::sys
