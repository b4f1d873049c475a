#include "import/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/secrets.h"
#include "base/text.h"
#include "config/names.h"
#include "import/secrets.h"
#include "import/work.h"
#include "shell/allocation.h"

namespace nlaunch::import {
namespace {

using std::ranges::any_of;

/// True for variables of the machine: its network, its compilers, its proxies.
bool is_of_site(std::string_view name) {
  constexpr std::array<std::string_view, 11> kFamilies{
      "NCCL_", "FI_", "OFI_", "GLOO_", "UCX_", "RCCL_", "MPICH_", "PMI_", "CXI_", "SLINGSHOT_", "HSA_"};
  constexpr std::array<std::string_view, 10> kNames{"CC",         "CXX",         "CUDA_HOME", "CUDA_PATH",
                                                    "http_proxy", "https_proxy", "no_proxy",  "HTTP_PROXY",
                                                    "NO_PROXY",   "HTTPS_PROXY"};
  return any_of(kFamilies, [&](auto prefix) { return name.starts_with(prefix); }) ||
         std::ranges::find(kNames, name) != kNames.end();
}

/// What nlaunch sets for each process of a role.
bool is_of_nlaunch(std::string_view name, const ImportedRole& role) {
  return config::is_reserved_variable(name, {.rendezvous = role.rendezvous, .is_rank = role.gpus <= 1});
}

/// For a list that the script extended: the added part, before or after it.
struct Addition {
  std::string front, back;
};
std::optional<Addition> addition_of(const std::string& value, const std::string& before) {
  if (before.empty()) {  // `X=/a:$X` of an unset variable
    if (value.size() > 1 && value.ends_with(':')) return Addition{value.substr(0, value.size() - 1), ""};
    if (value.size() > 1 && value.starts_with(':')) return Addition{"", value.substr(1)};
    return std::nullopt;
  }
  if (value == before) return Addition{};
  const auto at = value.find(before);
  if (at == std::string::npos) return std::nullopt;
  const auto end = at + before.size();
  if ((at > 0 && value[at - 1] != ':') || (end < value.size() && value[end] != ':')) return std::nullopt;
  return Addition{at > 0 ? value.substr(0, at - 1) : "", end < value.size() ? value.substr(end + 1) : ""};
}

/// The host of an awk or sed over ~/.netrc in a line of the script.
std::string netrc_host(const std::string& line) {
  if (line.find("netrc") == std::string::npos) return {};
  std::string word;
  for (const char c : line + " ") {
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

/// The file of `$(cat FILE)` or `$(< FILE)` in a line of the script.
std::string read_file(const std::string& line) {
  for (const std::string_view begin : {"$(cat ", "$(< ", "$(<"}) {
    const auto at = line.find(begin);
    if (at == std::string::npos) continue;
    const auto rest = line.substr(at + begin.size());
    auto path = std::string(text::trim(rest.substr(0, rest.find(')'))));
    std::erase_if(path, [](char c) { return c == '"' || c == '\''; });
    for (const auto* home : {"${HOME}/", "$HOME/"})
      if (path.starts_with(home)) path = "~/" + path.substr(std::string_view(home).size());
    return path.find_first_of(" $|;&<>`") == std::string::npos ? path : "";
  }
  return {};
}

class Environment {
 public:
  Environment(const shell::Recording& recording, const std::vector<std::string>& lines,
              const std::vector<HandedOver>& secrets, Imported& out)
      : recording_(recording), lines_(lines), secrets_(secrets), out_(out) {
    for (const auto& entry : recording.environment)
      before_[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
    for (const auto& name : recording.given) before_.erase(name);
    for (auto& role : out.roles)
      if (role.part) roles_.push_back(&role);
  }

  void make() {
    if (roles_.empty()) return;
    modules();
    folders();
    venvs();
    std::set<std::string> names;
    for (const auto* role : roles_)
      for (const auto& [name, value] : changes(*role)) names.insert(name);
    for (const auto& name : names) variable(name);
    for (auto* role : roles_) of_step(*role);
    const auto& site = out_.site_environment.set;
    const auto interface = std::ranges::find(site, "NCCL_SOCKET_IFNAME", &ImportedEntry::name);
    if (interface != site.end() && interface->value.find_first_of("^=,:$") == std::string::npos)
      out_.interface = interface->value;
  }

 private:
  Changes& changes(const ImportedRole& role) { return out_.parts[*role.part].changes; }
  const Part& part(const ImportedRole& role) { return out_.parts[*role.part]; }

  void remark(Destination destination, std::uint32_t line, std::string text) {
    out_.remarks[destination].push_back({line, std::move(text)});
  }

  /// The line of the script that sets it; 0 if none does.
  [[nodiscard]] std::uint32_t line_of(const std::string& name) const {
    std::uint32_t line = 0;
    for (const auto& one : recording_.assignments) {
      const auto file = one.script.substr(one.script.rfind('/') + 1);
      if (one.name == name && file == out_.script) line = one.line;
    }
    return line;
  }

  void modules() {
    for (const auto& command : recording_.commands) {
      const auto name = shell::program_name(command.argv[0]);
      if (name != "module" && name != "ml") continue;
      auto argv = command.argv;
      static const shell::Options kHowItSpeaks{"-q", "--quiet", "-s", "--silent",
                                               "-t", "--terse", "-f", "--force"};
      std::erase_if(argv, [](const auto& word) { return kHowItSpeaks.contains(word); });
      const auto verb = argv.size() > 1 ? argv[1] : std::string();
      if (verb == "purge" || verb == "reset") {
        out_.modules_reset = true;
        if (verb == "purge")
          remark(Destination::modules, command.line,
                 "`module purge` removes all modules; the profile resets them to those of a login "
                 "(module reset)");
      } else if (verb == "load" || verb == "add" || (name == "ml" && !verb.empty() && verb[0] != '-')) {
        for (std::size_t i = verb == "load" || verb == "add" ? 2 : 1; i < argv.size(); ++i) {
          if (std::ranges::find(out_.modules, argv[i], &ImportedEntry::value) == out_.modules.end())
            out_.modules.push_back({"", escaped(argv[i]), command.line, ""});
        }
      } else if (verb == "use") {
        for (std::size_t i = 2; i < argv.size(); ++i) {
          if (!argv[i].starts_with('-'))
            out_.module_paths.push_back({"", escaped(argv[i]), command.line, ""});
          else if (argv[i] != "-p" && argv[i] != "--prepend")
            remark(Destination::roles, command.line,
                   fmt::format("`{}`: the profile puts the directory before the others",
                               text::shell_join(argv)));
        }
      } else if (verb != "list" && verb != "avail" && verb != "show" && !verb.empty()) {
        out_.not_said.push_back(
            {command.line, fmt::format("`{}`: a profile can only load modules. For anything else, "
                                       "name a shell file with `modules: {{init: FILE}}`",
                                       text::shell_join(argv))});
      }
    }
  }

  void folders() {
    const auto& common = part(*roles_[0]).folder;
    const bool one = std::ranges::all_of(roles_, [&](auto* role) { return part(*role).folder == common; });
    if (one && common == out_.folder) return;
    if (one) out_.workdir = {"workdir", escaped(common), 0, ""};
    for (auto* role : roles_)
      if (!one && part(*role).folder != out_.folder) role->workdir = escaped(part(*role).folder);
  }

  void venvs() {
    const auto venv_of = [&](const ImportedRole& role) {
      const auto found = changes(role).find("VIRTUAL_ENV");
      return found == changes(role).end() || !found->second ? std::string() : *found->second;
    };
    const auto common = venv_of(*roles_[0]);
    const bool one = std::ranges::all_of(roles_, [&](const auto* role) { return venv_of(*role) == common; });
    if (one && !common.empty()) out_.venv = {"venv", common, line_of("VIRTUAL_ENV"), ""};
    const bool is_said = std::ranges::any_of(
        lines_, [](const auto& line) { return line.substr(0, line.find('#')).contains("miniconda3"); });
    for (const auto* role : roles_) {
      if (is_said) break;
      const auto conda = changes(*role).find("CONDA_PREFIX");
      if (conda == changes(*role).end() || !conda->second ||
          !conda->second->starts_with(fmt::format("{}/miniconda3", shell::Allocation::kHome)))
        continue;
      remark(Destination::experiment, line_of("CONDA_PREFIX"),
             "the conda environment is assumed to be in ~/miniconda3, since the script does not say where "
             "conda is "
             "(see `conda env list`)");
      break;
    }
    for (auto* role : roles_) {
      const auto venv = venv_of(*role);
      if (!one) role->venv = venv;
      if (venv.empty()) continue;
      changes(*role).erase("VIRTUAL_ENV");
      changes(*role).erase("PYTHONHOME");
      auto path = changes(*role).find("PATH");
      if (path == changes(*role).end() || !path->second) continue;
      const auto bin = venv + "/bin:";
      if (const auto at = path->second->find(bin); at != std::string::npos)
        path->second->erase(at, bin.size());
      if (*path->second == before_["PATH"]) changes(*role).erase(path);
    }
  }

  void variable(const std::string& name) {
    const auto of = [&](const ImportedRole& role) {
      const auto found = changes(role).find(name);
      return found == changes(role).end() ? std::optional<std::optional<std::string>>() : found->second;
    };
    if (name == "LD_PRELOAD") return preload();
    const auto line = line_of(name);
    const auto first = of(*roles_[0]);
    if (secret(name, line)) return;
    const bool one = std::ranges::all_of(roles_, [&](const auto* role) { return of(*role) == first; });
    if (config::is_reserved_variable(name)) {
      for (auto* role : roles_)
        if (const auto value = of(*role); value && !is_of_nlaunch(name, *role))
          set(role->environment, name, *value, line);
      return;
    }
    if (one) return set(is_of_site(name) ? out_.site_environment : out_.environment, name, *first, line);
    for (auto* role : roles_)
      if (const auto value = of(*role)) set(role->environment, name, *value, line);
  }

  void set(ImportedEnvironment& into, const std::string& name, const std::optional<std::string>& value,
           std::uint32_t line) {
    if (!value) {
      into.unset.push_back({name, "", line, ""});
      return;
    }
    auto before = before_.contains(name) ? before_[name] : "";
    constexpr std::string_view kModules = "/rec/modules/lib";
    if (name == "LD_LIBRARY_PATH" && value->find(kModules) != std::string::npos) before = kModules;
    const auto added = addition_of(*value, before);
    if (!added) {
      into.set.push_back({name, *value, line, ""});
      return;
    }
    if (!added->front.empty()) into.prepend.push_back({name, added->front, line, ""});
    if (!added->back.empty()) into.append.push_back({name, added->back, line, ""});
  }

  /// A password in a URL (http_proxy), or the value of a variable whose name means a secret, exported or not.
  bool holds_secret(const std::string& name) {
    return std::ranges::any_of(roles_, [&](const auto* role) {
      const auto& all = changes(*role);
      const auto found = all.find(name);
      if (found == all.end() || !found->second) return false;
      const bool is_of_secret =
          found->second->size() >= Masker::kShortest && std::ranges::any_of(all, [&](const auto& other) {
            return other.second == found->second && looks_like_secret(other.first);
          });
      const bool has_secret = std::ranges::any_of(
          secrets_, [&](const HandedOver& one) { return found->second->contains(one.value); });
      return is_of_secret || has_secret || !secrets_in(*found->second).empty();
    });
  }

  /// `NAME=$(cat FILE)` of a line that sets several variables; the whole line if it does not set it so.
  static std::string assignment_in(const std::string& line, const std::string& name) {
    const auto at = line.find(name + "=");
    if (at == std::string::npos) return line;
    int open = 0;
    auto end = at;
    for (; end < line.size(); ++end) {
      open += line[end] == '(' ? 1 : line[end] == ')' ? -1 : 0;
      if (open == 0 && (line[end] == ' ' || line[end] == ';')) break;
    }
    return line.substr(at, end - at);
  }

  /// Read when the process starts, from the place where the script reads it.
  bool secret(const std::string& name, std::uint32_t line) {
    if (!looks_like_secret(name) && !holds_secret(name)) return false;
    const auto text = assignment_in(line > 0 && line <= lines_.size() ? lines_[line - 1] : "", name);
    ImportedSecret one{name, "env", "", line, ""};
    if (auto host = netrc_host(text); !host.empty())
      one = {name, "netrc", std::move(host), line, ""};
    else if (auto file = read_file(text); !file.empty())
      one = {name, "file", std::move(file), line, ""};
    else
      one.remark = "nlaunch reads it from the environment in which it is called";
    const bool is_empty = std::ranges::all_of(roles_, [&](const auto* role) {
      const auto found = changes(*role).find(name);
      return found == changes(*role).end() || !found->second || found->second->empty();
    });
    if (is_empty && one.kind == "env")
      out_.remarks[Destination::roles].push_back(
          {line, fmt::format(
                     "{} is empty here: nlaunch requires a value in its environment, and the script does not",
                     name)});
    out_.secrets.push_back(std::move(one));
    return true;
  }

  /// Only roles that train get LD_PRELOAD.
  void preload() {
    const auto line = line_of("LD_PRELOAD");
    for (auto* role : roles_) {
      const auto found = changes(*role).find("LD_PRELOAD");
      if (found == changes(*role).end() || !found->second || found->second->empty()) continue;
      const bool trains = role->kind == RoleKind::learner || role->ends_run.value_or(false);
      if (!trains) {
        role->remarks.push_back({line, "LD_PRELOAD is not imported: only roles that train get it"});
        continue;
      }
      for (const auto& path : text::split(text::join(text::split(*found->second, ' '), ":"), ':')) {
        if (path.empty()) continue;
        const auto name = library(path, line);
        auto* owner = role->kind == RoleKind::learner ? role : learner_actor();
        if (owner != nullptr) owner->preload.push_back(name);
      }
    }
  }

  ImportedRole* learner_actor() {
    const auto found = std::ranges::find_if(out_.roles, [](const auto& role) {
      return role.kind == RoleKind::learner && !role.spawned_by.empty();
    });
    return found == out_.roles.end() ? nullptr : &*found;
  }

  std::string library(const std::string& path, std::uint32_t line) {
    const auto known = std::ranges::find(out_.libraries, path, &ImportedLibrary::path);
    if (known != out_.libraries.end()) return known->name;
    auto name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("lib")) name.erase(0, 3);
    name = text::lower(name.substr(0, name.find('.')));
    std::erase_if(name, [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')); });
    if (name.empty()) name = "library";
    while (std::ranges::find(out_.libraries, name, &ImportedLibrary::name) != out_.libraries.end())
      name += "2";
    out_.libraries.push_back({name, path, line});
    return name;
  }

  /// The variables that srun or mpirun sets for each task, for programs that may read them.
  void of_step(ImportedRole& role) {
    const auto& its = part(role);
    if (its.step.empty() || role.ray || recording_.per_node) return;
    const auto launcher = shell::program_name(its.step[0]);
    const bool mpi = launcher.starts_with("mpi") || launcher == "orterun";
    const bool asks = std::ranges::any_of(
        its.argv, [](const auto& word) { return word.find("$SLURM_") != std::string::npos; });
    // With one task on each node, launchers of ranks do without them; what a shell or a container runs may
    // not.
    const bool reads =
        asks || !role.wrapper.empty() || shell::is_shell(its.argv[0]) || !makes_ranks(its.program);
    const bool is_one_of_several = its.tasks_of_step > 1 && reads && role.kind != RoleKind::engine;
    if ((launcher != "srun" && !mpi) || (its.tasks.size() < 2 && !asks && !is_one_of_several)) return;
    const bool one_on_each_node =
        its.tasks.size() == out_.nodes && its.tasks_of_step == out_.nodes &&
        std::ranges::all_of(its.tasks, [](const auto& task) { return task.local_rank == 0; });
    if (!mpi && !reads && out_.nodes > 1 && one_on_each_node) return;
    auto& set = role.environment.set;
    const auto add = [&](const char* name, std::string value) {
      const bool known = std::ranges::find(set, name, &ImportedEntry::name) != set.end();
      if (!known && !value.empty()) set.push_back({name, std::move(value), 0, ""});
    };
    const auto size = std::to_string(its.tasks_of_step);
    const auto own = std::to_string(std::ranges::count(its.tasks, its.tasks[0].node, &shell::Task::node));
    const auto of_step = recorded(its, "SLURM_NTASKS_PER_NODE");
    const auto each = its.tasks.size() == its.tasks_of_step || of_step.empty() ? own : of_step;
    if (mpi) {
      add("OMPI_COMM_WORLD_RANK", rank_of(its));
      add("OMPI_COMM_WORLD_LOCAL_RANK", local_rank_of(its));
      add("OMPI_COMM_WORLD_SIZE", size);
      add("OMPI_COMM_WORLD_LOCAL_SIZE", each);
      return;
    }
    add("SLURM_PROCID", rank_of(its));
    add("SLURM_LOCALID", local_rank_of(its));
    if (rank_of(its).empty() || local_rank_of(its).empty())
      role.remarks.push_back(
          {its.line,
           "SLURM_PROCID or SLURM_LOCALID is not set: other programs run in the other tasks "
           "of its step, and no placeholder numbers these. A program that reads them needs "
           "different numbers here"});
    add("SLURM_NODEID", node_id_of(its));
    if (node_id_of(its).empty())
      role.remarks.push_back(
          {its.line,
           "SLURM_NODEID is not set: it numbers the step's nodes from 0, and no "
           "placeholder does that. A program that reads it needs a different number here"});
    add("SLURM_NTASKS", size);
    add("SLURM_NPROCS", size);
    add("SLURM_NTASKS_PER_NODE", each);
    for (const auto* name : {"SLURM_NNODES", "SLURM_TASKS_PER_NODE", "SLURM_STEP_ID", "SLURM_STEP_NUM_NODES",
                             "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"})
      add(name, recorded(its, name));
    add("SLURM_STEP_NODELIST", hosts_of_step(its));
    add("SLURM_CPUS_PER_TASK", recorded(its, "SLURM_CPUS_PER_TASK"));
  }

  /// SLURM_NODEID numbers the nodes of the step; empty if no placeholder does.
  static std::string node_id_of(const Part& part) {
    const bool of_job =
        std::ranges::all_of(part.tasks, [](const auto& task) { return task.node == task.node_of_step; });
    if (of_job) return "${self.node}";
    const bool of_role = std::ranges::all_of(part.tasks, [&](const auto& task) {
      return static_cast<std::size_t>(task.node_of_step) ==
             static_cast<std::size_t>(&task - part.tasks.data());
    });
    return of_role ? "${self.index}" : "";
  }

  /// Slurm accepts a comma-separated list, and a role has its hosts in that form.
  [[nodiscard]] std::string hosts_of_step(const Part& part) const {
    const auto list = recorded(part, "SLURM_STEP_NODELIST");
    const auto dash = list.find("[0-");
    if (dash == std::string::npos) return list;
    const auto last = list.substr(dash + 3, list.size() - dash - 4);
    std::vector<std::string> hosts;
    for (std::uint32_t node = 0; node <= text::whole_number<std::uint32_t>(last).value_or(0); ++node)
      hosts.push_back(shell::Allocation::host(node));
    return text::join(hosts, ",");
  }

  /// The value in the first of its commands; empty if not set.
  [[nodiscard]] std::string recorded(const Part& part, std::string_view name) const {
    for (const auto& entry : recording_.commands[part.commands[0]].environment)
      if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
        return entry.substr(name.size() + 1);
    return {};
  }

  /// The rank of a task on its node; empty if no placeholder has this value.
  static std::string local_rank_of(const Part& part) {
    const auto& tasks = part.tasks;
    std::map<std::uint32_t, std::uint32_t> before;  // by node
    const bool of_role = std::ranges::all_of(tasks, [&](const auto& task) {
      return static_cast<std::uint32_t>(task.local_rank) == before[task.node]++;
    });
    if (of_role) return "${self.local_rank}";
    const auto is_first = [&](const auto& task) { return task.local_rank == tasks[0].local_rank; };
    return std::ranges::all_of(tasks, is_first) ? std::to_string(tasks[0].local_rank) : "";
  }

  /// The rank of a task within its step; empty if no placeholder of an experiment has this value.
  static std::string rank_of(const Part& part) {
    const auto& tasks = part.tasks;
    if (std::ranges::all_of(tasks, [&](const auto& task) { return task.rank == tasks[0].rank; }))
      return std::to_string(tasks[0].rank);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (tasks[i].rank != i) return {};
    return "${self.index}";
  }

  const shell::Recording& recording_;
  const std::vector<std::string>& lines_;
  const std::vector<HandedOver>& secrets_;
  Imported& out_;
  std::map<std::string, std::string> before_;
  std::vector<ImportedRole*> roles_;
};

}  // namespace

void import_environment(const shell::Recording& recording, const std::vector<std::string>& lines,
                        const std::vector<HandedOver>& secrets, Imported& out) {
  Environment(recording, lines, secrets, out).make();
}

}  // namespace nlaunch::import
