#include "probe/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <mutex>

#include "base/json.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

int json_fd = STDOUT_FILENO;
std::mutex one_line_at_a_time;

}  // namespace

void claim_stdout() {
  const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return;
  json_fd = copy;
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

void release_stdout() {
  ::dup2(json_fd, STDOUT_FILENO);
}

void emit(const nlohmann::json& line) {
  const auto text = json_text(line) + "\n";
  const std::lock_guard lock(one_line_at_a_time);
  sys::write_all(json_fd, text);
}

Phase::~Phase() {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
  emit({{"event", "phase"}, {"name", name_}, {"seconds", took.count()}});
}

std::string text_of(const Diagnostics& why) {
  std::string text;
  for (const auto& item : why.items()) text += (text.empty() ? "" : "; ") + item.message;
  return text;
}

}  // namespace nlaunch::probe
