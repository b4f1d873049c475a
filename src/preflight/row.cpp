#include "preflight/row.h"

#include <algorithm>
#include <utility>

namespace nlaunch::preflight {

std::string_view name_of(Responsible responsible) {
  return responsible == Responsible::nobody ? "" : word_of(responsible);
}

Row passed(std::string check, std::string subject, std::string value, std::string expected) {
  return {std::move(check),    Status::pass, std::move(subject), std::move(value),
          std::move(expected), "",           Responsible::nobody};
}

Row skipped(std::string check, std::string subject, std::string reason) {
  return {std::move(check), Status::skip, std::move(subject), std::move(reason), "", "", Responsible::nobody};
}

Row unknown(std::string check, std::string subject, std::string reason) {
  return {std::move(check),   Status::unknown, std::move(subject), std::move(reason), "", "",
          Responsible::nobody};
}

Row failed(std::string check, std::string subject, std::string value, std::string expected, Remedy remedy) {
  return {std::move(check),    Status::fail,          std::move(subject), std::move(value),
          std::move(expected), std::move(remedy.fix), remedy.responsible};
}

Row warned(std::string check, std::string subject, std::string value, std::string expected, Remedy remedy) {
  auto row =
      failed(std::move(check), std::move(subject), std::move(value), std::move(expected), std::move(remedy));
  row.status = Status::warn;
  return row;
}

Status worst(const std::vector<Row>& rows) {
  for (const auto status : {Status::fail, Status::unknown, Status::warn}) {
    if (std::ranges::find(rows, status, &Row::status) != rows.end()) return status;
  }
  return Status::pass;
}

}  // namespace nlaunch::preflight
