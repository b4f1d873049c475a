#pragma once
#include <string>
#include <string_view>
#include <vector>

/// The reference pages of docs/reference/: written from the tables in the code.
namespace nlaunch::report {

struct ReferencePage {
  std::string_view name;  ///< of the file, without .md
  std::string (*text)();
};
/// All of them.
const std::vector<ReferencePage>& reference_pages();

}  // namespace nlaunch::report
