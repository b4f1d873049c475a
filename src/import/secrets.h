#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "import/commands.h"

/// What of a script nobody should read.
namespace nlaunch::import {

/// Keeps the texts of a value whose name, of a variable or an option, says that it is a secret.
void keep_secret(std::string_view name, const Value& value, std::vector<std::string>& secrets);
/// The same of a command's variables, options and NAME=VALUE words.
void keep_secrets(const Launch& launch, std::vector<std::string>& secrets);
/// Secrets that are known by what they look like: passwords in addresses, bearer tokens, and keys that begin
/// as those of well-known services do.
std::vector<std::string> secrets_in(std::string_view line);
/// What a key, or a name, consists of.
constexpr bool is_key_character(char c) {
  return is_name_character(c) || c == '-';
}
/// A line of the script without long words of letters and digits, which may be keys.
std::string without_keys(std::string_view line);

}  // namespace nlaunch::import
