#pragma once
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sys/files.h"
#include "sys/loop.h"
#include "sys/net_check.h"

/// A small HTTP server for one page, on a Loop.
namespace nlaunch::sys {

/// "PORT", which is on 127.0.0.1, "ADDRESS:PORT" or "[::1]:PORT". The address is numeric: a name would have
/// to be looked up. Port 0 is any free one. The error is a sentence for the user.
std::expected<Endpoint, std::string> parse_listen(std::string_view text);

/// A socket that listens there, close-on-exec. If the port is in use it waits for it, for half a second at
/// most: the process that had it may be about to exit. The error is the reason: "Address already in use".
std::expected<UniqueFd, std::string> listen_on(const Endpoint& endpoint);

/// Where a socket listens, with the port that it got.
Endpoint own_endpoint(int listening);

/// "127.0.0.1:9400", "[::1]:9400".
std::string text_of(const Endpoint& endpoint);

/// Whether the Host of a request ("localhost:9400", "127.0.0.1", "[::1]:9400") names this host alone.
bool is_loopback_host(std::string_view host);

struct HttpPage {
  std::string type;  ///< its Content-Type
  std::string body;
};

/// Answers a GET of one path with a page, and everything else with an error. One answer a connection. A
/// request has at most 8 KiB and no body, it must arrive within 5 s, and its answer must be taken within 10
/// s. Of more than 32 connections at a time, the one that has waited longest for its request is closed. On a
/// loopback address, a request whose Host is not a loopback name is refused: a page in a browser could
/// otherwise read the answer under a name that it made point here (DNS rebinding).
class HttpServer {
 public:
  /// `accept`: the value of the request's Accept header; empty: it has none.
  using Handler = std::function<HttpPage(std::string_view accept)>;
  HttpServer(Loop& loop, UniqueFd listening, std::string path, Handler handler);
  /// Stops listening. Answers that are being sent are abandoned.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace nlaunch::sys
