#pragma once
#include <string>

#include "evidence/verdict.h"
#include "report/table.h"

namespace nlaunch::report {

/// A verdict for people: the culprit, then what each source found, then what is missing.
std::string verdict_text(const evidence::Verdict& verdict, const evidence::Evidence& evidence,
                         const Paint& paint);

}  // namespace nlaunch::report
