#include "preflight/ask/role_library.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/container.h"
#include "preflight/ask/ask_probe.h"
#include "sys/command.h"
#include "sys/spawn.h"

namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kInWheel = "nvidia/nccl/lib/libnccl.so.2";

/// Finds where a Python keeps its packages. Run with -S: `site` is imported but not executed, so no .pth file
/// and no sitecustomize.py runs. The program searches itself, since its directories may be those of a
/// container.
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
    fact.error = said.error().first_message();
    return fact;
  }
  fact.error = said->value("error", "");
  fact.version = said->value("version", "");
  if (fact.path.empty()) fact.path = said->value("path", "");
  return fact;
}

namespace {

namespace fs = std::filesystem;

bool is_python(const std::string& path) {
  return fs::path(path).filename().string().starts_with("python");
}

/// The interpreter in a script's first line: "#!/usr/bin/env python3" or "#!/opt/venv/bin/python". Else
/// empty.
std::string interpreter_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string line;
  constexpr std::size_t kLongest = 512;
  line.resize(kLongest);
  stream.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(stream.gcount()));
  if (!line.starts_with("#!")) return "";
  line = line.substr(2, line.find('\n') - 2);
  for (const auto& word : text::split(text::trim(line), ' ')) {
    if (is_python(word)) return word;
  }
  return "";
}

}  // namespace

RolePython python_of(const plan::BoundProcess& process) {
  if (plan::is_container(process.wrapper)) {  // only from inside can be seen which files exist
    const bool named = !process.argv.empty() && is_python(process.argv[0]);
    return {named ? process.argv[0] : "python3", named};
  }
  const auto path = variable_of(process, "PATH").value_or("");
  const auto program = process.argv.empty() ? Result<std::string>("")
                                            : sys::find_program(process.argv[0], path, process.workdir);
  if (program && is_python(*program)) return {*program, true};
  const auto by_script = program ? interpreter_of(*program) : std::string();
  if (!by_script.empty()) {
    if (const auto found = sys::find_program(by_script, path, process.workdir)) return {*found, true};
  }
  return {sys::find_program("python3", path, process.workdir).value_or(""), false};
}

std::map<std::uint32_t, RolePython> pythons_of_roles(const NodeObservations& observations) {
  std::map<std::uint32_t, RolePython> out;
  for (const auto& [role, process] : observations.first_of_roles()) {
    auto python = python_of(*process);
    const bool expected =
        python.named || (computes(observations.plan.roles[role].kind) && !observations.for_the_machine());
    if (expected && !python.path.empty()) out[role] = std::move(python);
  }
  return out;
}

}  // namespace nlaunch::preflight
