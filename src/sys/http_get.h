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

/// Sends a GET and waits for the complete answer; a body of more than `most` bytes is an error, and a
/// redirect is an answer like any other. The error is the reason: "no answer in time". For threads that may
/// block: host names are resolved without a time limit.
std::expected<HttpAnswer, std::string> http_get(const HttpUrl& url, Duration timeout, std::size_t most);

}  // namespace nlaunch::sys
