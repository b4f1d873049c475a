#include "fleet/leader_connection.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "launch/handshake.h"

namespace nlaunch::fleet {
namespace {

using nlohmann::json;

constexpr Duration kPause = std::chrono::milliseconds(200);

/// The challenge of the one who listens; empty: the line is none.
std::string challenge_of(std::string_view line) {
  const auto message = parse_json(line);
  const bool is_one =
      message.is_object() && message.contains("challenge") && message["challenge"].is_string();
  return is_one ? message["challenge"].get<std::string>() : "";
}

/// The first line that comes, within ten seconds; nothing after it is taken.
std::string read_line(int fd) {
  constexpr int kPatience = 10'000;
  constexpr std::size_t kLongest = 1024;
  std::string line;
  pollfd watched{fd, POLLIN, 0};
  char c = 0;
  while (line.size() < kLongest && ::poll(&watched, 1, kPatience) == 1 && ::read(fd, &c, 1) == 1 && c != '\n')
    line += c;
  return line;
}

}  // namespace

LeaderConnection::LeaderConnection(sys::Loop& loop, Options options,
                                   std::function<json(const sys::Channel&)> hello,
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
}

void LeaderConnection::connect() {
  pause_.reset();
  challenge_.clear();
  const auto left = std::chrono::duration_cast<Duration>(deadline_ - Clock::now());
  connecting_ = std::make_unique<sys::Connecting>(
      loop_, options_.addresses, options_.port, std::max(left, Duration(1)),
      [this](std::unique_ptr<sys::Channel> channel, const std::string& why) {
        if (!channel) {
          return end({{},
                      {},
                      fmt::format("nlaunch cannot be reached at port {} of {}: {}", options_.port,
                                  text::join(options_.addresses, ", "), why)});
        }
        channel_ = std::move(channel);
        channel_->set({.line = [this](std::string_view line) { hear(line); }, .closed = [this] { again(); }});
      });
}

/// Who listened has gone before it knew us: it, or the one after it, may be there soon.
void LeaderConnection::again() {
  if (!done_) return;
  pause_ = loop_.after(kPause, [this] { connect(); });
}

void LeaderConnection::hear(std::string_view line) {
  if (!challenge_.empty()) return hear_answer(line);
  const auto theirs = challenge_of(line);
  challenge_ = launch::new_token();
  auto says = hello_(*channel_);
  says.update({{"node", options_.node}, {"plan", options_.plan}, {"challenge", challenge_}});
  channel_->send(launch::signed_line(launch::End::pending, options_.token, theirs, says));
}

void LeaderConnection::hear_answer(std::string_view line) {
  const auto peer = channel_->peer_address();
  auto answer = launch::verified(launch::End::host, options_.token, challenge_, line);
  if (!answer) {
    const auto message = parse_json(line);
    const bool refused = message.is_object() && message.contains("refused");
    return end({{},
                {},
                refused ? fmt::format("nlaunch at {} refused this node: it has another token", peer)
                        : fmt::format("who answers at {} does not know the token", peer),
                true});
  }
  if (answer->contains("refused"))
    return end({{}, {}, "refused: " + answer->at("refused").get<std::string>(), true});
  end({std::move(channel_), answer->value("welcome", json::object()), "", false});
}

/// At once: the next line may be there already, and is for who takes the channel.
void LeaderConnection::end(End how) {
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
  const json says{{"node", options.node}, {"plan", options.plan}, {"output", true}};
  if (!sys::write_all(fd.get(),
                      launch::signed_line(launch::End::pending, options.token, theirs, says) + "\n"))
    return {};
  return fd;
}

}  // namespace nlaunch::fleet
