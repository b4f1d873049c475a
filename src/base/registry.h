#pragma once
#include <algorithm>
#include <vector>

namespace nlaunch {

/// The entries of one kind (commands, checks, rules, ...) from all linked files. A file adds its own with a
/// namespace-scope object; nothing else is needed:
///   const Registered<Check> identity_check{{"identity", ...}};
/// The libraries of such files are linked whole, because nothing else refers to them.
template <class Entry>
class Registered {
 public:
  explicit Registered(Entry entry) : entry_(std::move(entry)) { list().push_back(&entry_); }
  ~Registered() { std::erase(list(), &entry_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  /// All entries, sorted by `order`, then by name.
  static std::vector<const Entry*> all() {
    auto entries = list();
    std::ranges::sort(entries, [](const Entry* a, const Entry* b) {
      return a->order != b->order ? a->order < b->order : a->name < b->name;
    });
    return entries;
  }

 private:
  static std::vector<const Entry*>& list() {
    static std::vector<const Entry*> entries;
    return entries;
  }
  Entry entry_;
};

}  // namespace nlaunch
