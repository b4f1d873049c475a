#include "evidence/read.h"

#include <fmt/format.h>

#include <re2/re2.h>
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::evidence {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kLargest = 512U << 20U;

std::string text_of(const fs::path& file) {
  return sys::read_regular_file(file, kLargest, sys::Links::refused).value_or("");
}

json json_of(const fs::path& file) {
  auto object = parse_json(text_of(file));
  return object.is_object() ? object : json::object();
}

json list_of(const fs::path& file) {
  auto list = parse_json(text_of(file));
  return list.is_array() ? list : json::array();
}

std::vector<fs::path> sorted(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

/// A program that runs alone may have RANK=-1.
std::optional<int> rank_of(const json& object) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto rank = object.find("rank");
  if (rank == object.end() || !rank->is_number_integer()) return std::nullopt;
  const auto number = rank->get<std::int64_t>();
  return number >= 0 && number < kMost ? std::optional(static_cast<int>(number)) : std::nullopt;
}

/// A program prints the reason for its exit in its last lines.
std::string last_words(const std::string& log) {
  constexpr std::size_t kEnough = 4096;
  return log.substr(log.size() - std::min(log.size(), kEnough));
}

/// "1000/1000", if the bar with the most steps in a log has reached its end once, as tqdm draws a bar without
/// a title. One that has restarted counts the steps of an epoch.
std::string last_step(const std::string& log) {
  static const re2::RE2 kBar(R"((?m)(?:^|\r)\s*\d+%\|[^|\r\n]*\|\s(\d+)/(\d+)\s\[)");
  re2::StringPiece rest(log);
  std::uint64_t step = 0;
  std::uint64_t total = 0;
  std::uint64_t most = 1;
  bool done = false;
  while (re2::RE2::FindAndConsume(&rest, kBar, &step, &total)) {
    if (total < most || total == 1) continue;
    if (total == most && done && step < total) return "";
    most = total;
    done = step == total;
  }
  return done ? fmt::format("{0}/{0}", most) : "";
}

/// The processes of a subject that are separate ranks: the first program of each RANK, which the helpers that
/// it starts inherit. Without a RANK, its first program; one that has exited if there is no other.
std::vector<const json*> programs(const json& processes) {
  std::vector<const json*> found;
  std::set<int> ranks;
  for (const auto& process : processes) {
    const auto rank = rank_of(process);
    if (rank && process.value("program", false) && ranks.insert(*rank).second) found.push_back(&process);
  }
  if (!found.empty() || processes.empty()) return found;
  const auto is_program = [](const json& process) { return process.value("program", false); };
  const auto is_alive = [](const json& process) { return process.value("state", "") != "Z"; };
  const auto alive = std::ranges::find_if(
      processes, [&](const json& process) { return is_program(process) && is_alive(process); });
  if (alive != processes.end()) return {&*alive};
  const auto first = std::ranges::find_if(processes, is_program);
  return {first == processes.end() ? &processes.front() : &*first};
}

/// The contents of the files of one subject.
struct Files {
  json processes;
  std::map<pid_t, Stack> python;
  std::map<pid_t, Stack> native;
  std::string log;
  json sockets;  ///< a list, empty if nothing was collected
  json server;   ///< an object, empty if it was not queried
};

/// ":8000", of "http://10.0.0.1:8000/health"; empty if the URL has no port.
std::string port_of(const std::string& url) {
  const auto host = url.find("://");
  if (host == std::string::npos) return "";
  const auto authority = url.substr(host + 3, url.find('/', host + 3) - host - 3);
  const auto colon = authority.rfind(':');
  return colon == std::string::npos ? "" : authority.substr(colon);
}

/// Of the main program; of a server, also those of its other processes to its own port, which several may
/// serve (vLLM's --api-server-count). Their connections to other ports are of collectives, not of clients.
std::vector<Connection> connections_of(const json& sockets, pid_t pid, const std::string& port) {
  std::vector<Connection> connections;
  for (const auto& one : sockets) {
    const auto local = one.value("local", "");
    const bool counts = one.value("pid", 0) == pid || (!port.empty() && local.ends_with(port));
    if (counts && one.value("state", "") == "ESTABLISHED")
      connections.push_back({local, one.value("peer", "")});
  }
  return connections;
}

Stack stack_of(const std::map<pid_t, Stack>& stacks, pid_t pid) {
  const auto found = stacks.find(pid);
  return found == stacks.end() ? Stack() : found->second;
}

void describe(Member& member, const json& process, const Files& files) {
  member.pid = process.value("pid", 0);
  member.title = process.value("title", "");
  const auto state = process.value("state", "");
  member.state = state.empty() ? '?' : state[0];
  member.cpu = process.value("main_cpu", 0.0);
  member.cuda = process.value("cuda", false);
  const auto threads = process.value("threads", json::array());
  if (!threads.empty()) member.wait_channel = threads[0].value("wait_channel", "");
  member.python = stack_of(files.python, member.pid);
  member.native = stack_of(files.native, member.pid);
  member.connections = connections_of(files.sockets, member.pid, port_of(files.server.value("url", "")));
}

/// The other programs below one: no shells, and none that have exited.
std::vector<Part> parts_below(const json& processes, pid_t root, const Files& files) {
  std::set<pid_t> below{root};
  std::vector<Part> parts;
  for (const auto& process : processes) {  // parents before children
    const auto pid = process.value("pid", 0);
    if (pid == root || !below.contains(process.value("parent", 0))) continue;
    below.insert(pid);
    const auto state = process.value("state", "");
    if (!process.value("program", false) || state.empty() || state == "X" || state == "Z") continue;
    parts.push_back({pid, process.value("title", process.value("name", "")), state[0],
                     stack_of(files.python, pid), stack_of(files.native, pid)});
  }
  return parts;
}

std::vector<Member> members_of(const Files& files) {
  Member common;
  common.process = files.processes.value("name", "");
  common.role = common.process.substr(0, common.process.rfind('.'));
  common.host = files.processes.value("host", "");
  common.rank = rank_of(files.processes);
  common.pid = files.processes.value("pid", 0);
  common.ended = files.processes.value("ended", "");
  common.ended_at = files.processes.value("ended_at", 0.0);
  common.killed_parts = files.processes.value("killed_parts", std::vector<std::string>{});
  common.last_words = last_words(files.log);
  if (!files.server.empty()) common.server = read_server(files.server);
  if (!common.server) common.last_step = last_step(files.log);
  common.gpus = files.processes.value("gpus", std::vector<std::string>{});
  const auto processes = files.processes.value("processes", json::array());
  for (const auto& process : processes) common.pids.push_back(process.value("pid", 0));
  std::vector<Member> members;
  for (const auto* process : programs(processes)) {
    auto& member = members.emplace_back(common);
    if (const auto rank = rank_of(*process)) member.rank = rank;
    describe(member, *process, files);
    member.parts = parts_below(processes, member.pid, files);
  }
  for (auto& member : members) {
    if (members.size() > 1) member.pids = {member.pid};
  }
  if (members.empty()) members.push_back(common);
  return members;
}

void read_recordings(Evidence& evidence, const fs::path& folder, const std::string& role) {
  constexpr std::string_view kPrefix = "flight-recorder.";
  constexpr std::string_view kEarlier = "earlier-";
  for (const auto& file : sorted(folder)) {
    const auto whole = file.filename().string();
    std::string_view name = whole;
    const bool is_earlier = name.starts_with(kEarlier);
    if (is_earlier) name.remove_prefix(kEarlier.size());
    if (!name.starts_with(kPrefix)) continue;
    int rank = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), rank);
    auto recording = read_recording(text_of(file), rank);
    if (recording) {
      recording->is_earlier = is_earlier;
      evidence.recordings[role].push_back(std::move(*recording));
    } else {
      evidence.missing.push_back(
          fmt::format("flight recorder of rank {}: {}", rank, recording.error().first_message()));
    }
  }
}

void read_ras_of(Evidence& evidence, const fs::path& folder, const std::string& name) {
  for (const auto* file : {"ras.json", "ras.txt"}) {
    const auto text = text_of(folder / file);
    if (text.empty()) continue;
    auto report = read_ras(text);
    if (report) {
      evidence.ras.push_back(std::move(*report));
    } else {
      evidence.missing.push_back(fmt::format("NCCL RAS of {}: {}", name, report.error().first_message()));
    }
  }
}

void read_subject(Evidence& evidence, const fs::path& folder) {
  const Files files{json_of(folder / "processes.json"),
                    python_stacks(text_of(folder / "python-stacks.txt")),
                    native_stacks(text_of(folder / "native-stacks.txt")),
                    text_of(folder / "log.txt"),
                    list_of(folder / "sockets.json"),
                    json_of(folder / "server.json")};
  if (files.processes.empty()) return;
  auto members = members_of(files);
  read_recordings(evidence, folder, members.front().role);
  read_ras_of(evidence, folder, members.front().process);
  std::ranges::move(members, std::back_inserter(evidence.members));
}

/// Without duplicates: a tool that is not installed is missing for every process.
void note_missing(Evidence& evidence, const json& collected) {
  std::set<std::string> once(evidence.missing.begin(), evidence.missing.end());
  const auto note = [&](const json& list) {
    for (const auto& one : list) {
      const auto install = one.value("install", "");
      auto line = fmt::format("{} on {}: {}{}", one.value("what", ""), collected.value("host", ""),
                              one.value("why", ""), install.empty() ? "" : fmt::format(" ({})", install));
      if (once.insert(line).second) evidence.missing.push_back(std::move(line));
    }
  };
  note(collected.value("missing", json::array()));
  const auto processes = collected.value("processes", json::object());
  for (const auto& [name, found] : processes.items()) note(found.value("missing", json::array()));
}

void read_host(Evidence& evidence, const fs::path& folder) {
  const auto collected = json_of(folder / "collected.json");
  for (const auto& address : collected.value("addresses", json::array()))
    evidence.hosts[address.get<std::string>()] = collected.value("host", "");
  evidence.hosts.erase("127.0.0.1");
  if (evidence.ending.empty()) evidence.ending = collected.value("ending", "");
  evidence.gpu_use[collected.value("host", "")] = read_gpu_use(text_of(folder / "gpu-use.jsonl"));
  for (const auto& subject : sorted(folder)) {
    if (sys::is_folder_itself(subject)) read_subject(evidence, subject);
  }
  note_missing(evidence, collected);
}

}  // namespace

Result<Evidence> read_evidence(const fs::path& folder) {
  Evidence evidence;
  try {
    for (const auto& host : sorted(folder)) {
      if (sys::is_folder_itself(host)) read_host(evidence, host);
    }
  } catch (const json::exception& error) {
    return failure("evidence.read", "cannot read the evidence in {}: {}", folder.string(), error.what());
  }
  if (evidence.members.empty()) return failure("evidence.read", "no evidence in {}", folder.string());
  return evidence;
}

Result<Judged> judge_folder(const fs::path& folder) {
  auto evidence = read_evidence(folder);
  if (!evidence) return std::unexpected(evidence.error());
  auto verdict = judge(*evidence);
  const auto written =
      sys::write_file_atomically(folder / "verdict.json", json_text(to_json(verdict, *evidence), 1) + "\n");
  if (!written) return std::unexpected(written.error());
  return Judged{std::move(*evidence), std::move(verdict)};
}

}  // namespace nlaunch::evidence
