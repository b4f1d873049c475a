#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lint/rule_checks.h"
#include "lint/values.h"

namespace nlaunch::lint {

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

void check_ib_disabled(const LintInput& input, Report& report) {
  each_value(input, report, "NCCL_IB_DISABLE",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               const auto read = read_number(value);
               if (!read.whole || read.value == 0 || environment.find(setting.name) != &setting) return;
               const bool hca = environment.find("NCCL_IB_HCA") != nullptr;
               if (input.nics != "ib" && !hca) return;
               report.error(
                   setting.span,
                   {"NCCL_IB_DISABLE=1 where InfiniBand is the network",
                    hca ? "NCCL_IB_HCA chooses adapters that NCCL then does not use: it goes over TCP"
                        : "NCCL goes over TCP then, at a small part of the speed",
                    "leave it out", ""});
             });
}

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

}  // namespace nlaunch::lint
