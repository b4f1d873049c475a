#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "evidence/source.h"
#include "sys/files.h"

// PyTorch's flight recorder: what each rank has enqueued last. It is told to write by a byte in its pipe, and
// does so in a thread of its own (ProcessGroupNCCL.cpp, DumpPipe and the heartbeat monitor, which looks
// into the pipe once a second).
namespace nlaunch::evidence {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint64_t kLargest = 512U << 20U;
constexpr Duration kGlance = 100ms;

std::set<int> ranks_of(const CollectContext& context) {
  std::set<int> ranks;
  if (context.subject->rank) ranks.insert(*context.subject->rank);
  for (const auto& process : context.tree) {
    if (process.rank) ranks.insert(*process.rank);
  }
  return ranks;
}

/// Never waits: nobody may read there.
bool trigger(const std::string& pipe) {
  const sys::UniqueFd fd(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  return fd && ::fstat(fd.get(), &info) == 0 && S_ISFIFO(info.st_mode) && ::write(fd.get(), "1", 1) == 1;
}

struct Stamp {
  fs::file_time_type time{};
  std::uintmax_t size = 0;
  bool operator==(const Stamp&) const = default;
};

Stamp stamp_of(const std::string& path) {
  std::error_code error;
  Stamp stamp{fs::last_write_time(path, error), fs::file_size(path, error)};
  return error ? Stamp{} : stamp;
}

/// Until the file is another one than before, and grows no more.
bool await_dump(const std::string& path, const Stamp& before, const CollectContext& context) {
  Stamp last = before;
  while (context.left() > kGlance) {
    std::this_thread::sleep_for(kGlance);
    const auto now = stamp_of(path);
    if (now != before && now == last && now.size > 0) return true;
    last = now;
  }
  return false;
}

Missing not_triggered(int rank, const std::string& pipe) {
  return {fmt::format("flight recorder of rank {}", rank), fmt::format("nobody reads {}", pipe),
          "PyTorch 2.4 or newer with the NCCL backend, TORCH_FR_BUFFER_SIZE=2000 and "
          "TORCH_NCCL_DUMP_ON_TIMEOUT=1"};
}

void collect_of(int rank, const CollectContext& context, Found& found) {
  const auto pipe = fmt::format("{}{}.pipe", context.subject->recorder_pipe, rank);
  const auto dump = fmt::format("{}{}", context.subject->recorder_dump, rank);
  const auto before = stamp_of(dump);
  if (!context.subject->recorder_pipe.empty() && trigger(pipe)) {
    if (!await_dump(dump, before, context)) {
      found.missing.push_back({fmt::format("flight recorder of rank {}", rank),
                               fmt::format("it was triggered, and {} did not come in time", dump), ""});
      return;
    }
  } else if (before == Stamp{}) {
    found.missing.push_back(not_triggered(rank, pipe));
  }
  const auto content = sys::read_regular_file(dump, kLargest);
  const auto file = fmt::format("flight-recorder.{}", rank);
  // As it is: masking would break a pickle. It holds no values of variables.
  if (content && sys::write_file_atomically(context.folder / file, *content)) found.got.push_back(file);
}

}  // namespace

Found collect_flight_recorder(const CollectContext& context) {
  Found found;
  if (context.subject->recorder_dump.empty()) return found;
  for (const int rank : ranks_of(context)) collect_of(rank, context, found);
  return found;
}

}  // namespace nlaunch::evidence
