#include "fleet/protocol.h"

#include <concepts>
#include <filesystem>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/json.h"

namespace nlaunch::fleet {
namespace {

using nlohmann::json;

struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// --- values ---

/// How a value is represented in a message. Invalid input is an exception.
template <class T>
struct Codec {
  static json write(const T& value) { return value; }
  static T read(const json& from) {
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      if (!from.is_number_integer()) throw Unreadable("not an integer");
      const bool fits = from.is_number_unsigned() ? std::in_range<T>(from.get<std::uint64_t>())
                                                  : std::in_range<T>(from.get<std::int64_t>());
      if (!fits) throw Unreadable("out of range");
    }
    return from.get<T>();
  }
};

template <class T>
struct Codec<std::vector<T>> {
  static json write(const std::vector<T>& values) { return values; }
  static std::vector<T> read(const json& from) {
    if (!from.is_array()) throw Unreadable("not a list");
    std::vector<T> values;
    for (const auto& one : from) values.push_back(Codec<T>::read(one));
    return values;
  }
};

template <class T>
struct Codec<std::optional<T>> {
  static json write(const std::optional<T>& value) { return value ? Codec<T>::write(*value) : json(nullptr); }
  static std::optional<T> read(const json& from) {
    return from.is_null() ? std::nullopt : std::optional(Codec<T>::read(from));
  }
};

template <>
struct Codec<Duration> {
  static json write(Duration value) { return value.count(); }
  static Duration read(const json& from) { return Duration(Codec<Duration::rep>::read(from)); }
};

template <>
struct Codec<std::filesystem::path> {
  static json write(const std::filesystem::path& value) { return value.string(); }
  static std::filesystem::path read(const json& from) { return from.get<std::string>(); }
};

template <>
struct Codec<sys::WaitStatus> {
  static json write(sys::WaitStatus value) { return value.native(); }
  static sys::WaitStatus read(const json& from) { return sys::WaitStatus(Codec<int>::read(from)); }
};

template <>
struct Codec<PreflightLevel> {
  static json write(PreflightLevel value) { return name_of(value); }
  static PreflightLevel read(const json& from) {
    const auto word = from.get<std::string>();
    const auto level = value_of<PreflightLevel>(word);
    if (!level) throw Unreadable("not a level");
    return *level;
  }
};

// --- structures and choices among them ---

template <class What, class Member>
struct Field {
  const char* name;
  Member What::*pointer;

  void write(const What& what, json& to) const { to[name] = Codec<Member>::write(what.*pointer); }
  void read(const json& from, What& what) const {
    const auto found = from.find(name);
    if (found == from.end()) throw Unreadable(fmt::format("'{}' is missing", name));
    try {
      what.*pointer = Codec<Member>::read(*found);
    } catch (const std::exception& error) {
      throw Unreadable(fmt::format("'{}': {}", name, error.what()));
    }
  }
};

/// The type word of a structure, and its members by name.
template <class What, class... Members>
struct Form {
  using Type = What;
  std::string_view word;
  std::tuple<Field<What, Members>...> fields;

  void write(const What& what, json& to) const {
    std::apply([&](const auto&... field) { (field.write(what, to), ...); }, fields);
  }
  [[nodiscard]] What read(const json& from) const {
    What what;
    std::apply([&](const auto&... field) { (field.read(from, what), ...); }, fields);
    return what;
  }
};

template <class What, class... Members>
constexpr Form<What, Members...> form(std::string_view word, Field<What, Members>... fields) {
  return {word, {fields...}};
}

template <class What, class Member>
constexpr Field<What, Member> field(const char* name, Member What::*pointer) {
  return {name, pointer};
}

template <class What>
constexpr auto process() {
  return field("process", &What::process);
}

template <class Struct, const auto& form>
struct StructCodec {
  static json write(const Struct& value) {
    json to = json::object();
    form.write(value, to);
    return to;
  }
  static Struct read(const json& from) { return form.read(from); }
};

constexpr const char* kType = "type";

/// One of several structures: {"type": its word, its members}.
template <class Variant, const auto& forms>
struct VariantCodec {
  static json write(const Variant& value) {
    static_assert(std::tuple_size_v<std::decay_t<decltype(forms)>> == std::variant_size_v<Variant>);
    json to;
    const auto write_as = [&](const auto& one) {
      const auto* what = std::get_if<typename std::decay_t<decltype(one)>::Type>(&value);
      if (what == nullptr) return;
      to[kType] = one.word;
      one.write(*what, to);
    };
    std::apply([&](const auto&... one) { (write_as(one), ...); }, forms);
    return to;
  }
  static Variant read(const json& from) {
    const auto type = from.is_object() ? from.find(kType) : from.end();
    if (type == from.end() || !type->is_string()) throw Unreadable("it has no type");
    const auto& word = type->template get_ref<const std::string&>();
    std::optional<Variant> found;
    const auto read_as = [&](const auto& one) {
      if (one.word == word) found = one.read(from);
    };
    std::apply([&](const auto&... one) { (read_as(one), ...); }, forms);
    if (!found) throw Unreadable(fmt::format("unknown type '{}'", word));
    return std::move(*found);
  }
};

// --- the messages ---

namespace action = supervise::action;
namespace event = supervise::process_event;
namespace news = preflight::probe_news;

constexpr auto kPaths =
    form("paths", field("id", &launch::RunPaths::id), field("folder", &launch::RunPaths::folder),
         field("attempt", &launch::RunPaths::attempt), field("resume", &launch::RunPaths::resume));
template <>
struct Codec<launch::RunPaths> : StructCodec<launch::RunPaths, kPaths> {};

constexpr auto kAssignment =
    form("assignment", field("paths", &launch::Assignment::paths), field("share", &launch::Assignment::share),
         field("output", &launch::Assignment::output), field("color", &launch::Assignment::color),
         field("name_width", &launch::Assignment::name_width));
template <>
struct Codec<launch::Assignment> : StructCodec<launch::Assignment, kAssignment> {};

constexpr std::tuple kActions{
    form("start", process<action::Start>()),
    form("await", process<action::AwaitReady>()),
    form("watch", process<action::Watch>()),
    form("await-fresh", process<action::AwaitFresh>()),
    form("notify", process<action::Notify>(), field("role", &action::Notify::role),
         field("generation", &action::Notify::generation), field("addresses", &action::Notify::addresses),
         field("added", &action::Notify::added), field("removed", &action::Notify::removed)),
    form("signal-group", process<action::SignalGroup>(), field("signal", &action::SignalGroup::signal)),
    form("signal", process<action::SignalProcess>(), field("signal", &action::SignalProcess::signal)),
    form("kill", process<action::KillTree>()),
    form<action::KillAll>("kill-all"),
    form("collect", field("folder", &action::Collect::folder)),
    form("clean", process<action::CleanUp>(), field("leave", &action::CleanUp::leave))};
template <>
struct Codec<supervise::NodeAction> : VariantCodec<supervise::NodeAction, kActions> {};

constexpr auto kNotReadySeen = form(
    "seen", field("check", &supervise::NotReadySeen::check), field("last", &supervise::NotReadySeen::last),
    field("listens", &supervise::NotReadySeen::listens), field("answers", &supervise::NotReadySeen::answers),
    field("stranger", &supervise::NotReadySeen::stranger), field("remedy", &supervise::NotReadySeen::remedy),
    field("loading", &supervise::NotReadySeen::loading));
template <>
struct Codec<supervise::NotReadySeen> : StructCodec<supervise::NotReadySeen, kNotReadySeen> {};

constexpr auto kPortTaken =
    form("taken", field("port", &supervise::PortTaken::port), field("index", &supervise::PortTaken::index),
         field("holder", &supervise::PortTaken::holder), field("remedy", &supervise::PortTaken::remedy));
template <>
struct Codec<supervise::PortTaken> : StructCodec<supervise::PortTaken, kPortTaken> {};

constexpr std::tuple kEvents{
    form("started", process<event::Started>(), field("pid", &event::Started::pid)),
    form("not-started", process<event::NotStarted>(), field("reason", &event::NotStarted::reason)),
    form("ready", process<event::Ready>()),
    form("not-ready", process<event::NotReady>(), field("waited", &event::NotReady::waited),
         field("seen", &event::NotReady::seen)),
    form("unresponsive", process<event::Unresponsive>(), field("reason", &event::Unresponsive::reason)),
    form("fresh", process<event::Fresh>()),
    form("raised", process<event::Raised>(), field("type_name", &event::Raised::type),
         field("message", &event::Raised::message), field("ago_ms", &event::Raised::ago),
         field("within_ms", &event::Raised::within)),
    form("ended", process<event::Ended>(), field("status", &event::Ended::status)),
    form("child-ended", process<event::ChildEnded>(), field("pid", &event::ChildEnded::pid),
         field("title", &event::ChildEnded::title), field("status", &event::ChildEnded::status),
         field("logs", &event::ChildEnded::logs)),
    form("cleaned", process<event::CleanedUp>(), field("killed", &event::CleanedUp::killed),
         field("last_lines", &event::CleanedUp::last_lines), field("port", &event::CleanedUp::port)),
    form("not-killable", process<event::NotKillable>()),
    form("signal", field("signal", &event::Signal::signal)),
    form("node-lost", field("host", &event::NodeLost::host), field("why", &event::NodeLost::why),
         field("processes", &event::NodeLost::processes)),
    form("node-back", field("host", &event::NodeBack::host), field("processes", &event::NodeBack::processes)),
    form("abort", field("reason", &event::Abort::reason), field("exit_code", &event::Abort::exit_code)),
    form("progress", process<event::Progress>(), field("step", &event::Progress::step),
         field("seconds", &event::Progress::seconds), field("total", &event::Progress::total)),
    form("saved", process<event::Saved>(), field("path", &event::Saved::path)),
    form("linked", process<event::Linked>(), field("kind", &event::Linked::kind),
         field("url", &event::Linked::url)),
    form("collected", field("trouble", &event::Collected::trouble)),
    form("trouble", field("sentence", &event::Trouble::sentence))};
using Event = decltype(supervise::ProcessEvent::what);
template <>
struct Codec<Event> : VariantCodec<Event, kEvents> {};

constexpr std::tuple kNews{
    form("said", field("line", &news::Said::line)), form("ended", field("how", &news::Ended::how)),
    form("stuck", field("state", &news::Stuck::state)), form("lost", field("why", &news::Lost::why))};
using News = decltype(preflight::ProbeNews::what);
template <>
struct Codec<News> : VariantCodec<News, kNews> {};

constexpr auto kProbeNews =
    form("news", field("rank", &preflight::ProbeNews::rank), field("what", &preflight::ProbeNews::what));
template <>
struct Codec<preflight::ProbeNews> : StructCodec<preflight::ProbeNews, kProbeNews> {};

/// The findings of a node have their own codec, next to the rows of a report.
struct FindingsForm {
  using Type = preflight::Findings;
  std::string_view word = "findings";
  static void write(const Type& findings, json& to) { to["findings"] = preflight::to_json(findings); }
  static Type read(const json& from) { return preflight::findings_from_json(from.at("findings")); }
};

namespace command = supervise::node_command;
namespace probes = preflight::probe_command;
using namespace message;

constexpr std::tuple kMessages{
    form("challenge", field("challenge", &Challenge::challenge)),
    form("signed", field("says", &launch::Signed::says), field("proof", &launch::Signed::proof)),
    form("hello", field("node", &Hello::node), field("plan", &Hello::plan),
         field("challenge", &Hello::challenge), field("host", &Hello::host),
         field("address", &Hello::address), field("ports", &Hello::ports), field("agent", &Hello::agent),
         field("received", &Hello::received)),
    form("output", field("node", &OutputHello::node), field("plan", &OutputHello::plan)),
    form("welcome", field("assignment", &Welcome::assignment)), form("refused", field("why", &Refused::why)),
    // through relays
    form("confirm", field("count", &Confirm::count)), form("resume", field("received", &Resume::received)),
    form("gone", field("why", &Gone::why), field("may_return", &Gone::may_return)),
    // to an agent
    form("keep", field("file", &Keep::file), field("text", &Keep::text)), form<Bind>("bind"),
    form("clock-question", field("asked", &preflight::ClockQuestion::asked)),
    form("look", field("level", &Look::level)),
    form("start-probes", field("run", &probes::Start::run), field("first", &probes::Start::first),
         field("wanted", &probes::Start::wanted), field("folder", &probes::Start::folder)),
    form("say-to-probe", field("rank", &probes::Say::rank), field("line", &probes::Say::line)),
    form<probes::Kill>("kill-probes"), form("supervise", field("kill_wait_ms", &Supervise::kill_wait)),
    form("perform", field("action", &command::Perform::action)), form<command::Ending>("ending"),
    form("finish", field("of", &command::Finish::of)),
    form("prepare", field("file", &Prepare::file), field("roles", &Prepare::roles)), form<Adopt>("adopt"),
    form<Settle>("settle"), form("bye", field("exit_code", &Bye::exit_code)),
    // to the leader
    form("clock-answer", field("asked", &preflight::ClockAnswer::asked),
         field("received", &preflight::ClockAnswer::received),
         field("answered", &preflight::ClockAnswer::answered)),
    form("bound", field("notes", &Bound::notes), field("dropped", &Bound::dropped),
         field("libraries", &Bound::libraries), field("lock", &Bound::lock), field("files", &Bound::files)),
    form("not-bound", field("exit_code", &NotBound::exit_code), field("sentence", &NotBound::sentence),
         field("text", &NotBound::text)),
    FindingsForm{}, form("prepared", field("file", &Prepared::file), field("why", &Prepared::why)),
    form<Settled>("settled"), form("probe", field("run", &ProbeNews::run), field("news", &ProbeNews::news)),
    form("event", field("at_ms", &supervise::ProcessEvent::at),
         field("what", &supervise::ProcessEvent::what)),
    form("audit", field("json", &Audit::json), field("lines", &Audit::lines),
         field("findings", &Audit::findings)),
    form("end", field("left_behind", &supervise::BackendEnd::left_behind),
         field("survivors", &supervise::BackendEnd::survivors),
         field("last_lines", &supervise::BackendEnd::last_lines),
         field("lost_bytes", &supervise::BackendEnd::lost_bytes),
         field("log_when_decided", &supervise::BackendEnd::log_when_decided),
         field("oom_kills", &supervise::BackendEnd::oom_kills)),
    form("lost", field("why", &Lost::why))};
using Line = VariantCodec<Message, kMessages>;

/// Such deep nesting is not a message, and copying it would exhaust the stack.
bool is_too_deep(std::string_view line) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool in_text = false;
  for (std::size_t at = 0; at < line.size() && depth <= kDeepest; ++at) {
    const char c = line[at];
    if (c == '"') in_text = !in_text;
    if (in_text) {
      at += c == '\\' ? 1 : 0;
    } else {
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    }
  }
  return depth > kDeepest;
}

}  // namespace

std::string encode(const Message& message) {
  return json_text(Line::write(message));
}

Result<Message> decode(std::string_view line) {
  if (is_too_deep(line)) return failure("fleet.message", "it is nested too deeply");
  const auto from = parse_json(line);
  if (from.is_discarded()) return failure("fleet.message", "it is not JSON");
  try {
    return Line::read(from);
  } catch (const std::exception& error) {
    return failure("fleet.message", "{}", error.what());
  }
}

bool is_counted(const Message& message) {
  return !std::holds_alternative<Hello>(message) && !std::holds_alternative<Confirm>(message) &&
         !std::holds_alternative<Resume>(message) && !std::holds_alternative<Gone>(message);
}

}  // namespace nlaunch::fleet
