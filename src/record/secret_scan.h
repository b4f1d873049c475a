#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// What looks like a secret within a text.
namespace nlaunch::record {

struct SecretMatch {
  std::size_t begin = 0;  ///< of all that tells it: the name before a value, too
  std::size_t from = 0;   ///< the secret itself is [from, to)
  std::size_t to = 0;
  std::string what;  ///< the variable's name, or "a token of GitHub"; never the value
};

class SecretScanner {
 public:
  SecretScanner();
  ~SecretScanner();
  SecretScanner(const SecretScanner&) = delete;
  SecretScanner& operator=(const SecretScanner&) = delete;

  /// A value that is a secret wherever it stands; one of less than eight bytes would hit innocent text, and
  /// is not taken.
  void add_known(std::string name, std::string value);

  /// In their order, without overlaps: values of names that look like secrets (NAME=..., "name": "...",
  /// --name ...), tokens of known shapes, private keys, passwords in URLs, HTTP authorization, known values.
  [[nodiscard]] std::vector<SecretMatch> scan(std::string_view text) const;

 private:
  struct Patterns;
  std::unique_ptr<Patterns> patterns_;
  std::vector<std::pair<std::string, std::string>> known_;  ///< name, value
};

}  // namespace nlaunch::record
