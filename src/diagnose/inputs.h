#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/match.h"
#include "diagnose/scanner.h"

namespace nlaunch::diagnose {

/// Receives streams in order: of each its name, what is found in it, its end. They are numbered from 0.
class StreamSink : public Listener {
 public:
  virtual void on_stream(const std::string& name) = 0;
  /// `remark`: see Input.
  virtual void on_end(const StreamEnd& end, const std::string& remark) = 0;
  virtual void on_unread(const Diagnostics& why) = 0;
};

/// Receives the streams of all inputs.
class InputSink : public StreamSink {
 public:
  /// The streams that follow are the logs of this run.
  virtual void on_run(RunFolder run) = 0;
};

/// Reads what the paths name: files, the files of directories, the members of archives. Several files are
/// read and scanned at the same time, on up to `threads` threads; `sink` is called by the caller's thread,
/// in the order of the paths, and with the same calls whatever the number of threads.
void read_inputs(const std::vector<std::string>& paths, const Options& options, unsigned threads,
                 InputSink& sink);

}  // namespace nlaunch::diagnose
