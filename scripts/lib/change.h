/// What scripts/mutate.py writes into the copies of sources that it changes. A changed place takes its own
/// number; the program behaves as written unless NLAUNCH_CHANGE has that number. So all changes are compiled
/// at once.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace change {

inline bool on(int number) {
  static const char* const text = std::getenv("NLAUNCH_CHANGE");
  static const int active = text == nullptr ? -1 : std::atoi(text);
  return number == active;
}

inline bool flag(int number, bool value) {
  return value != on(number);
}
inline long number(int number, long value) {
  return value + (on(number) ? 1 : 0);
}

/// `a == b` becomes `a == At{1} == b`: the operator associates to the left, so both sides keep their extent.
struct At {
  int number;
};

// NOLINTBEGIN(bugprone-macro-parentheses): operators.
#define NLAUNCH_CHANGED_OPERATOR(Name, written, changed)                          \
  template <class L>                                                              \
  struct Name {                                                                   \
    L left;                                                                       \
    int number;                                                                   \
  };                                                                              \
  template <class L>                                                              \
  Name<L&&> operator written(L&& left, At at) {                                   \
    return {std::forward<L>(left), at.number};                                    \
  }                                                                               \
  template <class L, class R>                                                     \
  requires requires(L left, R right) {                                            \
    left changed right;                                                           \
  }                                                                               \
  auto operator written(Name<L> of, R&& right)->decltype(of.left written right) { \
    return on(of.number) ? decltype(of.left written right)(of.left changed right) \
                         : of.left written std::forward<R>(right);                \
  }

NLAUNCH_CHANGED_OPERATOR(Equal, ==, !=)
NLAUNCH_CHANGED_OPERATOR(Unequal, !=, ==)
NLAUNCH_CHANGED_OPERATOR(Less, <, <=)
NLAUNCH_CHANGED_OPERATOR(AtMost, <=, <)
NLAUNCH_CHANGED_OPERATOR(Greater, >, >=)
NLAUNCH_CHANGED_OPERATOR(AtLeast, >=, >)
NLAUNCH_CHANGED_OPERATOR(Sum, +, -)
NLAUNCH_CHANGED_OPERATOR(Difference, -, +)
#undef NLAUNCH_CHANGED_OPERATOR
// NOLINTEND(bugprone-macro-parentheses)

/// `a += b` becomes `a += Step{1} += b`, which associates to the right.
struct Step {
  int number;
};
template <class R>
struct Amount {
  R right;
  int number;
};
template <class R>
Amount<R> operator+=(Step step, R right) {
  return {right, step.number};
}
template <class R>
Amount<R> operator-=(Step step, R right) {
  return {right, step.number};
}
template <class L, class R>
requires requires(L left, R right) {
  left -= right;
}
L& operator+=(L& left, Amount<R> amount) {
  return on(amount.number) ? left -= amount.right : left += amount.right;
}
template <class L, class R>
requires requires(L left, R right) {
  left += right;
}
L& operator-=(L& left, Amount<R> amount) {
  return on(amount.number) ? left += amount.right : left -= amount.right;
}

/// `!a.b()` becomes `Not{1}->*a.b()`.
struct Not {
  int number;
};
template <class T>
bool operator->*(Not operation, T&& value) {
  return !static_cast<bool>(std::forward<T>(value)) != on(operation.number);
}

/// std::min and std::max, each in place of the other.
struct Extreme {
  int number;
  bool least;
  template <class T>
  T operator()(const T& a, const T& b) const {
    return least != on(number) ? std::min(a, b) : std::max(a, b);
  }
  template <class T>
  T operator()(std::initializer_list<T> values) const {
    return least != on(number) ? std::min(values) : std::max(values);
  }
};

enum class Of { all, any, none };

/// std::ranges::all_of, any_of and none_of.
struct Quantifier {
  int number;
  Of written, changed;
  template <class... Arguments>
  bool operator()(Arguments&&... arguments) const {
    switch (on(number) ? changed : written) {
      case Of::all:
        return std::ranges::all_of(std::forward<Arguments>(arguments)...);
      case Of::any:
        return std::ranges::any_of(std::forward<Arguments>(arguments)...);
      default:
        return std::ranges::none_of(std::forward<Arguments>(arguments)...);
    }
  }
};

}  // namespace change
