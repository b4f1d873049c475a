#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/described.h"
#include "base/units.h"

/// The variables of the stack, by release: src/lint/variables/*.tsv, compiled in. All views are of these
/// tables, which stay as long as the program.
namespace nlaunch::lint {

/// The type of a variable's value, and so how it is read.
enum class ValueType {
  integer,     ///< one number; `values` can be a range "16..16384" or the numbers "0|1|2"
  boolean,     ///< 0 or 1, or what the owner accepts for them
  choice,      ///< one of `values`
  list,        ///< some of `values`, separated by commas
  interfaces,  ///< names of network interfaces, separated by commas
  path,
  text,  ///< anything
};
BOOST_DESCRIBE_ENUM(ValueType, integer, boolean, choice, list, interfaces, path, text)

/// One of the values that a `choice` or `list` accepts.
struct Accepted {
  std::string_view value;
  std::optional<Version> since;  ///< the first release that knows it, if it is not the variable's first
};

struct Variable {
  std::string_view name;
  std::string_view owner;  ///< "NCCL", "aws-ofi-nccl", "libfabric" ...
  std::optional<Version>
      first;  ///< the first release that reads it; nullopt: older than all examined releases
  std::optional<Version> last;  ///< the last release that reads it; nullopt: the newest still does
  ValueType type = ValueType::text;
  std::vector<Accepted> values;  ///< for an integer with a range: one entry, "LOW..HIGH"
  bool any_case = true;          ///< whether the owner accepts `values` in any case
  std::string_view fallback;     ///< the value when it is unset, in the newest release that reads it
  std::string_view history;      ///< "0 (2.18.1), -2 (2.19.1)": if the default changed; else empty
  std::string_view instead;      ///< the name that replaced it; empty: none
  std::string_view meaning;      ///< one line
  std::string_view source;       ///< "src/debug.cc@2.30.7", a page, or a pull request
};

/// The owner of variables, and what its table covers.
struct Owner {
  std::string_view name;
  std::string_view newest;                 ///< the newest examined release; empty: has no releases here
  std::vector<std::string_view> families;  ///< prefixes whose names the table covers completely: "NCCL_"
};

/// All variables, sorted by owner, then name. A name that two owners read is listed twice.
std::span<const Variable> variables();
std::span<const Owner> owners();
/// The variables with this name; the owner of its family comes first.
std::vector<const Variable*> find_variables(std::string_view name);
/// The owner that covers the whole family of `name`, or nullptr.
const Owner* owner_of_family(std::string_view name);
/// The known name that `name` was most likely meant to be.
std::optional<std::string> nearest_variable(std::string_view name);
/// True where `release` of its owner reads the variable.
bool reads(const Version& release, const Variable& variable);

/// A name that people set but that no release of anything reads.
struct Mistake {
  std::string_view name;
  std::string_view why;
  std::string_view instead;
  std::string_view source;
};
const Mistake* find_mistake(std::string_view name);

}  // namespace nlaunch::lint
