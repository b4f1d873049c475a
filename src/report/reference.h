#pragma once
#include <string>
#include <string_view>
#include <vector>

/// The pages of docs/reference/, generated from the tables in the code.
namespace nlaunch::report {

struct ReferencePage {
  std::string_view name;  ///< of the file, without .md
  std::string (*text)();
};
/// All of them.
const std::vector<ReferencePage>& reference_pages();

}  // namespace nlaunch::report
