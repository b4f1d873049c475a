#include "fleet/leader_connection.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"

namespace nlaunch::fleet {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(200);

/// The challenge in the line; empty if there is none.
std::string challenge_of(std::string_view line) {
  const auto message = decode(line);
  const auto* challenge = message ? std::get_if<message::Challenge>(&*message) : nullptr;
  return challenge == nullptr ? "" : challenge->challenge;
}

/// A message of an agent, signed for the sender of `challenge`.
std::string signed_line(const LeaderConnection::Options& options, const std::string& challenge,
                        const Message& says) {
  return encode(launch::sign(launch::End::agent, options.token, challenge, encode(says)));
}

/// The first line, within ten seconds; nothing after it is read.
std::string read_line(int fd) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  constexpr std::size_t kLongest = 1024;
  std::string line;
  pollfd watched{fd, POLLIN, 0};
  const auto comes = [&] {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return left.count() > 0 && ::poll(&watched, 1, static_cast<int>(left.count())) == 1;
  };
  char c = 0;
  while (line.size() < kLongest && comes() && ::read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

}  // namespace

LeaderConnection::LeaderConnection(sys::Loop& loop, Options options,
                                   std::function<message::Hello(const sys::Channel&)> hello,
                                   std::function<void(End)> done)
    : loop_(loop),
      options_(std::move(options)),
      hello_(std::move(hello)),
      done_(std::move(done)),
      deadline_(Clock::now() + options_.limit) {
  connect();
}

LeaderConnection::~LeaderConnection() {
  if (pause_) loop_.cancel(*pause_);
  stop_waiting();
}

void LeaderConnection::stop_waiting() {
  if (silence_) loop_.cancel(*silence_);
  silence_.reset();
}

void LeaderConnection::connect() {
  pause_.reset();
  challenge_.clear();
  const auto left = std::chrono::duration_cast<Duration>(deadline_ - Clock::now());
  connecting_ = std::make_unique<sys::Connecting>(
      loop_, options_.addresses, options_.port, std::max(left, Duration(1)),
      [this](std::unique_ptr<sys::Channel> channel, const std::string& why) {
        if (!channel) {
          return end({.why = fmt::format("cannot reach nlaunch at port {} of {}: {}", options_.port,
                                         text::join(options_.addresses, ", "), why)});
        }
        channel_ = std::move(channel);
        silence_ = loop_.after(options_.patience, [this] {
          silence_.reset();
          channel_->set({});
          if (Clock::now() < deadline_) return again();
          end({.why = fmt::format("the process that listens on port {} of {} sent nothing: it is not nlaunch",
                                  options_.port, channel_->peer_address())});
        });
        channel_->set(
            {.line =
                 [this](std::string_view line) { challenge_.empty() ? on_challenge(line) : on_answer(line); },
             .closed = [this] { again(); }});
      });
}

/// The listener closed the connection before it knew us: it, or its successor, may be back soon.
void LeaderConnection::again() {
  if (!done_) return;
  stop_waiting();
  pause_ = loop_.after(kPause, [this] { connect(); });
}

void LeaderConnection::on_challenge(std::string_view line) {
  their_challenge_ = challenge_of(line);
  challenge_ = launch::new_token();
  auto hello = hello_(*channel_);
  hello.node = options_.node;
  hello.plan = options_.plan;
  hello.challenge = challenge_;
  channel_->send(signed_line(options_, their_challenge_, hello));
}

void LeaderConnection::on_answer(std::string_view line) {
  const auto peer = channel_->peer_address();
  const auto refuse = [this](std::string why) { end({.why = std::move(why), .refused = true}); };
  const auto message = decode(line);
  if (message && std::holds_alternative<message::Refused>(*message))
    return refuse(fmt::format("nlaunch at {} refused this node: it has a different token", peer));
  const auto* proved = message ? std::get_if<launch::Signed>(&*message) : nullptr;
  if (proved == nullptr || !launch::is_proved(launch::End::leader, options_.token, challenge_, *proved))
    return refuse(fmt::format("the process at {} does not know the token", peer));
  const auto says = decode(proved->says);
  if (const auto* refused = says ? std::get_if<message::Refused>(&*says) : nullptr)
    return refuse("refused: " + refused->why);
  if (const auto* welcome = says ? std::get_if<message::Welcome>(&*says) : nullptr)
    return on_welcome(welcome->assignment);
  refuse(fmt::format("nlaunch at {} sent an invalid message", peer));
}

/// Immediately: the next line may have arrived already, and is for the new owner of the channel.
void LeaderConnection::on_welcome(const launch::Assignment& assignment) {
  const SealedChannel::Key key{launch::End::agent, options_.token, their_challenge_, challenge_};
  channel_->set({});
  end({.channel = std::make_unique<SealedChannel>(loop_, std::move(channel_), key),
       .assignment = assignment});
}

void LeaderConnection::end(End how) {
  stop_waiting();
  if (channel_) channel_->set({});
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(how));
}

sys::UniqueFd connect_output(const std::string& address, const LeaderConnection::Options& options) {
  sys::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(options.port);
  ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) return {};
  const auto theirs = challenge_of(read_line(fd.get()));
  const message::OutputHello hello{options.node, options.plan};
  if (!sys::write_all(fd.get(), signed_line(options, theirs, hello) + "\n")) return {};
  return fd;
}

}  // namespace nlaunch::fleet
