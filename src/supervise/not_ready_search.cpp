#include "supervise/not_ready_search.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "sys/addresses.h"
#include "sys/tcp_sockets.h"

namespace nlaunch::supervise {
namespace {

/// Of a server that accepts the connection and does not answer.
constexpr Duration kForAnAnswer = std::chrono::milliseconds(1500);
/// A process with more ports is no server that a person forgot to name.
constexpr std::size_t kMostPorts = 8;

bool is_wildcard(const std::string& address) {
  return address == "0.0.0.0" || address == "::";
}

/// How a URL names an address.
std::string host_in_url(const std::string& address) {
  return address.contains(':') ? fmt::format("[{}]", address) : address;
}

}  // namespace

NotReadySearch::NotReadySearch(sys::Loop& loop, const plan::Ready& ready, const std::vector<pid_t>& tree,
                               NotReadySeen seen, Done done)
    : loop_(loop), seen_(std::move(seen)), done_(std::move(done)) {
  const auto ends = sys::listening_ends(tree);
  for (const auto& end : ends) seen_.listens.push_back(end.str());
  if (const auto url = sys::parse_http_url(ready.http)) {
    const auto& [host, port] = url->endpoint;
    // Where nothing answered, another path would not be answered either.
    if (seen_.last.starts_with("answered ")) ask(host, port, url->target);
    std::set<std::uint16_t> others;
    for (const auto& end : ends) {
      if (std::to_string(end.port) == port || others.size() == kMostPorts) continue;
      if (!others.insert(end.port).second) continue;
      ask(is_wildcard(end.address) ? host : end.address, std::to_string(end.port), "");
    }
  }
  if (open_ == 0) end_ = loop_.after({}, [this] { finish(); });
}

NotReadySearch::~NotReadySearch() {
  loop_.cancel(end_);
}

void NotReadySearch::ask(const std::string& host, const std::string& port, const std::string& without) {
  for (const auto& path : health_paths()) {
    if (path == without) continue;
    auto& question = questions_.emplace_back(std::make_unique<Question>());
    question->url = fmt::format("http://{}:{}{}", host_in_url(host), port, path);
    const auto url = sys::parse_http_url(question->url);
    if (!url) continue;
    ++open_;
    question->check = sys::NetCheck::http(loop_, *url, kForAnAnswer,
                                          [this, one = question.get()](const sys::CheckResult& result) {
                                            one->answered = !result;
                                            // Not from within its own call.
                                            if (--open_ == 0) end_ = loop_.after({}, [this] { finish(); });
                                          });
  }
}

void NotReadySearch::finish() {
  const auto found = std::ranges::find_if(questions_, [](const auto& one) { return one->answered; });
  if (found != questions_.end()) seen_.answers = (*found)->url;
  const auto done = std::exchange(done_, nullptr);
  done(std::move(seen_));
}

bool is_this_machine(const std::string& host) {
  if (host == "localhost" || host == "::1" || host.starts_with("127.") || is_wildcard(host)) return true;
  std::array<char, 256> own{};
  if (::gethostname(own.data(), own.size() - 1) == 0 && host == own.data()) return true;
  const auto addresses = sys::ipv4_addresses();
  return std::ranges::find(addresses, host, &sys::InterfaceAddress::address) != addresses.end();
}

}  // namespace nlaunch::supervise
