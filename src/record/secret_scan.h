#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// What looks like a secret in a text.
namespace nlaunch::record {

struct SecretMatch {
  std::size_t begin = 0;  ///< start of the whole match, including the name before a value
  std::size_t from = 0;   ///< the secret itself is [from, to)
  std::size_t to = 0;
  std::string what;  ///< the name of the variable, or "a GitHub token"; never the value
};

class SecretScanner {
 public:
  SecretScanner();
  ~SecretScanner();
  SecretScanner(const SecretScanner&) = delete;
  SecretScanner& operator=(const SecretScanner&) = delete;

  /// Adds a value that is a secret wherever it occurs; a value of less than eight bytes would match innocent
  /// text and is ignored.
  void add_known(std::string name, std::string value);

  /// The matches in order, without overlaps: values of names that look like secrets (NAME=..., "name": "...",
  /// --name ...), tokens of known formats, private keys, passwords in URLs, HTTP authorization, known values.
  [[nodiscard]] std::vector<SecretMatch> scan(std::string_view text) const;

 private:
  struct Patterns;
  std::unique_ptr<Patterns> patterns_;
  std::vector<std::pair<std::string, std::string>> known_;  ///< name, value
};

}  // namespace nlaunch::record
