#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "record/redactor.h"
#include "record/secret_scan.h"

namespace nlaunch::record {

/// Passes on a text of any length with secrets masked and, if there is a redactor, names replaced. Finds a
/// secret across the boundaries of what is fed, also in lines of any length; memory: a few megabytes.
class TextFilter {
 public:
  using Sink = std::function<bool(std::string_view)>;
  /// Where a secret of one name was masked.
  struct Masked {
    std::uint64_t count = 0;
    std::vector<std::uint64_t> lines;  ///< the first twenty, from 1
  };
  /// `redactor` may be null. Both must outlive this object.
  TextFilter(const SecretScanner& scanner, Redactor* redactor, Sink sink)
      : scanner_(scanner), redactor_(redactor), sink_(std::move(sink)) {}

  /// False once the sink has returned false.
  bool feed(std::string_view text);
  bool finish();
  /// By name of the secret.
  [[nodiscard]] const std::map<std::string, Masked>& masked() const { return masked_; }

 private:
  bool let_through(bool last);
  void note(const std::string& what, std::uint64_t line);

  const SecretScanner& scanner_;
  Redactor* redactor_;
  Sink sink_;
  std::string held_;
  std::uint64_t line_ = 1;
  std::map<std::string, Masked> masked_;
};

}  // namespace nlaunch::record
