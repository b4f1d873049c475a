#include "diagnose/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <stdexcept>

#include "base/text.h"
#include "diagnose/tables.h"

namespace nlaunch::diagnose {
namespace {

// The tables are part of the program: one that cannot be read is a bug, which a test finds.
[[noreturn]] void broken(const TableText& table, std::size_t line, std::string_view what) {
  throw std::logic_error(fmt::format("{}:{}: {}", table.name, line, what));
}

/// id, class, kind, weight, pattern, why, fix, source
Signature signature_of(const TableText& table, std::size_t line, const std::vector<std::string>& cells) {
  constexpr std::size_t kColumns = 8;
  if (cells.size() != kColumns)
    broken(table, line, fmt::format("{} columns, not {}", cells.size(), kColumns));
  Signature signature;
  signature.id = cells[0];
  signature.category = cells[1];
  const auto kind = value_of<Kind>(cells[2]);
  if (!kind) broken(table, line, fmt::format("unknown kind '{}'", cells[2]));
  signature.kind = *kind;
  const auto& weight = cells[3];
  if (!weight.empty() &&
      std::from_chars(weight.data(), weight.data() + weight.size(), signature.weight).ec != std::errc())
    broken(table, line, fmt::format("'{}' is not a weight", weight));
  signature.pattern = cells[4];
  signature.why = cells[5];
  signature.fix = cells[6];
  signature.source = cells[7];
  return signature;
}

std::vector<Signature> read_tables() {
  std::vector<Signature> all;
  for (const auto& table : signature_tables()) {
    std::size_t number = 0;
    for (const auto& line : text::split(table.text, '\n')) {
      ++number;
      if (line.empty() || line.starts_with('#') || line.starts_with("id\t")) continue;
      all.push_back(signature_of(table, number, text::split(line, '\t')));
    }
  }
  return all;
}

}  // namespace

const re2::RE2& Signature::regex() const {
  std::call_once(compiled_->once, [this] {
    re2::RE2::Options options;
    options.set_encoding(re2::RE2::Options::EncodingLatin1);  // a log need not be UTF-8
    options.set_log_errors(false);
    constexpr std::int64_t kMemory = 1 << 20;
    options.set_max_mem(kMemory);
    compiled_->regex = std::make_unique<const re2::RE2>(pattern, options);
  });
  if (!compiled_->regex->ok())
    throw std::logic_error(fmt::format("signature {}: {}", id, compiled_->regex->error()));
  return *compiled_->regex;
}

std::span<const Signature> signatures() {
  static const std::vector<Signature> all = read_tables();
  return all;
}

const Signature* find_signature(std::string_view id) {
  const auto found = std::ranges::find(signatures(), id, &Signature::id);
  return found == signatures().end() ? nullptr : &*found;
}

}  // namespace nlaunch::diagnose
