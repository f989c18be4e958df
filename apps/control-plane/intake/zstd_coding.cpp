#include "control-plane/intake/zstd_coding.hpp"

#include <algorithm>
#include <new>
#include <zstd.h>

namespace gitops::control_plane_server {
namespace {

constexpr int kMaxWindowLog = 23;  // 8 MiB
constexpr std::size_t kStep = std::size_t{16} * 1024;

struct FreeStream {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class ZstdDecompressor final : public http::Decompressor {
 public:
  explicit ZstdDecompressor(std::size_t limit) : context_(ZSTD_createDCtx()), left_(limit) {
    if (!context_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  Result<void> feed(std::string_view bytes, std::string& out) override {
    if (bytes.empty()) return {};
    ZSTD_inBuffer in{.src = bytes.data(), .size = bytes.size(), .pos = 0};
    bool may_have_more = false;
    do {
      const auto used = out.size();
      // One byte more than allowed, to distinguish "exactly the limit" from "above it".
      const auto room = std::min(kStep, left_ + 1);
      out.resize(used + room);
      ZSTD_outBuffer to{.dst = out.data() + used, .size = room, .pos = 0};
      const auto status = ZSTD_decompressStream(context_.get(), &to, &in);
      out.resize(used + to.pos);
      if (ZSTD_isError(status) != 0) {
        return fail(ErrorCode::invalid_data,
                    "the zstd body is corrupt, or its window is above 8 MiB");
      }
      if (to.pos > left_) {
        out.resize(used);
        return fail(ErrorCode::too_large, "the decompressed body is larger than allowed");
      }
      left_ -= to.pos;
      // The next byte of the input begins another frame.
      has_ended_ = status == 0;
      may_have_more = !has_ended_ && to.pos == room;
    } while (in.pos < in.size || may_have_more);
    return {};
  }

  [[nodiscard]] bool finished() const override { return has_ended_; }

 private:
  std::unique_ptr<ZSTD_DCtx, FreeStream> context_;
  std::size_t left_;
  bool has_ended_ = false;
};

}  // namespace

const http::ContentCoding kZstdCoding{
    .name = "zstd", .make = [](std::size_t limit) -> std::unique_ptr<http::Decompressor> {
      return std::make_unique<ZstdDecompressor>(limit);
    }};

}  // namespace gitops::control_plane_server
