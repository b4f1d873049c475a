#include "cli/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "base/version.h"
#include "launch/install.h"
#include "sys/command.h"

namespace nlaunch::cli {

std::string version_text() {
  auto out = fmt::format("nlaunch {}\n", version());
  const auto probe = launch::find_install().probe;
  sys::SpawnRequest request;
  request.argv = {probe, "version"};
  request.env = sys::own_environment();
  const auto result = sys::run_command(std::move(request), std::chrono::seconds(10));
  const auto said = parse_json(result ? result->out : "");
  if (!said.is_object()) return out + fmt::format("nlaunch-probe: not usable at {}", probe);
  constexpr std::pair<const char*, const char*> kParts[] = {
      {"cuda", "CUDA"}, {"nccl_header", "NCCL"}, {"gloo", "Gloo"}, {"libfabric", "libfabric"}};
  out += "nlaunch-probe";
  const char* gap = " with ";
  for (const auto& [key, name] : kParts) {
    const auto& version = said.value(key, nlohmann::json());
    out += fmt::format("{}{}", gap,
                       version.is_string() ? fmt::format("{} {}", name, version.get<std::string>())
                                           : fmt::format("no {}", name));
    gap = ", ";
  }
  return out;
}

}  // namespace nlaunch::cli
