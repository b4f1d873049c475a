#include "supervise/explanation.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "sys/net_check.h"

namespace nlaunch::supervise {
namespace {

constexpr std::string_view kNotReady = "not-ready";
constexpr std::string_view kPortInUse = "port-in-use";

std::string placed(std::string what, const std::string& origin) {
  return origin.empty() ? what : fmt::format("{} ({})", what, origin);
}

std::string role_at(const plan::Role& role) {
  return placed(fmt::format("role '{}'", role.name), role.origin);
}

std::string ready_at(const plan::Role& role) {
  return placed("`ready`", role.ready.origin);
}

std::string command_at(const plan::Role& role) {
  return placed("its command", role.command_origin);
}

/// The name of the port in "http://${self.host}:${self.ports.http}/health"; empty: it has a number.
std::string port_name(const std::string& address) {
  constexpr std::string_view kPort = "${self.ports.";
  const auto at = address.find(kPort);
  if (at == std::string::npos) return "";
  const auto rest = std::string_view(address).substr(at + kPort.size());
  return std::string(rest.substr(0, rest.find('}')));
}

/// The check as it would be written with another port (empty: the same) and another path.
std::string check_with(const plan::Ready& ready, const std::string& port, const std::string& path) {
  static const RE2 kPort(R"((http://.*):(?:\$\{[^}]*\}|\d+)$)");
  const auto& url = ready.http;
  constexpr std::size_t kScheme = std::string_view("http://").size();
  auto host = url.substr(0, std::min(url.find('/', kScheme), url.size()));
  if (!port.empty()) RE2::Replace(&host, kPort, R"(\1:)" + port);
  return fmt::format("`http: \"{}{}\"`", host, path);
}

struct Address {
  std::string host;
  std::string port;
  std::string path;
};

Address address_of(const std::string& check) {
  if (const auto url = sys::parse_http_url(check))
    return {url->endpoint.host, url->endpoint.port, text::printable(url->target)};
  const auto endpoint = sys::parse_endpoint(check);
  return endpoint ? Address{endpoint->host, endpoint->port, ""} : Address{};
}

bool is_port(const std::string& end, const std::string& port) {
  return !port.empty() && end.ends_with(":" + port);
}

bool is_loopback(const std::string& end) {
  return end.starts_with("127.") || end.starts_with("[::1]");
}

/// What to write for twice the time.
std::string more_time(const plan::Role& role) {
  const auto& ready = role.ready;
  const auto twice = format_duration(2 * ready.timeout);
  if (role.kind == RoleKind::task) return fmt::format("write `timeout: {}` in {}", twice, role_at(role));
  if (ready.server && ready.timeout_origin.empty())
    return fmt::format(
        "write {}", placed(fmt::format("`ready: {{server: {}, timeout: {}}}`", name_of(*ready.server), twice),
                           ready.origin));
  return fmt::format(
      "write `timeout: {}` in {}", twice,
      placed("its `ready`", ready.timeout_origin.empty() ? ready.origin : ready.timeout_origin));
}

class NotReadyExplainer {
 public:
  NotReadyExplainer(const plan::Role& role, const std::string& process, const NotReadySeen& seen)
      : role_(role),
        ready_(role.ready),
        process_(process),
        seen_(seen),
        checked_(address_of(seen.check)),
        after_(format_duration(role.ready.timeout)) {}

  [[nodiscard]] Explanation explain() const {
    if (ready_.http.empty() && ready_.tcp.empty()) return of_no_server();
    if (!seen_.stranger.empty()) return of_a_stranger();
    if (!seen_.answers.empty()) return of_another_address();
    if (const auto only = loopback(); !only.empty()) return of_loopback(only);
    if (!seen_.loading.empty()) return of_loading();
    if (seen_.last.starts_with("answered ")) return of_an_answer();
    return seen_.listens.empty() ? of_nothing() : of_other_ports();
  }

 private:
  static Explanation made(bool sure, std::string why, std::string fix) {
    return {std::string(kNotReady), std::move(why), std::move(fix), sure};
  }

  /// The process listens on the checked port, but only for its own machine.
  [[nodiscard]] std::string loopback() const {
    const auto here = [&](const std::string& end) { return is_port(end, checked_.port); };
    const auto end = std::ranges::find_if(seen_.listens, here);
    if (end == seen_.listens.end() || is_loopback(checked_.host) || checked_.host == "localhost") return "";
    const bool all = std::ranges::all_of(
        seen_.listens, [&](const std::string& one) { return !here(one) || is_loopback(one); });
    return all ? *end : "";
  }

  /// How to make the process listen on the port that is checked.
  [[nodiscard]] std::string pass_the_port() const {
    const auto name = port_name(ready_.http + ready_.tcp);
    const auto port = name.empty() ? checked_.port : fmt::format("${{self.ports.{}}}", name);
    return fmt::format("pass it that port, for example `--port, \"{}\"`, in {}", port, command_at(role_));
  }

  [[nodiscard]] Explanation of_a_stranger() const {
    const bool chosen = !port_name(ready_.http + ready_.tcp).empty();
    const auto own = chosen ? std::string("start again: nlaunch chooses a free port each time")
                            : fmt::format(
                                  "write `ports: [http]` in {} and use ${{self.ports.http}} in {} and "
                                  "in {}",
                                  role_at(role_), command_at(role_), ready_at(role_));
    return {std::string(kPortInUse),
            fmt::format("port {}, on which {} is checked, is held by {}", checked_.port, process_,
                        seen_.stranger),
            seen_.remedy.empty() ? own : fmt::format("{}, or {}", seen_.remedy, own), true};
  }

  [[nodiscard]] Explanation of_another_address() const {
    const auto found = address_of(seen_.answers);
    if (found.port == checked_.port) {
      return made(true,
                  fmt::format("the server of {} is up, but GET {} {}; GET {} answers there", process_,
                              checked_.path, seen_.last, found.path),
                  fmt::format("write {} in {}", check_with(ready_, "", found.path), ready_at(role_)));
    }
    return made(true,
                fmt::format("{} listens on port {}, not on port {}, which is checked; GET {} answers there",
                            process_, found.port, checked_.port, found.path),
                fmt::format("{}; or write {} in {}", pass_the_port(),
                            check_with(ready_, found.port, found.path), ready_at(role_)));
  }

  [[nodiscard]] Explanation of_loopback(const std::string& end) const {
    return made(true,
                fmt::format("{} listens on {} only, and the check connects to {}:{}", process_, end,
                            checked_.host, checked_.port),
                fmt::format("let it listen on the address of its node, for example `--host, "
                            "\"${{self.host}}\"`, in {}",
                            command_at(role_)));
  }

  [[nodiscard]] Explanation of_loading() const {
    return made(false, fmt::format("{} was still loading after {}: {}", process_, after_, seen_.loading),
                more_time(role_));
  }

  [[nodiscard]] Explanation of_an_answer() const {
    if (seen_.last.starts_with("answered 5")) {
      return made(false,
                  fmt::format("the server of {} {} after {}: it listens, but is not ready", process_,
                              seen_.last, after_),
                  fmt::format("see its last lines; if it needs longer, {}", more_time(role_)));
    }
    return made(true,
                fmt::format("the server of {} is up, but GET {} {}, and none of the usual health paths ({}) "
                            "answers 2xx",
                            process_, checked_.path, seen_.last, text::join(health_paths(), ", ")),
                fmt::format("write the health path of this server, or another check (`tcp`, `log`), in {}",
                            ready_at(role_)));
  }

  [[nodiscard]] Explanation of_other_ports() const {
    const bool here = std::ranges::any_of(
        seen_.listens, [&](const std::string& end) { return is_port(end, checked_.port); });
    if (here) {
      return made(
          false,
          fmt::format("{} listens on port {}, but {} within {}", process_, checked_.port, seen_.last, after_),
          fmt::format("see its last lines; if it needs longer, {}", more_time(role_)));
    }
    return made(false,
                fmt::format("{} listens on {}, not on port {}, which is checked", process_,
                            text::join(seen_.listens, ", "), checked_.port),
                fmt::format("{}; if it needs longer, {}", pass_the_port(), more_time(role_)));
  }

  [[nodiscard]] Explanation of_nothing() const {
    return made(
        false,
        fmt::format("{} listens on no port after {} ({}: {})", process_, after_, seen_.check, seen_.last),
        fmt::format("see its last lines; if it is a server, {}; if it needs longer, {}", pass_the_port(),
                    more_time(role_)));
  }

  [[nodiscard]] Explanation of_no_server() const {
    if (ready_.exited) {
      return made(true, fmt::format("{} did not exit within {}", process_, after_),
                  fmt::format("see its last lines; if it needs longer, {}", more_time(role_)));
    }
    if (!seen_.loading.empty()) return of_loading();
    const auto what = !ready_.log.empty() ? fmt::format("no line of the output of {} matched '{}' within {}",
                                                        process_, ready_.log, after_)
                                          : fmt::format("{}: {} after {}", seen_.check, seen_.last, after_);
    const auto key = !ready_.log.empty() ? "log" : !ready_.file.empty() ? "file" : "exec";
    return made(false, what,
                fmt::format("compare `{}` in {} with its last lines; if it needs longer, {}", key,
                            ready_at(role_), more_time(role_)));
  }

  const plan::Role& role_;
  const plan::Ready& ready_;
  const std::string& process_;
  const NotReadySeen& seen_;
  Address checked_;
  std::string after_;
};

/// Where the process has the port from: "'http' in the `ports` of role 'engine' (grpo.yaml:5:3)"
std::string source_of(const plan::Role& role, const PortTaken& taken) {
  if (taken.index >= 0 && static_cast<std::size_t>(taken.index) < role.ports.size())
    return fmt::format("'{}' in the `ports` of {}", role.ports[static_cast<std::size_t>(taken.index)],
                       role_at(role));
  const auto number = std::to_string(taken.port);
  const auto names_it = [&](const std::string& word) { return word.contains(number); };
  if (std::ranges::any_of(role.command, names_it)) return command_at(role);
  if (names_it(role.ready.http) || names_it(role.ready.tcp)) return ready_at(role);
  return role.rendezvous_port == taken.port ? fmt::format("MASTER_PORT of {}", role_at(role)) : role_at(role);
}

/// The first line of the last traceback, or of the first of those that led to it; the number of lines if
/// there is none.
std::size_t start_of_traceback(const std::vector<std::string>& lines) {
  std::size_t start = lines.size();
  bool counts = true;
  for (std::size_t i = lines.size(); i-- > 0;) {
    if (lines[i].contains("During handling of the above exception") ||
        lines[i].contains("The above exception was the direct cause"))
      counts = true;
    if (!lines[i].contains("Traceback (most recent call last)")) continue;
    if (!counts) break;
    start = i;
    counts = false;
  }
  return start;
}

}  // namespace

Explanation explain(const plan::Role& role, const std::string& process, const NotReadySeen& seen) {
  return NotReadyExplainer(role, process, seen).explain();
}

Explanation explain(const plan::Role& role, const std::string& process, const PortTaken& taken) {
  const bool chosen = taken.index >= 0 || role.rendezvous_port == taken.port;
  const auto own = chosen ? std::string("start again: nlaunch chooses a free port each time")
                          : fmt::format("write `ports: [http]` in {} and use ${{self.ports.http}} in {}",
                                        role_at(role), command_at(role));
  return {std::string(kPortInUse),
          fmt::format("{} could not listen on port {}, which is held by {}; the port is from {}", process,
                      taken.port, taken.holder, source_of(role, taken)),
          taken.remedy.empty() ? own : fmt::format("{}, or {}", taken.remedy, own), true};
}

std::string check_text(const plan::Ready& ready) {
  const auto timeout = fmt::format("its timeout: {} ({})", format_duration(ready.timeout),
                                   ready.timeout_origin.empty() ? "the default" : ready.timeout_origin);
  if (ready.exited) return timeout;
  const auto what = ready.server          ? fmt::format("{}: {}", name_of(*ready.server), ready.http)
                    : !ready.http.empty() ? "http: " + ready.http
                    : !ready.tcp.empty()  ? "tcp: " + ready.tcp
                    : !ready.log.empty()  ? "log: " + ready.log
                    : !ready.file.empty() ? "file: " + ready.file
                                          : "exec: " + text::shell_join(ready.exec);
  return fmt::format("its check: {}; {}", placed(fmt::format("`{}`", what), ready.origin), timeout);
}

const std::vector<std::string>& health_paths() {
  static const std::vector<std::string> kPaths{"/health", "/health/", "/healthz",   "/health_generate",
                                               "/ready",  "/ping",    "/v1/models", "/"};
  return kPaths;
}

std::string loading_line(const std::vector<std::string>& lines) {
  // vLLM (model_executor/model_loader, v1/worker/gpu_model_runner.py), SGLang (srt/model_executor), the
  // progress bars of transformers and huggingface_hub.
  static const RE2 kLoading(
      R"((?i)\bloading (?:[\w-]+ )?(?:checkpoint|model|weights|shards)|load weight begin|starting to load model)"
      R"(|\bfetching \d+ files|\bdownloading |\bcompiling |torch\.compile|captur(?:e|ing) (?:cuda graph|batches))");
  static const RE2 kDone(R"(\b100%)");
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (RE2::PartialMatch(*line, kLoading) && !RE2::PartialMatch(*line, kDone))
      return std::string(text::trim(*line));
  }
  return "";
}

std::optional<std::vector<std::uint16_t>> ports_in_use(const std::vector<std::string>& lines) {
  static const RE2 kInUse(R"((?i)EADDRINUSE|address already in use|port \d+ is (?:already )?in use)");
  static const RE2 kBindError(R"((?i)EADDRINUSE|address already in use)");
  // "trying port 8001", "using 8001 instead"; not "use another port", which the user has to do
  static const RE2 kGoesOn(
      R"((?i)\b(?:re)?trying\b|\bf[ae]ll(?:s|ing)?[ -]?back\b|\binstead\b|[,;.:-] (?:now )?using\b)"
      R"(|\bswitch(?:ed|ing) to\b|\b(?:chose|choosing|picked|picking|selected|selecting)\b)"
      R"(|\bnext (?:free |available )?port\b|\bwill use\b)"
      R"(|\busing (?:a |the )?(?:different|free|next|other|random)\b)");
  constexpr std::size_t kEnd = 20;
  // "('0.0.0.0', 8000)", "port: 29500", "port 8000", "127.0.0.1:6379"
  static const RE2 kPort(R"((?i)(?:', |\bport[:=]? |\d\.\d+:|\*:|localhost:)(\d{2,5})\b)");
  bool is_one = false;
  std::vector<std::uint16_t> ports;
  const auto traceback = start_of_traceback(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& line = lines[i];
    if (!RE2::PartialMatch(line, kInUse) || RE2::PartialMatch(line, kGoesOn)) continue;
    const bool ends_it = i + kEnd >= lines.size() || (i >= traceback && RE2::PartialMatch(line, kBindError));
    if (!ends_it) continue;
    is_one = true;
    re2::StringPiece rest(line);
    std::string number;
    while (RE2::FindAndConsume(&rest, kPort, &number)) {
      const auto port = text::whole_number<std::uint16_t>(number);
      if (port && std::ranges::find(ports, *port) == ports.end()) ports.push_back(*port);
    }
  }
  return is_one ? std::optional(std::move(ports)) : std::nullopt;
}

}  // namespace nlaunch::supervise
