#include "launch/job/bad_nodes.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <ranges>
#include <thread>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDay = 24 * 60 * 60;

/// Anyone can write to the list, and its content becomes an option of the submit command.
bool is_node_name(std::string_view name) {
  constexpr std::string_view kMarks = "._-";
  const auto alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && alphanumeric(name.front()) && std::ranges::all_of(name, [&](char c) {
    return alphanumeric(c) || kMarks.find(c) != std::string_view::npos;
  });
}

/// Empty if the line cannot be parsed.
std::optional<BadNode> parse_line(std::string_view line, std::int64_t now) {
  const auto fields = text::split(line, '\t');
  if (fields.size() < 2 || !is_node_name(fields[1])) return std::nullopt;
  BadNode bad;
  const auto& epoch = fields[0];
  const auto [end, error] = std::from_chars(epoch.data(), epoch.data() + epoch.size(), bad.since);
  // Clocks differ by less than a day. A time further ahead (milliseconds?) would be valid forever.
  if (error != std::errc() || end != epoch.data() + epoch.size() || bad.since > now + kDay)
    return std::nullopt;
  bad.node = fields[1];
  if (fields.size() > 2) bad.reason = text::printable(fields[2]);
  if (fields.size() > 3) bad.user = text::printable(fields[3]);
  return bad;
}

/// A field of a line, without characters that would end it or act on the reader's terminal.
std::string field(std::string_view text) {
  std::string out;
  for (const auto c : text::characters(text)) {
    const auto byte = static_cast<unsigned char>(c.front());
    const bool bad = byte < 0x20 || byte == 0x7f || text::first_invalid_utf8(c);
    out += bad ? std::string_view(" ") : c;
  }
  return std::string(text::trim(out));
}

std::unexpected<Diagnostics> cannot_write(const fs::path& path, std::string_view why) {
  return failure("launch.ledger", "cannot add to the list of bad nodes '{}': {}", path.string(), why);
}

/// Over NFS, O_APPEND alone does not separate two writers. Locks are held briefly; a file system without
/// locks, or a stuck holder, must not prevent the entry.
void lock(int fd) {
  constexpr auto kStep = std::chrono::milliseconds(20);
  constexpr int kSteps = 100;
  for (int i = 0; i < kSteps && ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++i)
    std::this_thread::sleep_for(kStep);
}

/// An editor may have left the last line without a newline.
bool ends_within_a_line(int fd) {
  const auto size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

std::string about(const BadNode& bad) {
  std::tm day{};
  const auto since = static_cast<std::time_t>(bad.since);
  ::localtime_r(&since, &day);
  return fmt::format("{} ({}; {}, {:%Y-%m-%d})", bad.node,
                     bad.reason.empty() ? "no reason given" : bad.reason,
                     bad.user.empty() ? "unknown user" : bad.user, day);
}

/// The `exclude` of the job, or of each of its components: an option of sbatch replaces all of them.
std::vector<plan::Directive> excluded_by(const plan::Slurm& slurm) {
  std::vector<plan::Directive> found;
  const auto add = [&](const std::vector<plan::Directive>& directives) {
    for (const auto& option : directives) {
      if (option.name == "exclude" &&
          std::ranges::find(found, option.value, &plan::Directive::value) == found.end())
        found.push_back(option);
    }
  };
  if (slurm.components.empty()) add(slurm.directives);
  for (const auto& component : slurm.components) add(component.directives);
  return found;
}

std::string left_out(const plan::Slurm& slurm, const std::vector<BadNode>& nodes) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> shown;
  for (const auto& bad : nodes | std::views::take(kShown)) shown.push_back(about(bad));
  if (nodes.size() > kShown) shown.push_back(fmt::format("and {} more", nodes.size() - kShown));
  return fmt::format("excluded nodes (listed in {}): {}", slurm.bad_nodes, text::join(shown, ", "));
}

}  // namespace

BadNodeList parse_ledger(std::string_view text, std::int64_t now, Duration ttl) {
  BadNodeList ledger;
  std::map<std::string, BadNode> newest;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(ttl).count();
  const auto lines = text::split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto line = text::trim(lines[i]);
    if (line.empty() || line.front() == '#') continue;
    auto bad = parse_line(line, now);
    if (!bad) {
      if (ledger.broken++ == 0) ledger.first_broken = i + 1;
    } else if (auto& known = newest[bad->node]; bad->since >= known.since) {
      known = std::move(*bad);
    }
  }
  for (auto& [name, bad] : newest) {
    if (bad.since + seconds > now) ledger.nodes.push_back(std::move(bad));
  }
  return ledger;
}

Result<BadNodeList> read_ledger(const fs::path& path, Duration ttl) {
  constexpr std::uint64_t kLargest = 64U << 20U;
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found) return BadNodeList{};
  const auto content = sys::read_regular_file(path, kLargest);
  if (!content) return std::unexpected(content.error());
  return parse_ledger(*content, std::time(nullptr), ttl);
}

Result<void> record_bad_node(const fs::path& path, std::string_view node, std::string_view reason,
                             std::string_view user) {
  if (!is_node_name(node))
    return cannot_write(path, fmt::format("'{}' is not a node name", text::printable(node)));
  constexpr mode_t kEveryone = 0666;  // minus the umask: a site's users share it
  // O_NONBLOCK: a FIFO in its place must not block.
  const sys::UniqueFd fd(
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, kEveryone));
  if (!fd) return cannot_write(path, std::strerror(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return cannot_write(path, "it is not a regular file");
  lock(fd.get());
  const auto line = fmt::format("{}{}\t{}\t{}\t{}\n", ends_within_a_line(fd.get()) ? "\n" : "",
                                std::time(nullptr), node, field(reason), field(user));
  const auto wrote = ::write(fd.get(), line.data(), line.size());
  if (wrote == static_cast<ssize_t>(line.size())) return {};
  return cannot_write(path, wrote < 0 ? std::strerror(errno) : "the file system is full");
}

Exclusion exclude(const plan::Slurm& slurm, const BadNodeList& ledger) {
  Exclusion exclusion;
  if (ledger.broken > 0) {
    exclusion.notes.push_back(fmt::format("{} of {} cannot be parsed and {} ignored; the first is line {}",
                                          text::count(ledger.broken, "line"), slurm.bad_nodes,
                                          ledger.broken == 1 ? "is" : "are", ledger.first_broken));
  }
  if (ledger.nodes.empty()) return exclusion;
  std::vector<std::string> names;
  for (const auto& given : excluded_by(slurm)) {
    // sbatch takes a value with a slash as a file that lists the nodes.
    if (given.value.find('/') != std::string::npos) {
      exclusion.notes.push_back(
          fmt::format("the nodes in {} are not excluded: `exclude` is the file {} ({}), which cannot be "
                      "combined with them",
                      slurm.bad_nodes, given.value, given.origin));
      return exclusion;
    }
    names.push_back(given.value);
  }
  for (const auto& bad : ledger.nodes) names.push_back(bad.node);
  exclusion.options.push_back("--exclude=" + text::join(names, ","));
  exclusion.notes.push_back(left_out(slurm, ledger.nodes));
  return exclusion;
}

Exclusion exclude_bad_nodes(const plan::Slurm& slurm) {
  if (slurm.bad_nodes.empty()) return {};
  const auto ledger = read_ledger(slurm.bad_nodes, slurm.bad_nodes_ttl);
  if (ledger) return exclude(slurm, *ledger);
  return {{}, {fmt::format("no node is excluded: {}", ledger.error().first_message())}};
}

}  // namespace nlaunch::launch
