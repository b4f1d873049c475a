#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "import/refusals.h"

/// A reason to refuse a script is a function and a row, in the file of its subject.
namespace nlaunch::import {

using Sentences = std::vector<std::string>;

struct Refusal {
  const char* id;
  Sentences (*found_in)(const Examined& script);
};

std::span<const Refusal> refusals_of_jobs();
std::span<const Refusal> refusals_of_programs();
std::span<const Refusal> refusals_of_waits();
std::span<const Refusal> refusals_of_files();

/// What `reason` says of each of them, without empty texts.
template <typename All, typename Reason>
Sentences of_each(const All& all, const Reason& reason) {
  Sentences texts;
  for (const auto& one : all)
    if (std::string text = reason(one); !text.empty()) texts.push_back(std::move(text));
  return texts;
}

/// The same of each role that is a program of the script.
template <typename Reason>
Sentences of_roles(const Examined& script, const Reason& reason) {
  return of_each(script.out.roles, [&](const ImportedRole& role) {
    return role.part ? reason(role, script.out.parts[*role.part]) : std::string();
  });
}

}  // namespace nlaunch::import
