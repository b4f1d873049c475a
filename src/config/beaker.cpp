#include "config/beaker.h"

#include <array>

#include "base/text.h"
#include "config/reader.h"

namespace nlaunch::config {
namespace {

/// `false` removes the value of the base file: a mount without a kind.
BeakerMount read_mount(const Text& path, const Value& value) {
  constexpr std::array<std::string_view, 5> kKinds{"beaker", "weka", "host", "secret", "result"};
  BeakerMount mount{path, {}, {}, {}};
  if (value.is(Node::Kind::scalar) && value.node().plain && value.node().text == "false") return mount;
  Keys keys(value);
  std::vector<std::string> given;
  for (const auto kind : kKinds) {
    const auto source = keys.get(kind);
    if (!source) continue;
    given.emplace_back(kind);
    mount.kind = {std::string(kind), source->key_span()};
    keys.read(kind, mount.source);
  }
  keys.read("sub_path", mount.sub_path);
  if (value.is(Node::Kind::map) && given.size() != 1) {
    auto& problem = value.error("config.beaker-mount",
                                fmt::format("'{}' must have exactly one source, found {}", value.path(),
                                            given.empty() ? "none" : text::join(given, " and ")));
    problem.hint = "write {beaker: DATASET}, {weka: BUCKET}, {host: PATH}, {secret: NAME} or {result: TASK}";
  }
  keys.finish();
  return mount;
}

void read_runtime(Keys& keys, Beaker& beaker) {
  keys.read("priority", beaker.priority);
  keys.read("preemptible", beaker.preemptible);
  keys.read("min_runtime", beaker.min_runtime);
  keys.read("auto_resume", beaker.auto_resume);
  keys.read("timeout", beaker.timeout);
  keys.read("start_timeout", beaker.start_timeout);
  keys.read("memory", beaker.memory);
  keys.read("shared_memory", beaker.shared_memory);
  keys.read("host_networking", beaker.host_networking);
  keys.number("port", beaker.port, 1024, 65535);
}

}  // namespace

Beaker read_beaker(const Value& value) {
  Beaker beaker;
  Keys keys(value);
  keys.read("workspace", beaker.workspace);
  keys.read("budget", beaker.budget);
  keys.read("description", beaker.description);
  keys.read("image", beaker.image);
  keys.list("cluster", beaker.cluster);
  keys.list("hostname", beaker.hostname);
  read_runtime(keys, beaker);
  if (const auto datasets = keys.get("datasets")) {
    for (const auto& [path, source] : datasets->entries())
      beaker.datasets.push_back(read_mount(path, source));
  }
  keys.pairs("secrets", beaker.secrets);
  keys.read("token", beaker.token);
  keys.read("nlaunch", beaker.nlaunch);
  keys.read("workdir", beaker.workdir);
  keys.read("result", beaker.result);
  keys.finish();
  return beaker;
}

}  // namespace nlaunch::config
