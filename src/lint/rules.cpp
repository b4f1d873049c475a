#include <algorithm>
#include <array>

#include "lint/rule_checks.h"

namespace nlaunch::lint {
namespace {

void no_check(const LintInput& /*input*/, Report& /*report*/) {}

// A new rule: a row here, a check in the file of its subject, a test.
constexpr std::array kRules{
    Rule{"unknown-variable", "a name that no release of its owner reads",
         "NCCL, libfabric and PyTorch read the names that they know and say nothing about others: a "
         "mistyped or invented name is a "
         "setting that was never made. nlaunch knows every name of these families by release (nlaunch env "
         "--list). A name that the script "
         "itself reads, or hands on under another name, is told as that.",
         "the catalogue of variables: nlaunch env --list", check_unknown_variable},
    Rule{"not-in-release", "a name that the release which will be loaded does not read yet, or no longer",
         "Variables come and go with releases. The release is the one that the role will load (its preload, "
         "its wheel), a module's, or the "
         "one named with --release.",
         "the catalogue of variables: nlaunch env --doc NAME", check_release},
    Rule{"legacy-name", "an old name that is still read",
         "The old name still works, often with a warning in the log. Where both are set, and not to the "
         "same, "
         "which one counts depends on the release.",
         "the catalogue of variables: nlaunch env --doc NAME", check_legacy_name},
    Rule{"not-exported", "a setting that stays within the shell",
         "NAME=value on a line of its own sets a variable of the shell. Programs see it only where it is "
         "exported, or was in the "
         "environment before.",
         "bash(1), ENVIRONMENT", check_not_exported},
    Rule{"set-twice", "a variable that is set to two values, one behind the other",
         "The later one counts, and nothing was started in between. Most likely one of them was to be taken "
         "out.",
         "bash(1), ENVIRONMENT", check_set_twice},
    Rule{"not-a-number", "a value that is read as another number than it looks",
         "NCCL reads numbers with strtoll in base 0 and checks nothing: true is 0, 1M is 1, 010 is 8. "
         "libfabric does the same. PyTorch's process groups take the digits in front (std::stoi: 10m is 10) "
         "and refuse a text that begins with none; of booleans they take 1, y, yes, t, true and their "
         "opposites in any case, and refuse the rest. aws-ofi-nccl refuses both, at the start of the "
         "program.",
         "NCCL src/misc/param.cc (ncclLoadParam); libfabric src/var.c; PyTorch "
         "torch/csrc/distributed/c10d/Utils.hpp (getCvarInt, getCvarBool)",
         check_number},
    Rule{"unknown-value", "a value that its reader does not know",
         "Levels, modes and names are compared with a list, in some cases with their exact case. What is not "
         "on the list is dropped in "
         "silence, or switches off more than was meant. vLLM, and PyTorch for TORCH_DISTRIBUTED_DEBUG, "
         "refuse it at the start.",
         "the catalogue of variables: nlaunch env --doc NAME", check_choice},
    Rule{"out-of-range", "a number that its reader does not accept",
         "A number out of its range is replaced by the default. cxi, for one, warns in its own log, which "
         "nobody reads.",
         "the catalogue of variables: nlaunch env --doc NAME", check_range},
    Rule{"unknown-algorithm", "a name in NCCL_ALGO or NCCL_PROTO that NCCL does not have",
         "Before 2.24 an unknown name was skipped, and since a list first switches everything off, a single "
         "typing error left nothing. From "
         "2.24 on it is an error when the communicator is made. Lists for single functions (allreduce:ring) "
         "came with 2.24, too.",
         "NCCL src/graph/tuning.cc (parseList), 2.23.4 and 2.24.3", check_algorithms},
    Rule{"recorder-entries", "a flight recorder's size in bytes, where entries are counted",
         "TORCH_NCCL_TRACE_BUFFER_SIZE and TORCH_FR_BUFFER_SIZE are numbers of entries. 67108864, meant as "
         "64 MiB, is 67 million stack traces.",
         "PyTorch FlightRecorder.hpp (max_entries_)", check_recorder_size},
    Rule{"noset-devices", "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES=0, which older Ray takes for yes",
         "Up to 2.53 Ray looks whether the variable is empty, not what it says.",
         "Ray python/ray/_private/accelerators/nvidia_gpu.py", check_noset_devices},
    Rule{"interfaces", "a list of interfaces that chooses the wrong one",
         "NCCL takes prefixes, and a ^ at the very start turns the whole list around. A list that leaves out "
         "docker and not lo lets NCCL "
         "take loopback, and ranks on other machines never answer. Gloo takes whole names.",
         "NCCL src/misc/socket.cc, src/os/linux.cc; Gloo transport/tcp/device.cc", check_interfaces},
    Rule{"forced-ll128", "NCCL_PROTO names LL128",
         "LL128 needs links that keep 128 bytes together. NCCL knows where that holds, and does not look "
         "when the protocol is named.",
         "NCCL src/graph/tuning.cc; NVIDIA/nccl#2001", check_forced_ll128},
    Rule{"forced-ll", "NCCL_PROTO=LL",
         "LL is for small messages: half of what it sends are flags. Forced, it is used for gradients of "
         "gigabytes as well.",
         "NCCL src/graph/tuning.cc; measured: docs/measurements.md", check_forced_ll},
    Rule{"ll128-guard", "GH200 with Slingshot, and nothing that keeps LL128 off the network",
         "From 2.27.3 on NCCL allows LL128 over the link between Grace and Hopper, and so over Slingshot, "
         "where data arrive damaged: wrong "
         "sums, at full speed, without an error. Open at 2.30.7.",
         "NVIDIA/nccl#2001; shs-ccl-docs pull request 21", check_ll128_guard},
    Rule{"alt-read", "FI_CXI_RDZV_PROTO=alt_read without the step's option",
         "alt_read wants a network whose rendezvous get is off: srun --network=disable_rdzv_get, since Slurm "
         "23.11. Some sites set it for all.",
         "HPE shs-ccl-docs nccl_tuning_guide.md; fi_cxi(7)", check_alt_read},
    Rule{"gdrcopy", "GDRCopy on Grace Hopper without the rendezvous settings",
         "The path that damaged data on GH200 with Slingshot went through GDRCopy. With "
         "FI_CXI_RDZV_THRESHOLD=0 and FI_CXI_RDZV_GET_MIN=0 "
         "messages do not take it.",
         "NVIDIA/nccl#2001 (HPE's comment of 2026-05-05)", check_gdrcopy},
    Rule{"mpich-gpu", "MPICH_GPU_SUPPORT_ENABLED=1 beside NCCL",
         "Cray MPICH and NCCL both wait for the GPU, and can wait for each other.",
         "eth-cscs/cscs-docs nccl.md", check_mpich},
    Rule{"net-on-one-node", "NCCL_NET in a job of one node",
         "Within a node GPUs talk over NVLink or PCIe. Asking for the network plugin costs an allocation of "
         "the network, and fails where "
         "there is no plugin.",
         "HPE shs-ccl-docs nccl_tuning_guide.md", check_net_on_one_node},
    Rule{"net-plugin", "NCCL_NET asks for one plugin, NCCL_NET_PLUGIN loads another",
         "NCCL_NET is the name that the plugin gives itself, NCCL_NET_PLUGIN the file. They have to fit, or "
         "no communicator is made.",
         "NCCL src/plugin/net.cc; aws-ofi-nccl src/nccl_ofi_interface_nvidia.cpp", check_net_plugin},
    Rule{"ib-disabled", "NCCL_IB_DISABLE where InfiniBand is the network",
         "Copied from a workstation's script, it sends a cluster's traffic over TCP.",
         "NCCL src/transport/net_ib/init.cc", check_ib_disabled},
    Rule{"same-identity", "NCCL_COMM_ID or NCCL_HOSTID in a job",
         "Both are for tests. An id that all communicators share makes the second one fail; one host id for "
         "all nodes makes them look like one.",
         "NCCL src/bootstrap.cc, src/misc/utils.cc", check_same_identity},
    Rule{"blocking-wait", "TORCH_NCCL_BLOCKING_WAIT=1",
         "It was the way to get timeouts before PyTorch had a watchdog. Now it takes the watchdog away: no "
         "timeout but of the call that waits, "
         "no dump, no flight recorder.",
         "PyTorch ProcessGroupNCCL.cpp", check_blocking_wait},
    Rule{"recorder-path", "a flight recorder that writes where nobody looks",
         "The prefix of its files is /tmp/nccl_trace_rank_ or a folder in ~/.cache, by release: lost with "
         "the node, or overwritten by the "
         "next job.",
         "PyTorch FlightRecorder.cpp", check_recorder_path},
    Rule{"cumem-differs", "NCCL_CUMEM_ENABLE differs within a group",
         "Older vLLM sets it to 0 for its engines. Learners and engines share the communicator of the weight "
         "sync.",
         "vLLM pull request 24141; NCCL src/misc/cudawrap.cc", check_cumem_differs},
    Rule{"release-differs", "several releases of NCCL in one group",
         "A communicator of two versions is refused since 2.23.4, and undefined before.", "NCCL src/init.cc",
         check_release_differs},
    Rule{"preload-everywhere", "LD_PRELOAD exported to a whole script",
         "A preload is inherited by everything that is started: srun, bash, ssh, Ray, the engines. It "
         "belongs to the one command that needs it.",
         "ld.so(8)", check_preload_everywhere},
    Rule{"preload-unneeded", "a library preloaded for a role that does not need it",
         "What a service starts inherits the library as well.", "ld.so(8)", check_preload_unneeded},
    Rule{
        "container-environment", "a wrapper that keeps the environment from the program",
        "What a process gets goes through its container's tool. bwrap --clearenv lets nothing through; under "
        "apptainer --cleanenv and under enroot what the plan sets reaches the program, and what modules set "
        "does not.",
        "bwrap(1); apptainer internal/pkg/util/env/create.go; enroot doc/cmd/start.md",
        check_container_environment},
    Rule{"debug-folder", "NCCL_DEBUG_FILE in a folder that is not there",
         "NCCL opens the file and does not make folders. Where it cannot, it writes to standard output.",
         "NCCL src/debug.cc", check_debug_folder},
    Rule{"shared-cache", "a cache or a socket folder on a network file system",
         "Triton, Inductor and CUDA write their caches as if they were alone; Ray's sockets do not work on a "
         "network file system.",
         "triton-lang/triton issues; Ray docs, --temp-dir", check_shared_cache},
    Rule{"nccl-conf", "an nccl.conf that changes what the profile says",
         "NCCL reads /etc/nccl.conf and ~/.nccl.conf (or $NCCL_CONF_FILE) into the environment of the "
         "process: any name, also of other libraries.",
         "NCCL src/misc/param.cc", check_nccl_conf},
    Rule{"module-overrides", "a module that sets what is set here too",
         "A module's own settings and one's own meet; which one wins depends on the order.",
         "the module's own file", check_module_overrides},
    Rule{"module-purge", "module purge on a Cray system", "It unloads what the site loads for everybody.",
         "docs.isambard.ac.uk; HPE Cray PE", check_module_purge},
    Rule{"unreadable", "a part of a script that could not be read", "The rest was read.", "",
         check_unreadable},
    Rule{"line-ends", "lines that end as on Windows",
         "A carriage return is a character like any other for bash.", "sbatch(1)", check_line_ends},
    Rule{"exit-code-lost", "code after a failure that set -e never reaches",
         "set -e ends the script at the first command that fails: the line which keeps its exit code runs "
         "only after a success.",
         "bash(1), set -e", check_exit_code_lost},
    Rule{"secret", "a secret written into a file",
         "A job's script is kept by Slurm, an exported variable is in every process's environment, and a "
         "command's arguments are in the list of processes. Known are variables and options by their names "
         "(HF_TOKEN, --api-key), passwords in addresses, the key of wandb login, and keys that begin as "
         "those of well-known services do (hf_, sk-, ghp_).",
         "", check_secret},
    Rule{"export-commas", "a value with commas in --export", "srun and sbatch part the list at every comma.",
         "srun(1), --export", check_export_commas},
    Rule{"cpus-per-task", "cpus-per-task that a step does not take over",
         "Up to Slurm 21.08 a step took it from the job.", "Slurm's release notes of 22.05",
         check_cpus_per_task},
    Rule{"usr1", "a warning signal that others use",
         "USR1's default is to end a process, and libraries take it for their own ends.",
         "facebookincubator/submitit pull request 1708", check_usr1},
    Rule{"output-folder", "a log folder that is made too late",
         "Slurm opens --output and --error before the script's first line.", "sbatch(1), --output",
         check_output_folder},
    Rule{"lost-directive", "a line for sbatch that sbatch does not see",
         "sbatch reads lines that begin with #SBATCH, up to the first command. A misspelt one is a comment, "
         "and so is one that comes later.",
         "sbatch(1)", check_lost_directive},
    Rule{"silence", "a silence that silences nothing",
         "A comment `# nlaunch: allow RULE: reason` leaves a finding out. Without a reason, or with a rule "
         "that is not there, it does not.",
         "", no_check},
};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

const Rule* find_rule(std::string_view id) {
  const auto found = std::ranges::find(kRules, id, &Rule::id);
  return found == kRules.end() ? nullptr : &*found;
}

}  // namespace nlaunch::lint
