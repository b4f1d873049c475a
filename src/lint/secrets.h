#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"

/// Secrets in a text, recognized by their form, and by the option or command that they belong to.
namespace nlaunch::lint {

/// The password in a URL, scheme://user:password@host; empty if there is none.
std::string_view password_in(std::string_view text);
/// A key with the prefix of a well-known service; empty if there is none.
std::string_view key_in(std::string_view text);
/// True for placeholders that must be filled in, and for values too short to be a secret.
bool is_to_be_filled_in(std::string_view value);
/// False for a path, a number or a boolean, whatever the variable is called.
bool may_be_secret(std::string_view value);

/// True for the name of an option or variable that always means a secret: HF_TOKEN, --api-key. --eos-token,
/// CACHE_KEY and SECRET_FILE do not.
bool names_secret(std::string_view name);

/// A secret in a line, or in the arguments of a command.
struct ExposedSecret {
  std::string what;   ///< "the value of --token"
  std::string value;  ///< must never be printed
  SourceSpan span;
  bool from_outside = false;  ///< not in the file, but in a variable that is given
};
std::vector<ExposedSecret> exposed_secrets(const std::vector<std::string>& words, const SourceSpan& span);

}  // namespace nlaunch::lint
