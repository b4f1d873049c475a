#include "shell/written.h"

#include <unistd.h>

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargest = 64U << 10U;  // 64 KiB: a plan has it as one word, of 128 KiB at most

std::string in_folder(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).lexically_normal().native();
}

bool is_log(const fs::path& path) {
  constexpr std::array<std::string_view, 3> kExtensions{".log", ".out", ".err"};
  return std::ranges::find(kExtensions, path.extension().native()) != kExtensions.end();
}

/// Files that programs read without being given their names.
bool is_read_by_name(const fs::path& path) {
  constexpr std::array<std::string_view, 3> kNames{".deepspeed_env", "default_config.yaml",
                                                   "sitecustomize.py"};
  return std::ranges::find(kNames, path.filename().native()) != kNames.end();
}

/// An existing file that the script edited may be named without its directory or extension: `train.py
/// --config-name teacher`.
bool is_named(const Told& program, const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  const auto stem = path.stem().native();
  constexpr std::size_t kTelling = 4;
  return stem.size() >= kTelling && std::ranges::any_of(program.words, [&](const auto& word) {
           return names_path(word, stem, false) || names_path(word, path.filename().native(), false);
         });
}

/// By its path, or relative to the program's working directory.
bool is_told(const Told& program, const std::string& path, bool below) {
  const auto front = program.folder + "/";
  const auto relative = path.starts_with(front) ? path.substr(front.size()) : path;
  const auto names = [&](const std::string& text) {
    return names_path(text, path, below) || names_path(text, relative, below) ||
           names_path(text, "./" + relative, below);
  };
  return std::ranges::any_of(program.words, names) || std::ranges::any_of(program.variables, names);
}

}  // namespace

bool names_path(std::string_view text, std::string_view path, bool below) {
  if (path.empty()) return false;
  for (auto at = text.find(path); at != std::string_view::npos; at = text.find(path, at + 1)) {
    const auto end = at + path.size();
    const bool begins = at == 0 || std::string_view("=:, '\"[@").contains(text[at - 1]);
    const bool ends = end == text.size() || std::string_view(":, '\"])};").contains(text[end]) ||
                      (text[end] == '/' && (below || end + 1 == text.size()));
    if (begins && ends) return true;
  }
  return false;
}

void Written::copied(const ProgramStart& start, const Words& argv) {
  const auto target = in_folder(start.folder, argv.back());
  copied_.insert(target);
  std::error_code error;
  const bool into = fs::is_directory(layer_.map_to_read(target), error);
  for (std::size_t i = 1; i + 1 < argv.size(); ++i) {
    if (argv[i].starts_with('-')) continue;
    const auto source = in_folder(start.folder, argv[i]);
    const auto name = into ? in_folder(target, fs::path(source).filename()) : target;
    copied_.insert(name);
    auto text = sys::read_regular_file(layer_.map_to_read(source), kLargest);
    copies_.push_back({name, source, text ? std::optional(std::move(*text)) : std::nullopt});
  }
}

void Written::tee(const ProgramStart& start, const Words& argv) {
  const auto in = start.files.find(STDIN_FILENO);
  if (in == start.files.end()) return;
  for (std::size_t i = 1; i < argv.size(); ++i)
    if (!argv[i].starts_with('-')) tees_[in_folder(start.folder, argv[i])] = in->second;
}

void Written::mkdir(const ProgramStart& start, const Words& argv) {
  for (std::size_t i = 1; i < argv.size(); ++i)
    if (!argv[i].starts_with('-')) folders_.insert(in_folder(start.folder, argv[i]));
}

/// Edited after it was copied: the plan's copy is the earlier one.
bool Written::is_changed_copy(const std::string& path) const {
  const auto text = sys::read_regular_file(layer_.map_to_read(path), kLargest);
  for (const auto& copy : copies_) {
    if (copy.target == path) return copy.text && text && *text != *copy.text;
    if (!path.starts_with(copy.target + "/")) continue;
    const auto source =
        sys::read_regular_file(layer_.map_to_read(copy.source + path.substr(copy.target.size())), kLargest);
    return source && text && *text != *source;
  }
  return false;
}

bool Written::is_own(const std::string& path) const {
  if (given_.contains(path) || outputs_.contains(path)) return false;
  const auto tee = tees_.find(path);
  if (tee != tees_.end() && pipes_of_job_.contains(tee->second)) return false;
  const bool copied = copied_.contains(path) || std::ranges::any_of(copies_, [&](const Copy& copy) {
                        return path.starts_with(copy.target + "/");
                      });
  return !copied || is_changed_copy(path);
}

WrittenFile Written::file(const std::string& path) const {
  const auto where = layer_.map_to_read(path);
  auto text = sys::read_regular_file(where, kLargest);
  const bool is_text =
      text && text->find('\0') == std::string::npos && !text::first_invalid_utf8(*text).has_value();
  std::error_code error;
  const auto rights = fs::status(where, error).permissions();
  return {path, is_text ? std::optional(layer_.without_layer(std::move(*text))) : std::nullopt,
          (rights & fs::perms::owner_exec) != fs::perms::none, by_task_.contains(path)};
}

std::vector<WrittenFile> Written::files() const {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(layer_.folder(), fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    constexpr std::size_t kMost = 1000;
    std::error_code unknown;
    if (!entry->is_regular_file(unknown) || paths.size() >= kMost) continue;
    auto path = layer_.unmapped(entry->path()).native();
    if (is_own(path)) paths.push_back(std::move(path));
  }
  std::ranges::sort(paths);
  std::vector<WrittenFile> files;
  for (const auto& path : paths) files.push_back(file(path));
  return files;
}

std::vector<WrittenFile> Written::told_to(const Told& program) const {
  std::vector<WrittenFile> told;
  for (const auto& folder : folders_) {
    std::error_code error;
    const bool is_new = !fs::exists(folder, error) && fs::is_directory(layer_.map_to_read(folder), error);
    if (is_new && is_told(program, folder, true)) told.push_back({folder + "/", "", true});
  }
  for (auto& one : files()) {
    const auto folder = fs::path(one.path).parent_path().native();
    // A directory of its own, not that of the job.
    const bool in_folder = folders_.contains(folder) && one.text != "" && is_told(program, folder, false);
    const bool edited = layer_.covers(one.path) && is_named(program, one.path);
    if (in_folder || edited || is_read_by_name(one.path) || is_told(program, one.path, false))
      told.push_back(std::move(one));
  }
  return told;
}

namespace {

/// The words of a command without the values of options that name where it writes: `--output_dir DIR`.
Words inputs_of(const Words& words) {
  static const RE2 kWrites(
      R"re((?i)^--?\w*(?:out|save|log|cache|work|run|ckpt|checkpoint|result|dump|export|bind|mount|volume)|^-[vB]$)re");
  Words inputs;
  bool writes = false;
  for (const auto& word : words) {
    const bool option = word.starts_with('-');
    if (!(writes && !option) && !(option && RE2::PartialMatch(word, kWrites))) inputs.push_back(word);
    writes = option && !word.contains('=') && RE2::PartialMatch(word, kWrites);
  }
  return inputs;
}

}  // namespace

std::vector<std::string> Written::outputs_told_to(const Told& program) const {
  std::vector<std::string> told;
  for (const auto& path : outputs_) {
    // A directory that the script has made for it, unless the file is a log beside what programs write there.
    const auto inputs = inputs_of(program.words);
    const auto reads = [&](const fs::path& folder) {
      const bool own_folder = (program.folder + "/").starts_with(folder.native() + "/");
      const bool made = folders_.contains(folder);
      return (made || !own_folder) &&
             is_told({inputs, made ? program.variables : Words(), program.folder}, folder, false);
    };
    // `> out/1/score.json`, and then `summarize.py out`.
    constexpr int kAbove = 2;
    bool in_folder = false;
    auto folder = fs::path(path).parent_path();
    for (int i = 0; !is_log(path) && !in_folder && folder.has_relative_path();
         ++i, folder = folder.parent_path())
      in_folder = (i < kAbove || folders_.contains(folder)) && reads(folder);
    const bool named = is_told({program.words, {}, program.folder}, path, false);
    if (in_folder || named || (!is_log(path) && is_told(program, path, false))) told.push_back(path);
  }
  return told;
}

}  // namespace nlaunch::shell
