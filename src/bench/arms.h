#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::bench {

/// One of the things that are compared: a plan with some options changed.
struct Arm {
  std::string name;  ///< "NCCL_PROTO=LL", for several --vary with ", " between; "as planned" without any
  std::vector<std::string> set;   ///< as after --set
  std::vector<std::string> with;  ///< as after --with
  std::vector<std::string> env;   ///< as after --env
};

/// The arms of `vary`: each "KEY=A,B,...", several of them crossed. KEY is a variable (NCCL_PROTO, for all
/// roles), ROLE:VARIABLE, `with` (overlays), ROLE.KEY or all.KEY (a role's settings), or whatever else --set
/// accepts. The value `default` changes nothing; `none` is no overlay and no preload. A comma within brackets
/// or quotes does not separate values.
Result<std::vector<Arm>> make_arms(const std::vector<std::string>& vary,
                                   const std::vector<std::string>& roles);

}  // namespace nlaunch::bench
