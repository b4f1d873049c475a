#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/secrets.h"
#include "import/import.h"

/// Secrets in a script.
namespace nlaunch::import {

/// Registers a value as secret if the name of its variable or option says so.
void keep_secret(std::string_view name, std::string_view value, Masker& secrets);
/// Secrets recognized by their form: passwords in URLs, bearer tokens, and keys with the prefixes of
/// well-known services.
std::vector<std::string> secrets_in(std::string_view line);
/// Values that the script assigns to variables whose names mean a secret, exported or not.
std::vector<HandedOver> assigned_secrets(const shell::Recording& recording);
/// Removes secrets from the command lines of roles: a shell inserts variables, which are declared as secrets.
/// `assigned`: those of the script's variables.
void hand_over_secrets(const std::vector<HandedOver>& assigned, Imported& all);
/// `exec PROGRAM --api-key "$API_KEY"`, for that shell.
std::string line_with_variables(const shell::Words& words, const std::vector<HandedOver>& secrets);
/// The text without long alphanumeric words, which may be keys.
std::string without_keys(std::string_view line);

}  // namespace nlaunch::import
