#include <algorithm>
#include <array>
#include <stdexcept>

#include "preflight/preflight.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

json row_json(const Row& row) {
  return {{"check", row.check},     {"status", name_of(row.status)}, {"subject", row.subject},
          {"value", row.value},     {"expected", row.expected},      {"fix", row.fix},
          {"who", name_of(row.who)}};
}

json measurement_json(const Measurement& one) {
  return {{"group", one.group}, {"op", one.op},           {"backend", one.backend}, {"ranks", one.ranks},
          {"bytes", one.bytes}, {"seconds", one.seconds}, {"busbw", one.busbw}};
}

}  // namespace

json to_json(const Report& report) {
  json out{{"level", name_of(report.level)},
           {"verdict", name_of(report.verdict)},
           {"elapsed", std::chrono::duration<double>(report.elapsed).count()},
           {"cancelled", report.cancelled},
           {"fail_count", std::ranges::count(report.rows, Status::fail, &Row::status)},
           {"rows", json::array()},
           {"measurements", json::array()}};
  for (const auto& row : report.rows) out["rows"].push_back(row_json(row));
  for (const auto& one : report.measurements) out["measurements"].push_back(measurement_json(one));
  return out;
}

Report report_from_json(const json& from) {
  const auto word = [](const json& text, const auto& all) {
    for (const auto one : all) {
      if (text == name_of(one)) return one;
    }
    throw std::domain_error("unknown word " + text.dump());
  };
  constexpr std::array kStatuses{Status::pass, Status::warn, Status::fail, Status::unknown, Status::skip};
  constexpr std::array kWho{Who::nobody, Who::user, Who::admin};
  Report report;
  report.level = word(from.at("level"), std::array{PreflightLevel::quick, PreflightLevel::standard});
  report.verdict = word(from.at("verdict"), kStatuses);
  report.elapsed =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(from.at("elapsed").get<double>()));
  report.cancelled = from.at("cancelled");
  for (const auto& row : from.at("rows")) {
    report.rows.push_back({row.at("check"), word(row.at("status"), kStatuses), row.at("subject"),
                           row.at("value"), row.at("expected"), row.at("fix"), word(row.at("who"), kWho)});
  }
  for (const auto& one : from.at("measurements")) {
    report.measurements.push_back({one.at("group"), one.at("op"), one.at("backend"), one.at("ranks"),
                                   one.at("bytes"), one.at("seconds"), one.at("busbw")});
  }
  return report;
}

}  // namespace nlaunch::preflight
