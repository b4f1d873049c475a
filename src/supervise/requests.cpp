#include "supervise/requests.h"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <thread>

#include "base/json.h"
#include "supervise/events.h"
#include "sys/files.h"

namespace nlaunch::supervise {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kLargest = 4096;  ///< of a request
constexpr std::uint64_t kLongestAnswer = 1U << 20U;
constexpr std::string_view kRequest = ".request";
constexpr std::string_view kAnswer = ".answer";

fs::path folder_of(const fs::path& attempt) {
  return attempt / "requests";
}

std::optional<RunRequest> request_of(const std::string& text) {
  const auto from = parse_json(text);
  if (!from.is_object()) return std::nullopt;
  try {
    const auto kind = value_of<RunRequest::Kind>(from.at("kind").get<std::string>());
    if (!kind) return std::nullopt;
    return RunRequest{*kind, from.at("what").get<std::string>(), from.at("count").get<std::uint32_t>()};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::optional<Answer> answer_in(const fs::path& path) {
  const auto text = sys::read_regular_file(path, kLongestAnswer, sys::Links::refused);
  const auto from = text ? parse_json(*text) : json();
  if (!from.is_object()) return std::nullopt;
  try {
    return Answer{from.at("granted").get<bool>(), from.at("text").get<std::string>()};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Result<std::optional<Answer>> ask(const fs::path& attempt, const RunRequest& request, Duration limit) {
  constexpr std::chrono::milliseconds kBetween{50};
  const auto folder = folder_of(attempt);
  if (const auto made = sys::make_private_folder(folder); !made) return std::unexpected(made.error());
  const auto name = fmt::format("{}-{}", utc_stamp(), ::getpid());
  const auto path = folder / (name + std::string(kRequest));
  const auto answer = folder / (name + std::string(kAnswer));
  const json text{{"kind", nlaunch::name_of(request.kind)}, {"what", request.what}, {"count", request.count}};
  if (const auto written = sys::write_file_atomically(path, json_text(text) + "\n"); !written)
    return std::unexpected(written.error());
  std::error_code error;
  std::optional<Answer> said;
  for (const auto end = std::chrono::steady_clock::now() + limit;
       !said && std::chrono::steady_clock::now() < end; said = answer_in(answer))
    std::this_thread::sleep_for(kBetween);
  fs::remove(path, error);
  fs::remove(answer, error);
  return said;
}

std::vector<PendingRequest> take_requests(const fs::path& attempt) {
  std::vector<PendingRequest> found;
  std::error_code error;
  for (fs::directory_iterator at(folder_of(attempt), error), end; !error && at != end; at.increment(error)) {
    const auto& path = at->path();
    if (path.extension() != kRequest) continue;
    const auto text = sys::read_regular_file(path, kLargest, sys::Links::refused);
    const auto request = text ? request_of(*text) : std::nullopt;
    std::error_code removed;
    fs::remove(path, removed);
    if (request) found.push_back({fs::path(path).replace_extension(kAnswer), *request});
  }
  return found;
}

void answer(const PendingRequest& pending, const Answer& answer) {
  const json text{{"granted", answer.granted}, {"text", answer.text}};
  // The requester may have gone: nobody else reads the answer.
  (void)sys::write_file_atomically(pending.answer, json_text(text) + "\n");
}

}  // namespace nlaunch::supervise
