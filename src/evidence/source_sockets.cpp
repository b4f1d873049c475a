#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json.h"
#include "base/text.h"
#include "evidence/source.h"

// The TCP connections of every process in the tree: with whom, and what lies unsent or unread.
namespace nlaunch::evidence {
namespace {

using nlohmann::ordered_json;

template <class Number>
Number hex(std::string_view text) {
  constexpr int kBase = 16;
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, kBase);
  return value;
}

/// "0100007F:1F90" of /proc/net/tcp, or the longer one of tcp6: words of the host's byte order.
std::string address(std::string_view text) {
  constexpr std::size_t kWord = 8;
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon % kWord != 0) return std::string(text);
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < colon / kWord && i < words.size(); ++i)
    words.at(i) = hex<std::uint32_t>(text.substr(i * kWord, kWord));
  std::array<char, INET6_ADDRSTRLEN> out{};
  const bool six = colon > kWord;
  ::inet_ntop(six ? AF_INET6 : AF_INET, words.data(), out.data(), out.size());
  return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), out.data(),
                     hex<std::uint16_t>(text.substr(colon + 1)));
}

/// As in the kernel's include/net/tcp_states.h.
std::string_view state_name(unsigned state) {
  constexpr std::array<std::string_view, 12> kNames{"?",          "ESTABLISHED", "SYN_SENT",  "SYN_RECV",
                                                    "FIN_WAIT1",  "FIN_WAIT2",   "TIME_WAIT", "CLOSE",
                                                    "CLOSE_WAIT", "LAST_ACK",    "LISTEN",    "CLOSING"};
  return state < kNames.size() ? kNames.at(state) : "?";
}

/// inode → what it is, in the network namespace of the process.
std::map<std::string, ordered_json> tcp_sockets(pid_t pid) {
  std::map<std::string, ordered_json> sockets;
  for (const char* name : {"net/tcp", "net/tcp6"}) {
    const auto table = sys::read_proc_file(pid, name);
    if (!table) continue;
    for (const auto& line : text::split(*table, '\n')) {
      std::vector<std::string> fields;
      for (auto& field : text::split(line, ' ')) {
        if (!field.empty()) fields.push_back(std::move(field));
      }
      constexpr std::size_t kInode = 9;
      if (fields.size() <= kInode || fields[0] == "sl") continue;
      const auto colon = fields[4].find(':');
      sockets[fields[kInode]] = {{"local", address(fields[1])},
                                 {"peer", address(fields[2])},
                                 {"state", state_name(hex<unsigned>(fields[3]))},
                                 {"unsent", hex<std::uint64_t>(fields[4].substr(0, colon))},
                                 {"unread", hex<std::uint64_t>(fields[4].substr(colon + 1))}};
    }
  }
  return sockets;
}

}  // namespace

Found collect_sockets(const CollectContext& context) {
  auto all = ordered_json::array();
  for (const auto& process : context.tree) {
    const auto known = tcp_sockets(process.pid);
    for (const auto& [fd, target] : sys::open_files(process.pid)) {
      constexpr std::string_view kSocket = "socket:[";
      if (!target.starts_with(kSocket)) continue;
      const auto found = known.find(target.substr(kSocket.size(), target.size() - kSocket.size() - 1));
      if (found == known.end()) continue;
      ordered_json object{{"pid", process.pid}, {"fd", fd}};
      object.update(found->second);
      all.push_back(std::move(object));
    }
  }
  Found found;
  constexpr auto kFile = "sockets.json";
  if (!context.tree.empty() && context.write(kFile, json_text(all, 1) + "\n")) found.got.emplace_back(kFile);
  return found;
}

}  // namespace nlaunch::evidence
