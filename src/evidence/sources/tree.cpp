#include "evidence/sources/tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <string_view>
#include <thread>

#include "base/text.h"
#include "scope/wrapper.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::evidence {
namespace {

using Clock = std::chrono::steady_clock;

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::optional<int> rank_of(pid_t pid) {
  const auto environment = sys::initial_environment(pid);
  const auto text = sys::env_value(environment, "RANK");
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return error == std::errc() ? std::optional(rank) : std::nullopt;
}

bool is_program(const std::string& executable, const std::vector<std::string>& argv) {
  std::vector<const char*> arguments;
  for (const auto& argument : argv) arguments.push_back(argument.c_str());
  arguments.push_back(nullptr);
  return nlaunch_kind_of(executable.c_str(), arguments.data()) == NLAUNCH_PROGRAM;
}

bool has_cuda(pid_t pid) {
  const auto mapped = sys::mapped_files(pid).value_or(std::vector<sys::MappedFile>{});
  return std::ranges::any_of(mapped,
                             [](const auto& file) { return base_name(file.path).starts_with("libcuda.so"); });
}

std::uint64_t ticks_of(const std::vector<sys::ThreadInfo>& threads) {
  std::uint64_t sum = 0;
  for (const auto& thread : threads) sum += thread.cpu_ticks;
  return sum;
}

ProcessState look_at(const sys::ProcessInfo& info) {
  ProcessState process;
  process.pid = info.pid;
  process.parent = info.parent;
  process.name = info.name;
  process.state = info.state;
  process.threads = sys::threads_of(info.pid);
  process.system_call = sys::system_call(info.pid);
  process.kernel_stack = sys::kernel_stack(info.pid);
  process.files = sys::open_files(info.pid).size();
  process.executable = sys::executable(info.pid);
  process.python = base_name(process.executable).starts_with("python");
  process.program = true;  // of one that cannot be queried
  return process;
}

/// The content of its memory. If the process holds the lock of that in state D, the reader waits for it.
void look_into(ProcessState& process) {
  const auto argv = sys::command_line(process.pid);
  process.command = text::join(argv, " ");
  process.title = sys::process_title(argv, process.name);
  process.rank = rank_of(process.pid);
  process.program = is_program(process.executable, argv);
  process.cuda = has_cuda(process.pid);
}

/// What the second observation adds.
void compare(ProcessState& process, double seconds) {
  const auto info = sys::process_info(process.pid);
  if (!info) {
    process.state = 'X';
    return;
  }
  if (info->state == 'Z' && process.state != 'Z') process.state = 'X';
  if (process.state == 'X') return;
  const auto threads = sys::threads_of(process.pid);
  const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK)) * seconds;
  const auto used = [&](std::uint64_t before, std::uint64_t now) {
    return now > before ? static_cast<double>(now - before) / per_second : 0.0;
  };
  process.cpu = used(ticks_of(process.threads), ticks_of(threads));
  if (!threads.empty() && !process.threads.empty())
    process.main_cpu = used(process.threads[0].cpu_ticks, threads[0].cpu_ticks);
  process.state = state_of_looks(process.state, info->state, process.main_cpu);
}

}  // namespace

char state_of_looks(char first, char second, double main_cpu) {
  if (second != 'D') return second;
  return first == 'D' && main_cpu == 0 ? 'D' : 'S';
}

Tree look_at_tree(pid_t root) {
  constexpr std::chrono::milliseconds kBetween{400};
  const auto info = sys::process_info(root);
  if (!info) return {};
  const auto first = Clock::now();
  Tree tree{look_at(*info)};
  for (const auto& below : sys::descendants(root)) tree.push_back(look_at(below));
  std::this_thread::sleep_until(first + kBetween);
  for (auto& process : tree) {
    compare(process, std::chrono::duration<double>(Clock::now() - first).count());
    if (process.state != 'D') look_into(process);
  }
  // A helper that has exited meanwhile (the `sleep` of a shell's loop) says nothing about the process itself.
  std::erase_if(tree, [&](const auto& process) { return process.state == 'X' && process.pid != root; });
  return tree;
}

}  // namespace nlaunch::evidence
