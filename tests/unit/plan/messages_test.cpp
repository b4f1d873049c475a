#include <algorithm>

#include "unit/plan/support.h"

// What is said of an experiment that cannot be a plan, whole.
namespace nlaunch::plan {
namespace {

class Messages : public PlanFiles {
 protected:
  static constexpr auto kOneMachine = "scheduler: {kind: local}\nnode: {gpus: 4}\n";
  static constexpr auto kSlurm = "scheduler: {kind: slurm}\nnode: {gpus: 4}\n";

  /// The message and the hint of the only error.
  std::string error_of(const std::string& experiment, const std::string& site, PlanOptions options = {}) {
    const auto plan = build_from(experiment, site, std::move(options));
    if (plan) return "no error";
    const auto& item = plan.error().items().front();
    std::string text = item.message;
    for (const auto& note : item.notes) text += "; " + note.message;
    return without_folder(item.hint.empty() ? text : text + "; " + item.hint);
  }

  std::map<std::string, std::string> values(const Plan& plan, const std::string& role) {
    const auto found = std::ranges::find(plan.roles, role, &Role::name);
    std::map<std::string, std::string> values;
    for (const auto& op : found->env) values[op.name] = op.value;
    return values;
  }
};

std::string learner(const std::string& rest) {
  return "  learner: {kind: learner, command: [python, train.py], " + rest + "}\n";
}

TEST_F(Messages, OfWhatDoesNotFitSayWhatWould) {
  EXPECT_EQ(error_of("roles:\n" + learner("count: 2, gpus: 4"), kOneMachine),
            "role 'learner': 2 processes of 4 GPUs do not fit on 1 node × 4 GPUs: 1 fits, and 0 GPUs stay "
            "idle; a process cannot span two nodes; --set roles.learner.count=1");
  EXPECT_EQ(error_of("roles:\n" + learner("count: 2, gpus: 4"), kSlurm),
            "role 'learner': 2 processes of 4 GPUs do not fit on 1 node × 4 GPUs: 1 fits, and 0 GPUs stay "
            "idle; a process cannot span two nodes; --set roles.learner.count=1, or --nodes 2");
  EXPECT_EQ(error_of("roles:\n" + learner("count: 1, gpus: 5"), kSlurm),
            "role 'learner': 1 process of 5 GPUs does not fit on 1 node × 4 GPUs: none fit, and 4 GPUs stay "
            "idle; a process cannot span two nodes; --set roles.learner.gpus=4 (4 GPUs for 'learner')");
  EXPECT_EQ(error_of("roles:\n" + learner("per_node: 5, gpus: 1"), kSlurm),
            "role 'learner': 5 processes of 1 GPU on each node do not fit on 1 node × 4 GPUs: 4 fit on each, "
            "and 0 GPUs stay idle; --set roles.learner.per_node=4");
}

TEST_F(Messages, OfWhatDoesNotFitSayWhoTakesTheRest) {
  EXPECT_EQ(error_of("roles:\n" + learner("count: 1, gpus: 3") +
                         "  engine: {kind: engine, count: 2, gpus: 1, command: [serve]}\n",
                     kOneMachine),
            "role 'engine': 2 processes of 1 GPU do not fit on 1 node × 4 GPUs: 1 fits, and 0 GPUs stay "
            "idle; role 'learner' uses 3 GPUs; --set roles.engine.count=1");
}

PlanOptions with_env(const std::string& option) {
  PlanOptions options;
  options.env = {option};
  return options;
}

TEST_F(Messages, OfTheWeightSyncSayWhoCannotBeInIt) {
  const auto of = [&](const std::string& weight_sync) {
    return mistakes(R"(roles:
  learner: {kind: learner, gpus: 1, command: [t]}
  engine: {kind: engine, gpus: 1, command: [s]}
  twin: {kind: engine, gpus: 1, share_gpus_with: engine, command: [s]}
  judge: {kind: service, command: [j]}
weight_sync: {)" + weight_sync +
                        "}\n",
                    kOneMachine);
  };
  using Lines = std::vector<std::string>;
  const std::string named =
      " -> name roles that have `gpus`; 'learner.0' is the first process of the role 'learner'";
  EXPECT_EQ(of("order: [learner.0, judge]"), Lines{"8:34 'judge' has no GPU for the group" + named});
  EXPECT_EQ(of("order: [learner.3, engine]"), Lines{"8:23 'learner.3' has no GPU for the group" + named});
  EXPECT_EQ(of("order: [engine, twin]"),
            Lines{"8:31 GPU 1 of node 0 would be in the group twice: engine.0 and twin.0 -> a communicator "
                  "can use a GPU only once: remove one of them"});
  EXPECT_EQ(of("order: [learner.0]"), Lines{"8:23 only learner.0 is in the group -> name the processes that "
                                            "send weights and those that receive them: [learner.0, engine]"});
  EXPECT_EQ(of("order: [engine, learner.0], master: engine.7"),
            Lines{"8:51 unknown process 'engine.7' -> write a process of the group: engine.0"});
  EXPECT_EQ(
      of("order: [engine, learner.0], master: judge.0"),
      Lines{"8:51 'judge.0' is not in the group, so it cannot be its master -> write a process of the group: "
            "engine.0"});
  EXPECT_EQ(of("master: engine.0"), Lines{});
}

TEST_F(Messages, OfOptionsSayWhatTheyTake) {
  const auto experiment = "roles:\n" + learner("gpus: 1");
  for (const auto* wrong : {"A", "=1", "1A=2", "A-B=1", "learner:=1"})
    EXPECT_EQ(error_of(experiment, kOneMachine, with_env(wrong)),
              "--env accepts NAME=VALUE or ROLE:NAME=VALUE")
        << wrong;
  EXPECT_EQ(error_of(experiment, kOneMachine, with_env("A B=1")),
            "the name 'A B' contains a blank: --env accepts NAME=VALUE or ROLE:NAME=VALUE");
  for (const auto* right : {"A=1", "_z9=1", "Z=", "a=b=c", "learner:A0=x:y"})
    EXPECT_EQ(error_of(experiment, kOneMachine, with_env(right)), "no error") << right;
  EXPECT_NE(error_of(experiment, kOneMachine, with_env("nobody:A=1")), "no error");
  EXPECT_NE(error_of(experiment, kOneMachine, with_env("RANK=1")), "no error");
}

TEST_F(Messages, AnOptionIsForItsRoleOrForAll) {
  PlanOptions options;
  options.env = {"learner:A=1", "B=x=y", "engine:C=3"};
  const auto plan =
      plan_of("roles:\n" + learner("gpus: 1") + "  engine: {kind: engine, gpus: 1, command: [serve]}\n",
              kOneMachine, options);
  const auto one = values(plan, "learner");
  const auto other = values(plan, "engine");
  EXPECT_EQ(one.at("A"), "1");
  EXPECT_EQ(one.at("B"), "x=y");
  EXPECT_FALSE(one.contains("C"));
  EXPECT_FALSE(other.contains("A"));
  EXPECT_EQ(other.at("B"), "x=y");
  EXPECT_EQ(other.at("C"), "3");
}

TEST_F(Messages, AnOverlayThatIsUnknownIsCompared) {
  PlanOptions options;
  options.with = {"trance"};
  const auto experiment = "roles:\n" + learner("gpus: 1");
  EXPECT_EQ(error_of(experiment, kOneMachine, options),
            "--with trance: overlay not found in the experiment or in site 'site'; no overlays are defined");
  const auto site =
      std::string(kOneMachine) + "overlays: {trace: {env: {set: {A: 1}}}, other: {env: {set: {A: 2}}}}\n";
  EXPECT_EQ(error_of(experiment, site, options),
            "--with trance: overlay not found in the experiment or in site 'site'; did you mean "
            "'--with trace'?");
  options.with = {"zzzzzzzzzz"};
  EXPECT_EQ(error_of(experiment, site, options),
            "--with zzzzzzzzzz: overlay not found in the experiment or in site 'site'; available: "
            "trace, other");
  options.with = {"trace", "other"};
  EXPECT_EQ(values(plan_of(experiment, site, options), "learner").at("A"), "2");
}

TEST_F(Messages, LearnersOfVllmKnowTheirAddress) {
  const std::string vllm =
      "  engine: {kind: engine, gpus: 1, command: [vllm, serve, m]}\n  judge: {kind: service, command: "
      "[python, j.py]}\n";
  const auto with_vllm = plan_of("roles:\n" + learner("gpus: 1") + vllm, kOneMachine);
  EXPECT_TRUE(values(with_vllm, "learner").contains("VLLM_HOST_IP"));
  EXPECT_TRUE(values(with_vllm, "engine").contains("VLLM_HOST_IP"));
  EXPECT_FALSE(values(with_vllm, "judge").contains("VLLM_HOST_IP"));
  const auto without =
      plan_of("roles:\n" + learner("gpus: 1") + "  engine: {kind: engine, gpus: 1, command: [serve, m]}\n",
              kOneMachine);
  EXPECT_FALSE(values(without, "learner").contains("VLLM_HOST_IP"));
}

TEST_F(Messages, AVenvIsInFrontOfThePath) {
  const auto plan = plan_of("venv: /envs/rl\nroles:\n" + learner("gpus: 1"), kOneMachine);
  EXPECT_EQ(values(plan, "learner").at("VIRTUAL_ENV"), "/envs/rl");
  EXPECT_EQ(values(plan, "learner").at("PATH"), "/envs/rl/bin");
  const auto none = plan_of("roles:\n" + learner("gpus: 1"), kOneMachine);
  EXPECT_FALSE(values(none, "learner").contains("VIRTUAL_ENV"));
}

TEST_F(Messages, OfBeakerSayWhatItTakes) {
  const std::string site = "scheduler: {kind: beaker}\nnode: {gpus: 8}\n";
  const auto said = [&](const std::string& beaker) {
    return error_of("secrets: {HF_TOKEN: env}\nroles:\n" + learner("gpus: 1") +
                        "beaker: {workspace: ai2/w, budget: ai2/b, image: i, " + beaker + "}\n",
                    site);
  };
  EXPECT_EQ(said("start_timeout: 48h"), "no error");
  EXPECT_EQ(said("start_timeout: 49h"), "'start_timeout' must be more than 0s and at most 2d, found 2d1h");
  EXPECT_EQ(said("preemptible: true"), "no error");
  for (const auto* other : {"min_runtime: 2h", "auto_resume: true"}) {
    EXPECT_EQ(said(std::string("preemptible: true, ") + other),
              "Beaker does not accept 'preemptible' together with 'min_runtime' or 'auto_resume'; remove "
              "'preemptible': the other two replace it");
  }
  EXPECT_EQ(said("datasets: {/a: {weka: x}, /b: {weka: y}}"), "no error");
  EXPECT_EQ(said("datasets: {/a: {weka: x}, /a/b: {weka: y}}"), "the mounts '/a/b' and '/a' overlap");
  EXPECT_EQ(said("datasets: {/a/b: {weka: x}, /A: {weka: y}}"), "the mounts '/A' and '/a/b' overlap");
  EXPECT_EQ(said("datasets: {/: {weka: x}}"), "the mount '/' overlaps with 'result', which is '/results'");
  EXPECT_EQ(said("datasets: {/results/x: {weka: x}}"),
            "the mount '/results/x' overlaps with 'result', which is '/results'");
  EXPECT_EQ(said("secrets: {HF_TOKEN: mine}"), "no error");
  EXPECT_EQ(said("secrets: {WANDB: mine}"),
            "the experiment has no secret 'WANDB'; declare it: `secrets: {WANDB: env}`");
}

TEST_F(Messages, OfDirectivesSayHowTheyAreWritten) {
  const auto said = [&](const std::string& directive) {
    return error_of("slurm: {" + directive + "}\nroles:\n" + learner("gpus: 1"), kSlurm);
  };
  EXPECT_EQ(said("time: '1:00:00', cpus-per-task: 4"), "no error");
  for (const auto* wrong : {"Time: 1", "1time: 1", "ti_me: 1", "'--time': 1"})
    EXPECT_NE(said(wrong), "no error") << wrong;
  const auto plan =
      plan_of("slurm: {exclusive: true, contiguous: false, time: '1:00'}\nroles:\n" + learner("gpus: 1"),
              "scheduler: {kind: slurm, directives: {contiguous: true, time: '9:00', account: a}}\nnode: "
              "{gpus: 4}\n");
  std::map<std::string, std::string> found;
  for (const auto& one : plan.slurm.directives) found[one.name] = one.value;
  EXPECT_EQ(found.at("exclusive"), "");
  EXPECT_EQ(found.at("time"), "1:00");
  EXPECT_EQ(found.at("account"), "a");
  EXPECT_FALSE(found.contains("contiguous"));
}

TEST_F(Messages, OfCheckpointsSayHowTheyMayLook) {
  const auto with = [&](const std::string& checkpoint) {
    return error_of("roles:\n" + learner("gpus: 1") + "checkpoint: " + checkpoint + "\n", kOneMachine);
  };
  EXPECT_EQ(with("{dir: ckpt, format: deepspeed}"),
            "unknown checkpoint format 'deepspeed'; allowed: transformers, verl, megatron, torchtitan, "
            "prime-rl, nemo-rl; or `folder`, with `complete` or `tracker`");
  EXPECT_EQ(with("{dir: \"${node.scratch}/ckpt\", format: verl}"),
            "'${node.scratch}/ckpt' is not known until a node is assigned; write a directory that all nodes "
            "share; it can start with ${run.dir}");
  EXPECT_EQ(with("{dir: \"${run.dir}/ckpt\", format: verl}"), "no error");
  EXPECT_EQ(error_of("roles:\n  learner: {kind: learner, command: [a, \"${resume.path}\"]}\n", kOneMachine),
            "'${resume.path}' needs `checkpoint`, which describes what the learners save");
}

TEST_F(Messages, WarnOfTimesThatHaveNoMeaning) {
  const auto warnings = [&](const std::string& rest, const char* site) {
    return plan_of("roles:\n" + learner("gpus: 1") + rest, site).warnings;
  };
  EXPECT_EQ(warnings("leader_grace: 2m\n", kOneMachine).back(),
            "`leader_grace` has no effect on site 'site': its scheduler starts no agents, and the run ends "
            "with nlaunch");
  EXPECT_EQ(warnings("leader_grace: 2m\n", kSlurm), warnings("", kSlurm));
  EXPECT_EQ(
      warnings("checkpoint: {saved: 'saved (\\S+)', wait: 10m}\nwalltime: {before: 10m}\n", kSlurm).back(),
      "`checkpoint.wait` is 10m, but the walltime is announced only 10m before: the learners would not be "
      "stopped in time");
}

}  // namespace
}  // namespace nlaunch::plan
