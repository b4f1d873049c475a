#pragma once
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

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
  Console(Write result, Write message)
      : result_(std::move(result)), message_(std::make_shared<Write>(std::move(message))) {}

  bool quiet = false;   ///< only errors and results
  bool plain = false;   ///< no line is drawn again
  bool footer = false;  ///< lines may be drawn again: both go to one terminal that understands ECMA-48
  /// Whether nlaunch has the terminal at this moment: else nothing is drawn or erased there. Empty: always.
  std::function<bool()> in_foreground;
  Paint result_paint{false};  ///< the colours for results
  Paint paint{false};         ///< the colours for messages

  // Except in `document`, control sequences are escaped, because a text may come from a file of another user.
  // Colours are kept if they are on. Lines that are wider than the terminal are broken between words.

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

  /// Until this is destroyed, the messages of the console that it came from, and of its copies, go elsewhere.
  class Diversion;
  [[nodiscard]] Diversion divert(Write write) const;

 private:
  Write result_;
  std::shared_ptr<Write> message_;
};

class Console::Diversion {
 public:
  Diversion(std::shared_ptr<Write> of, Write to)
      : of_(std::move(of)), before_(of_ ? std::exchange(*of_, std::move(to)) : Write()) {}
  ~Diversion() {
    if (of_) *of_ = std::move(before_);
  }
  Diversion(const Diversion&) = delete;
  Diversion& operator=(const Diversion&) = delete;

 private:
  std::shared_ptr<Write> of_;
  Write before_;
};

}  // namespace nlaunch::report
