#include "diagnose/inputs.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "sys/blocked_signals.h"
#include "sys/tar.h"

namespace nlaunch::diagnose {
namespace {

namespace fs = std::filesystem;

/// Of what the workers have found and the sink has not received, so many bytes are held for each file, and so
/// many entries after the current one may be read.
constexpr std::size_t kMostHeld = 4U << 20U;
constexpr std::size_t kMostAhead = 64;

struct File {
  std::string path;  ///< "-": standard input
};
using Entry = std::variant<File, RunFolder, Diagnostics>;

/// Links to directories are not followed: they lead to what is read elsewhere, or in a circle.
void list_folder(const fs::path& folder, std::vector<Entry>& entries) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  if (error) {
    entries.emplace_back(failure("sys.read", "cannot read {}: {}", folder.string(), error.message()).error());
    return;
  }
  std::vector<fs::path> files;
  for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    if (entry->is_regular_file(gone)) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  for (const auto& file : files) entries.emplace_back(File{file.string()});
}

std::vector<Entry> list(const std::vector<std::string>& paths, const Options& options) {
  std::vector<Entry> entries;
  for (const auto& path : paths) {
    std::error_code error;
    if (path == "-" || !fs::is_directory(path, error)) {
      entries.emplace_back(File{path});
    } else if (auto run = read_run_folder(path, options.summary)) {
      const auto logs = run->logs;
      entries.emplace_back(run->unread);
      entries.emplace_back(std::move(*run));
      for (const auto& log : logs) entries.emplace_back(File{log.string()});
    } else {
      list_folder(path, entries);
    }
  }
  return entries;
}

/// Opens files, and reads and scans what is in them.
class FileReader {
 public:
  explicit FileReader(const Options& options) : options_(options) {}

  void read(const File& file, StreamSink& sink) {
    sink_ = &sink;
    if (file.path == "-") return stream("(standard input)", sys::UniqueFd(::dup(STDIN_FILENO)));
    auto fd = sys::open_for_reading(file.path);
    if (!fd) return sink.on_unread(fd.error());
    stream(file.path, std::move(*fd));
  }

 private:
  void stream(const std::string& name, sys::UniqueFd fd) {
    auto bytes = sys::unpacked(sys::fd_source(std::move(fd), {options_.patience, options_.enough}));
    std::string first(sys::kTarBlock, '\0');
    first.resize(sys::read_full(*bytes, first));
    sys::TarBlock block{};
    if (first.size() == block.size()) {
      std::ranges::copy(first, block.begin());
      if (sys::parse_tar_header(block)) return archive(name, *bytes, block);
    }
    one(name, *sys::prefixed(std::move(first), std::move(bytes)));
  }

  void archive(const std::string& name, sys::ByteSource& bytes, const sys::TarBlock& first) {
    const auto wrong =
        sys::for_each_tar_file(bytes, first, [&](const sys::TarMember& member, sys::ByteSource& content) {
          one(name + "/" + member.name, content);
        });
    if (wrong.empty()) return;
    Diagnostics why;
    why.warning("diagnose.archive", {}, fmt::format("{}: {}", name, wrong));
    sink_->on_unread(why);
  }

  void one(const std::string& name, sys::ByteSource& bytes) {
    sink_->on_stream(name);
    scanner_.begin(streams_++, *sink_);
    std::string remark;
    while (const auto got = bytes.read(scanner_.room())) {
      scanner_.filled(got);
      if (!options_.enough || !options_.enough()) continue;
      remark = "reading was stopped";
      break;
    }
    const auto end = scanner_.finish();
    sink_->on_end(end, remark.empty() ? bytes.remark() : remark);
  }

  const Options& options_;
  Scanner scanner_;
  std::uint32_t streams_ = 0;
  StreamSink* sink_ = nullptr;
};

/// A match with texts of its own.
struct KeptMatch {
  explicit KeptMatch(const Match& found)
      : texts(std::make_unique<Texts>(Texts{std::string(found.line), std::string(found.previous)})),
        match(found) {
    const auto own = [&](std::string_view part) {
      return std::string_view(texts->line)
          .substr(static_cast<std::size_t>(part.data() - found.line.data()), part.size());
    };
    match.line = texts->line;
    match.previous = texts->previous;
    match.before = own(found.before);
    for (auto& [name, value] : match.groups) value = own(value);
  }

  struct Texts {
    std::string line;
    std::string previous;
  };
  std::unique_ptr<Texts> texts;
  Match match;
};

/// What was found in a file, in order: its reader fills it, and waits while too much is held; the caller's
/// thread empties it.
class Tape : public StreamSink {
 public:
  void on_stream(const std::string& name) override { put(Stream{name}); }
  void on_match(const Match& match) override { put(KeptMatch(match)); }
  void on_line(const Line& line) override { put(KeptLine{line.position, std::string(line.text)}); }
  void on_end(const StreamEnd& end, const std::string& remark) override { put(Ended{end, remark}); }
  void on_unread(const Diagnostics& why) override { put(Unread{why}); }

  /// The file is read, or reading it failed.
  void close(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::move(failure);
    closed_ = true;
    changed_.notify_all();
  }
  /// Nobody empties it any more.
  void abandon() {
    const std::scoped_lock lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
  }

  /// Passes everything on, until the file is read. `streams`: how many there were before.
  void play(StreamSink& sink, std::uint32_t& streams) {
    for (auto parts = take(); !parts.empty(); parts = take()) {
      for (const auto& part : parts) std::visit([&](const auto& what) { pass(what, sink, streams); }, part);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Stream {
    std::string name;
  };
  struct KeptLine {
    LogPosition position;
    std::string text;
  };
  struct Ended {
    StreamEnd end;
    std::string remark;
  };
  struct Unread {
    Diagnostics why;
  };
  using Part = std::variant<Stream, KeptMatch, KeptLine, Ended, Unread>;

  static void pass(const Stream& stream, StreamSink& sink, std::uint32_t& streams) {
    ++streams;
    sink.on_stream(stream.name);
  }
  static void pass(const KeptMatch& kept, StreamSink& sink, std::uint32_t streams) {
    auto match = kept.match;
    match.position.file = streams - 1;
    sink.on_match(match);
  }
  static void pass(const KeptLine& kept, StreamSink& sink, std::uint32_t streams) {
    sink.on_line({{streams - 1, kept.position.line}, kept.text});
  }
  static void pass(const Ended& ended, StreamSink& sink, std::uint32_t /*streams*/) {
    sink.on_end(ended.end, ended.remark);
  }
  static void pass(const Unread& unread, StreamSink& sink, std::uint32_t /*streams*/) {
    sink.on_unread(unread.why);
  }

  static std::size_t size_of(const KeptMatch& kept) {
    return sizeof(Part) + kept.texts->line.size() + kept.texts->previous.size();
  }
  static std::size_t size_of(const KeptLine& kept) { return sizeof(Part) + kept.text.size(); }
  template <class Other>
  static std::size_t size_of(const Other& /*other*/) {
    return sizeof(Part);
  }

  void put(Part part) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return held_ < kMostHeld || abandoned_; });
    if (abandoned_) return;
    held_ += std::visit([](const auto& what) { return size_of(what); }, part);
    waiting_.push_back(std::move(part));
    changed_.notify_all();
  }

  /// What is there; waits until there is something. Empty: the file is read.
  std::vector<Part> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !waiting_.empty() || closed_; });
    held_ = 0;
    changed_.notify_all();
    return std::exchange(waiting_, {});
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Part> waiting_;
  std::size_t held_ = 0;
  bool closed_ = false;
  bool abandoned_ = false;
  std::exception_ptr failure_;
};

/// Threads that read the files in the order of the entries, each into its tape.
class Workers {
 public:
  Workers(const std::vector<Entry>& entries, const Options& options, std::size_t threads)
      : entries_(entries), options_(options), tapes_(entries.size()) {
    const sys::BlockedSignals blocked;
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Workers() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    goes_on_.notify_all();
    for (auto& tape : tapes_) tape.abandon();
    for (auto& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void play(std::size_t entry, StreamSink& sink, std::uint32_t& streams) {
    {
      const std::scoped_lock lock(mutex_);
      played_ = entry;
    }
    goes_on_.notify_all();
    tapes_[entry].play(sink, streams);
  }

 private:
  /// The entry that is next, once it is not too far ahead of the one that is played; nothing: none is left.
  std::optional<std::size_t> next() {
    std::unique_lock lock(mutex_);
    goes_on_.wait(lock, [this] { return over_ || next_ <= played_ + kMostAhead; });
    if (over_ || next_ == entries_.size()) return std::nullopt;
    return next_++;
  }

  void work() {
    std::optional<FileReader> reader;
    while (const auto entry = next()) {
      const auto i = *entry;
      const auto* file = std::get_if<File>(&entries_[i]);
      if (file == nullptr) continue;
      std::exception_ptr failure;
      try {
        if (!reader) reader.emplace(options_);
        reader->read(*file, tapes_[i]);
      } catch (...) {
        failure = std::current_exception();
      }
      tapes_[i].close(failure);
    }
  }

  const std::vector<Entry>& entries_;
  const Options& options_;
  std::vector<Tape> tapes_;
  std::mutex mutex_;
  std::condition_variable goes_on_;
  std::size_t next_ = 0;
  std::size_t played_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

void read_inputs(const std::vector<std::string>& paths, const Options& options, unsigned threads,
                 InputSink& sink) {
  auto entries = list(paths, options);
  const auto files = static_cast<std::size_t>(
      std::ranges::count_if(entries, [](const Entry& entry) { return std::holds_alternative<File>(entry); }));
  std::optional<Workers> workers;
  std::optional<FileReader> reader;
  if (threads > 1 && files > 1) workers.emplace(entries, options, std::min<std::size_t>(threads, files));
  std::uint32_t streams = 0;  // of the workers' files so far
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (auto* run = std::get_if<RunFolder>(&entries[i])) {
      sink.on_run(std::move(*run));
    } else if (const auto* unread = std::get_if<Diagnostics>(&entries[i])) {
      sink.on_unread(*unread);
    } else if (workers) {
      workers->play(i, sink, streams);
    } else {
      if (!reader) reader.emplace(options);
      reader->read(std::get<File>(entries[i]), sink);
    }
  }
}

}  // namespace nlaunch::diagnose
