#include "config/bench.h"

#include "config/reader.h"

namespace nlaunch::config {
namespace {

using Kind = Node::Kind;

/// An upper bound for the memory of one rank's GPU, doubled.
constexpr std::uint64_t kMostBenchBytes = 64ULL << 30U;

std::optional<std::uint64_t> read_shape(const Value& value, DataType type) {
  std::uint64_t bytes = size_of(type);
  bool whole = value.is(Kind::sequence);
  for (const auto& item : value.items()) {
    const auto extent = item.number(1, 1U << 27U);
    whole = whole && extent.has_value();
    if (whole && (bytes *= *extent) > kMostBenchBytes) break;
  }
  return whole ? std::optional(bytes) : std::nullopt;
}

void check_bytes(std::uint64_t bytes, DataType type, const Value& value) {
  if (bytes == 0) {
    value.error("config.bench-size", fmt::format("'{}' must be more than 0 bytes", value.path())).hint =
        "write size: 100MB, or shape: [1, 2160, 5120]";
  } else if (bytes > kMostBenchBytes) {
    value.error("config.bench-size",
                fmt::format("'{}' is more than {}", value.path(), format_size(kMostBenchBytes)));
  } else if (bytes % size_of(type) != 0) {
    value.error("config.bench-size",
                fmt::format("'{}' is {}, not a multiple of the {} element size, {}", value.path(),
                            format_size(bytes), name_of(type), format_size(size_of(type))));
  }
}

Operation read_operation(const Value& value) {
  Operation operation;
  Keys keys(value);
  if (keys.require("op", "op: all_reduce")) keys.read("op", operation.op);
  keys.read("type", operation.type);
  keys.number("count", operation.count, 1, 1'000'000);
  const auto size = keys.get("size");
  const auto shape = keys.get("shape");
  if (value.is(Kind::map) && size.has_value() == shape.has_value()) {
    value.problems()
        .error("config.bench-size", value.key_span(),
               fmt::format("'{}' needs {} of size and shape", value.path(), size ? "only one" : "one"))
        .hint = "write size: 100MB, or shape: [1, 2160, 5120]";
  } else if (size || shape) {
    const auto bytes = size ? size->parsed(parse_size) : read_shape(*shape, operation.type);
    if (bytes) check_bytes(operation.bytes = *bytes, operation.type, size ? *size : *shape);
  }
  keys.finish();
  return operation;
}

/// A quantity with a unit that must be greater than zero.
void read_target(Keys& keys, const char* key, std::expected<double, std::string> (*parse)(std::string_view),
                 double& target) {
  const auto value = keys.get(key);
  if (!value) return;
  const auto read = value->parsed(parse);
  if (read && *read <= 0) {
    value->error("config.number", fmt::format("'{}' must be more than 0", value->path())).hint =
        "leave it out to set no target";
  }
  target = read.value_or(0);
}

void read_steps(Keys& keys, Workload& work) {
  keys.number("steps", work.steps, 1, 100'000);
  keys.number("warm_up", work.warm_up, 0, 100'000);
}

BenchWorkload read_workload(const Text& name, const Value& value, const Workload& defaults) {
  BenchWorkload workload{name, defaults, {}, {}, {}};
  workload.work.name = name.value;
  Keys keys(value);
  if (keys.require("group", "group: world")) keys.read("group", workload.group);
  keys.read("busy", workload.work.busy);
  read_steps(keys, workload.work);
  read_target(keys, "budget", parse_short_time, workload.targets.budget);
  read_target(keys, "busbw", parse_rate, workload.targets.bus_bandwidth);
  read_target(keys, "scaling", parse_share, workload.targets.scaling);
  if (const auto step = keys.require("step", "step: [{op: all_reduce, size: 100MB}]")) {
    for (const auto& item : step->items()) {
      workload.work.step.push_back(read_operation(item));
      workload.places.push_back(item.span());
    }
    if (step->is(Kind::sequence) && workload.work.step.empty()) {
      step->error("config.bench-step", fmt::format("'{}' has no operation", step->path())).hint =
          "write step: [{op: all_reduce, size: 100MB}]";
    }
  }
  keys.finish();
  return workload;
}

}  // namespace

Bench read_bench(const Value& value) {
  Bench bench;
  Workload defaults;
  Keys keys(value);
  read_steps(keys, defaults);
  keys.read("timeout", bench.timeout);
  if (const auto workloads =
          keys.require("workloads", "workloads: {sync: {group: weight_sync, step: [...]}}")) {
    for (const auto& [name, workload] : workloads->entries())
      bench.workloads.push_back(read_workload(name, workload, defaults));
  }
  keys.finish();
  return bench;
}

}  // namespace nlaunch::config
