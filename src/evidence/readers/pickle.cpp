#include "evidence/readers/pickle.h"

#include <bit>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>

#include "evidence/readers/pickle_bytes.h"

namespace nlaunch::evidence {
namespace {

using nlohmann::json;

/// A value by its place in the arena: the memo can refer to one that is still being filled.
using Ref = std::uint32_t;
struct Mark {};
struct List {
  std::vector<Ref> items;
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items;
};
using Value = std::variant<Mark, json, List, Dict>;

/// Opcodes that are rejected: Python's Lib/pickletools.py.
std::string_view name_of(unsigned char opcode) {
  static const std::map<unsigned char, std::string_view> kNames{
      {'c', "GLOBAL"},       {0x93, "STACK_GLOBAL"},
      {'R', "REDUCE"},       {'b', "BUILD"},
      {'i', "INST"},         {'o', "OBJ"},
      {0x81, "NEWOBJ"},      {0x92, "NEWOBJ_EX"},
      {'P', "PERSID"},       {'Q', "BINPERSID"},
      {0x82, "EXT1"},        {0x83, "EXT2"},
      {0x84, "EXT4"},        {'S', "STRING"},
      {'T', "BINSTRING"},    {'U', "SHORT_BINSTRING"},
      {'B', "BINBYTES"},     {'C', "SHORT_BINBYTES"},
      {0x8e, "BINBYTES8"},   {0x96, "BYTEARRAY8"},
      {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
      {0x8f, "EMPTY_SET"},   {0x90, "ADDITEMS"},
      {0x91, "FROZENSET"}};
  const auto found = kNames.find(opcode);
  return found == kNames.end() ? "unknown" : found->second;
}

class Machine {
 public:
  Machine(std::string_view bytes, std::string_view without) : bytes_(bytes), without_(without) {}

  json run() {
    while (!done_) step();
    if (stack_.size() != 1) refuse("it does not leave exactly one value");
    return to_json(stack_.back(), 0);
  }

 private:
  void step() {
    const auto opcode = static_cast<unsigned char>(bytes_.take(1)[0]);
    if (!scalar(opcode) && !aggregate(opcode) && !memo(opcode)) {
      refuse(fmt::format("opcode {} (0x{:02x}), which plain data does not need", name_of(opcode), opcode));
    }
  }

  bool scalar(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        bytes_.take(1);
        return true;
      case 0x95:  // FRAME
        bytes_.take(8);
        return true;
      case '.':  // STOP
        done_ = true;
        return true;
      case 'N':  // NONE
        push(json(nullptr));
        return true;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        push(json(opcode == 0x88));
        return true;
      default:
        return integer(opcode) || other_scalar(opcode);
    }
  }

  bool integer(unsigned char opcode) {
    switch (opcode) {
      case 'K':  // BININT1
        push(json(bytes_.little(1)));
        return true;
      case 'M':  // BININT2
        push(json(bytes_.little(2)));
        return true;
      case 'J':  // BININT
        push(json(static_cast<std::int32_t>(bytes_.little(4))));
        return true;
      case 0x8a:  // LONG1
        push(json(PickleBytes::integer(bytes_.take(bytes_.little(1)))));
        return true;
      case 0x8b:  // LONG4
        push(json(PickleBytes::integer(bytes_.take(bytes_.little(4)))));
        return true;
      case 'I':  // INT, also of booleans
        push(truth_or_integer(bytes_.line()));
        return true;
      case 'L':  // LONG
        push(json(PickleBytes::decimal(bytes_.line())));
        return true;
      default:
        return false;
    }
  }

  bool other_scalar(unsigned char opcode) {
    switch (opcode) {
      case 'G': {  // BINFLOAT, big-endian
        std::uint64_t bits = 0;
        for (const char byte : bytes_.take(8)) bits = bits << 8U | static_cast<unsigned char>(byte);
        push(json(std::bit_cast<double>(bits)));
        return true;
      }
      case 'F': {  // FLOAT
        const auto text = bytes_.line();
        double value = 0;
        if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
          refuse("an invalid number");
        push(json(value));
        return true;
      }
      case 'X':  // BINUNICODE
        push(json(std::string(bytes_.take(bytes_.little(4)))));
        return true;
      case 0x8c:  // SHORT_BINUNICODE
        push(json(std::string(bytes_.take(bytes_.little(1)))));
        return true;
      case 0x8d:  // BINUNICODE8
        push(json(std::string(bytes_.take(bytes_.little(8)))));
        return true;
      case 'V':  // UNICODE
        push(json(std::string(bytes_.line())));
        return true;
      default:
        return false;
    }
  }

  bool aggregate(unsigned char opcode) {
    switch (opcode) {
      case '(':  // MARK
        stack_.push_back(make(Mark{}));
        return true;
      case ']':  // EMPTY_LIST
      case ')':  // EMPTY_TUPLE
        stack_.push_back(make(List{}));
        return true;
      case '}':  // EMPTY_DICT
        stack_.push_back(make(Dict{}));
        return true;
      case 'l':  // LIST
      case 't':  // TUPLE
        stack_.push_back(make(List{pop_to_mark()}));
        return true;
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        stack_.push_back(make(List{pop(static_cast<std::size_t>(opcode - 0x84))}));
        return true;
      case 'd': {  // DICT
        const auto items = pop_to_mark();
        stack_.push_back(make(Dict{}));
        set_items(items);
        return true;
      }
      case 'a':  // APPEND
        append(pop(1));
        return true;
      case 'e':  // APPENDS
        append(pop_to_mark());
        return true;
      case 's':  // SETITEM
        set_items(pop(2));
        return true;
      case 'u':  // SETITEMS
        set_items(pop_to_mark());
        return true;
      case '0':  // POP
        pop(1);
        return true;
      case '1':  // POP_MARK
        pop_to_mark();
        return true;
      case '2':  // DUP
        stack_.push_back(top());
        return true;
      default:
        return false;
    }
  }

  bool memo(unsigned char opcode) {
    switch (opcode) {
      case 'p':  // PUT
        memo_[static_cast<std::uint64_t>(PickleBytes::decimal(bytes_.line()))] = top();
        return true;
      case 'q':  // BINPUT
        memo_[bytes_.little(1)] = top();
        return true;
      case 'r':  // LONG_BINPUT
        memo_[bytes_.little(4)] = top();
        return true;
      case 0x94:  // MEMOIZE
        memo_[memo_.size()] = top();
        return true;
      case 'g':  // GET
        recall(static_cast<std::uint64_t>(PickleBytes::decimal(bytes_.line())));
        return true;
      case 'h':  // BINGET
        recall(bytes_.little(1));
        return true;
      case 'j':  // LONG_BINGET
        recall(bytes_.little(4));
        return true;
      default:
        return false;
    }
  }

  /// Protocol 0 has no separate opcodes for booleans.
  static json truth_or_integer(std::string_view text) {
    if (text == "00" || text == "01") return json(text == "01");
    return json(PickleBytes::decimal(text));
  }

  Ref make(Value value) {
    arena_.push_back(std::move(value));
    return static_cast<Ref>(arena_.size() - 1);
  }
  void push(json value) { stack_.push_back(make(std::move(value))); }

  Ref top() {
    if (stack_.empty()) refuse("it pops a value where there is none");
    return stack_.back();
  }

  std::vector<Ref> pop(std::size_t count) {
    if (stack_.size() < count) refuse("it pops a value where there is none");
    std::vector<Ref> taken(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return taken;
  }

  std::vector<Ref> pop_to_mark() {
    std::size_t count = 0;
    while (count < stack_.size() && !std::holds_alternative<Mark>(arena_[stack_[stack_.size() - 1 - count]]))
      ++count;
    if (count == stack_.size()) refuse("it pops values where there are none");
    auto taken = pop(count);
    pop(1);
    return taken;
  }

  void append(const std::vector<Ref>& items) {
    auto* list = std::get_if<List>(&arena_[top()]);
    if (list == nullptr) refuse("it appends to something that is not a list");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<Ref>& items) {
    auto* dict = std::get_if<Dict>(&arena_[top()]);
    if (dict == nullptr || items.size() % 2 != 0) refuse("it sets items of something that is not a dict");
    for (std::size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
  }

  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse("it recalls a value that it has not memoized");
    stack_.push_back(found->second);
  }

  json to_json(Ref ref, unsigned depth) {
    constexpr unsigned kDeepest = 100;
    constexpr std::size_t kMostText = 64U << 20U;
    if (depth > kDeepest) refuse("a value nested deeper than 100");
    if (++parts_ > kMostParts) refuse("a value of more than 2 million parts");
    const auto& value = arena_[ref];
    if (const auto* scalar = std::get_if<json>(&value)) {
      // A value that is recalled twice needs its space twice.
      if (const auto* text = scalar->get_ptr<const std::string*>()) text_ += text->size();
      if (text_ > kMostText) refuse("a value with more than 64 MiB of text");
      return *scalar;
    }
    if (const auto* list = std::get_if<List>(&value)) {
      auto array = json::array();
      for (const auto item : list->items) array.push_back(to_json(item, depth + 1));
      return array;
    }
    const auto* dict = std::get_if<Dict>(&value);
    if (dict == nullptr) refuse("a mark as a value");
    auto object = json::object();
    for (const auto& [key, item] : dict->items) {
      const auto name = to_json(key, depth + 1);
      if (!without_.empty() && name == without_) continue;
      object[name.is_string() ? name.get<std::string>() : json_key(name)] = to_json(item, depth + 1);
    }
    return object;
  }

  static std::string json_key(const json& key) {
    if (key.is_number_integer()) return std::to_string(key.get<std::int64_t>());
    refuse("a key that is neither text nor a number");
  }

  static constexpr std::size_t kMostParts = 2'000'000;

  PickleBytes bytes_;
  std::string_view without_;
  bool done_ = false;
  std::vector<Value> arena_;
  std::vector<Ref> stack_;
  std::map<std::uint64_t, Ref> memo_;
  std::size_t parts_ = 0;
  std::size_t text_ = 0;  // bytes
};

}  // namespace

Result<json> read_pickle(std::string_view bytes, std::string_view without) {
  try {
    return Machine(bytes, without).run();
  } catch (const RefusedPickle& refused) {
    return failure("evidence.pickle", "pickle rejected: {}", refused.why);
  }
}

}  // namespace nlaunch::evidence
