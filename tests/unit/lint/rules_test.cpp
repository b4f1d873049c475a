#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "lint/rule.h"
#include "lint/script_input.h"

namespace nlaunch::lint {
namespace {

Setting set(const char* name, const char* value, bool sure = true) {
  Setting setting;
  setting.name = name;
  setting.value = value;
  setting.sure = sure;
  return setting;
}

std::vector<std::string> found(const LintInput& input) {
  std::vector<std::string> out;
  for (const auto& finding : lint(input)) out.push_back(std::string(finding.rule) + ": " + finding.what);
  return out;
}

LintInput script(const std::string& text) {
  return recorded_script(std::make_shared<const SourceFile>(SourceFile{"job.sh", text}), {});
}

TEST(Rules, EachHasATitleAndAName) {
  for (const auto* rule : rules()) {
    EXPECT_EQ(find_rule(rule->name), rule);
    EXPECT_FALSE(rule->title.empty()) << rule->name;
    EXPECT_TRUE(rule->explain.ends_with('.')) << rule->name;
  }
}

void find_spot(const LintInput& input, Report& report) {
  each_value(input, report, "SPOT", [&](const Environment&, const Setting& setting, const std::string&) {
    report.note(setting.span, {"a spot", "", "", ""});
  });
}

const Registered<Rule> spot_rule{{
    .order = 15,
    .name = "spot",
    .title = "a rule of this test",
    .explain = "It has a file of its own, and is in the table.",
    .check = find_spot,
}};

TEST(Rules, OneFileAddsARule) {
  EXPECT_EQ(found(script("export SPOT=1\n")), std::vector<std::string>{"spot: a spot"});
  const auto all = rules();
  const auto spot = std::ranges::find(all, find_rule("spot"));
  ASSERT_NE(spot, all.end());
  EXPECT_EQ((*std::prev(spot))->name, "unknown-variable");
  EXPECT_EQ((*std::next(spot))->name, "not-in-release");
}

TEST(Rules, SharedCache) {
  auto input = script(
      "export TRITON_CACHE_DIR=/home/me/triton RAY_TMPDIR=/home/me/ray TORCHINDUCTOR_CACHE_DIR=/tmp/x\n");
  input.shared_file_system = [](const std::string& path) { return path.starts_with("/home") ? "NFS" : ""; };
  EXPECT_EQ(found(input),
            (std::vector<std::string>{"shared-cache: TRITON_CACHE_DIR is on a shared file system (NFS)",
                                      "shared-cache: RAY_TMPDIR is on a shared file system (NFS)"}));
}

TEST(Rules, ReleaseDiffers) {
  LintInput input;
  input.plan = true;
  input.environments.resize(2);
  input.environments[0].name = "learner";
  input.environments[0].releases = {{"NCCL", Version{{2, 27, 5}}}};
  input.environments[1].name = "engine";
  input.environments[1].releases = {{"NCCL", Version{{2, 28, 9}}}};
  input.groups = {{"weight sync", {0, 1}}};
  EXPECT_EQ(
      found(input),
      (std::vector<std::string>{
          "release-differs: weight sync has several releases of NCCL: 2.27.5 in learner, 2.28.9 in engine"}));
  input.environments[1].releases["NCCL"] = Version{{2, 27, 5}};
  EXPECT_TRUE(found(input).empty());
}

TEST(Rules, WhatAModuleSetsTooIsTold) {
  LintInput input;
  input.plan = true;
  auto& environment = input.environments.emplace_back();
  environment.name = "learner";
  environment.settings.push_back(set("NCCL_DEBUG", "WARN"));
  input.from_modules.push_back(set("NCCL_DEBUG", "VERSION"));
  EXPECT_EQ(found(input),
            (std::vector<std::string>{"module-overrides: a module also sets NCCL_DEBUG=VERSION"}));
}

/// What is said of one setting: "RULE: what; why; instead".
std::string said_of(const std::string& setting) {
  std::string out;
  for (const auto& one : lint(script("export " + setting + "\n")))
    out += std::string(one.rule) + ": " + one.what + "; " + one.why + "; " + one.instead;
  return out;
}

TEST(Rules, WhatComesOfAValueThatIsNotKnownDependsOnItsReader) {
  const std::pair<const char*, const char*> cases[] = {
      {"TORCH_DISTRIBUTED_DEBUG=ON",
       "PyTorch aborts the program at startup: \"The value of TORCH_DISTRIBUTED_DEBUG must be"},
      {"TORCH_SYMMMEM=cuda",
       "PyTorch rejects it, and the program exits, when symmetric memory is first used"},
      {"TORCH_CPP_LOG_LEVEL=LOUD", "PyTorch prints a warning to stderr and uses the default"},
      {"VLLM_WORKER_MULTIPROC_METHOD=spwan",
       "vLLM rejects it: the engine exits with a ValueError at startup"},
      {"VLLM_WORKER_MULTIPROC_METHOD=spwan", "; VLLM_WORKER_MULTIPROC_METHOD=spawn"},
      {"GLOO_LOG_LEVEL=LOUD", "any other word is treated as ERROR"},
      {"NCCL_SOCKET_FAMILY=INET", "NCCL does not accept it: most likely it silently uses its default"},
  };
  for (const auto& [setting, why] : cases) {
    const auto said = said_of(setting);
    EXPECT_TRUE(said.starts_with("unknown-value: ")) << setting << ": " << said;
    EXPECT_NE(said.find(why), std::string::npos) << setting << ": " << said;
  }
  EXPECT_EQ(said_of("TORCH_DISTRIBUTED_DEBUG=off"), "");
}

TEST(Rules, PyTorchReadsTheDigitsInFrontAndRefusesWhatBeginsWithNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=10m",
       "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=10m is not a plain number: PyTorch reads 10; "},
      {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=10m", "; a plain number of seconds"},
      {"TORCH_NCCL_COORD_CHECK_MILSEC=1e3", "PyTorch reads 1; "},
      {"TORCH_NCCL_RANKS_PER_ROOT=0x10", "PyTorch reads 0; "},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING=true",
       "TORCH_NCCL_ASYNC_ERROR_HANDLING=true is not a number for PyTorch; PyTorch rejects it, and the "
       "program exits"},
      {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=99999999999", "PyTorch rejects it, and the program exits"},
      {"TORCHINDUCTOR_COMPILE_THREADS=8x", "PyTorch rejects it, and the program exits"},
      {"TORCH_NCCL_DESYNC_DEBUG=on", "it aborts the program at startup"},
      {"TORCH_NCCL_USE_COMM_NONBLOCKING=true", "PyTorch ignores it, at best with a warning"},
      {"TORCH_SHOW_CPP_STACKTRACES=yes", "PyTorch ignores it, at best with a warning"},
      {"TORCHDYNAMO_VERBOSE=on", "PyTorch compares it with 1: what other words mean depends on the release"},
  };
  for (const auto& [setting, what] : cases) {
    const auto said = said_of(setting);
    EXPECT_TRUE(said.starts_with("not-a-number: ")) << setting << ": " << said;
    EXPECT_NE(said.find(what), std::string::npos) << setting << ": " << said;
  }
  for (const auto* fine : {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=0600",
                           "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "TORCH_NCCL_DESYNC_DEBUG=Yes",
                           "TORCH_SHOW_CPP_STACKTRACES=1", "TORCHINDUCTOR_COMPILE_THREADS=8"}) {
    EXPECT_EQ(said_of(fine), "") << fine;
  }
}

TEST(Environment, ALaterOneWinsAndOneUnderAConditionMayHold) {
  Environment environment;
  environment.settings = {set("A", "1"), set("A", "2", false), set("B", "1", false), set("B", "2")};
  const auto is = [](const char* wanted) {
    return [wanted](const std::string& value) { return value == wanted; };
  };
  EXPECT_EQ(environment.value("A"), "1");
  EXPECT_TRUE(environment.may("A", is("1")));
  EXPECT_TRUE(environment.may("A", is("2")));
  EXPECT_EQ(environment.value("B"), "2");
  EXPECT_FALSE(environment.may("B", is("1")));
  EXPECT_EQ(environment.find("C"), nullptr);
}

}  // namespace
}  // namespace nlaunch::lint
