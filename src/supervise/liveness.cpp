#include "supervise/liveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace nlaunch::supervise {
namespace {

std::string target_of(const plan::Alive& alive) {
  constexpr std::size_t kLongest = 80;  // of the program named in the reason; it may be a whole script
  if (!alive.http.empty()) return alive.http;
  if (!alive.tcp.empty()) return alive.tcp;
  return text::printable(text::join(alive.exec, " ").substr(0, kLongest));
}

}  // namespace

Liveness::Liveness(sys::Loop& loop, plan::Alive alive, sys::SpawnRequest like, Silent silent)
    : loop_(loop), alive_(std::move(alive)), program_(std::move(like)), silent_(std::move(silent)) {
  look_after(alive_.after);
}

Liveness::~Liveness() {
  loop_.cancel(next_);
  loop_.cancel(deadline_);
}

void Liveness::look_after(Duration pause) {
  next_ = loop_.after(pause, [this] { look(); });
}

void Liveness::look() {
  begun_ = std::chrono::steady_clock::now();
  const auto answer = [this](const sys::CheckResult& result) { judge(result); };
  if (!alive_.http.empty()) {
    check_ = sys::NetCheck::http(loop_, *sys::parse_http_url(alive_.http), alive_.timeout, answer);
  } else if (!alive_.tcp.empty()) {
    check_ = sys::NetCheck::tcp(loop_, *sys::parse_endpoint(alive_.tcp), alive_.timeout, answer);
  } else {
    deadline_ = loop_.after(alive_.timeout, [this] {
      asked_.reset();
      judge(fmt::format("did not exit within {}", format_duration(alive_.timeout)));
    });
    asked_ = std::make_unique<sys::ExecCheck>(loop_, program_, answer);
  }
}

void Liveness::judge(const sys::CheckResult& result) {
  loop_.cancel(deadline_);
  failures_ = result ? failures_ + 1 : 0;
  if (failures_ < alive_.failures) {
    const auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begun_);
    return look_after(alive_.every - std::min(alive_.every, took));  // from one start to the next
  }
  const auto reason = fmt::format("{}: {}{}", target_of(alive_), *result,
                                  failures_ > 1 ? fmt::format(", {} times in a row", failures_) : "");
  const auto silent = std::exchange(silent_, nullptr);
  silent(reason);  // which may destroy this object
}

}  // namespace nlaunch::supervise
