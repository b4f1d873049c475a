#include "sys/native_stacks.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "sys/files.h"
#include "sys/proc_threads.h"

namespace nlaunch::sys {
namespace {

using Clock = std::chrono::steady_clock;

/// A file as the process sees it, which may have another root.
int find_file(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, char** path, Elf** elf) {
  if (name[0] == '/' && *data != nullptr) {
    auto seen = fmt::format("/proc/{}/root{}", *static_cast<const pid_t*>(*data), name);
    if (const auto file = open_regular_file(seen)) {
      *path = ::strdup(seen.c_str());  // libdwfl frees it, and closes the file
      return ::fcntl(file->get(), F_DUPFD_CLOEXEC, 0);
    }
  }
  // What has no file of that name: the kernel's own code, and a library that was deleted.
  return dwfl_linux_proc_find_elf(module, data, name, base, path, elf);
}

/// Separate files of debug information are not looked for: names of functions are enough.
int find_no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                       char**) {
  return -1;
}

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
using DwflPtr = std::unique_ptr<Dwfl, EndDwfl>;

/// The programs and libraries of a process.
DwflPtr files_of(const pid_t& pid) {
  static const Dwfl_Callbacks kCallbacks{find_file, find_no_debug_file, nullptr, nullptr};
  DwflPtr dwfl(dwfl_begin(&kCallbacks));
  if (!dwfl || dwfl_linux_proc_report(dwfl.get(), pid) != 0) return nullptr;
  const auto tell = [](Dwfl_Module*, void** data, const char*, Dwarf_Addr, void* of) -> int {
    *data = of;
    return DWARF_CB_OK;
  };
  dwfl_getmodules(dwfl.get(), tell, const_cast<pid_t*>(&pid), 0);
  if (dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0) return nullptr;
  if (dwfl_linux_proc_attach(dwfl.get(), pid, true) != 0) return nullptr;
  // The files are opened now: no thread waits for a file system while it is held.
  const auto open = [](Dwfl_Module* module, void**, const char*, Dwarf_Addr, void*) -> int {
    Dwarf_Addr bias = 0;
    (void)dwfl_module_eh_cfi(module, &bias);
    return DWARF_CB_OK;
  };
  dwfl_getmodules(dwfl.get(), open, nullptr, 0);
  return dwfl;
}

/// A thread that stands still as long as this exists.
class HeldThread {
 public:
  HeldThread(pid_t thread, Clock::time_point end) : thread_(thread) {
    using namespace std::chrono_literals;
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
      why_not_ = std::strerror(errno);
      return;
    }
    ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
    const auto latest = std::min(end, Clock::now() + 1s);
    for (auto pause = 20us; why_not_.empty() && !stopped_; pause = std::min(pause * 2, 5000us)) {
      int status = 0;
      const auto changed = ::waitpid(thread, &status, __WALL | WNOHANG);
      if (changed == 0) {
        if (Clock::now() > latest) why_not_ = "it does not stop";
        std::this_thread::sleep_for(pause);
      } else if (changed < 0 || !WIFSTOPPED(status)) {
        why_not_ = "it has exited";
      } else {
        stopped_ = true;
        constexpr int kEvent = 16;
        if (status >> kEvent == 0) signal_ = WSTOPSIG(status);  // it was about to get one
      }
    }
  }
  ~HeldThread() {
    if (stopped_) ::ptrace(PTRACE_DETACH, thread_, nullptr, static_cast<std::intptr_t>(signal_));
  }
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  /// Empty: it stands still.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  pid_t thread_;
  bool stopped_ = false;
  int signal_ = 0;
  std::string why_not_;
};

constexpr std::size_t kMostCalls = 256;

/// An address within a call: where it goes on is the next instruction, which may belong to another function.
int take_call(Dwfl_Frame* frame, void* data) {
  auto& calls = *static_cast<std::vector<NativeCall>*>(data);
  Dwarf_Addr address = 0;
  bool is_exact = false;
  if (calls.size() == kMostCalls || !dwfl_frame_pc(frame, &address, &is_exact)) return DWARF_CB_ABORT;
  calls.push_back({is_exact ? address : address - 1, "", ""});
  return DWARF_CB_OK;
}

std::string without_mangling(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && plain ? plain.get() : name;
}

/// The names of addresses in a process, each looked up once.
class Names {
 public:
  Names(Dwfl* dwfl, pid_t pid) : dwfl_(dwfl), root_(fmt::format("/proc/{}/root", pid)) {}

  void complete(NativeCall& call) {
    const auto [known, is_new] = known_.try_emplace(call.address, call);
    if (is_new) look_up(known->second);
    call = known->second;
  }

 private:
  void look_up(NativeCall& call) const {
    auto* const module = dwfl_addrmodule(dwfl_, call.address);
    if (module == nullptr) return;
    if (const auto* name = dwfl_module_addrname(module, call.address)) call.function = without_mangling(name);
    const auto* file =
        dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    if (file != nullptr) call.file = file;
    if (call.file.starts_with(root_)) call.file.erase(0, root_.size());
  }

  Dwfl* dwfl_;
  std::string root_;
  std::map<std::uint64_t, NativeCall> known_;
};

/// Why a thread in this state is left alone; empty: it can be held.
std::string why_left_alone(char state) {
  switch (state) {
    case 'T':
      return "it is stopped (state T), and was left stopped";
    case 't':
      return "another debugger holds it (state t)";
    case 'D':
      return "it is in uninterruptible sleep (state D), where nothing can attach";
    case 'Z':
    case 'X':
      return fmt::format("it has exited (state {})", state);
    default:
      return {};
  }
}

Result<std::vector<ThreadStack>> read_stacks(pid_t pid, Clock::time_point end) {
  const auto threads = threads_of(pid);
  if (threads.empty()) return failure("sys.stacks", "it has exited");
  if (auto why = why_left_alone(threads[0].state); !why.empty() && threads[0].state != 'D')
    return failure("sys.stacks", "{}", why);
  const auto dwfl = files_of(pid);
  if (!dwfl) return failure("sys.stacks", "its files cannot be listed (/proc/{}/maps)", pid);
  std::vector<ThreadStack> stacks;
  for (const auto& thread : threads) {
    ThreadStack stack{thread.tid, thread.name, {}, why_left_alone(thread.state)};
    if (Clock::now() > end) stack.why_not = "no time left";
    if (stack.why_not.empty()) {
      const HeldThread held(thread.tid, end);
      stack.why_not = held.why_not();
      if (stack.why_not.empty() &&
          dwfl_getthread_frames(dwfl.get(), thread.tid, take_call, &stack.calls) != 0)
        stack.why_not = stack.calls.size() == kMostCalls
                            ? fmt::format("the rest is left out: more than {} calls", kMostCalls)
                            : fmt::format("the rest cannot be read: {}", dwfl_errmsg(-1));
    }
    if (thread.tid == pid && stack.calls.empty() && thread.state != 'D')
      return failure("sys.stacks", "{}", stack.why_not);
    stacks.push_back(std::move(stack));
  }
  Names names(dwfl.get(), pid);
  for (auto& stack : stacks)
    for (auto& call : stack.calls) names.complete(call);
  return stacks;
}

}  // namespace

Result<std::vector<ThreadStack>> native_stacks(pid_t pid, Clock::time_point end) {
  // The kernel lets go of what a thread has seized when that thread exits, also of what did not stop in time.
  return std::async(std::launch::async, read_stacks, pid, end).get();
}

}  // namespace nlaunch::sys
