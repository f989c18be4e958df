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

// Converts a body from one framing to another without copying its data. Rewrites chunks, one for
// each input, so that chunk extensions and unusual chunk sizes are not forwarded. Copies only the
// data of small chunks. Pure; used in both directions.
class BodyRelay {
 public:
  explicit BodyRelay(std::size_t max_trailers) : reader_(max_trailers) {}

  void start(const BodyFraming& in, BodyFraming::Kind out);

  // Consumes a part of `input` and fills buffers() with the bytes to send for it, at most a few
  // slices. Call it again with the rest. http_status of an error is the status for the client.
  Result<std::size_t> feed(std::string_view input);
  // Handles the end of the connection. Returns whether it ends the body; buffers() then holds the
  // rest.
  bool feed_eof();

  // Slices of the last input and of this object; valid until the next call.
  [[nodiscard]] std::span<const boost::asio::const_buffer> buffers() const {
    return std::span(buffers_).subspan(first_, count_);
  }
  // Number of data bytes, without framing, in the last input and in all inputs.
  [[nodiscard]] std::size_t fed() const { return fed_; }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] bool done() const { return reader_.done(); }

  // Data of the last input, for callers that change it before it is sent; replace_data() sets the
  // replacement.
  [[nodiscard]] std::span<const boost::asio::const_buffer> data() const {
    return std::span(buffers_).subspan(1, data_count_);
  }
  void replace_data(std::string_view text);

 private:
  static constexpr std::size_t kSlices = 12;
  void frame();
  void add_slice(std::string_view data);

  // Members used by every body are adjacent, before those that few bodies use.
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
