#include "plan/update.h"

#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

constexpr const char* kSite = "scheduler: {kind: slurm}\nnode: {gpus: 8}\n";
constexpr const char* kExperiment =
    "env: {LEVEL: \"1\"}\n"
    "weight_sync: {backend: none}\n"
    "roles:\n"
    "  learner: {kind: learner, gpus: 1, command: [python, train.py, --lr, \"1e-5\"]}\n"
    "  engine: {kind: engine, count: 2, gpus: 2, ports: [http], command: [serve, my/model],\n"
    "           ready: {tcp: \"${self.host}:${self.ports.http}\"}, env: {DEBUG: \"0\", HF_TOKEN: abc}}\n";

class UpdateTest : public PlanFiles {
 protected:
  using Pair = std::pair<std::string, std::string>;
  using Pairs = std::vector<Pair>;
  std::string with(const Pairs& changes) {
    std::string text = kExperiment;
    for (const auto& [from, to] : changes) text.replace(text.find(from), from.size(), to);
    return text;
  }
  Update update(const std::string& after) {
    return update_of(plan_of(kExperiment, kSite), plan_of(after, kSite));
  }
  /// "engine command: serve my/model -> serve other" of each setting, and "no: nodes" of what is refused.
  std::vector<std::string> described(const std::string& after) {
    const auto all = update(after);
    std::vector<std::string> out;
    for (const auto& role : all.roles)
      for (const auto& setting : role.settings)
        out.push_back(fmt::format("{} {}: {} -> {}", role.role, setting.what, setting.before, setting.after));
    for (const auto& what : all.refused) out.push_back("no: " + what);
    return out;
  }
  using Lines = std::vector<std::string>;
};

TEST_F(UpdateTest, OfTheSamePlanIsNone) {
  EXPECT_EQ(described(kExperiment), Lines());
  EXPECT_EQ(described(std::string("# other lines\n\n") + kExperiment), Lines())
      << "what is asked for elsewhere";
}

TEST_F(UpdateTest, SaysWhatProcessesBeginWith) {
  EXPECT_EQ(described(with({{"my/model]", "my/model, --max-num-seqs, \"256\"]"}, {"1e-5", "2e-5"}})),
            (Lines{"learner command: python train.py --lr 1e-5 -> python train.py --lr 2e-5",
                   "engine command: serve my/model -> serve my/model --max-num-seqs 256"}));
  EXPECT_EQ(described(with({{"DEBUG: \"0\"", "DEBUG: \"1\", MORE: x"}})),
            (Lines{"engine env DEBUG: 0 -> 1", "engine env MORE:  -> x"}));
  EXPECT_EQ(described(with({{"DEBUG: \"0\", ", ""}})), (Lines{"engine env DEBUG: 0 -> "}));
  EXPECT_EQ(described(with({{"LEVEL: \"1\"", "LEVEL: \"2\""}})),
            (Lines{"learner env LEVEL: 1 -> 2", "engine env LEVEL: 1 -> 2"}))
      << "which all roles have";
}

TEST_F(UpdateTest, ShowsNoSecret) {
  for (const auto& line :
       described(with({{"HF_TOKEN: abc", "HF_TOKEN: xyz"}, {"DEBUG: \"0\"", "DEBUG: \"1\""}})))
    EXPECT_FALSE(line.contains("abc") || line.contains("xyz")) << line;
}

TEST_F(UpdateTest, RefusesWhatOthersRelyOn) {
  EXPECT_EQ(described(with({{"count: 2", "count: 3"}, {"my/model", "other"}})),
            (Lines{"engine command: serve my/model -> serve other", "no: processes", "no: groups",
                   "no: idle_gpus", "no: engine count"}));
  EXPECT_EQ(described(with({{"ready: {tcp: \"${self.host}:${self.ports.http}\"}, ", ""}})),
            (Lines{"no: engine ready"}))
      << "what comes after it waits for it";
  EXPECT_EQ(
      described(with({{"ready: {tcp: \"${self.host}:${self.ports.http}\"}", "ready: {delay: 5s}"}})).size(),
      1U);
  EXPECT_EQ(
      described(with({{"gpus: 1, command", "restart: {policy: on-failure, max: 1}, gpus: 1, command"}})),
      (Lines{"no: learner restart"}));
  EXPECT_EQ(described(with({{"  learner: ", "  trainer: "}})).front(), "no: roles");
}

}  // namespace
}  // namespace nlaunch::plan
