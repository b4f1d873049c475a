#include "sys/zstd_writer.h"

#include <zstd.h>

#include <cerrno>

#include "sys/files.h"

namespace nlaunch::sys {

struct ZstdWriter::State {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ~State() { ZSTD_freeCCtx(context); }
};

ZstdWriter::ZstdWriter(int fd) : state_(std::make_unique<State>()), out_(ZSTD_CStreamOutSize()), fd_(fd) {
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_checksumFlag, 1);
}

ZstdWriter::~ZstdWriter() = default;

bool ZstdWriter::put_out(std::size_t size) {
  written_ += size;
  return write_all(fd_, {out_.data(), size});
}

bool ZstdWriter::write(std::string_view data) {
  ZSTD_inBuffer in{data.data(), data.size(), 0};
  while (in.pos < in.size) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    if (ZSTD_isError(ZSTD_compressStream2(state_->context, &out, &in, ZSTD_e_continue)) != 0) {
      errno = ENOMEM;  // the only error of the compression
      return false;
    }
    if (!put_out(out.pos)) return false;
  }
  return true;
}

bool ZstdWriter::finish() {
  ZSTD_inBuffer in{nullptr, 0, 0};
  for (std::size_t left = 1; left != 0;) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    left = ZSTD_compressStream2(state_->context, &out, &in, ZSTD_e_end);
    if (ZSTD_isError(left) != 0) {
      errno = ENOMEM;
      return false;
    }
    if (!put_out(out.pos)) return false;
  }
  return true;
}

}  // namespace nlaunch::sys
