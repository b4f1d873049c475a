#include "preflight/role_python.h"

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "plan/container.h"
#include "sys/spawn.h"

namespace nlaunch::preflight {
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
  if (plan::is_container(process.wrapper)) {  // which files are there is seen from inside alone
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
    const bool expected = python.named || (observations.plan.roles[role].kind != RoleKind::service &&
                                           !observations.for_the_machine());
    if (expected && !python.path.empty()) out[role] = std::move(python);
  }
  return out;
}

}  // namespace nlaunch::preflight
