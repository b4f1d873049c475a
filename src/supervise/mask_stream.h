#pragma once
#include <string>
#include <string_view>

#include "base/secrets.h"

namespace nlaunch::supervise {

/// Takes secrets out of a stream of bytes, also where one lies across the border of two blocks: bytes that
/// may be the beginning of a secret are held back until what follows decides.
class MaskStream {
 public:
  /// `masker` must outlive this.
  explicit MaskStream(const Masker& masker) : masker_(masker) {}

  /// The part of all bytes so far that can be shown now. Without secrets it is `bytes` itself. Valid until
  /// the next call.
  std::string_view feed(std::string_view bytes);
  /// What was held back.
  std::string_view finish();

 private:
  const Masker& masker_;
  std::string held_;
  std::string out_;
};

}  // namespace nlaunch::supervise
