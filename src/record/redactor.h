#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Replaces names of people and machines in texts, always with the same replacement for the same name.
namespace nlaunch::record {

class Redactor {
 public:
  enum class Kind { host, domain, nodes, user, home, account, address };

  Redactor();
  ~Redactor();
  Redactor(const Redactor&) = delete;
  Redactor& operator=(const Redactor&) = delete;

  /// Adds a name to replace; must be called before the first `redact`. For a host with a domain, the host
  /// alone and the domain are added, too. Names that identify nobody (localhost, root, /) are ignored.
  void add(Kind kind, const std::string& name);

  /// The text with names replaced by node-1, user-1, /home-1, account-1, and network addresses other than
  /// loopback by ip-1. A name matches only if no letter or digit precedes or follows it.
  std::string redact(std::string_view text);
  /// Whether `redact` would change it.
  bool holds(std::string_view text);

  struct Count {
    std::string kind;         ///< "host names"
    std::size_t names = 0;    ///< how many were found
    std::uint64_t times = 0;  ///< in total
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
