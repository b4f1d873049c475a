#pragma once
#include <functional>
#include <string_view>

#include "base/diagnostic.h"
#include "report/table.h"

namespace nlaunch::report {

/// Where a command's words go: results to one place, everything else to another. A value, handed down from
/// the command line; a test hands down one that records.
class Console {
 public:
  using Write = std::function<void(std::string_view)>;

  /// Writes nothing.
  Console() = default;
  /// `result` and `message` are called with whole lines.
  Console(Write result, Write message) : result_(std::move(result)), message_(std::move(message)) {}

  bool quiet = false;         ///< errors and results alone
  Paint result_paint{false};  ///< the colours for results
  Paint paint{false};         ///< the colours for messages

  // What might act on a terminal is shown escaped in all that follows, but for `document`: it may come from a
  // file of somebody else's. Colours alone pass, where they are on.

  /// What the command was asked for.
  void result(std::string_view text) const;
  /// The same, byte for byte: a file that is made, or the output of another program.
  void document(std::string_view bytes) const;
  /// Whatever else a person should read; with its own newline.
  void say(std::string_view text) const;
  /// "note: SENTENCE", unless quiet.
  void note(std::string_view sentence) const;
  /// "warning: SENTENCE", unless quiet.
  void warn(std::string_view sentence) const;
  /// Each with its place and its hint. Returns the exit code for wrong input.
  int error(const Diagnostics& diagnostics) const;

 private:
  Write result_;
  Write message_;
};

}  // namespace nlaunch::report
