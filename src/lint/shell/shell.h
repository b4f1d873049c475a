#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"

/// Shell scripts, read without running them: which commands there are, with which words, where. What a word
/// becomes at run time is known as far as it is written there.
namespace nlaunch::lint {

/// A piece of a word.
struct Part {
  enum class Kind {
    text,      ///< as it stands
    variable,  ///< `$NAME`, `${NAME}`; `text` is the name
    unknown,   ///< a command's output, arithmetic, an expansion with an operator; `text` is what is
               ///< written there, or empty where that is long
  };
  Kind kind = Kind::text;
  std::string text;
};

struct Word {
  std::vector<Part> parts;
  SourceSpan span;
  bool quoted = false;  ///< some of it is in quotes

  /// The whole word where it has text alone.
  [[nodiscard]] std::optional<std::string> constant() const;
  /// With the values of variables; nothing where one is not known, or makes the word very long.
  [[nodiscard]] std::optional<std::string> resolve(
      const std::function<std::optional<std::string>(std::string_view)>& value_of) const;
  /// With `$NAME` for a variable, and `$…` for what is not known: for people.
  [[nodiscard]] std::string shown() const;
};

struct Assignment {
  std::string name;
  Word value;
  bool append = false;         ///< NAME+=value
  bool array = false;          ///< NAME=(…), NAME[…]=…: no environment takes it
  std::vector<Word> elements;  ///< of NAME=(…)
  SourceSpan span;             ///< of the name
};

struct Heredoc {
  std::string text;
  bool literal = false;  ///< its delimiter is quoted: nothing in it is expanded
  SourceSpan span;       ///< of its first line
};

/// A simple command.
struct Command {
  std::vector<Assignment> assignments;  ///< in front of the words
  std::vector<Word> words;
  std::vector<Heredoc> heredocs;
  SourceSpan span;
  bool sure = true;  ///< false: within a condition, a loop or a function, or behind && or ||
  bool conditional =
      false;             ///< within an if, a loop or a case, or behind || or a test: a function alone is none
  bool nested = false;   ///< within a command substitution
  bool guarded = false;  ///< its failure is looked at (`||`, `if`, `!`, `&&`, `while`): set -e does not act
  bool background = false;  ///< followed by &

  /// The first word, without folders; empty where it is not constant.
  [[nodiscard]] std::string name() const;
};

struct Comment {
  std::string text;  ///< with the #
  SourceSpan span;
};

/// Something that could not be read.
struct Unread {
  SourceSpan span;
  std::string message;
};

struct Script {
  std::shared_ptr<const SourceFile> file;
  std::vector<Command> commands;  ///< in the order of the text
  std::vector<Comment> comments;
  std::vector<std::string> uses;  ///< names of variables that are expanded anywhere, each once, sorted
  std::vector<Unread> unread;
};

/// Reads a script. Whatever the text is, this ends and tells what it could not read, each kind once.
Script read_shell(const std::shared_ptr<const SourceFile>& file);

}  // namespace nlaunch::lint
