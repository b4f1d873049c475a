#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "diagnose/analysis.h"

/// Python exceptions that no signature knows. A traceback is read as a chain: an exception that was raised
/// from another one, or while another one was handled, leads back to the one that explains it.
namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kTracebacks = "tracebacks";
constexpr int kException = 50;
constexpr int kOfAPeer = 42;
constexpr std::size_t kWindow = 400;      // lines of one chain that are looked at
constexpr std::size_t kMostOpen = 64;     // chains that are read at once
constexpr std::size_t kMostChains = 256;  // chains that are kept
constexpr std::size_t kMostLinks = 32;    // exceptions of a chain
constexpr std::uint64_t kLinesAfter = 8;  // that may belong to an exception's message
constexpr std::uint64_t kSurvived = 40;   // lines between two chains: the program had got over the first

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

struct Raised {
  enum class Link {
    none,
    cause,   ///< the next one was raised from it
    during,  ///< the next one was raised while it was handled
  };
  std::string type;
  std::string place;  ///< "share_of_e (train.py:25)"
  LogPosition position;
  std::string text;
  bool follows = false;  ///< it tells of another process's end, or says that the reason stands elsewhere
  Link link = Link::none;
};

/// Exceptions that tell of another process's end, or of a signal.
bool follows(std::string_view type) {
  constexpr std::array<std::string_view, 20> kFollow{
      "ChildFailedError",     "DistBackendError",       "SystemExit",
      "KeyboardInterrupt",    "SignalException",        "RayTaskError",
      "RayActorError",        "ActorDiedError",         "ActorUnavailableError",
      "WorkerCrashedError",   "BrokenPipeError",        "EOFError",
      "CalledProcessError",   "ProcessExitedException", "ProcessRaisedException",
      "ConnectionResetError", "CancelledError",         "RendezvousConnectionError",
      "EngineDeadError",      "TaskCancelledError"};
  type = type.substr(0, type.find('('));
  type = type.substr(type.rfind('.') + 1);
  return type.ends_with("Warning") || std::ranges::find(kFollow, type) != kFollow.end();
}

/// Exceptions that tell of a server which did not answer, or with an error: it knows more.
bool is_of_a_peer(std::string_view type) {
  constexpr std::array<std::string_view, 14> kTypes{"HTTPError",
                                                    "HTTPStatusError",
                                                    "URLError",
                                                    "ConnectionError",
                                                    "ConnectionRefusedError",
                                                    "ConnectError",
                                                    "ReadTimeout",
                                                    "ConnectTimeout",
                                                    "RemoteDisconnected",
                                                    "ServerDisconnectedError",
                                                    "MaxRetryError",
                                                    "NewConnectionError",
                                                    "APIConnectionError",
                                                    "InternalServerError"};
  type = type.substr(type.rfind('.') + 1);
  return std::ranges::find(kTypes, type) != kTypes.end();
}

struct Chain {
  enum class At {
    frames,  ///< its lines say where
    after,   ///< an exception has been named
    linked,  ///< another traceback of the chain is to come
    over,
  };
  std::string prefix;  ///< of its lines
  Origin who;
  LogPosition begin;
  LogPosition last;
  At at = At::frames;
  std::string inner;  ///< the frame read last
  std::string user;   ///< the last frame outside of Python's own and of installed code
  std::vector<Raised> raised;
  bool known = false;  ///< a signature says more of it

  /// The exception that explains the others; null where each only tells of something elsewhere.
  [[nodiscard]] const Raised* root() const {
    if (raised.empty()) return nullptr;
    std::size_t at_hand = raised.size() - 1;
    for (auto i = at_hand; i-- > 0;) {
      const bool leads_on = raised[i].link == Raised::Link::cause || raised[at_hand].follows;
      if (leads_on && !raised[i].follows) at_hand = i;
      if (!leads_on) break;
    }
    return raised[at_hand].follows ? nullptr : &raised[at_hand];
  }
};

/// The two texts differ in digits alone: in the time of a log line, say.
bool same_shape(std::string_view a, std::string_view b) {
  constexpr std::string_view kDigits = "0123456789";
  return a.size() == b.size() && std::ranges::equal(a, b, [&](char x, char y) {
           return x == y || (kDigits.contains(x) && kDigits.contains(y));
         });
}

/// What a line says behind the prefix of a chain; nothing where it is not of that chain.
std::optional<std::string_view> behind_prefix(std::string_view line, const std::string& prefix) {
  if (line.starts_with(prefix)) return line.substr(prefix.size());
  if (text::trim(line) == text::trim(prefix)) return "";
  const auto before = line.substr(0, prefix.size());
  if (!same_shape(before, prefix) || origin_of(before) != origin_of(prefix)) return std::nullopt;
  return line.substr(prefix.size());
}

class Tracebacks : public Analysis {
 public:
  void on_match(const Match& match) override {
    const auto& signature = *match.signature;
    if (signature.id == "python.traceback") {
      if (!match.aside && match.previous.find("Exception ignored") == std::string_view::npos) begin(match);
    } else if (!match.aside && (signature.kind == Kind::root || signature.kind == Kind::consequence)) {
      if (told_.position != match.position) told_ = {match.position, false};
      told_.root = told_.root || signature.kind == Kind::root;
    }
  }

  void on_line(const Line& line) override {
    --left_;
    // The longest prefix first: a chain without any would take each line.
    Chain* best = nullptr;
    std::string_view rest;
    for (auto& chain : open_) {
      const auto behind = chain.at == Chain::At::over ? std::nullopt : behind_prefix(line.text, chain.prefix);
      if (!behind || (best != nullptr && best->prefix.size() >= chain.prefix.size())) continue;
      best = &chain;
      rest = *behind;
    }
    if (best == nullptr) best = indented_instead(line.text, rest);
    if (best != nullptr) read(*best, rest, line);
    close_those_over();
  }

  [[nodiscard]] std::size_t lines_wanted() const override { return open_.empty() ? 0 : left_; }

  [[nodiscard]] std::vector<Finding> findings(const World& /*world*/) const override {
    std::vector<Chain> chains = closed_;
    chains.insert(chains.end(), open_.begin(), open_.end());
    const Chain* first = nullptr;
    for (const auto& chain : chains) {
      const auto* root = chain.root();
      if (root == nullptr || chain.known || was_survived(chain, chains)) continue;
      if (first == nullptr || root->position < first->root()->position) first = &chain;
    }
    if (first == nullptr) return {};
    return {finding_of(*first)};
  }

 private:
  void begin(const Match& match) {
    left_ = kWindow;
    const std::string prefix(match.before);
    const auto same = std::ranges::find_if(
        open_, [&](const Chain& chain) { return behind_prefix(prefix, chain.prefix) == ""; });
    if (same != open_.end()) {
      if (same->at == Chain::At::linked) {
        same->at = Chain::At::frames;
        return;
      }
      same->at = Chain::At::over;
      close_those_over();
    }
    if (open_.size() == kMostOpen) {
      open_.front().at = Chain::At::over;
      close_those_over();
    }
    Chain chain;
    chain.prefix = prefix;
    chain.who = match.origin;
    chain.begin = match.position;
    chain.last = match.position;
    open_.push_back(std::move(chain));
  }

  /// A traceback that begins behind words of its own has its frames at the beginning of the lines below it.
  Chain* indented_instead(std::string_view line, std::string_view& rest) {
    const auto frame = line.find("File \"");
    if (frame == std::string_view::npos || text::trim(line.substr(0, frame)) != "") return nullptr;
    for (auto& chain : open_) {
      if (chain.at != Chain::At::frames || chain.last != chain.begin) continue;
      chain.prefix = frame >= 2 ? line.substr(0, frame - 2) : "";
      rest = line.substr(chain.prefix.size());
      return &chain;
    }
    return nullptr;
  }

  void read(Chain& chain, std::string_view rest, const Line& line) {
    const bool indented = !rest.empty() && std::string_view(" \t|+").contains(rest.front());
    if (chain.at == Chain::At::after) {
      after(chain, rest, line, indented);
      return;
    }
    if (chain.at == Chain::At::linked) {
      if (!text::trim(rest).empty()) chain.at = Chain::At::over;
      return;
    }
    chain.last = line.position;
    if (text::trim(rest).empty()) return;
    if (indented) {
      frame(chain, rest);
    } else if (!exception(chain, rest, line)) {
      chain.at = Chain::At::over;
    }
  }

  /// What stands below the name of an exception: the rest of its message, a link, or frames that Ray shows
  /// below.
  void after(Chain& chain, std::string_view rest, const Line& line, bool indented) {
    auto& named = chain.raised.back();
    if (rest.starts_with("During handling of the above exception")) {
      named.link = Raised::Link::during;
      chain.at = Chain::At::linked;
    } else if (rest.starts_with("The above exception was the direct cause")) {
      named.link = Raised::Link::cause;
      chain.at = Chain::At::linked;
    } else if (indented && rest.find("File \"") != std::string_view::npos) {
      named.link = Raised::Link::cause;
      chain.at = Chain::At::frames;
      frame(chain, rest);
    } else if (line.position.line - named.position.line > kLinesAfter) {
      chain.at = Chain::At::over;
    } else if (told_.position == line.position && told_.root) {
      chain.known = true;
    }
  }

  static void frame(Chain& chain, std::string_view rest) {
    static const re2::RE2 kFrame(R"re(File "([^"]+)", line (\d+), in (\S+))re", re2::RE2::Latin1);
    std::string file;
    std::string line;
    std::string function;
    if (!re2::RE2::PartialMatch(piece(rest), kFrame, &file, &line, &function)) return;
    constexpr std::array<std::string_view, 4> kInstalled{"-packages/", "lib/python", "<frozen", "<string>"};
    chain.inner = fmt::format("{} ({}:{})", function, file.substr(file.rfind('/') + 1), line);
    const bool installed = std::ranges::any_of(
        kInstalled, [&](std::string_view part) { return file.find(part) != std::string::npos; });
    if (!installed) chain.user = chain.inner;
  }

  bool exception(Chain& chain, std::string_view rest, const Line& line) {
    static const re2::RE2 kNamed(R"(^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:\([\w.]+\))?)(?::\s(.*)|:?\s*)$)",
                                 re2::RE2::Latin1);
    static const re2::RE2 kRemote(R"(ray::(\w+)[^ ]* \(pid=(\d+), ip=([\d.]+))", re2::RE2::Latin1);
    std::string type;
    std::string message;
    if (!re2::RE2::FullMatch(piece(rest), kNamed, &type, &message)) return false;
    Origin remote;
    if (re2::RE2::PartialMatch(message, kRemote, &remote.actor, &remote.pid, &remote.host)) {
      chain.who.actor.clear();
      chain.who.pid.clear();
      remote.fill(chain.who);
      chain.who = remote;
    }
    const bool told = told_.position == line.position;
    if (told && told_.root) chain.known = true;
    if (chain.raised.size() < kMostLinks) {
      chain.raised.push_back({type,
                              chain.user.empty() ? chain.inner : chain.user,
                              line.position,
                              excerpt(line.text, ""),
                              follows(type) || (told && !told_.root),
                              {}});
    }
    chain.user.clear();
    chain.inner.clear();
    chain.at = Chain::At::after;
    return true;
  }

  void close_those_over() {
    for (auto& chain : open_) {
      if (chain.at == Chain::At::over && closed_.size() < kMostChains) closed_.push_back(std::move(chain));
    }
    std::erase_if(open_, [](const Chain& chain) { return chain.at == Chain::At::over; });
  }

  /// The same process went on for long, and raised another one.
  static bool was_survived(const Chain& chain, const std::vector<Chain>& chains) {
    return std::ranges::any_of(chains, [&](const Chain& later) {
      const auto* root = later.root();
      return root != nullptr && later.begin.file == chain.begin.file && later.who == chain.who &&
             later.begin.line > chain.last.line + kSurvived && root->type != chain.root()->type;
    });
  }

  static Finding finding_of(const Chain& chain) {
    const auto& root = *chain.root();
    Finding finding;
    finding.category = "python-exception";
    finding.signature = kTracebacks;
    finding.weight = is_of_a_peer(root.type) ? kOfAPeer : kException;
    finding.position = root.position;
    finding.text = root.text;
    if (!chain.who.empty()) finding.culprits = {chain.who};
    finding.why = fmt::format("Python raised {}{} and nothing caught it", root.type,
                              root.place.empty() ? "" : fmt::format(" in {}", root.place));
    finding.fix = "the traceback above this line shows where";
    finding.confidence = Confidence::likely;
    return finding;
  }

  /// The line that a signature told of last.
  struct Told {
    LogPosition position;
    bool root = false;
  };
  Told told_;
  std::size_t left_ = 0;
  std::vector<Chain> open_;
  std::vector<Chain> closed_;
};

const Registered<AnalysisEntry> tracebacks_analysis{{
    .order = 40,
    .name = "tracebacks",
    .title = "Python exceptions that no signature knows",
    .make = make_analysis<Tracebacks>,
}};

}  // namespace
}  // namespace nlaunch::diagnose
