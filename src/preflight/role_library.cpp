#include "preflight/role_library.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/container.h"
#include "preflight/ask_probe.h"
#include "preflight/role_python.h"
#include "sys/command.h"

namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kInWheel = "nvidia/nccl/lib/libnccl.so.2";

/// Looks where a Python keeps its packages. Run with -S: `site` is imported but not executed, so that no .pth
/// file and no sitecustomize.py runs. It looks itself, since its folders may be those of a container.
constexpr const char* kFindWheel =
    "import os, site, sys\n"
    "own = os.path.dirname(os.path.dirname(sys.executable))\n"
    "venv = '%s/lib/python%d.%d/site-packages' % ((own,) + sys.version_info[:2])\n"
    "folders = [venv] + site.getsitepackages() + [site.getusersitepackages()]\n"
    "files = [os.path.join(folder, sys.argv[1]) for folder in folders]\n"
    "print(([file for file in files if os.path.isfile(file)] + [''])[0])\n";

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
  auto start = plan::start_of_probe(process, {python, "-S", "-c", kFindWheel, kInWheel});
  sys::SpawnRequest request;
  request.argv = std::move(start.argv);
  request.env = std::move(start.env);
  if (!process.wrapper.empty()) request.cwd = process.workdir;
  const auto said = sys::run_command(request, 5s);
  return said && said->status.ok() ? std::string(text::trim(said->out)) : "";
}

LibraryFact select(const plan::BoundProcess& process) {
  for (const auto& library : process.preload) {
    if (fs::path(library).filename().string().starts_with("libnccl")) return {library, "", "preload", ""};
  }
  if (auto named = variable_of(process, "VLLM_NCCL_SO_PATH").value_or(""); !named.empty())
    return {named, "", "VLLM_NCCL_SO_PATH", ""};
  const auto venv =
      plan::is_container(process.wrapper) ? "" : variable_of(process, "VIRTUAL_ENV").value_or("");
  if (auto wheel = venv.empty() ? "" : in_venv(venv); !wheel.empty()) return {wheel, "", "NCCL wheel", ""};
  if (auto wheel = in_python(process); !wheel.empty()) return {wheel, "", "NCCL wheel", ""};
  return {"", "", "loader", ""};
}

}  // namespace

LibraryFact find_role_library(const plan::BoundProcess& process, const std::string& probe) {
  auto fact = select(process);
  const auto arguments = fact.path.empty() ? std::vector<std::string>{"find-library", "libnccl.so.2"}
                                           : std::vector<std::string>{"library", fact.path};
  const auto said = ask_probe_of(process, probe, arguments);
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
