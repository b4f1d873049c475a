#include "launch/step.h"

#include <sys/random.h>

#include <array>

#include "base/json.h"
#include "launch/machine.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::launch {

using nlohmann::json;

Result<void> write_step(const Step& step, const std::filesystem::path& path) {
  const json out{{"plan", step.plan},
                 {"id", step.paths.id},
                 {"folder", step.paths.folder.string()},
                 {"attempt", step.paths.attempt.string()},
                 {"addresses", step.addresses},
                 {"port", step.port},
                 {"token", step.token},
                 {"share", step.share},
                 {"output", step.output},
                 {"color", step.color},
                 {"name_width", step.name_width}};
  return sys::write_file_atomically(path, json_text(out, 1) + "\n");
}

Result<Step> read_step(const std::filesystem::path& path) {
  constexpr std::uint64_t kLimit = 1U << 20U;
  const auto text = sys::read_regular_file(path, kLimit);
  if (!text) return std::unexpected(text.error());
  try {
    const auto from = json::parse(*text);
    Step step;
    from.at("plan").get_to(step.plan);
    step.paths = {from.at("id"), from.at("folder").get<std::string>(), from.at("attempt").get<std::string>()};
    from.at("addresses").get_to(step.addresses);
    from.at("port").get_to(step.port);
    from.at("token").get_to(step.token);
    from.at("share").get_to(step.share);
    from.at("output").get_to(step.output);
    from.at("color").get_to(step.color);
    from.at("name_width").get_to(step.name_width);
    return step;
  } catch (const json::exception& error) {
    return failure("launch.step", "'{}' cannot be read: {}", path.string(), error.what());
  }
}

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  std::string token;
  for (const auto byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

std::string node_name(const std::vector<std::string>& environment) {
  const auto name = sys::env_value(environment, "SLURMD_NODENAME");
  return name.empty() ? this_host().host : std::string(name);
}

}  // namespace nlaunch::launch
