#include "supervise/wire.h"

#include <fmt/format.h>

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
    form("started", process<notice::Started>(), member("pid", &notice::Started::pid)),
    form("not-started", process<notice::NotStarted>(), member("reason", &notice::NotStarted::reason)),
    form("ready", process<notice::Ready>()),
    form("not-ready", process<notice::NotReady>(), member("waited", &notice::NotReady::waited)),
    form("ended", process<notice::Ended>(), member("status", &notice::Ended::status)),
    form("cleaned", process<notice::CleanedUp>(), member("killed", &notice::CleanedUp::killed)),
    form("not-killable", process<notice::NotKillable>()),
    form("signal", member("signal", &notice::Signal::signal)),
    form("node-lost", member("host", &notice::NodeLost::host), member("why", &notice::NodeLost::why),
         member("processes", &notice::NodeLost::processes)),
    form("abort", member("reason", &notice::Abort::reason), member("exit_code", &notice::Abort::exit_code)),
    form("progress", process<notice::Progress>(), member("step", &notice::Progress::step),
         member("seconds", &notice::Progress::seconds)),
    form("collected", member("trouble", &notice::Collected::trouble)),
    form("trouble", member("sentence", &notice::Trouble::sentence))};

constexpr auto kEnd =
    form("end", member("left_behind", &CrewEnd::left_behind), member("survivors", &CrewEnd::survivors),
         member("last_lines", &CrewEnd::last_lines), member("lost_bytes", &CrewEnd::lost_bytes));

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

json to_message(const Notice& notice) {
  auto message = write(notice.what, "notice", kNotices);
  message["at_ms"] = notice.at.count();
  return message;
}

Notice notice_from(const json& message) {
  return {Duration(message.at("at_ms").get<Duration::rep>()),
          read<decltype(Notice::what)>(message, "notice", kNotices)};
}

json to_message(const CrewEnd& end) {
  json message;
  kEnd.write(end, message);
  return message;
}

CrewEnd end_from(const json& message) {
  return kEnd.read(message);
}

}  // namespace nlaunch::supervise
