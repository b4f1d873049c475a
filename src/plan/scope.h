#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/interpolation.h"
#include "config/experiment.h"
#include "config/site.h"

/// What `${...}` may name, and what a plan can already put in its place.
namespace nlaunch::plan {

/// The names that hold in one text of the files.
class NameScope {
 public:
  /// The caller's environment, for `${env.NAME}`.
  NameScope(const config::Experiment& experiment, const config::Site& site,
            const std::map<std::string, std::string>& caller);

  /// Resolves the `vars:`; cycles and unknown names become diagnostics.
  void resolve_vars(Diagnostics& diagnostics);
  [[nodiscard]] const std::map<std::string, std::string>& vars() const { return vars_; }

  /// `text` with all that the plan knows put in, what only a node knows kept. Mistakes become diagnostics at
  /// their place. `role`: whose text it is, or nullptr outside of roles, where `${self.*}` means nothing.
  std::string resolve(const config::Text& text, const config::Role* role, Diagnostics& diagnostics) const;

 private:
  [[nodiscard]] Lookup look_up(std::string_view name, const config::Role* role) const;
  [[nodiscard]] Lookup look_up_self(std::string_view rest, const config::Role* role) const;
  [[nodiscard]] Lookup look_up_role(std::string_view rest) const;
  [[nodiscard]] Lookup look_up_env(const std::string& name) const;
  [[nodiscard]] bool spawns(const config::Role& role) const;
  std::optional<std::string> resolve_var(const std::string& name, std::vector<std::string>& open,
                                         Diagnostics& diagnostics);

  const config::Experiment& experiment_;
  const config::Site& site_;
  const std::map<std::string, std::string>& caller_;
  std::map<std::string, std::string> vars_;
};

}  // namespace nlaunch::plan
