#include "supervise/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/text.h"
#include "supervise/lines.h"
#include "supervise/log_file.h"
#include "supervise/mask_stream.h"

namespace nlaunch::supervise {
namespace {

constexpr std::size_t kBlock = 128U << 10U;
/// Output kept per process for the failure report.
constexpr std::size_t kTail = 8U << 10U;

/// 64 KiB pipes if there are many: all pipes of a user share 64 MiB (fs.pipe-user-pages-soft).
int pipe_capacity(std::size_t processes) {
  constexpr std::size_t kMany = 64;
  return processes > kMany ? 64 << 10 : 256 << 10;
}

void append_tail(std::string& tail, std::string_view bytes) {
  if (bytes.size() >= kTail) {
    tail = bytes.substr(bytes.size() - kTail);
    return;
  }
  if (tail.size() + bytes.size() > 2 * kTail) tail.erase(0, tail.size() - kTail);
  tail += bytes;
}

}  // namespace

struct Output::Stream {
  Stream(std::size_t number, LinePrinter line_printer, AppendedFile file, LogTimes log_times,
         const Masker& masker)
      : index(number),
        log(std::move(file)),
        times(std::move(log_times)),
        printer(std::move(line_printer)),
        mask(masker) {}

  std::size_t index;
  sys::UniqueFd pipe;
  AppendedFile log;
  LogTimes times;
  LinePrinter printer;
  MaskStream mask;
  std::string tail;
  LineCutter cutter;
  std::function<bool(std::string_view)> on_line;
};

Output::Output(sys::Loop& loop, Options options, const std::vector<std::string>& names)
    : loop_(loop), options_(std::move(options)), block_(kBlock) {
  std::size_t width = options_.name_width;
  for (const auto& name : names) width = std::max(width, name.size());
  const auto style =
      options_.color == Color::always ? LinePrinter::Style::coloured : LinePrinter::Style::plain;
  const auto trouble = [this](const std::string& sentence) {
    if (!std::exchange(reported_, true) && options_.trouble) options_.trouble(sentence);
  };
  for (const auto& name : names) {
    streams_.push_back(
        std::make_unique<Stream>(streams_.size(), LinePrinter(name, width, streams_.size(), style),
                                 AppendedFile(options_.folder / (name + ".log"), trouble),
                                 LogTimes(times_of_logs(options_.folder) / name), options_.masker));
  }
}

Output::~Output() {
  for (auto& stream : streams_) close(*stream);
}

Result<sys::UniqueFd> Output::open(std::size_t index) {
  auto& stream = *streams_[index];
  close(stream);
  auto pipe = sys::make_pipe(pipe_capacity(streams_.size()));
  if (!pipe) return std::unexpected(pipe.error());
  stream.pipe = std::move(pipe->read);
  ::fcntl(stream.pipe.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(stream.pipe.get(), [this, &stream] {
    constexpr int kFairShare = 2;  // then another process gets its turn
    if (!read_some(stream, kFairShare)) finish(stream);
  });
  return std::move(pipe->write);
}

void Output::watch_lines(std::size_t index, std::function<bool(std::string_view line)> line) {
  auto& stream = *streams_[index];
  stream.on_line = std::move(line);
  stream.cutter = {};  // drops an incomplete line of an earlier process
}

void Output::close(std::size_t index) {
  close(*streams_[index]);
}

void Output::close(Stream& stream) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kForTheRest{200};
  const auto deadline = Clock::now() + kForTheRest;
  while (stream.pipe && Clock::now() < deadline) {
    const auto got = ::read(stream.pipe.get(), block_.data(), block_.size());
    if (got <= 0) break;
    take(stream, {block_.data(), static_cast<std::size_t>(got)});
  }
  finish(stream);
}

bool Output::read_some(Stream& stream, int blocks) {
  while (blocks-- > 0) {
    const auto got = ::read(stream.pipe.get(), block_.data(), block_.size());
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    take(stream, {block_.data(), static_cast<std::size_t>(got)});
    if (static_cast<std::size_t>(got) < block_.size()) return true;
  }
  return true;
}

void Output::take(Stream& stream, std::string_view bytes) {
  const auto settled = stream.mask.feed(bytes);
  if (!settled.empty()) stream.times.note(stream.log.size());
  stream.log.append(settled);
  append_tail(stream.tail, settled);
  if (options_.tap) options_.tap(stream.index, settled);
  if (options_.terminal != nullptr) {
    shown_.clear();
    const auto lines = stream.printer.feed(settled, shown_);
    options_.terminal->write(shown_, lines);
  }
  if (!stream.on_line) return;
  auto on_line = stream.on_line;  // the callback may remove itself
  stream.cutter.feed(settled, [&](std::string_view line, bool) {
    if (on_line && on_line(line)) on_line = nullptr;
  });
  if (!on_line) stream.on_line = nullptr;
}

void Output::finish(Stream& stream) {
  if (!stream.pipe) return;
  loop_.unwatch(stream.pipe.get());
  stream.pipe.reset();
  const auto rest = stream.mask.finish();
  stream.log.append(rest);
  append_tail(stream.tail, rest);
  if (options_.terminal == nullptr) return;
  shown_.clear();
  auto lines = stream.printer.feed(rest, shown_);
  lines += stream.printer.finish(shown_);
  options_.terminal->write(shown_, lines);
}

void Output::check() {
  for (auto& stream : streams_) stream->log.check();
}

std::vector<std::string> Output::last_lines(std::size_t index, std::size_t count) const {
  std::vector<std::string> lines;
  LineCutter cutter;
  const auto keep = [&](std::string_view line, bool) {
    std::string shown;
    append_shown(shown, line);
    lines.push_back(std::move(shown));
  };
  cutter.feed(streams_[index]->tail, keep);
  cutter.finish(keep);
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

std::filesystem::path Output::log_path(std::size_t index) const {
  return streams_[index]->log.path();
}

std::uint64_t Output::lost_bytes() const {
  std::uint64_t lost = 0;
  for (const auto& stream : streams_) lost += stream->log.lost_bytes();
  return lost;
}

}  // namespace nlaunch::supervise
