#pragma once
#include <functional>
#include <string_view>

#include "base/diagnostic.h"
#include "report/table.h"

namespace nlaunch::report {

/// Where the output of a command goes: results to one place, everything else to another. A value that the
/// command line passes down; a test passes one that records.
class Console {
 public:
  using Write = std::function<void(std::string_view)>;

  /// Writes nothing.
  Console() = default;
  /// `result` and `message` are called with whole lines.
  Console(Write result, Write message) : result_(std::move(result)), message_(std::move(message)) {}

  bool quiet = false;         ///< only errors and results
  Paint result_paint{false};  ///< the colours for results
  Paint paint{false};         ///< the colours for messages

  // Except in `document`, control sequences are escaped, because a text may come from a file of another user.
  // Colours are kept if they are on.

  /// The requested result.
  void result(std::string_view text) const;
  /// The same, byte for byte: a generated file, or the output of another program.
  void document(std::string_view bytes) const;
  /// Any other message for the user; must include its newline.
  void say(std::string_view text) const;
  /// "note: SENTENCE", unless quiet.
  void note(std::string_view sentence) const;
  /// "warning: SENTENCE", unless quiet.
  void warn(std::string_view sentence) const;
  /// Each with its location and its hint. Returns the exit code for bad input.
  int error(const Diagnostics& diagnostics) const;

 private:
  Write result_;
  Write message_;
};

}  // namespace nlaunch::report
