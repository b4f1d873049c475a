#include "report/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"

namespace nlaunch::report {

using preflight::Row;
using preflight::Status;

namespace {

/// A name and the number at its end, if it has one that can be counted.
struct NumberedName {
  std::string prefix;
  std::string digits;
  std::uint64_t number = 0;
};

NumberedName split_name(const std::string& name) {
  constexpr std::size_t kLongest = 15;  // digits that fit into 64 bits
  const auto end = name.find_last_not_of("0123456789");
  const auto start = end == std::string::npos ? 0 : end + 1;
  NumberedName host{name.substr(0, start), name.substr(start)};
  if (host.digits.size() > kLongest) return {name, ""};
  std::from_chars(host.digits.data(), host.digits.data() + host.digits.size(), host.number);
  return host;
}

/// "0001-0512,0514"
std::string number_ranges(const std::vector<NumberedName>& hosts) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from < hosts.size();) {
    auto to = from;
    while (to + 1 < hosts.size() && hosts[to + 1].number == hosts[to].number + 1) ++to;
    out.push_back(from == to ? hosts[from].digits
                             : fmt::format("{}-{}", hosts[from].digits, hosts[to].digits));
    from = to + 1;
  }
  return text::join(out, ",");
}

}  // namespace

std::vector<Row> fold(const std::vector<Row>& rows) {
  std::vector<Row> out;
  std::map<std::tuple<std::string, Status, std::string, std::string, std::string>, std::size_t> places;
  for (const auto& row : rows) {
    const auto [place, is_new] =
        places.try_emplace({row.check, row.status, row.subject, row.value, row.expected}, out.size());
    if (is_new || row.hosts.empty()) {
      out.push_back(row);
    } else {
      auto& hosts = out[place->second].hosts;
      hosts.insert(hosts.end(), row.hosts.begin(), row.hosts.end());
    }
  }
  return out;
}

std::size_t count_hosts(const std::vector<Row>& rows) {
  std::set<std::string> hosts;
  for (const auto& row : rows) hosts.insert(row.hosts.begin(), row.hosts.end());
  return hosts.size();
}

std::string host_list(std::vector<std::string> hosts) {
  std::map<std::pair<std::string, std::size_t>, std::vector<NumberedName>>
      groups;  // by prefix and number of digits
  std::ranges::sort(hosts);
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  for (const auto& name : hosts) {
    auto host = split_name(name);
    auto& group = groups[{host.prefix, host.digits.size()}];
    group.push_back(std::move(host));
  }
  std::vector<std::string> out;
  for (const auto& [key, group] : groups) {
    const auto& prefix = key.first;
    out.push_back(group.size() == 1 ? prefix + group.front().digits
                                    : fmt::format("{}[{}]", prefix, number_ranges(group)));
  }
  return text::join(out, ", ");
}

}  // namespace nlaunch::report
