#include "record/versions.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/text.h"
#include "base/version.h"
#include "sys/files.h"

namespace nlaunch::record {
namespace {

/// Wheels that matter for a ticket, by name prefix.
constexpr std::array<std::string_view, 13> kWheels{
    "torch",      "vllm",       "ray",   "sglang",      "transformers",        "deepspeed",
    "accelerate", "flash_attn", "numpy", "nvidia_nccl", "nvidia_cuda_runtime", "nvidia_cudnn",
    "triton"};

bool is_telling(std::string_view wheel) {
  return std::ranges::any_of(kWheels, [&](std::string_view one) {
    return wheel == one || (one.starts_with("nvidia_") && wheel.starts_with(one));
  });
}

void add(std::vector<VersionRow>& rows, std::string what, std::string version, std::string from) {
  if (!version.empty()) rows.push_back({std::move(what), std::move(version), std::move(from)});
}

void add_wheels(const Json& lock, std::vector<VersionRow>& rows) {
  for (const auto& [venv, wheels] : at(lock, "wheels").items()) {
    for (const auto& wheel : wheels) {
      if (!wheel.is_string()) continue;
      const auto text = wheel.get<std::string>();
      const auto space = text.find(' ');
      if (space == std::string::npos || !is_telling(text.substr(0, space))) continue;
      add(rows, text.substr(0, space), text.substr(space + 1), fmt::format("lock.json, wheels of {}", venv));
    }
  }
}

void add_preflight(const Attempt& attempt, std::vector<VersionRow>& rows) {
  const auto file = fmt::format("attempt-{}/preflight.json", attempt.number);
  for (const auto& node : at(attempt.preflight, "nodes")) {
    const auto from = fmt::format("{}, node {}", file, text_at(node, "host"));
    add(rows, "NVIDIA driver", text_at(node, "driver"), from);
    add(rows, "NCCL", text_at(node, "nccl"), from);
  }
  // What the library checks found, as they print it: CUDA, libfabric, the plugin.
  constexpr std::array<std::string_view, 5> kChecks{"versions", "libraries", "fabric", "nccl", "interpreter"};
  for (const auto& row : at(attempt.preflight, "rows")) {
    if (std::ranges::find(kChecks, text_at(row, "check")) == kChecks.end() ||
        text_at(row, "status") == "skip")
      continue;
    add(rows, fmt::format("{}: {}", text_at(row, "check"), text_at(row, "subject")), text_at(row, "value"),
        file);
  }
}

/// `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"` (os-release(5)).
std::string os_name() {
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kName = "PRETTY_NAME=";
    if (line.starts_with(kName)) {
      line.erase(0, kName.size());
      std::erase(line, '"');
      return line;
    }
  }
  return "";
}

}  // namespace

std::vector<VersionRow> versions_of(const RunFiles& run) {
  std::vector<VersionRow> rows;
  add(rows, "nlaunch", text_at(run.lock, "nlaunch"), "lock.json");
  for (const auto& [name, library] : at(run.lock, "libraries").items())
    add(rows, name, text_at(library, "version"), fmt::format("lock.json, {}", text_at(library, "path")));
  for (const auto& [host, libraries] : at(run.lock, "libraries_on").items()) {
    if (!libraries.is_object()) continue;
    for (const auto& [name, library] : libraries.items())
      add(rows, name, text_at(library, "version"),
          fmt::format("lock.json, {} on {}", text_at(library, "path"), host));
  }
  add_wheels(run.lock, rows);
  for (const auto& attempt : run.attempts) add_preflight(attempt, rows);
  return rows;
}

std::vector<VersionRow> versions_here() {
  std::vector<VersionRow> rows;
  const auto from = [](std::string_view source) {
    return fmt::format("{} on the machine that made the bundle, at that time", source);
  };
  add(rows, "nlaunch", std::string(version()), from("nlaunch"));
  add(rows, "OS", os_name(), from("/etc/os-release"));
  utsname kernel{};
  if (::uname(&kernel) == 0)
    add(rows, "kernel", fmt::format("{} {} ({})", kernel.sysname, kernel.release, kernel.machine),
        from("uname"));
  add(rows, "C library", fmt::format("glibc {}", ::gnu_get_libc_version()), from("glibc"));
  std::ifstream driver("/proc/driver/nvidia/version");
  if (std::string line; std::getline(driver, line))
    add(rows, "NVIDIA driver", line, from("/proc/driver/nvidia/version"));
  return rows;
}

Json to_json(const std::vector<VersionRow>& rows) {
  auto out = Json::object();
  for (const auto& [what, version, from] : rows) out[what].push_back({{"version", version}, {"from", from}});
  return out;
}

}  // namespace nlaunch::record
