#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace nlaunch::import {

/// What a name stands for; nothing where that is no number.
using NumberOf = std::function<std::optional<long>(const std::string&)>;

/// Sums and products of whole numbers, as a shell has them within $((…)); nothing where it is more than that.
std::optional<long> arithmetic(std::string_view text, const NumberOf& number_of);

}  // namespace nlaunch::import
