#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Takes names of people and machines out of texts, the same name for the same thing everywhere.
namespace nlaunch::record {

class Redactor {
 public:
  enum class Kind { host, domain, nodes, user, home, account, address };

  Redactor();
  ~Redactor();
  Redactor(const Redactor&) = delete;
  Redactor& operator=(const Redactor&) = delete;

  /// A name to be taken out; before the first `redact`. A host with a domain counts as the host, too, and
  /// its domain as one. Names that are nobody's (localhost, root, /) are not taken.
  void add(Kind kind, const std::string& name);

  /// The text with node-1, user-1, /home-1, account-1 in place of the names, and ip-1 in place of the
  /// addresses of networks, loopback aside. A name counts where no letter or digit is before or behind it.
  std::string redact(std::string_view text);
  /// Whether `redact` would change it.
  bool holds(std::string_view text);

  struct Count {
    std::string kind;         ///< "host names"
    std::size_t names = 0;    ///< that were found
    std::uint64_t times = 0;  ///< in all
  };
  [[nodiscard]] std::vector<Count> counts() const;

 private:
  struct Name {
    Kind kind;
    std::string shown;
    std::uint64_t times = 0;
  };
  struct Pattern;

  void add_one(Kind kind, const std::string& name, const std::string& shown);
  std::string next(Kind kind) const;
  Name* find(std::string_view found);
  std::string rewrite(std::string_view text, std::uint64_t counted);

  std::map<std::string, Name, std::less<>> names_;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace nlaunch::record
