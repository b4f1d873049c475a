#pragma once
#include <string_view>
#include <vector>

/// The files of src/lint/variables/, compiled in.
namespace nlaunch::lint {

struct TableText {
  std::string_view name;  ///< "nccl.tsv"
  std::string_view text;
};
const std::vector<TableText>& variable_tables();

}  // namespace nlaunch::lint
