#pragma once
#include <set>
#include <string>

#include "shell/failing.h"
#include "shell/guarded.h"
#include "shell/notes.h"
#include "shell/pipes.h"
#include "shell/words.h"
#include "shell/written.h"

namespace nlaunch::shell {

/// Follows the output of the programs that do not run, which is empty here: who prints it into which pipe,
/// and who looks for something in it.
class WatchedOutput {
 public:
  /// All arguments must outlive this object.
  WatchedOutput(const Written& written, const Notes& notes, const Pipes& pipes, const Failing& failing)
      : written_(written), notes_(notes), pipes_(pipes), failing_(failing) {}

  /// A program runs here; it may print what it reads, `tail -1 train.log |`.
  void passes_on(const ProgramStart& start, const Words& argv);
  /// `tail -f train.log |` is answered, and its reader watches that output.
  void follows(const ProgramStart& start);

  /// True for a program that looks for something in that output: `grep -q ready server.log`,
  /// `cat server.log | grep -q ready`, and any `tail -f`, which does not end.
  [[nodiscard]] bool is_watched_by(const ProgramStart& start, const Words& argv) const;
  /// True if such a program finds what it looks for.
  [[nodiscard]] bool is_found_by(const ProgramStart& start, const Words& argv) const;
  /// True if nothing tells what it finds: the output is that of a program that has ended, or that fails.
  [[nodiscard]] bool is_guessed_by(const ProgramStart& start, const Words& argv) const;

 private:
  [[nodiscard]] bool is_output(const ProgramStart& start, const std::string& word) const;
  [[nodiscard]] bool names_output(const ProgramStart& start, const Words& argv) const;
  [[nodiscard]] bool looks_for_failure(const ProgramStart& start, const Words& argv) const;
  [[nodiscard]] bool may_see_failure(const ProgramStart& start, const Words& argv) const;

  const Written& written_;
  const Notes& notes_;
  const Pipes& pipes_;
  const Failing& failing_;
  std::set<std::string> shows_output_;    ///< pipes into which something prints the output of such a program
  std::set<std::string> shows_finished_;  ///< those of one that has run
};

}  // namespace nlaunch::shell
