#pragma once
#include <string>
#include <string_view>

namespace nlaunch::report {

/// Escapes text for HTML, between tags and in quoted attributes: no part of it can be taken for markup.
/// Control characters and invalid UTF-8 are shown as \xNN.
std::string html(std::string_view text);

/// "12 kB/s", "38.2 GB/s": for tables with rates of small and large messages.
std::string rate_text(double bytes_per_second);

/// "1,024"
std::string thousands(std::size_t number);

}  // namespace nlaunch::report
