#include "common/http/gzip.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include <zlib.h>

namespace gitops::http {
namespace {

constexpr int kGzipOnly = 15 + 16;
constexpr int kGzipOrZlib = 15 + 32;
constexpr std::size_t kStep = 16 * 1024;

Bytef* bytes_of(char* p) {
  return reinterpret_cast<Bytef*>(p);
}
// zlib does not write to its input; the missing const is historical.
Bytef* bytes_of(const char* p) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(p));
}

// zlib counts input in 32 bits.
uInt clamp(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

// Four buffers of 64 KiB. A thread keeps them: an allocator that gives and takes such blocks for
// each event searches and merges its heap each time.
class KeptDeflate {
 public:
  KeptDeflate() {
    if (deflateInit2(&z_, 1, Z_DEFLATED, kGzipOnly, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~KeptDeflate() { deflateEnd(&z_); }
  KeptDeflate(const KeptDeflate&) = delete;
  KeptDeflate& operator=(const KeptDeflate&) = delete;

  z_stream& begin(int level) {
    deflateReset(&z_);
    deflateParams(&z_, level, Z_DEFAULT_STRATEGY);
    return z_;
  }

 private:
  z_stream z_{};
};

}  // namespace

std::string gzip_compress(std::string_view bytes, int level) {
  thread_local KeptDeflate kept;
  auto& z = kept.begin(level);
  std::string out;
  int status = Z_OK;
  do {
    if (z.avail_in == 0) {
      z.next_in = bytes_of(bytes.data());
      z.avail_in = clamp(bytes.size());
      bytes.remove_prefix(z.avail_in);
    }
    const std::size_t used = out.size();
    out.resize(used + std::max<std::size_t>(kStep, deflateBound(&z, z.avail_in)));
    z.next_out = bytes_of(out.data() + used);
    z.avail_out = clamp(out.size() - used);
    status = deflate(&z, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.resize(static_cast<std::size_t>(reinterpret_cast<char*>(z.next_out) - out.data()));
  } while (status != Z_STREAM_END);
  return out;
}

struct Deflater::State {
  z_stream stream{};
};

Deflater::Deflater(int level) : state_(std::make_unique<State>()) {
  constexpr int kWindowBits = 13 + 16;  // 8 KiB, gzip
  constexpr int kMemLevel = 7;
  if (::deflateInit2(&state_->stream, level, Z_DEFLATED, kWindowBits, kMemLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

Deflater::~Deflater() {
  ::deflateEnd(&state_->stream);
}

void Deflater::feed(std::string_view bytes, Flush flush, std::string& out) {
  auto& stream = state_->stream;
  // zlib's input pointer is not const, but it does not write to it.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  const int mode = flush == Flush::finish ? Z_FINISH
                   : flush == Flush::sync ? Z_SYNC_FLUSH
                                          : Z_NO_FLUSH;
  do {
    const std::size_t before = out.size();
    const std::size_t room = std::max<std::size_t>(1024, bytes.size() / 2);
    out.resize(before + room);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(room);
    ::deflate(&stream, mode);
    out.resize(before + room - stream.avail_out);
  } while (stream.avail_out == 0);
}

struct Inflater::State {
  explicit State(std::size_t limit) : left(limit) {
    if (inflateInit2(&z, kGzipOrZlib) != Z_OK) throw std::bad_alloc();
  }
  ~State() { inflateEnd(&z); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  z_stream z{};
  std::size_t left;
  bool member_ended = false;
};

Inflater::Inflater(std::size_t limit) : state_(std::make_unique<State>(limit)) {}
Inflater::Inflater(Inflater&&) noexcept = default;
Inflater& Inflater::operator=(Inflater&&) noexcept = default;
Inflater::~Inflater() = default;

bool Inflater::finished() const {
  return state_->member_ended;
}

Result<void> Inflater::feed(std::string_view bytes, std::string& out) {
  z_stream& z = state_->z;
  while (!bytes.empty()) {
    if (state_->member_ended) {  // gzip allows several members in a row
      inflateReset(&z);
      state_->member_ended = false;
    }
    z.next_in = bytes_of(bytes.data());
    z.avail_in = clamp(bytes.size());
    const std::size_t offered = z.avail_in;
    int status = Z_OK;
    do {
      const std::size_t used = out.size();
      // One byte more than allowed, to tell "exactly the limit" from "beyond it".
      const std::size_t room = state_->left == std::numeric_limits<std::size_t>::max()
                                   ? kStep
                                   : std::min(kStep, state_->left + 1);
      out.resize(used + room);
      z.next_out = bytes_of(out.data() + used);
      z.avail_out = clamp(room);
      status = inflate(&z, Z_NO_FLUSH);
      const std::size_t produced = room - z.avail_out;
      out.resize(used + produced);
      if (produced > state_->left) {
        out.resize(used);
        return fail(ErrorCode::too_large, "the decompressed body is larger than allowed");
      }
      state_->left -= produced;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        return fail(ErrorCode::invalid_data, "the compressed body is corrupt");
      }
    } while (status != Z_STREAM_END && z.avail_out == 0);
    state_->member_ended = status == Z_STREAM_END;
    bytes.remove_prefix(offered - z.avail_in);
    if (status == Z_BUF_ERROR && z.avail_in == offered) break;
  }
  return {};
}

Result<std::string> gzip_decompress(std::string_view bytes, std::size_t limit) {
  Inflater inflater(limit);
  std::string out;
  if (auto fed = inflater.feed(bytes, out); !fed) return std::unexpected(fed.error());
  if (!inflater.finished())
    return fail(ErrorCode::invalid_data, "the compressed body is truncated");
  return out;
}

}  // namespace gitops::http
