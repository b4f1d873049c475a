#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "lint/lint_input.h"

/// The text of a shell script, by lines: what can be read without bash.
namespace nlaunch::lint {

bool is_variable_name(std::string_view text);

/// APPTAINERENV_NAME sets NAME inside a container: such a setting counts under the name that it has there.
void rename_in_container(Setting& setting);

/// The lines of a file, numbered from 1.
class SourceLines {
 public:
  explicit SourceLines(std::shared_ptr<const SourceFile> file);

  [[nodiscard]] const std::shared_ptr<const SourceFile>& file() const { return file_; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(lines_.size()); }
  /// Empty if there is no such line.
  [[nodiscard]] std::string_view line(std::uint32_t number) const;
  /// The last line of the command that starts on a line: backslashes and open quotes continue it.
  [[nodiscard]] std::uint32_t end_of_command(std::uint32_t number) const;
  /// The command's lines, as one text.
  [[nodiscard]] std::string command(std::uint32_t number) const;
  /// Where `name` is a separate word between two lines, preferably followed by `=`; a span without a file if
  /// it is not there.
  [[nodiscard]] SourceSpan find(std::string_view name, std::uint32_t first, std::uint32_t last) const;
  /// Where a text is between two lines; the whole first line if it is not there.
  [[nodiscard]] SourceSpan find_text(std::string_view text, std::uint32_t first, std::uint32_t last) const;
  /// The whole line without surrounding spaces.
  [[nodiscard]] SourceSpan whole(std::uint32_t number) const;

 private:
  std::shared_ptr<const SourceFile> file_;
  std::vector<std::string_view> lines_;
};

/// The lines on which commands start, in order: without comments, here-documents and continued lines.
std::vector<std::uint32_t> lines_of_commands(const SourceLines& lines);

/// The text without its comments, also those in the text of bash -c; the other lines stay where they are.
std::string without_comments(const SourceLines& lines);

/// True if the result of a function of the script is tested: `if work; then`, `work || exit`. Such a function
/// runs without errexit.
bool tests_a_function(const SourceLines& lines);

/// NAME in `NAME=$?`, `NAME=${?}` and `NAME="${PIPESTATUS[0]}"`, indented or not, if the line does nothing
/// else; nullopt for any other line.
std::optional<std::string> keeps_exit_code(std::string_view line);

/// The lines of the commands of a function; empty if the text does not have it.
std::vector<std::uint32_t> body_of_function(const SourceLines& lines, const std::string& name);

/// $NAME or ${NAME...}: one that a shell expands.
struct Expansion {
  std::string name;
  std::string rest;  ///< what follows the name in the braces: ":-1"; empty for $NAME
};
/// Those outside single quotes and not after a backslash, in order.
std::vector<Expansion> expansions_in(std::string_view text);

/// The words of a line after #SBATCH, as sbatch reads them: quotes group, # starts a comment.
std::vector<std::string> directive_words(std::string_view text);
/// "--nodes" for "-N"; the option itself if it has no other name.
std::string long_option(std::string_view option);
/// Parses words as options of sbatch or srun: short names become long, a value becomes "--name=value". Stops
/// at the first word that is not an option and returns its index; with `stray`, collects such words there
/// instead.
std::size_t read_options(const std::vector<std::string>& words, const SourceSpan& span,
                         std::vector<StepOption>& options, std::vector<StepOption>* stray);

/// The variables that a job is given: those of `--export=ALL,NAME=VALUE`, and `given`, which take precedence.
std::vector<std::string> variables_of_job(const std::vector<StepOption>& options,
                                          const std::vector<std::string>& given);

/// The names of variables that a text expands, or contains in quotes, as in programs that look them up.
std::string names_read(const SourceLines& lines);

}  // namespace nlaunch::lint
