#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// How two nlaunch processes on different nodes authenticate each other before one obeys the other. Both know
/// a token that never crosses the wire: each end is challenged with a number that is used once, and signs its
/// messages together with it.
namespace nlaunch::launch {

enum class End { leader, agent };

/// A text, and the proof that the end that wrote it knows the token and received the challenge.
struct Signed {
  std::string says;
  std::string proof;
};

Signed sign(End by, std::string_view token, std::string_view challenge, std::string says);
/// False for anything signed by someone else, and without a token.
bool is_proved(End by, std::string_view token, std::string_view challenge, const Signed& what);

/// The proofs of the lines that one end writes on one connection, in order.
class LineProof {
 public:
  /// The challenges are those of the connection's handshake.
  LineProof(End by, std::string_view token, std::string_view leader_challenge,
            std::string_view agent_challenge);
  /// The proof of the next line: 64 hexadecimal digits.
  std::string next(std::string_view line);

 private:
  std::string key_;
  std::uint64_t count_ = 0;
};

/// By which both ends verify that they have the same plan: 64 hexadecimal digits.
Result<std::string> fingerprint(const plan::Plan& plan);

/// 32 unpredictable hexadecimal digits: a token or a challenge.
std::string new_token();

}  // namespace nlaunch::launch
