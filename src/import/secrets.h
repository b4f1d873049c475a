#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/secrets.h"
#include "import/import.h"

/// What of a script nobody should read.
namespace nlaunch::import {

/// Keeps a value whose name, of a variable or an option, says that it is a secret.
void keep_secret(std::string_view name, std::string_view value, Masker& secrets);
/// Secrets that are known by what they look like: passwords in addresses, bearer tokens, and keys that begin
/// as those of well-known services do.
std::vector<std::string> secrets_in(std::string_view line);
/// Takes secrets out of the command lines of roles: a shell puts variables there, which are declared as
/// secrets.
void hand_over_secrets(Imported& all);
/// `exec PROGRAM --api-key "$API_KEY"`, for that shell.
std::string line_with_variables(const shell::Words& words, const std::vector<HandedOver>& secrets);
/// A text without long words of letters and digits, which may be keys.
std::string without_keys(std::string_view line);

}  // namespace nlaunch::import
