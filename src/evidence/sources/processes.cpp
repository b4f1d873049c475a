#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json.h"
#include "base/registry.h"
#include "base/text.h"
#include "evidence/source.h"
#include "launch/audit/observation.h"
#include "sys/proc.h"
#include "sys/tcp_sockets.h"

namespace nlaunch::evidence {
namespace {

// /proc of every process in the tree.

using nlohmann::ordered_json;

ordered_json process_json(const ProcessState& process) {
  ordered_json threads = ordered_json::array();
  for (const auto& thread : process.threads) {
    threads.push_back({{"tid", thread.tid},
                       {"name", thread.name},
                       {"state", std::string(1, thread.state)},
                       {"wait_channel", thread.wait_channel}});
  }
  ordered_json object{{"pid", process.pid},
                      {"parent", process.parent},
                      {"name", process.name},
                      {"state", std::string(1, process.state)},
                      {"cpu", process.cpu},
                      {"main_cpu", process.main_cpu},
                      {"command", process.command},
                      {"title", process.title},
                      {"program", process.program},
                      {"python", process.python},
                      {"cuda", process.cuda},
                      {"system_call", process.system_call},
                      {"kernel_stack", process.kernel_stack},
                      {"files", process.files},
                      {"threads", std::move(threads)}};
  if (process.rank) object["rank"] = *process.rank;
  return object;
}

Found collect_processes(const CollectContext& context) {
  const auto& subject = *context.subject;
  ordered_json object{{"name", subject.name},         {"host", context.spec.host},
                      {"pid", subject.pid},           {"ended", subject.ended},
                      {"ended_at", subject.ended_at}, {"killed_parts", subject.killed_parts},
                      {"gpus", subject.gpus},         {"processes", ordered_json::array()}};
  if (subject.rank) object["rank"] = *subject.rank;
  for (const auto& process : context.tree) object["processes"].push_back(process_json(process));
  Found found;
  constexpr auto kFile = "processes.json";
  if (context.write(kFile, json_text(object, 1) + "\n")) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> processes_source{{
    .order = 10,
    .name = "processes",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(5),
    .lane = 0,
    .collect = collect_processes,
}};

// The TCP connections of every process in the tree: the peers, and the bytes that are unsent or unread.

/// As in the kernel's include/net/tcp_states.h.
std::string_view state_name(unsigned state) {
  constexpr std::array<std::string_view, 12> kNames{"?",          "ESTABLISHED", "SYN_SENT",  "SYN_RECV",
                                                    "FIN_WAIT1",  "FIN_WAIT2",   "TIME_WAIT", "CLOSE",
                                                    "CLOSE_WAIT", "LAST_ACK",    "LISTEN",    "CLOSING"};
  return state < kNames.size() ? kNames.at(state) : "?";
}

Found collect_sockets(const CollectContext& context) {
  auto all = ordered_json::array();
  for (const auto& process : context.tree) {
    std::map<std::string, sys::TcpSocket> known;
    for (auto& socket : sys::tcp_sockets(process.pid)) known.emplace(socket.inode, std::move(socket));
    for (const auto& [fd, inode] : sys::open_sockets(process.pid)) {
      const auto found = known.find(inode);
      if (found == known.end()) continue;
      const auto& socket = found->second;
      all.push_back({{"pid", process.pid},
                     {"fd", fd},
                     {"local", socket.local.str()},
                     {"peer", socket.peer.str()},
                     {"state", state_name(socket.state)},
                     {"unsent", socket.unsent},
                     {"unread", socket.unread}});
    }
  }
  Found found;
  constexpr auto kFile = "sockets.json";
  if (!context.tree.empty() && context.write(kFile, json_text(all, 1) + "\n")) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> sockets_source{{
    .order = 40,
    .name = "sockets",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(5),
    .lane = 1,
    .collect = collect_sockets,
}};

// Which copies of libnccl are mapped, in every process of the tree.

Found collect_libraries(const CollectContext& context) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& process : context.tree) {
    for (const auto& file : sys::mapped_files(process.pid).value_or(std::vector<sys::MappedFile>{})) {
      if (!launch::is_nccl(file)) continue;
      all.push_back({{"pid", process.pid}, {"path", file.path}, {"deleted", file.deleted}});
    }
  }
  Found found;
  constexpr auto kFile = "libraries.json";
  if (!context.tree.empty() && context.write(kFile, json_text(all, 1) + "\n")) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> libraries_source{{
    .order = 50,
    .name = "libraries",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(5),
    .lane = 1,
    .collect = collect_libraries,
}};

// The environment with which the process was started, secrets masked by name and by value.

Found collect_environment(const CollectContext& context) {
  Found found;
  if (context.tree.empty()) return found;
  nlohmann::json object = nlohmann::json::object();
  for (const auto& entry : sys::initial_environment(context.subject->pid)) {
    const auto name = entry.substr(0, entry.find('='));
    const auto& secrets = context.spec.secrets;
    const bool secret = looks_like_secret(name) || std::ranges::find(secrets, name) != secrets.end();
    object[name] = secret ? std::string(kMasked) : entry.substr(std::min(entry.size(), name.size() + 1));
  }
  constexpr auto kFile = "environment.json";
  if (object.empty()) {
    found.missing.push_back({"environment", "another user's process, or one that has exited", ""});
  } else if (context.write(kFile, json_text(object, 1) + "\n")) {
    found.got.emplace_back(kFile);
  }
  return found;
}

const Registered<Source> environment_source{{
    .order = 80,
    .name = "environment",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(5),
    .lane = 2,
    .collect = collect_environment,
}};

}  // namespace
}  // namespace nlaunch::evidence
