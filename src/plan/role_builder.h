#pragma once
#include <map>
#include <string>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "config/site.h"
#include "plan/build.h"
#include "plan/build_env.h"
#include "plan/plan.h"
#include "plan/references.h"

namespace nlaunch::plan {

/// A path in the file: `~` is the caller's home, a relative path starts at `base`.
std::string absolute(const std::string& path, const std::string& base, const std::string& home);

/// What the roles of an experiment share.
struct RolePlacement {
  const std::string& workdir;
  std::string home;
  const std::map<std::string, Library>& libraries;
};

/// Converts a role of the file to a role of the plan: names resolved, paths absolute, defaults filled in.
/// Errors go to `diagnostics`; all arguments must outlive this.
class RoleBuilder {
 public:
  RoleBuilder(const config::Experiment& experiment, const config::Site& site, PlanNames& names,
              const PlanOptions& options, RolePlacement place, Diagnostics& diagnostics);

  Role build(const config::Role& role);

 private:
  void add_launcher(Role& made, const config::Role& role);
  void add_wrapper(Role& made, const config::Role& role);
  void add_preload(Role& role, const config::Text& library);
  Throughput make_throughput(const config::Throughput& throughput, const config::Role& role);
  Fresh make_fresh(const config::Fresh& fresh, const config::Role& role);
  OnChange make_on_change(const config::OnChange& change, const config::Role& role);
  Alive make_alive(const config::Alive& alive, const config::Role& role);
  Ready make_ready(const config::Ready& ready, const config::Role& role);
  void check_http_port(const Located<ReadyServer>& server, const config::Role& role);

  const config::Experiment& experiment_;
  const config::Site& site_;
  PlanNames& names_;
  RolePlacement placement_;
  Diagnostics& diagnostics_;
  EnvBuilder env_;
};

}  // namespace nlaunch::plan
