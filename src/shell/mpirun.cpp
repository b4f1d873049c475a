#include "shell/mpirun.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

// mpirun(1) of Open MPI 3.1 to 5.0 (and PRRTE's prun), Hydra's "mpiexec -help" of MPICH 4.2, and the
// reference of Intel MPI 2021. Each may have one dash or two.
constexpr std::string_view kNoValue =
    " allow-run-as-root bind-to-core bind-to-none bind-to-socket bycore bynode byslot bysocket bind-to-board "
    "continuous debug debug-daemons debug-daemons-file debug-devel disable-auto-cleanup "
    "disable-hostname-propagation "
    "disable-recovery display-allocation display-comm display-devel-allocation display-devel-map display-map "
    "display-topo do-not-launch do-not-resolve enable-instant-on-support enable-recovery envall envnone "
    "forward-signals "
    "genvall get-stack-traces info l leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe "
    "novm "
    "no-ready-msg output-proctable oversubscribe parseable parsable pernode prepend-rank print-all-exitcodes "
    "print-rank-map prtemca q quiet report-bindings report-child-jobs-separately report-state-on-timeout rr "
    "show-progress staged tag-output timestamp-output tv use-hwthread-cpus use-regexp v verbose xml ";
constexpr std::string_view kOneValue =
    " H N am c configfile cpu-list cpu-set cpus-per-proc cpus-per-rank default-hostfile demux display "
    "envlist "
    "errfile-pattern f genvlist gtool host hostfile hostlist hosts iface launch-agent launcher launcher-exec "
    "localhost "
    "machinefile map-by max-restarts max-vm-size mca-base-env-list membind n nameserver np npernode "
    "npersocket "
    "num-proc ompi-server order-nodes outfile-pattern output output-directory output-filename path perhost "
    "personality ppn prefix preload-files rank-by rankfile report-events report-pid report-uri rf rmk "
    "runtime-options server-wait-time stdin tmpdir topolib tune usize timeout wd wdir with-ft x xterm "
    "bind-to "
    "mpi-env ";
constexpr std::string_view kTwoValues = " env genv gmca gpmixmca mca omca pmixmca prtemca ";

bool is_among(std::string_view list, std::string_view name) {
  return list.contains(" " + std::string(name) + " ");
}

void add_host(std::vector<HostSlots>& hosts, std::string_view word, bool counts) {
  const auto colon = word.find(':');
  const std::string host(word.substr(0, colon));
  auto slots = colon == std::string_view::npos ? std::nullopt
                                               : text::whole_number<std::uint32_t>(word.substr(colon + 1));
  if (!slots && counts) slots = 1;
  if (host.empty()) return;
  const auto known = std::ranges::find(hosts, host, &HostSlots::host);
  if (known == hosts.end())
    hosts.push_back({host, slots});
  else if (known->slots && slots)
    *known->slots += *slots;
}

/// "node", "slot:pe=4", "ppr:2:node:pe=8", "core"
void map_by(std::string_view policy, Mpirun& call) {
  static const RE2 kPerNode(R"(^ppr:(\d+):node\b)");
  std::uint32_t each = 0;
  const auto resource = policy.substr(0, policy.find_first_of(":,"));
  if (RE2::PartialMatch(policy, kPerNode, &each))
    call.per_node = each;
  else if (resource == "ppr")
    call.placed_by = "map-by " + std::string(policy);
  else if (resource == "node")
    call.mapping = Mapping::cyclic;
  else if (resource != "slot")
    call.mapping = Mapping::spread;
}

void take(std::string_view name, const std::string& value, Mpirun& call) {
  const auto number = text::whole_number<std::uint32_t>(value);
  if (is_any_of(name, {"np", "n", "c", "num-proc"}))
    call.processes = number;
  else if (is_any_of(name, {"N", "npernode", "ppn", "perhost"}))
    call.per_node = number;
  else if (is_any_of(name, {"H", "host", "hosts", "hostlist"}))
    for (const auto& host : text::split(value, ',')) add_host(call.hosts, host, true);
  else if (is_any_of(name, {"hostfile", "machinefile", "default-hostfile", "f"}))
    call.hostfile = value;
  else if (name == "map-by")
    map_by(value, call);
  else if (name == "rank-by" && value == "node")
    call.mapping = Mapping::cyclic;
  else if (is_any_of(name, {"npersocket", "rf", "rankfile", "cpu-list", "configfile"}))
    call.placed_by = name;
  else if (is_any_of(name, {"wd", "wdir"}))
    call.folder = value;
  else if (name == "x" && value.contains('='))
    call.variables.push_back(value);
}

}  // namespace

bool is_mpirun(const std::string& program) {
  return program == "mpirun" || program == "mpiexec" || program == "orterun";
}

Mpirun read_mpirun(const Words& argv) {
  Mpirun call;
  std::size_t at = 1;
  while (at < argv.size() && argv[at].size() > 1 && argv[at][0] == '-') {
    std::string_view name = argv[at];
    name.remove_prefix(name.starts_with("--") ? 2 : 1);
    const auto equals = name.find('=');
    const auto attached = equals != std::string_view::npos;
    const std::string after(attached ? name.substr(equals + 1) : "");
    name = name.substr(0, equals);
    // Hydra also takes NAME=VALUE.
    const bool sets = is_any_of(name, {"genv", "env"}) && at + 1 < argv.size() && argv[at + 1].contains('=');
    const std::size_t values = is_among(kTwoValues, name) && !sets ? 2
                               : is_among(kOneValue, name) || sets ? 1
                                                                   : 0;
    if (values == 0 && !is_among(kNoValue, name)) call.unknown.push_back(argv[at]);
    if (name == "pernode") call.per_node = 1;
    if (name == "bynode") call.mapping = Mapping::cyclic;
    if (values == 1 && attached) take(name, after, call);
    if (values == 1 && !attached && at + 1 < argv.size()) take(name, argv[at + 1], call);
    if (sets) call.variables.push_back(argv[at + 1]);
    if (is_any_of(name, {"genv", "env"}) && !sets && at + 2 < argv.size())
      call.variables.push_back(argv[at + 1] + "=" + argv[at + 2]);
    at += 1 + (attached ? 0 : values);
  }
  call.program = rest(argv, std::min(at, argv.size()));
  return call;
}

std::vector<HostSlots> hosts_in_file(std::string_view text) {
  static const RE2 kSlots(R"(\bslots\s*=\s*(\d+))");
  std::vector<HostSlots> hosts;
  for (const auto& whole : text::split(text, '\n')) {
    const auto line = text::trim(std::string_view(whole).substr(0, whole.find('#')));
    const auto word = line.substr(0, line.find_first_of(" \t"));
    std::uint32_t slots = 0;
    if (word.empty()) continue;
    if (RE2::PartialMatch(line, kSlots, &slots))
      add_host(hosts, std::string(word.substr(0, word.find(':'))) + ":" + std::to_string(slots), false);
    else
      add_host(hosts, word, false);
  }
  return hosts;
}

}  // namespace nlaunch::shell
