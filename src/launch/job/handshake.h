#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// How two of nlaunch's processes on different nodes make sure of each other before one does what the other
/// says. Both know a token, which never crosses the wire: each end is challenged with a number that is used
/// once, and signs what it says together with it.
namespace nlaunch::launch {

enum class End { leader, agent };

/// A text, and the proof that the end which wrote it knows the token and heard a challenge.
struct Signed {
  std::string says;
  std::string proof;
};

Signed sign(End by, std::string_view token, std::string_view challenge, std::string says);
/// False for what anybody else has signed, and without a token.
bool is_proved(End by, std::string_view token, std::string_view challenge, const Signed& what);

/// The proofs of the lines that one end writes on one connection, in their order.
class LineProof {
 public:
  /// The challenges are those of the connection's handshake.
  LineProof(End by, std::string_view token, std::string_view leader_challenge,
            std::string_view agent_challenge);
  /// That of the next line: 64 hexadecimal digits.
  std::string next(std::string_view line);

 private:
  std::string key_;
  std::uint64_t count_ = 0;
};

/// By which both ends can tell that they hold the same plan: 64 hexadecimal digits.
Result<std::string> fingerprint(const plan::Plan& plan);

/// 32 hexadecimal digits that nobody can guess: a token, or a challenge.
std::string new_token();

}  // namespace nlaunch::launch
