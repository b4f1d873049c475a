#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/described.h"
#include "base/units.h"

/// The variables of the stack, by release: what src/lint/variables/*.tsv say, compiled in.
namespace nlaunch::lint {

/// What a variable's value is, and so how it is read.
enum class ValueType {
  integer,     ///< one number; `values` may hold a range "16..16384" or the numbers "0|1|2"
  boolean,     ///< 0 or 1, or what the owner takes for them
  choice,      ///< one of `values`
  list,        ///< some of `values`, with commas between
  interfaces,  ///< names of network interfaces, with commas between
  path,
  text,  ///< anything
};
BOOST_DESCRIBE_ENUM(ValueType, integer, boolean, choice, list, interfaces, path, text)

/// One of the values that a `choice` or `list` takes.
struct Accepted {
  std::string value;
  std::optional<Version> since;  ///< the first release that knows it, where that is not the variable's first
};

struct Variable {
  std::string name;
  std::string_view owner;  ///< "NCCL", "aws-ofi-nccl", "libfabric" ...
  std::optional<Version>
      first;  ///< the first release that reads it; nothing: older than all that were looked at
  std::optional<Version> last;  ///< the last release that reads it; nothing: the newest still does
  ValueType type = ValueType::text;
  std::vector<Accepted> values;  ///< of an integer with a range: one, "LOW..HIGH"
  bool any_case = true;          ///< whether the owner takes `values` in any case
  std::string fallback;          ///< the value when it is unset, in the newest release that reads it
  std::string history;           ///< "0 (2.18.1), -2 (2.19.1)": where the default changed; else empty
  std::string instead;           ///< the name that replaced it; empty: none did
  std::string meaning;           ///< one line
  std::string source;            ///< "src/debug.cc@2.30.7", a page, or a pull request
};

/// Whose variables these are, and what its table covers.
struct Owner {
  std::string_view name;
  std::string newest;                 ///< the newest release that was looked at; empty: has no releases here
  std::vector<std::string> families;  ///< prefixes of which the table has every name: "NCCL_"
};

/// All of them, by owner, then name. A name that two owners read is there twice.
std::span<const Variable> variables();
std::span<const Owner> owners();
/// The variables of this name: of the owner whose family it is first.
std::vector<const Variable*> find_variables(std::string_view name);
/// The owner that has every name of the family that `name` belongs to, or nullptr.
const Owner* owner_of_family(std::string_view name);
/// The known name that `name` was most likely meant to be.
std::optional<std::string> nearest_variable(std::string_view name);
/// True where `release` of its owner reads the variable.
bool reads(const Version& release, const Variable& variable);

/// A name that people set and no release of anything reads.
struct Mistake {
  std::string name;
  std::string why;
  std::string instead;
  std::string source;
};
const Mistake* find_mistake(std::string_view name);

}  // namespace nlaunch::lint
