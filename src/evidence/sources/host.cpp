#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/json.h"
#include "base/registry.h"
#include "base/text.h"
#include "evidence/source.h"
#include "preflight/ask/ask_probe.h"
#include "sys/files.h"
#include "sys/spawn.h"

// What the host knows: its GPUs and its kernel.
namespace nlaunch::evidence {
namespace {

Found collect_gpus(const CollectContext& context) {
  Found found;
  if (context.spec.probe.empty()) return found;
  const auto line =
      preflight::ask_probe(context.spec.probe, {"gpu-health"}, sys::own_environment(), context.left());
  constexpr auto kFile = "gpus.json";
  if (!line) {
    found.missing.push_back({"GPUs", line.error().first_message(), ""});
  } else if (line->contains("error")) {
    found.missing.push_back({"GPUs", line->value("error", ""), ""});
  } else if (context.write(kFile, json_text(*line, 1) + "\n")) {
    found.got.emplace_back(kFile);
  }
  return found;
}

const Registered<Source> gpus_source{{
    .order = 10,
    .name = "GPUs",
    .of = Source::Of::host,
    .bound = std::chrono::seconds(15),
    .lane = 0,
    .collect = collect_gpus,
}};

Found collect_kernel_log(const CollectContext& context) {
  constexpr std::size_t kLines = 500;
  Found found;
  const sys::UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) {
    found.missing.push_back({"kernel log", fmt::format("/dev/kmsg: {}", std::strerror(errno)),
                             "kernel.dmesg_restrict=0, or membership in the group adm, allows it"});
    return found;
  }
  std::deque<std::string> lines;
  std::array<char, 8192> record{};  // a read returns one record; PRINTK_MESSAGE_MAX is 2048
  for (;;) {
    const auto got = ::read(log.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: overwritten meanwhile
    if (got <= 0) break;
    lines.push_back(text::printable(text::trim({record.data(), static_cast<std::size_t>(got)})));
    if (lines.size() > kLines) lines.pop_front();
  }
  std::string text;
  for (const auto& line : lines) text += fmt::format("{}\n", line);
  constexpr auto kFile = "kernel-log.txt";
  if (context.write(kFile, text)) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> kernel_log_source{{
    .order = 20,
    .name = "kernel log",
    .of = Source::Of::host,
    .bound = std::chrono::seconds(5),
    .lane = 1,
    .collect = collect_kernel_log,
}};

}  // namespace
}  // namespace nlaunch::evidence
