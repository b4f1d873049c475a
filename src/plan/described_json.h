#pragma once
#include <fmt/format.h>

#include <boost/describe.hpp>
#include <boost/mp11/algorithm.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

/// The plan's values as JSON and back, by the members that BOOST_DESCRIBE_STRUCT lists in plan.h. A duration
/// is in milliseconds, under its name with the suffix `_ms`. A missing member throws, like everything that
/// does not match; from_json turns that into a message. Members that older plans do not have are in kLeftOut,
/// or get their value in json.cpp.
namespace nlaunch::plan {

using nlohmann::json;
using nlohmann::ordered_json;

// Types whose JSON differs from their members.
ordered_json write(const EnvOp& op);
void read(const json& from, EnvOp& op);
ordered_json write(const Expectation& row);
void read(const json& from, Expectation& row);

namespace described {

template <class T>
concept Struct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;
template <class T>
concept ByHand = requires(const T& value) {
  plan::write(value);
};
template <class T>
concept Enum = boost::describe::has_describe_enumerators<T>::value;

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsMap = false;
template <class T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;

/// The members of T that are omitted if empty, each between spaces.
template <class T>
inline constexpr std::string_view kLeftOut = " ";
template <>
inline constexpr std::string_view kLeftOut<Condition> = " nodes gpu arch kind library ";
template <>
inline constexpr std::string_view kLeftOut<Ready> =
    " http tcp log file exec delay exited server origin timeout_origin ";
template <>
inline constexpr std::string_view kLeftOut<Restart> = " most_backoff within ";
template <>
inline constexpr std::string_view kLeftOut<Alive> = " http tcp exec ";
template <>
inline constexpr std::string_view kLeftOut<Fresh> = " http log ";
template <>
inline constexpr std::string_view kLeftOut<OnChange> = " signal post exec ";
template <>
inline constexpr std::string_view kLeftOut<Role> =
    " origin alive throughput fresh on_change standby tolerate replica keep_together pools any_cpu "
    "share_gpus_with gpu_memory wrapper "
    "wrapper_origin "
    "launcher "
    "metrics ";

template <>
inline constexpr std::string_view kLeftOut<Checkpoint> = " dir folder complete tracker partial saved resume ";
template <>
inline constexpr std::string_view kLeftOut<Notify> = " exec webhook ";
template <>
inline constexpr std::string_view kLeftOut<MetricsExport> = " file listen ";
template <>
inline constexpr std::string_view kLeftOut<Slurm> = " components borrowed ";
template <>
inline constexpr std::string_view kLeftOut<Pool> = " elastic ";
template <>
inline constexpr std::string_view kLeftOut<KeepTogether> = " nodes ";
template <>
inline constexpr std::string_view kLeftOut<Topology> = " slurm domain_nodes switch_nodes numa nics ";
template <>
inline constexpr std::string_view kLeftOut<WeightSync> = " name order master path ";

template <class T>
bool may_be_left_out(std::string_view member) {
  return kLeftOut<T>.contains(fmt::format(" {} ", member));
}

/// The name of a member in plan.json.
template <class M>
std::string key_of(std::string_view member) {
  if (member == "template_file") return "template";
  if (member == "program") return "nlaunch";
  const bool time = std::is_same_v<M, Duration> || std::is_same_v<M, std::optional<Duration>>;
  return fmt::format("{}{}", member, time ? "_ms" : "");
}

/// Worded like the library's own errors.
inline void expect(bool fits, std::string_view type, const json& from) {
  if (!fits) throw std::domain_error(fmt::format("type must be {}, but is {}", type, from.type_name()));
}

template <class T, class Then>
void for_each_member(Then&& then) {
  using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
  boost::mp11::mp_for_each<Members>([&](auto member) { then(member.name, member.pointer); });
}

}  // namespace described

template <class T>
ordered_json to_value(const T& value) {
  if constexpr (std::is_same_v<T, Duration>) {
    return value.count();
  } else if constexpr (std::is_same_v<T, VersionRange>) {
    return value.str();
  } else if constexpr (described::Enum<T>) {
    return name_of(value);
  } else if constexpr (described::ByHand<T>) {
    return write(value);
  } else if constexpr (described::Struct<T>) {
    auto out = ordered_json::object();
    described::for_each_member<T>([&](const char* name, auto pointer) {
      const auto& member = value.*pointer;
      using M = std::remove_cvref_t<decltype(member)>;
      auto made = to_value(member);
      const bool empty = made.is_null() || made == "" || (made.is_structured() && made.empty()) ||
                         (std::is_same_v<M, bool> && made == false) || (std::is_integral_v<M> && made == 0);
      if (!empty || !described::may_be_left_out<T>(name)) out[described::key_of<M>(name)] = std::move(made);
    });
    return out;
  } else if constexpr (std::is_same_v<T, std::optional<VersionRange>>) {
    return value ? value->str() : "";
  } else if constexpr (described::kIsOptional<T>) {
    return value ? to_value(*value) : ordered_json();
  } else if constexpr (described::kIsList<T>) {
    auto out = ordered_json::array();
    for (const auto& one : value) out.push_back(to_value(one));
    return out;
  } else if constexpr (described::kIsMap<T>) {
    auto out = ordered_json::object();
    for (const auto& [key, one] : value) out[key] = to_value(one);
    return out;
  } else {
    return value;
  }
}

template <class T>
void read_value(const json& from, T& value) {
  if constexpr (std::is_same_v<T, Duration>) {
    value = Duration(from.get<Duration::rep>());
  } else if constexpr (std::is_same_v<T, VersionRange>) {
    auto parsed = VersionRange::parse(from.get<std::string>());
    if (!parsed) throw std::domain_error(parsed.error());
    value = std::move(*parsed);
  } else if constexpr (described::Enum<T>) {
    for (const auto one : kValues<T>) {
      if (from == name_of(one)) return void(value = one);
    }
    throw std::domain_error(fmt::format("unknown word {}", json_text(from)));
  } else if constexpr (described::ByHand<T>) {
    read(from, value);
  } else if constexpr (described::Struct<T>) {
    described::expect(from.is_object(), "object", from);
    described::for_each_member<T>([&](const char* name, auto pointer) {
      auto& member = value.*pointer;
      const auto key = described::key_of<std::remove_cvref_t<decltype(member)>>(name);
      if (!described::may_be_left_out<T>(name)) return read_value(from.at(key), member);
      if (!from.contains(key)) return;
      described::expect(!from.at(key).is_null(), "a value", from.at(key));
      read_value(from.at(key), member);
    });
  } else if constexpr (std::is_same_v<T, std::optional<VersionRange>>) {
    if (from != "") read_value(from, value.emplace());
  } else if constexpr (described::kIsOptional<T>) {
    if (!from.is_null()) read_value(from, value.emplace());
  } else if constexpr (described::kIsList<T>) {
    described::expect(from.is_array(), "array", from);
    for (const auto& one : from) read_value(one, value.emplace_back());
  } else if constexpr (described::kIsMap<T>) {
    described::expect(from.is_object(), "object", from);
    for (const auto& [key, one] : from.items()) read_value(one, value[key]);
  } else {
    from.get_to(value);
  }
}

template <class T>
T value_from(const json& from) {
  T value;
  read_value(from, value);
  return value;
}

}  // namespace nlaunch::plan
