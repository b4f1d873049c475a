#include "preflight/ask/remote_probes.h"
#include "base/json.h"

#include <algorithm>
#include <stdexcept>

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// More than an agent waits for a probe that it has killed.
constexpr Duration kForRemoteKill = std::chrono::seconds(8);

}  // namespace

RemoteProbes::RemoteProbes(sys::Loop& loop, std::vector<Node> nodes, const Options& options)
    : loop_(loop),
      nodes_(std::move(nodes)),
      running_(options.ranks.size()),
      starts_(nodes_.size()),
      run_(options.run) {
  std::vector<std::size_t> first(nodes_.size(), options.ranks.size());
  for (std::size_t rank = 0; rank < options.ranks.size(); ++rank) {
    const auto node = options.ranks[rank].node;
    node_of_.push_back(node);
    first.at(node) = std::min(first[node], rank);
  }
  for (const auto rank : options.wanted) {
    const auto node = node_of_.at(rank);
    running_[rank] = true;
    auto& start = starts_[node];
    if (start.is_null()) {
      start = {{"probes", "start"}, {"run", run_}, {"first", first[node]}, {"folder", options.folder}};
    }
    start["wanted"].push_back(rank);
  }
}

RemoteProbes::~RemoteProbes() {
  if (patience_) loop_.cancel(*patience_);
}

void RemoteProbes::start(Tell tell_all) {
  tell_ = std::move(tell_all);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (starts_[node].is_null()) continue;
    if (nodes_[node].channel != nullptr) {
      nodes_[node].channel->send(json_text(starts_[node]));
    } else {
      lose(node, nodes_[node].lost);
    }
  }
}

void RemoteProbes::say(std::size_t rank, const std::string& line) {
  auto* channel = nodes_[node_of_.at(rank)].channel;
  if (channel != nullptr) channel->send(json_text(json{{"probes", "say"}, {"rank", rank}, {"line", line}}));
}

void RemoteProbes::kill() {
  for (const auto& node : nodes_) {
    if (node.channel != nullptr) node.channel->send(json_text(json{{"probes", "kill"}}));
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

void RemoteProbes::hear(const json& message) {
  const auto news = news_from(message);
  if (message.value("run", 0U) != run_) return;
  if (news.rank >= running_.size()) throw std::domain_error("no rank of this preflight");
  tell(news);
}

void RemoteProbes::lose(std::uint32_t node, const std::string& why) {
  nodes_[node].channel = nullptr;
  for (std::size_t rank = 0; rank < running_.size(); ++rank) {
    if (node_of_[rank] == node && running_[rank]) tell({rank, probe_news::Lost{why}});
  }
}

json to_message(const ProbeNews& news, unsigned run) {
  json message{{"probe", news.rank}, {"run", run}};
  if (const auto* said = std::get_if<probe_news::Said>(&news.what)) message["said"] = said->line;
  if (const auto* ended = std::get_if<probe_news::Ended>(&news.what)) message["ended"] = ended->how;
  if (const auto* stuck = std::get_if<probe_news::Stuck>(&news.what)) message["stuck"] = stuck->state;
  if (const auto* lost = std::get_if<probe_news::Lost>(&news.what)) message["lost"] = lost->why;
  return message;
}

ProbeNews news_from(const json& message) {
  const std::size_t rank = message.at("probe");
  if (message.contains("said")) return {rank, probe_news::Said{message["said"]}};
  if (message.contains("ended")) return {rank, probe_news::Ended{message["ended"]}};
  if (message.contains("lost")) return {rank, probe_news::Lost{message["lost"]}};
  return {rank, probe_news::Stuck{message.at("stuck")}};
}

}  // namespace nlaunch::preflight
