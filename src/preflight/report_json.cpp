#include "preflight/report_json.h"
#include "base/json.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

json measurement_json(const Measurement& one) {
  return {{"group", one.group}, {"op", one.op},           {"backend", one.backend}, {"ranks", one.ranks},
          {"bytes", one.bytes}, {"seconds", one.seconds}, {"busbw", one.busbw}};
}

/// The one of `all` that has this name.
template <class Word, std::size_t N>
Word word(const json& name, const std::array<Word, N>& all) {
  for (const auto one : all) {
    if (name == name_of(one)) return one;
  }
  throw std::domain_error("unknown word " + json_text(name));
}

constexpr std::array kStatuses{Status::pass, Status::warn, Status::fail, Status::unknown, Status::skip};
constexpr std::array kWho{Who::nobody, Who::user, Who::admin};
constexpr std::array kLevels{PreflightLevel::quick, PreflightLevel::standard};

}  // namespace

json to_json(const Row& row) {
  json out{{"check", row.check},     {"status", name_of(row.status)}, {"subject", row.subject},
           {"value", row.value},     {"expected", row.expected},      {"fix", row.fix},
           {"who", name_of(row.who)}};
  if (!row.hosts.empty()) out["hosts"] = row.hosts;
  return out;
}

Row row_from_json(const json& from) {
  return {from.at("check"),           word(from.at("status"), kStatuses),
          from.at("subject"),         from.at("value"),
          from.at("expected"),        from.at("fix"),
          word(from.at("who"), kWho), from.value("hosts", std::vector<std::string>())};
}

json to_json(const Report& report) {
  json out{{"level", name_of(report.level)},
           {"verdict", name_of(report.verdict)},
           {"elapsed", std::chrono::duration<double>(report.elapsed).count()},
           {"cancelled", report.cancelled},
           {"fail_count", std::ranges::count(report.rows, Status::fail, &Row::status)},
           {"rows", json::array()},
           {"measurements", json::array()}};
  for (const auto& row : report.rows) out["rows"].push_back(to_json(row));
  for (const auto& one : report.measurements) out["measurements"].push_back(measurement_json(one));
  return out;
}

Report report_from_json(const json& from) {
  Report report;
  report.level = word(from.at("level"), kLevels);
  report.verdict = word(from.at("verdict"), kStatuses);
  report.elapsed =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(from.at("elapsed").get<double>()));
  report.cancelled = from.at("cancelled");
  for (const auto& row : from.at("rows")) report.rows.push_back(row_from_json(row));
  for (const auto& one : from.at("measurements")) {
    report.measurements.push_back({one.at("group"), one.at("op"), one.at("backend"), one.at("ranks"),
                                   one.at("bytes"), one.at("seconds"), one.at("busbw")});
  }
  return report;
}

}  // namespace nlaunch::preflight
