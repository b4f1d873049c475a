#include "base/sha256.h"

#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <span>
#include <stdexcept>

namespace nlaunch {
namespace {

using Digest = std::array<unsigned char, EVP_MAX_MD_SIZE>;

/// libcrypto's built-in algorithm: a machine's openssl.cnf, and the modules that it names, belong to the
/// installed libcrypto, not to the one that is linked in here.
const EVP_MD* algorithm() {
  static const bool without_files = ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1;
  return without_files ? ::EVP_sha256() : nullptr;
}

void require(bool done) {
  if (!done) throw std::runtime_error("libcrypto cannot compute SHA-256");
}

std::string hex(const Digest& digest, unsigned size) {
  return fmt::format("{:02x}", fmt::join(std::span(digest).first(size), ""));
}

}  // namespace

std::string sha256(std::string_view data) {
  Sha256 sum;
  sum.feed(data);
  return sum.finish();
}

std::string hmac_sha256(std::string_view key, std::string_view data) {
  Digest digest;
  unsigned size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  require(::HMAC(algorithm(), key.data(), static_cast<int>(key.size()), bytes, data.size(), digest.data(),
                 &size) != nullptr);
  return hex(digest, size);
}

Sha256::Sha256() : context_(::EVP_MD_CTX_new()) {
  require(context_ && ::EVP_DigestInit_ex(context_.get(), algorithm(), nullptr) == 1);
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  ::EVP_MD_CTX_free(context);
}

void Sha256::feed(std::string_view data) {
  require(::EVP_DigestUpdate(context_.get(), data.data(), data.size()) == 1);
}

std::string Sha256::finish() {
  Digest digest;
  unsigned size = 0;
  require(::EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  return hex(digest, size);
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace nlaunch
