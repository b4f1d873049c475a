#pragma once
#include <re2/re2.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/described.h"

/// The texts that identify failures: the contents of src/diagnose/signatures/*.tsv, compiled in.
namespace nlaunch::diagnose {

enum class Kind {
  root,         ///< why a run failed
  fallback,     ///< likewise, if no other signature matches the line
  consequence,  ///< follows from something else; the cause only if nothing else is found
  fatal,        ///< a consequence that proves that a process failed
  hint,         ///< if no other signature matches the line; a failure only together with another one
  note,         ///< worth knowing, not a failure
  clue,         ///< a warning that says why, if a failure of its class follows in the same file
  fact,         ///< for the analyses, which know its id
  end,          ///< a program reports success
};
BOOST_DESCRIBE_ENUM(Kind, root, fallback, consequence, fatal, hint, note, clue, fact, end)

struct Signature {
  std::string id;        ///< "nccl.no-interface"
  std::string category;  ///< the class of its finding: "no-socket-interface"
  Kind kind = Kind::note;
  int weight = 0;       ///< higher weights explain more; see docs/diagnose.md
  std::string pattern;  ///< RE2's syntax. Its named groups give the origin: see Who
  std::string why;      ///< what it means. In this and in `fix`, {NAME} stands for what that group matched
  std::string fix;
  std::string source;  ///< "NVIDIA/nccl src/init.cc@2.30.7", an issue, a page

  /// Compiled on first use. Any thread may call it.
  [[nodiscard]] const re2::RE2& regex() const;

 private:
  struct Compiled {
    std::once_flag once;
    std::unique_ptr<const re2::RE2> regex;
  };
  std::shared_ptr<Compiled> compiled_ = std::make_shared<Compiled>();
};

/// All of them, by table, then in table order.
std::span<const Signature> signatures();
const Signature* find_signature(std::string_view id);

}  // namespace nlaunch::diagnose
