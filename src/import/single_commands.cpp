#include "import/single_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nlaunch::import {
namespace {

/// Commands that print, look, wait or clean up.
constexpr std::array<std::string_view, 54> kProgramsLeftOut{
    "set",      "trap",  "wait",    "kill",     "pkill",      "killall", "echo",  "printf",  "mkdir",
    "rm",       "touch", "sleep",   "date",     "hostname",   "squeue",  "sacct", "scancel", "which",
    "command",  "type",  "getent",  "awk",      "sed",        "grep",    "head",  "tail",    "cut",
    "tr",       "sort",  "uniq",    "tee",      "ls",         "clear",   "df",    "free",    "top",
    "printenv", "pwd",   "dirname", "basename", "realpath",   "chmod",   "find",  "seq",     "nproc",
    "whoami",   "id",    "uname",   "lscpu",    "nvidia-smi", "shopt",   "lsof",  "ip",      "hash"};
constexpr std::array<std::string_view, 12> kSyntax{"exit", "return", "shift", "true",  "false",    ":",
                                                   "test", "[",      "read",  "break", "continue", "unalias"};

void remark_unknown_venv(Doings& doings, std::uint32_t line) {
  remark(
      doings, Destination::environment, line,
      fmt::format("{}: `venv: FOLDER` takes the environment's folder (conda env list shows it)", kThatLine));
}

/// `source FOLDER/bin/activate`, with the name or the folder of an environment where FOLDER is conda's.
void read_activate(const Launch& launch, std::string folder, Doings& doings) {
  std::string remark;
  if (launch.words.size() > 2) {
    const auto which = launch.words[2].text().value_or("");
    if (which.empty()) return remark_unknown_venv(doings, launch.line);
    const bool path = which.find('/') != std::string::npos;
    folder = path ? which : which == "base" ? folder : fmt::format("{}/envs/{}", folder, which);
    if (!path && which != "base") remark = "where conda keeps it, unless conda env list shows another folder";
  }
  if (folder.starts_with("./")) folder.erase(0, 2);
  doings.venv = {"venv", folder, launch.line, remark};
  doings.values.set_venv(folder);
}

}  // namespace

bool is_syntax(std::string_view program) {
  return is_one_of(program, kSyntax);
}

bool is_left_out(std::string_view program) {
  return is_one_of(program, kProgramsLeftOut);
}

void read_module(const Launch& launch, Doings& doings) {
  std::size_t first = 1;
  auto verb = launch.words.size() > 1 ? launch.words[1].known() : "";
  constexpr std::array<std::string_view, 12> kVerbs{"load", "add",    "swap", "switch",  "purge", "reset",
                                                    "use",  "unload", "rm",   "restore", "list",  "avail"};
  if (launch.program == "module" || is_one_of(verb, kVerbs))
    first = 2;
  else
    verb = "load";
  if (verb == "purge" || verb == "reset") {
    doings.modules_reset = true;
    if (verb == "purge")
      remark(doings, Destination::modules, launch.line,
             "module purge; reset goes back to the site's own modules, purge would take what they set away "
             "too");
  } else if (verb == "load" || verb == "add" || verb == "swap" || verb == "switch") {
    if (verb[0] == 's') first = launch.words.size() - 1;
    for (auto i = first; i < launch.words.size(); ++i) {
      const auto text = launch.words[i].text().value_or("");
      if (!text.empty() && !text.starts_with('-')) doings.modules.push_back({"", text, launch.line, ""});
    }
  } else if (verb != "list" && verb != "avail") {
    remark(doings, Destination::modules, launch.line, std::string(kThatLine));
  }
}

void read_source(const Launch& launch, Doings& doings) {
  const auto path = launch.words.size() > 1 ? launch.words[1].known() : "";
  constexpr std::string_view kActivate = "/bin/activate";
  if (path.ends_with(kActivate)) {
    read_activate(launch, path.substr(0, path.size() - kActivate.size()), doings);
  } else if (path.find("lmod") != std::string::npos || path.find("modules") != std::string::npos ||
             path.ends_with("/z00_lmod.sh")) {
    doings.modules_init = path;
  } else if (path.find("conda") == std::string::npos) {  // conda's own, in front of conda activate
    const bool own = path.ends_with(".bashrc") || path.ends_with(".bash_profile") ||
                     path.ends_with(".profile") || path == "/etc/profile";
    remark(doings, Destination::environment, launch.line,
           own ? fmt::format("source {}: not read here; what is needed of it belongs into env or modules",
                             path.starts_with("${env.HOME}") ? "~" + path.substr(11) : path)
               : fmt::format("{}: what it sets belongs here", kThatLine));
  }
}

void read_conda(const Launch& launch, Doings& doings) {
  const auto verb = launch.words.size() > 1 ? launch.words[1].known() : "";
  if (verb != "activate") {
    if (verb != "init" && verb != "deactivate" && !verb.starts_with("shell"))
      remark(doings, Destination::environment, launch.line, std::string(kThatLine));
    return;
  }
  const auto path = launch.words.back().text().value_or("");
  if (launch.words.size() != 3 || path.find('/') == std::string::npos)
    return remark_unknown_venv(doings, launch.line);
  doings.venv = {"venv", path, launch.line, ""};
  doings.values.set_venv(path);
}

void read_cd(const Launch& launch, const lint::Command& command, Doings& doings) {
  if (!command.sure || launch.words.size() < 2) return;
  auto path = launch.words[1].text().value_or("");
  const bool known = !path.empty();
  if (launch.in_image) {
    doings.remarks.push_back(
        {Destination::roles,
         {launch.line,
          fmt::format(
              "cd {} is within the image: the option of its tool for that (apptainer: --pwd) goes into "
              "the wrapper",
              known ? path : "...")}});
    return;
  }
  if (path.starts_with("./") && path.size() > 2) path.erase(0, 2);
  doings.workdir = {
      "workdir", known ? path : ".", launch.line,
      known && path != "." ? std::string() : fmt::format("{}: the folder of this file", kThatLine)};
}

void read_poll(const Launch& launch, const lint::Command& command, const NumberIn& number_in,
               Doings& doings) {
  for (std::size_t i = 1; i < launch.words.size(); ++i) {
    const auto text = launch.words[i].known();
    const bool port =
        text.find(':') != std::string::npos && !text.starts_with('-') && text.find(' ') == std::string::npos;
    if (!port || text.starts_with("https:") || (command.sure && !command.guarded)) continue;
    const auto url = text.find("://") == std::string::npos ? fmt::format("http://{}", text) : text;
    doings.polls.push_back({url, launch.line, patience_near(doings.lines, launch.line, number_in)});
    return;
  }
  doings.left_out.insert(launch.program);
}

bool read_login(const Launch& launch, Doings& doings) {
  const bool logs_in =
      std::ranges::any_of(launch.words, [](const auto& word) { return word.known() == "login"; });
  if (!logs_in) return false;
  const bool wandb = launch.mentions("wandb");
  remark(doings, Destination::secrets, launch.line,
         fmt::format("a login: nothing to do where {} is declared here",
                     wandb ? "WANDB_API_KEY" : "the token (HF_TOKEN)"));
  return true;
}

}  // namespace nlaunch::import
