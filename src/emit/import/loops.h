#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// How long a loop of the script waits, as far as its lines say it.
namespace nlaunch::emit {

/// What a word stands for, a number or a variable; 0: no number.
using NumberIn = std::function<std::uint32_t(std::string)>;

/// The number that a text begins with; 0: none.
std::uint32_t number_at_start(std::string_view text);
/// The largest number that something is compared with on the line or shortly before it; 0: none.
std::uint32_t bound_before(const std::vector<std::string>& lines, std::uint32_t line,
                           const NumberIn& number_in);
/// The time that the loop around a line waits: "180s"; 10m where that cannot be read.
std::string patience_near(const std::vector<std::string>& lines, std::uint32_t line,
                          const NumberIn& number_in);

}  // namespace nlaunch::emit
