#include "probe/rank/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/backend.h"
#include "probe/gloo/communicator.h"
#include "probe/node/facts.h"
#include "probe/output.h"
#include "probe/rank/transport_log.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// The size at which NCCL chooses as for a weight tensor: [1, 2160, 5120] in bf16.
constexpr std::uint64_t kTransportBytes = 22118400;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

json result_line(const GroupSpec& group, std::uint64_t bytes, const Comparison& comparison, double seconds) {
  json line{{"event", "result"},
            {"group", group.name},
            {"op", name_of(group.op)},
            {"bytes", bytes},
            {"elements", comparison.elements},
            {"wrong", comparison.wrong},
            {"seconds", seconds},
            {"busbw", bus_bandwidth(group.op, bytes, seconds, group.members.size())}};
  if (comparison.wrong > 0) {
    line["first_wrong"] = comparison.first_wrong;
    line["expected"] = comparison.expected;
    line["found"] = comparison.found;
    line["fault"] = name_of(comparison.fault);
    line["rank"] = comparison.rank;
  }
  return line;
}

void tell_transport(const std::string& group, const std::string& text) {
  if (text.empty()) {
    emit({{"event", "transport"},
          {"group", group},
          {"error", "libnccl wrote no log to " + variable("NCCL_DEBUG_FILE")}});
    return;
  }
  const auto log = read_transport_log(text);
  auto pairs = json::array();
  for (const auto& pair : log.pairs) {
    pairs.push_back({{"from", pair.from},
                     {"to", pair.to},
                     {"via", pair.via},
                     {"detail", pair.detail},
                     {"channels", pair.channels}});
  }
  emit({{"event", "transport"}, {"group", group}, {"network", log.network}, {"pairs", pairs}});
}

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

/// What was written after the first `before` bytes.
Result<std::string> text_after(const std::string& path, std::uint64_t before) {
  constexpr std::uint64_t kLimit = 256U << 20U;
  auto log = sys::read_regular_file(path, kLimit);
  if (!log) return log;
  return log->substr(std::min<std::uint64_t>(before, log->size()));
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
  take_drill_environment();
  if (own.device < 0) return true;
  if (logs_from_start()) log_transports("INIT,P2P,SHM,NET,GRAPH");
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

JoinRequest Session::request(std::size_t group, const std::string& key) {
  const auto& members = spec_.groups[group].members;
  JoinRequest request{
      .address = spec_.ranks[index_].address,
      .give =
          [this, group, key](const std::string& name, const std::string& bytes) {
            emit({{"event", "id"},
                  {"group", spec_.groups[group].name},
                  {"key", key + "." + name},
                  {"id", to_hex(bytes)}});
          },
      .take = [this, key](const std::string& name) { return mail_.wait_for_id(key + "." + name); },
      .rank = static_cast<int>(std::ranges::find(members, index_) - members.begin()),
      .size = static_cast<int>(members.size()),
      .largest = kTransportBytes,
      .join = spec_.join,
      .op = spec_.op};
  for (const auto& other : spec_.groups) {
    for (const auto size : other.sizes) request.largest = std::max(request.largest, size);
    for (const auto& workload : other.workloads) {
      for (const auto& operation : workload.step)
        request.largest = std::max(request.largest, operation.bytes);
    }
  }
  return request;
}

Result<Communicator*> Session::join(std::size_t group, const std::string& key) {
  if (const auto known = communicators_.find(key); known != communicators_.end()) return known->second.get();
  const bool on_gpu = traits_of(spec_.groups[group].backend).needs_gpu;
  if (on_gpu && !gpu_) return failure("probe.spec", "a rank without a GPU cannot join an NCCL group");
  const auto asked = request(group, key);
  auto made = on_gpu ? gpu_->join(asked) : join_gloo(asked, gpu_ ? gpu_->make_copies() : nullptr);
  if (!made) return std::unexpected(made.error());
  return (communicators_[key] = std::move(*made)).get();
}

bool Session::enter(std::size_t group, const std::string& key, Communicator*& communicator) {
  const auto& name = spec_.groups[group].name;
  const Phase phase("join " + name);
  expect("join", name, spec_.join);
  auto joined = join(group, key);
  if (!joined) return fail("join", name, joined.error());
  watchdog_.done();
  communicator = *joined;
  return true;
}

bool Session::measure() {
  const auto room = wait_for_go();
  if (!room) return false;
  for (auto& group : spec_.groups) std::erase_if(group.sizes, [&](auto bytes) { return bytes > *room; });
  for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
    if (takes_part(spec_.groups[i]) && !measure_group(i)) return false;
  }
  return true;
}

std::optional<std::uint64_t> Session::wait_for_go() {
  const Phase phase("wait for the other ranks");
  return mail_.wait_for_go();
}

bool Session::measure_group(std::size_t index) {
  const auto& group = spec_.groups[index];
  emit({{"event", "joining"}, {"group", group.name}});
  if (group.drill) return drill(index);
  const auto begin = Clock::now();
  const auto logged = variable("NCCL_DEBUG_FILE");
  const auto before = size_of(logged);
  const auto key = std::to_string(spec_.communicator_of(index));
  Communicator* communicator = nullptr;
  if (!enter(index, key, communicator)) return false;
  emit({{"event", "joined"}, {"group", group.name}, {"seconds", seconds_since(begin)}});
  const auto sized = [&](std::uint64_t bytes) { return measure_size(group, *communicator, bytes); };
  const auto worked = [&](const Workload& workload) { return measure(group, *communicator, workload); };
  if (!std::ranges::all_of(group.sizes, sized) || !std::ranges::all_of(group.workloads, worked)) return false;
  if (!logs_from_start()) return true;
  const bool connected =
      std::ranges::any_of(group.sizes, [](auto bytes) { return bytes >= kTransportBytes; });
  if (group.transport && !connected && !connect(group, *communicator)) return false;
  logs_[key] += text_after(logged, before).value_or("");
  if (group.transport) tell_transport(group.name, logs_[key]);
  return true;
}

/// Connections are created at the first use, not when the ranks join, and only those that an operation needs.
bool Session::connect(const GroupSpec& group, Communicator& communicator) {
  expect("collective", group.name, spec_.op);
  const auto comparison = communicator.check(group.op, kTransportBytes);
  watchdog_.done();
  return comparison || fail("collective", group.name, comparison.error());
}

/// Every operation of the step is checked once before it is timed.
bool Session::measure(const GroupSpec& group, Communicator& communicator, const Workload& workload) {
  Comparison comparison;
  for (const auto& operation : workload.step) {
    if (operation.bytes < sizeof(std::uint32_t)) continue;
    expect("collective", group.name, spec_.op);
    const auto one = communicator.check(operation.op, operation.bytes);
    if (!one) return fail("collective", group.name, one.error());
    if (comparison.wrong == 0) comparison = *one;
  }
  expect("collective", group.name, spec_.op);
  const auto seconds = timed(communicator, workload);
  if (!seconds) return fail("collective", group.name, seconds.error());
  watchdog_.done();
  emit({{"event", "workload"},
        {"group", group.name},
        {"workload", workload.name},
        {"wrong", comparison.wrong},
        {"seconds", *seconds}});
  return true;
}

/// The GPU of a busy workload multiplies matrices all the while. A rank on a CPU has nothing to keep busy.
Result<std::vector<double>> Session::timed(Communicator& communicator, const Workload& workload) {
  if (!workload.busy || !gpu_) return communicator.run(workload);
  const auto load = gpu_->keep_busy();
  if (!load) return std::unexpected(load.error());
  auto seconds = communicator.run(workload);
  if (auto ended = (*load)->end(); !ended) return std::unexpected(ended.error());
  return seconds;
}

bool Session::measure_size(const GroupSpec& group, Communicator& communicator, std::uint64_t bytes) {
  const Phase phase(fmt::format("{} of {} in {}", name_of(group.op), format_size(bytes), group.name));
  expect("collective", group.name, spec_.op);
  const auto comparison = communicator.check(group.op, bytes);
  if (!comparison) return fail("collective", group.name, comparison.error());
  expect("collective", group.name, spec_.op);
  const auto seconds = communicator.time(group.op, bytes);
  if (!seconds) return fail("collective", group.name, seconds.error());
  watchdog_.done();
  emit(result_line(group, bytes, *comparison, *seconds));
  return true;
}

/// Whether the communicators that are measured write the log that tells their transports. One for which the
/// choices of operations are wanted as well needs more of the log than may be written while it is measured.
bool Session::logs_from_start() const {
  const auto chooses = [this](const GroupSpec& group) {
    return takes_part(group) && !group.workloads.empty();
  };
  return asks_for_transport() && std::ranges::none_of(spec_.groups, chooses);
}

void Session::log_transports(const char* subsystems) const {
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", subsystems, 1);
  ::setenv("NCCL_DEBUG_FILE", fmt::format("{}/transport.{}.log", spec_.folder, index_).c_str(), 1);
}

bool Session::asks_for_transport() const {
  return std::ranges::any_of(spec_.groups,
                             [this](const GroupSpec& group) { return group.transport && takes_part(group); });
}

bool Session::find_transports(std::vector<std::string> again) {
  if (!asks_for_transport() || logs_from_start()) return true;
  log_transports("INIT,P2P,SHM,NET,GRAPH,TUNING");
  if (!again.empty() && !gpu_->reread_debug_settings()) {
    for (const auto& [key, id] : mail_.ids()) again.insert(again.end(), {"--id", key, id});
    start_over(again);
  }
  for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
    const auto& group = spec_.groups[i];
    if (group.transport && takes_part(group) && !find_transport(i)) return false;
  }
  return true;
}

bool Session::find_transport(std::size_t index) {
  const auto& group = spec_.groups[index];
  const auto path = variable("NCCL_DEBUG_FILE");
  const auto before = size_of(path);
  Communicator* communicator = nullptr;
  if (!enter(index, "transport." + std::to_string(spec_.communicator_of(index)), communicator)) return false;
  if (!connect(group, *communicator)) return false;
  tell_transport(group.name, text_after(path, before).value_or(""));
  return std::ranges::all_of(group.workloads, [&](const Workload& workload) {
    return find_choices(group, *communicator, workload);
  });
}

/// Each operation once, with NCCL's log of it. Only the first rank of a group writes that.
bool Session::find_choices(const GroupSpec& group, Communicator& communicator, const Workload& workload) {
  const auto path = variable("NCCL_DEBUG_FILE");
  for (auto operation : workload.step) {
    operation.count = 1;
    const auto before = size_of(path);
    expect("collective", group.name, spec_.op);
    const auto done = communicator.run({workload.name, {operation}, 1, 0, false});
    watchdog_.done();
    if (!done) return fail("collective", group.name, done.error());
    const auto log = text_after(path, before);
    const auto choice = log ? read_choice(*log) : std::nullopt;
    if (!choice) continue;
    emit({{"event", "choice"},
          {"group", group.name},
          {"op", name_of(operation.op)},
          {"bytes", operation.bytes},
          {"algorithm", choice->algorithm},
          {"protocol", choice->protocol},
          {"channels", choice->channels}});
  }
  return true;
}

void Session::done() const {
  emit({{"event", "done"}, {"seconds", seconds_since(begin_)}});
}

}  // namespace nlaunch::probe
