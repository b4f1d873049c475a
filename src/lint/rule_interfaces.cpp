#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lint/rule_checks.h"
#include "lint/values.h"

namespace nlaunch::lint {
namespace {

void check_nccl(const LintInput& input, Report& report, std::string_view name) {
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

}  // namespace

void check_interfaces(const LintInput& input, Report& report) {
  check_nccl(input, report, "NCCL_SOCKET_IFNAME");
  check_nccl(input, report, "NCCL_OOB_NET_IFNAME");
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

}  // namespace nlaunch::lint
