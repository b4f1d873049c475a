#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_code.h"
#include "probe/output.h"
#include "probe/question.h"

namespace {

using namespace nlaunch;

int usage(const std::vector<const probe::Question*>& questions) {
  fmt::print(stderr, "nlaunch-probe prints JSON lines about this machine for nlaunch.\n");
  for (const auto* question : questions) {
    fmt::print(stderr, "  nlaunch-probe {} {}\n      {}\n", question->name, question->arguments,
               question->what);
  }
  return exit_code::usage;
}

int answer(const probe::Question& question, probe::Arguments arguments) {
  if (question.run != nullptr) return question.run(arguments);
  probe::emit(question.answer(arguments));
  return exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
  const auto questions = Registered<probe::Question>::all();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return usage(questions);
  probe::claim_stdout();
  const std::string_view asked = arguments[0] == "--version" ? "version" : std::string_view(arguments[0]);
  for (const auto* question : questions) {
    const auto given = probe::Arguments(arguments).subspan(1);
    // Libraries with their own threads (NCCL, CUDA) must not be torn down by destructors.
    if (question->name == asked && given.size() >= question->at_least) ::_exit(answer(*question, given));
  }
  return usage(questions);
}
