#include "preflight/ask/remote_probes.h"

#include <algorithm>

namespace nlaunch::preflight {
namespace {

/// Longer than an agent waits for a probe that it has killed.
constexpr Duration kForRemoteKill = std::chrono::seconds(8);

}  // namespace

RemoteProbes::RemoteProbes(sys::Loop& loop, const std::vector<std::string>& lost, Send send,
                           const Options& options)
    : loop_(loop), send_(std::move(send)), running_(options.ranks.size()), run_(options.run) {
  for (const auto& why : lost) nodes_.push_back({.lost = why});
  std::vector<std::size_t> first(nodes_.size(), options.ranks.size());
  for (std::size_t rank = 0; rank < options.ranks.size(); ++rank) {
    const auto node = options.ranks[rank].node;
    node_of_.push_back(node);
    first.at(node) = std::min(first[node], rank);
  }
  for (const auto rank : options.wanted) {
    const auto node = node_of_.at(rank);
    running_[rank] = true;
    auto& start = nodes_[node].start;
    if (!start) start = {run_, first[node], {}, options.folder};
    start->wanted.push_back(rank);
  }
}

RemoteProbes::~RemoteProbes() {
  if (patience_) loop_.cancel(*patience_);
}

void RemoteProbes::start(Tell tell_all) {
  tell_ = std::move(tell_all);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const auto& [lost, start] = nodes_[node];
    if (!start) continue;
    if (lost.empty()) {
      send_(node, *start);
    } else {
      lose(node, std::string(lost));
    }
  }
}

void RemoteProbes::say(std::size_t rank, const std::string& line) {
  const auto node = node_of_.at(rank);
  if (nodes_[node].lost.empty()) send_(node, probe_command::Say{rank, line});
}

void RemoteProbes::kill() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].lost.empty()) send_(node, probe_command::Kill{});
  }
  patience_ = loop_.after(kForRemoteKill, [this] {
    patience_.reset();
    for (std::size_t rank = 0; rank < running_.size(); ++rank) {
      if (running_[rank]) tell({rank, probe_news::Lost{"its agent does not answer"}});
    }
  });
}

void RemoteProbes::tell(const ProbeNews& news) {
  if (!std::holds_alternative<probe_news::Said>(news.what)) running_.at(news.rank) = false;
  tell_(news);
}

void RemoteProbes::on_news(unsigned run, const ProbeNews& news) {
  if (run == run_ && news.rank < running_.size()) tell(news);
}

void RemoteProbes::lose(std::uint32_t node, const std::string& why) {
  nodes_[node].lost = why;
  for (std::size_t rank = 0; rank < running_.size(); ++rank) {
    if (node_of_[rank] == node && running_[rank]) tell({rank, probe_news::Lost{why}});
  }
}

}  // namespace nlaunch::preflight
