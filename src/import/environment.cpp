#include "import/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/secrets.h"
#include "base/text.h"
#include "config/names.h"
#include "import/command_line.h"
#include "lint/catalogue.h"

namespace nlaunch::import {
namespace {

constexpr std::size_t kLongestValue = 4096;

/// Belongs to the machine: its network, its compilers, its proxies.
bool is_of_site(std::string_view name) {
  constexpr std::array<std::string_view, 9> kFamilies{"NCCL_",  "FI_",  "OFI_", "GLOO_",     "UCX_",
                                                      "MPICH_", "PMI_", "CXI_", "SLINGSHOT_"};
  constexpr std::array<std::string_view, 14> kNames{
      "CC",         "CXX",         "CUDA_HOME",       "CUDA_PATH",    "TORCH_CUDA_ARCH_LIST",
      "MAX_JOBS",   "PATH",        "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH",
      "http_proxy", "https_proxy", "no_proxy",        "HTTP_PROXY"};
  const bool family = std::ranges::any_of(kFamilies, [&](auto prefix) { return name.starts_with(prefix); });
  return family || is_one_of(name, kNames) || name == "HTTPS_PROXY" || name == "NO_PROXY";
}

/// A folder on the node's own disk.
bool is_local(std::string_view path) {
  constexpr std::array<std::string_view, 6> kRoots{"/tmp/",           "/dev/shm/",      "/local/",
                                                   "/scratch_local/", "/localscratch/", "${node.scratch}"};
  return path == "/tmp" || std::ranges::any_of(kRoots, [&](auto root) { return path.starts_with(root); });
}

/// Caches and temporary files: their folders may be anew for each run.
bool is_cache(std::string_view name) {
  return name.find("CACHE") != std::string_view::npos || name.find("TMP") != std::string_view::npos ||
         name == "TEMP" || name.ends_with("_TEMP");
}

/// "triton-cache" of TRITON_CACHE_DIR.
std::string folder_name(std::string_view variable) {
  std::string name;
  for (const char c : text::lower(variable)) name += c == '_' ? '-' : c;
  return name.ends_with("-dir") ? name.substr(0, name.size() - 4) : name;
}

/// The host of an awk or sed over ~/.netrc.
std::string netrc_host(const std::string& command) {
  std::string word;
  for (const char c : command + " ") {
    const bool part = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '\\';
    if (part) {
      if (c != '\\') word += c;
      continue;
    }
    const auto dot = word.find('.');
    if (dot != std::string::npos && dot > 0 && dot + 2 < word.size() && word != ".netrc") return word;
    word.clear();
  }
  return {};
}

/// The file of `$(cat FILE)` or `$(< FILE)`.
std::string read_file(const std::string& command) {
  const auto inner = text::trim(std::string_view(command).substr(2, command.size() - 3));
  const auto rest = inner.starts_with("cat ") ? inner.substr(4)
                    : inner.starts_with('<')  ? inner.substr(1)
                                              : "";
  auto path = std::string(text::trim(rest));
  std::erase_if(path, [](char c) { return c == '"' || c == '\''; });
  for (const auto* home : {"${HOME}/", "$HOME/"}) {
    if (path.starts_with(home)) path = "~/" + path.substr(std::string_view(home).size());
  }
  return path.find_first_of(" $|;&<>`") == std::string::npos ? path : "";
}

class Environment {
 public:
  Environment(const Doings& doings, Imported& out) : doings_(doings), out_(out) {
    for (const auto& role : out.roles) ray_ = ray_ || role.name == "ray-head";
    if (ray_) head_ = "${role.ray-head.hosts}";
  }

  void make() {
    for (const auto& [name, line] : doings_.unset) unset(name, line);
    for (const auto& one : doings_.variables) {
      if (one.exported) destination(one);
    }
    const auto& site = out_.site_environment.set;
    const auto interface = std::ranges::find(site, "NCCL_SOCKET_IFNAME", &ImportedEntry::name);
    if (interface != site.end() && interface->value.find_first_of("^=,:$") == std::string::npos)
      out_.interface = interface->value;
  }

 private:
  void remark(Destination destination, std::uint32_t line, std::string text) {
    out_.remarks[destination].push_back({line, std::move(text)});
  }

  void unset(const std::string& name, std::uint32_t line) {
    if (config::is_reserved_variable(name) && name != "LD_PRELOAD") return;
    auto& list = (is_of_site(name) || name == "LD_PRELOAD" ? out_.site_environment : out_.environment).unset;
    if (std::ranges::find(list, name, &ImportedEntry::name) == list.end())
      list.push_back({name, "", line, ""});
  }

  void destination(const Exported& one) {
    const auto& name = one.name;
    const auto where = is_of_site(name) ? Destination::site_environment : Destination::environment;
    if (name == "LD_PRELOAD") return preload(one);
    if (name == "MASTER_ADDR" || name == "MASTER_PORT" || name.starts_with("SLURM_"))
      return;  // nlaunch's and Slurm's own
    if (config::is_reserved_variable(name))
      return remark(where, one.line, fmt::format("{} is nlaunch's own for each process", name));
    if (name.starts_with("SRUN_") || name.starts_with("SBATCH_"))
      return remark(Destination::scheduler, one.line, std::string(kThatLine));
    if (secret(one)) return;
    if (!one.sure) return remark(where, one.line, fmt::format("only under a condition: {}", kThatLine));
    if (joined(one)) return;
    const auto text = plain_text(one.value, head_);
    if (!text || text->size() > kLongestValue) {
      const bool used = std::ranges::any_of(
          one.value.pieces, [](const auto& piece) { return piece.kind == Piece::Kind::head; });
      if (used) return;  // the first node's address: the roles have it
      return remark(where, one.line, fmt::format("made when the script runs: {}", kThatLine));
    }
    set(one, *text);
  }

  void set(const Exported& one, std::string value) {
    const auto& name = one.name;
    if (const auto library = std::ranges::find(out_.libraries, value, &ImportedLibrary::path);
        library != out_.libraries.end())
      return library_variable(one, fmt::format("${{library.{}.path}}", library->name));
    if (is_cache(name) && is_local(value)) {
      if (out_.scratch.empty())
        out_.scratch = value.starts_with("${") ? "/tmp" : value.substr(0, value.find('/', 1));
      if (name == "RAY_TMPDIR" && ray_) return;  // ray start has --temp-dir
      if (name == "TMPDIR" || name == "RAY_TMPDIR") {
        value = "${node.scratch}";
      } else {
        const bool lasts = name.find("CACHE") != std::string::npos;
        value = fmt::format("${{node.{}}}/{}", lasts ? "cache" : "scratch", folder_name(name));
      }
    }
    if (name == "RAY_ADDRESS" && ray_) return;  // the trainer has it
    auto& environment = is_of_site(name) ? out_.site_environment : owner_of(name);
    environment.set.push_back({name, std::move(value), one.line, ""});
    for (const auto& doubt : one.value.doubts)
      remark(is_of_site(name) ? Destination::site_environment : Destination::environment,
             doubt.line > 0 ? doubt.line : one.line, fmt::format("of {}: {}", name, doubt.text));
  }

  /// A role's, where the name says whose it is.
  ImportedEnvironment& owner_of(const std::string& name) {
    if (name.starts_with("VLLM_") || name.starts_with("SGLANG_")) {
      ImportedRole* engine = nullptr;
      unsigned engines = 0;
      for (auto& role : out_.roles) {
        if (role.kind != RoleKind::engine) continue;
        engine = &role;
        ++engines;
      }
      if (engines == 1) return engine->environment;
    }
    return out_.environment;
  }

  /// A variable with the path of a preloaded library: for the program that reads it.
  void library_variable(const Exported& one, std::string value) {
    for (auto& role : out_.roles) {
      const bool reads = role.name == "trainer" || (!role.preload.empty() && role.spawned_by.empty());
      if (!reads) continue;
      role.environment.set.push_back({one.name, std::move(value), one.line, ""});
      return;
    }
  }

  void preload(const Exported& one) {
    const auto text = one.value.text().value_or("");
    if (text.empty()) return;
    remark(Destination::libraries, one.line,
           "LD_PRELOAD for everything is not taken over: engines, servers and shells would load the library "
           "too. "
           "`preload: [NAME]` in the role that needs it does it");
  }

  bool joined(const Exported& one) {
    return import_joined(one.name, plain_text(one.value, head_).value_or(""), one.line,
                         is_of_site(one.name) ? out_.site_environment : out_.environment);
  }

  bool secret(const Exported& one) {
    const auto text = one.value.text();
    const bool listed = text && std::ranges::any_of(doings_.secrets, [&](const auto& secret) {
                          return text->find(secret) != std::string::npos;
                        });
    if (!listed && !looks_like_secret(one.name)) return false;
    const bool harmless =
        text && !text->empty() &&
        (text->starts_with('/') || text->find_first_not_of("0123456789.") == std::string::npos);
    if (!listed && harmless) return false;
    ImportedSecret made{one.name, "env", "", one.line, ""};
    if (text) {
      const auto same = fmt::format("${{env.{}", one.name);
      if (listed || !text->starts_with(same))
        made.remark = fmt::format(
            "its value stands in the script: put it into a file that only you can read, and write {{file: "
            "~/.secrets/{}}}",
            one.name);
    } else {
      const auto command =
          one.value.pieces.front().kind == Piece::Kind::shell ? one.value.pieces.front().text : "";
      const auto host = command.find("netrc") == std::string::npos ? "" : netrc_host(command);
      const auto path = command.starts_with("$(") ? read_file(command) : "";
      if (!host.empty()) {
        made.kind = "netrc";
        made.value = host;
      } else if (!path.empty()) {
        made.kind = "file";
        made.value = path;
      } else {
        made.remark =
            "the script makes it by a command: it is taken from the environment in which nlaunch is called";
      }
    }
    out_.secrets.push_back(std::move(made));
    return true;
  }

  const Doings& doings_;
  Imported& out_;
  std::string head_;
  bool ray_ = false;
};

}  // namespace

bool import_joined(const std::string& name, const std::string& text, std::uint32_t line,
                   ImportedEnvironment& environment) {
  constexpr std::array<std::string_view, 7> kLists{
      "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "LIBRARY_PATH", "CPATH", "MANPATH", "PKG_CONFIG_PATH"};
  const auto own = fmt::format("${{env.{}:-}}", name);
  const auto at = text.find(own);
  if (!is_one_of(name, kLists) || at == std::string::npos) return false;
  auto before = text.substr(0, at);
  auto after = text.substr(at + own.size());
  while (before.ends_with(':')) before.pop_back();
  while (after.starts_with(':')) after.erase(0, 1);
  if (!before.empty()) environment.prepend.push_back({name, before, line, ""});
  if (!after.empty()) environment.append.push_back({name, after, line, ""});
  return true;
}

void import_environment(const Doings& doings, Imported& out) {
  Environment(doings, out).make();
}

}  // namespace nlaunch::import
