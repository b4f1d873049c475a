#pragma once
#include <string>

#include "evidence/verdict.h"
#include "report/table.h"

namespace nlaunch::report {

/// A verdict for people: who is the culprit, then what each source said, then what was missing.
std::string verdict_text(const evidence::Verdict& verdict, const evidence::Evidence& evidence,
                         const Paint& paint);

}  // namespace nlaunch::report
