#pragma once
#include <string>
#include <string_view>

#include "base/secrets.h"

namespace nlaunch::supervise {

/// Removes secrets from a byte stream, even across block boundaries: bytes that may start a secret are held
/// back until the following bytes decide.
class MaskStream {
 public:
  /// `masker` must outlive this.
  explicit MaskStream(const Masker& masker) : masker_(masker) {}

  /// The part of all bytes so far that can be shown now. Without secrets it is `bytes` itself. Valid until
  /// the next call.
  std::string_view feed(std::string_view bytes);
  /// Returns the bytes that were held back.
  std::string_view finish();

 private:
  const Masker& masker_;
  std::string held_;
  std::string out_;
};

}  // namespace nlaunch::supervise
