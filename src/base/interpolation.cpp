#include "base/interpolation.h"

#include <fmt/format.h>

namespace nlaunch {
namespace {

/// The offset of the `}` that closes the `${` before `from`; nested braces are skipped.
std::optional<std::size_t> closing_brace(std::string_view text, std::size_t from) {
  int depth = 1;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (text[at] == '{') {
      ++depth;
    } else if (text[at] == '}' && --depth == 0) {
      return at;
    }
  }
  return std::nullopt;
}

/// A value inserted before the last pass will be parsed again: escape anything in it that looks like a
/// reference.
std::string escaped(std::string_view value) {
  std::string out;
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (value.substr(at).starts_with("${")) out += '$';
    out += value[at];
  }
  return out;
}

void append_literal(std::vector<Segment>& segments, std::string_view text) {
  if (text.empty()) return;
  if (!segments.empty() && std::holds_alternative<Literal>(segments.back())) {
    std::get<Literal>(segments.back()).text += text;
  } else {
    segments.emplace_back(Literal{std::string(text)});
  }
}

}  // namespace

std::expected<std::vector<Segment>, InterpolationError> parse_template(std::string_view text) {
  std::vector<Segment> segments;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto dollar = text.find('$', at);
    append_literal(segments, text.substr(at, dollar - at));
    if (dollar == std::string_view::npos) break;
    if (text.substr(dollar).starts_with("$${")) {
      append_literal(segments, "$${");
      at = dollar + 3;
      continue;
    }
    if (!text.substr(dollar).starts_with("${")) {
      append_literal(segments, "$");
      at = dollar + 1;
      continue;
    }
    const auto close = closing_brace(text, dollar + 2);
    if (!close) return std::unexpected(InterpolationError{"'${' has no closing '}'", dollar, 2});
    const auto inside = text.substr(dollar + 2, *close - dollar - 2);
    const auto split = inside.find(":-");
    Reference reference{std::string(inside.substr(0, split)), std::nullopt, dollar, *close + 1 - dollar};
    if (split != std::string_view::npos) reference.fallback = std::string(inside.substr(split + 2));
    if (reference.name.empty()) {
      return std::unexpected(InterpolationError{"'${}' is empty", dollar, reference.length});
    }
    segments.emplace_back(std::move(reference));
    at = *close + 1;
  }
  return segments;
}

std::vector<Reference> references(std::string_view text) {
  std::vector<Reference> found;
  const auto segments = parse_template(text);
  if (!segments) return found;
  for (const auto& segment : *segments) {
    const auto* reference = std::get_if<Reference>(&segment);
    if (reference == nullptr) continue;
    found.push_back(*reference);
    if (!reference->fallback) continue;
    for (auto inner : references(*reference->fallback)) {
      inner.offset += reference->offset + 2 + reference->name.size() + 2;
      found.push_back(std::move(inner));
    }
  }
  return found;
}

std::expected<std::string, InterpolationError> expand(std::string_view text,
                                                      const std::function<Lookup(std::string_view)>& lookup,
                                                      Pass pass) {
  const auto segments = parse_template(text);
  if (!segments) return std::unexpected(segments.error());
  std::string out;
  for (const auto& segment : *segments) {
    if (const auto* literal = std::get_if<Literal>(&segment)) {
      std::string_view rest = literal->text;
      while (pass == Pass::last) {
        const auto escape = rest.find("$${");
        out += rest.substr(0, escape);
        if (escape == std::string_view::npos) break;
        out += "${";
        rest.remove_prefix(escape + 3);
      }
      if (pass == Pass::middle) out += rest;
      continue;
    }
    const auto& reference = std::get<Reference>(segment);
    const auto value = lookup(reference.name);
    if (const auto* known = std::get_if<std::string>(&value)) {
      out += pass == Pass::last ? *known : escaped(*known);
    } else if (const auto* other = std::get_if<Expanded>(&value)) {
      out += other->text;
    } else if (std::holds_alternative<Keep>(value)) {
      out += text.substr(reference.offset, reference.length);
    } else if (const auto& nothing = std::get<Unknown>(value); reference.fallback && nothing.unset) {
      const auto fallback = expand(*reference.fallback, lookup, pass);
      if (!fallback)
        return std::unexpected(
            InterpolationError{fallback.error().message, reference.offset, reference.length});
      out += *fallback;
    } else {
      return std::unexpected(InterpolationError{nothing.message, reference.offset, reference.length});
    }
  }
  return out;
}

}  // namespace nlaunch
