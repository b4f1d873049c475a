#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lint/shell/shell.h"

/// What the words of a script come to in an experiment, as far as that can be said without running it.
namespace nlaunch::import {

/// In a remark: the line of the script that it is about.
constexpr std::string_view kThatLine = "\x01";

struct Piece {
  enum class Kind {
    text,   ///< of the experiment: may hold references
    head,   ///< the address of the job's first node
    shell,  ///< only a shell on the node knows: `text` is what is written there
  };
  Kind kind = Kind::text;
  std::string text;
  bool pattern = false;  ///< unquoted `*`, `?`, `{a,b}` or `$(…)`: a shell makes words of it
};

/// Why a value may be another one when the script runs.
struct Doubt {
  std::uint32_t line = 0;  ///< of the script; 0: of the command that has the value
  std::string text;

  bool operator==(const Doubt&) const = default;
};

struct Value {
  std::vector<Piece> pieces;
  const lint::Word* word = nullptr;  ///< that it was read from, as long as its script is there
  std::vector<Doubt> doubts{};

  static Value just(std::string text);
  static Value shell(std::string written);
  static Value head();

  [[nodiscard]] bool has(Piece::Kind kind) const;
  /// The whole text; nothing where a piece of it is of another kind.
  [[nodiscard]] std::optional<std::string> text() const;
  /// The text with what is not known left out: to look for something in it.
  [[nodiscard]] std::string known() const;
  void add(Piece piece);
  void doubt(Doubt one);
};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

/// What the name of a variable consists of.
constexpr bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// A text as a value that holds no reference.
std::string literal(std::string_view text);

/// The part that a word consists of, or nullptr; an empty text, of the quotes around it, does not count.
const lint::Part* only_part(const lint::Word& word);
/// Bash looks for files with such names where a variable without quotes has it.
bool is_glob(std::string_view text);

/// A text as a script.
lint::Script script_of(std::string text);
/// What stands between double quotes, or in a heredoc, as a word.
lint::Word quoted_word(std::string_view text);
lint::Word word_of(const lint::Heredoc& heredoc);

class Values {
 public:
  /// Numbers of the job, by Slurm's names: SLURM_NNODES and its kin.
  void set_number(const std::string& name, std::uint32_t number) { numbers_[name] = number; }
  /// What the script gives a variable. `sure`: in the order of the text; else the first value stays, and
  /// another one is doubted. `conditional`: within an if, a loop or a case.
  void assign(const lint::Assignment& assignment, bool sure, std::uint32_t line, bool conditional = false);
  /// A variable of which only the running script knows the value. One that was known keeps it.
  void doubt(const std::string& name, Doubt why);
  void forget(const std::string& name);
  /// What is assigned from here on is a shell's own, until that ends.
  [[nodiscard]] std::size_t begin_shell();
  void end_shell(std::size_t begun);
  /// The script gives it a value.
  [[nodiscard]] bool knows(const std::string& name) const { return known_.contains(name); }
  [[nodiscard]] Value of_variable(const std::string& name) const { return variable(name); }
  void set_venv(const std::string& path) { venv_ = path; }

  /// What `$1`, `$@` and their kin stand for, within a call of a function; nothing: the script's own
  /// arguments.
  using Given = std::optional<std::vector<Value>>;
  Given give(Given arguments) { return std::exchange(given_, std::move(arguments)); }
  [[nodiscard]] const Given& given() const { return given_; }
  void shift(std::size_t count);

  /// "$@": all arguments.
  static bool is_arguments(const lint::Word& word);
  [[nodiscard]] Value of(const lint::Word& word) const { return of(word, 0); }
  /// The words that a shell makes of one: an array's elements, a variable's words. Arguments of the script
  /// that are passed through ("$@") are none.
  [[nodiscard]] std::vector<Value> split(const lint::Word& word) const { return split(word, 0); }
  /// The script that `bash -c` or `eval` would get in this word.
  [[nodiscard]] std::string inner_script(const lint::Word& word) const { return inner(word, 0); }
  /// Line of the variable that stands for an argument of the script, "${vars.NAME}", and its default.
  struct Argument {
    std::string name, fallback;
    std::uint32_t line = 0;
  };
  [[nodiscard]] const std::map<std::string, Argument>& arguments() const { return arguments_; }

 private:
  struct Known {
    lint::Word word;
    std::vector<lint::Word> elements;
    bool array = false;
    Value value;
  };
  [[nodiscard]] Value of(const lint::Word& word, unsigned depth) const;
  [[nodiscard]] std::vector<Value> split(const lint::Word& word, unsigned depth) const;
  [[nodiscard]] std::string inner(const lint::Word& word, unsigned depth) const;
  [[nodiscard]] Value variable(const std::string& name) const;
  [[nodiscard]] Value expansion(const std::string& written, unsigned depth) const;
  [[nodiscard]] Value braces(const std::string& written, unsigned depth) const;
  /// `${NAME[…]}` and `${#NAME[@]}`, by what stands in the brackets.
  [[nodiscard]] Value element(const std::string& name, std::string_view index, const std::string& written,
                              unsigned depth) const;
  [[nodiscard]] Value count_of(const std::string& name, const std::string& written) const;
  [[nodiscard]] Value output(const std::string& written, unsigned depth) const;
  [[nodiscard]] Value read(std::string_view text, unsigned depth) const;
  [[nodiscard]] std::optional<long> number(const std::string& name) const;
  /// False once variables within variables have been looked up too often.
  [[nodiscard]] bool may_go_on(unsigned depth) const;
  [[nodiscard]] const Known* array(const lint::Word& word) const;
  [[nodiscard]] std::vector<Value> arguments_in(const lint::Word& word) const;

  std::map<std::string, std::uint32_t> numbers_;
  void append(Known& known, const lint::Assignment& assignment);
  void keep(const std::string& name);

  std::map<std::string, Known> known_;
  std::vector<std::pair<std::string, std::optional<Known>>> kept_;  ///< values from before a shell's own
  unsigned shells_ = 0;
  std::map<std::string, Argument> arguments_;
  std::string venv_;
  Given given_;
  mutable std::size_t lookups_ = 0;
};

}  // namespace nlaunch::import
