#include "import/ready.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::import {

void import_readiness(const Doings& doings, Imported& out) {
  for (const auto& poll : doings.polls) {
    const auto colon = poll.url.find(':', poll.url.find("//") + 2);
    const auto port = colon == std::string::npos
                          ? ""
                          : poll.url.substr(colon + 1, poll.url.find_first_of("/?", colon) - colon - 1);
    ImportedRole* found = nullptr;
    for (auto& one : out.roles) {
      if (one.kind == RoleKind::learner || !one.spawned_by.empty() || one.ends_run.value_or(false) ||
          one.name.starts_with("ray-"))
        continue;
      const bool has_port = std::ranges::any_of(one.command, [&](const auto& word) {
        return !port.empty() && (word == port || word.ends_with("=" + port) || word.ends_with(":" + port));
      });
      const bool own =
          !port.empty() && one.ready && one.ready->http.find(":" + port + "/") != std::string::npos;
      if (has_port || own) found = &one;
    }
    if (found == nullptr) {
      out.remarks[Destination::roles].push_back(
          {poll.line,
           fmt::format("waits until {} answers: `ready: {{http: ...}}` of the role that it belongs to",
                       text::printable(poll.url))});
      continue;
    }
    const auto slash = poll.url.find('/', colon);
    const auto path = slash == std::string::npos ? "/" : poll.url.substr(slash);
    const bool bound = std::ranges::find(found->command, "127.0.0.1") != found->command.end() ||
                       std::ranges::find(found->command, "localhost") != found->command.end();
    const auto host = found->kind == RoleKind::engine || !poll.url.starts_with("http://localhost")
                          ? "${self.host}"
                          : "localhost";
    found->ready =
        ImportedReady{fmt::format("http://{}:{}{}", bound ? "127.0.0.1" : host, port, path),
                      "",
                      {},
                      poll.timeout.empty() ? "10m" : poll.timeout,
                      poll.line,
                      poll.timeout.empty() ? "no limit was found there: 10m is nlaunch's default" : ""};
  }
}

}  // namespace nlaunch::import
