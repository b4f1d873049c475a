#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "sys/byte_source.h"

namespace nlaunch::sys {
namespace {

constexpr std::size_t kBlock = 128U << 10U;
constexpr std::string_view kGzip("\x1f\x8b", 2);
constexpr std::string_view kZstd("\x28\xb5\x2f\xfd", 4);

/// Common to both formats: reads compressed bytes until there are decompressed ones.
class Unpacking : public ByteSource {
 public:
  Unpacking(std::unique_ptr<ByteSource> packed, std::string_view format)
      : packed_(std::move(packed)), format_(format), block_(kBlock) {}

  [[nodiscard]] std::string remark() const override {
    if (broken_.empty()) return packed_->remark();
    return fmt::format("{} {}: the part before that was read", broken_, format_);
  }

 protected:
  /// Reads the next compressed bytes; false at the end.
  bool refill() {
    size_ = packed_->read(block_);
    at_ = 0;
    return size_ > 0;
  }
  void break_off(std::string_view how) { broken_ = how; }
  [[nodiscard]] bool broken() const { return !broken_.empty(); }

  std::unique_ptr<ByteSource> packed_;
  std::string_view format_;
  std::vector<char> block_;
  std::size_t at_ = 0, size_ = 0;  // position in the block and its size

 private:
  std::string broken_;
};

class Gzip : public Unpacking {
 public:
  explicit Gzip(std::unique_ptr<ByteSource> packed) : Unpacking(std::move(packed), "gzip") {
    constexpr int kWithHeader = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kWithHeader) != Z_OK) break_off("no memory for");
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() override { inflateEnd(&stream_); }

  std::size_t read(std::span<char> room) override {
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(room.size());
    while (!broken() && stream_.avail_out == room.size()) {
      if (at_ == size_ && !refill()) {
        if (within_) break_off("truncated");
        break;
      }
      if (!step()) break;
    }
    return room.size() - stream_.avail_out;
  }

 private:
  bool step() {
    stream_.next_in = reinterpret_cast<Bytef*>(block_.data() + at_);
    stream_.avail_in = static_cast<uInt>(size_ - at_);
    within_ = true;
    const int done = inflate(&stream_, Z_NO_FLUSH);
    at_ = size_ - stream_.avail_in;
    if (done == Z_STREAM_END) {
      within_ = false;
      inflateReset(&stream_);
      return true;
    }
    if (done == Z_OK || done == Z_BUF_ERROR) return true;
    break_off("broken");
    return false;
  }

  z_stream stream_{};
  bool within_ = false;
};

class Zstd : public Unpacking {
 public:
  explicit Zstd(std::unique_ptr<ByteSource> packed)
      : Unpacking(std::move(packed), "zstd"), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) {
      break_off("no memory for");
      return;
    }
    constexpr int kWindow = 25;  // 32 MiB: a larger one would use more memory than a log deserves
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kWindow);
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ZSTD_freeDStream(stream_); }

  std::size_t read(std::span<char> room) override {
    ZSTD_outBuffer out{room.data(), room.size(), 0};
    while (!broken() && out.pos == 0) {
      if (at_ == size_ && !refill()) {
        if (within_) break_off("truncated");
        break;
      }
      ZSTD_inBuffer in{block_.data(), size_, at_};
      const auto left = ZSTD_decompressStream(stream_, &out, &in);
      at_ = in.pos;
      if (ZSTD_isError(left) != 0) break_off("broken");
      within_ = left != 0;
    }
    return out.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool within_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed) {
  std::string first(kZstd.size(), '\0');
  first.resize(read_full(*packed, first));
  const bool gzip = first.starts_with(kGzip);
  const bool zstd = first.starts_with(kZstd);
  auto whole = prefixed(std::move(first), std::move(packed));
  if (gzip) return std::make_unique<Gzip>(std::move(whole));
  if (zstd) return std::make_unique<Zstd>(std::move(whole));
  return whole;
}

}  // namespace nlaunch::sys
