#include "emit/beaker_spec.h"

#include <fmt/format.h>

#include <cctype>

#include "base/text.h"
#include "emit/yaml.h"

namespace nlaunch::emit {
namespace {

constexpr std::string_view kDocker = "docker://";

/// A duration as Beaker's own client writes it: nanoseconds.
std::string nanoseconds(Duration time) {
  return fmt::format("{}  # {}", std::chrono::nanoseconds(time).count(), format_duration(time));
}

std::string yes_or_no(bool value) {
  return value ? "true" : "false";
}

/// Lines with indentation. Empty or unset values are left to Beaker.
class SpecLines {
 public:
  void add(int depth, std::string_view line) {
    out_ += fmt::format("{}{}\n", std::string(static_cast<std::size_t>(depth) * 2, ' '), line);
  }
  void text(int depth, std::string_view key, std::string_view value) {
    if (!value.empty()) add(depth, fmt::format("{}: {}", key, yaml_quote(value)));
  }
  void texts(int depth, std::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    add(depth, fmt::format("{}:", key));
    for (const auto& value : values) add(depth, "- " + yaml_quote(value));
  }
  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  std::string out_;
};

/// A valid Beaker task name: an experiment's name can have characters that Beaker does not allow.
std::string task_name(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ? c : '-';
  return out;
}

class Spec {
 public:
  Spec(const plan::Plan& plan, const BeakerJob& job) : plan_(plan), beaker_(plan.beaker), job_(job) {}

  std::string write() {
    const auto line = [](const std::string& text) { return text::printable(text); };
    lines_.add(
        0, fmt::format("# {} on {}, from {}", line(plan_.name), line(plan_.site), line(plan_.experiment)));
    lines_.add(0, fmt::format("# The plan is in {}: show it with `nlaunch plan`.", kPlanVariable));
    lines_.add(0, "version: v2");
    lines_.text(0, "description", beaker_.description);
    lines_.text(0, "budget", beaker_.budget);
    lines_.add(0, "tasks:");
    lines_.add(0, "- name: " + yaml_quote(task_name(plan_.name)));
    write_replicas();
    write_place();
    write_command();
    write_variables();
    write_datasets();
    return std::move(lines_).take();
  }

 private:
  [[nodiscard]] bool many() const { return plan_.node.count > 1; }

  void write_replicas() {
    if (many()) lines_.add(1, fmt::format("replicas: {}", plan_.node.count));
    lines_.add(1, "leaderSelection: " + yes_or_no(many()));
    lines_.add(1, "hostNetworking: " + yes_or_no(beaker_.host_networking));
    if (many()) {
      lines_.add(1, "propagateFailure: true");
      lines_.add(1, "propagatePreemption: true");
      lines_.add(1, "synchronizedStartTimeout: " + nanoseconds(beaker_.start_timeout));
    }
    if (beaker_.timeout) lines_.add(1, "timeout: " + nanoseconds(*beaker_.timeout));
  }

  void write_place() {
    lines_.add(1, "image:");
    if (beaker_.image.starts_with(kDocker)) {
      lines_.text(2, "docker", beaker_.image.substr(kDocker.size()));
    } else {
      lines_.text(2, "beaker", beaker_.image);
    }
    write_context();
    // A hostname is more specific than its cluster, and Beaker would combine both constraints.
    const bool hosts = !beaker_.hostname.empty();
    if (hosts || !beaker_.cluster.empty()) lines_.add(1, "constraints:");
    lines_.texts(2, "hostname", beaker_.hostname);
    if (!hosts) lines_.texts(2, "cluster", beaker_.cluster);
    const auto gpus = plan_.node.cpu_slots ? 0 : plan_.node.gpus;
    if (gpus > 0 || !beaker_.memory.empty() || !beaker_.shared_memory.empty()) lines_.add(1, "resources:");
    if (gpus > 0) lines_.add(2, fmt::format("gpuCount: {}", gpus));
    lines_.text(2, "memory", beaker_.memory);
    lines_.text(2, "sharedMemory", beaker_.shared_memory);
    lines_.add(1, "result:");
    lines_.text(2, "path", beaker_.result);
  }

  void write_context() {
    const bool empty =
        beaker_.priority.empty() && !beaker_.preemptible && !beaker_.min_runtime && !beaker_.auto_resume;
    lines_.add(1, empty ? "context: {}" : "context:");
    lines_.text(2, "priority", beaker_.priority);
    if (beaker_.preemptible) lines_.add(2, "preemptible: " + yes_or_no(*beaker_.preemptible));
    if (beaker_.min_runtime) lines_.add(2, "minRuntime: " + nanoseconds(*beaker_.min_runtime));
    if (beaker_.auto_resume) lines_.add(2, "autoResume: " + yes_or_no(*beaker_.auto_resume));
  }

  void write_command() {
    std::vector<std::string> command{beaker_.program, "run", "--plan", fmt::format("env:{}", kPlanVariable)};
    command.insert(command.end(), job_.arguments.begin(), job_.arguments.end());
    lines_.texts(1, "command", command);
  }

  void write_variables() {
    lines_.add(1, "envVars:");
    for (const auto& [name, secret] : beaker_.secrets) write_variable(name, "secret", secret);
    if (many()) write_variable(kTokenVariable, "secret", beaker_.token);
    write_variable(kPlanVariable, "value", job_.packed_plan);
  }

  void write_variable(std::string_view name, std::string_view key, std::string_view value) {
    lines_.add(1, "- name: " + yaml_quote(name));
    lines_.text(2, key, value);
  }

  void write_datasets() {
    if (beaker_.datasets.empty()) return;
    lines_.add(1, "datasets:");
    for (const auto& mount : beaker_.datasets) {
      lines_.add(1, "- mountPath: " + yaml_quote(mount.path));
      lines_.text(2, "subPath", mount.sub_path);
      lines_.add(2, "source:");
      lines_.text(3, mount.kind == "host" ? "hostPath" : mount.kind, mount.source);
    }
  }

  const plan::Plan& plan_;
  const plan::Beaker& beaker_;
  const BeakerJob& job_;
  SpecLines lines_;
};

}  // namespace

std::string beaker_spec(const plan::Plan& plan, const BeakerJob& job) {
  return Spec(plan, job).write();
}

}  // namespace nlaunch::emit
