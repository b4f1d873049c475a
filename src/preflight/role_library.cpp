#include "preflight/role_library.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "preflight/ask_probe.h"
#include "preflight/role_python.h"
#include "sys/command.h"

namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kInWheel = "nvidia/nccl/lib/libnccl.so.2";

/// Where a Python keeps its packages. Run with -S: `site` is imported but not executed, so that no .pth file
/// and no sitecustomize.py runs.
constexpr const char* kSitePaths =
    "import os, site, sys\n"
    "own = os.path.dirname(os.path.dirname(sys.executable))\n"
    "venv = '%s/lib/python%d.%d/site-packages' % ((own,) + sys.version_info[:2])\n"
    "paths = [venv] + site.getsitepackages()\n"
    "print('\\n'.join(paths + [site.getusersitepackages()]))\n";

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string in_venv(const std::string& venv) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(venv) / "lib", error)) {
    const auto file = entry.path() / "site-packages" / kInWheel;
    if (entry.path().filename().string().starts_with("python") && is_file(file)) return file.string();
  }
  return "";
}

std::string in_python(const plan::BoundProcess& process) {
  const auto python = python_of(process).path;
  if (python.empty()) return "";
  sys::SpawnRequest request;
  request.argv = {python, "-S", "-c", kSitePaths};
  request.env = probe_environment(process);
  const auto said = sys::run_command(request, 5s);
  if (!said || !said->status.ok()) return "";
  for (const auto& folder : text::split(said->out, '\n')) {
    const auto file = fs::path(folder) / kInWheel;
    if (!folder.empty() && is_file(file)) return file.string();
  }
  return "";
}

LibraryFact select(const plan::BoundProcess& process) {
  for (const auto& library : process.preload) {
    if (fs::path(library).filename().string().starts_with("libnccl")) return {library, "", "preload", ""};
  }
  if (auto named = variable_of(process, "VLLM_NCCL_SO_PATH").value_or(""); !named.empty())
    return {named, "", "VLLM_NCCL_SO_PATH", ""};
  const auto venv = variable_of(process, "VIRTUAL_ENV").value_or("");
  if (auto wheel = venv.empty() ? "" : in_venv(venv); !wheel.empty()) return {wheel, "", "NCCL wheel", ""};
  if (auto wheel = in_python(process); !wheel.empty()) return {wheel, "", "NCCL wheel", ""};
  return {"", "", "loader", ""};
}

}  // namespace

std::vector<std::string> probe_environment(const plan::BoundProcess& process) {
  std::vector<std::string> env;
  for (const auto& [name, value] : process.env) {
    if (name != "LD_PRELOAD" && !name.starts_with("NLAUNCH_"))
      env.push_back(fmt::format("{}={}", name, value));
  }
  return env;
}

LibraryFact find_role_library(const plan::BoundProcess& process, const std::string& probe) {
  auto fact = select(process);
  const auto arguments = fact.path.empty() ? std::vector<std::string>{"find-library", "libnccl.so.2"}
                                           : std::vector<std::string>{"library", fact.path};
  const auto said = ask_probe(probe, arguments, probe_environment(process));
  if (!said) {
    fact.error = said.error().items().front().message;
    return fact;
  }
  fact.error = said->value("error", "");
  fact.version = said->value("version", "");
  if (fact.path.empty()) fact.path = said->value("path", "");
  return fact;
}

}  // namespace nlaunch::preflight
