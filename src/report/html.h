#pragma once
#include <string>
#include <string_view>

namespace nlaunch::report {

/// Text for HTML, between tags and within a quoted attribute: nothing in it can be taken for markup. Control
/// characters and bytes that are no UTF-8 are shown as \xNN.
std::string html(std::string_view text);

/// "12 kB/s", "38.2 GB/s": where rates of small messages stand beside those of large ones.
std::string rate_text(double bytes_per_second);

/// "1,024"
std::string thousands(std::size_t number);

}  // namespace nlaunch::report
