#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "diagnose/analysis.h"
#include "diagnose/ranking.h"

/// Python exceptions that match no signature. A traceback is read as a chain: an exception that was raised
/// from another one, or while another one was handled, leads back to the one that explains it.
namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kTracebacks = "tracebacks";
constexpr int kShape = 72;
constexpr int kLostWorker = 30;
constexpr std::size_t kWindow = kLinesAfter;  // lines of one chain that are examined
constexpr std::size_t kMostOpen = 64;         // chains that are read at the same time
constexpr std::size_t kMostChains = 256;      // chains that are kept
constexpr std::size_t kMostLinks = 32;        // exceptions of a chain
constexpr std::uint64_t kMessageLines = 8;    // after an exception, that may belong to its message
constexpr std::uint64_t kSurvived = 40;  // lines between two chains: the program had recovered from the first

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
  bool follows = false;     ///< it reports another process's exit, or says that the reason is elsewhere
  bool bare = false;        ///< it has no message in its own line
  std::string instead;      ///< of the message: the line below, or the line of the program
  bool of_a_shape = false;  ///< a weight did not fit into its parameter
  const Signature* hint = nullptr;  ///< matches the line, and does not call it a failure by itself
  Link link = Link::none;
};

/// Exceptions that report another process's exit, or a signal.
bool follows(std::string_view type) {
  constexpr std::array<std::string_view, 22> kFollow{
      "ChildFailedError",     "DistBackendError",       "SystemExit",
      "KeyboardInterrupt",    "SignalException",        "RayTaskError",
      "RayActorError",        "ActorDiedError",         "ActorUnavailableError",
      "WorkerCrashedError",   "BrokenPipeError",        "EOFError",
      "CalledProcessError",   "ProcessExitedException", "ProcessRaisedException",
      "ConnectionResetError", "CancelledError",         "RendezvousConnectionError",
      "EngineDeadError",      "TaskCancelledError",     "PapermillExecutionError",
      "CellExecutionError"};
  type = type.substr(0, type.find('('));
  type = type.substr(type.rfind('.') + 1);
  return type.ends_with("Warning") || std::ranges::find(kFollow, type) != kFollow.end();
}

/// Exceptions about a server that did not answer, or answered with an error: it knows more.
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
    linked,  ///< another traceback of the chain follows
    over,
  };
  std::string prefix;  ///< of its lines
  Origin who;
  LogPosition begin;
  LogPosition last;
  At at = At::frames;
  std::string inner;     ///< the frame read last
  std::string user;      ///< the last frame outside Python's own and installed code
  std::string source;    ///< the line of the program that the last frame shows
  std::string notebook;  ///< the exception that a notebook names above its frames, which have another form
  std::vector<Raised> raised;
  bool known = false;           ///< a signature says more about it
  bool ignored = false;         ///< Python says that it continues without what raised it
  bool loads_weight = false;    ///< a frame copies a weight into its parameter
  Origin worker;                ///< of Ray, whose exit the exception reports
  bool was_terminated = false;  ///< that worker was asked to exit

  /// The exception that explains the others; null if each only reports something elsewhere.
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

/// The two texts differ only in digits: for example in the time of a log line.
bool same_shape(std::string_view a, std::string_view b) {
  constexpr std::string_view kDigits = "0123456789";
  return a.size() == b.size() && std::ranges::equal(a, b, [&](char x, char y) {
           return x == y || (kDigits.contains(x) && kDigits.contains(y));
         });
}

/// "torch.OutOfMemoryError: CUDA ..."
const re2::RE2& exception_line() {
  static const re2::RE2 regex(R"(^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:\([\w.]+\))?)(?::\s(.*)|:?\s*)$)",
                              re2::RE2::Latin1);
  return regex;
}

bool is_indented(std::string_view rest) {
  return !rest.empty() && std::string_view(" \t|+").contains(rest.front());
}

/// The text of a line after the prefix of a chain; nothing if it is not of that chain.
std::optional<std::string_view> behind_prefix(std::string_view line, const std::string& prefix) {
  if (line.starts_with(prefix)) return line.substr(prefix.size());
  if (text::trim(line) == text::trim(prefix)) return "";
  const auto before = line.substr(0, prefix.size());
  if (!same_shape(before, prefix) || origin_of(before) != origin_of(prefix)) return std::nullopt;
  return line.substr(prefix.size());
}

/// The chain whose prefix the line starts with, of several the longest: one without a prefix would take each
/// line.
template <class Chains>
auto chain_of(Chains& chains, std::string_view line, std::string_view& rest) {
  decltype(&chains.front()) best = nullptr;
  for (auto& chain : chains) {
    const auto behind = chain.at == Chain::At::over ? std::nullopt : behind_prefix(line, chain.prefix);
    if (!behind || (best != nullptr && best->prefix.size() >= chain.prefix.size())) continue;
    best = &chain;
    rest = *behind;
  }
  return best;
}

class Tracebacks : public Analysis {
 public:
  void on_match(const Match& match) override {
    const auto& signature = *match.signature;
    if (signature.id == "python.ignored") {
      ignored_ = {match.position, std::string(match.before)};
    } else if (signature.id == "python.loads-weight") {
      std::string_view rest;
      if (auto* chain = chain_of(open_, match.line, rest)) chain->loads_weight = true;
    } else if (match.aside) {
      return;
    } else if (signature.id == "python.traceback") {
      begin(match);
    } else {
      if (told_.position != match.position) told_ = {match.position, false, false, nullptr};
      told_.root = told_.root || signature.kind == Kind::root ||
                   (signature.kind == Kind::fallback && signature.weight > kException);
      told_.consequence = told_.consequence || signature.kind == Kind::consequence;
      if (signature.kind == Kind::hint) told_.hint = &signature;
    }
  }

  [[nodiscard]] bool sets_aside(const Match& match) const override {
    std::string_view rest;
    const auto* chain = chain_of(open_, match.line, rest);
    return chain != nullptr && chain->ignored && chain->at == Chain::At::frames &&
           (is_indented(rest) || re2::RE2::FullMatch(piece(rest), exception_line()));
  }

  void on_line(const Line& line) override {
    --left_;
    std::string_view rest;
    auto* best = chain_of(open_, line.text, rest);
    if (best == nullptr) best = indented_instead(line.text, rest);
    if (best != nullptr) read(*best, rest, line);
    close_those_over();
  }

  [[nodiscard]] std::size_t lines_wanted() const override { return open_.empty() ? 0 : left_; }

  [[nodiscard]] std::vector<Finding> findings(const World& /*world*/) const override {
    std::vector<Chain> chains = closed_;
    chains.insert(chains.end(), open_.begin(), open_.end());
    std::map<std::uint32_t, const Chain*> first;  // by file
    std::vector<Finding> all;
    for (const auto& chain : chains) {
      if (chain.ignored || chain.known) continue;
      const auto* root = chain.root();
      if (root == nullptr && !chain.worker.pid.empty()) all.push_back(lost_worker(chain));
      if (root == nullptr || was_survived(chain, chains)) continue;
      auto& known = first[root->position.file];
      if (known == nullptr || root->position < known->root()->position) known = &chain;
    }
    for (const auto& [file, chain] : first) all.push_back(finding_of(*chain));
    return all;
  }

 private:
  /// A notebook writes the name of the exception before "Traceback", with spaces between.
  static std::string notebook_exception(std::string& prefix) {
    static const re2::RE2 kName(R"(^(.*?)\b([A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit))\s{2,}$)",
                                re2::RE2::Latin1);
    std::string before;
    std::string name;
    if (re2::RE2::FullMatch(prefix, kName, &before, &name)) prefix = before;
    return name;
  }

  /// Whether the line above says that Python continues.
  bool is_ignored(LogPosition position, const std::string& prefix) {
    const bool near = ignored_.position.line > 0 && ignored_.position.file == position.file &&
                      position.line - ignored_.position.line <= kMessageLines;
    const bool ignored = near && behind_prefix(prefix, ignored_.prefix) == "";
    if (ignored) ignored_ = {};
    return ignored;
  }

  void begin(const Match& match) {
    left_ = kWindow;
    std::string prefix(match.before);
    const auto notebook = notebook_exception(prefix);
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
    chain.notebook = notebook;
    chain.ignored = is_ignored(match.position, prefix);
    chain.who = match.origin;
    chain.begin = match.position;
    chain.last = match.position;
    open_.push_back(std::move(chain));
  }

  /// A traceback that starts after other text on its line has its frames at the start of the lines below it,
  /// or after the time with which each line starts.
  Chain* indented_instead(std::string_view line, std::string_view& rest) {
    const auto frame = line.find("File \"");
    if (frame == std::string_view::npos) return nullptr;
    const auto lead = line.substr(0, frame >= 2 ? frame - 2 : 0);
    for (auto& chain : open_) {
      if (chain.at != Chain::At::frames || chain.last != chain.begin) continue;
      const auto time = chain.prefix.substr(0, lead.size());
      const bool is_behind = lead.size() < chain.prefix.size() && same_shape(lead, time);
      if (!text::trim(lead).empty() && (!is_behind || !origin_of(lead).empty())) continue;
      chain.prefix = lead;
      rest = line.substr(chain.prefix.size());
      return &chain;
    }
    return nullptr;
  }

  void read(Chain& chain, std::string_view rest, const Line& line) {
    const bool indented = is_indented(rest);
    if (chain.at == Chain::At::after) {
      after(chain, rest, line, indented);
      return;
    }
    if (chain.at == Chain::At::linked) {
      if (text::trim(rest).empty()) return;
      // Ray shows the frames of the other process below its name.
      const bool goes_on = rest.find("ray::") != std::string_view::npos;
      if (goes_on) name_remote(chain, rest);
      chain.at = goes_on ? Chain::At::frames : Chain::At::over;
      return;
    }
    chain.last = line.position;
    if (text::trim(rest).empty() || rest.starts_with("Traceback (")) return;
    if (!chain.notebook.empty() && !rest.starts_with(chain.notebook)) {
      cell(chain, rest);
    } else if (indented) {
      frame(chain, rest);
    } else if (!exception(chain, rest, line)) {
      chain.at = Chain::At::over;
    }
  }

  /// The text below the name of an exception: the rest of its message, a link, or frames that Ray shows
  /// below.
  void after(Chain& chain, std::string_view rest, const Line& line, bool indented) {
    auto& named = chain.raised.back();
    if (worker(chain, rest)) return;
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
    } else if (line.position.line - named.position.line > kMessageLines) {
      chain.at = Chain::At::over;
    } else if (told_.position == line.position && told_.root) {
      chain.known = true;
    } else if (named.bare && indented) {
      named.bare = false;
      named.instead = text::trim(rest);
    }
  }

  /// Cython's frames, and those that C++ adds.
  static bool is_compiled(std::string_view file) {
    constexpr std::array<std::string_view, 6> kEndings{".pyx", ".pxi", ".cc", ".cpp", ".cu", "<unknown>"};
    return std::ranges::any_of(kEndings, [&](auto ending) { return file.ends_with(ending); });
  }

  /// Of an interpreter or a package: not where a user looks.
  static bool is_installed(std::string_view file) {
    constexpr std::array<std::string_view, 5> kPlaces{"-packages/", "lib/python", "<frozen", "<string>",
                                                      "/bin/"};
    return std::ranges::any_of(kPlaces, [&](auto part) { return file.find(part) != std::string::npos; });
  }

  static void frame(Chain& chain, std::string_view rest) {
    static const re2::RE2 kFrame(R"re(File "([^"]+)", line (\d+), in (\S+))re", re2::RE2::Latin1);
    std::string file;
    std::string line;
    std::string function;
    if (!re2::RE2::PartialMatch(piece(rest), kFrame, &file, &line, &function)) {
      if (chain.source.empty()) chain.source = text::trim(rest);
      return;
    }
    chain.source.clear();
    if (is_compiled(file) && !chain.inner.empty()) return;
    chain.inner = fmt::format("{} ({}:{})", function, file.substr(file.rfind('/') + 1), line);
    if (!is_installed(file) && !is_compiled(file)) chain.user = chain.inner;
  }

  /// A notebook's place: "Cell In[4], line 5".
  static void cell(Chain& chain, std::string_view rest) {
    static const re2::RE2 kCell(R"(^Cell In\[(\d+)\], line (\d+))", re2::RE2::Latin1);
    std::string number;
    std::string line;
    if (re2::RE2::PartialMatch(piece(rest), kCell, &number, &line))
      chain.user = fmt::format("cell {}, line {}", number, line);
  }

  /// "ray::Actor.method() (pid=..., ip=...": the exception was raised there.
  static bool name_remote(Chain& chain, std::string_view text) {
    static const re2::RE2 kRemote(R"(ray::(\w+)[^ ]* \(pid=(\d+), ip=([\d.]+))", re2::RE2::Latin1);
    Origin remote;
    if (!re2::RE2::PartialMatch(piece(text), kRemote, &remote.actor, &remote.pid, &remote.host)) return false;
    chain.who.actor.clear();
    chain.who.pid.clear();
    remote.fill(chain.who);
    chain.who = remote;
    return true;
  }

  /// What Ray prints below an ActorDiedError about the worker that exited.
  static bool worker(Chain& chain, std::string_view rest) {
    static const re2::RE2 kPart(R"(^\s+(class_name|pid|ip): (\S+)$)", re2::RE2::Latin1);
    std::string part;
    std::string value;
    if (re2::RE2::FullMatch(piece(rest), kPart, &part, &value))
      return chain.worker.set(part == "class_name" ? "actor" : part == "ip" ? "host" : part, value);
    if (!rest.starts_with("The actor is dead because its worker process has died")) return false;
    chain.was_terminated = rest.find("The process receives a SIGTERM") != std::string_view::npos;
    return true;
  }

  bool exception(Chain& chain, std::string_view rest, const Line& line) {
    std::string type;
    std::string message;
    if (!re2::RE2::FullMatch(piece(rest), exception_line(), &type, &message)) return false;
    const bool is_of_another = name_remote(chain, message);
    const bool told = told_.position == line.position;
    if (told && told_.root) chain.known = true;
    if (chain.raised.size() < kMostLinks) {
      const bool of_a_size = message.find("size of tensor") != std::string::npos;
      Raised raised;
      raised.type = type;
      raised.bare = text::trim(message).empty();
      raised.place = chain.user.empty() ? chain.inner : chain.user;
      raised.position = line.position;
      raised.text = excerpt(line.text, "");
      raised.follows = is_of_another || follows(type) || (told && !told_.root && told_.consequence);
      if (raised.bare) raised.instead = chain.source;
      raised.of_a_shape = chain.loads_weight && (of_a_size || (raised.bare && type == "AssertionError"));
      if (told) raised.hint = told_.hint;
      chain.raised.push_back(std::move(raised));
    }
    chain.user.clear();
    chain.inner.clear();
    chain.source.clear();
    chain.loads_weight = false;
    chain.at = Chain::At::after;
    return true;
  }

  void close_those_over() {
    for (auto& chain : open_) {
      if (chain.at == Chain::At::over && closed_.size() < kMostChains) closed_.push_back(std::move(chain));
    }
    std::erase_if(open_, [](const Chain& chain) { return chain.at == Chain::At::over; });
  }

  /// The same process continued for long, and raised another one.
  static bool was_survived(const Chain& chain, const std::vector<Chain>& chains) {
    return std::ranges::any_of(chains, [&](const Chain& later) {
      const auto* root = later.root();
      return root != nullptr && !later.ignored && later.begin.file == chain.begin.file &&
             later.who == chain.who && later.begin.line > chain.last.line + kSurvived &&
             root->type != chain.root()->type;
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
    finding.why = fmt::format("Python raised {}{} and nothing caught it{}", root.type,
                              root.place.empty() ? "" : fmt::format(" in {}", root.place),
                              root.instead.empty() ? "" : fmt::format(": {}", root.instead));
    finding.fix = "the traceback above this line shows where";
    finding.confidence = Confidence::likely;
    if (root.of_a_shape) {
      finding.category = "shape-mismatch";
      finding.weight = kShape;
      finding.why = "a weight has a different shape than the parameter of the engine that it is for";
      finding.fix =
          "use the same model, vocabulary size and adapter on both sides: compare config.json of the "
          "learner's model and of the engine's";
    } else if (root.hint != nullptr) {
      finding.category = root.hint->category;
      finding.weight = kException;
      finding.why = root.hint->why;
      finding.fix = root.hint->fix;
      finding.source = root.hint->source;
    }
    return finding;
  }

  static Finding lost_worker(const Chain& chain) {
    const auto& last = chain.raised.back();
    Finding finding;
    finding.category = chain.was_terminated ? "process-terminated" : "ray-worker-died";
    finding.signature = kTracebacks;
    finding.weight = kLostWorker;
    finding.position = last.position;
    finding.text = last.text;
    finding.culprits = {chain.worker};
    finding.culprits.front().fill(chain.who);
    finding.why = chain.was_terminated ? "a Ray worker was terminated (SIGTERM)" : "a Ray worker exited";
    finding.fix =
        chain.was_terminated
            ? "find out what sent SIGTERM: a person, the scheduler, or a site script"
            : "see its own log in the session directory (worker-*.err), and the kernel log of its node";
    finding.confidence = Confidence::likely;
    return finding;
  }

  /// The line that a signature matched last.
  struct Told {
    LogPosition position;
    bool root = false;
    bool consequence = false;
    const Signature* hint = nullptr;
  };
  Told told_;
  /// "Exception ignored in" that was read last.
  struct Ignored {
    LogPosition position;
    std::string prefix;
  };
  Ignored ignored_;
  std::size_t left_ = 0;
  std::vector<Chain> open_;
  std::vector<Chain> closed_;
};

const Registered<AnalysisEntry> tracebacks_analysis{{
    .order = 40,
    .name = "tracebacks",
    .title = "Python exceptions that match no signature",
    .make = make_analysis<Tracebacks>,
    .reads_on_after = {"python.traceback"},
}};

}  // namespace
}  // namespace nlaunch::diagnose
