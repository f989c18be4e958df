#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>

#include "common/http/body_reader.hpp"
#include "common/proxy/forward.hpp"

namespace gitops::proxy {

// Converts a body from one framing to another without copying its data. Chunks are rewritten,
// one for each input, so that no chunk extension and no unusual chunk size is passed on. Only the
// data of small chunks is copied together. Pure; used in both directions.
class BodyRelay {
 public:
  explicit BodyRelay(std::size_t max_trailers) : reader_(max_trailers) {}

  void start(const BodyFraming& in, BodyFraming::Kind out);

  // Consumes a part of `input` and fills buffers() with the bytes to send for it, at most a few
  // slices; call again with the rest. http_status of an error is the status for the client.
  Result<std::size_t> feed(std::string_view input);
  // The connection ended: true when that is the end of the body; buffers() then holds the rest.
  bool feed_eof();

  // Slices of the last input and of this object; valid until the next call.
  [[nodiscard]] std::span<const boost::asio::const_buffer> buffers() const {
    return std::span(buffers_).subspan(first_, count_);
  }
  // Data in the last input, without framing, and in all of them.
  [[nodiscard]] std::size_t fed() const { return fed_; }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] bool done() const { return reader_.done(); }

  // The data of the last input, for callers that change it before it is sent; replace_data() sets
  // the replacement.
  [[nodiscard]] std::span<const boost::asio::const_buffer> data() const {
    return std::span(buffers_).subspan(1, data_count_);
  }
  void replace_data(std::string_view text);

 private:
  static constexpr std::size_t kSlices = 12;
  void frame();
  void add_slice(std::string_view data);

  // What every body writes stands together, before what few need.
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t data_count_ = 0;
  std::size_t fed_ = 0;
  std::size_t sent_ = 0;
  std::uint64_t total_ = 0;
  BodyFraming::Kind out_ = BodyFraming::Kind::none;
  http::BodyReader reader_;
  // [0] chunk head, [1..] data, then the chunk's end and the body's.
  std::array<boost::asio::const_buffer, kSlices + 2> buffers_;
  std::array<char, 24> chunk_head_;
  std::string tail_;
  std::string joined_;  // data of small chunks
};

}  // namespace gitops::proxy
