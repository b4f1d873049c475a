#include "record/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"

namespace nlaunch::record {
namespace {

constexpr std::size_t kShortHash = 12;

void set(Facts& facts, const std::string& name, const std::string& value) {
  if (!value.empty()) facts[name] = value;
}

/// A scalar, or a list of scalars, as text.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : json_text(value);
}

bool is_flat(const Json& list) {
  return std::ranges::none_of(list, [](const Json& one) { return one.is_structured(); });
}

/// The label of a list entry: "learner", "learner.0", else its number.
std::string label_of(const Json& entry, std::size_t index) {
  if (const auto name = text_at(entry, "name"); !name.empty()) return name;
  if (const auto role = text_at(entry, "role"); !role.empty())
    return fmt::format("{}.{:.0f}", role, number_at(entry, "index"));
  return std::to_string(index);
}

/// Keys that are specific to each run, or that another section covers.
bool is_own(std::string_view key) {
  constexpr std::array<std::string_view, 10> kOwn{"env",       "ports",  "rendezvous_port", "port",
                                                  "sources",   "format", "version",         "warnings",
                                                  "site_path", "origin"};
  return std::ranges::find(kOwn, key) != kOwn.end() || key.ends_with("_origin");
}

void flatten(const Json& json, const std::string& name, Facts& facts) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if (!is_own(key)) flatten(value, name.empty() ? key : name + "." + key, facts);
    }
  } else if (json.is_array() && !is_flat(json)) {
    std::size_t index = 0;
    for (const auto& entry : json)
      flatten(entry, fmt::format("{}.{}", name, label_of(entry, index++)), facts);
  } else if (json.is_array() && std::ranges::all_of(json, [](const Json& one) { return one.is_string(); })) {
    std::vector<std::string> words;
    for (const auto& one : json) words.push_back(one.get<std::string>());
    set(facts, name, text::shell_join(words));
  } else {
    set(facts, name, text_of(json));
  }
}

/// The files in a diff, each with the hash of its part.
Facts files_of_diff(const std::string& diff) {
  constexpr std::string_view kStart = "diff --git a/";
  Facts out;
  std::string file;
  std::map<std::string, Sha256> sums;
  for (const auto& line : text::split(diff, '\n')) {
    if (line.starts_with(kStart)) file = line.substr(kStart.size(), line.find(" b/") - kStart.size());
    if (!file.empty()) sums[file].feed(line + "\n");
  }
  for (auto& [name, sum] : sums)
    out[fmt::format("uncommitted changes in {}", name)] = sum.finish().substr(0, kShortHash);
  return out;
}

void add_libraries(const Json& libraries, const std::string& where, Facts& facts) {
  if (!libraries.is_object()) return;
  for (const auto& [name, library] : libraries.items()) {
    const auto label = name + where;
    if (!library.is_object()) set(facts, label, "not found");
    set(facts, label + " version", text_at(library, "version"));
    set(facts, label + " path", text_at(library, "path"));
    set(facts, label + " sha256", text_at(library, "sha256").substr(0, kShortHash));
    if (number_at(library, "size") > 0)
      facts[label + " size"] = fmt::format("{:.0f}", number_at(library, "size"));
  }
}

std::string joined(const std::set<std::string>& all) {
  return fmt::format("{}", fmt::join(all, ", "));
}

const Json& preflight_of(const RunFiles& run) {
  static const Json kNothing;
  return run.attempts.empty() ? kNothing : run.attempts.back().preflight;
}

void add_number(const Json& from, std::string_view key, const std::string& name, double unit, Measured& out) {
  if (at(from, key).is_number()) out[name] = number_at(from, key) * unit;
}

}  // namespace

Facts outcome_facts(const RunFiles& run) {
  Facts out;
  set(out, "outcome", run.summary.is_null() ? "no summary" : text_at(run.summary, "outcome"));
  set(out, "exit code", text_of(at(run.summary, "exit_code")));
  set(out, "first to fail", text_at(run.summary, "first"));
  set(out, "attempts", std::to_string(run.attempts.size()));
  for (const auto& process : at(run.summary, "processes"))
    set(out, text_at(process, "name"), text_of(at(process, "end")));
  return out;
}

Facts library_facts(const RunFiles& run) {
  Facts out;
  add_libraries(at(run.lock, "libraries"), "", out);
  if (const auto& others = at(run.lock, "libraries_on"); others.is_object()) {
    for (const auto& [host, libraries] : others.items())
      add_libraries(libraries, fmt::format(" on {}", host), out);
  }
  return out;
}

Facts planned_environment_facts(const RunFiles& run) {
  Facts out;
  for (const auto& role : at(run.plan, "roles")) {
    for (const auto& op : at(role, "env")) {
      const auto name = fmt::format("{} {}", text_at(role, "name"), text_at(op, "name"));
      out[name] = text_at(op, "op") == "unset" ? "(unset)" : text_at(op, "value");
    }
  }
  return out;
}

Facts plan_facts(const RunFiles& run) {
  Facts out;
  flatten(run.plan, "", out);
  return out;
}

Facts file_facts(const RunFiles& run) {
  Facts out;
  for (const auto& file : at(run.lock, "files")) {
    // The same file in another checkout counts as the same: by file name, unless two files have the same
    // name.
    const auto path = text_at(file, "path");
    auto name = std::filesystem::path(path).filename().string();
    if (out.contains(name)) name = path;
    set(out, name, text_at(file, "sha256").substr(0, kShortHash));
  }
  return out;
}

Facts git_facts(const RunFiles& run) {
  const auto& git = at(run.lock, "git");
  auto out = files_of_diff(text_at(git, "diff"));
  set(out, "commit", text_at(git, "commit"));
  set(out, "branch", text_at(git, "branch"));
  return out;
}

Facts wheel_facts(const RunFiles& run) {
  std::map<std::string, std::set<std::string>> versions;
  for (const auto& wheels : at(run.lock, "wheels")) {
    for (const auto& wheel : wheels) {
      const auto text = text_of(wheel);
      const auto space = text.find(' ');
      if (space != std::string::npos) versions[text.substr(0, space)].insert(text.substr(space + 1));
    }
  }
  Facts out;
  for (const auto& [name, all] : versions) out[name] = joined(all);
  return out;
}

Facts node_facts(const RunFiles& run) {
  Facts out;
  if (run.attempts.empty()) return out;
  std::vector<std::string> hosts;
  for (const auto& [host, bound] : run.attempts.back().bound) {
    hosts.push_back(host);
    std::vector<std::string> uuids;
    for (const auto& gpu : at(bound, "gpus")) uuids.push_back(text_at(gpu, "uuid"));
    set(out, fmt::format("GPUs of {}", host), text::join(uuids, " "));
  }
  set(out, "hosts", text::join(hosts, " "));
  return out;
}

Facts version_facts(const RunFiles& run) {
  std::map<std::string, std::set<std::string>> versions;
  for (const auto& node : at(preflight_of(run), "nodes")) {
    for (const auto* key : {"driver", "nccl", "gpu", "arch"}) {
      if (const auto version = text_at(node, key); !version.empty()) versions[key].insert(version);
    }
  }
  Facts out;
  for (const auto& [name, all] : versions) out[name] = joined(all);
  set(out, "nlaunch", text_at(run.lock, "nlaunch"));
  return out;
}

Facts preflight_facts(const RunFiles& run) {
  Facts out;
  const auto& preflight = preflight_of(run);
  set(out, "verdict", text_at(preflight, "verdict"));
  set(out, "level", text_at(preflight, "level"));
  // Not by subject: a subject may contain the directories of a run.
  std::map<std::string, std::set<std::string>> statuses;
  for (const auto& row : at(preflight, "rows"))
    statuses[text_at(row, "check")].insert(text_at(row, "status"));
  for (const auto& [check, all] : statuses) out[fmt::format("check {}", check)] = joined(all);
  return out;
}

Measured measured(const RunFiles& run) {
  constexpr double kMilliseconds = 1e-3;
  Measured out;
  add_number(run.summary, "decided_ms", "time to the end (s)", kMilliseconds, out);
  const auto& watch = at(run.summary, "watch");
  add_number(watch, "last_step", "steps", 1, out);
  add_number(at(watch, "step_seconds"), "median", "time of a step, median (s)", 1, out);
  if (const auto& metrics = at(run.summary, "metrics"); metrics.is_object()) {
    for (const auto& [name, metric] : metrics.items()) {
      for (const auto* key : {"median", "first", "last"})
        add_number(metric, key, fmt::format("{}, {}", name, key), 1, out);
    }
  }
  for (const auto& process : at(run.summary, "processes"))
    add_number(process, "ready_ms", text_at(process, "name") + " ready after (s)", kMilliseconds, out);
  const auto& preflight = preflight_of(run);
  add_number(preflight, "elapsed", "preflight (s)", 1, out);
  for (const auto& one : at(preflight, "measurements")) {
    const auto name = fmt::format("{} {} {} of {:.0f} bytes, busbw (GB/s)", text_at(one, "group"),
                                  text_at(one, "op"), text_at(one, "backend"), number_at(one, "bytes"));
    constexpr double kGiga = 1e-9;
    add_number(one, "busbw", name, kGiga, out);
  }
  for (const auto& one : at(preflight, "figures")) {
    const auto to = text_at(one, "to");
    add_number(one, "value",
               fmt::format("{} {} {}{} ({})", text_at(one, "what"), text_at(one, "host"),
                           text_at(one, "from"), to.empty() ? "" : " to " + to, text_at(one, "unit")),
               1, out);
  }
  return out;
}

}  // namespace nlaunch::record
