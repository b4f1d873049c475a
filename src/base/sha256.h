#pragma once
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace nlaunch {

/// SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104), both as 64 hexadecimal digits. They throw
/// std::runtime_error if libcrypto cannot compute them, for example when out of memory.
std::string sha256(std::string_view data);
std::string hmac_sha256(std::string_view key, std::string_view data);

/// SHA-256 of data that arrives in parts.
class Sha256 {
 public:
  Sha256();
  void feed(std::string_view data);
  /// 64 hexadecimal digits of everything that was fed. Call it once.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// Compares in a time that does not reveal how much of the two is equal.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace nlaunch
