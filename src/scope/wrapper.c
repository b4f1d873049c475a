#include "scope/wrapper.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char* const wrappers[] = {
    // shells, and so everything that is a shell script, such as a pyenv shim
    "sh", "bash", "rbash", "dash", "ash", "busybox", "zsh", "ksh", "ksh93", "mksh", "lksh", "fish", "csh",
    "tcsh",
    // set something up, then execute the rest of their command line
    "env", "nice", "ionice", "chrt", "taskset", "numactl", "timeout", "stdbuf", "setsid", "nohup", "time",
    "prlimit", "setarch", "linux64", "unshare", "chroot", "flock", "script", "unbuffer", "xargs", "tini",
    "dumb-init", "catatonit", "srun", "mpirun", "mpiexec", "orterun", "prterun", "uv", "uvx", "micromamba",
    "pixi",
    // containers, with the programs that mount their images
    "bwrap", "apptainer", "singularity", "starter", "starter-suid", "enroot", "enroot-nsenter",
    "enroot-switchroot", "squashfuse", "squashfuse_ll", "fuse2fs", "fuse-overlayfs", "gocryptfs",
    // profilers and debuggers
    "nsys", "ncu", "nv-nsight-cu-cli", "nvprof", "compute-sanitizer", "cuda-gdb", "gdb", "strace", "ltrace",
    "perf", "valgrind", "rr", NULL};

// Wrappers that are themselves Python scripts.
static const char* const python_wrappers[] = {"conda", "mamba", "poetry", "pdm", "hatch", "pipenv", NULL};

static const char* const launchers[] = {"torchrun", "accelerate", "accelerate-launch", "deepspeed", NULL};

// For `python -m MODULE`, and for the module's file given as a script.
static const char* const launcher_modules[] = {"torch.distributed.run",
                                               "torch.distributed.launch",
                                               "accelerate.commands.launch",
                                               "accelerate.commands.accelerate_cli",
                                               "deepspeed.launcher.runner",
                                               "deepspeed.launcher.launch",
                                               NULL};

static const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  return name[0] == '-' ? name + 1 : name;  // a login shell
}

static bool listed(const char* const* names, const char* name) {
  for (; *names; ++names) {
    if (strcmp(*names, name) == 0) return true;
  }
  return false;
}

static enum nlaunch_kind kind_of_name(const char* path) {
  const char* name = base_name(path);
  if (listed(launchers, name)) return NLAUNCH_LAUNCHER;
  return listed(wrappers, name) ? NLAUNCH_WRAPPER : NLAUNCH_PROGRAM;
}

// True for ".../torch/distributed/run.py" and "torch.distributed.run".
static bool is_file_of_module(const char* path, const char* module) {
  const size_t length = strlen(module);
  const size_t whole = strlen(path);
  if (whole < length + 3 || strcmp(path + whole - 3, ".py") != 0) return false;
  const char* tail = path + whole - 3 - length;
  if (tail != path && tail[-1] != '/') return false;
  for (size_t i = 0; i < length; ++i) {
    if (tail[i] != (module[i] == '.' ? '/' : module[i])) return false;
  }
  return true;
}

static bool is_python(const char* path) {
  const char* name = base_name(path);
  return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

struct python_target {
  const char* script;  // NULL: none, or unknown
  const char* module;
};

// What a Python command line runs, by the interpreter's own rules: the first argument that is not an option,
// or -m.
static struct python_target python_target(const char* const* argv) {
  struct python_target target = {NULL, NULL};
  for (size_t i = 1; argv[i]; ++i) {
    const char* argument = argv[i];
    if (argument[0] != '-' || argument[1] == '\0') {
      target.script = argument;
      return target;
    }
    if (argument[1] == '-') {
      if (strcmp(argument, "--check-hash-based-pycs") == 0 && argv[i + 1]) ++i;
      continue;
    }
    const char* option = argument + strcspn(argument, "mcXW");  // those that take a value
    if (*option == '\0') continue;
    const char* value = option[1] ? option + 1 : argv[++i];
    if (*option == 'm') target.module = value;
    if (*option == 'm' || *option == 'c' || !value) return target;
  }
  return target;
}

static enum nlaunch_kind kind_of_python(const char* const* argv) {
  const struct python_target target = python_target(argv);
  if (target.module) return listed(launcher_modules, target.module) ? NLAUNCH_LAUNCHER : NLAUNCH_PROGRAM;
  if (!target.script) return NLAUNCH_PROGRAM;
  for (const char* const* module = launcher_modules; *module; ++module) {
    if (is_file_of_module(target.script, *module)) return NLAUNCH_LAUNCHER;
  }
  if (listed(launchers, base_name(target.script))) return NLAUNCH_LAUNCHER;
  return listed(python_wrappers, base_name(target.script)) ? NLAUNCH_WRAPPER : NLAUNCH_PROGRAM;
}

enum nlaunch_kind nlaunch_kind_of(const char* executable, const char* const* argv) {
  const enum nlaunch_kind kind = kind_of_name(executable);
  if (kind != NLAUNCH_PROGRAM || !argv[0]) return kind;
  if (is_python(executable) || is_python(argv[0])) return kind_of_python(argv);
  return kind_of_name(argv[0]);
}
