#pragma once
#include <cstddef>
#include <expected>
#include <string>

#include "base/units.h"
#include "sys/net_check.h"

namespace nlaunch::sys {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

/// Sends a GET and waits for the whole answer; a body that is longer than `most` bytes is an error, and a
/// redirect an answer like any other. The error is why there is none: "no answer in time". For threads that
/// may block: a name, which is no address, is looked up without a limit in time.
std::expected<HttpAnswer, std::string> http_get(const HttpUrl& url, Duration timeout, std::size_t most);

}  // namespace nlaunch::sys
