#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/console.h"
#include "session/live_run.h"
#include "session/run_view.h"
#include "supervise/lines.h"
#include "supervise/output.h"
#include "supervise/run_attempt.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;

struct LogsArgs {
  std::string run;
  std::string role;
  std::string runs_dir = "runs";
  std::optional<unsigned> attempt;
  std::optional<unsigned> lines;  ///< of each process; nothing: all
  std::string since;
  bool timestamps = false;
  bool follow = false;
};

/// Milliseconds since 1970.
using UnixTime = std::int64_t;

/// When the bytes of a log were written: see supervise::LogTimes. It grows with the log.
class WriteTimes {
 public:
  explicit WriteTimes(fs::path file) : file_(std::move(file)) {}

  void read_on() {
    half_ += file_.more();
    const auto end = half_.rfind('\n');
    if (end == std::string::npos) return;
    for (const auto& line : text::split(half_.substr(0, end), '\n')) add(line);
    half_.erase(0, end + 1);
  }
  [[nodiscard]] bool known() const { return !marks_.empty(); }
  /// Of the byte at `offset`; 0: not known.
  [[nodiscard]] UnixTime at(std::uint64_t offset) const {
    const auto next = std::ranges::upper_bound(marks_, offset, {}, &Mark::size);
    return next == marks_.begin() ? 0 : std::prev(next)->at;
  }
  /// Where the time is another one.
  [[nodiscard]] std::uint64_t next(std::uint64_t offset) const {
    const auto found = std::ranges::upper_bound(marks_, offset, {}, &Mark::size);
    return found == marks_.end() ? UINT64_MAX : found->size;
  }
  /// The first byte that was written at `time` or later.
  [[nodiscard]] std::uint64_t since(UnixTime time) const {
    const auto found = std::ranges::lower_bound(marks_, time, {}, &Mark::at);
    return found == marks_.end() ? UINT64_MAX : found->size;
  }

 private:
  struct Mark {
    UnixTime at;
    std::uint64_t size;  ///< of the log before what came then
  };

  void add(std::string_view line) {
    const auto blank = std::min(line.find(' '), line.size() - 1);
    const auto at = text::whole_number<std::uint64_t>(line.substr(0, blank));
    const auto size = text::whole_number<std::uint64_t>(line.substr(blank + 1));
    if (!at || !size || (!marks_.empty() && *size < marks_.back().size)) return;
    // A clock that was set back makes no line older than the one before it.
    marks_.push_back({std::max(static_cast<UnixTime>(*at), marks_.empty() ? 0 : marks_.back().at), *size});
  }

  GrowingFile file_;
  std::string half_;
  std::vector<Mark> marks_;
};

/// A log file that is read while it grows.
class Tail {
 public:
  Tail(const fs::path& file, std::size_t width, std::size_t hue, supervise::LinePrinter::Style style,
       const report::Console& console)
      : fd_(sys::open_regular_file(file, sys::Links::refused).value_or(sys::UniqueFd())),
        printer_(file.stem().string(), width, hue, style),
        console_(&console),
        times_(supervise::times_of_logs(file.parent_path()) / file.stem()) {
    times_.read_on();
  }

  /// Leaves out all but the last lines.
  void keep_last(unsigned lines) {
    constexpr std::uint64_t kBlock = 65536;
    const auto begin_of_all = position_;
    unsigned found = 0;
    // A newline at the very end begins no line.
    for (auto end = size() - std::min<std::uint64_t>(size(), 1); end > begin_of_all;) {
      const auto begin = std::max(begin_of_all, end - std::min(end, kBlock));
      const auto block = read(begin, end - begin);
      if (block.empty()) return;
      for (auto at = block.size(); at-- > 0;) {
        if (block[at] != '\n' || ++found < lines) continue;
        position_ = begin + at + 1;
        return;
      }
      end = begin;
    }
  }
  /// Leaves out what was written before; false where that is not known.
  bool keep_since(UnixTime time) {
    if (!times_.known()) return false;
    position_ = std::min(size(), times_.since(time));
    return true;
  }

  /// Prints new content; false if there is none.
  bool advance() {
    const auto block = read(position_, kMost);
    if (block.empty()) return false;
    position_ += block.size();
    std::string out;
    printer_.feed(block, out);
    console_->result(out);
    return true;
  }

  /// The time of what comes next; nothing: there is nothing more.
  [[nodiscard]] std::optional<UnixTime> next_time() {
    if (position_ >= size()) return std::nullopt;
    times_.read_on();
    return times_.at(position_);
  }
  /// Prints what comes next and has one time, each line with it.
  void advance_with_time() {
    const auto at = times_.at(position_);
    const auto block = read(position_, std::min(kMost, times_.next(position_) - position_));
    position_ += block.size();
    std::string out;
    printer_.feed(block, out);
    print_with_time(out, at);
  }

  void finish(bool with_time) {
    std::string out;
    printer_.finish(out);
    if (with_time)
      print_with_time(out, times_.at(position_));
    else
      console_->result(out);
  }

 private:
  static constexpr std::uint64_t kMost = 65536;

  void print_with_time(const std::string& lines, UnixTime at) const {
    constexpr UnixTime kThousand = 1000;
    const auto time =
        at == 0 ? std::string("-")
                : fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                              fmt::gmtime(static_cast<std::time_t>(at / kThousand)), at % kThousand);
    std::string out;
    for (std::size_t begin = 0; begin < lines.size();) {
      const auto end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
      out += time + " " + lines.substr(begin, end - begin);
      begin = end;
    }
    console_->result(out);
  }

  [[nodiscard]] std::uint64_t size() const {
    struct stat info {};
    return ::fstat(fd_.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
  }

  [[nodiscard]] std::string read(std::uint64_t from, std::uint64_t bytes) const {
    std::string out(bytes, '\0');
    const auto got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(from));
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
  }

  sys::UniqueFd fd_;
  supervise::LinePrinter printer_;
  const report::Console* console_;
  WriteTimes times_;
  std::uint64_t position_ = 0;
};

/// What is new in all logs, in the order of its time.
void merge(std::vector<Tail>& tails) {
  for (;;) {
    Tail* earliest = nullptr;
    UnixTime least = 0;
    for (auto& tail : tails) {
      const auto time = tail.next_time();
      if (!time || (earliest != nullptr && *time >= least)) continue;
      earliest = &tail;
      least = *time;
    }
    if (earliest == nullptr) return;
    earliest->advance_with_time();
  }
}

std::vector<fs::path> log_files(const RunView& view, unsigned attempt, const std::string& role) {
  std::vector<fs::path> files;
  const auto attempt_folder = supervise::attempt_folder(view.folder, attempt);
  if (!sys::is_folder_itself(attempt_folder) || !sys::is_folder_itself(attempt_folder / "logs")) return files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(attempt_folder / "logs", error)) {
    const auto name = entry.path().stem().string();
    std::error_code gone;
    if (!fs::is_regular_file(entry.symlink_status(gone))) continue;
    if (role.empty() || name == role || name.starts_with(role + ".")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

int run_logs(const LogsArgs& args, const Context& context) {
  auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  if (args.attempt.value_or(0) > view->attempt) {
    context.console.say(fmt::format("nlaunch logs: run {} has no attempt {}; the last one is {}\n", view->id,
                                    *args.attempt, view->attempt));
    return exit_code::usage;
  }
  const auto files = log_files(*view, args.attempt.value_or(view->attempt), args.role);
  if (files.empty()) {
    context.console.say(fmt::format("nlaunch logs: run {} has no logs{}\n", view->id,
                                    args.role.empty() ? "" : " of " + args.role));
    return exit_code::bad_input;
  }
  std::size_t width = 0;
  for (const auto& file : files) width = std::max(width, file.stem().string().size());
  const auto style = context.console.result_paint.on() ? supervise::LinePrinter::Style::coloured
                                                       : supervise::LinePrinter::Style::plain;
  std::vector<Tail> tails;
  for (std::size_t i = 0; i < files.size(); ++i)
    tails.emplace_back(files[i], width, i, style, context.console);
  if (!args.since.empty()) {
    const auto now =
        std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
    const auto from = now - *parse_duration(args.since);
    bool known = true;
    for (auto& tail : tails) known = tail.keep_since(from.count()) && known;
    if (!known)
      context.console.warn("some logs have no times, as those of older versions: they are shown whole");
  }
  if (args.lines)
    for (auto& tail : tails) tail.keep_last(*args.lines);
  constexpr std::chrono::milliseconds kBetween{200};
  for (bool alive = true; alive;) {
    alive = args.follow && view && view->alive;
    if (args.timestamps) {
      merge(tails);
    } else {
      for (auto& tail : tails) {
        while (tail.advance()) {
        }
      }
    }
    if (!alive) break;
    std::this_thread::sleep_for(kBetween);
    view = view_run(args.runs_dir, view->folder.string());
  }
  for (auto& tail : tails) tail.finish(args.timestamps);
  return exit_code::ok;
}

void add_logs(Command program, Context& context) {
  auto args = std::make_shared<LogsArgs>();
  auto command = program.subcommand("logs", "Show the output of a run's processes")
                     .examples({"nlaunch logs grpo", "nlaunch logs grpo engine.0 -f",
                                "nlaunch logs grpo -n 20 --since 5m"});
  command.option("RUN", args->run, kRunHelp).required();
  auto what =
      command.option("WHAT", args->role, "Role, replica or process (ROLE, ROLE.INDEX, ROLE.INDEX.RANK)");
  command.option("--role", args->role, "The same as WHAT").value_name("WHAT").excludes(what);
  constexpr long kMostLines = 1'000'000'000;
  command.option("-n,--lines", args->lines, "Show only the last lines of each process")
      .in_range(1, kMostLines);
  command.option("--since", args->since, "Show only what was written within this time, such as 5m")
      .value_name("TIME")
      .checked([](const std::string& text) {
        const auto time = parse_duration(text);
        return time ? std::string() : time.error();
      });
  command.flag("-t,--timestamps", args->timestamps,
               "Show the time of each line, and the lines of all processes in its order");
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.option("--attempt", args->attempt, "Attempt to show, counted from 0 [default: the last]");
  command.flag("-f,--follow", args->follow, "Follow the output until the run ends");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_logs(*args, context); }; });
}

const Registered<cli::CommandEntry> logs_command{{"logs", 130, add_logs, CommandGroup::see}};

}  // namespace

}  // namespace nlaunch::commands
