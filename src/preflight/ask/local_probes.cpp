#include "preflight/ask/local_probes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "base/text.h"
#include "plan/container.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::preflight {
namespace {

constexpr Duration kForLocalKill = std::chrono::seconds(5);
/// Bytes: messages between ranks are written without waiting for one that does not read.
constexpr int kMail = 1 << 20;

/// The last line of a file with this text in it; empty: there is none.
std::string last_line_with(std::string_view wanted, const std::string& path) {
  constexpr std::uint64_t kLimit = 16U << 20U;
  const auto said = sys::read_regular_file(path, kLimit);
  if (!said) return "";
  const auto trimmed = text::trim(*said);
  const auto at = trimmed.rfind(wanted);
  if (at == std::string_view::npos) return "";
  const auto before = trimmed.substr(0, at).rfind('\n');
  const auto line = trimmed.substr(before == std::string_view::npos ? 0 : before + 1);
  return text::printable(line.substr(0, line.find('\n')));
}

}  // namespace

LocalProbes::LocalProbes(sys::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)), probes_(options_.ranks.size()) {}

LocalProbes::~LocalProbes() {
  if (patience_) loop_.cancel(*patience_);
  for (const auto& probe : probes_) {
    if (probe.out) loop_.unwatch(probe.out.get());
    if (probe.pid > 0) loop_.forget_child(probe.pid);
  }
}

std::string LocalProbes::error_file(std::size_t index) const {
  return fmt::format("{}/probe.{}.err", options_.folder, options_.first + index);
}

void LocalProbes::tell(std::size_t index, decltype(ProbeNews::what) what) {
  tell_({options_.first + index, std::move(what)});
}

void LocalProbes::start(Tell tell_all) {
  tell_ = std::move(tell_all);
  for (const auto rank : options_.wanted) {
    const auto i = rank - options_.first;
    if (i >= probes_.size()) continue;
    if (auto started = start(i); !started) {
      tell(i, probe_news::Ended{"could not be started: " + started.error().first_message()});
    }
  }
}

Result<void> LocalProbes::start(std::size_t index) {
  auto in = sys::make_pipe(kMail);
  if (!in) return std::unexpected(in.error());
  auto out = sys::make_pipe();
  if (!out) return std::unexpected(out.error());
  const auto& process = options_.node.processes[options_.ranks[index].bound];
  const sys::UniqueFd err(::open(error_file(index).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  std::error_code error;
  sys::SpawnRequest request;
  auto start =
      plan::start_of_probe(process, {options_.probe, "rank", "--spec", options_.folder + "/spec.json",
                                     "--index", fmt::format("{}", options_.first + index)});
  request.argv = std::move(start.argv);
  request.env = std::move(start.env);
  request.cwd = std::filesystem::is_directory(process.workdir, error) ? process.workdir : options_.folder;
  request.cpus = process.cpus;
  request.in = in->read.get();
  request.out = out->write.get();
  request.err = err.get();
  const auto pid = sys::spawn(request);
  if (!pid) return std::unexpected(pid.error());
  auto& probe = probes_[index];
  probe.pid = *pid;
  probe.in = std::move(in->write);
  probe.out = std::move(out->read);
  ::fcntl(probe.out.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(probe.out.get(), [this, index] { read(index); });
  loop_.on_child(*pid, [this, index](sys::WaitStatus status) { ended(index, status); });
  return {};
}

void LocalProbes::read(std::size_t index) {
  auto& probe = probes_[index];
  std::array<char, 65536> block;
  for (;;) {
    const auto got = ::read(probe.out.get(), block.data(), block.size());
    if (got > 0) {
      probe.pending.append(block.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) {
      loop_.unwatch(probe.out.get());
      probe.out.reset();
    }
    break;
  }
  auto& pending = probe.pending;
  for (auto end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
    tell(index, probe_news::Said{pending.substr(0, end)});
    pending.erase(0, end + 1);
  }
}

void LocalProbes::ended(std::size_t index, sys::WaitStatus status) {
  auto& probe = probes_[index];
  probe.pid = -1;
  if (probe.out) read(index);
  // The warnings of NCCL are in a file while its log tells the transports.
  const auto said = last_line_with("", error_file(index));
  const auto log = fmt::format("{}/transport.{}.log", options_.folder, options_.first + index);
  const auto words = said.empty() ? last_line_with("NCCL WARN", log) : said;
  tell(index, probe_news::Ended{status.str() + (words.empty() ? "" : "; last output: " + words)});
}

void LocalProbes::say(std::size_t rank, const std::string& line) {
  const auto& probe = probes_.at(rank - options_.first);
  if (probe.pid > 0) sys::write_all(probe.in.get(), line + "\n");
}

void LocalProbes::kill() {
  for (const auto& probe : probes_) {
    if (probe.pid > 0) ::kill(-probe.pid, SIGKILL);
  }
  if (!patience_) patience_ = loop_.after(kForLocalKill, [this] { give_up(); });
}

void LocalProbes::give_up() {
  patience_.reset();
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    const auto pid = probes_[i].pid;
    if (pid < 0) continue;
    const auto info = sys::process_info(pid);
    loop_.forget_child(pid);
    probes_[i].pid = -1;
    tell(i, probe_news::Stuck{fmt::format("pid {}, state {}", pid,
                                          info ? std::string(1, info->state) : std::string("unknown"))});
  }
}

}  // namespace nlaunch::preflight
