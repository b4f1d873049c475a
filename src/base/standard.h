#pragma once
// Precompiled for every translation unit (src/CMakeLists.txt): headers that almost all of them include. Each
// still includes what it uses; this only saves the compiler from reading it again.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
