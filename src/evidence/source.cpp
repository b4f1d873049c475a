#include "evidence/source.h"

#include <algorithm>

#include "sys/files.h"

namespace nlaunch::evidence {

std::vector<const Source*> sources(Source::Of of) {
  auto all = Registered<Source>::all();
  std::erase_if(all, [&](const Source* source) { return source->of != of; });
  return all;
}

Duration CollectContext::left() const {
  return std::max(Duration(0), std::chrono::duration_cast<Duration>(deadline - Clock::now()));
}

bool CollectContext::write(const std::string& name, const std::string& text) const {
  return sys::write_file_atomically(folder / name, masker.mask(text)).has_value();
}

}  // namespace nlaunch::evidence
