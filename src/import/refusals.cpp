#include "import/refusals.h"

#include <set>
#include <utility>

#include "import/refusals/refusal.h"

namespace nlaunch::import {

Diagnostics refusals_of(const Examined& script) {
  Diagnostics problems;
  std::set<std::string> said;
  for (const auto reasons :
       {refusals_of_jobs(), refusals_of_programs(), refusals_of_waits(), refusals_of_files()})
    for (const auto& reason : reasons)
      for (auto& text : reason.found_in(script))
        if (said.insert(text).second) problems.error(reason.id, {}, std::move(text));
  return problems;
}

}  // namespace nlaunch::import
