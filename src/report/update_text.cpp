#include "report/update_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::report {

std::string update_text(const plan::Update& update, const Paint& paint) {
  std::string out;
  for (const auto& role : update.roles) {
    out += paint.bold(role.role) + "\n";
    for (const auto& setting : role.settings) {
      out += fmt::format("  {}\n", setting.what);
      if (!setting.before.empty())
        out += paint.red(fmt::format("    - {}", text::printable(setting.before))) + "\n";
      if (!setting.after.empty())
        out += paint.green(fmt::format("    + {}", text::printable(setting.after))) + "\n";
    }
  }
  return out;
}

}  // namespace nlaunch::report
