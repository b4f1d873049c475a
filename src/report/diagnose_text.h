#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "diagnose/diagnose.h"
#include "report/table.h"

namespace nlaunch::report {

/// A diagnosis for people: the cause, then its consequences, then everything else in one line each, then what
/// was read. `all`: lists are not shortened.
std::string diagnose_text(const diagnose::Diagnosis& diagnosis, const Paint& paint, bool all);
/// {"findings": [...], "notes": [...], "read": {...}}, the best finding first.
nlohmann::ordered_json diagnose_json(const diagnose::Diagnosis& diagnosis);
/// Every signature: id, class, kind, weight, pattern, literals, why, fix, source.
nlohmann::ordered_json signatures_json();
/// The same as a table of id, class, kind and meaning.
std::string signatures_text(const Paint& paint);
/// The cause alone, in four lines; empty if nothing was found.
std::string diagnose_brief(const diagnose::Diagnosis& diagnosis, const Paint& paint);

}  // namespace nlaunch::report
