#include "common/proxy/body.hpp"

#include <charconv>

namespace gitops::proxy {
namespace {

// Data of smaller chunks after the first one is copied together, up to kMaxJoined for one input.
constexpr std::size_t kSmallChunk = 512;
constexpr std::size_t kMaxJoined = 4 * 1024;

}  // namespace

void BodyRelay::start(const BodyFraming& in, BodyFraming::Kind out) {
  using Kind = BodyFraming::Kind;
  switch (in.kind) {
    case Kind::none:
      reader_.start_none();
      break;
    case Kind::length:
      reader_.start_length(in.length);
      break;
    case Kind::chunked:
      reader_.start_chunks();
      break;
    case Kind::until_close:
      reader_.start_until_eof();
      break;
  }
  out_ = out;
  first_ = count_ = data_count_ = fed_ = sent_ = 0;
  total_ = 0;
  if (joined_.capacity() >= kMaxJoined) std::string().swap(joined_);  // frees the memory
}

Result<std::size_t> BodyRelay::feed(std::string_view input) {
  data_count_ = fed_ = 0;
  if (!joined_.empty()) joined_.clear();
  std::size_t consumed = 0;
  while (consumed < input.size() && data_count_ < kSlices && !reader_.done()) {
    const auto piece = reader_.next(input.substr(consumed));
    if (piece.refused()) {
      Error error{.code = ErrorCode::invalid_data,
                  .message = "malformed body: " + std::string(piece.refusal),
                  .http_status = piece.status};
      return std::unexpected(std::move(error));
    }
    consumed += piece.consumed;
    if (!piece.data.empty()) add_slice(piece.data);
  }
  total_ += fed_;
  sent_ = fed_;
  frame();
  return consumed;
}

void BodyRelay::add_slice(std::string_view data) {
  fed_ += data.size();
  const bool join =
      data_count_ > 0 && data.size() < kSmallChunk && joined_.size() + data.size() <= kMaxJoined;
  if (join) {
    if (joined_.empty()) joined_.reserve(kMaxJoined);  // so that it does not move
    const char* const place = joined_.data() + joined_.size();
    joined_.append(data);
    auto& last = buffers_[data_count_];
    const auto* const begin = static_cast<const char*>(last.data());
    if (begin + last.size() == place) {
      last = boost::asio::buffer(begin, last.size() + data.size());
      return;
    }
    data = {place, data.size()};
  }
  buffers_[1 + data_count_++] = boost::asio::buffer(data.data(), data.size());
}

bool BodyRelay::feed_eof() {
  if (!reader_.until_eof()) return false;
  reader_.start_none();
  data_count_ = fed_ = sent_ = 0;
  frame();
  return true;
}

void BodyRelay::replace_data(std::string_view text) {
  data_count_ = text.empty() ? 0 : 1;
  buffers_[1] = boost::asio::buffer(text.data(), text.size());
  sent_ = text.size();
  frame();
}

// Adds the framing around the data.
void BodyRelay::frame() {
  first_ = 1;
  count_ = data_count_;
  if (out_ != BodyFraming::Kind::chunked) return;
  static constexpr std::string_view kLineEnd = "\r\n";
  if (sent_ > 0) {
    const auto end = std::to_chars(chunk_head_.data(), chunk_head_.data() + 20, sent_, 16).ptr;
    end[0] = '\r';
    end[1] = '\n';
    buffers_[0] = boost::asio::buffer(chunk_head_.data(),
                                      static_cast<std::size_t>(end + 2 - chunk_head_.data()));
    first_ = 0;
    ++count_;
  }
  if (reader_.done()) {
    tail_ = sent_ > 0 ? "\r\n0\r\n" : "0\r\n";
    if (!reader_.trailers().empty()) tail_ += forwarded_trailers(reader_.trailers());
    tail_ += kLineEnd;
    buffers_[first_ + count_++] = boost::asio::buffer(tail_);
  } else if (sent_ > 0) {
    buffers_[first_ + count_++] = boost::asio::buffer(kLineEnd.data(), kLineEnd.size());
  }
}

}  // namespace gitops::proxy
