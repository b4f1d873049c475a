#include "evidence/debugger.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::evidence {
namespace {

/// Whether only ancestors may attach: 1 and above (Documentation/admin-guide/LSM/Yama.rst).
bool yama_restricts() {
  constexpr std::uint64_t kSmall = 64;
  const auto scope = sys::read_regular_file("/proc/sys/kernel/yama/ptrace_scope", kSmall);
  return scope && text::trim(*scope) != "0";
}

}  // namespace

std::string find_tool(const std::string& name, pid_t pid) {
  const auto its = sys::initial_environment(pid);
  const auto venv = sys::env_value(its, "VIRTUAL_ENV");
  const auto own = sys::own_environment();
  const auto path = fmt::format("{}{}{}:{}", venv, venv.empty() ? "" : "/bin:", sys::env_value(its, "PATH"),
                                sys::env_value(own, "PATH"));
  return sys::find_program(name, path, "").value_or("");
}

Missing refused(const std::string& what, const std::string& complaint) {
  const auto lower = text::lower(complaint);
  const bool permission = lower.find("permission denied") != std::string::npos ||
                          lower.find("not permitted") != std::string::npos;
  if (permission && yama_restricts()) {
    return {
        what, complaint,
        "sudo sysctl kernel.yama.ptrace_scope=0 permits it; so does taking the evidence from within the run"};
  }
  return {what, complaint, permission ? "the user of the process, or root, may look into it" : ""};
}

}  // namespace nlaunch::evidence
