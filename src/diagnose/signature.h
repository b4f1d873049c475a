#pragma once
#include <re2/re2.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/described.h"

/// The texts by which failures are known: what src/diagnose/signatures/*.tsv say, compiled in.
namespace nlaunch::diagnose {

enum class Kind {
  root,         ///< why a run failed
  fallback,     ///< likewise, where no other signature knows the line
  consequence,  ///< follows of something else; the cause only where nothing else is found
  fatal,        ///< a consequence that proves that a process ended in failure
  hint,         ///< where no other signature knows the line; a failure only beside another one
  note,         ///< worth knowing, no failure
  clue,         ///< a warning that tells why, where a failure of its class follows in the same file
  fact,         ///< for the analyses, which know its id
  end,          ///< a program says that it came to a good end
};
BOOST_DESCRIBE_ENUM(Kind, root, fallback, consequence, fatal, hint, note, clue, fact, end)

struct Signature {
  std::string id;        ///< "nccl.no-interface"
  std::string category;  ///< the class of its finding: "no-socket-interface"
  Kind kind = Kind::note;
  int weight = 0;       ///< what explains more weighs more; see docs/diagnose.md
  std::string pattern;  ///< RE2's syntax. Its named groups say who it is about: see Who
  std::string why;      ///< what it means
  std::string fix;
  std::string source;  ///< "NVIDIA/nccl src/init.cc@2.30.7", an issue, a page

  /// Compiled at its first use.
  [[nodiscard]] const re2::RE2& regex() const;

 private:
  mutable std::shared_ptr<const re2::RE2> compiled_;
};

/// All of them, by table, then as they stand there.
std::span<const Signature> signatures();
const Signature* find_signature(std::string_view id);

}  // namespace nlaunch::diagnose
