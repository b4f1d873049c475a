#include <chrono>
#include <cmath>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "base/registry.h"
#include "evidence/readers/server.h"
#include "evidence/source.h"
#include "sys/http_get.h"

// What a server reports about itself over HTTP: whether it is healthy, paused, and what it has to do. An
// engine's answers come from the process that serves HTTP, and those of /is_paused from the one behind it
// that generates.
namespace nlaunch::evidence {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Asked {
  ordered_json said;  ///< {"at", "seconds", "status" or "error"}
  std::string body;
};

/// `began`: when all of it started; times are in seconds.
Asked ask(const sys::HttpUrl& url, Clock::time_point began) {
  constexpr Duration kTimeout = std::chrono::seconds(2);
  constexpr std::size_t kLongest = 4U << 20U;
  const auto seconds_since = [](Clock::time_point then) {
    constexpr double kMilli = 1000;
    return std::round(std::chrono::duration<double>(Clock::now() - then).count() * kMilli) / kMilli;
  };
  const auto at = seconds_since(began);
  const auto start = Clock::now();
  auto answer = sys::http_get(url, kTimeout, kLongest);
  Asked asked{{{"at", at}, {"seconds", seconds_since(start)}}, {}};
  if (!answer) {
    asked.said["error"] = answer.error();
    return asked;
  }
  asked.said["status"] = answer->status;
  asked.body = std::move(answer->body);
  return asked;
}

ordered_json ask_is_paused(const sys::HttpUrl& url, Clock::time_point began) {
  auto asked = ask(url, began);
  const auto answer = parse_json(asked.body);
  if (answer.is_object() && answer.contains("is_paused") && answer["is_paused"].is_boolean())
    asked.said["paused"] = answer["is_paused"].get<bool>();
  return asked.said;
}

ordered_json ask_metrics(const sys::HttpUrl& url, Clock::time_point began) {
  auto looks = ordered_json::array();
  for (const auto after : {std::chrono::seconds(0), std::chrono::seconds(1)}) {
    std::this_thread::sleep_until(began + after);
    auto asked = ask(url, began);
    asked.said["counters"] = counters_of(asked.body);
    looks.push_back(std::move(asked.said));
  }
  return looks;
}

Found collect_server(const CollectContext& context) {
  Found found;
  const auto& address = context.subject->url;
  const auto health = sys::parse_http_url(address);
  if (context.tree.empty() || address.empty() || !health) return found;
  const auto path = [&](const char* target) {
    auto url = *health;
    url.target = target;
    return url;
  };
  const auto began = Clock::now();
  auto is_paused = std::async(std::launch::async, ask_is_paused, path("/is_paused"), began);
  auto metrics = std::async(std::launch::async, ask_metrics, path("/metrics"), began);
  ordered_json object{{"url", address.substr(0, address.find('?'))}, {"health", ask(*health, began).said}};
  object["is_paused"] = is_paused.get();
  object["metrics"] = metrics.get();
  constexpr auto kFile = "server.json";
  if (context.write(kFile, json_text(object, 1) + "\n")) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> server_source{{
    .order = 15,
    .name = "server",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(5),
    .lane =
        0,  // before the stacks: a server that a debugger has stopped does not answer, and generates nothing
    .collect = collect_server,
}};

}  // namespace
}  // namespace nlaunch::evidence
