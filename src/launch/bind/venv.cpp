#include "launch/bind/venv.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "plan/container.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

bool is_here(const std::string& venv) {
  std::error_code error;
  return std::filesystem::is_directory(venv, error);
}

std::string origin_of(const plan::Role& role) {
  const auto op = std::ranges::find(role.env, plan::Layer::venv, &plan::EnvOp::layer);
  return op == role.env.end() ? "" : op->origin;
}

}  // namespace

Diagnostics missing_venvs(const plan::Plan& plan, std::optional<std::uint32_t> node) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> roles;  // by path and origin
  for (std::uint32_t index = 0; index < plan.roles.size(); ++index) {
    const auto& role = plan.roles[index];
    const bool wanted = !node || std::ranges::any_of(plan.processes, [&](const plan::Process& process) {
      return process.role == index && process.node == *node;
    });
    if (!wanted || role.venv.empty() || role.venv.contains("${") || is_here(role.venv)) continue;
    if (plan::is_container(role.wrapper)) continue;  // it may belong to the image
    roles[{role.venv, origin_of(role)}].push_back(role.name);
  }
  Diagnostics diagnostics;
  for (const auto& [venv, of] : roles) {
    const auto& [path, origin] = venv;
    diagnostics
        .error("launch.venv", {},
               fmt::format("{}: the venv '{}' ({}) does not exist", text::join(of, ", "), path, origin))
        .hint = fmt::format("create it: python3 -m venv {}", text::shell_quote(path));
  }
  return diagnostics;
}

std::string version_of_python(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr std::uint64_t kLargest = 65536;
  const auto config =
      sys::read_regular_file(fs::path(path).parent_path().parent_path() / "pyvenv.cfg", kLargest);
  for (const auto& line : text::split(config.value_or(""), '\n')) {
    const auto equals = line.find('=');
    const auto key = text::trim(std::string_view(line).substr(0, equals));
    if (equals == std::string::npos || (key != "version" && key != "version_info")) continue;
    // "3.11.7", or of virtualenv "3.11.7.final.0"
    const auto value = text::trim(std::string_view(line).substr(equals + 1));
    return std::string(value.substr(0, value.find(".final")));
  }
  constexpr std::string_view kName = "python";
  std::error_code error;
  const auto name = fs::weakly_canonical(path, error).filename().string();
  return name.starts_with(kName) && name.contains('.') ? name.substr(kName.size()) : "";
}

}  // namespace nlaunch::launch
