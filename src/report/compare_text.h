#pragma once
#include <string>

#include "record/compare.h"
#include "report/table.h"

namespace nlaunch::report {

/// The differences between two runs, section by section; equal values are only counted. Lines that end in a
/// newline.
std::string compare_text(const record::Comparison& comparison, const record::RunFiles& a,
                         const record::RunFiles& b, const Paint& paint);

}  // namespace nlaunch::report
