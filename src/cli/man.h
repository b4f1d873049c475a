#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace nlaunch::cli {

/// A page for section 1 of the manual, in the macros of man(7), ASCII only.
struct ManPage {
  std::string name;  ///< of its file: "nlaunch-run.1"
  std::string text;
};

/// Pages of the program and of each command that help shows, from the same tables as help.
std::vector<ManPage> man_pages(const CLI::App& program);

/// `text` as roff, never a request: with -, \ and the quotes as they are, and `words` between backticks in
/// bold.
std::string roff(std::string_view text);

}  // namespace nlaunch::cli
