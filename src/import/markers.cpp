#include "import/markers.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "import/texts.h"
#include "shell/allocation.h"

namespace nlaunch::import {
namespace {

class References {
 public:
  References(const shell::Allocation& allocation, const std::string& script, Imported& out,
             std::vector<std::string>& unknown)
      : allocation_(allocation), script_(script), out_(out), unknown_(unknown) {}

  void run() {
    for (std::uint32_t node = 0; node < allocation_.nodes; ++node) {
      names_.push_back(shell::Allocation::host(node));
      addresses_.push_back(shell::Allocation::address(node));
    }
    own_ports();
    each_text(out_, [this](std::string& text, ImportedRole* role) { change(text, role); });
  }

 private:
  /// The first role that has a free port in its command owns it.
  void own_ports() {
    for (auto number = shell::Allocation::kFirstPort; number <= shell::Allocation::kPortOfTask; ++number) {
      const auto port = std::to_string(number);
      const RE2 names(fmt::format("(?:^|[^0-9]){}(?:[^0-9]|$)", port));
      const auto is_in = [&](const ImportedEnvironment& environment) {
        return std::ranges::any_of(environment.set,
                                   [&](const auto& entry) { return RE2::PartialMatch(entry.value, names); });
      };
      auto owner = std::ranges::find_if(out_.roles, [&](const ImportedRole& role) {
        return std::ranges::any_of(role.command,
                                   [&](const auto& word) { return RE2::PartialMatch(word, names); });
      });
      // In a variable only: of that role, or the first.
      if (owner == out_.roles.end())
        owner = std::ranges::find_if(
            out_.roles, [&](const ImportedRole& role) { return role.part && is_in(role.environment); });
      if (owner == out_.roles.end() && (is_in(out_.environment) || is_in(out_.site_environment)))
        owner =
            std::ranges::find_if(out_.roles, [](const ImportedRole& role) { return role.part.has_value(); });
      if (owner == out_.roles.end()) continue;
      const auto count = owner->ports.size();
      owner->ports.push_back(count > 0                         ? fmt::format("port{}", count + 1)
                             : owner->kind == RoleKind::engine ? "http"
                                                               : "port");
      owner->port_markers.push_back(port);
      owners_[port] = &*owner;
    }
  }

  void change(std::string& text, ImportedRole* role) {
    lists(text);
    static const RE2 kMarker(fmt::format(
        R"((rec-node-\[[-\d,]+\]|rec-node-\d+|10\.77\.\d+\.\d+|42424[23]|427(?:7[7-9]|8\d|9[0-6])|{}|{}|/rec/[\w./-]*|)"
        R"({}|rec-partition|rec-account|{}|{}))",
        shell::Allocation::kHome, shell::Allocation::kUser, shell::Allocation::kLoginHost,
        shell::Allocation::kCluster, shell::Allocation::kInterface));
    std::string changed;
    re2::StringPiece rest(text);
    std::string marker;
    const char* begin = text.data();
    while (RE2::FindAndConsume(&rest, kMarker, &marker)) {
      const auto* end = rest.data();
      const auto* at = end - marker.size();
      changed.append(begin, at);
      // 42777 in "1427771" belongs to a number of the script.
      const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
      const bool within = is_digit(marker[0]) &&
                          ((at > text.data() && is_digit(at[-1])) || (!rest.empty() && is_digit(rest[0])));
      changed +=
          within || is_in_script(word_around(text, at, marker.size())) ? marker : reference(marker, role);
      begin = end;
    }
    changed.append(begin, static_cast<const char*>(text.data()) + text.size());
    text = std::move(changed);
  }

  static bool is_of_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-.").contains(c);
  }

  /// "rec-user-emb" around "rec-user".
  static std::string_view word_around(std::string_view text, const char* at, std::size_t size) {
    auto begin = static_cast<std::size_t>(at - text.data());
    auto end = begin + size;
    while (begin > 0 && is_of_word(text[begin - 1])) --begin;
    while (end < text.size() && is_of_word(text[end])) ++end;
    return text.substr(begin, end - begin);
  }

  /// The script has this very word: then it is not made up.
  [[nodiscard]] bool is_in_script(std::string_view word) const {
    for (auto at = script_.find(word); at != std::string::npos; at = script_.find(word, at + 1)) {
      const auto end = at + word.size();
      if ((at == 0 || !is_of_word(script_[at - 1])) && (end == script_.size() || !is_of_word(script_[end])))
        return true;
    }
    return false;
  }

  /// A comma-separated list of all hosts becomes the hosts of a role that runs on all nodes, if there is one.
  void lists(std::string& text) {
    const auto* all = allocation_.nodes < 2 ? nullptr : role_on_all();
    if (all == nullptr) return;
    for (const auto& list : {text::join(names_, ","), text::join(addresses_, ",")}) {
      for (auto at = text.find(list); at != std::string::npos; at = text.find(list, at + 1)) {
        text.replace(at, list.size(), fmt::format("${{role.{}.hosts}}", all->name));
      }
    }
  }

  [[nodiscard]] const ImportedRole* role_on_all() const {
    for (const auto& role : out_.roles) {
      if (!role.part) continue;
      std::vector<std::uint32_t> nodes;
      for (const auto& task : out_.parts[*role.part].tasks)
        if (nodes.empty() || nodes.back() != task.node) nodes.push_back(task.node);
      bool in_order = nodes.size() == allocation_.nodes;
      for (std::size_t i = 0; in_order && i < nodes.size(); ++i) in_order = nodes[i] == i;
      if (in_order) return &role;
    }
    return nullptr;
  }

  std::string reference(const std::string& marker, const ImportedRole* role) {
    if (marker == allocation_.job_id) return "${run.id}";
    if (marker == shell::Allocation::kHome) return "${env.HOME}";
    if (marker == shell::Allocation::kUser) return "${env.USER}";
    if (shell::Allocation::is_port(marker)) return port(marker, role);
    if (const auto node = shell::node_of(marker)) return host(*node, role, marker);
    if (marker == std::to_string(shell::Allocation::kSubmitted))
      miss(fmt::format(
          "the id of a job that the script submits itself ({}, from sbatch): remove that from the "
          "script. `walltime: {{then: requeue}}` continues in a new job",
          marker));
    else
      miss(fmt::format(
          "'{}', which stands for {}", marker,
          marker == shell::Allocation::kInterface
              ? "a network interface of the cluster. Give the output of the command with --prints "
                "'PART OF THE COMMAND=TEXT'"
          : marker.starts_with("/rec/own")
              ? "where the cluster has a program (`which`). Give the output of the command with --prints "
                "'PART OF THE COMMAND=TEXT'"
              : "something that only the cluster knows"));
    return marker;
  }

  /// A port that the batch script has chosen is one for all processes; a task chooses its own.
  std::string port(const std::string& marker, const ImportedRole* role) {
    const auto owner = owners_.find(marker);
    if (owner == owners_.end()) return marker;
    const auto& of = *owner->second;
    const auto place = std::ranges::find(of.port_markers, marker) - of.port_markers.begin();
    const auto& name = of.ports[static_cast<std::size_t>(place)];
    const bool is_one = role != nullptr && role->part && out_.parts[*role->part].tasks.size() == 1;
    const bool is_of_task = marker == std::to_string(shell::Allocation::kPortOfTask);
    return owner->second == role && (is_one || is_of_task)
               ? fmt::format("${{self.ports.{}}}", name)
               : fmt::format("${{role.{}.0.ports.{}}}", of.name, name);
  }

  std::string host(std::uint32_t node, const ImportedRole* role, const std::string& marker) {
    const auto index_in = [&](const ImportedRole& other) -> std::optional<std::size_t> {
      if (!other.part) return std::nullopt;
      const auto& tasks = out_.parts[*other.part].tasks;
      const auto found = std::ranges::find(tasks, node, &shell::Task::node);
      return found == tasks.end() ? std::nullopt : std::optional<std::size_t>(found - tasks.begin());
    };
    if (role != nullptr && role->part && out_.parts[*role->part].tasks.size() == 1 && index_in(*role))
      return "${self.host}";
    if (role != nullptr && index_in(*role))
      return fmt::format("${{role.{}.{}.host}}", role->name, *index_in(*role));
    for (const auto& other : out_.roles)
      if (const auto index = index_in(other)) return fmt::format("${{role.{}.{}.host}}", other.name, *index);
    miss(fmt::format("the host '{}', on which no role runs", marker));
    return marker;
  }

  void miss(std::string what) {
    if (std::ranges::find(unknown_, what) == unknown_.end()) unknown_.push_back(std::move(what));
  }

  const shell::Allocation& allocation_;
  const std::string& script_;
  Imported& out_;
  std::vector<std::string>& unknown_;
  std::vector<std::string> names_, addresses_;
  std::map<std::string, const ImportedRole*> owners_;  ///< of free ports
};

}  // namespace

void refer_to_the_job(const shell::Allocation& allocation, const std::string& script, Imported& out,
                      std::vector<std::string>& unknown) {
  References(allocation, script, out, unknown).run();
}

}  // namespace nlaunch::import
