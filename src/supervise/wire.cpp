#include "supervise/wire.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

template <>
struct nlohmann::adl_serializer<nlaunch::sys::WaitStatus> {
  static void to_json(json& to, const nlaunch::sys::WaitStatus& status) { to = status.native(); }
  static void from_json(const json& from, nlaunch::sys::WaitStatus& status) {
    status = nlaunch::sys::WaitStatus(from.get<int>());
  }
};

namespace nlaunch::supervise {
namespace {

using nlohmann::json;

/// How a value is written, for both directions: the word that it is known by, and its members by name.
template <class What, class... Members>
struct Form {
  using Type = What;
  std::string_view word;
  std::tuple<std::pair<const char*, Members What::*>...> members;

  void write(const What& what, json& message) const {
    std::apply([&](const auto&... member) { ((message[member.first] = what.*member.second), ...); }, members);
  }
  [[nodiscard]] What read(const json& message) const {
    What what;
    std::apply([&](const auto&... member) { (message.at(member.first).get_to(what.*member.second), ...); },
               members);
    return what;
  }
};

template <class What, class... Members>
constexpr Form<What, Members...> form(std::string_view word,
                                      std::pair<const char*, Members What::*>... members) {
  return {word, {members...}};
}

template <class What, class Member>
constexpr std::pair<const char*, Member What::*> member(const char* name, Member What::*pointer) {
  return {name, pointer};
}

template <class What>
constexpr auto process() {
  return member("process", &What::process);
}

constexpr std::tuple kActions{
    form("start", process<action::Start>()),
    form("await", process<action::AwaitReady>()),
    form("signal-group", process<action::SignalGroup>(), member("signal", &action::SignalGroup::signal)),
    form("signal", process<action::SignalProcess>(), member("signal", &action::SignalProcess::signal)),
    form("kill", process<action::KillTree>()),
    form<action::KillAll>("kill-all"),
    form("collect", member("folder", &action::Collect::folder)),
    form("clean", process<action::CleanUp>(), member("leave", &action::CleanUp::leave))};

constexpr std::tuple kNotices{
    form("started", process<process_event::Started>(), member("pid", &process_event::Started::pid)),
    form("not-started", process<process_event::NotStarted>(),
         member("reason", &process_event::NotStarted::reason)),
    form("ready", process<process_event::Ready>()),
    form("not-ready", process<process_event::NotReady>(), member("waited", &process_event::NotReady::waited)),
    form("ended", process<process_event::Ended>(), member("status", &process_event::Ended::status)),
    form("cleaned", process<process_event::CleanedUp>(), member("killed", &process_event::CleanedUp::killed)),
    form("not-killable", process<process_event::NotKillable>()),
    form("signal", member("signal", &process_event::Signal::signal)),
    form("node-lost", member("host", &process_event::NodeLost::host),
         member("why", &process_event::NodeLost::why),
         member("processes", &process_event::NodeLost::processes)),
    form("abort", member("reason", &process_event::Abort::reason),
         member("exit_code", &process_event::Abort::exit_code)),
    form("progress", process<process_event::Progress>(), member("step", &process_event::Progress::step),
         member("seconds", &process_event::Progress::seconds)),
    form("collected", member("trouble", &process_event::Collected::trouble)),
    form("trouble", member("sentence", &process_event::Trouble::sentence))};

constexpr auto kEnd =
    form("end", member("left_behind", &BackendEnd::left_behind), member("survivors", &BackendEnd::survivors),
         member("last_lines", &BackendEnd::last_lines), member("lost_bytes", &BackendEnd::lost_bytes));

template <class Variant, class... Forms>
json write(const Variant& variant, const char* key, const std::tuple<Forms...>& forms) {
  static_assert(sizeof...(Forms) == std::variant_size_v<Variant>);
  json message;
  const auto write_as = [&](const auto& one) {
    const auto* what = std::get_if<typename std::decay_t<decltype(one)>::Type>(&variant);
    if (what == nullptr) return;
    message[key] = one.word;
    one.write(*what, message);
  };
  std::apply([&](const auto&... one) { (write_as(one), ...); }, forms);
  return message;
}

template <class Variant, class... Forms>
Variant read(const json& message, const char* key, const std::tuple<Forms...>& forms) {
  const std::string word = message.at(key);
  std::optional<Variant> found;
  const auto read_as = [&](const auto& one) {
    if (one.word == word) found = one.read(message);
  };
  std::apply([&](const auto&... one) { (read_as(one), ...); }, forms);
  if (!found) throw std::domain_error(fmt::format("unknown word '{}'", word));
  return std::move(*found);
}

}  // namespace

json to_message(const NodeAction& action) {
  return write(action, "do", kActions);
}

NodeAction action_from(const json& message) {
  return read<NodeAction>(message, "do", kActions);
}

json to_message(const ProcessEvent& process_event) {
  auto message = write(process_event.what, "notice", kNotices);
  message["at_ms"] = process_event.at.count();
  return message;
}

ProcessEvent notice_from(const json& message) {
  return {Duration(message.at("at_ms").get<Duration::rep>()),
          read<decltype(ProcessEvent::what)>(message, "notice", kNotices)};
}

json to_message(const BackendEnd& end) {
  json message;
  kEnd.write(end, message);
  return message;
}

BackendEnd end_from(const json& message) {
  return kEnd.read(message);
}

}  // namespace nlaunch::supervise
