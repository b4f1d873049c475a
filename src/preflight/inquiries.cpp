#include "preflight/inquiries.h"

#include <fmt/format.h>

#include <future>
#include <utility>

#include "base/text.h"
#include "plan/container.h"
#include "preflight/ask_probe.h"
#include "preflight/checks.h"
#include "preflight/role_library.h"
#include "sys/command.h"

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> folders(const NodeObservations& observations) {
  std::vector<std::string> out;
  for (const auto& folder : observations.folders) out.push_back(folder.path);
  return out;
}

bool over_a_fabric(const NodeObservations& observations) {
  return observations.plan.node.count > 1 || !observations.plan.node.nic_kind.empty();
}

std::vector<std::string> provider(const NodeObservations& observations,
                                  const plan::BoundProcess* /*process*/) {
  return {fabric_provider(observations.plan.node)};
}

bool on_several_nodes(const NodeObservations& observations) {
  return observations.plan.node.count > 1;
}

std::vector<std::string> leaders(const NodeObservations& observations,
                                 const plan::BoundProcess* /*process*/) {
  return meeting_points(observations);
}

bool has_container(const NodeObservations& observations, std::uint32_t role) {
  return plan::is_container(observations.plan.roles[role].wrapper);
}

/// All that is preloaded there, as the loader will be told.
std::vector<std::string> preloaded(const NodeObservations& /*observations*/,
                                   const plan::BoundProcess* process) {
  const auto value = variable_of(*process, "LD_PRELOAD").value_or("");
  return value.empty() ? std::vector<std::string>() : text::split(value, ':');
}

/// Whether anything at all starts in the container: `words` if not.
nlohmann::json try_without_probe(const plan::BoundProcess& process) {
  auto start = plan::start_of_probe(process, {"true"});
  sys::SpawnRequest request;
  request.argv = std::move(start.argv);
  request.env = std::move(start.env);
  request.cwd = process.workdir;
  const auto said = sys::run_command(std::move(request), 20s);
  if (!said) return {{"words", said.error().items().front().message}};
  if (said->timed_out) return {{"words", "it has not ended after 20 s"}};
  if (said->status.ok()) return nlohmann::json::object();
  return {{"words", fmt::format("{}: {}", said->status.str(), text::printable(text::trim(said->err)))}};
}

bool has_python(const NodeObservations& observations, std::uint32_t role) {
  return observations.pythons.contains(role);
}

std::vector<std::string> python(const NodeObservations& observations, const plan::BoundProcess* process) {
  const auto role = observations.plan.processes[process->process].role;
  return {observations.pythons.at(role).path, process->workdir};
}

/// With what the role preloads: torch then loads that NCCL.
std::vector<std::string> python_and_preload(const NodeObservations& observations,
                                            const plan::BoundProcess* process) {
  auto out = python(observations, process);
  out.push_back(text::join(process->preload, ":"));
  return out;
}

bool has_python_and_gpus(const NodeObservations& observations, std::uint32_t role) {
  return has_python(observations, role) && observations.has_gpus() && observations.plan.roles[role].gpus > 0;
}

/// The GPUs of the plan on this node, which the probe numbers in this order.
std::vector<std::string> all_gpus(const NodeObservations& observations,
                                  const plan::BoundProcess* /*process*/) {
  std::vector<std::string> visible;
  for (const auto& gpu : observations.node.gpus) visible.push_back(gpu.visible);
  return {"--devices", text::join(visible, ",")};
}

bool has_gpus(const NodeObservations& observations) {
  return observations.has_gpus();
}

constexpr Duration kMeasurement = std::chrono::minutes(1);

constexpr Inquiry kInquiries[] = {
    {.name = "gpu-health", .deadline = 10s, .applies = has_gpus},  // persistence mode may be off
    {.name = "kernel-log"},
    {.name = "container",
     .deadline = 20s,  // an image may have to be mounted
     .of = Inquiry::Of::roles,
     .arguments = preloaded,
     .concerns = has_container,
     .otherwise = try_without_probe},
    {.name = "shared-memory"},
    {.name = "nics"},
    {.name = "fabric", .of = Inquiry::Of::roles, .arguments = provider, .applies = over_a_fabric},
    {.name = "names", .arguments = leaders, .applies = on_several_nodes},
    {.name = "interpreter",
     .level = PreflightLevel::standard,
     .deadline = 20s,
     .of = Inquiry::Of::roles,
     .arguments = python,
     .concerns = has_python},
    {.name = "torch",
     .level = PreflightLevel::deep,
     .deadline = 90s,
     .of = Inquiry::Of::roles,
     .arguments = python_and_preload,
     .concerns = has_python_and_gpus},
    {.name = "folder", .deadline = 10s, .of = Inquiry::Of::things, .things = folders},
    {.name = "copies",
     .level = PreflightLevel::deep,
     .deadline = kMeasurement,
     .when = Inquiry::When::alone,
     .arguments = all_gpus,
     .applies = has_gpus},
    {.name = "gemm",
     .level = PreflightLevel::deep,
     .deadline = kMeasurement,
     .when = Inquiry::When::alone,
     .arguments = all_gpus,
     .applies = has_gpus},
};

struct Question {
  const Inquiry& inquiry;
  std::string name;  ///< of the answer
  const plan::BoundProcess* process = nullptr;
  std::string thing{};
};

std::vector<Question> questions(const Look& request, const NodeObservations& observations,
                                Inquiry::When when) {
  std::vector<Question> out;
  for (const auto& inquiry : inquiries()) {
    const bool wanted = inquiry.level <= request.level && inquiry.when == when;
    if (!wanted || (inquiry.applies != nullptr && !inquiry.applies(observations))) continue;
    const std::string name(inquiry.name);
    if (inquiry.of == Inquiry::Of::machine) {
      out.push_back({inquiry, name});
      continue;
    }
    if (inquiry.of == Inquiry::Of::things) {
      for (auto& thing : inquiry.things(observations))
        out.push_back({inquiry, fmt::format("{}/{}", name, thing), nullptr, thing});
      continue;
    }
    for (const auto& [role, process] : observations.first_of_roles()) {
      if (inquiry.concerns != nullptr && !inquiry.concerns(observations, role)) continue;
      out.push_back({inquiry, fmt::format("{}/{}", name, request.plan.roles[role].name), process});
    }
  }
  return out;
}

Answer put(const Look& request, const NodeObservations& observations, const Question& question) {
  std::vector<std::string> arguments{std::string(question.inquiry.name)};
  if (!question.thing.empty()) arguments.push_back(question.thing);
  if (question.inquiry.arguments != nullptr) {
    for (auto& argument : question.inquiry.arguments(observations, question.process))
      arguments.push_back(std::move(argument));
  }
  const auto deadline = question.inquiry.deadline;
  auto said = question.process != nullptr
                  ? ask_probe_of(*question.process, request.probe, arguments, deadline)
                  : ask_probe(request.probe, arguments, sys::own_environment(), deadline);
  if (said) return {std::move(*said), ""};
  const auto& why = said.error().items().front().message;
  if (question.process == nullptr || question.inquiry.otherwise == nullptr) return {nullptr, why};
  return {question.inquiry.otherwise(*question.process), why};
}

}  // namespace

std::span<const Inquiry> inquiries() {
  return kInquiries;
}

Answers ask(const Look& request, const NodeObservations& observations) {
  Answers answers;
  std::map<std::string, std::future<Answer>> going;
  const auto together = questions(request, observations, Inquiry::When::together);
  for (const auto& question : together) {
    going[question.name] =
        std::async(std::launch::async, [&] { return put(request, observations, question); });
  }
  for (auto& [name, answer] : going) answers[name] = answer.get();
  for (const auto& question : questions(request, observations, Inquiry::When::alone)) {
    answers[question.name] = put(request, observations, question);
  }
  return answers;
}

}  // namespace nlaunch::preflight
