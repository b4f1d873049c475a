#include "session/notifier.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "launch/bind/secrets.h"
#include "record/run_files.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::session {
namespace {

using Json = nlohmann::ordered_json;

/// Says what went wrong, once it is over. The program gets ten seconds.
constexpr const char* kScript = R"sh(
said=$(timeout -k 1 10 "$@" 2>&1 >/dev/null) || {
  code=$?
  said=$(printf %s "$said" | head -c 500 | tr -c '[:print:]' ' ')
  printf 'nlaunch: notify: %s: exit code %s: %s\n' "$1" "$code" "$said" >&2
})sh";
constexpr std::chrono::seconds kForTheLast{5};
constexpr std::chrono::seconds kBeforeSweep{1};

std::map<std::string, std::string> as_map(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> out;
  for (const auto& variable : environment) {
    const auto equals = variable.find('=');
    if (equals != std::string::npos) out[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return out;
}

}  // namespace

Notices::Notices(const plan::Plan& plan) : name_(fmt::format("{} on {}", plan.name, plan.site)) {
  if (plan.notify) wanted_.insert(plan.notify->on.begin(), plan.notify->on.end());
  for (const auto& process : plan.processes) {
    const auto& role = plan.role_of(process);
    // Those that another process starts are in none of the events, and borrowed nodes may never come.
    if (role.kind == RoleKind::task || role.ready.exited || !role.spawned_by.empty() ||
        plan.is_borrowed(process.node))
      continue;
    const auto name = plan.name_of(process);
    all_.insert(name);
    // Of a replica the leader is asked.
    if (role.ready.given() && plan::in_replica(role, process).rank == 0) checked_.insert(name);
  }
}

std::optional<Notice> Notices::take(std::string_view event, const Json& fields) {
  const auto notice = [&](NotifyOn on, const std::string& what) -> std::optional<Notice> {
    if (!wanted_.contains(on)) return std::nullopt;
    constexpr std::size_t kMost = 1000;
    return Notice{on, text::printable(fmt::format("{}: {}", name_, what)).substr(0, kMost)};
  };
  const auto process = record::text_at(fields, "process");
  if (event == "attempt-started") {
    awaited_ = all_;
    const auto attempt = record::number_at(fields, "attempt");
    return notice(NotifyOn::start, attempt > 0 ? fmt::format("started, attempt {:.0f}", attempt) : "started");
  }
  if (event == "process-ready" || (event == "process-started" && !checked_.contains(process))) {
    if (awaited_.erase(process) == 0 || !awaited_.empty() || std::exchange(told_ready_, true))
      return std::nullopt;
    return notice(NotifyOn::ready, "all processes are ready");
  }
  if (event == "watch" && record::text_at(fields, "kind") == "stalled")
    return notice(NotifyOn::stall, record::text_at(fields, "what"));
  if (event == "attempt") how_.clear();
  if (event == "attempt-ended") how_ = record::text_at(fields, "what");
  if (event != "end") return std::nullopt;
  const auto outcome = record::text_at(fields, "outcome");
  if (how_.empty()) return notice(NotifyOn::end, outcome);
  return notice(NotifyOn::end, how_.starts_with(outcome) ? how_ : fmt::format("{}: {}", outcome, how_));
}

Json to_json(const Notice& notice, const plan::Plan& plan, const launch::RunPaths& paths) {
  return {{"text", notice.text}, {"event", name_of(notice.on)}, {"run", paths.id},
          {"name", plan.name},   {"site", plan.site},           {"folder", paths.folder.string()}};
}

std::string curl_config(const std::string& url, const std::string& json) {
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + "\"";
  };
  return fmt::format(
      "url = {}\ndata-raw = {}\nheader = \"Content-Type: "
      "application/json\"\nsilent\nshow-error\nfail\ngloboff\nmax-time = 10\n",
      quoted(url), quoted(json));
}

Notifier::Notifier(const plan::Plan& plan, const launch::RunPaths& paths, const Caller& caller)
    : plan_(plan), paths_(paths), caller_(caller), notices_(plan) {
  if (!plan.notify || !plan.notify->webhook) return;
  const auto values = launch::read_secrets({*plan.notify->webhook}, as_map(caller.environment));
  const auto url = values ? values->begin()->second : "";
  const bool http = url.starts_with("https://") || url.starts_with("http://");
  if (http && std::ranges::none_of(url, [](unsigned char c) { return c <= ' '; }))
    webhook_ = url;
  else
    caller.console.warn(fmt::format(
        "no notification goes to the webhook: {}",
        values ? "its secret is not a URL with http:// or https://" : values.error().first_message()));
}

Notifier::~Notifier() {
  wait(kForTheLast);
  for (const auto pid : running_) ::kill(-pid, SIGKILL);
}

void Notifier::take(std::string_view event, const Json& fields) {
  if (!plan_.notify) return;
  // What is below nlaunch is killed when an attempt ends.
  if (event == "run-ending") wait(kBeforeSweep);
  const auto notice = notices_.take(event, fields);
  if (!notice) return;
  const auto json = json_text(to_json(*notice, plan_, paths_));
  if (!plan_.notify->exec.empty()) send(plan_.notify->exec, json + "\n");
  if (!webhook_.empty()) send({"curl", "-q", "--config", "-"}, curl_config(webhook_, json));
}

void Notifier::wait(std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  constexpr std::chrono::milliseconds kGlance{10};
  std::erase_if(running_, [&](pid_t pid) {
    // Another loop may have reaped it.
    while (::waitpid(pid, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(kGlance);
    }
    return true;
  });
}

void Notifier::send(std::vector<std::string> argv, const std::string& input) {
  const auto complain = [&](const std::string& why) { caller_.console.warn("notify: " + why); };
  auto pipe = sys::make_pipe();
  if (!pipe) return complain(pipe.error().first_message());
  argv.insert(argv.begin(), {"/bin/sh", "-c", kScript, "nlaunch-notify"});
  sys::SpawnRequest request{.argv = std::move(argv),
                            .env = caller_.environment,
                            .cwd = {},
                            .in = pipe->read.get(),
                            .err = STDERR_FILENO,
                            .cpus = {},
                            .mark = {}};
  const auto pid = sys::spawn(request);
  if (!pid) return complain(pid.error().first_message());
  running_.push_back(*pid);
  pipe->read.reset();
  // Nobody waits for the reader: a notice fits even into the smallest pipe.
  ::fcntl(pipe->write.get(), F_SETFL, O_NONBLOCK);
  if (::write(pipe->write.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size()))
    complain("the notice could not be handed over");
}

}  // namespace nlaunch::session
