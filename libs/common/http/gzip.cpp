#include "common/http/gzip.hpp"

#include <algorithm>
#include <libdeflate.h>
#include <limits>
#include <new>
#include <utility>

#include <zlib.h>

namespace gitops::http {
namespace {

constexpr int kGzipOrZlib = 15 + 32;
constexpr std::size_t kStep = 16 * 1024;

Bytef* bytes_of(char* p) {
  return reinterpret_cast<Bytef*>(p);
}
// zlib does not write to its input; the missing const is historical.
Bytef* bytes_of(const char* p) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(p));
}

// Limits a size to zlib's 32-bit counters.
uInt clamp(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

struct FreeCompressor {
  void operator()(libdeflate_compressor* compressor) const {
    libdeflate_free_compressor(compressor);
  }
};

// Compressor of one level, kept by each thread. libdeflate takes a third of zlib's time, but needs
// the whole text at once. Its tables take 200 KiB and more; an allocator that hands out such blocks
// for each event searches and merges its heap each time.
class KeptCompressor {
 public:
  libdeflate_compressor* of(int level) {
    if (compressor_ == nullptr || level != level_) {
      compressor_.reset(libdeflate_alloc_compressor(level));
      level_ = level;
    }
    if (compressor_ == nullptr) throw std::bad_alloc();
    return compressor_.get();
  }

 private:
  int level_ = 0;
  std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor_;
};

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const {
    libdeflate_free_decompressor(decompressor);
  }
};

// Decodes one complete gzip member of at most `limit` bytes, and returns false for anything else, which zlib then
// decodes or refuses. libdeflate takes a third of zlib's time, but needs the whole member and the size of its content,
// which the last four bytes tell. Deflate makes no more than 1,032 bytes of one, so a wrong size costs little.
bool inflate_member(std::string_view bytes, std::size_t limit, std::string& out) {
  constexpr std::size_t kHeadAndTrailer = 18;
  constexpr std::size_t kMaxRatio = 1032;
  if (bytes.size() < kHeadAndTrailer || !bytes.starts_with("\x1f\x8b")) return false;
  std::size_t size = 0;
  for (std::size_t i = 1; i <= 4; ++i) {
    size = size << 8 | static_cast<unsigned char>(bytes[bytes.size() - i]);
  }
  if (size > limit || size / kMaxRatio > bytes.size()) return false;
  thread_local const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor(
      libdeflate_alloc_decompressor());
  if (decompressor == nullptr) throw std::bad_alloc();
  bool is_done = false;
  const std::size_t before = out.size();
  out.resize_and_overwrite(before + size, [&](char* to, std::size_t) {
    std::size_t taken = 0;
    std::size_t made = 0;
    const auto result = libdeflate_gzip_decompress_ex(
        decompressor.get(), bytes.data(), bytes.size(), to + before, size, &taken, &made);
    is_done = result == LIBDEFLATE_SUCCESS && taken == bytes.size() && made == size;
    return is_done ? before + size : before;
  });
  return is_done;
}

}  // namespace

std::string gzip_compress(std::string_view bytes, int level) {
  thread_local KeptCompressor kept;
  auto* const compressor = kept.of(level);
  std::string out;
  out.resize_and_overwrite(
      libdeflate_gzip_compress_bound(compressor, bytes.size()), [&](char* to, std::size_t room) {
        return libdeflate_gzip_compress(compressor, bytes.data(), bytes.size(), to, room);
      });
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
  explicit State(std::size_t limit) : left(limit) {}
  ~State() {
    if (has_zlib) inflateEnd(&z);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Prepares zlib for the next member.
  void begin_member() {
    if ((has_zlib ? inflateReset(&z) : inflateInit2(&z, kGzipOrZlib)) != Z_OK) {
      throw std::bad_alloc();
    }
    has_zlib = true;
    in_member = true;
  }

  z_stream z{};
  std::size_t left;
  bool has_zlib = false;
  bool in_member = false;
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
  const std::size_t before = out.size();
  if (!state_->in_member && inflate_member(bytes, state_->left, out)) {
    state_->left -= out.size() - before;
    state_->member_ended = true;
    return {};
  }
  while (!bytes.empty()) {
    if (!state_->in_member) state_->begin_member();  // gzip allows several members in a row
    state_->member_ended = false;
    z.next_in = bytes_of(bytes.data());
    z.avail_in = clamp(bytes.size());
    const std::size_t offered = z.avail_in;
    int status = Z_OK;
    do {
      const std::size_t used = out.size();
      // One byte more than allowed, to distinguish "exactly the limit" from "above it".
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
    state_->in_member = !state_->member_ended;
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
