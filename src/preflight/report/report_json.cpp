#include "preflight/report/report_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/format.h"
#include "base/json.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

json to_json(const Measurement& one) {
  json out{{"group", one.group},     {"kind", one.kind},   {"op", one.op},       {"ranks", one.ranks},
           {"backend", one.backend}, {"bytes", one.bytes}, {"busbw", one.busbw}, {"seconds", one.seconds}};
  if (one.floor > 0) out["floor"] = one.floor;
  if (one.limit > 0) out["limit"] = one.limit;
  return out;
}

Measurement measurement_from_json(const json& from) {
  return {from.at("group"),         from.at("op"),           from.at("backend"), from.at("ranks"),
          from.at("bytes"),         from.at("seconds"),      from.at("busbw"),   from.value("kind", ""),
          from.value("floor", 0.0), from.value("limit", 0.0)};
}

template <DescribedEnum E>
E word(const json& name) {
  for (const auto one : kValues<E>) {
    if (name == name_of(one)) return one;
  }
  throw std::domain_error("unknown word " + json_text(name));
}

}  // namespace

json to_json(const Row& row) {
  json out{{"check", row.check},
           {"status", name_of(row.status)},
           {"subject", row.subject},
           {"value", row.value},
           {"expected", row.expected},
           {"fix", row.fix},
           {"who", name_of(row.responsible)}};
  if (!row.hosts.empty()) out["hosts"] = row.hosts;
  return out;
}

json to_json(const Figure& figure) {
  json out{{"what", figure.what}, {"from", figure.from}, {"value", figure.value}, {"unit", figure.unit}};
  if (!figure.host.empty()) out["host"] = figure.host;
  if (!figure.to.empty()) out["to"] = figure.to;
  return out;
}

Figure figure_from_json(const json& from) {
  return {from.at("what"),      from.value("host", ""), from.at("from"),
          from.value("to", ""), from.at("value"),       from.at("unit")};
}

json to_json(const NodeSummary& node) {
  return {{"host", node.host}, {"arch", node.arch},     {"gpu", node.gpu},
          {"gpus", node.gpus}, {"driver", node.driver}, {"nccl", node.nccl}};
}

NodeSummary summary_from_json(const json& from) {
  return {from.at("host"), from.at("arch"),   from.at("gpu"),
          from.at("gpus"), from.at("driver"), from.at("nccl")};
}

Row row_from_json(const json& from) {
  return {from.at("check"),
          word<Status>(from.at("status")),
          from.at("subject"),
          from.at("value"),
          from.at("expected"),
          from.at("fix"),
          word<Responsible>(from.at("who")),
          from.value("hosts", std::vector<std::string>())};
}

json to_json(const Report& report) {
  auto out = stamped<json>(formats::kPreflight);
  out.update({{"level", name_of(report.level)},
              {"verdict", name_of(report.verdict)},
              {"elapsed", std::chrono::duration<double>(report.elapsed).count()},
              {"cancelled", report.cancelled},
              {"plan", report.plan},
              {"site", report.site},
              {"time", report.time},
              {"job", report.job},
              {"fail_count", std::ranges::count(report.rows, Status::fail, &Row::status)},
              {"rows", json::array()},
              {"measurements", json::array()},
              {"figures", json::array()},
              {"nodes", json::array()}});
  for (const auto& row : report.rows) out["rows"].push_back(to_json(row));
  for (const auto& one : report.measurements) out["measurements"].push_back(to_json(one));
  for (const auto& figure : report.figures) out["figures"].push_back(to_json(figure));
  for (const auto& node : report.nodes) out["nodes"].push_back(to_json(node));
  return out;
}

Report report_from_json(const json& from) {
  Report report;
  report.level = word<PreflightLevel>(from.at("level"));
  report.verdict = word<Status>(from.at("verdict"));
  report.elapsed =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(from.at("elapsed").get<double>()));
  report.cancelled = from.at("cancelled");
  report.plan = from.value("plan", "");
  report.site = from.value("site", "");
  report.time = from.value("time", std::int64_t{0});
  report.job = from.value("job", "");
  for (const auto& row : from.at("rows")) report.rows.push_back(row_from_json(row));
  for (const auto& one : from.at("measurements")) report.measurements.push_back(measurement_from_json(one));
  for (const auto& figure : from.at("figures")) report.figures.push_back(figure_from_json(figure));
  for (const auto& node : from.at("nodes")) report.nodes.push_back(summary_from_json(node));
  return report;
}

}  // namespace nlaunch::preflight
