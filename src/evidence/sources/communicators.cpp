#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/source.h"
#include "sys/files.h"
#include "sys/tcp_client.h"

namespace nlaunch::evidence {
namespace {

// What NCCL's own monitoring reports about all communicators of the process, and of their ranks everywhere.

/// The timeout of NCCL's collective over its RAS threads, not of ours; its default is 5 s
/// (RAS_COLLECTIVE_LEG_TIMEOUT of src/ras/ras_internal.h), and a dead peer costs one.
constexpr int kRasTimeout = 5;
constexpr std::size_t kLargestRas = 256U << 20U;

/// One request with a one-line answer.
Result<std::string> ask_ras(sys::TcpClient& client, const std::string& request) {
  if (const auto sent = client.send(request + "\n"); !sent) return std::unexpected(sent.error());
  return client.read_line();
}

struct RasAnswer {
  bool json = false;
  std::string text;
};

/// src/ras/client.cc: a handshake of versions, of which the server accepts any, options that it answers with
/// OK, then the request, after whose answer it closes the connection. JSON was added in 2.28.7; before that
/// it answers ERROR.
Result<RasAnswer> ras_status(const std::string& address, sys::TcpClient::Clock::time_point deadline) {
  auto client = sys::TcpClient::connect(address, deadline);
  if (!client) return std::unexpected(client.error());
  const auto server = ask_ras(*client, "CLIENT PROTOCOL 2");
  if (!server) return std::unexpected(server.error());
  if (!server->starts_with("SERVER PROTOCOL")) {
    return failure("evidence.ras", "{} is not NCCL's: it answers '{}'", address, text::printable(*server));
  }
  if (const auto set = ask_ras(*client, fmt::format("TIMEOUT {}", kRasTimeout)); !set)
    return std::unexpected(set.error());
  const auto format = ask_ras(*client, "SET FORMAT json");
  if (!format) return std::unexpected(format.error());
  if (const auto sent = client->send("VERBOSE STATUS\n"); !sent) return std::unexpected(sent.error());
  auto text = client->read_rest(kLargestRas);
  if (!text) return std::unexpected(text.error());
  return RasAnswer{*format == "OK", std::move(*text)};
}

Found collect_ras(const CollectContext& context) {
  Found found;
  if (context.subject->ras.empty() || context.tree.empty()) return found;
  const auto answer = ras_status(context.subject->ras, context.deadline);
  if (!answer) {
    found.missing.push_back({"NCCL RAS", answer.error().first_message(),
                             "NCCL 2.24 or newer listens there once a communicator exists"});
    return found;
  }
  const std::string file = answer->json ? "ras.json" : "ras.txt";
  if (context.write(file, answer->text)) found.got.push_back(file);
  return found;
}

const Registered<Source> nccl_ras_source{{
    .order = 90,
    .name = "NCCL RAS",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(15),
    .lane = 3,
    .collect = collect_ras,
}};

// PyTorch's flight recorder: what each rank has enqueued last. A byte in its pipe makes it write, in its own
// thread (ProcessGroupNCCL.cpp, DumpPipe and the heartbeat monitor, which checks the pipe once a second).

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint64_t kLargestDump = 512U << 20U;
constexpr Duration kDumpGlance = 100ms;
constexpr Duration kToReadRequest = 5s;

std::set<int> ranks_of_subject(const CollectContext& context) {
  std::set<int> ranks;
  if (context.subject->rank) ranks.insert(*context.subject->rank);
  for (const auto& process : context.tree) {
    if (process.rank) ranks.insert(*process.rank);
  }
  return ranks;
}

/// The pipe of a process that reads it, with the request in it; else empty. Never waits.
sys::UniqueFd trigger_dump(const std::string& pipe) {
  sys::UniqueFd fd(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  const bool sent =
      fd && ::fstat(fd.get(), &info) == 0 && S_ISFIFO(info.st_mode) && ::write(fd.get(), "1", 1) == 1;
  return sent ? std::move(fd) : sys::UniqueFd();
}

/// The process has not read the request yet.
bool is_unread(const sys::UniqueFd& pipe) {
  int bytes = 0;
  return ::ioctl(pipe.get(), FIONREAD, &bytes) == 0 && bytes > 0;
}

struct FileStamp {
  fs::file_time_type time{};
  std::uintmax_t size = 0;
  bool operator==(const FileStamp&) const = default;
};

FileStamp stamp_of(const std::string& path) {
  std::error_code error;
  FileStamp stamp{fs::last_write_time(path, error), fs::file_size(path, error)};
  return error ? FileStamp{} : stamp;
}

/// A recording that was asked for, or the one that was there.
struct Dump {
  int rank = 0;
  std::string file;
  FileStamp before;
  sys::UniqueFd request;
  FileStamp last{};
  bool is_there = false;
  bool is_earlier = false;
};

/// Complete once the file differs from the previous one and no longer grows. The previous one is taken if the
/// process does not read the request in the time in which it would: PyTorch does not read the pipe any more
/// once it has written a recording by itself, because a collective failed or timed out (ProcessGroupNCCL.cpp,
/// HeartbeatMonitor::runLoop).
void look_at(Dump& dump, bool would_have_read) {
  const auto now = stamp_of(dump.file);
  dump.is_there = now != dump.before && now == dump.last && now.size > 0;
  dump.is_earlier = now == dump.before && now.size > 0 && would_have_read && is_unread(dump.request);
  dump.last = now;
}

void await_dumps(std::vector<Dump>& dumps, const CollectContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  const auto is_open = [](const Dump& dump) { return dump.request && !dump.is_there && !dump.is_earlier; };
  while (context.left() > kDumpGlance && std::ranges::any_of(dumps, is_open)) {
    std::this_thread::sleep_for(kDumpGlance);
    const bool would_have_read = std::chrono::steady_clock::now() - begin > kToReadRequest;
    for (auto& dump : dumps) {
      if (is_open(dump)) look_at(dump, would_have_read);
    }
  }
}

Missing not_triggered(int rank, const std::string& pipe) {
  return {fmt::format("flight recorder of rank {}", rank), fmt::format("no process reads {}", pipe),
          "PyTorch 2.4 or newer with the NCCL backend, TORCH_FR_BUFFER_SIZE=2000 and "
          "TORCH_NCCL_DUMP_ON_TIMEOUT=1"};
}

void keep(const Dump& dump, const CollectContext& context, Found& found) {
  const auto content = sys::read_regular_file(dump.file, kLargestDump);
  const auto file = fmt::format("{}flight-recorder.{}", dump.is_earlier ? "earlier-" : "", dump.rank);
  // Unchanged: masking would break a pickle. It contains no values of variables.
  if (!content || !sys::write_file_atomically(context.folder / file, *content)) return;
  found.got.push_back(file);
  // What is there the next time was not asked for, and is PyTorch's own.
  std::error_code error;
  const auto attempt = fs::path(context.spec.folder).parent_path().parent_path().native() + "/";
  if (!dump.is_earlier && dump.file.starts_with(attempt)) fs::remove(dump.file, error);
}

/// All ranks of the tree are asked at once.
Found collect_flight_recorder(const CollectContext& context) {
  Found found;
  if (context.subject->recorder_dump.empty()) return found;
  std::vector<Dump> dumps;
  for (const int rank : ranks_of_subject(context)) {
    auto& dump = dumps.emplace_back(rank, fmt::format("{}{}", context.subject->recorder_dump, rank));
    dump.before = dump.last = stamp_of(dump.file);
    const auto pipe = fmt::format("{}{}.pipe", context.subject->recorder_pipe, rank);
    if (!context.subject->recorder_pipe.empty()) dump.request = trigger_dump(pipe);
    dump.is_earlier = !dump.request && dump.before != FileStamp{};
    if (!dump.request && !dump.is_earlier) found.missing.push_back(not_triggered(rank, pipe));
  }
  await_dumps(dumps, context);
  for (const auto& dump : dumps) {
    if (dump.is_there || dump.is_earlier) {
      keep(dump, context, found);
    } else if (dump.request) {
      found.missing.push_back({fmt::format("flight recorder of rank {}", dump.rank),
                               fmt::format("it was triggered, but {} did not appear in time", dump.file),
                               ""});
    }
  }
  return found;
}

const Registered<Source> flight_recorder_source{{
    .order = 100,
    .name = "flight recorder",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(15),
    .lane = 4,
    .collect = collect_flight_recorder,
}};

}  // namespace
}  // namespace nlaunch::evidence
