#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace nlaunch::fleet {

/// Messages of the protocol in which some members have other values or types, or are not there; the same ones
/// every time.
class DamagedMessages {
 public:
  /// Without the types of `left_out`.
  explicit DamagedMessages(unsigned seed, const std::set<std::string>& left_out = {}) : random_(seed) {
    for (const auto& file : std::filesystem::directory_iterator(NLAUNCH_SOURCE_DIR "/tests/fuzz/protocol")) {
      std::ifstream in(file.path());
      messages_.push_back(nlohmann::json::parse(std::string(std::istreambuf_iterator<char>(in), {})));
      if (left_out.contains(messages_.back().at("type"))) messages_.pop_back();
    }
    std::ranges::sort(messages_);
  }

  std::string next() {
    auto message = messages_[below(messages_.size())];
    for (auto edits = below(3); edits > 0; --edits) damage(message);
    return message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::vector<std::string> next(std::size_t count) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < count; ++i) lines.push_back(next());
    return lines;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  /// Any member but the type, for that is what makes it a message.
  void damage(nlohmann::json& message) {
    auto* holder = &message;
    for (;;) {
      std::vector<std::string> keys;
      for (const auto& [key, value] : holder->items()) {
        if (holder != &message || key != "type") keys.push_back(key);
      }
      if (keys.empty()) return;
      const auto& key = keys[below(keys.size())];
      auto& value = holder->is_array() ? holder->at(std::stoul(key)) : holder->at(key);
      if (value.is_structured() && !value.empty() && below(2) == 0) {
        holder = &value;
      } else if (holder->is_object() && below(4) == 0) {
        holder->erase(key);
        return;
      } else {
        value = any_value();
        return;
      }
    }
  }

  nlohmann::json any_value() {
    const std::vector<nlohmann::json> values{nullptr,
                                             true,
                                             -1,
                                             0,
                                             1,
                                             0.5,
                                             1e300,
                                             4294967296,
                                             18446744073709551615U,
                                             "",
                                             std::string(5000, 'x'),
                                             "../../etc/passwd",
                                             nlohmann::json::array(),
                                             nlohmann::json::object(),
                                             {1, "x"},
                                             {{"a", 1}}};
    return values[below(values.size())];
  }

  std::mt19937 random_;
  std::vector<nlohmann::json> messages_;
};

}  // namespace nlaunch::fleet
