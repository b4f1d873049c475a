#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/source.h"

/// The pages of templates/ at build time.
namespace nlaunch::report {

std::shared_ptr<const SourceFile> preflight_page();
/// Of any report: `title` is text, `body` HTML.
std::string page(std::string_view title, const std::string& body);

}  // namespace nlaunch::report
