#include "record/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/format.h"
#include "base/json.h"
#include "base/secrets.h"
#include "base/text.h"
#include "record/archive.h"
#include "record/names.h"

namespace nlaunch::record {
namespace {

namespace fs = std::filesystem;

/// An open file of the run: everything read from it is one state, even if the file is replaced or removed in
/// the meantime.
struct Source {
  sys::UniqueFd fd;
  std::uint64_t size = 0;
  std::int64_t time = 0;
};

/// Does not follow links and does not wait for anything that could block.
Result<Source> open_source(const fs::path& path) {
  Source source{sys::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)), 0, 0};
  struct stat info {};
  if (!source.fd || ::fstat(source.fd.get(), &info) != 0)
    return failure("bundle.read", "cannot be read: {}", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return failure("bundle.read", "no longer a regular file");
  source.size = static_cast<std::uint64_t>(info.st_size);
  source.time = info.st_mtim.tv_sec;
  return source;
}

/// Calls `take` with the content of [from, to), or as much of it as can be read. Returns an empty string, or
/// why it stopped early.
std::string read_range(const Source& source, std::uint64_t from, std::uint64_t to,
                       const std::function<bool(std::string_view)>& take) {
  std::array<char, 65536> block;
  while (from < to) {
    const auto wanted = std::min<std::uint64_t>(block.size(), to - from);
    const auto got = ::pread(source.fd.get(), block.data(), wanted, static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fmt::format("readable only up to byte {}: {}", from, std::strerror(errno));
    if (got == 0) return "";  // it has been truncated in the meantime
    if (!take({block.data(), static_cast<std::size_t>(got)})) return "";
    from += static_cast<std::uint64_t>(got);
  }
  return "";
}

/// gzip (RFC 1952) or zstd (RFC 8878).
bool is_packed(const Source& source) {
  constexpr std::array<std::string_view, 2> kMagic{"\x1f\x8b", "\x28\xb5\x2f\xfd"};
  bool packed = false;
  read_range(source, 0, std::min<std::uint64_t>(4, source.size), [&](std::string_view block) {
    packed = std::ranges::any_of(kMagic, [&](std::string_view magic) { return block.starts_with(magic); });
    return true;
  });
  return packed;
}

/// Logs and JSON count as text whatever they contain; for other files the first bytes decide.
bool is_text(const fs::path& path, const Source& source) {
  constexpr std::array<std::string_view, 6> kTexts{".log", ".json", ".jsonl", ".txt", ".out", ".yaml"};
  if (std::ranges::find(kTexts, path.extension().string()) != kTexts.end()) return true;
  constexpr std::uint64_t kBeginning = 8192;
  bool text = true;
  read_range(source, 0, std::min(kBeginning, source.size), [&](std::string_view block) {
    text = text && block.find('\0') == std::string_view::npos;
    return text;
  });
  return text && !is_packed(source);
}

/// Truncated JSON is no longer JSON; a truncated log is still a log.
bool is_cut(const fs::path& path, std::uint64_t size, std::uint64_t limit) {
  return size > limit && path.extension() != ".json";
}

class Bundler {
 public:
  Bundler(const BundleRequest& request, NamelessFile file, NamelessFile spool)
      : request_(request),
        file_(std::move(file)),
        zstd_(file_.fd()),
        tar_([this](std::string_view bytes) { return zstd_.write(bytes); }),
        spool_(std::move(spool)) {
    add_secrets();
    if (request.redact) collect_names(request.run, request.environment, redactor_);
  }

  Result<BundleReport> run() {
    auto inventory = take_inventory(request_.run.folder);
    for (auto& [path, why] : inventory.left_out) leave_out(path, why);
    struct stat info {};
    if (::stat((request_.run.folder / "plan.json").c_str(), &info) == 0) time_ = info.st_mtim.tv_sec;
    for (const auto& [path, content] : request_.made) {
      if (!add_made(path, content)) return trouble();
    }
    for (const auto& item : inventory.items) {
      if (!add_item(item)) return trouble();
    }
    report_.redacted = redactor_.counts();
    report_.file = request_.out;
    const auto text = json_text(manifest(report_, request_), 2) + "\n";
    if (!tar_.begin({request_.name + "/MANIFEST.json", text.size(), time_, 0644}) || !tar_.write(text) ||
        !tar_.finish() || !zstd_.finish())
      return trouble();
    if (const auto named = file_.name(request_.out); !named) return std::unexpected(named.error());
    report_.bytes = zstd_.written();
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool stopped() const { return request_.enough && request_.enough(); }

  std::unexpected<Diagnostics> trouble() const {
    if (stopped()) return failure("bundle.stopped", "stopped: no bundle was written");
    return failure("bundle.write", "cannot write '{}': {}", request_.out.string(), std::strerror(errno));
  }

  /// Values of variables with secret names, from the plan and from the caller's environment: they are masked
  /// wherever they occur.
  void add_secrets() {
    std::set<std::string> names;  // whatever their names are: those that the plan declares, and their sources
    for (const auto& secret : at(request_.run.plan, "secrets")) {
      names.insert(text_at(secret, "name"));
      names.insert(text_at(secret, "from"));
    }
    const auto is_secret = [&](const std::string& name) {
      return names.contains(name) || looks_like_secret(name);
    };
    for (const auto& role : at(request_.run.plan, "roles")) {
      for (const auto& op : at(role, "env")) {
        if (auto name = text_at(op, "name"); is_secret(name)) scanner_.add_known(name, text_at(op, "value"));
      }
    }
    for (const auto& entry : request_.environment) {
      const auto equals = entry.find('=');
      if (equals == std::string::npos) continue;
      if (auto name = entry.substr(0, equals); is_secret(name))
        scanner_.add_known(name, entry.substr(equals + 1));
    }
  }

  Redactor* redactor() { return request_.redact ? &redactor_ : nullptr; }
  std::string shown(const std::string& path) { return request_.redact ? redactor_.redact(path) : path; }
  void leave_out(const std::string& path, std::string why) {
    report_.left_out.push_back({shown(path), std::move(why)});
  }

  bool add_made(const std::string& path, const std::string& content) {
    TextFilter filter(scanner_, redactor(), [this](std::string_view text) { return spool_.write(text); });
    if (!filter.feed(content) || !filter.finish()) return false;
    return pack(path, filter, time_, 0, "made by nlaunch bundle");
  }

  /// False if the bundle cannot be written; a file that cannot be read is left out.
  bool add_item(const Item& item) {
    const fs::path path = request_.run.folder / item.path;
    const auto source = open_source(path);
    if (!source) {
      leave_out(item.path, source.error().first_message());
      return true;
    }
    if (!is_text(path, *source)) return add_binary(item, *source);
    TextFilter filter(scanner_, redactor(), [this](std::string_view text) { return spool_.write(text); });
    bool fits = true;
    const auto feed = [&](std::string_view text) { return fits = !stopped() && filter.feed(text); };
    std::uint64_t cut_out = 0;
    std::string why;
    if (is_cut(path, source->size, request_.limit)) {
      const auto [head, tail] = ends_of(*source);
      why = read_range(*source, 0, head, feed);
      cut_out = tail - head;
      fits = fits && filter.feed(fmt::format("[nlaunch bundle: {} bytes left out here]\n", cut_out));
      if (fits) why = read_range(*source, tail, source->size, feed);
    } else {
      why = read_range(*source, 0, source->size, feed);
    }
    if (!fits || !filter.finish()) return false;
    if (!why.empty()) leave_out(item.path, why);
    return pack(item.path, filter, source->time, cut_out, "the run");
  }

  /// Where the head of a truncated log ends and its tail starts: at line boundaries, if there are any nearby.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> ends_of(const Source& source) const {
    constexpr std::uint64_t kNear = 65536;
    auto head = request_.limit / 2;
    auto tail = source.size - request_.limit / 2;
    const auto before = head - std::min(head, kNear);
    std::string text;
    read_range(source, before, head, [&](std::string_view block) { return text += block, true; });
    if (const auto end = text.rfind('\n'); end != std::string::npos) head = before + end + 1;
    text.clear();
    read_range(source, tail, std::min(tail + kNear, source.size),
               [&](std::string_view block) { return text += block, true; });
    if (const auto end = text.find('\n'); end != std::string::npos) tail += end + 1;
    return {head, tail};
  }

  /// Adds it unchanged or not at all: nothing can be removed from a binary file.
  bool add_binary(const Item& item, const Source& source) {
    if (source.size > request_.limit) {
      leave_out(item.path, fmt::format("binary, and larger than the limit ({} bytes)", source.size));
      return true;
    }
    bool names = false;
    TextFilter filter(scanner_, nullptr, [&](std::string_view text) {
      names = names || (request_.redact && redactor_.holds(text));
      return true;
    });
    auto why = read_range(source, 0, source.size, [&](std::string_view block) { return filter.feed(block); });
    filter.finish();
    if (!filter.masked().empty()) {
      why = fmt::format("binary, and contains what looks like a secret ({})", filter.masked().begin()->first);
    } else if (request_.redact && is_packed(source)) {
      why = "compressed: it may contain names";
    } else if (names) {
      why = "binary, and contains names";
    }
    if (!why.empty()) {
      leave_out(item.path, why);
      return true;
    }
    bool fits = true;
    read_range(source, 0, source.size,
               [&](std::string_view block) { return fits = !stopped() && spool_.write(block); });
    return fits && pack(item.path, filter, source.time, 0, "the run");
  }

  bool pack(const std::string& path, const TextFilter& filter, std::int64_t time, std::uint64_t cut_out,
            std::string from) {
    const auto name = shown(path);
    for (const auto& [what, where] : filter.masked()) report_.secrets.push_back({name, what, where});
    const auto size = spool_.size();
    report_.files.push_back({name, size, spool_.sum(), cut_out, std::move(from)});
    return tar_.begin({request_.name + "/" + name, size, time, 0644}) &&
           spool_.drain([this](std::string_view bytes) { return tar_.write(bytes); });
  }

  const BundleRequest& request_;
  NamelessFile file_;
  sys::ZstdWriter zstd_;
  sys::TarWriter tar_;
  Spool spool_;
  SecretScanner scanner_;
  Redactor redactor_;
  BundleReport report_;
  std::int64_t time_ =
      0;  ///< of generated files: that of the plan, so that the same run gives the same bundle
};

}  // namespace

Result<BundleReport> write_bundle(const BundleRequest& request) {
  const auto folder = request.out.parent_path();
  auto file = NamelessFile::make(folder);
  if (!file) return std::unexpected(file.error());
  auto spool = NamelessFile::make(folder);
  if (!spool) return std::unexpected(spool.error());
  return Bundler(request, std::move(*file), std::move(*spool)).run();
}

Json manifest(const BundleReport& report, const BundleRequest& request) {
  auto out = stamped<Json>(formats::kBundle);
  out["limit"] = request.limit;
  out["redacted"] = request.redact;
  auto& files = out["files"] = Json::array();
  for (const auto& [path, size, sha256, cut_out, from] : report.files) {
    files.push_back({{"path", path}, {"size", size}, {"sha256", sha256}, {"whole", cut_out == 0}});
    if (cut_out > 0) files.back()["cut_out"] = cut_out;
    files.back()["from"] = from;
  }
  auto& left_out = out["left_out"] = Json::array();
  for (const auto& [path, why] : report.left_out) left_out.push_back({{"path", path}, {"why", why}});
  auto& secrets = out["secrets_masked"] = Json::array();
  for (const auto& [path, what, where] : report.secrets)
    secrets.push_back({{"path", path}, {"what", what}, {"count", where.count}, {"lines", where.lines}});
  auto& redacted = out["names_taken_out"] = Json::array();
  for (const auto& [kind, names, times] : report.redacted)
    redacted.push_back({{"kind", kind}, {"names", names}, {"times", times}});
  return out;
}

}  // namespace nlaunch::record
