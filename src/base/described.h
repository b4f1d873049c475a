#pragma once
#include <array>
#include <boost/describe.hpp>
#include <cstddef>
#include <optional>
#include <string_view>

/// The words of an enumeration are the names of its enumerators, listed once below it, in the order in which
/// messages list them: BOOST_DESCRIBE_ENUM(RoleKind, learner, engine, service). An enumerator whose word is a
/// C++ keyword ends with an underscore that the word does not have: `switch_`.
namespace nlaunch {

template <class E>
concept DescribedEnum = boost::describe::has_describe_enumerators<E>::value;

namespace detail {
constexpr std::string_view word_from(std::string_view name) {
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}
template <class E, template <class...> class List, class... Enumerator>
constexpr auto values(List<Enumerator...> /*list*/) {
  return std::array<E, sizeof...(Enumerator)>{Enumerator::value...};
}
template <template <class...> class List, class... Enumerator>
constexpr auto words(List<Enumerator...> /*list*/) {
  return std::array<std::string_view, sizeof...(Enumerator)>{word_from(Enumerator::name)...};
}
}  // namespace detail

template <DescribedEnum E>
inline constexpr auto kValues = detail::values<E>(boost::describe::describe_enumerators<E>());
/// In the same order.
template <DescribedEnum E>
inline constexpr auto kWords = detail::words(boost::describe::describe_enumerators<E>());

template <DescribedEnum E>
constexpr std::string_view word_of(E value) {
  for (std::size_t i = 0; i < kValues<E>.size(); ++i) {
    if (kValues<E>[i] == value) return kWords<E>[i];
  }
  return "?";
}

/// The word for users and files; an enumeration whose words are not identifiers defines its own.
template <DescribedEnum E>
constexpr std::string_view name_of(E value) {
  return word_of(value);
}

template <DescribedEnum E>
constexpr std::optional<E> value_of(std::string_view word) {
  for (std::size_t i = 0; i < kWords<E>.size(); ++i) {
    if (kWords<E>[i] == word) return kValues<E>[i];
  }
  return std::nullopt;
}

}  // namespace nlaunch
