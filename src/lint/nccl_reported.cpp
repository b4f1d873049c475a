#include "lint/nccl_reported.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/values.h"

namespace nlaunch::lint {
namespace {

constexpr std::string_view kMark = " set by environment to ";

/// NCCL reports every numeric parameter when it first reads it (src/misc/param.cc), but only some string
/// parameters.
bool is_told_of(std::string_view name) {
  const auto known = find_variables(name);
  return !known.empty() && known.front()->owner == "NCCL" &&
         (known.front()->type == ValueType::integer || known.front()->type == ValueType::boolean);
}

bool is_same(const std::string& set, const std::string& read) {
  if (set == read) return true;
  const auto one = read_number(set);
  const auto other = read_number(read);
  return one.whole && other.whole && one.value == other.value;
}

}  // namespace

std::vector<NcclReportedSetting> read_nccl_log(std::string_view log) {
  std::vector<NcclReportedSetting> heard;
  for (auto at = log.find(kMark); at != std::string_view::npos; at = log.find(kMark, at + 1)) {
    const auto start = log.find_last_of(" \n", at - 1);
    const auto name = log.substr(start + 1, at - start - 1);
    auto value = log.substr(at + kMark.size(), log.find('\n', at) - at - kMark.size());
    // Numbers are reported with a trailing period.
    if (value.ends_with('.') && read_number(value.substr(0, value.size() - 1)).whole) value.remove_suffix(1);
    if (!name.starts_with("NCCL_")) continue;
    if (std::ranges::find(heard, name, &NcclReportedSetting::name) == heard.end())
      heard.push_back({std::string(name), std::string(value)});
  }
  return heard;
}

std::vector<std::string> compare(const Environment& environment,
                                 const std::vector<NcclReportedSetting>& heard) {
  std::vector<std::string> out;
  std::set<std::string, std::less<>> told;
  for (const auto& one : heard) {
    told.insert(one.name);
    const auto* setting = environment.find(one.name);
    if (setting == nullptr || (setting->unset && setting->sure)) {
      out.push_back(fmt::format(
          "NCCL read {}={}, which nlaunch did not set: it comes from an nccl.conf or the program itself",
          one.name, one.value));
    } else if (setting->sure && setting->value && !is_same(*setting->value, one.value)) {
      out.push_back(fmt::format("{} is set to '{}', but NCCL read {}", one.name, *setting->value, one.value));
    }
  }
  std::vector<std::string> silent;
  for (const auto& setting : environment.settings) {
    if (environment.find(setting.name) != &setting || !setting.sure || setting.unset) continue;
    if (is_told_of(setting.name) && !told.contains(setting.name)) silent.push_back(setting.name);
  }
  if (!heard.empty() && !silent.empty()) {
    out.push_back(fmt::format("set but not read by NCCL in this run: {}", text::join(silent, ", ")));
  }
  return out;
}

}  // namespace nlaunch::lint
