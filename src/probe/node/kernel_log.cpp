#include "probe/node/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <deque>

#include "base/text.h"
#include "probe/output.h"
#include "probe/question.h"
#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;

/// The lines about GPUs; a very faulty machine prints the same line a hundred times a second.
class Lines {
 public:
  void add(double age, std::string text) {
    constexpr std::size_t kEnough = 500;
    if (!concerns_gpus(text)) return;
    lines_.push_back({{"age", std::max(age, 0.0)}, {"text", std::move(text)}});
    if (lines_.size() > kEnough) lines_.pop_front();
  }
  [[nodiscard]] json take() const { return json(lines_); }

 private:
  std::deque<json> lines_;
};

/// The clock of the kernel's log. It stops while the machine is suspended, which machines with such GPUs
/// never are.
double uptime() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// An errno, or 0.
int read_kmsg(Lines& lines) {
  const sys::UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return errno;
  const auto now = uptime();
  std::array<char, 8192> record{};  // a read returns one record; PRINTK_MESSAGE_MAX is 2048
  while (true) {
    const auto got = ::read(log.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: overwritten meanwhile
    if (got < 0 && errno != EAGAIN) return errno;
    if (got <= 0) return 0;
    if (auto line = parse_kmsg({record.data(), static_cast<std::size_t>(got)}))
      lines.add(now - line->seconds, std::move(line->text));
  }
}

/// "1795190400.123456 host kernel: text"
void add_journal_line(std::string_view line, double now, Lines& lines) {
  constexpr std::string_view kKernel = " kernel: ";
  const auto from = line.find(kKernel);
  double written = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), written);
  if (from == std::string_view::npos || error != std::errc()) return;
  lines.add(now - written, std::string(line.substr(from + kKernel.size())));
}

/// Whether it could be queried: a user without permission for the journal gets nothing from it, with code 0
/// or 1.
bool read_journal(Lines& lines) {
  sys::SpawnRequest request;
  request.argv = {"journalctl",          "--dmesg",     "--boot", "--no-pager", "--quiet",
                  "--output=short-unix", "--lines=5000"};
  request.env = sys::own_environment();
  const auto said = sys::run_command(std::move(request), std::chrono::seconds(3));
  if (!said || said->timed_out || !said->status.ok() || said->out.empty()) return false;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto now = std::chrono::duration<double>(since_1970).count();
  for (const auto& line : text::split(said->out, '\n')) add_journal_line(line, now, lines);
  return true;
}

}  // namespace

bool concerns_gpus(std::string_view line) {
  constexpr std::string_view kWords[] = {"Xid (", "fallen off the bus", " blocked for more than "};
  return std::ranges::any_of(kWords, [&](auto word) { return line.find(word) != std::string_view::npos; });
}

std::optional<KernelLine> parse_kmsg(std::string_view record) {
  // "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,...];TEXT\n KEY=VALUE\n"; the priority's upper bits are the
  // facility
  constexpr unsigned kKernelsOwn = 8;
  const auto text = record.find(';');
  if (text == std::string_view::npos) return std::nullopt;
  const auto head = text::split(record.substr(0, text), ',');
  unsigned priority = 0;
  std::uint64_t microseconds = 0;
  if (head.size() < 4 ||
      std::from_chars(head[0].data(), head[0].data() + head[0].size(), priority).ec != std::errc() ||
      std::from_chars(head[2].data(), head[2].data() + head[2].size(), microseconds).ec != std::errc() ||
      priority >= kKernelsOwn)
    return std::nullopt;
  const auto line = record.substr(text + 1);
  return KernelLine{static_cast<double>(microseconds) * 1e-6, std::string(line.substr(0, line.find('\n')))};
}

namespace {

/// `kernel-log`: the kernel's lines since boot about GPUs or hung tasks:
///   event "kernel-log"; source ("/dev/kmsg", "journalctl"), lines [{age (seconds), text}], oldest first, the
///   last 500 of them; or denied (text): why this user cannot read it; or error (text).
json read_kernel_log(Arguments /*arguments*/) {
  json out{{"event", "kernel-log"}};
  Lines lines;
  const int error = read_kmsg(lines);
  if (error == 0) {
    out["source"] = "/dev/kmsg";
  } else if (lines = {}; read_journal(lines)) {
    out["source"] = "journalctl";
  } else {
    const bool denied = error == EACCES || error == EPERM || error == ENOENT;
    out[denied ? "denied" : "error"] = fmt::format("/dev/kmsg: {}", std::strerror(error));
    return out;
  }
  out["lines"] = lines.take();
  return out;
}

const Registered<Question> kernel_log_question{{
    .order = 70,
    .name = "kernel-log",
    .what = "kernel log lines about GPUs",
    .answer = read_kernel_log,
}};

}  // namespace
}  // namespace nlaunch::probe
