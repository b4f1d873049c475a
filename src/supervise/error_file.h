#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/secrets.h"
#include "base/units.h"

/// The file in which a program with PyTorch's `@record` leaves the exception that ends it.
namespace nlaunch::supervise {

/// An exception that nothing caught. Secrets are masked.
struct RecordedError {
  std::string type;       ///< "RuntimeError"; empty if the message does not begin with one
  std::string message;    ///< may have several lines; at most 2,000 bytes
  std::string traceback;  ///< as Python prints it, with the exceptions that led to it; else the message
  Duration at{};          ///< since 1970
  Duration within{};      ///< it happened at most this long after `at`
};

/// What `text` records, if it was written at `written` (since 1970). Nothing if it is not of the form
/// {"message": {"message": "RuntimeError: x", "extraInfo": {"py_callstack": "...", "timestamp": "170..."}}}
/// or
/// {"message": "x", "timestamp": 170...}: torch/distributed/elastic/multiprocessing/errors/error_handler.py
/// and __init__.py (ProcessFailure), 1.13 to 2.13. The timestamp there is in whole seconds; the time of
/// writing is exact, unless a launcher (torchrun) has copied the record of one of its workers.
std::optional<RecordedError> parse_error(std::string_view text, Duration written, const Masker& masker);

/// The same of a file; nothing if there is none, or it is not a regular file of at most 1 MiB.
std::optional<RecordedError> read_error(const std::filesystem::path& file, const Masker& masker);

}  // namespace nlaunch::supervise
