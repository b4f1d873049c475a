#include "preflight/ask/inquiries.h"

#include <fmt/format.h>

#include <future>
#include <utility>

#include "base/text.h"
#include "preflight/ask/ask_probe.h"
#include "sys/spawn.h"

namespace nlaunch::preflight {
namespace {

struct Question {
  const Inquiry& inquiry;
  std::string name;  ///< of the answer
  const plan::BoundProcess* process = nullptr;
  std::string thing{};
};

std::vector<Question> questions(const Request& request, const NodeObservations& observations,
                                Inquiry::When when) {
  std::vector<Question> out;
  for (const auto* inquiry : inquiries()) {
    const bool wanted = inquiry->level <= request.options.level && inquiry->when == when;
    if (!wanted || (inquiry->applies != nullptr && !inquiry->applies(observations))) continue;
    const std::string name(inquiry->name);
    if (inquiry->of == Inquiry::Of::machine) {
      out.push_back({*inquiry, name});
      continue;
    }
    if (inquiry->of == Inquiry::Of::things) {
      for (auto& thing : inquiry->things(observations))
        out.push_back({*inquiry, fmt::format("{}/{}", name, thing), nullptr, thing});
      continue;
    }
    for (const auto& [role, process] : observations.first_of_roles()) {
      if (inquiry->concerns != nullptr && !inquiry->concerns(observations, role)) continue;
      out.push_back({*inquiry, fmt::format("{}/{}", name, request.plan.roles[role].name), process});
    }
  }
  return out;
}

Answer put(const Request& request, const NodeObservations& observations, const Question& question) {
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
  const auto& why = said.error().first_message();
  if (question.process == nullptr || question.inquiry.otherwise == nullptr) return {nullptr, why};
  return {question.inquiry.otherwise(*question.process), why};
}

}  // namespace

bool has_gpus(const NodeObservations& observations) {
  return observations.has_gpus();
}

std::vector<std::string> devices_of_plan(const NodeObservations& observations,
                                         const plan::BoundProcess* /*process*/) {
  std::vector<std::string> visible;
  for (const auto& gpu : observations.node.gpus) visible.push_back(gpu.visible);
  return {"--devices", text::join(visible, ",")};
}

Answers ask(const Request& request, const NodeObservations& observations) {
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
