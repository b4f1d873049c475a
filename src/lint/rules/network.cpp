#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/rule.h"
#include "lint/values.h"

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
          {fmt::format("{}={} leaves out what it names, and so lets loopback in", setting.name, value),
           "NCCL takes lo then, and ranks of other machines wait for an address that is their own",
           fmt::format("{}={},lo", setting.name, value), ""});
    }
    const bool late =
        std::ranges::any_of(list.words, [](const std::string& word) { return word.starts_with('^'); });
    if (late) {
      report.error(setting.span, {fmt::format("{}={} has a ^ behind the first place", setting.name, value),
                                  "^ counts at the very start, and for the whole list",
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
          // Interfaces have numbers behind their names, but for loopback and those of bridges.
          const bool prefix =
              name == "hsn" || name == "ib" || name == "eth" || name == "en" || name == "bond";
          if (!excludes && !prefix) continue;
          report.error(
              setting.span,
              {fmt::format("GLOO_SOCKET_IFNAME={} is no interface", excludes ? value : name),
               "Gloo takes whole names: a prefix or a ^ list, as NCCL has them, ends in \"Unable to find "
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
    .explain = "NCCL takes prefixes, and a ^ at the very start turns the whole list around. A list that "
               "leaves out docker and not lo lets NCCL take loopback, and ranks on other machines never "
               "answer. Gloo takes whole names.",
    .source = "NCCL src/misc/socket.cc, src/os/linux.cc; Gloo transport/tcp/device.cc",
    .check = check_interfaces,
}};

void check_net_on_one_node(const LintInput& input, Report& report) {
  if (input.nodes != 1U) return;
  each_value(
      input, report, "NCCL_NET", [&](const Environment&, const Setting& setting, const std::string& value) {
        if (!setting.sure || value.empty()) return;
        report.warning(
            setting.span,
            {fmt::format("NCCL_NET={} in a job of one node", value),
             "GPUs of one node do not need the network: on Slingshot this only costs an allocation of it, "
             "and fails where the plugin is missing",
             "set it where there are several nodes", ""});
      });
}

const Registered<Rule> net_on_one_node_rule{{
    .order = 190,
    .name = "net-on-one-node",
    .title = "NCCL_NET in a job of one node",
    .explain = "Within a node GPUs talk over NVLink or PCIe. Asking for the network plugin costs an "
               "allocation of the network, and fails where there is no plugin.",
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
          report.error(setting.span, {fmt::format("aws-ofi-nccl {} is called \"AWS Libfabric\", not {}",
                                                  release->str(), value),
                                      "other names are known from 1.13.0 on; no communicator is made",
                                      "NCCL_NET=\"AWS Libfabric\"", ""});
        }
        const auto plugin = environment.value("NCCL_NET_PLUGIN");
        if (!plugin || plugin->empty()) return;
        const bool ofi_plugin =
            plugin->find("ofi") != std::string::npos || plugin->find("aws") != std::string::npos;
        if (*plugin == "none" && !internal) {
          report.error(setting.span,
                       {fmt::format("NCCL_NET={} with NCCL_NET_PLUGIN=none", value),
                        "without a plugin NCCL has IB and Socket alone, and refuses to make a communicator",
                        "leave NCCL_NET_PLUGIN out", ""});
        } else if (ofi_net && *plugin != "none" && !ofi_plugin && plugin->find('/') == std::string::npos) {
          report.error(
              setting.span,
              {fmt::format("NCCL_NET={} asks for aws-ofi-nccl, and NCCL_NET_PLUGIN={} loads another plugin",
                           value, *plugin),
               "the plugin's name has to be the one that NCCL_NET asks for, or no communicator is made",
               "NCCL_NET_PLUGIN=ofi, or leave it out", ""});
        }
      });
}

const Registered<Rule> net_plugin_rule{{
    .order = 200,
    .name = "net-plugin",
    .title = "NCCL_NET asks for one plugin, NCCL_NET_PLUGIN loads another",
    .explain = "NCCL_NET is the name that the plugin gives itself, NCCL_NET_PLUGIN the file. They have to "
               "fit, or no communicator is made.",
    .source = "NCCL src/plugin/net.cc; aws-ofi-nccl src/nccl_ofi_interface_nvidia.cpp",
    .check = check_net_plugin,
}};

void check_transport_off(const LintInput& input, Report& report) {
  struct Off {
    const char* name;
    const char* values;  ///< those that turn it off, parted by blanks
    const char* what;
    const char* instead;
  };
  constexpr std::array<Off, 3> kOff{
      {{"NCCL_P2P_DISABLE", "1",
        "the GPUs of a node copy through the host's memory in place of NVLink or PCIe",
        "leave it out; where direct access hangs (virtual machines, ACS), NCCL_P2P_LEVEL=PHB says how far it "
        "goes"},
       {"NCCL_P2P_LEVEL", "LOC 0",
        "the GPUs of a node copy through the host's memory in place of NVLink or PCIe",
        "leave it out: NCCL knows how far direct access goes"},
       {"NCCL_SHM_DISABLE", "1", "what cannot go directly from GPU to GPU of a node goes through the network",
        "leave it out, and give the container shared memory (--shm-size, --ipc=host)"}}};
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
    .title = "a way from GPU to GPU of a node that is turned off",
    .explain =
        "Turned off to find a fault, or for a machine whose GPUs cannot reach each other, and copied since.",
    .source = "NCCL src/graph/paths.cc, src/transport/shm.cc",
    .check = check_transport_off,
}};

void check_ib_disabled(const LintInput& input, Report& report) {
  each_value(input, report, "NCCL_IB_DISABLE",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               const auto read = read_number(value);
               if (!read.whole || read.value == 0 || environment.find(setting.name) != &setting) return;
               const bool hca = environment.find("NCCL_IB_HCA") != nullptr;
               if (input.nics.empty() && !hca && input.nodes.value_or(1) > 1)
                 return report.warning(
                     setting.span,
                     {"NCCL_IB_DISABLE=1 in a job of several nodes",
                      "where they have InfiniBand or RoCE, NCCL goes over TCP, at a small part of the speed",
                      "leave it out: NCCL takes TCP by itself where there is nothing else", ""});
               if (input.nics != "ib" && !hca) return;
               report.error(
                   setting.span,
                   {"NCCL_IB_DISABLE=1 where InfiniBand is the network",
                    hca ? "NCCL_IB_HCA chooses adapters that NCCL then does not use: it goes over TCP"
                        : "NCCL goes over TCP then, at a small part of the speed",
                    "leave it out", ""});
             });
}

const Registered<Rule> ib_disabled_rule{{
    .order = 210,
    .name = "ib-disabled",
    .title = "NCCL_IB_DISABLE where InfiniBand is the network",
    .explain = "Copied from a workstation's script, it sends a cluster's traffic over TCP.",
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
                    "fails or meets the first, and NCCL_SOCKET_IFNAME is not used",
                    "leave it out: PyTorch and vLLM hand the id over by themselves", ""});
    } else if (setting.name == "NCCL_HOSTID" && setting.value) {
      report.error(
          setting.span,
          {fmt::format("NCCL_HOSTID={} is the same on every node", *setting.value),
           "NCCL tells machines apart by it: all nodes look like one, with GPUs that seem to be there twice",
           "leave it out", ""});
    }
  });
}

const Registered<Rule> same_identity_rule{{
    .order = 220,
    .name = "same-identity",
    .title = "NCCL_COMM_ID or NCCL_HOSTID in a job",
    .explain = "Both are for tests. An id that all communicators share makes the second one fail; one host "
               "id for all nodes makes them look like one.",
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
  // A file that starts nothing by itself cannot say.
  if (in_batch || in_steps || (!input.slurm && input.script)) return;
  if (!input.slurm && !input.plan) return;
  each_value(
      input, report, "FI_CXI_RDZV_PROTO",
      [&](const Environment& environment, const Setting& setting, const std::string& value) {
        if (value != "alt_read" || environment.find(setting.name) != &setting) return;
        report.error(
            setting.span,
            {"FI_CXI_RDZV_PROTO=alt_read without srun --network=disable_rdzv_get",
             "the protocol needs a network whose NIC does not do the rendezvous get by itself; without the "
             "option transfers fail or hang",
             "srun --network=disable_rdzv_get (Slurm 23.11 or newer)", ""});
      });
}

const Registered<Rule> alt_read_rule{{
    .order = 160,
    .name = "alt-read",
    .title = "FI_CXI_RDZV_PROTO=alt_read without the step's option",
    .explain = "alt_read wants a network whose rendezvous get is off: srun --network=disable_rdzv_get, since "
               "Slurm 23.11. Some sites set it for all.",
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
          {fmt::format("{} turns GDRCopy on, on Grace Hopper, without the rendezvous settings", name),
           "small messages then take the path that has damaged data; HPE advises against GDRCopy there",
           fmt::format("{}=0, or FI_CXI_RDZV_THRESHOLD=0 and FI_CXI_RDZV_GET_MIN=0 beside it", name), ""});
    });
  }
}

const Registered<Rule> gdrcopy_rule{{
    .order = 170,
    .name = "gdrcopy",
    .title = "GDRCopy on Grace Hopper without the rendezvous settings",
    .explain = "The path that damaged data on GH200 with Slingshot went through GDRCopy. With "
               "FI_CXI_RDZV_THRESHOLD=0 and FI_CXI_RDZV_GET_MIN=0 messages do not take it.",
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
               report.warning(setting.span, {fmt::format("MPICH_GPU_SUPPORT_ENABLED={} beside NCCL", value),
                                             "Cray MPICH and NCCL on one GPU can wait for each other",
                                             "MPICH_GPU_SUPPORT_ENABLED=0", ""});
             });
}

const Registered<Rule> mpich_gpu_rule{{
    .order = 180,
    .name = "mpich-gpu",
    .title = "MPICH_GPU_SUPPORT_ENABLED=1 beside NCCL",
    .explain = "Cray MPICH and NCCL both wait for the GPU, and can wait for each other.",
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
                        "the fast network of this machine is not used: a fraction of its bandwidth, and the "
                        "processors' time",
                        "leave it out, and look into why NCCL does not take the network: NCCL_DEBUG=INFO of "
                        "one start says it",
                        ""});
      });
}

const Registered<Rule> net_socket_rule{{
    .order = 195,
    .name = "net-socket",
    .title = "NCCL_NET=Socket where there is a fast network",
    .explain =
        "NCCL falls back to TCP sockets where it finds no other network. With NCCL_NET=Socket it uses them "
        "even beside InfiniBand, EFA or Slingshot, and prints no warning.",
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
        {fmt::format("{} is for InfiniBand, and the network here is {}", setting.name, network),
         "NCCL's own InfiniBand transport reads it, and here the libfabric plugin (aws-ofi-nccl) is "
         "the transport: the setting is without effect",
         fmt::format("leave it out; {} has the plugin's settings", input.nics == "cxi"
                                                                       ? "nlaunch env --list 'FI_CXI_*'"
                                                                       : "nlaunch env --list 'OFI_NCCL_*'"),
         ""});
  });
}

const Registered<Rule> ib_elsewhere_rule{{
    .order = 215,
    .name = "ib-elsewhere",
    .title = "settings for InfiniBand on another network",
    .explain =
        "NCCL_IB_* are read by NCCL's InfiniBand transport alone. On Slingshot and on EFA traffic goes "
        "through the libfabric plugin, which does not read them.",
    .source = "NCCL src/transport/net_ib; aws-ofi-nccl README",
    .check = check_ib_elsewhere,
}};

/// The devices of "0,1,2", in this order; nothing for ranges and what is no list.
std::optional<std::vector<std::string>> devices_of(const std::string& value) {
  auto devices = text::split(value, ',');
  const bool plain = std::ranges::all_of(devices, [](const std::string& one) {
    return !one.empty() &&
           (one.find_first_not_of("0123456789") == std::string::npos || one.starts_with("GPU-"));
  });
  return plain ? std::optional(std::move(devices)) : std::nullopt;
}

void check_visible_devices(const LintInput& input, Report& report) {
  if (!input.script || !input.gpus) return;
  for (const auto* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    std::set<std::string> seen;  // by any program
    const Setting* last = nullptr;
    bool all_known = true;
    for (const auto& environment : input.environments) {
      const auto value = environment.value(name);
      const auto devices = value ? devices_of(*value) : std::nullopt;
      all_known = all_known && devices.has_value();
      if (!devices) break;
      seen.insert(devices->begin(), devices->end());
      last = environment.find(name);
    }
    if (!all_known || last == nullptr || seen.size() >= *input.gpus) continue;
    report.warning(last->span, {fmt::format("{}={} shows {} of the {} that the job asks for", name,
                                            *last->value, seen.size(), text::count(*input.gpus, "GPU")),
                                "the others stay idle for as long as the job lasts",
                                "leave it out: Slurm sets it to what the job has; or ask for fewer", ""});
  }
}

const Registered<Rule> visible_devices_rule{{
    .order = 222,
    .name = "visible-devices",
    .title = "a list of devices that leaves out GPUs of the job",
    .explain = "A list that was written for another machine hides GPUs that the job pays for. Slurm sets the "
               "variable by itself where it hands out GPUs.",
    .source = "CUDA C++ programming guide, CUDA_VISIBLE_DEVICES; HIP docs, environment variables",
    .check = check_visible_devices,
}};

void check_debug_left_on(const LintInput& input, Report& report) {
  if (input.plan) return;  // there an overlay asks for it
  each_value(input, report, "NCCL_DEBUG",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               const auto level = text::lower(value);
               if (!setting.exported) return;
               if (level != "info" && level != "trace") return;
               if (environment.may("NCCL_DEBUG_FILE", [](const std::string& file) { return !file.empty(); }))
                 return;
               report.note(
                   setting.span,
                   {fmt::format("NCCL_DEBUG={} writes NCCL's log into the job's own output", value),
                    level == "trace" ? "a release build of NCCL has no trace lines: it writes what INFO "
                                       "writes, hundreds of lines for each rank and communicator"
                                     : "each rank writes hundreds of lines for each communicator, among "
                                       "which an error is hard to find",
                    "NCCL_DEBUG=WARN, or NCCL_DEBUG_FILE=FOLDER/nccl.%h.%p.log beside it", ""});
             });
  struct Log {
    std::string_view name;
    std::vector<std::string_view> levels;  ///< in small letters
  };
  const std::array<Log, 6> logs{{{"FI_LOG_LEVEL", {"info", "debug", "trace"}},
                                 {"UCX_LOG_LEVEL", {"info", "debug", "trace", "data", "poll"}},
                                 {"NVSHMEM_DEBUG", {"info", "trace"}},
                                 {"RAY_BACKEND_LOG_LEVEL", {"debug", "trace"}},
                                 {"VLLM_LOGGING_LEVEL", {"debug"}},
                                 {"LOGLEVEL", {"debug"}}}};
  for (const auto& log : logs) {
    each_value(
        input, report, log.name, [&](const Environment&, const Setting& setting, const std::string& value) {
          if (!setting.exported || std::ranges::find(log.levels, text::lower(value)) == log.levels.end())
            return;
          report.note(setting.span,
                      {fmt::format("{}={} is for looking for a fault", log.name, value),
                       "each process writes what it does, call by call, among which an error is hard to "
                       "find",
                       "leave it out", ""});
        });
  }
}

const Registered<Rule> debug_left_on_rule{{
    .order = 305,
    .name = "debug-left-on",
    .title = "NCCL_DEBUG=INFO, or another log for debugging, left on",
    .explain = "INFO is for looking at one start; so are the logs of libfabric, UCX, NVSHMEM, Ray, vLLM and "
               "torchrun below "
               "warnings. At scale its lines fill the log of the job. WARN says what is "
               "wrong and nothing else; NCCL_DEBUG_FILE puts the rest where it is out of the way.",
    .source = "NCCL src/debug.cc, src/include/debug.h",
    .check = check_debug_left_on,
}};

}  // namespace
}  // namespace nlaunch::lint
