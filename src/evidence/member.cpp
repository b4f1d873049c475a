#include "evidence/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace nlaunch::evidence {
namespace {

using Doing = Situation::Doing;

template <std::size_t Size>
bool any_of(const std::array<std::string_view, Size>& parts, std::string_view text) {
  return std::ranges::any_of(parts, [&](auto part) { return text.find(part) != std::string_view::npos; });
}

/// Files of PyTorch and of engines whose functions other ranks must call, too.
bool is_collective(const Frame& frame) {
  constexpr std::array<std::string_view, 4> kFiles{"device_communicators/pynccl.py",  // of vLLM and SGLang
                                                   "torch/distributed/distributed_c10d.py",
                                                   "torch/distributed/_functional_collectives.py",
                                                   "torch/distributed/nn/functional.py"};
  return any_of(kFiles, frame.file);
}

/// Code that came with Python or from a package: a user wants to see which of their own code called it.
bool is_library(const Frame& frame) {
  constexpr std::array<std::string_view, 4> kParts{"/torch/", "-packages/", "lib/python", "<frozen"};
  // As py-spy shortens them.
  constexpr std::array<std::string_view, 14> kPackages{
      "uvloop/",  "torch/",    "asyncio/", "concurrent/futures/", "http/",    "multiprocessing/", "urllib/",
      "urllib3/", "requests/", "httpx/",   "httpcore/",           "aiohttp/", "anyio/",           "zmq/"};
  constexpr std::array<std::string_view, 5> kStandard{"threading.py", "selectors.py", "socket.py", "ssl.py",
                                                      "queue.py"};
  return any_of(kParts, frame.file) || std::ranges::find(kStandard, frame.file) != kStandard.end() ||
         std::ranges::any_of(kPackages, [&](auto package) { return frame.file.starts_with(package); });
}

std::string user_place(const Stack& stack) {
  const auto found = std::ranges::find_if(stack, [](const Frame& frame) { return !is_library(frame); });
  if (found != stack.end()) return found->str();
  return stack.empty() ? "" : stack.front().str();
}

bool has_native(const Stack& stack, const auto& names) {
  return std::ranges::any_of(
      stack, [&](const Frame& frame) { return any_of(names, frame.function) || any_of(names, frame.file); });
}

bool in_native_collective(const Stack& stack) {
  constexpr std::array<std::string_view, 5> kNames{"c10d::", "gloo::", "libgloo", "libnccl", "libmpi"};
  return has_native(stack, kNames);
}

/// In CUDA's driver: waiting for work to complete, or for room to queue more.
bool waits_for_gpu(const Stack& native, const Stack& python) {
  constexpr std::array<std::string_view, 4> kNative{"libcuda.so", "StreamSynchronize", "DeviceSynchronize",
                                                    "EventSynchronize"};
  constexpr std::array<std::string_view, 2> kPython{"torch/cuda/__init__.py", "torch/cuda/streams.py"};
  return has_native(native, kNative) || (!python.empty() && any_of(kPython, python.front().file) &&
                                         python.front().function == "synchronize");
}

bool sleeps(const Member& member) {
  return member.wait_channel.find("nanosleep") != std::string::npos;
}

/// "vLLM API server (pid 4711)"; empty if its title is unknown.
std::string program_of(const Member& member) {
  return member.title.empty() ? "" : Part{.pid = member.pid, .title = member.title}.str();
}

std::string how(const Member& member) {
  constexpr double kBusy = 0.2;  // of a CPU: more processes than CPUs share them
  if (sleeps(member)) return "sleeps";
  return member.state == 'R' || member.cpu > kBusy ? "computes" : "waits";
}

/// The sign that its program has done its work and is shutting down; empty if there is none.
std::string sign_of_end(const Member& member) {
  constexpr std::array<std::string_view, 3> kPython{
      "_shutdown (threading.py", "_exit_function (multiprocessing/", "_run_exitfuncs (atexit"};
  constexpr std::array<std::string_view, 1> kNative{"Py_Finalize"};
  const bool ends =
      std::ranges::any_of(member.python, [&](const Frame& frame) { return any_of(kPython, frame.str()); });
  if (ends || has_native(member.native, kNative)) return "its Python is shutting down";
  return member.last_step.empty() ? "" : fmt::format("its last step, {}, is done", member.last_step);
}

/// One of its other processes that cannot continue, unless its main program cannot either.
std::optional<Part> part_held_up(const Member& member) {
  constexpr std::string_view kHeld = "TtD";
  if (kHeld.contains(member.state) || member.state == 'X' || member.state == 'Z') return std::nullopt;
  const auto found =
      std::ranges::find_if(member.parts, [&](const Part& part) { return kHeld.contains(part.state); });
  return found == member.parts.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::string Member::name() const {
  return rank && !process.ends_with(fmt::format(".{}", *rank)) ? fmt::format("{} (rank {})", process, *rank)
                                                               : process;
}

std::string Member::str() const {
  const auto who = rank ? fmt::format("{} (rank {})", process, *rank) : process;
  return host.empty() ? who : fmt::format("{} on {}", who, host);
}

std::string Part::str() const {
  return fmt::format("{} (pid {})", title, pid);
}

Situation situation_of(const Part& part) {
  Member member;
  member.state = part.state;
  member.cuda = true;  // it may: not checked
  member.python = part.python;
  member.native = part.native;
  return situation_of(member);
}

bool is_out_of_action(const Situation& situation) {
  using enum Situation::Doing;
  return !situation.part &&
         (situation.doing == gone || situation.doing == stopped || situation.doing == uninterruptible);
}

Situation situation_of(const Member& member) {
  // A server answers while the processes that work for it are stopped: they are what blocks it.
  if (const auto held = part_held_up(member)) {
    return {.doing = held->state == 'D' ? Doing::uninterruptible : Doing::stopped,
            .operation = "",
            .place = "",
            .how = "",
            .certain = true,
            .part = held};
  }
  const auto end = sign_of_end(member);
  switch (member.state) {
    case 'X':
    case 'Z':
      return {Doing::gone, "", "", "", true};
    case 'T':
    case 't':
      return {Doing::stopped, "", user_place(member.python), program_of(member), true};
    case 'D':
      if (!end.empty()) return {Doing::ending, "", "", end, true};
      return {Doing::uninterruptible, "", user_place(member.python), program_of(member), true};
    default:
      break;
  }
  if (member.server && member.server->paused) return {Doing::paused, "", "", "", true};
  const auto& python = member.python;
  // The outermost of them is what the user's program called.
  const auto called = std::ranges::find_if(python.rbegin(), python.rend(), is_collective);
  if (called != python.rend()) {
    const Stack callers(called.base(), python.end());
    return {Doing::collective, called->function, user_place(callers), "", true};
  }
  const auto place = user_place(python);
  if (in_native_collective(member.native)) return {Doing::collective, "", place, "", true};
  if (waits_for_gpu(member.native, python)) return {Doing::gpu, "", place, "", true};
  if (!end.empty()) return {Doing::ending, "", place, end, true};
  if (python.empty() && member.native.empty()) return {Doing::unknown, "", "", how(member), false};
  const bool certain = !member.native.empty() || !member.cuda || sleeps(member);
  return {Doing::elsewhere, "", place, how(member), certain};
}

std::string describe(const Situation& situation) {
  if (situation.part) {
    return fmt::format(
        "has a process that is {}: {}",
        situation.doing == Doing::stopped ? "stopped (state T)" : "in uninterruptible sleep (state D)",
        situation.part->str());
  }
  const auto at = situation.place.empty() ? "" : fmt::format(" in {}", situation.place);
  const auto who = situation.how.empty() ? "" : ": " + situation.how;
  switch (situation.doing) {
    case Doing::gone:
      return "is gone";
    case Doing::stopped:
      return fmt::format("is stopped (state T){}{}", who, at);
    case Doing::uninterruptible:
      return fmt::format("is in uninterruptible sleep (state D){}{}", who, at);
    case Doing::paused:
      return "is paused (GET /is_paused), and nothing has resumed it";
    case Doing::ending:
      return fmt::format("is exiting: {}", situation.how);
    case Doing::collective:
      return fmt::format("waits in {}{}", situation.operation.empty() ? "a collective" : situation.operation,
                         situation.place.empty() ? "" : fmt::format(", called from {}", situation.place));
    case Doing::gpu:
      return fmt::format("waits for its GPU{}", at);
    case Doing::elsewhere:
      return fmt::format("{}{}, outside of any collective", situation.how, at);
    case Doing::unknown:
      break;
  }
  return fmt::format("{}, location unknown", situation.how.empty() ? "runs" : situation.how);
}

}  // namespace nlaunch::evidence
