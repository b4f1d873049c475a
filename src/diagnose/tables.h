#pragma once
#include <string_view>
#include <vector>

namespace nlaunch::diagnose {

/// A table of signatures as it is in src/diagnose/signatures/.
struct TableText {
  std::string_view name;
  std::string_view text;
};
const std::vector<TableText>& signature_tables();

}  // namespace nlaunch::diagnose
