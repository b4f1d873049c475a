#include <algorithm>

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

}  // namespace nlaunch::preflight
