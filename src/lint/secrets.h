#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"

/// Secrets that stand in a text: by what they look like, and by the option or the command that takes them.
namespace nlaunch::lint {

/// The password of an address, scheme://user:password@host; empty where there is none.
std::string_view password_in(std::string_view text);
/// A key that begins as those of well-known services do; empty where there is none.
std::string_view key_in(std::string_view text);
/// Words that stand for a value which is to be filled in, and values too short to be a secret.
bool is_to_be_filled_in(std::string_view value);
/// A path, a number or a yes is no secret, whatever the variable is called.
bool may_be_secret(std::string_view value);

/// A secret in a line, or among the words of a command.
struct ExposedSecret {
  std::string what;   ///< "the value of --token"
  std::string value;  ///< never to be printed
  SourceSpan span;
  bool from_outside = false;  ///< the file does not hold it: a variable that is given does
};
std::vector<ExposedSecret> exposed_secrets(const std::vector<std::string>& words, const SourceSpan& span);

}  // namespace nlaunch::lint
