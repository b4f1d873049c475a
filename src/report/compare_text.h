#pragma once
#include <string>

#include "record/compare.h"
#include "report/table.h"

namespace nlaunch::report {

/// What differs between two runs, section by section; what is the same is only counted. Lines that end in a
/// newline.
std::string compare_text(const record::Comparison& comparison, const record::RunFiles& a,
                         const record::RunFiles& b, const Paint& paint);

}  // namespace nlaunch::report
