#include "sys/byte_source.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>

namespace nlaunch::sys {
namespace {

/// Bytes in pieces of `step`.
class Pieces : public ByteSource {
 public:
  Pieces(std::string bytes, std::size_t step) : bytes_(std::move(bytes)), step_(step) {}
  std::size_t read(std::span<char> room) override {
    const auto part = std::min({room.size(), step_, bytes_.size() - at_});
    std::copy_n(bytes_.data() + at_, part, room.data());
    at_ += part;
    return part;
  }
  [[nodiscard]] std::string remark() const override { return ""; }

 private:
  std::string bytes_;
  std::size_t step_;
  std::size_t at_ = 0;
};

std::string whole(ByteSource& source) {
  std::string all(1U << 20U, '\0');
  all.resize(read_full(source, all));
  return all;
}

std::string gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  auto from = text;
  stream.next_in = reinterpret_cast<Bytef*>(from.data());
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd_packed(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  auto* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);  // as the command has it
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

/// Text that does not pack into one block.
std::string long_text() {
  std::string text;
  for (unsigned i = 0; i < 40000; ++i) text += std::to_string(i * 2654435761U) + "\n";
  return text;
}

struct Read {
  std::string text;
  std::string remark;
};

Read unpack(std::string bytes, std::size_t step) {
  auto source = unpacked(std::make_unique<Pieces>(std::move(bytes), step));
  Read read{whole(*source), ""};
  read.remark = source->remark();
  return read;
}

TEST(Unpacked, GivesThePlainTextOfBothFormats) {
  const auto text = long_text();
  for (const std::size_t step : {1U, 7U, 65536U}) {
    EXPECT_EQ(unpack(gzipped(text), step).text, text);
    EXPECT_EQ(unpack(zstd_packed(text), step).text, text);
    EXPECT_EQ(unpack(text, step).text, text);
    EXPECT_EQ(unpack(gzipped("a") + gzipped("b"), step).text, "ab");
    EXPECT_EQ(unpack(zstd_packed("a") + zstd_packed("b"), step).text, "ab");
  }
  EXPECT_EQ(unpack("", 1).text, "");
  EXPECT_EQ(unpack("\x1f", 1).text, "\x1f");
}

TEST(Unpacked, GivesWhatStandsBeforeABreakAndSaysSo) {
  const auto text = long_text();
  for (const auto& [packed, format] :
       {std::pair(gzipped(text), "gzip"), std::pair(zstd_packed(text), "zstd")}) {
    const auto cut = unpack(packed.substr(0, packed.size() * 3 / 4), 4096);
    EXPECT_FALSE(cut.text.empty());
    EXPECT_TRUE(text.starts_with(cut.text));
    EXPECT_EQ(cut.remark, std::string("truncated ") + format + ": the part before that was read");
    auto bad = packed;
    std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(bad.size() / 2), 64, '\xee');
    EXPECT_EQ(unpack(bad, 4096).remark, std::string("broken ") + format + ": the part before that was read");
  }
}

TEST(FdSource, StopsReadingAPipeThatDoesNotEnd) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(write_all(pipe->write.get(), "text"));
  const auto source = fd_source(std::move(pipe->read), {.longest = std::chrono::milliseconds(50)});
  EXPECT_EQ(whole(*source), "text");
  EXPECT_EQ(source->remark(), "no end of input within 0 s");
}

TEST(FdSource, StopsWhenAPersonHasHadEnough) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const auto source =
      fd_source(std::move(pipe->read), {.longest = std::chrono::hours(1), .enough = [] { return true; }});
  EXPECT_EQ(whole(*source), "");
  EXPECT_EQ(source->remark(), "reading was stopped");
}

}  // namespace
}  // namespace nlaunch::sys
