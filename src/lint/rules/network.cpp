#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/values.h"

/// The network that NCCL and libfabric are told to use, and what does not fit it.
namespace nlaunch::lint {
namespace {

void check_nccl_interfaces(const LintInput& input, Report& report, std::string_view name) {
  each_value(input, report, name, [&](const Environment&, const Setting& setting, const std::string& value) {
    const auto list = read_list(value);
    const auto names = [&](std::string_view prefix) {
      return std::ranges::any_of(list.words, [&](const std::string& word) {
        return prefix.starts_with(word.substr(word.starts_with('=') ? 1 : 0));
      });
    };
    if (list.inverted && !list.words.empty() && !names("lo")) {
      report.error(
          setting.span,
          {fmt::format("{}={} excludes only what it names, and so allows loopback", setting.name, value),
           "NCCL then uses lo, and ranks on other machines wait at an address that points to themselves",
           fmt::format("{}={},lo", setting.name, value), ""});
    }
    const bool late =
        std::ranges::any_of(list.words, [](const std::string& word) { return word.starts_with('^'); });
    if (late) {
      report.error(setting.span,
                   {fmt::format("{}={} has a ^ that is not the first character", setting.name, value),
                    "^ works only as the first character, and applies to the whole list",
                    fmt::format("{}=^a,b,c", setting.name), ""});
    }
  });
}

void check_interfaces(const LintInput& input, Report& report) {
  check_nccl_interfaces(input, report, "NCCL_SOCKET_IFNAME");
  check_nccl_interfaces(input, report, "NCCL_OOB_NET_IFNAME");
  each_value(
      input, report, "GLOO_SOCKET_IFNAME",
      [&](const Environment&, const Setting& setting, const std::string& value) {
        for (const auto& name : text::split(value, ',')) {
          const bool excludes = name.starts_with('^') || name.starts_with('=');
          // Interface names end with numbers, except for loopback and bridges.
          const bool prefix =
              name == "hsn" || name == "ib" || name == "eth" || name == "en" || name == "bond";
          if (!excludes && !prefix) continue;
          report.error(
              setting.span,
              {fmt::format("GLOO_SOCKET_IFNAME={} is not an interface", excludes ? value : name),
               "Gloo requires full names: a prefix or a ^ list, as in NCCL, fails with \"Unable to find "
               "address for\"",
               excludes ? std::string("the name of one interface")
                        : fmt::format("GLOO_SOCKET_IFNAME={}0", name),
               ""});
          return;
        }
      });
}

const Registered<Rule> interfaces_rule{{
    .order = 120,
    .name = "interfaces",
    .title = "a list of interfaces that chooses the wrong one",
    .explain = "NCCL accepts prefixes, and a leading ^ inverts the whole list. A list that excludes "
               "docker but not lo lets NCCL use loopback, and ranks on other machines cannot be reached. "
               "Gloo requires full names.",
    .source = "NCCL src/misc/socket.cc, src/os/linux.cc; Gloo transport/tcp/device.cc",
    .check = check_interfaces,
}};

void check_net_on_one_node(const LintInput& input, Report& report) {
  if (input.nodes != 1U) return;
  each_value(
      input, report, "NCCL_NET", [&](const Environment&, const Setting& setting, const std::string& value) {
        if (!setting.sure || value.empty()) return;
        report.warning(setting.span,
                       {fmt::format("NCCL_NET={} in a single-node job", value),
                        "GPUs within a node do not need the network: on Slingshot this only consumes network "
                        "resources, and fails if the plugin is missing",
                        "set it only for jobs with several nodes", ""});
      });
}

const Registered<Rule> net_on_one_node_rule{{
    .order = 190,
    .name = "net-on-one-node",
    .title = "NCCL_NET in a single-node job",
    .explain = "Within a node, GPUs communicate over NVLink or PCIe. Requesting the network plugin "
               "consumes network resources, and fails if there is no plugin.",
    .source = "HPE shs-ccl-docs nccl_tuning_guide.md",
    .check = check_net_on_one_node,
}};

void check_net_plugin(const LintInput& input, Report& report) {
  each_value(
      input, report, "NCCL_NET",
      [&](const Environment& environment, const Setting& setting, const std::string& value) {
        const auto net = text::lower(value);
        const bool internal = net == "ib" || net == "socket";
        const bool ofi_net = net == "aws libfabric" || net == "libfabric" || net == "ofi";
        const auto* release = environment.release("aws-ofi-nccl");
        const Version renames{{1, 13, 0}};
        if (ofi_net && net != "aws libfabric" && release != nullptr && *release < renames) {
          report.error(setting.span, {fmt::format("aws-ofi-nccl {} is named \"AWS Libfabric\", not {}",
                                                  release->str(), value),
                                      "other names are accepted from 1.13.0; creating a communicator fails",
                                      "NCCL_NET=\"AWS Libfabric\"", ""});
        }
        const auto plugin = environment.value("NCCL_NET_PLUGIN");
        if (!plugin || plugin->empty()) return;
        const bool ofi_plugin =
            plugin->find("ofi") != std::string::npos || plugin->find("aws") != std::string::npos;
        if (*plugin == "none" && !internal) {
          report.error(setting.span,
                       {fmt::format("NCCL_NET={} with NCCL_NET_PLUGIN=none", value),
                        "without a plugin NCCL has only IB and Socket, and refuses to create a communicator",
                        "remove NCCL_NET_PLUGIN", ""});
        } else if (ofi_net && *plugin != "none" && !ofi_plugin && plugin->find('/') == std::string::npos) {
          report.error(
              setting.span,
              {fmt::format("NCCL_NET={} requests aws-ofi-nccl, but NCCL_NET_PLUGIN={} loads another plugin",
                           value, *plugin),
               "the plugin's name must match NCCL_NET, or creating a communicator fails",
               "NCCL_NET_PLUGIN=ofi, or leave it out", ""});
        }
      });
}

const Registered<Rule> net_plugin_rule{{
    .order = 200,
    .name = "net-plugin",
    .title = "NCCL_NET requests one plugin, NCCL_NET_PLUGIN loads another",
    .explain = "NCCL_NET is the name that the plugin reports, NCCL_NET_PLUGIN the file. If they do not "
               "match, creating a communicator fails.",
    .source = "NCCL src/plugin/net.cc; aws-ofi-nccl src/nccl_ofi_interface_nvidia.cpp",
    .check = check_net_plugin,
}};

void check_transport_off(const LintInput& input, Report& report) {
  struct Off {
    const char* name;
    const char* values;  ///< those that turn it off, separated by spaces
    const char* what;
    const char* instead;
  };
  constexpr std::array<Off, 3> kOff{
      {{"NCCL_P2P_DISABLE", "1", "the GPUs of a node copy through host memory instead of NVLink or PCIe",
        "leave it out; if direct access hangs (virtual machines, ACS), limit it with NCCL_P2P_LEVEL=PHB"},
       {"NCCL_P2P_LEVEL", "LOC 0", "the GPUs of a node copy through host memory instead of NVLink or PCIe",
        "leave it out: NCCL detects how far direct access works"},
       {"NCCL_SHM_DISABLE", "1",
        "traffic that cannot go directly between GPUs of a node goes through the network",
        "leave it out, and give the container shared memory (--shm-size, --ipc=host)"}}};
  if (input.gpus == 1U) return;  // there is no other one on the node
  for (const auto& off : kOff) {
    each_value(input, report, off.name,
               [&](const Environment& environment, const Setting& setting, const std::string& value) {
                 const auto values = text::split(off.values, ' ');
                 const bool is_off = std::ranges::find(values, text::trim(value)) != values.end();
                 if (!is_off || environment.find(setting.name) != &setting) return;
                 report.warning(setting.span,
                                {fmt::format("{}={}: {}", setting.name, value, off.what),
                                 "NCCL is then many times slower within a node", off.instead, ""});
               });
  }
}

const Registered<Rule> transport_off_rule{{
    .order = 208,
    .name = "transport-off",
    .title = "a GPU-to-GPU path within a node that is turned off",
    .explain = "It was turned off to debug a problem, or for a machine whose GPUs cannot reach each other, "
               "and has been copied since.",
    .source = "NCCL src/graph/paths.cc, src/transport/shm.cc",
    .check = check_transport_off,
}};

void check_ib_disabled(const LintInput& input, Report& report) {
  each_value(
      input, report, "NCCL_IB_DISABLE",
      [&](const Environment& environment, const Setting& setting, const std::string& value) {
        const auto read = read_number(value);
        if (!read.whole || read.value == 0 || environment.find(setting.name) != &setting) return;
        const auto interfaces = environment.value("NCCL_SOCKET_IFNAME").value_or("");
        if (interfaces.starts_with("hsn") || interfaces.starts_with("=hsn"))
          return;  // Slingshot has no verbs
        const bool hca = environment.find("NCCL_IB_HCA") != nullptr;
        const auto other = std::ranges::find_if(environment.settings, [](const Setting& one) {
          return one.name.starts_with("NCCL_IB_") && one.name != "NCCL_IB_DISABLE" && !one.unset &&
                 one.exported;
        });
        if (!hca && other != environment.settings.end())
          report.note(other->span,
                      {fmt::format("{} has no effect: NCCL_IB_DISABLE=1 turns InfiniBand off", other->name),
                       "only NCCL's InfiniBand transport reads it", "leave out one of the two", ""});
        if (input.nics.empty() && !hca && input.nodes.value_or(1) > 1)
          return report.warning(
              setting.span,
              {"NCCL_IB_DISABLE=1 in a multi-node job",
               "if the nodes have InfiniBand or RoCE, NCCL falls back to TCP, at a fraction of the speed",
               "leave it out: NCCL falls back to TCP automatically if there is nothing else", ""});
        if (input.nics != "ib" && !hca) return;
        report.error(setting.span,
                     {"NCCL_IB_DISABLE=1 on an InfiniBand network",
                      hca ? "NCCL_IB_HCA selects adapters that NCCL then does not use: traffic goes over TCP"
                          : "NCCL then uses TCP, at a fraction of the speed",
                      "leave it out", ""});
      });
}

const Registered<Rule> ib_disabled_rule{{
    .order = 210,
    .name = "ib-disabled",
    .title = "NCCL_IB_DISABLE on an InfiniBand network",
    .explain = "Often copied from a workstation's script; on a cluster it sends all traffic over TCP.",
    .source = "NCCL src/transport/net_ib/init.cc",
    .check = check_ib_disabled,
}};

void check_same_identity(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (setting.unset || setting.one_command) return;
    if (setting.name == "NCCL_COMM_ID") {
      report.error(setting.span,
                   {"NCCL_COMM_ID in the environment of a job",
                    "the first rank of every communicator binds this one address: the second communicator "
                    "fails or connects to the first, and NCCL_SOCKET_IFNAME is ignored",
                    "leave it out: PyTorch and vLLM exchange the id themselves", ""});
    } else if (setting.name == "NCCL_HOSTID" && setting.value) {
      report.error(
          setting.span,
          {fmt::format("NCCL_HOSTID={} is the same on every node", *setting.value),
           "NCCL uses it to tell machines apart: all nodes look like one machine with duplicate GPUs",
           "leave it out", ""});
    }
  });
}

const Registered<Rule> same_identity_rule{{
    .order = 220,
    .name = "same-identity",
    .title = "NCCL_COMM_ID or NCCL_HOSTID in a job",
    .explain = "Both are for tests. An id shared by all communicators makes the second one fail; a host id "
               "shared by all nodes makes them look like one machine.",
    .source = "NCCL src/bootstrap.cc, src/misc/utils.cc",
    .check = check_same_identity,
}};

bool names_rdzv(const StepOption& option) {
  return option.text.starts_with("--network") && option.text.find("disable_rdzv_get") != std::string::npos;
}

bool turns_on(const Environment& environment, std::string_view name) {
  const auto value = environment.value(name);
  return value && read_number(*value).value != 0;
}

bool is_set_to_zero(const std::string& value) {
  return read_number(value).whole && read_number(value).value == 0;
}

void check_alt_read(const LintInput& input, Report& report) {
  const bool in_batch = std::ranges::any_of(input.batch, names_rdzv);
  const bool in_steps = !input.steps.empty() && std::ranges::all_of(input.steps, [](const Step& step) {
    return step.open_ended || std::ranges::any_of(step.options, names_rdzv);
  });
  // A file that starts nothing itself cannot tell.
  if (in_batch || in_steps || (!input.slurm && input.script)) return;
  if (!input.slurm && !input.plan) return;
  each_value(input, report, "FI_CXI_RDZV_PROTO",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               if (value != "alt_read" || environment.find(setting.name) != &setting) return;
               const bool by_variable = environment.may("SLURM_NETWORK", [](const std::string& network) {
                 return network.find("disable_rdzv_get") != std::string::npos;
               });
               if (by_variable) return;
               report.warning(
                   setting.span,
                   {"FI_CXI_RDZV_PROTO=alt_read has no effect without srun --network=disable_rdzv_get",
                    "the protocol requires that the NIC does not offload the rendezvous get; where it does, "
                    "libfabric silently uses its default protocol",
                    "srun --network=disable_rdzv_get (Slurm 23.11 or newer)", ""});
             });
}

const Registered<Rule> alt_read_rule{{
    .order = 160,
    .name = "alt-read",
    .title = "FI_CXI_RDZV_PROTO=alt_read without the step's option",
    .explain = "alt_read requires the rendezvous get offload to be off: srun --network=disable_rdzv_get, "
               "since Slurm 23.11. Otherwise libfabric keeps its default protocol, and prints nothing. Some "
               "sites turn the offload off for all jobs.",
    .source = "HPE shs-ccl-docs nccl_tuning_guide.md; fi_cxi(7)",
    .check = check_alt_read,
}};

void check_gdrcopy(const LintInput& input, Report& report) {
  if (input.gpu != "GH200" || input.nodes == 1U) return;
  for (const auto* name : {"NCCL_GDRCOPY_ENABLE", "FI_HMEM_CUDA_USE_GDRCOPY"}) {
    each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
      if (setting.name != name || environment.find(name) != &setting || !turns_on(environment, name)) return;
      if (environment.may("FI_CXI_RDZV_THRESHOLD", is_set_to_zero) &&
          environment.may("FI_CXI_RDZV_GET_MIN", is_set_to_zero))
        return;
      report.warning(
          setting.span,
          {fmt::format("{} enables GDRCopy on Grace Hopper without the rendezvous settings", name),
           "small messages then take the path that has corrupted data; HPE advises against GDRCopy there",
           fmt::format("{}=0, or add FI_CXI_RDZV_THRESHOLD=0 and FI_CXI_RDZV_GET_MIN=0", name), ""});
    });
  }
}

const Registered<Rule> gdrcopy_rule{{
    .order = 170,
    .name = "gdrcopy",
    .title = "GDRCopy on Grace Hopper without the rendezvous settings",
    .explain = "The path that corrupted data on GH200 with Slingshot went through GDRCopy. "
               "With FI_CXI_RDZV_THRESHOLD=0 and FI_CXI_RDZV_GET_MIN=0, messages do not take it.",
    .source = "NVIDIA/nccl#2001 (HPE's comment of 2026-05-05)",
    .check = check_gdrcopy,
}};

void check_mpich(const LintInput& input, Report& report) {
  each_value(input, report, "MPICH_GPU_SUPPORT_ENABLED",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               const bool nccl = std::ranges::any_of(environment.settings, [](const Setting& one) {
                 return one.name.starts_with("NCCL_") || one.name.starts_with("TORCH_NCCL_");
               });
               if (value == "0" || !nccl) return;
               report.warning(
                   setting.span,
                   {fmt::format("MPICH_GPU_SUPPORT_ENABLED={} together with NCCL", value),
                    "Cray MPICH and NCCL on one GPU can deadlock", "MPICH_GPU_SUPPORT_ENABLED=0", ""});
             });
}

const Registered<Rule> mpich_gpu_rule{{
    .order = 180,
    .name = "mpich-gpu",
    .title = "MPICH_GPU_SUPPORT_ENABLED=1 together with NCCL",
    .explain = "Cray MPICH and NCCL both wait for the GPU, and can deadlock.",
    .source = "eth-cscs/cscs-docs nccl.md",
    .check = check_mpich,
}};

void check_net_socket(const LintInput& input, Report& report) {
  if (input.nodes == 1U || input.nics.empty()) return;
  each_value(
      input, report, "NCCL_NET", [&](const Environment&, const Setting& setting, const std::string& value) {
        if (text::lower(value) != "socket") return;
        report.warning(setting.span,
                       {fmt::format("NCCL_NET={} sends everything between nodes over TCP", value),
                        "the fast network of this machine is not used: transfers get a fraction of its "
                        "bandwidth and cost CPU time",
                        "leave it out, and find out why NCCL does not use the network: run once with "
                        "NCCL_DEBUG=INFO",
                        ""});
      });
}

const Registered<Rule> net_socket_rule{{
    .order = 195,
    .name = "net-socket",
    .title = "NCCL_NET=Socket despite a fast network",
    .explain =
        "NCCL falls back to TCP sockets if it finds no other network. With NCCL_NET=Socket it uses them "
        "even if InfiniBand, EFA or Slingshot is available, and prints no warning.",
    .source = "NCCL user guide, NCCL_NET",
    .check = check_net_socket,
}};

void check_ib_elsewhere(const LintInput& input, Report& report) {
  if (input.nics != "cxi" && input.nics != "efa") return;
  const std::string_view network = input.nics == "cxi" ? "Slingshot" : "EFA";
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    if (!setting.name.starts_with("NCCL_IB_") || setting.name == "NCCL_IB_DISABLE" || setting.unset ||
        find_variables(setting.name).empty())
      return;
    const auto net = environment.value("NCCL_NET");
    if (net && text::lower(*net) == "ib") return;
    report.warning(
        setting.span,
        {fmt::format("{} is for InfiniBand, but the network here is {}", setting.name, network),
         "only NCCL's InfiniBand transport reads it, and the transport here is the libfabric plugin "
         "(aws-ofi-nccl): the setting has no effect",
         fmt::format("leave it out; {} lists the plugin's settings", input.nics == "cxi"
                                                                         ? "nlaunch env --list 'FI_CXI_*'"
                                                                         : "nlaunch env --list 'OFI_NCCL_*'"),
         ""});
  });
}

const Registered<Rule> ib_elsewhere_rule{{
    .order = 215,
    .name = "ib-elsewhere",
    .title = "InfiniBand settings on another network",
    .explain = "Only NCCL's InfiniBand transport reads NCCL_IB_*. On Slingshot and EFA, traffic goes through "
               "the libfabric plugin, which ignores them.",
    .source = "NCCL src/transport/net_ib; aws-ofi-nccl README",
    .check = check_ib_elsewhere,
}};

/// The devices of "0,1,2", in order; nullopt for ranges and anything that is not a list.
std::optional<std::vector<std::string>> devices_of(const std::string& value) {
  if (value.empty()) return std::vector<std::string>();
  auto devices = text::split(value, ',');
  const bool plain = std::ranges::all_of(devices, [](const std::string& one) {
    return !one.empty() &&
           (one.find_first_not_of("0123456789") == std::string::npos || one.starts_with("GPU-"));
  });
  return plain ? std::optional(std::move(devices)) : std::nullopt;
}

/// Of their numbers; nullopt if they have none.
std::optional<std::uint32_t> largest_device(const std::set<std::string>& devices) {
  std::optional<std::uint32_t> largest;
  for (const auto& one : devices)
    if (const auto number = text::whole_number<std::uint32_t>(one))
      largest = std::max(largest.value_or(0), *number);
  return largest;
}

/// True if an option decides how many GPUs the job gets: it asks for GPUs, or for whole nodes.
bool decides_gpus(const StepOption& option) {
  constexpr std::array<std::string_view, 6> kNames{"--gpus", "--gres",           "--exclusive",
                                                   "--tres", "--ntasks-per-gpu", "--cpus-per-gpu"};
  return std::ranges::any_of(
      kNames, [&](std::string_view name) { return std::string_view(option.text).starts_with(name); });
}

/// Nothing says how many GPUs the job has: whatever it gets is numbered from 0.
void check_devices_of_unknown(const LintInput& input, const Setting& last, const std::set<std::string>& seen,
                              Report& report) {
  const bool decided = std::ranges::any_of(input.batch, decides_gpus) ||
                       std::ranges::any_of(input.steps, [](const Step& step) {
                         return step.open_ended || std::ranges::any_of(step.options, decides_gpus);
                       });
  const auto most = largest_device(seen);
  if (input.batch.empty() || !input.components.empty() || decided || !most || seen.contains("0")) return;
  report.note(last.span,
              {fmt::format("{}={} leaves out GPU 0, but the job does not request a number of GPUs", last.name,
                           *last.value),
               fmt::format("a job with one GPU has no GPU {}; where Slurm does not confine jobs to their "
                           "GPUs, it can be another job's",
                           *most),
               "#SBATCH --gpus-per-node=N, and leave the list out: Slurm sets it to the job's GPUs", ""});
}

/// As many tasks on a node as it has GPUs, each with other devices; not all of them were recorded.
bool has_one_per_task(const Script& script, const char* name, std::uint32_t gpus) {
  std::set<std::string> values;
  for (const auto& program : script.programs)
    if (program.works && program.local_tasks >= gpus) values.insert(variable(program, name));
  return values.size() > 1;
}

/// `apptainer exec --env CUDA_VISIBLE_DEVICES=0`: what the program in the container sees is not in its
/// recorded environment.
bool gives_containers_devices(const Script& script) {
  static const RE2 kGives(R"((?:--env|-e)[= ]["']?(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES=)");
  return RE2::PartialMatch(without_comments(SourceLines(script.file)), kGives);
}

void check_visible_devices(const LintInput& input, Report& report) {
  if (!input.script || gives_containers_devices(*input.script)) return;
  for (const auto* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    std::set<std::string> seen;  // by any program
    const Setting* last = nullptr;
    bool all_known = true;
    for (const auto& environment : input.environments) {
      const auto value = environment.value(name);
      const auto devices = value ? devices_of(*value) : std::nullopt;
      all_known = all_known && devices.has_value();
      if (!devices) break;
      if (devices->empty()) continue;  // a program that needs none
      seen.insert(devices->begin(), devices->end());
      last = environment.find(name);
    }
    if (!all_known || last == nullptr) continue;
    if (!input.gpus) {
      check_devices_of_unknown(input, *last, seen, report);
      continue;
    }
    if (const auto most = largest_device(seen);
        most && *most >= *input.gpus && !has_option(input.batch, {"--exclusive"})) {
      report.error(last->span, {fmt::format("{}={} names GPU {}, but the job requests {}, numbered from 0",
                                            name, *last->value, *most, text::count(*input.gpus, "GPU")),
                                "the job has no GPU with this number; where Slurm does not confine jobs to "
                                "their GPUs, it is another job's",
                                "leave it out (Slurm sets it to the job's GPUs)", ""});
      continue;
    }
    // Outside of a job, the others may be meant for somebody else.
    const bool job = input.slurm || !input.batch.empty();
    if (!job || seen.size() >= *input.gpus || has_one_per_task(*input.script, name, *input.gpus)) continue;
    const auto own = devices_of(*last->value).value_or(std::vector<std::string>{}).size();
    report.warning(last->span, {fmt::format("{} exposes {} of the {} that the job requests",
                                            own == seen.size() ? fmt::format("{}={}", name, *last->value)
                                                               : fmt::format("{} of all programs", name),
                                            seen.size(), text::count(*input.gpus, "GPU")),
                                "the others stay idle for the whole job",
                                "leave it out (Slurm sets it to the job's GPUs), or request fewer", ""});
  }
}

const Registered<Rule> visible_devices_rule{{
    .order = 222,
    .name = "visible-devices",
    .title = "a device list that does not fit the GPUs of the job",
    .explain = "A list written for another machine hides GPUs that the job is charged for, or names one that "
               "it does not have. Slurm sets the "
               "variable itself when it allocates GPUs.",
    .source = "CUDA C++ programming guide, CUDA_VISIBLE_DEVICES; HIP docs, environment variables",
    .check = check_visible_devices,
}};

void check_workaround(const LintInput& input, Report& report) {
  struct Workaround {
    const char* name;
    const char* values;  ///< separated by spaces
    const char* what;
    const char* why;
    const char* instead;
    const char* source;
  };
  constexpr std::array<Workaround, 3> kWorkarounds{
      {{"NCCL_IGNORE_DISABLED_P2P", "1 2", "NCCL goes on where NVML reports that NVLink is broken",
        "a node with a broken link is not noticed, and slows down the whole job",
        "leave it out: NCCL then fails on such a node", "NCCL src/graph/paths.cc"},
       {"HSA_ENABLE_SDMA", "0", "copies are done by kernels instead of the DMA engines",
        "they take compute units from the program, and no longer overlap with it", "leave it out",
        "ROCR-Runtime runtime/hsa-runtime/core/util/flag.h; ROCm docs, environment variables"},
       {"FI_MR_CACHE_MONITOR", "disabled", "libfabric keeps no registered memory",
        "it registers the memory of each transfer again", "userfaultfd, or kdreg2 where the system has it",
        "libfabric prov/util/src/util_mem_monitor.c; fi_mr(3), FI_MR_CACHE_MONITOR"}}};
  for (const auto& one : kWorkarounds) {
    each_value(input, report, one.name,
               [&](const Environment& environment, const Setting& setting, const std::string& value) {
                 const auto values = text::split(one.values, ' ');
                 const bool is_set =
                     std::ranges::find(values, text::lower(text::trim(value))) != values.end();
                 if (!is_set || !setting.exported || environment.find(setting.name) != &setting) return;
                 report.note(setting.span, {fmt::format("{}={}: {}", setting.name, value, one.what), one.why,
                                            one.instead, one.source});
               });
  }
}

const Registered<Rule> workaround_rule{{
    .order = 212,
    .name = "workaround",
    .title = "a workaround that costs speed or hides a defect",
    .explain =
        "These settings were made for a machine or a release with an error, and have been copied since.",
    .source = "the source of each variable: nlaunch env --doc NAME",
    .check = check_workaround,
}};

void check_debug_left_on(const LintInput& input, Report& report) {
  if (input.plan) return;  // there, an overlay requests it
  each_value(input, report, "NCCL_DEBUG",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               const auto level = text::lower(value);
               if (!setting.exported) return;
               if (level != "info" && level != "trace") return;
               if (environment.may("NCCL_DEBUG_FILE", [](const std::string& file) { return !file.empty(); }))
                 return;
               report.note(
                   setting.span,
                   {fmt::format("NCCL_DEBUG={} writes NCCL's log into the job's output", value),
                    level == "trace" ? "a release build of NCCL has no trace lines: it writes the same "
                                       "as INFO, hundreds of lines per rank and communicator"
                                     : "each rank writes hundreds of lines per communicator, which makes "
                                       "errors hard to find",
                    "NCCL_DEBUG=WARN, or add NCCL_DEBUG_FILE=DIR/nccl.%h.%p.log", ""});
             });
  struct Log {
    std::string_view name;
    std::vector<std::string_view> levels;  ///< in lowercase
    std::string_view source;
    std::string_view why{};  ///< empty: by the level
  };
  const std::array<Log, 7> logs{
      {{"TORCH_DISTRIBUTED_DEBUG",
        {"info"},
        "PyTorch torch/csrc/distributed/c10d/debug.cpp",
        "each rank logs its process groups and its DDP models when they are made"},
       {"FI_LOG_LEVEL", {"info", "debug", "trace"}, "libfabric src/log.c"},
       {"UCX_LOG_LEVEL", {"info", "debug", "trace", "data", "poll"}, "UCX src/ucs/config/global_opts.c"},
       {"NVSHMEM_DEBUG", {"info", "trace"}, "docs.nvidia.com/nvshmem, Environment Variables"},
       {"RAY_BACKEND_LOG_LEVEL", {"debug", "trace"}, "Ray src/ray/util/logging.cc"},
       {"VLLM_LOGGING_LEVEL", {"debug"}, "vLLM vllm/envs.py"},
       {"LOGLEVEL", {"debug"}, "PyTorch torch/distributed/elastic/utils/logging.py"}}};
  for (const auto& log : logs) {
    each_value(
        input, report, log.name, [&](const Environment&, const Setting& setting, const std::string& value) {
          if (!setting.exported || std::ranges::find(log.levels, text::lower(value)) == log.levels.end())
            return;
          const bool some = log.why.empty() && text::lower(value) == "info";
          report.note(setting.span,
                      {fmt::format("{}={} is for debugging", log.name, value),
                       some ? "each process logs what it sets up, which makes errors hard to find"
                       : log.why.empty() ? "each process logs every call, which makes errors hard to find"
                                         : std::string(log.why),
                       "leave it out", std::string(log.source)});
        });
  }
}

const Registered<Rule> debug_left_on_rule{{
    .order = 305,
    .name = "debug-left-on",
    .title = "NCCL_DEBUG=INFO, or another debug log, left on",
    .explain = "INFO is for examining a single start; so are the logs of libfabric, UCX, NVSHMEM, Ray, vLLM "
               "and torchrun "
               "below the warning level. At scale its lines fill the job's log. WARN "
               "prints only problems; NCCL_DEBUG_FILE writes the rest to a separate file.",
    .source = "NCCL src/debug.cc, src/include/debug.h",
    .check = check_debug_left_on,
}};

}  // namespace
}  // namespace nlaunch::lint
