#include "config/extends.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/experiment.h"

namespace nlaunch::config {
namespace {

using Words = std::vector<std::string>;

/// Files of a folder of their own, of which the experiment is a.yaml.
struct Extends : testing::Test {
  Extends() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nlaunch-extends-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~Extends() override { std::filesystem::remove_all(folder); }

  void file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << "version: 1\n" << text;
  }
  Experiment read() {
    auto experiment = load_experiment((folder / "a.yaml").string(), {}, {});
    EXPECT_TRUE(experiment) << (experiment ? "" : render(experiment.error()));
    return experiment.value_or(Experiment{});
  }
  static Words words(const std::vector<Text>& texts) {
    Words out;
    for (const auto& text : texts) out.push_back(text.value);
    return out;
  }
  /// "A=1 -B": what an environment does, in order.
  static std::string told(const EnvBlock& env) {
    std::string out;
    for (const auto& one : env) {
      out += out.empty() ? "" : " ";
      out +=
          one.kind == EnvEntry::Kind::unset ? "-" + one.name.value : one.name.value + "=" + one.value.value;
    }
    return out;
  }

  std::filesystem::path folder;
};

TEST_F(Extends, TheUpperFileWinsKeyByKey) {
  file("base.yaml", R"(name: base
nodes: 4
vars: {model: small, steps: 10}
roles:
  learner: {kind: learner, gpus: 1, count: 4, command: [python, train.py], stop: {signal: INT, grace: 1m}}
  judge: {kind: service, command: [j]}
start: [[judge], [learner]]
)");
  file("a.yaml", R"(name: a
extends: base.yaml
vars: {model: large}
roles:
  learner: {gpus: 2, per_node: 1, stop: {grace: 2m}}
  judge: null
start: [[learner]]
)");
  const auto read = this->read();
  EXPECT_EQ(read.name.value, "a");
  EXPECT_EQ(read.nodes.value, 4U);
  EXPECT_EQ(read.vars[0].second.value + read.vars[1].second.value, "large10");
  ASSERT_EQ(read.roles.size(), 1U);
  const auto& learner = read.roles[0];
  EXPECT_EQ(learner.gpus.value, 2U);
  EXPECT_EQ(learner.per_node->value, 1U);
  EXPECT_FALSE(learner.count);
  EXPECT_EQ(words(learner.command), (Words{"python", "train.py"}));
  EXPECT_EQ(learner.stop.signal, 2);
  EXPECT_EQ(learner.stop.grace, std::chrono::minutes(2));
  EXPECT_EQ(read.extends, Words{(folder / "base.yaml").string()});
  EXPECT_EQ(learner.command[0].span.file->name, (folder / "base.yaml").string());
  EXPECT_EQ(learner.gpus.span.file->name, (folder / "a.yaml").string());
}

TEST_F(Extends, AListMayBeAddedTo) {
  file("base.yaml", "name: base\nroles: {learner: {kind: learner, ports: [http], command: [a, b]}}\n");
  file("a.yaml", "name: a\nextends: base.yaml\nroles: {learner: {command+: [c], ports: [grpc]}}\n");
  const auto read = this->read();
  EXPECT_EQ(words(read.roles[0].command), (Words{"a", "b", "c"}));
  EXPECT_EQ(words(read.roles[0].ports), Words{"grpc"});
}

TEST_F(Extends, EnvironmentsOfBothFormsGoTogether) {
  const auto of = [&](const std::string& below, const std::string& above) {
    file("base.yaml", "name: base\nroles: {a: {kind: learner, command: [a], env: " + below + "}}\n");
    file("a.yaml", "name: a\nextends: base.yaml\nroles: {a: {env: " + above + "}}\n");
    return told(read().roles.at(0).env);
  };
  EXPECT_EQ(of("{A: 1, B: 2}", "{B: 3, C: 4}"), "A=1 B=3 C=4");
  EXPECT_EQ(of("{A: 1, B: 2}", "{B: null}"), "-B A=1") << "null unsets, as in one file";
  EXPECT_EQ(of("{A: 1, N: null}", "{set: {A: 2}, append: {P: /x}}"), "-N A=2 P=/x");
  EXPECT_EQ(of("{set: {A: 1}, unset: [U]}", "{A: 2, B: 3}"), "-U A=2 B=3");
  EXPECT_EQ(of("{set: {A: 1, B: 2}, prepend: {P: /x}}", "{A: null, P: /y}"), "-A B=2 P=/y")
      << "the upper file wins";
  EXPECT_EQ(of("{unset: [U, V]}", "{set: {U: 1}, unset: [W]}"), "-V -W U=1");
  EXPECT_EQ(of("{A: 1}", "null"), "");
}

TEST_F(Extends, WhatStandsForAnotherTakesItsPlace) {
  file("base.yaml", R"(name: base
roles:
  a: {kind: engine, per: node, command: [a], ready: {log: up, timeout: 1m}}
  b: {kind: engine, command: [b]}
)");
  file("a.yaml", R"(name: a
extends: base.yaml
roles:
  a: {count: 2, ready: {tcp: "${self.host}:1"}}
  b: {spawned_by: a}
)");
  const auto roles = read().roles;
  EXPECT_FALSE(roles[0].per);
  EXPECT_EQ(roles[0].count->value, 2U);
  EXPECT_FALSE(roles[0].ready->log);
  EXPECT_FALSE(roles[0].ready->timeout);
  EXPECT_TRUE(roles[1].command.empty());
}

TEST_F(Extends, FilesMayExtendOneAnotherFromOtherFolders) {
  file("deep/first.yaml",
       "name: first\nnodes: 2\nworkdir: data\nroles: {a: {kind: learner, command: [a]}}\n");
  file("deep/second.yaml", "name: second\nextends: first.yaml\nroles: {a: {gpus: 1}}\n");
  file("a.yaml", "name: a\nextends: deep/second.yaml\nnodes: 3\n");
  const auto read = this->read();
  EXPECT_EQ(read.nodes.value, 3U);
  EXPECT_EQ(read.roles[0].gpus.value, 1U);
  EXPECT_EQ(read.extends,
            (Words{(folder / "deep/first.yaml").string(), (folder / "deep/second.yaml").string()}));
}

}  // namespace
}  // namespace nlaunch::config
