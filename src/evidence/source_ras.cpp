#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "evidence/source.h"
#include "sys/tcp_client.h"

// What NCCL's own watch says of all communicators of the process, and of their ranks everywhere.
namespace nlaunch::evidence {
namespace {

/// Of NCCL's collective over its RAS threads, not of ours; its default is 5 s (RAS_COLLECTIVE_LEG_TIMEOUT of
/// src/ras/ras_internal.h), and a dead peer costs one.
constexpr int kTimeout = 5;
constexpr std::size_t kLargest = 256U << 20U;

/// One request that is answered with one line.
Result<std::string> ask(sys::TcpClient& client, const std::string& request) {
  if (const auto sent = client.send(request + "\n"); !sent) return std::unexpected(sent.error());
  return client.read_line();
}

struct Answer {
  bool json = false;
  std::string text;
};

/// src/ras/client.cc: a handshake of versions, of which the server takes any, options that it answers with
/// OK, then the request, after whose answer it hangs up. JSON came with 2.28.7; before that it says ERROR.
Result<Answer> status(const std::string& address, sys::TcpClient::Clock::time_point deadline) {
  auto client = sys::TcpClient::connect(address, deadline);
  if (!client) return std::unexpected(client.error());
  const auto server = ask(*client, "CLIENT PROTOCOL 2");
  if (!server) return std::unexpected(server.error());
  if (!server->starts_with("SERVER PROTOCOL")) {
    return failure("evidence.ras", "{} is not NCCL's: it says '{}'", address, text::printable(*server));
  }
  if (const auto set = ask(*client, fmt::format("TIMEOUT {}", kTimeout)); !set)
    return std::unexpected(set.error());
  const auto format = ask(*client, "SET FORMAT json");
  if (!format) return std::unexpected(format.error());
  if (const auto sent = client->send("VERBOSE STATUS\n"); !sent) return std::unexpected(sent.error());
  auto text = client->read_rest(kLargest);
  if (!text) return std::unexpected(text.error());
  return Answer{*format == "OK", std::move(*text)};
}

}  // namespace

Found collect_ras(const CollectContext& context) {
  Found found;
  if (context.subject->ras.empty() || context.tree.empty()) return found;
  const auto answer = status(context.subject->ras, context.deadline);
  if (!answer) {
    found.missing.push_back({"NCCL RAS", answer.error().items().front().message,
                             "NCCL 2.24 or newer answers there once a communicator has been made"});
    return found;
  }
  const std::string file = answer->json ? "ras.json" : "ras.txt";
  if (context.write(file, answer->text)) found.got.push_back(file);
  return found;
}

}  // namespace nlaunch::evidence
