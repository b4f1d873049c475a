#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "import/import.h"
#include "import/values.h"
#include "lint/lint_input.h"

/// What a script does, command by command, as far as an import needs it.
namespace nlaunch::import {

/// A program that the script starts.
struct Launch {
  std::vector<Value> container;  ///< the tool, its options and the image: the program is in there
  bool in_image = false;         ///< in that, or in a container that is left out
  std::vector<Value> prefix;     ///< `uv run`: in front of the program
  std::vector<Value> words;      ///< the program first
  std::string program;           ///< without folders: "python"
  std::uint32_t line = 0;
  bool background = false;
  bool step = false;                                         ///< through srun
  bool passes_arguments = false;                             ///< "$@"
  std::string output;                                        ///< the file that gets its output, as written
  std::string loop;                                          ///< what is to be said of the loop around it
  std::vector<std::pair<std::string, std::string>> options;  ///< of srun, by long names
  struct Variable {
    std::string name;
    Value value;
    std::uint32_t line = 0;
    bool weak = false;  ///< of srun --export: one that the script exports goes before it
  };
  std::vector<Variable> variables;  ///< for this command alone
  std::vector<Remark> remarks;      ///< on what was taken off

  [[nodiscard]] const Value* variable(std::string_view name) const;
  /// The value of the option, `--name VALUE` or `--name=VALUE`; hyphens and underscores are the same.
  [[nodiscard]] std::optional<std::string> option(std::string_view name) const;
  /// Some word ends with the text.
  [[nodiscard]] bool mentions(std::string_view text) const;
};

struct Exported {
  std::string name;
  Value value;
  std::uint32_t line = 0;
  bool exported = false;
  bool sure = true;
};

/// An address that a loop asks until it answers.
struct Poll {
  std::string url;
  std::uint32_t line = 0;
  std::string timeout;  ///< empty: no limit was found
};

/// The script's commands, sorted.
struct Doings {
  std::vector<std::string> lines;    ///< of the script
  std::vector<std::string> secrets;  ///< texts that nobody should read
  Values values;
  std::vector<Launch> launches;
  std::vector<Exported> variables;  ///< that the script sets, the last of each name, in their order
  std::vector<std::pair<std::string, std::uint32_t>> unset;
  std::vector<Poll> polls;
  std::optional<std::uint32_t> resubmits;  ///< the line where the script submits itself again
  std::uint32_t most_resubmits = 0;
  bool requeues = false;
  ImportedEntry workdir, venv;
  std::string modules_init;
  bool modules_reset = false;
  std::vector<ImportedEntry> modules;
  std::vector<ImportedEntry> srun;  ///< options that every step wants
  std::set<std::string> left_out;
  std::vector<std::pair<Destination, Remark>> remarks;
};

/// Something that a person has to know of a line of the script.
void remark(Doings& doings, Destination destination, std::uint32_t line, std::string text);

/// `numbers`: what Slurm would set, by name.
Doings read_doings(const lint::LintInput& input,
                   const std::vector<std::pair<std::string, std::uint32_t>>& numbers);

}  // namespace nlaunch::import
