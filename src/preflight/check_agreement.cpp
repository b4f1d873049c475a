#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr const char* kCheck = "gemm-agreement";

using Prints = std::vector<const Fingerprint*>;

std::string host_of(const Observations& observations, const Fingerprint& print) {
  return observations.hosts.empty() ? "" : observations.hosts.at(print.node);
}

std::string name_of_gpu(const Observations& observations, const Fingerprint& print) {
  const auto host = host_of(observations, print);
  return host.empty() ? print.gpu : host + " " + print.gpu;
}

std::string names_of(const Observations& observations, const Prints& prints) {
  std::vector<std::string> names;
  for (const auto* print : prints) names.push_back(name_of_gpu(observations, *print));
  return text::join(names, ", ");
}

Row minority(const Observations& observations, const Fingerprint& print, std::size_t others) {
  auto row = failed(
      kCheck, name_of_gpu(observations, print),
      fmt::format("its product of the same matrices has other bits than that of {} other GPUs of its model",
                  others),
      "the same bits on every " + print.model,
      {"silent data corruption is suspected: do not train on this GPU, and report the node",
       Responsible::admin});
  if (const auto host = host_of(observations, print); !host.empty()) row.hosts = {host};
  return row;
}

/// As many say one thing as another: a node is blamed only where all of them are on it.
Row undecided(const Observations& observations, const std::string& model, const Prints& all) {
  auto row = failed(kCheck, model,
                    fmt::format("{} found different bits in the same product: one of them is wrong",
                                names_of(observations, all)),
                    "the same bits on every GPU of a model",
                    {"silent data corruption is suspected: compare each with a third GPU of the model before "
                     "training on any of them",
                     Responsible::admin});
  const auto first = all.front()->node;
  const bool together = std::ranges::all_of(all, [&](const auto* print) { return print->node == first; });
  if (const auto host = host_of(observations, *all.front()); together && !host.empty()) row.hosts = {host};
  return row;
}

void judge(const Observations& observations, const std::string& model, const Prints& all,
           std::vector<Row>& rows) {
  std::map<std::string, Prints> by_value;
  for (const auto* print : all) by_value[print->value].push_back(print);
  if (by_value.size() == 1) {
    rows.push_back(all.size() < 2
                       ? skipped(kCheck, model, "one GPU of this model: there is none to compare it with")
                       : passed(kCheck, model, fmt::format("{} GPUs found the same bits", all.size())));
    return;
  }
  const auto most = std::ranges::max_element(by_value, {}, [](const auto& one) { return one.second.size(); });
  if (2 * most->second.size() <= all.size()) {
    rows.push_back(undecided(observations, model, all));
    return;
  }
  for (const auto& [value, prints] : by_value) {
    if (value == most->first) continue;
    for (const auto* print : prints) rows.push_back(minority(observations, *print, most->second.size()));
  }
}

}  // namespace

std::vector<Row> check_agreement(const Observations& observations) {
  std::map<std::string, Prints> by_model;
  for (const auto& print : observations.fingerprints) by_model[print.model].push_back(&print);
  std::vector<Row> rows;
  for (const auto& [model, prints] : by_model) judge(observations, model, prints, rows);
  return rows;
}

}  // namespace nlaunch::preflight
