#include "sys/channel.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <set>
#include <utility>

#include "base/text.h"
#include "sys/loop_access.h"

namespace nlaunch::sys {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Descriptors are not inherited, and small messages are not delayed. A dead machine sends nothing: the
/// kernel probes, and gives up after about half a minute.
void prepare(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int fd = socket.native_handle();
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const auto set = [fd](int option, int value) {
    ::setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
  };
  set(TCP_KEEPIDLE, 10);
  set(TCP_KEEPINTVL, 5);
  set(TCP_KEEPCNT, 4);
  constexpr int kMilliseconds = 30'000;
  set(TCP_USER_TIMEOUT, kMilliseconds);
}

}  // namespace

struct Channel::State : std::enable_shared_from_this<State> {
  State(tcp::socket connected) : socket(std::move(connected)) { prepare(socket); }

  void read() {
    asio::async_read_until(socket, asio::dynamic_buffer(received, handlers.longest_line), '\n',
                           [self = shared_from_this()](const error_code& error, std::size_t) {
                             if (self->closed) return;
                             if (error) return self->end();
                             self->take();
                           });
  }

  void take() {
    std::size_t begin = 0;
    for (auto end = received.find('\n'); end != std::string::npos && !closed;
         end = received.find('\n', begin)) {
      const auto line = received.substr(begin, end - begin);
      begin = end + 1;
      if (handlers.line) handlers.line(line);
    }
    received.erase(0, begin);
    if (!closed) read();
  }

  void write() {
    writing = std::exchange(pending, {});
    asio::async_write(socket, asio::buffer(writing),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (self->closed) return;
                        self->writing.clear();
                        if (error) return self->end();
                        if (!self->pending.empty()) self->write();
                      });
  }

  void end() {
    if (std::exchange(closed, true)) return;
    error_code ignored;
    socket.close(ignored);
    const auto then = std::exchange(handlers, {}).closed;
    if (then) then();
  }

  void abandon() {
    handlers = {};
    end();
  }

  tcp::socket socket;
  Handlers handlers;
  std::string received;
  std::string pending;
  std::string writing;
  bool closed = false;
  bool reading = false;
};

Channel::~Channel() {
  // The last message is still sent if the system accepts it immediately.
  if (!state_->closed && state_->writing.empty() && !state_->pending.empty()) {
    error_code ignored;
    asio::write(state_->socket, asio::buffer(state_->pending), ignored);
  }
  state_->abandon();
}

void Channel::set(Handlers handlers) {
  state_->handlers = std::move(handlers);
  if (!std::exchange(state_->reading, true)) state_->read();
}

void Channel::send(std::string_view text) {
  if (state_->closed) return;
  state_->pending += text;
  state_->pending += '\n';
  if (state_->writing.empty()) state_->write();
}

std::size_t Channel::queued() const {
  return state_->pending.size() + state_->writing.size();
}

bool Channel::waiting() const {
  if (state_->closed) return true;
  pollfd watched{state_->socket.native_handle(), POLLIN, 0};
  return ::poll(&watched, 1, 0) != 0;
}

std::string Channel::own_address() const {
  error_code error;
  const auto end = state_->socket.local_endpoint(error);
  return error ? "" : end.address().to_string();
}

std::string Channel::peer_address() const {
  error_code error;
  const auto end = state_->socket.remote_endpoint(error);
  return error ? "" : end.address().to_string();
}

struct Listener::State : std::enable_shared_from_this<State> {
  State(asio::io_context& context, Accepted then)
      : acceptor(context), pause(context), accepted(std::move(then)) {}

  void accept() {
    acceptor.async_accept([self = shared_from_this()](const error_code& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !self->accepted) return;
      if (error) return self->accept_later();
      self->accepted(
          std::unique_ptr<Channel>(new Channel(std::make_shared<Channel::State>(std::move(socket)))));
      self->accept();
    });
  }

  /// For example no descriptor is left: an immediate retry would fail as well.
  void accept_later() {
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->accepted) self->accept();
    });
  }

  tcp::acceptor acceptor;
  asio::steady_timer pause;
  Accepted accepted;
};

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, Accepted accepted, const ListenAt& at) {
  auto state = std::make_shared<State>(LoopAccess::context(loop), std::move(accepted));
  error_code error;
  auto address = asio::ip::address_v4::any();
  if (!at.address.empty()) address = asio::ip::make_address_v4(at.address, error);
  if (!error) state->acceptor.open(tcp::v4(), error);
  if (!error) ::fcntl(state->acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  // Connections of the earlier listener may still be closing.
  if (!error) state->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) state->acceptor.bind(tcp::endpoint(address, at.port), error);
  if (!error) state->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return failure("sys.listen", "cannot listen on {}{}: {}",
                   at.port == 0 ? "a TCP port" : fmt::format("TCP port {}", at.port),
                   at.address.empty() ? "" : " of " + at.address, error.message());
  }
  state->accept();
  return std::unique_ptr<Listener>(new Listener(std::move(state)));
}

Listener::~Listener() {
  state_->accepted = nullptr;
  state_->pause.cancel();
  error_code ignored;
  state_->acceptor.close(ignored);
}

std::uint16_t Listener::port() const {
  return state_->acceptor.local_endpoint().port();
}

namespace {

/// A name may resolve only later, when its machine is up.
asio::ip::address find_address(asio::io_context& context, const std::string& address, error_code& error) {
  const auto parsed = asio::ip::make_address(address, error);
  if (!error) return parsed;
  const auto found = tcp::resolver(context).resolve(tcp::v4(), address, "", error);
  return error ? asio::ip::address() : found.begin()->endpoint().address();
}

}  // namespace

struct Connecting::State : std::enable_shared_from_this<State> {
  State(Loop& loop, std::vector<std::string> all, std::uint16_t to, Done then)
      : context(LoopAccess::context(loop)),
        timer(context),
        limit_timer(context),
        addresses(std::move(all)),
        port(to),
        done(std::move(then)) {}

  void begin(Duration limit) {
    limit_timer.expires_after(limit);
    limit_timer.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->finish(nullptr);
    });
    next();
  }

  /// One address after the other, each with a short timeout: one that a firewall drops must not cost minutes.
  void next() {
    if (!done) return;
    constexpr Duration kEach = std::chrono::seconds(3);
    static constexpr Duration kRound = std::chrono::milliseconds(200);
    const auto address = addresses.empty() ? "" : addresses[tries++ % addresses.size()];
    error_code error;
    const auto parsed = find_address(context, address, error);
    if (error) return again(address + ": " + error.message(), kRound);
    auto socket = std::make_shared<tcp::socket>(context);
    timer.expires_after(kEach);
    timer.async_wait([socket](const error_code& stopped) {
      error_code ignored;
      if (!stopped) socket->close(ignored);
    });
    socket->async_connect(
        tcp::endpoint(parsed, port), [self = shared_from_this(), socket, address](const error_code& failed) {
          if (!self->done) return;
          self->timer.cancel();
          if (!failed)
            return self->finish(
                std::unique_ptr<Channel>(new Channel(std::make_shared<Channel::State>(std::move(*socket)))));
          const auto why = failed == asio::error::operation_aborted || failed == asio::error::bad_descriptor
                               ? "no answer"
                               : failed.message();
          self->again(address + ": " + why, kRound);
        });
  }

  void again(const std::string& why, Duration pause) {
    whys.insert(why);
    timer.expires_after(tries % std::max<std::size_t>(1, addresses.size()) == 0 ? pause : Duration(0));
    timer.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->next();
    });
  }

  void finish(std::unique_ptr<Channel> channel) {
    const auto then = std::exchange(done, nullptr);
    timer.cancel();
    limit_timer.cancel();
    const std::vector<std::string> all(whys.begin(), whys.end());
    if (then) then(std::move(channel), text::join(all, "; "));
  }

  asio::io_context& context;
  asio::steady_timer timer;
  asio::steady_timer limit_timer;
  std::vector<std::string> addresses;
  std::uint16_t port;
  Done done;
  std::size_t tries = 0;
  std::set<std::string> whys;
};

Connecting::Connecting(Loop& loop, std::vector<std::string> addresses, std::uint16_t port, Duration limit,
                       Done done)
    : state_(std::make_shared<State>(loop, std::move(addresses), port, std::move(done))) {
  state_->begin(limit);
}

Connecting::~Connecting() {
  state_->done = nullptr;
  state_->timer.cancel();
  state_->limit_timer.cancel();
}

}  // namespace nlaunch::sys
