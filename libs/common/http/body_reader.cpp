#include "common/http/body_reader.hpp"

#include <algorithm>

#include "common/core/encoding.hpp"
#include "common/http/message.hpp"

namespace gitops::http {
namespace {

constexpr std::size_t kMaxChunkExtension = 256;
// Maximum size of all chunk extensions beyond the number of data bytes: signatures of large chunks
// are in use.
constexpr std::size_t kMaxChunkExtensions = 16 * 1024;

}  // namespace

void BodyReader::restart(State state) {
  state_ = state;
  left_ = 0;
  extensions_ = 0;
  chunked_ = 0;
  trailer_bytes_ = 0;
  line_.clear();
  trailers_.clear();
}

BodyReader::Piece BodyReader::next(std::string_view input) {
  Piece piece;
  while (piece.consumed < input.size() && !done()) {
    if (state_ == State::counted || state_ == State::until_eof || state_ == State::data) {
      piece.data = input.substr(piece.consumed);
      if (state_ != State::until_eof) {
        piece.data = piece.data.substr(
            0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, piece.data.size())));
        left_ -= piece.data.size();
        if (left_ == 0) state_ = state_ == State::data ? State::data_cr : State::done;
      }
      piece.consumed += piece.data.size();
      return piece;
    }
    take(input[piece.consumed], piece);
    if (piece.refused()) return piece;
    ++piece.consumed;
  }
  return piece;
}

// Processes one byte of the framing between the data of chunks.
void BodyReader::take(char c, Piece& piece) {
  switch (state_) {
    case State::size_first:
      left_ = 0;
      digits_ = 0;
      if (hex_value(c) < 0) {
        piece.refusal = "a chunk does not start with its size";
        return;
      }
      state_ = State::size;
      [[fallthrough]];
    case State::size:
      if (const int value = hex_value(c); value >= 0) {
        if (++digits_ > 16) piece.refusal = "a chunk size has too many digits";
        left_ = left_ * 16 + static_cast<std::uint64_t>(value);
      } else if (c == ';') {
        extension_ = 0;
        state_ = State::extension;
      } else if (c == '\r') {
        state_ = State::size_lf;
      } else {
        piece.refusal = "a chunk size is malformed";
      }
      return;
    case State::extension:
      if (c == '\r') {
        if (extension_ == 0) piece.refusal = "a chunk extension is empty";
        state_ = State::size_lf;
      } else if (!is_field_value({&c, 1})) {
        piece.refusal = "a chunk extension holds a control character";
      } else if (++extension_ > kMaxChunkExtension) {
        piece.refusal = "a chunk extension is too long";
      } else if (++extensions_ > kMaxChunkExtensions + chunked_) {
        piece.refusal = "the chunk extensions are too long together";
      }
      return;
    case State::size_lf:
      if (c != '\n') piece.refusal = "a chunk size is not followed by CRLF";
      chunked_ += left_;
      state_ = left_ > 0 ? State::data : State::trailer;
      return;
    case State::data_cr:
      if (c != '\r') piece.refusal = "a chunk is longer than its size";
      state_ = State::data_lf;
      return;
    case State::data_lf:
      if (c != '\n') piece.refusal = "a chunk is longer than its size";
      state_ = State::size_first;
      return;
    case State::trailer:
      if (++trailer_bytes_ > max_trailers_) {
        piece.refusal = "the trailers are too large";
        piece.status = 431;
      } else if (c == '\r') {
        state_ = State::trailer_lf;
      } else {
        line_ += c;
      }
      return;
    case State::trailer_lf:
      if (c != '\n') {
        piece.refusal = "a trailer line ends without LF";
      } else if (line_.empty()) {
        state_ = State::done;
      } else {
        state_ = State::trailer;
        end_trailer(piece);
      }
      return;
    default:
      piece.refusal = "the body is malformed";
      return;
  }
}

void BodyReader::end_trailer(Piece& piece) {
  const auto colon = line_.find(':');
  const auto name = std::string_view(line_).substr(0, colon);
  if (colon == std::string::npos || !is_token(name) || !is_field_value(line_)) {
    piece.refusal = "a trailer is malformed";
    return;
  }
  for (const std::string_view framing : {"Content-Length", "Transfer-Encoding", "Host"}) {
    if (equal_ignoring_case(name, framing)) piece.refusal = "a trailer is not allowed";
  }
  trailers_.append(line_).append("\r\n");
  line_.clear();
}

}  // namespace gitops::http
