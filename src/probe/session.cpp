#include "probe/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "probe/facts.h"
#include "probe/gloo_communicator.h"
#include "probe/output.h"
#include "probe/transport_log.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// The size at which NCCL chooses as it does for a weight tensor: [1, 2160, 5120] in bf16.
constexpr std::uint64_t kTransportBytes = 22118400;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

json result_line(const GroupSpec& group, std::uint64_t bytes, const Verdict& verdict, double seconds) {
  json line{{"event", "result"},
            {"group", group.name},
            {"op", name_of(group.op)},
            {"bytes", bytes},
            {"elements", verdict.elements},
            {"wrong", verdict.wrong},
            {"seconds", seconds},
            {"busbw", bus_bandwidth(group.op, bytes, seconds, group.members.size())}};
  if (verdict.wrong > 0) {
    line["first_wrong"] = verdict.first_wrong;
    line["expected"] = verdict.expected;
    line["found"] = verdict.found;
    line["missing"] = verdict.missing;
  }
  return line;
}

json transport_line(const std::string& group, const TransportLog& log) {
  auto pairs = json::array();
  for (const auto& pair : log.pairs) {
    pairs.push_back({{"from", pair.from},
                     {"to", pair.to},
                     {"via", pair.via},
                     {"detail", pair.detail},
                     {"channels", pair.channels}});
  }
  return {{"event", "transport"}, {"group", group}, {"network", log.network}, {"pairs", pairs}};
}

[[noreturn]] void start_over(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  release_stdout();
  ::execv("/proc/self/exe", argv.data());
  ::_exit(1);
}

}  // namespace

Session::Session(Spec spec, unsigned index, Mail mail)
    : spec_(std::move(spec)), index_(index), mail_(std::move(mail)) {}

void Session::expect(const char* phase, const std::string& group, Duration within) {
  watchdog_.expect(within, [this, phase, group, within] {
    const auto last = gpu_ ? gpu_->last_error() : "";
    emit({{"event", "error"},
          {"phase", phase},
          {"group", group},
          {"kind", "deadline"},
          {"text",
           fmt::format("not done within {}{}{}", format_duration(within), last.empty() ? "" : ": ", last)}});
  });
}

bool Session::fail(const char* phase, const std::string& group, const Diagnostics& why) {
  watchdog_.done();
  const bool unavailable = why.items().front().id == "probe.unavailable";
  emit({{"event", "error"},
        {"phase", phase},
        {"group", group},
        {"kind", unavailable ? "unavailable" : "failed"},
        {"text", text_of(why)}});
  return false;
}

bool Session::open() {
  const auto& own = spec_.ranks[index_];
  if (own.device < 0) return true;
  expect("identity", "", spec_.join);
  auto gpu = open_gpu_rank(own.device, own.library);
  if (!gpu) return fail("identity", "", gpu.error());
  gpu_ = std::move(*gpu);
  watchdog_.done();
  return true;
}

bool Session::identify() {
  if (!open()) return false;
  const auto host = host_identity();
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  emit({{"event", "identity"},
        {"rank", index_},
        {"pid", ::getpid()},
        {"hostname", name.data()},
        {"host_id", host.id},
        {"host_id_source", host.source},
        {"visible_devices", variable("CUDA_VISIBLE_DEVICES")},
        {"gpu", gpu_ ? gpu_->gpu() : json(nullptr)},
        {"library", gpu_ ? gpu_->library() : json(nullptr)},
        {"seconds", seconds_since(begin_)}});
  return true;
}

bool Session::takes_part(const GroupSpec& group) const {
  return std::ranges::find(group.members, index_) != group.members.end();
}

Result<Communicator*> Session::join(std::size_t group, const std::string& key) {
  if (const auto known = communicators_.find(key); known != communicators_.end()) return known->second.get();
  const auto& members = spec_.groups[group].members;
  JoinRequest request{.address = spec_.ranks[index_].address,
                      .give =
                          [&](const std::string& name, const std::string& bytes) {
                            emit({{"event", "id"},
                                  {"group", spec_.groups[group].name},
                                  {"key", key + "." + name},
                                  {"id", to_hex(bytes)}});
                          },
                      .take = [&](const std::string& name) { return mail_.wait_for_id(key + "." + name); },
                      .rank = static_cast<int>(std::ranges::find(members, index_) - members.begin()),
                      .size = static_cast<int>(members.size()),
                      .largest = kTransportBytes,
                      .join = spec_.join,
                      .op = spec_.op};
  for (const auto& other : spec_.groups) {
    for (const auto size : other.sizes) request.largest = std::max(request.largest, size);
  }
  const bool nccl = spec_.groups[group].backend == Backend::nccl;
  if (nccl && !gpu_) return failure("probe.spec", "a rank without a GPU cannot join an NCCL group");
  auto made = nccl ? gpu_->join(request) : join_gloo(request);
  if (!made) return std::unexpected(made.error());
  return (communicators_[key] = std::move(*made)).get();
}

bool Session::enter(std::size_t group, const std::string& key, Communicator*& communicator) {
  const auto& name = spec_.groups[group].name;
  expect("join", name, spec_.join);
  auto joined = join(group, key);
  if (!joined) return fail("join", name, joined.error());
  watchdog_.done();
  communicator = *joined;
  return true;
}

bool Session::measure() {
  if (!mail_.wait_for_go()) return false;
  for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
    if (takes_part(spec_.groups[i]) && !measure_group(i)) return false;
  }
  return true;
}

bool Session::measure_group(std::size_t index) {
  const auto& group = spec_.groups[index];
  emit({{"event", "joining"}, {"group", group.name}});
  const auto begin = Clock::now();
  Communicator* communicator = nullptr;
  if (!enter(index, std::to_string(spec_.communicator_of(index)), communicator)) return false;
  emit({{"event", "joined"}, {"group", group.name}, {"seconds", seconds_since(begin)}});
  return std::ranges::all_of(group.sizes,
                             [&](std::uint64_t bytes) { return measure_size(group, *communicator, bytes); });
}

bool Session::measure_size(const GroupSpec& group, Communicator& communicator, std::uint64_t bytes) {
  expect("collective", group.name, spec_.op);
  const auto verdict = communicator.check(group.op, bytes);
  if (!verdict) return fail("collective", group.name, verdict.error());
  expect("collective", group.name, spec_.op);
  const auto seconds = communicator.time(group.op, bytes);
  if (!seconds) return fail("collective", group.name, seconds.error());
  watchdog_.done();
  emit(result_line(group, bytes, *verdict, *seconds));
  return true;
}

bool Session::asks_for_transport() const {
  return std::ranges::any_of(spec_.groups, [this](const GroupSpec& group) {
    return group.transport && group.backend == Backend::nccl && takes_part(group);
  });
}

bool Session::find_transports(std::vector<std::string> again) {
  if (!asks_for_transport()) return true;
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,P2P,SHM,NET,GRAPH", 1);
  const auto log = fmt::format("{}/transport.{}.log", spec_.folder, index_);
  ::setenv("NCCL_DEBUG_FILE", log.c_str(), 1);
  if (!again.empty() && !gpu_->reread_debug_settings()) {
    for (const auto& [key, id] : mail_.ids()) again.insert(again.end(), {"--id", key, id});
    start_over(again);
  }
  for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
    const auto& group = spec_.groups[i];
    if (group.transport && group.backend == Backend::nccl && takes_part(group) && !find_transport(i))
      return false;
  }
  return true;
}

bool Session::find_transport(std::size_t index) {
  const auto& group = spec_.groups[index];
  const auto path = variable("NCCL_DEBUG_FILE");
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const auto before = error ? 0 : size;
  Communicator* communicator = nullptr;
  if (!enter(index, "transport." + std::to_string(spec_.communicator_of(index)), communicator)) return false;
  expect("collective", group.name, spec_.op);
  // Connections are made at the first use, not when the ranks join.
  const auto verdict = communicator->check(group.op, kTransportBytes);
  watchdog_.done();
  if (!verdict) return fail("collective", group.name, verdict.error());
  constexpr std::uint64_t kLimit = 256U << 20U;
  const auto log = sys::read_regular_file(path, kLimit);
  if (!log || log->size() <= before) {
    emit({{"event", "transport"}, {"group", group.name}, {"error", "libnccl wrote no log to " + path}});
    return true;
  }
  emit(transport_line(group.name, read_transport_log(std::string_view(*log).substr(before))));
  return true;
}

void Session::done() const {
  emit({{"event", "done"}, {"seconds", seconds_since(begin_)}});
}

}  // namespace nlaunch::probe
