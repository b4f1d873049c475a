#include "plan/container_tools.h"

#include <fmt/format.h>

#include <array>

namespace nlaunch::plan {
namespace {

void mount_apptainer(const Mount& mount, Words& options) {
  options.insert(options.end(),
                 {"--bind", fmt::format("{0}:{0}{1}", mount.path, mount.writable ? "" : ":ro")});
}

void mount_bwrap(const Mount& mount, Words& options) {
  options.insert(options.end(), {mount.writable ? "--bind" : "--ro-bind", mount.path, mount.path});
}

void mount_enroot(const Mount& mount, Words& options) {
  options.insert(options.end(), {"--mount", fmt::format("{0}:{0}:none:x-create=auto,bind,{1}", mount.path,
                                                        mount.writable ? "rw" : "ro")});
}

/// It sets HOME itself, keeps the image's PATH, to which it appends the plan's additions, and accepts no
/// LD_LIBRARY_PATH from outside: the plan's replaces that of the image, because no shell evaluates the
/// values.
void pass_by_prefix(Passing& passing, const std::string& tool) {
  for (const auto& [name, value] : passing.given) {
    if (name == "HOME") continue;
    auto inside = name;
    if (const auto* whole = name == "PATH" ? passing.find(name) : nullptr;
        whole != nullptr && *whole != value)
      inside = whole->ends_with(":" + value) ? "APPEND_PATH" : "PREPEND_PATH";
    passing.beside.emplace_back(fmt::format("{}ENV_{}", tool, inside), value);
  }
  passing.beside.emplace_back(tool + "_NO_EVAL", "1");
}

void pass_apptainer(Passing& passing) {
  pass_by_prefix(passing, "APPTAINER");
}

void pass_singularity(Passing& passing) {
  pass_by_prefix(passing, "SINGULARITY");
}

/// It passes on its whole environment.
void pass_bwrap(Passing& passing) {
  if (const auto* preload = passing.find(kPreload))
    passing.options.insert(passing.options.end(), {"--setenv", kPreload, *preload});
}

/// It passes on variables by name, so that no value is on a command line. A PATH with additions is the
/// image's own.
void pass_enroot(Passing& passing) {
  for (const auto& [name, value] : passing.given) {
    const auto* whole = passing.find(name);
    if (name == "PATH" && (whole == nullptr || *whole != value)) continue;
    passing.options.insert(passing.options.end(),
                           {"--env", name == kPreload ? fmt::format("{}={}", name, value) : name});
  }
}

/// A long option, or a letter at the end of a group: "-eB".
std::size_t one_of_these(std::string_view valued, const std::string& option) {
  if (option.starts_with("--")) return is_among(valued, option) ? 1 : 0;
  return option.size() > 1 && is_among(valued, fmt::format("-{}", option.back())) ? 1 : 0;
}

constexpr std::string_view kApptainerValued =
    " --app --bind -B --mount --home -H --overlay -o --scratch -S --workdir -W --shell -s --cwd --pwd "
    "--hostname "
    "--network --network-args --dns --security --apply-cgroups --containlibs --fusemount --tmpdir --no-mount "
    "--add-caps --drop-caps --env --no-env --env-file --dmtcp-launch --dmtcp-restart --blkio-weight "
    "--blkio-weight-device --cpu-shares --cpus --cpuset-cpus --cpuset-mems --memory --memory-reservation "
    "--memory-swap --pids-limit --runscript-timeout --netns-path --device --cdi-dirs --pem-path "
    "--docker-host "
    "--authfile ";
std::size_t values_of_apptainer(const std::string& option) {
  return one_of_these(kApptainerValued, option);
}

std::size_t values_of_enroot(const std::string& option) {
  return one_of_these(" --rc -c --env -e --mount -m --conf ", option);
}

std::size_t values_of_bwrap(const std::string& option) {
  constexpr std::string_view kNone =
      " --share-net --disable-userns --assert-userns-disabled --clearenv --new-session --die-with-parent "
      "--as-pid-1 --level-prefix --help --version ";
  constexpr std::string_view kTwo =
      " --setenv --bind --bind-try --dev-bind --dev-bind-try --ro-bind --ro-bind-try --bind-fd --ro-bind-fd "
      "--file --bind-data --ro-bind-data --symlink --chmod ";
  if (is_among(kNone, option) || option.starts_with("--unshare-")) return 0;
  return is_among(kTwo, option) ? 2 : option == "--overlay" ? 3 : 1;
}

constexpr std::string_view kApptainerCleans = " --cleanenv -e --containall -C --compat ";
constexpr std::string_view kApptainerProcesses = " apptainer singularity starter starter-suid appinit sinit ";
constexpr std::string_view kOfADaemon =
    "its processes are children of another program, and nlaunch can neither stop nor inspect them";
constexpr std::string_view kUseAnother =
    "use apptainer, bwrap or enroot, which start the program as their own child; apptainer accepts docker:// "
    "images";

constexpr std::array kTools{
    Tool{.name = "apptainer",
         .verbs = " exec run ",
         .values = values_of_apptainer,
         .mount = mount_apptainer,
         .separators = ":,\\",
         .pass = pass_apptainer,
         .cleaning = kApptainerCleans,
         .processes = kApptainerProcesses},
    Tool{.name = "singularity",
         .verbs = " exec run ",
         .values = values_of_apptainer,
         .mount = mount_apptainer,
         .separators = ":,\\",
         .pass = pass_singularity,
         .cleaning = kApptainerCleans,
         .processes = kApptainerProcesses},
    Tool{.name = "bwrap",
         .values = values_of_bwrap,
         .alone = "--die-with-parent",
         .mount = mount_bwrap,
         .pass = pass_bwrap,
         .cleaning = " --clearenv ",
         .cleaned = Passage::Of::nothing,
         .processes = " bwrap "},
    Tool{.name = "enroot",
         .verbs = " start ",
         .values = values_of_enroot,
         .mount = mount_enroot,
         .separators = ": \t$",
         .pass = pass_enroot,
         .passes = Passage::Of::plan,
         .processes = " enroot-nsenter "},
    Tool{.name = "docker", .refused = kOfADaemon, .instead = kUseAnother},
    Tool{.name = "podman", .refused = kOfADaemon, .instead = kUseAnother},
    Tool{.name = "podman-hpc", .refused = kOfADaemon, .instead = kUseAnother},
    Tool{.name = "nerdctl", .refused = kOfADaemon, .instead = kUseAnother},
    Tool{.name = "srun",
         .refused = "its tasks are children of Slurm's daemon, and nlaunch can neither stop nor inspect them",
         .instead = "`scheduler: {srun: [--container-image=...]}` in the site profile runs nlaunch's whole "
                    "step in the container (pyxis)"},
};

}  // namespace

bool is_among(std::string_view list, std::string_view word) {
  return !word.empty() && list.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

std::span<const Tool> container_tools() {
  return kTools;
}

}  // namespace nlaunch::plan
