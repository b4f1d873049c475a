#include "preflight/remote_probes.h"
#include "base/json.h"

#include <algorithm>
#include <stdexcept>

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// More than an agent waits for a probe that it has killed.
constexpr Duration kForTheKill = std::chrono::seconds(8);

}  // namespace

RemoteProbes::RemoteProbes(sys::Loop& loop, std::vector<Node> nodes, const std::vector<Rank>& ranks,
                           std::string folder)
    : loop_(loop), nodes_(std::move(nodes)), running_(ranks.size(), true), folder_(std::move(folder)) {
  for (const auto& rank : ranks) node_of_.push_back(rank.node);
}

RemoteProbes::~RemoteProbes() {
  if (patience_) loop_.cancel(*patience_);
}

void RemoteProbes::start(Tell tell_all) {
  tell_ = std::move(tell_all);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const auto first = std::ranges::find(node_of_, node) - node_of_.begin();
    if (nodes_[node].channel != nullptr) {
      nodes_[node].channel->send(json_text(json{{"probes", "start"}, {"first", first}, {"folder", folder_}}));
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
  patience_ = loop_.after(kForTheKill, [this] {
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
  if (news.rank >= running_.size()) throw std::domain_error("no rank of this preflight");
  tell(news);
}

void RemoteProbes::lose(std::uint32_t node, const std::string& why) {
  nodes_[node].channel = nullptr;
  for (std::size_t rank = 0; rank < running_.size(); ++rank) {
    if (node_of_[rank] == node && running_[rank]) tell({rank, probe_news::Lost{why}});
  }
}

json to_message(const ProbeNews& news) {
  json message{{"probe", news.rank}};
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
