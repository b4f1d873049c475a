#include "probe/rank/mail.h"

#include <unistd.h>

#include <charconv>
#include <limits>
#include <sstream>

namespace nlaunch::probe {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace

/// One byte at a time: what follows may be for the program that this process is about to become.
bool Mail::read_line() {
  std::string line;
  char c = 0;
  while (::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') line += c;
  if (c != '\n') return false;
  std::istringstream words(line);
  std::string word;
  std::string key;
  std::string hex;
  words >> word >> key >> hex;
  if (word == "go") {
    auto bytes = std::numeric_limits<std::uint64_t>::max();
    std::from_chars(key.data(), key.data() + key.size(), bytes);
    go_ = bytes;
  }
  if (word == "id") ids_[key] = hex;
  return true;
}

std::optional<std::uint64_t> Mail::wait_for_go() {
  while (!go_) {
    if (!read_line()) return std::nullopt;
  }
  return go_;
}

std::optional<std::string> Mail::wait_for_id(const std::string& key) {
  while (!ids_.contains(key)) {
    if (!read_line()) return std::nullopt;
  }
  return from_hex(ids_.extract(key).mapped());
}

std::string to_hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    hex += kDigits[value >> 4U];
    hex += kDigits[value & 15U];
  }
  return hex;
}

}  // namespace nlaunch::probe
