#include "supervise/wire.h"

#include <fmt/format.h>

#include <stdexcept>

namespace nlaunch::supervise {
namespace {

using nlohmann::json;

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

/// One alternative of a variant after the other, by its word.
template <class Variant>
using Reader = Variant (*)(const json&);

template <class Variant, std::size_t N>
Variant read(const json& message, const char* key,
             const std::pair<std::string_view, Reader<Variant>> (&readers)[N]) {
  const std::string word = message.at(key);
  for (const auto& [name, reader] : readers) {
    if (name == word) return reader(message);
  }
  throw std::domain_error(fmt::format("unknown word '{}'", word));
}

ProcessIndex process_of(const json& message) {
  return message.at("process").get<ProcessIndex>();
}

using What = decltype(Notice::what);

constexpr std::pair<std::string_view, Reader<NodeAction>> kActions[] = {
    {"start", [](const json& m) -> NodeAction { return action::Start{process_of(m)}; }},
    {"await", [](const json& m) -> NodeAction { return action::AwaitReady{process_of(m)}; }},
    {"signal-group",
     [](const json& m) -> NodeAction {
       return action::SignalGroup{process_of(m), m.at("signal")};
     }},
    {"signal",
     [](const json& m) -> NodeAction {
       return action::SignalProcess{process_of(m), m.at("signal")};
     }},
    {"kill", [](const json& m) -> NodeAction { return action::KillTree{process_of(m)}; }},
    {"kill-all", [](const json&) -> NodeAction { return action::KillAll{}; }},
    {"clean", [](const json& m) -> NodeAction {
       return action::CleanUp{process_of(m), m.at("leave")};
     }}};

constexpr std::pair<std::string_view, Reader<What>> kNotices[] = {
    {"started",
     [](const json& m) -> What {
       return notice::Started{process_of(m), m.at("pid")};
     }},
    {"not-started",
     [](const json& m) -> What {
       return notice::NotStarted{process_of(m), m.at("reason")};
     }},
    {"ready", [](const json& m) -> What { return notice::Ready{process_of(m)}; }},
    {"not-ready",
     [](const json& m) -> What {
       return notice::NotReady{process_of(m), m.at("waited")};
     }},
    {"ended",
     [](const json& m) -> What {
       return notice::Ended{process_of(m), sys::WaitStatus(m.at("status").get<int>())};
     }},
    {"cleaned",
     [](const json& m) -> What {
       return notice::CleanedUp{process_of(m), m.at("killed")};
     }},
    {"not-killable", [](const json& m) -> What { return notice::NotKillable{process_of(m)}; }},
    {"signal", [](const json& m) -> What { return notice::Signal{m.at("signal")}; }},
    {"abort",
     [](const json& m) -> What {
       return notice::Abort{m.at("reason"), m.at("exit_code")};
     }},
    {"trouble", [](const json& m) -> What { return notice::Trouble{m.at("sentence")}; }}};

}  // namespace

json to_message(const NodeAction& action) {
  return std::visit(
      Overloaded{[](const action::Start& a) {
                   return json{{"do", "start"}, {"process", a.process}};
                 },
                 [](const action::AwaitReady& a) {
                   return json{{"do", "await"}, {"process", a.process}};
                 },
                 [](const action::SignalGroup& a) {
                   return json{{"do", "signal-group"}, {"process", a.process}, {"signal", a.signal}};
                 },
                 [](const action::SignalProcess& a) {
                   return json{{"do", "signal"}, {"process", a.process}, {"signal", a.signal}};
                 },
                 [](const action::KillTree& a) {
                   return json{{"do", "kill"}, {"process", a.process}};
                 },
                 [](const action::KillAll&) {
                   return json{{"do", "kill-all"}};
                 },
                 [](const action::CleanUp& a) {
                   return json{{"do", "clean"}, {"process", a.process}, {"leave", a.leave}};
                 }},
      action);
}

NodeAction action_from(const json& message) {
  return read<NodeAction>(message, "do", kActions);
}

json to_message(const Notice& notice) {
  auto message = std::visit(
      Overloaded{[](const notice::Started& n) {
                   return json{{"notice", "started"}, {"process", n.process}, {"pid", n.pid}};
                 },
                 [](const notice::NotStarted& n) {
                   return json{{"notice", "not-started"}, {"process", n.process}, {"reason", n.reason}};
                 },
                 [](const notice::Ready& n) {
                   return json{{"notice", "ready"}, {"process", n.process}};
                 },
                 [](const notice::NotReady& n) {
                   return json{{"notice", "not-ready"}, {"process", n.process}, {"waited", n.waited}};
                 },
                 [](const notice::Ended& n) {
                   return json{{"notice", "ended"}, {"process", n.process}, {"status", n.status.native()}};
                 },
                 [](const notice::CleanedUp& n) {
                   return json{{"notice", "cleaned"}, {"process", n.process}, {"killed", n.killed}};
                 },
                 [](const notice::NotKillable& n) {
                   return json{{"notice", "not-killable"}, {"process", n.process}};
                 },
                 [](const notice::Signal& n) {
                   return json{{"notice", "signal"}, {"signal", n.signal}};
                 },
                 // Only who loses a connection can tell that.
                 [](const notice::NodeLost& n) {
                   return json{{"notice", "node-lost"}, {"host", n.host}};
                 },
                 [](const notice::Abort& n) {
                   return json{{"notice", "abort"}, {"reason", n.reason}, {"exit_code", n.exit_code}};
                 },
                 [](const notice::Trouble& n) {
                   return json{{"notice", "trouble"}, {"sentence", n.sentence}};
                 }},
      notice.what);
  message["at_ms"] = notice.at.count();
  return message;
}

Notice notice_from(const json& message) {
  return {Duration(message.at("at_ms").get<Duration::rep>()), read<What>(message, "notice", kNotices)};
}

json to_message(const CrewEnd& end) {
  return {{"left_behind", end.left_behind},
          {"survivors", end.survivors},
          {"last_lines", end.last_lines},
          {"lost_bytes", end.lost_bytes}};
}

CrewEnd end_from(const json& message) {
  return {message.at("left_behind"), message.at("survivors"), message.at("last_lines"),
          message.at("lost_bytes")};
}

}  // namespace nlaunch::supervise
