#include "preflight/nixl_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "plan/groups.h"
#include "sys/command.h"

namespace nlaunch::preflight {
namespace {

/// The others may start later, and NIXL takes a second to load.
constexpr std::chrono::seconds kToMeet{20};
constexpr std::chrono::seconds kForTheRest{10};
constexpr std::string_view kMark = "nlaunch-nixl: ";

/// `send HOST PORTS TAG RECEIVERS SECONDS`, or `receive HOST PORTS TAG NAME SECONDS`. NIXL on PyPI is one
/// package per CUDA; `nixl` selects one of them. Tried with 1.5.1: destructors of its agents may crash, so
/// the program exits without them.
constexpr std::string_view kProgram = R"py(
import base64, ctypes, importlib, importlib.metadata, json, os, socket, sys, time
what, host, ports, tag, fifth, patience = sys.argv[1:7]
ports = [int(port) for port in ports.split(",")]
SIZE, until = 1 << 20, time.monotonic() + float(patience)

wrong = []

def end(**said):
    # A package that exists but cannot be imported is different from a missing one.
    if said.pop("lacks", False):
        said.update(error=wrong[-1]) if version() != "?" else said.update(lacks=True)

    print("\nnlaunch-nixl: " + json.dumps(said), flush=True)
    os._exit(0)

def left():
    return max(until - time.monotonic(), 0.01)

def load():
    for name in ("nixl", "nixl_cu13", "nixl_cu12"):
        try:
            return importlib.import_module(name + "._api")
        except ImportError as error:
            wrong.append(f"{name} cannot be imported: {error}")
    return None

def version():
    for name in ("nixl-cu13", "nixl-cu12", "nixl"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "?"

class Memory:
    def __init__(self, api, name, content):
        self.buffer = ctypes.create_string_buffer(content, SIZE)
        self.address = ctypes.addressof(self.buffer)
        self.agent = api.nixl_agent(name, api.nixl_agent_config(backends=["UCX"]))
        self.agent.register_memory([(self.address, SIZE, 0, "")], "DRAM")

PATTERN = bytes(range(256)) * (SIZE // 256)

def serve(connection, api, memory):
    connection.settimeout(left())
    stream = connection.makefile("rw")
    stream.write(json.dumps({"tag": tag}) + "\n")
    stream.flush()
    asked = json.loads(stream.readline())
    if asked["tag"] != tag or "meta" not in asked:
        return 0
    if api is None:
        stream.write(json.dumps({"lacks": True}) + "\n")
        stream.flush()
        return 0
    name = memory.agent.add_remote_agent(base64.b64decode(asked["meta"]))
    name = name.decode() if isinstance(name, bytes) else name
    own = memory.agent.get_xfer_descs([(memory.address, SIZE, 0)], "DRAM")
    theirs = memory.agent.get_xfer_descs([(asked["address"], SIZE, 0)], "DRAM")
    begin = time.monotonic()
    handle = memory.agent.initialize_xfer("WRITE", own, theirs, name)
    state = memory.agent.transfer(handle)
    while state == "PROC" and left() > 0.01:
        state = memory.agent.check_xfer_state(handle)
    stream.write(json.dumps({"state": state, "seconds": time.monotonic() - begin}) + "\n")
    stream.flush()
    return int(state == "DONE")

def send():
    api = load()
    memory = Memory(api, "sender-" + tag, PATTERN) if api else None
    listener = None
    for port in ports:
        listener = socket.socket()
        try:
            listener.bind(("", port))
            listener.listen(64)
            break
        except OSError as error:
            why, listener = error, None
    if listener is None:
        end(version=version(), error="no free port for the trial: " + str(why))
    met = served = 0
    while met < int(fifth) and time.monotonic() < until:
        listener.settimeout(left())
        try:
            connection, _ = listener.accept()
            with connection:
                served += serve(connection, api, memory)
                met += 1
        except (OSError, ValueError, KeyError):
            continue
    end(version=version() if api else "", lacks=api is None, served=served)

def meet():
    """The stream of the sender, which sends the tag first: another program may listen on one of the ports."""
    why = None
    while time.monotonic() < until:
        for port in ports:
            try:
                connection = socket.create_connection((host, port), timeout=min(left(), 3))
                connection.settimeout(min(left(), 3))
                stream = connection.makefile("rw")
                if json.loads(stream.readline()).get("tag") == tag:
                    connection.settimeout(left())
                    return stream
            except (OSError, ValueError, AttributeError) as error:
                why = error
        time.sleep(0.1)
    end(version=version(), error=f"no sender at {host}: {why}")

def receive():
    api = load()
    ask = {"tag": tag}
    if api is not None:
        memory = Memory(api, "receiver-" + fifth + "-" + tag, b"")
        ask.update(meta=base64.b64encode(memory.agent.get_agent_metadata()).decode(), address=memory.address)
    stream = meet()
    stream.write(json.dumps(ask) + "\n")
    stream.flush()
    if api is None:
        end(lacks=True)
    line = stream.readline()
    if not line:
        end(version=version(), error="the sender gave up")
    answer = json.loads(line)
    if "lacks" in answer:
        end(version=version(), sender_lacks=True)
    if answer["state"] != "DONE" or memory.buffer.raw != PATTERN:
        end(version=version(), error="the transfer ended in state " + answer["state"] + ", and the received data differs from what was sent")
    end(version=version(), seconds=answer["seconds"])

try:
    send() if what == "send" else receive()
except Exception as error:
    end(version=version(), error=type(error).__name__ + ": " + str(error))
)py";

/// The last line that the program marked.
nlohmann::json said_by(const std::string& out) {
  nlohmann::json said;
  for (const auto& line : text::split(out, '\n'))
    if (line.starts_with(kMark)) said = parse_json(std::string_view(line).substr(kMark.size()));
  return said;
}

/// Runs it like the process, without its wrapper.
void run(const plan::BoundProcess& process, const std::string& python, std::vector<std::string> arguments,
         Duration patience, NixlTransfer& found) {
  sys::SpawnRequest request;
  request.argv = {python, "-c", std::string(kProgram)};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  for (const auto& [name, value] : process.env) request.env.push_back(fmt::format("{}={}", name, value));
  request.cwd = process.workdir;
  const auto done = sys::run_command(std::move(request), patience + kForTheRest);
  const auto said = done ? said_by(done->out) : nlohmann::json();
  if (!done) {
    found.error = done.error().first_message();
  } else if (!said.is_object()) {
    const auto words = text::trim(done->err);
    found.error =
        fmt::format("{} {}{}", python, done->timed_out ? "did not finish in time" : done->status.str(),
                    words.empty() ? "" : fmt::format(": {}", text::printable(words.substr(0, 300))));
  } else {
    found.version = said.value("version", "");
    found.error = said.value("error", "");
    found.lacks = said.value("lacks", false);
    found.sender_lacks = said.value("sender_lacks", false);
    found.seconds = said.value("seconds", 0.0);
    found.served = said.value("served", std::size_t{0});
  }
}

/// Where the sender can listen: the run's own ports are held for its processes. The same on all nodes.
std::string ports_of(std::string_view tag) {
  constexpr std::uint32_t kFirst = 10'000;
  constexpr std::uint32_t kRange = 10'000;
  std::uint32_t hash = 2'166'136'261U;  // FNV-1a
  for (const char c : tag) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
  std::vector<std::string> ports;
  for (std::uint32_t i = 0; i < 8; ++i) ports.push_back(std::to_string(kFirst + (hash + 997 * i) % kRange));
  return text::join(ports, ",");
}

const plan::BoundProcess* bound_of(const plan::BoundNode& node, std::uint32_t process) {
  const auto found = std::ranges::find(node.processes, process, &plan::BoundProcess::process);
  return found == node.processes.end() ? nullptr : &*found;
}

}  // namespace

std::vector<NixlTransfer> try_nixl(const plan::Plan& plan, const plan::BoundNode& node,
                                   const std::map<std::uint32_t, std::string>& pythons,
                                   const std::string& tag) {
  const auto sync = std::ranges::find(plan.weight_syncs, SyncBackend::nixl, &plan::WeightSync::backend);
  std::optional<std::uint32_t> sender;
  std::vector<std::uint32_t> receivers;                   // processes
  std::set<std::pair<std::uint32_t, std::uint32_t>> met;  // node and role
  for (std::uint32_t i = 0; sync != plan.weight_syncs.end() && i < plan.processes.size(); ++i) {
    const auto& process = plan.processes[i];
    const auto& role = plan.role_of(process);
    if (role.command.empty() || !role.wrapper.empty()) continue;
    if (role.kind == RoleKind::learner && !sender) sender = i;
    if (role.kind == RoleKind::engine && met.emplace(process.node, process.role).second)
      receivers.push_back(i);
  }
  if (!sender || receivers.empty()) return {};
  std::vector<NixlTransfer> out;
  std::vector<std::future<void>> running;
  out.reserve(receivers.size() + 1);
  const auto start = [&](std::uint32_t process, const char* what, const std::string& fifth,
                         Duration patience) {
    const auto* bound = bound_of(node, process);
    const auto python = pythons.find(plan.processes[process].role);
    if (bound == nullptr || python == pythons.end()) return;
    auto& found =
        out.emplace_back(NixlTransfer{plan::group_name(*sync), plan.name_of(plan.processes[process]),
                                      plan.name_of(plan.processes[*sender]), process == *sender});
    if (found.sends) found.receivers = receivers.size();
    const auto seconds = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience).count());
    running.push_back(std::async(
        std::launch::async,
        [bound, &found, patience, path = python->second,
         arguments = std::vector<std::string>{what, node.nixl_host, ports_of(tag), tag, fifth, seconds}] {
          run(*bound, path, arguments, patience, found);
        }));
  };
  start(*sender, "send", std::to_string(receivers.size()), 2 * kToMeet);
  for (const auto receiver : receivers) start(receiver, "receive", std::to_string(receiver), kToMeet);
  for (auto& one : running) one.wait();
  return out;
}

}  // namespace nlaunch::preflight
