#include "diagnose/process_facts.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "diagnose/diagnose.h"
#include "unit/diagnose/folder.h"

namespace nlaunch::diagnose {
namespace {

/// A run whose learner failed with this log.
class FactsOfARun : public testing::Test {
 protected:
  FactsOfARun() {
    plan_ = nlohmann::json::parse(R"({"format": "nlaunch plan", "version": 1, "experiment": "", "roles": [
      {"name": "learner", "origin": "e.yaml:5:3", "command_origin": "e.yaml:7:15", "venv": "", "rendezvous": "none",
       "workdir": "", "workdir_origin": "", "env": []}]})");
    plan_["experiment"] = (folder_.path() / "exp" / "e.yaml").string();
    role()["workdir"] = (folder_.path() / "exp").string();
  }

  nlohmann::json& role() { return plan_["roles"][0]; }
  void set_venv(const std::string& venv) {
    role()["venv"] = venv;
    role()["env"].push_back({{"layer", "venv"}, {"origin", "e.yaml:6:11"}});
  }
  void bind(const std::string& python, const std::string& version, bool named) {
    const nlohmann::json bound{
        {"processes",
         {{{"name", "learner.0"}, {"python", {{"path", python}, {"version", version}, {"named", named}}}}}}};
    folder_.write("run/attempt-0/bound.here.json", bound.dump());
  }
  /// "WHY | FIX" of the cause of this log.
  std::string told(std::string_view log) {
    folder_.write("run/plan.json", plan_.dump());
    folder_.write("run/attempt-0/logs/learner.0.log", log);
    const auto summary = nlohmann::ordered_json::parse(
        R"({"exit_code": 1, "outcome": "failed", "first": "learner.0", "sentence": "it ended", "decided_ms": 10,
            "processes": [{"name": "learner.0", "ended_ms": 9, "end": {"code": 127}}]})");
    Options options;
    const KnownSummary known{&summary};
    options.summary = &known;
    const auto diagnosis = diagnose({(folder_.path() / "run").string()}, options);
    if (diagnosis.findings.empty()) return "nothing";
    return diagnosis.findings[0].why + " | " + diagnosis.findings[0].fix;
  }

  Folder folder_;
  nlohmann::json plan_;
};

constexpr const char* kNoModule = "ModuleNotFoundError: No module named 'vllm'\n";

TEST_F(FactsOfARun, AMissingModuleIsOfAPythonAndARole) {
  bind("/usr/bin/python3", "3.11", true);
  EXPECT_EQ(
      told(kNoModule),
      "the Python module 'vllm' is not installed for /usr/bin/python3 (Python 3.11), which runs learner.0; "
      "role 'learner' (e.yaml:5:3) sets no `venv` | write `venv: DIRECTORY` of an environment that has it in "
      "role 'learner' (e.yaml:5:3), or install it: /usr/bin/python3 -m pip install vllm");
  bind("/usr/bin/python3", "", false);
  EXPECT_TRUE(
      told(kNoModule).starts_with("the Python module 'vllm' is not installed for /usr/bin/python3, the "
                                  "first Python on the PATH of learner.0; "))
      << told(kNoModule);
}

TEST_F(FactsOfARun, AMissingModuleOfAVenvIsInstalledThere) {
  set_venv("/venv");
  bind("/venv/bin/python", "3.12.1", true);
  EXPECT_EQ(
      told(kNoModule),
      "the Python module 'vllm' is not installed for /venv/bin/python (Python 3.12.1), which runs learner.0; "
      "role 'learner' (e.yaml:5:3) has `venv: /venv` (e.yaml:6:11) | install it: /venv/bin/python -m pip "
      "install vllm; or name another environment in `venv` (e.yaml:6:11)");
  bind("/usr/bin/python3", "3.11", true);
  EXPECT_TRUE(told(kNoModule).ends_with(
      " | start the Python of the venv, `python3` without a directory, in its command (e.yaml:7:15)"))
      << told(kNoModule);
}

TEST_F(FactsOfARun, AMissingModuleOfAnotherPackageIsInstalledWithThat) {
  bind("/usr/bin/python3", "3.11", true);
  const auto fix = [&](const std::string& module) {
    const auto text = told(fmt::format("ModuleNotFoundError: No module named '{}'\n", module));
    return text.substr(text.find(", or install ") + 5);
  };
  EXPECT_EQ(fix("yaml"), "install it: /usr/bin/python3 -m pip install PyYAML");
  EXPECT_EQ(fix("cv2"), "install it: /usr/bin/python3 -m pip install opencv-python");
  EXPECT_EQ(fix("PIL"), "install it: /usr/bin/python3 -m pip install pillow");
  EXPECT_EQ(fix("sklearn"), "install it: /usr/bin/python3 -m pip install scikit-learn");
  EXPECT_EQ(fix("trl"), "install it: /usr/bin/python3 -m pip install trl");
  EXPECT_TRUE(told("ModuleNotFoundError: No module named 'yaml.none'\n").ends_with("pip show PyYAML"));
}

TEST_F(FactsOfARun, AMissingModuleOfAnUnknownPackageIsNotTakenForItsName) {
  bind("/usr/bin/python3", "3.11", true);
  constexpr const char* kUnknown = "ModuleNotFoundError: No module named 'my_rewards'\n";
  EXPECT_TRUE(told(kUnknown).ends_with(
      "role 'learner' (e.yaml:5:3), or install the package that provides 'my_rewards': /usr/bin/python3 -m "
      "pip install PACKAGE"))
      << told(kUnknown);
  set_venv("/venv");
  bind("/venv/bin/python", "3.12.1", true);
  EXPECT_TRUE(told(kUnknown).ends_with(
      " | install the package that provides 'my_rewards': /venv/bin/python -m pip install PACKAGE; or name "
      "another environment in `venv` (e.yaml:6:11)"))
      << told(kUnknown);
}

TEST_F(FactsOfARun, TheOwnWordsOfPythonNameIt) {
  EXPECT_EQ(
      told("/opt/py/bin/python3: No module named vllm\n"),
      "the Python module 'vllm' is not installed for /opt/py/bin/python3, which runs learner.0; role "
      "'learner' (e.yaml:5:3) sets no `venv` | write `venv: DIRECTORY` of an environment that has it in role "
      "'learner' (e.yaml:5:3), or install it: /opt/py/bin/python3 -m pip install vllm");
  EXPECT_TRUE(told("/opt/py/bin/python3: No module named vllm.entry\n")
                  .ends_with("another one than the program expects: /opt/py/bin/python3 -m pip show vllm"));
}

TEST_F(FactsOfARun, AModuleOfTheUserNeedsAPath) {
  folder_.write("exp/rewards.py", "");
  bind("/usr/bin/python3", "3.11", true);
  EXPECT_TRUE(
      told("ModuleNotFoundError: No module named 'rewards'\n")
          .ends_with(fmt::format(" | 'rewards' is in the working directory: write `env: {{PYTHONPATH: {}}}` "
                                 "in role 'learner' (e.yaml:5:3)",
                                 (folder_.path() / "exp").string())));
}

TEST_F(FactsOfARun, AMissingProgramIsOneOfAPath) {
  EXPECT_EQ(told("bash: line 1: vllm: command not found\n"),
            "the program 'vllm' is not on the PATH of learner.0; role 'learner' (e.yaml:5:3) sets no `venv` "
            "| write "
            "`venv: DIRECTORY` of the environment that has it in role 'learner' (e.yaml:5:3), load its "
            "module in the "
            "site profile (`modules: {load: [NAME]}`), or give its full path in its command (e.yaml:7:15)");
  EXPECT_EQ(
      told("run.sh: line 3: /opt/venv/bin/vllm: No such file or directory\n"),
      "the program '/opt/venv/bin/vllm', which learner.0 starts, does not exist | correct the path in its "
      "command (e.yaml:7:15)");
}

TEST_F(FactsOfARun, AMissingScriptIsLookedForBesideTheExperiment) {
  const auto own = folder_.write("exp/train.py", "");
  role()["workdir"] = "/job/sub";
  role()["workdir_origin"] = "e.yaml:4:10";
  EXPECT_EQ(
      told("python3: can't open file '/job/sub/train.py': [Errno 2] No such file or directory\n"),
      "the script /job/sub/train.py does not exist: relative paths of learner.0 start at `workdir: "
      "/job/sub` (e.yaml:4:10) | correct the path in its command (e.yaml:7:15), or `workdir` (e.yaml:4:10); "
      "there is " +
          own);
}

TEST_F(FactsOfARun, ARankThatIsNotSetIsAKeyOfTheRole) {
  constexpr const char* kLog =
      "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK "
      "expected, but not set\n";
  EXPECT_EQ(told(kLog),
            "learner.0 was not given its rank and rendezvous address: role 'learner' (e.yaml:5:3) has no "
            "`rendezvous: torch` | write `rendezvous: torch` in role 'learner' (e.yaml:5:3): nlaunch then "
            "sets RANK, "
            "WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT");
  role()["rendezvous"] = "torch";
  EXPECT_TRUE(told(kLog).starts_with("a process of the job was not given its rank"));
}

TEST_F(FactsOfARun, FilesThatAreDamagedOrOldLeaveTheGeneralText) {
  const std::string general =
      "the Python package or module vllm is not installed for the Python of that process | ";
  EXPECT_TRUE(told(kNoModule).starts_with(general)) << "no bound file";
  folder_.write("run/attempt-0/bound.here.json", "{");
  EXPECT_TRUE(told(kNoModule).starts_with(general));
  folder_.write("run/attempt-0/bound.here.json",
                R"({"processes": [{"name": "learner.0", "python": {"named": null}}]})");
  EXPECT_TRUE(told(kNoModule).starts_with(general));
  bind("/usr/bin/python3", "3.11", true);
  plan_["roles"] = 7;
  EXPECT_TRUE(told(kNoModule).starts_with(general));
}

}  // namespace
}  // namespace nlaunch::diagnose
