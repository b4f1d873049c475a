#include "shell/answers.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "sys/proc.h"

namespace nlaunch::shell {
namespace {

std::string lines_of_hosts(const std::vector<std::uint32_t>& nodes) {
  std::string text;
  for (const auto node : nodes) text += Allocation::host(node) + "\n";
  return text;
}

/// The nodes of SLURM_JOB_NODELIST, which in a heterogeneous job are those of the first component.
std::string of_job(const Allocation& allocation) {
  return Allocation::host_list(allocation.component(0).value_or(Allocation::Component{}));
}

/// `scontrol show node -o`
std::string lines_of_nodes(const Allocation& allocation) {
  std::string text;
  for (std::uint32_t node = 0; node < allocation.nodes; ++node)
    text += fmt::format(
        "NodeName={0} Arch=x86_64 CoresPerSocket=64 CPUAlloc=0 CPUEfctv=128 CPUTot=128 Gres=gpu:{1} "
        "NodeAddr={2} NodeHostName={0} RealMemory=1000000 Sockets=2 State=ALLOCATED ThreadsPerCore=1\n",
        Allocation::host(node), allocation.component_of(node).gpus_per_node, Allocation::address(node));
  return text;
}

using Ask = Answer (*)(const Words&, const Allocation&, std::uint32_t node);

Answer succeed(const Words&, const Allocation&, std::uint32_t) {
  return {};
}

Answer ask_scontrol(const Words& argv, const Allocation& allocation, std::uint32_t) {
  if (has(argv, "hostnames") || has(argv, "hostname")) {
    const auto& list = argv.back();
    // Without a list, it uses SLURM_JOB_NODELIST.
    const bool whole = list.find("hostname") != std::string::npos;
    if (whole || list.find('[') != std::string::npos)
      return {lines_of_hosts(nodes_in(whole ? of_job(allocation) : list))};
    return {text::join(text::split(list, ','), "\n") + "\n"};
  }
  if (has(argv, "hostlist") || has(argv, "hostlistsorted")) return {of_job(allocation) + "\n"};
  if (has(argv, "node") || has(argv, "nodes")) return {lines_of_nodes(allocation)};
  if (has(argv, "job") || has(argv, "jobid"))
    return {fmt::format("JobId={} JobName={}\n   NumNodes={} NodeList={}\n", allocation.job_id,
                        allocation.job_name, allocation.nodes, allocation.host_list())};
  return {};
}

Answer ask_hostname(const Words& argv, const Allocation&, std::uint32_t node) {
  const bool address = std::ranges::any_of(argv, [](const auto& word) {
    return word == "-i" || word == "-I" || word == "--ip-address" || word == "--all-ip-addresses";
  });
  return {(address ? Allocation::address(node) : Allocation::host(node)) + "\n"};
}

/// The requested node; the first one for hosts outside the job.
std::uint32_t node_in(const Words& argv) {
  return node_of(argv.back()).value_or(0);
}

Answer ask_getent(const Words& argv, const Allocation&, std::uint32_t) {
  constexpr std::size_t kWords = 3;
  if (argv.size() < kWords) return {"", 2};
  if (argv[1] == "group") return {fmt::format("{}:x:1000:\n", argv.back())};
  if (argv[1] == "passwd")
    return {fmt::format("{0}:x:1000:1000::{1}:/bin/bash\n", argv.back(), Allocation::kHome)};
  return {fmt::format("{:<15} {}\n", Allocation::address(node_in(argv)), argv.back())};
}

Answer ask_host(const Words& argv, const Allocation&, std::uint32_t) {
  if (argv.size() < 2) return {"", 1};
  const auto address = Allocation::address(node_in(argv));
  return {program_name(argv[0]) == "dig" ? address + "\n"
                                         : fmt::format("{} has address {}\n", argv.back(), address)};
}

/// The interface that a command names: `ip addr show dev ib0`, `ifconfig ib0`; else the only one of a node.
std::string interface_in(const Words& argv) {
  static const Options kWords{"addr", "address", "a",   "link", "l",  "route", "r",     "ro",     "show",
                              "list", "ls",      "get", "dev",  "up", "to",    "scope", "global", "default"};
  for (auto i = argv.size() - 1; i > 0; --i)
    if (!argv[i].starts_with('-') && !kWords.contains(argv[i]) && argv[i].find('.') == std::string::npos)
      return argv[i];
  return std::string(Allocation::kInterface);
}

/// ip(8) of iproute2: `ip route`, `ip route get`, `ip link`, `ip addr` and its short forms.
Answer ask_ip(const Words& argv, const Allocation&, std::uint32_t node) {
  const auto address = Allocation::address(node);
  const auto name = interface_in(argv);
  const auto is = [&](const char* option) { return has(argv, option); };
  if (is("route") || is("r") || is("ro")) {
    if (is("get"))
      return {fmt::format("{} via 10.77.255.254 dev {} src {} uid 1000 \n    cache \n", argv.back(),
                          Allocation::kInterface, address)};
    const auto first =
        fmt::format("default via 10.77.255.254 dev {} proto static metric 100 \n", Allocation::kInterface);
    if (is("default")) return {first};
    return {first + fmt::format("10.77.0.0/16 dev {} proto kernel scope link src {} metric 100 \n",
                                Allocation::kInterface, address)};
  }
  const auto flags = fmt::format(
      "2: {}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000", name);
  const auto inet = fmt::format("inet {}/16 brd 10.77.255.255 scope global {}", address, name);
  constexpr std::string_view kEther = "link/ether 02:00:0a:4d:00:01 brd ff:ff:ff:ff:ff:ff";
  const bool links = is("link") || is("l");
  if (is("-br") || is("-brief")) return {fmt::format("{:<16} UP             {}/16 \n", name, address)};
  if (is("-o") || is("-oneline") || is("-4o") || is("-o4"))
    return {links ? fmt::format("{}\\    {}\n", flags, kEther)
                  : fmt::format("2: {}    {}\\       valid_lft forever preferred_lft forever\n", name, inet)};
  if (links) return {fmt::format("{}\n    {}\n", flags, kEther)};
  return {fmt::format("{}\n    {}\n    {}\n       valid_lft forever preferred_lft forever\n", flags, kEther,
                      inet)};
}

Answer ask_ifconfig(const Words& argv, const Allocation&, std::uint32_t node) {
  return {fmt::format(
      "{}: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9000\n        inet {}  netmask 255.255.0.0  "
      "broadcast 10.77.255.255\n        ether 02:00:0a:4d:00:01  txqueuelen 1000  (Ethernet)\n",
      interface_in(argv), Allocation::address(node))};
}

/// Has everything that scripts look for in such a text: links between GPUs, memory, cores.
Answer ask_other_machine(const Words&, const Allocation& allocation, std::uint32_t) {
  if (!allocation.other_machine) return {};
  return {"GPU0 X NV12 NVIDIA A40 46068MiB CUDA Version: 12.0\nMem: 64 32 32 32\nCPU(s): 64\n"};
}

Answer ask_gpus(const Words& argv, const Allocation& allocation, std::uint32_t) {
  const bool other = allocation.other_machine;
  const std::string model = other ? "NVIDIA A40" : "NVIDIA H100 80GB HBM3";
  // If the number is not given, another machine has a different one.
  const auto gpus = allocation.gpus_per_node > 0 ? allocation.gpus_per_node : other ? 2U : 1U;
  const auto uuid_of = [&](std::uint32_t gpu) {
    return fmt::format("GPU-00000000-0000-0000-{}-{:012}", other ? "1111" : "0000", gpu);
  };
  std::string text;
  if (has(argv, "-L") || has(argv, "--list-gpus")) {
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
      text += fmt::format("GPU {}: {} (UUID: {})\n", gpu, model, uuid_of(gpu));
    return {text};
  }
  const auto query = option(argv, argv.size(), "", "--query-gpu");
  if (!query) return other ? ask_other_machine(argv, allocation, 0) : Answer{};
  const bool header =
      std::ranges::none_of(argv, [](const auto& word) { return word.find("noheader") != std::string::npos; });
  if (header) text += *query + "\n";
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    Words cells;
    for (const auto& column : text::split(*query, ',')) {
      const auto name = text::trim(column);
      cells.push_back(name.contains("name")   ? model
                      : name == "index"       ? std::to_string(gpu)
                      : name == "count"       ? std::to_string(gpus)
                      : name == "uuid"        ? uuid_of(gpu)
                      : name == "compute_cap" ? (other ? "8.6" : "9.0")
                                              : (other ? "46068" : "81559"));
    }
    text += text::join(cells, ", ") + "\n";
  }
  return {text};
}

constexpr std::string_view kPage = "{}\n";

Answer ask_curl(const Words& argv, const Allocation&, std::uint32_t) {
  for (const auto& word : argv)
    if (word.find("http_code") != std::string::npos) return {"200"};
  const bool file = has(argv, "-o") || has(argv, "-O") || has(argv, "--output");
  return {file ? "" : std::string(kPage)};
}

Answer ask_ray(const Allocation& allocation) {
  std::string text = "======== Autoscaler status ========\nNode status\n----\nActive:\n";
  for (std::uint32_t node = 0; node < allocation.nodes; ++node) text += fmt::format(" 1 node_{:056}\n", node);
  constexpr std::uint32_t kCpus = 64;
  const auto gpus = allocation.nodes * allocation.gpus_per_node;
  return {text + fmt::format("Resources\n----\nUsage:\n 0.0/{}.0 CPU\n 0.0/{}.0 GPU\n",
                             allocation.nodes * kCpus, gpus)};
}

/// `git -C DIR clone`: what changes files is part of the job.
bool is_question_to_git(const Words& argv) {
  static const Options kValued{"-C", "-c", "--git-dir", "--work-tree"};
  static const Options kQuestions{"rev-parse", "describe",  "log",       "status", "diff",
                                  "branch",    "config",    "show",      "remote", "rev-list",
                                  "ls-files",  "ls-remote", "tag",       "blame",  "symbolic-ref",
                                  "show-ref",  "name-rev",  "--version", "version"};
  const auto verb = program_at(argv, 1, kValued);
  return verb == argv.size() || kQuestions.contains(argv[verb]);
}

Answer ask_git(const Words& argv, const Allocation&, std::uint32_t) {
  if (has(argv, "--show-toplevel")) return {"/rec/repository\n"};
  if (has(argv, "--abbrev-ref") || has(argv, "--show-current")) return {"main\n"};
  if (has(argv, "rev-parse") || has(argv, "describe")) return {"0123456789abcdef0123456789abcdef01234567\n"};
  return {};
}

Answer ask_squeue(const Words& argv, const Allocation& allocation, std::uint32_t) {
  const bool header = !has(argv, "-h") && !has(argv, "--noheader");
  return {(header ? "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n" : "") +
          fmt::format("{} gpu {} user R 0:10 {} {}\n", allocation.job_id, allocation.job_name,
                      allocation.nodes, allocation.host_list())};
}

Answer ask_sbatch(const Words& argv, const Allocation&, std::uint32_t) {
  return {has(argv, "--parsable") ? fmt::format("{}\n", Allocation::kSubmitted)
                                  : fmt::format("Submitted batch job {}\n", Allocation::kSubmitted)};
}

/// `ps -p PID`, `ps PID`: whether a program in the background still runs.
Answer ask_ps(const Words& argv, const Allocation&, std::uint32_t) {
  if (argv.size() < 2) return {};
  const auto pid = text::whole_number<pid_t>(argv.back());
  if (!pid) return {};
  const auto info = sys::process_info(*pid);
  if (!info || info->state == 'Z') return {"", 1};
  return {fmt::format("    PID TTY          TIME CMD\n{:>7} ?        00:00:00 {}\n", *pid, info->name)};
}

/// `flock 9`, `flock -n 9`: a lock on an open file. With a command, it is a program like others.
bool locks_a_descriptor(const Words& argv) {
  static const RE2 kNumber(R"(\d+)");
  return argv.size() > 1 && RE2::FullMatch(argv.back(), kNumber) &&
         std::all_of(argv.begin() + 1, argv.end() - 1,
                     [](const auto& word) { return word.starts_with('-') || RE2::FullMatch(word, kNumber); });
}

Answer ask_free_port(const Words&, const Allocation&, std::uint32_t) {
  return {fmt::format("{}\n", Allocation::kFirstPort)};
}

struct AskRow {
  const char* name;
  Ask ask;
};
constexpr AskRow kAsks[] = {
    {"scontrol", ask_scontrol},
    {"hostname", ask_hostname},
    {"getent", ask_getent},
    {"host", ask_host},
    {"dig", ask_host},
    {"nslookup", ask_host},
    {"ip", ask_ip},
    {"ifconfig", ask_ifconfig},
    {"get_free_port", ask_free_port},
    {"nvidia-smi", ask_gpus},
    {"rocm-smi", ask_other_machine},
    {"amd-smi", ask_other_machine},
    {"curl", ask_curl},
    {"wget", ask_curl},
    {"nc", succeed},
    {"ncat", succeed},
    {"ping", succeed},
    {"squeue", ask_squeue},
    {"sacct", ask_squeue},
    {"sinfo", succeed},
    {"sbatch", ask_sbatch},
    {"scancel", succeed},
    {"sleep", succeed},
    {"usleep", succeed},
    {"git", ask_git},
    {"ss", succeed},
    {"lsof", succeed},
    {"netstat", succeed},
    {"ps", ask_ps},
    {"pgrep", succeed},
    {"free", ask_other_machine},
    {"df", succeed},
    {"lscpu", ask_other_machine},
    {"sync", succeed},
    {"logger", succeed},
    {"flock", succeed},
    {"clear", succeed},
};

/// A short inline program that prints a port or an address.
std::optional<Answer> ask_python(const Words& argv, const Allocation& allocation, std::uint32_t node) {
  const auto code = std::ranges::find(argv, "-c");
  if (code == argv.end() || code + 1 == argv.end()) return std::nullopt;
  const auto& text = *(code + 1);
  const auto mentions = [&](const char* what) { return text.find(what) != std::string::npos; };
  if (!mentions("print")) return std::nullopt;
  if (mentions("gethostbyname") || mentions("getsockname()[0]"))
    return Answer{Allocation::address(node) + "\n"};
  if (mentions("bind(") || mentions("getsockname") || mentions("randint") || mentions("randrange"))
    return Answer{fmt::format("{}\n", Allocation::kFirstPort)};
  if (mentions("gethostname") || mentions("getfqdn")) return Answer{Allocation::host(node) + "\n"};
  if (mentions("__file__") || mentions("__path__")) return Answer{"/rec/site-packages\n"};
  if (mentions("__version__")) return Answer{"2.0.0\n"};
  if (mentions("cluster_resources"))
    return Answer{fmt::format("{}\n", allocation.nodes * allocation.gpus_per_node)};
  if (mentions("ray.nodes()")) return Answer{fmt::format("{}\n", allocation.nodes)};
  if (mentions("device_count")) return Answer{fmt::format("{}\n", allocation.gpus_per_node)};
  return std::nullopt;
}

}  // namespace

bool only_computes(const std::string& name) {
  static const Options kNames{
      "bash",      "sh",       "dash",     "[",        "awk",   "mawk",    "gawk",   "base64",   "basename",
      "bc",        "cat",      "chmod",    "chown",    "cksum", "cmp",     "column", "comm",     "cp",
      "cut",       "date",     "dd",       "dc",       "diff",  "dirname", "du",     "echo",     "egrep",
      "env",       "expr",     "false",    "fgrep",    "find",  "fold",    "getopt", "grep",     "head",
      "hexdump",   "id",       "install",  "join",     "jq",    "ln",      "ls",     "md5sum",   "mkdir",
      "mkfifo",    "mktemp",   "mv",       "nl",       "nproc", "od",      "paste",  "printenv", "printf",
      "pwd",       "readlink", "realpath", "rev",      "rm",    "rmdir",   "sed",    "seq",      "sha1sum",
      "sha256sum", "shuf",     "sort",     "split",    "stat",  "tac",     "tail",   "tee",      "test",
      "touch",     "tr",       "true",     "truncate", "tty",   "tsort",   "uname",  "uniq",     "uuidgen",
      "wc",        "which",    "whoami",   "xargs",    "yes"};
  return kNames.contains(name);
}

bool changes_files(const std::string& name) {
  static const Options kNames{"mkdir", "rm", "rmdir", "touch", "chmod", "chown", "mkfifo", "truncate"};
  return kNames.contains(name);
}

namespace {

/// `taskset -cp PID`, `numactl --show`: these start nothing.
std::optional<Answer> ask_binding(const std::string& name, const Words& argv) {
  const bool of_process =
      name == "taskset" && argv.size() > 2 && argv[1].starts_with('-') && argv[1].ends_with('p');
  if (of_process) return Answer{fmt::format("pid {}'s current affinity list: 0-63\n", argv.back())};
  static const Options kShow{"-s", "--show", "-H", "--hardware"};
  if (name == "numactl" && argv.size() == 2 && kShow.contains(argv[1]))
    return Answer{"policy: default\nphyscpubind: 0 1 2 3\ncpubind: 0\nnodebind: 0\nmembind: 0\n"};
  return std::nullopt;
}

/// For eval "$(/opt/conda/bin/conda shell.bash hook)": the functions are already defined, but not where conda
/// is.
std::string conda_hook(const std::string& program) {
  constexpr std::string_view kEnd = "/bin/conda";
  return program.ends_with(kEnd)
             ? fmt::format("NLAUNCH_CONDA={}\n",
                           text::shell_quote(program.substr(0, program.size() - kEnd.size())))
             : std::string();
}

}  // namespace

std::optional<Answer> answer_of(const Words& argv, const Allocation& allocation, std::uint32_t node) {
  const auto name = program_name(argv.at(0));
  if (name.starts_with("python")) return ask_python(argv, allocation, node);
  if (auto said = ask_binding(name, argv)) return said;
  if ((name == "conda" || name.ends_with("mamba")) && argv.size() > 1 && argv[1].starts_with("shell"))
    return Answer{conda_hook(argv[0]), 0};
  if (name == "ray" && (argv.size() < 2 || argv[1] == "status" || argv[1] == "health-check"))
    return ask_ray(allocation);
  if (name == "git" && !is_question_to_git(argv)) return std::nullopt;
  if (name == "flock" && !locks_a_descriptor(argv)) return std::nullopt;
  const auto* row = std::ranges::find(kAsks, name, &AskRow::name);
  return row == std::end(kAsks) ? std::nullopt : std::optional(row->ask(argv, allocation, node));
}

Answer refused(const Words& argv) {
  const bool shows_code =
      std::ranges::any_of(argv, [](const auto& word) { return word.contains("http_code"); });
  constexpr int kCurlRefused = 7;  // CURLE_COULDNT_CONNECT, libcurl-errors(3)
  constexpr int kWgetRefused = 4;  // wget(1), EXIT STATUS
  const auto name = program_name(argv[0]);
  return {shows_code ? "000" : "", name == "curl" ? kCurlRefused : name == "wget" ? kWgetRefused : 1};
}

bool is_page(const Answer& answer) {
  return answer.text == kPage;
}

bool asks_by_exit_code(const Words& argv) {
  static const Options kAlways{"show-ref", "cat-file", "merge-base", "check-ignore"};
  static const Options kWith{"--quiet", "-q", "--exit-code", "--verify", "--error-unmatch", "--is-ancestor"};
  const auto any = [&](const Options& words) {
    return std::ranges::any_of(argv, [&](const auto& word) { return words.contains(word); });
  };
  const auto name = program_name(argv[0]);
  return (name == "git" && (any(kAlways) || any(kWith))) || name == "lsof" || name == "pgrep";
}

bool describes_machine(const std::string& program) {
  static const Options kNames{"nvidia-smi", "rocm-smi", "amd-smi", "free", "lscpu"};
  return kNames.contains(program_name(program));
}

std::vector<std::string> names_of_answers() {
  std::vector<std::string> names;
  for (const auto& row : kAsks) names.emplace_back(row.name);
  return names;
}

bool names_failure(const std::string& pattern) {
  static const RE2 kFailure(R"((?i)error|fail|exception|traceback|out of memory|\boom\b|killed|abort|fatal)");
  return RE2::PartialMatch(pattern, kFailure);
}

}  // namespace nlaunch::shell
