#pragma once
#include <memory>

#include "base/source.h"

/// The pages of templates/, as they were when this was built.
namespace nlaunch::report {

std::shared_ptr<const SourceFile> preflight_page();
std::shared_ptr<const SourceFile> bench_page();

}  // namespace nlaunch::report
