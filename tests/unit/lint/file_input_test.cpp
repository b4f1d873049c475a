#include "lint/file_input.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

FileKind kind(const std::string& name, const std::string& text = {}) {
  return kind_of(a_file(name, text));
}

TEST(FileKind, TheNameTells) {
  EXPECT_EQ(kind("a/.env"), FileKind::dotenv);
  EXPECT_EQ(kind(".env.local"), FileKind::dotenv);
  EXPECT_EQ(kind("launch.env"), FileKind::dotenv);
  EXPECT_EQ(kind("nccl.conf"), FileKind::nccl_conf);
  EXPECT_EQ(kind("/etc/nccl.conf"), FileKind::nccl_conf);
  EXPECT_EQ(kind("job.sh"), FileKind::script);
  EXPECT_EQ(kind("job"), FileKind::script);
  EXPECT_EQ(kind(".env/job.sh"), FileKind::script);
  EXPECT_EQ(kind("my.environment"), FileKind::script);
  EXPECT_EQ(kind("a.conf/job"), FileKind::script);
}

TEST(FileKind, OfYamlTheKeysTell) {
  for (const std::string name : {"a.yaml", "a.yml"}) {
    EXPECT_EQ(kind(name, "version: v2\ntasks:\n- name: a\n"), FileKind::beaker);
    EXPECT_EQ(kind(name, "tasks:"), FileKind::beaker);
    EXPECT_EQ(kind(name, "scheduler: slurm\n"), FileKind::profile);
    EXPECT_EQ(kind(name, "# a comment\nextends: base\n"), FileKind::profile);
    EXPECT_EQ(kind(name, "match: {}\n"), FileKind::profile);
    EXPECT_EQ(kind(name, "scheduler: slurm\nroles: {}\n"), FileKind::experiment);
    EXPECT_EQ(kind(name, "roles: {}\n"), FileKind::experiment);
    EXPECT_EQ(kind(name, ""), FileKind::experiment);
  }
  EXPECT_EQ(kind("a.yaml", "roles: {}\n  tasks: []\n"), FileKind::experiment);
  EXPECT_EQ(kind("a.yaml", "tasksy: []\n"), FileKind::experiment);
  EXPECT_EQ(kind("a.yaml", "tasks\nroles: {}\n"), FileKind::experiment);
}

LintInput read(const std::string& name, const std::string& text) {
  auto input = file_input(a_file(name, text));
  return input ? std::move(*input) : LintInput();
}

/// "NAME=VALUE", with "?" for a value that is not known.
std::string settings_of(const Environment& environment) {
  std::string out;
  for (const auto& one : environment.settings) {
    out += one.span.where() + " " + one.name + (one.value ? "=" + *one.value : "?") + "\n";
  }
  return out;
}

TEST(FileInput, EachKindIsReadInItsOwnWay) {
  EXPECT_EQ(settings_of(read("a.env", "A='b c' # d\n").environments.at(0)), "a.env:1:1 A=b c\n");
  EXPECT_EQ(settings_of(read("a.conf", "A='b c' # d\n").environments.at(0)), "a.conf:1:1 A='b c' # d\n");
  EXPECT_EQ(settings_of(read("a.sh", "export A='b c' # d\n").environments.at(0)), "a.sh:1:8 A=b c\n");
}

constexpr const char* kSpec =
    "version: v2\n"
    "tasks:\n"
    "- name: train\n"
    "  replicas: 4\n"
    "  envVars:\n"
    "  - name: NCCL_DEBUG\n"
    "    value: INFO\n"
    "  - value: nameless\n"
    "  - name: HF_TOKEN\n"
    "    secret: MY_TOKEN\n"
    "  - name: EMPTY\n"
    "- name: serve\n"
    "  replicas: 2\n";

TEST(FileInput, ABeakerSpecHasAnEnvironmentForEachTask) {
  const auto input = read("spec.yaml", kSpec);
  ASSERT_EQ(input.environments.size(), 2U);
  EXPECT_EQ(input.environments[0].name, "train");
  EXPECT_EQ(settings_of(input.environments[0]),
            "spec.yaml:6:11 NCCL_DEBUG=INFO\nspec.yaml:9:11 HF_TOKEN?\nspec.yaml:11:11 EMPTY=\n");
  EXPECT_EQ(input.environments[1].name, "serve");
  EXPECT_TRUE(input.environments[1].settings.empty());
  EXPECT_EQ(input.nodes, 4U);
  EXPECT_EQ(input.files.size(), 1U);
  EXPECT_FALSE(input.script);
}

TEST(FileInput, ATaskWithoutReplicasHasOneNode) {
  EXPECT_EQ(read("a.yaml", "tasks:\n- name: a\n").nodes, 1U);
  EXPECT_EQ(read("a.yaml", "tasks:\n- replicas: [3]\n").nodes, 1U);
  EXPECT_EQ(read("a.yaml", "tasks: []\n").nodes, std::nullopt);
  EXPECT_EQ(read("a.yaml", "tasks:\n- replicas: 2\n- replicas: 8\n- name: a\n").nodes, 8U);
  EXPECT_EQ(read("a.yaml", "tasks:\n- replicas: 2\n").environments.at(0).name, "");
}

TEST(FileInput, ASpecThatIsNoYamlIsAFailure) {
  EXPECT_FALSE(file_input(a_file("a.yaml", "tasks:\n- {\n")));
  EXPECT_TRUE(file_input(a_file("a.yaml", "tasks:\n- {}\n")));
}

TEST(FileInput, TheArgumentsOfAShellAreAScript) {
  const auto input =
      read("a.yaml",
           "tasks:\n- name: a\n  command: [bash, -c]\n  arguments:\n"
           "  - |\n    module load brics/nccl\n    export NCCL_DEBUG=INFO\n    echo \"$MINE\"\n"
           "  envVars:\n  - {name: A, value: b}\n");
  ASSERT_EQ(input.environments.size(), 1U);
  EXPECT_EQ(settings_of(input.environments[0]),
            "a.yaml:10:12 A=b\na.yaml:5 (arguments):2:8 NCCL_DEBUG=INFO\n");
  ASSERT_EQ(input.modules.size(), 1U);
  EXPECT_EQ(input.modules[0].name, "brics/nccl");
  ASSERT_TRUE(input.script);
  EXPECT_EQ(input.script->file->name, "a.yaml:5 (arguments)");
  EXPECT_EQ(input.files.size(), 2U);
  ASSERT_EQ(input.readings.size(), 1U);
  EXPECT_NE(input.readings[0].text.find("MINE"), std::string::npos);
}

TEST(FileInput, OfALoginShellToo) {
  EXPECT_TRUE(read("a.yaml", "tasks:\n- command: [bash, -lc]\n  arguments: [a]\n").script);
  EXPECT_TRUE(read("a.yaml", "tasks:\n- command: [bash, -e, -c]\n  arguments: [a]\n").script);
}

TEST(FileInput, OfOtherCommandsTheyAreWords) {
  EXPECT_FALSE(read("a.yaml", "tasks:\n- command: [python, -m]\n  arguments: [a]\n").script);
  EXPECT_FALSE(read("a.yaml", "tasks:\n- command: [bash, -c]\n  arguments: []\n").script);
  EXPECT_FALSE(read("a.yaml", "tasks:\n- command: [bash, -c]\n").script);
  EXPECT_FALSE(read("a.yaml", "tasks:\n- arguments: [a]\n").script);
}

TEST(FileInput, WhatIsNoTextIsSaidToBeNone) {
  const auto input = read("core", std::string("a\0b", 3));
  EXPECT_EQ(found("unreadable", input), Texts{"warning core not a text file: it contains NUL bytes"});
  EXPECT_EQ(input.files.size(), 1U);
  EXPECT_EQ(input.environments.size(), 1U);
}

}  // namespace
}  // namespace nlaunch::lint
