#pragma once
#include <filesystem>
#include <memory>

#include "report/console.h"
#include "supervise/terminal.h"

namespace nlaunch::session {

/// Shows what a run is doing while its processes run: a footer of three lines where the console draws one,
/// else a line every 30 s while a stage waits for a process. While nlaunch is in the background or stopped,
/// nothing is drawn. It reads the run directory as `nlaunch top` does, on a thread of its own: a file system
/// that does not answer delays nothing else.
class StatusLines {
 public:
  /// `terminal` must outlive this. Until this is destroyed, messages of `console` go to the terminal, so that
  /// a standard error that nobody reads does not block supervision.
  StatusLines(const std::filesystem::path& run_folder, supervise::RunTerminal& terminal,
              const report::Console& console);
  /// Removes the footer.
  ~StatusLines();
  StatusLines(const StatusLines&) = delete;
  StatusLines& operator=(const StatusLines&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the thread, which can outlive this
  report::Console::Diversion diversion_;
};

}  // namespace nlaunch::session
