#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "import/commands.h"

namespace nlaunch::import {

/// From a program that the script starts to a role: what all roles have, whatever their work is. All
/// arguments outlive this.
class RoleMaker {
 public:
  RoleMaker(const Doings& doings, Imported& out) : doings_(doings), out_(out) {}

  /// What the first node's name stands for from here on: the hosts of the role that runs there.
  void set_head(std::string head) { head_ = std::move(head); }
  [[nodiscard]] const std::string& head() const { return head_; }

  /// Its name, container, variables and preload, with what a person has to know of them; the command is for
  /// set_command, since some of it may be nlaunch's work.
  ImportedRole make(const Launch& launch, std::string name, RoleKind kind);
  /// With what may be another one when the script runs.
  void set_command(ImportedRole& made, const std::vector<Value>& words) const;

 private:
  std::string unused(std::string name) const;
  void add_variable(ImportedRole& made, const Launch::Variable& variable);
  void add_preload(ImportedRole& made, const Value& value, std::uint32_t line);
  std::string library(const std::string& path, std::uint32_t line);
  [[nodiscard]] bool is_exported(const std::string& name) const;
  [[nodiscard]] bool is_only_the_scripts(const std::string& name) const;

  const Doings& doings_;
  Imported& out_;
  std::string head_;
};

/// The command line of a program, with what stands in front of it: `uv run`.
std::vector<Value> all_words(const Launch& launch);

}  // namespace nlaunch::import
