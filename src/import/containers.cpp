#include "import/containers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"
#include "import/command_line.h"

namespace nlaunch::import {
namespace {

/// The folder in which commands run; empty where nobody knows it.
std::string run_folder(const Imported& all) {
  const auto& workdir = all.workdir.value;
  if (workdir.empty() || workdir == ".") return all.folder;
  if (workdir.starts_with('/') || workdir.starts_with("${")) return workdir;
  return all.folder.empty() ? "" : fmt::format("{}/{}", all.folder, workdir);
}

/// How long a "." that stands for the folder is at the start of a path: it ends there, or a folder follows.
bool begins_here(std::string_view text, std::size_t at) {
  constexpr std::string_view kBefore = ":,=";
  const bool begins = at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos;
  const bool ends =
      at + 1 == text.size() || text[at + 1] == '/' || text[at + 1] == ':' || text[at + 1] == ',';
  return begins && ends && text[at] == '.';
}

/// True where there was something to change.
bool make_absolute(std::string& option, const std::string& folder) {
  std::string out;
  bool found = false;
  for (std::size_t i = 0; i < option.size(); ++i) {
    const bool here = begins_here(option, i);
    found = found || here;
    if (here && !folder.empty())
      out += folder;
    else
      out += option[i];
  }
  option = out;
  return found;
}

std::string said_of(const std::string& folder) {
  return folder.empty() ? "a path in a container has to be absolute: `.` was the folder in which the job ran"
                        : fmt::format("$PWD in the container's options is {}, the folder of the run", folder);
}

/// `NAME=VALUE,...` of an option --env without the secrets, whose names go to `found`.
std::string without_secrets(const std::string& variables, std::vector<std::string>& found) {
  std::vector<std::string> kept;
  for (auto& one : text::split(variables, ',')) {
    const auto name = one.substr(0, one.find('='));
    if (name.size() < one.size() && looks_like_secret(name))
      found.push_back(name);
    else
      kept.push_back(std::move(one));
  }
  return text::join(kept, ",");
}

/// NAME=VALUE, or the option with it, of one secret.
bool is_secret(std::string_view text) {
  constexpr std::string_view kOption = "--env=";
  if (text.starts_with(kOption)) text.remove_prefix(kOption.size());
  const auto name = text.substr(0, text.find('='));
  return name.size() < text.size() && looks_like_secret(name) && text.find(',') == std::string_view::npos;
}

/// Takes secrets out of a tool's options: their names.
std::vector<std::string> take_secrets(std::vector<std::string>& wrapper) {
  constexpr std::string_view kOption = "--env";
  std::vector<std::string> found;
  for (std::size_t i = 0; i < wrapper.size(); ++i) {
    const bool joined = wrapper[i].starts_with("--env=");
    const bool two = i + 1 < wrapper.size() && (wrapper[i] == kOption || wrapper[i] == "-e");
    if (!joined && !two) continue;
    const auto before = found.size();
    const auto at = wrapper.begin() + static_cast<std::ptrdiff_t>(i);
    const auto rest = without_secrets(joined ? at->substr(kOption.size() + 1) : *std::next(at), found);
    if (found.size() == before) continue;
    if (rest.empty()) {
      wrapper.erase(at, at + (joined ? 1 : 2));
      --i;
    } else {
      (joined ? *at : *std::next(at)) = joined ? fmt::format("{}={}", kOption, rest) : rest;
    }
  }
  return found;
}

}  // namespace

void contain(const Launch& launch, const std::string& head, ImportedRole& made, Imported& out) {
  for (const auto& word : launch.container) {
    auto text = plain_text(word, head);
    if (!text && is_secret(word.known())) text = word.known();  // it is taken out below
    if (!text) {
      made.remarks.push_back(
          {launch.line, fmt::format("wrapper: [...] is its container, of which only a shell knows the "
                                    "options: {}",
                                    kThatLine)});
      made.wrapper.clear();
      return;
    }
    made.wrapper.push_back(*text);
  }
  for (auto& name : take_secrets(made.wrapper)) {
    out.secrets.push_back(
        {std::move(name), "env", "", launch.line,
         "was given on a command line: it is taken from the environment in which nlaunch is "
         "called"});
  }
}

void import_mounts(Imported& out) {
  const auto folder = run_folder(out);
  for (auto& role : out.roles) {
    bool found = false;
    for (std::size_t i = 2; i + 1 < role.wrapper.size(); ++i)  // tool, verb, options, image
      found = make_absolute(role.wrapper[i], folder) || found;
    if (found) role.remarks.push_back({role.line, said_of(folder)});
  }
  std::uint32_t line = 0;
  for (auto& option : out.srun) {
    if (option.value.starts_with("--container") && make_absolute(option.value, folder)) line = option.line;
  }
  if (line > 0) out.remarks[Destination::scheduler].push_back({line, said_of(folder)});
}

}  // namespace nlaunch::import
