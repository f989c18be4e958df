#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gitops::http {

// Finds the data of a message's body, and its end, in the bytes of a connection: by length, chunked
// (RFC 9112 section 7.1; chunk extensions are limited and dropped, trailers checked) or until the
// end of the connection. Pure; copies no data. Strict: refuses anything that two readers could
// interpret differently.
class BodyReader {
 public:
  // `max_trailers` limits the bytes of the trailer section.
  explicit BodyReader(std::size_t max_trailers) : max_trailers_(max_trailers) {}

  // Begin a body. The object can be reused for one body after the other.
  void start_none() { restart(State::done); }
  void start_length(std::uint64_t length) {
    restart(length > 0 ? State::counted : State::done);
    left_ = length;
  }
  void start_chunks() { restart(State::size_first); }
  void start_until_eof() { restart(State::until_eof); }

  [[nodiscard]] bool done() const { return state_ == State::done; }
  [[nodiscard]] bool until_eof() const { return state_ == State::until_eof; }

  struct Piece {
    std::size_t consumed = 0;
    std::string_view data;     // slice of the input; may be empty
    std::string_view refusal;  // reason for refusing the body; empty: accepted
    int status = 400;          // for the client, of a refusal
    [[nodiscard]] bool refused() const { return !refusal.empty(); }
  };
  // Reads `input` up to the end of the first piece of data.
  Piece next(std::string_view input);

  // Fields of the trailer section as lines with their ends; complete once the body is done.
  [[nodiscard]] const std::string& trailers() const { return trailers_; }

 private:
  enum class State {
    counted,     // data, left_ further bytes
    until_eof,   // data, until the end of the connection
    size_first,  // chunked
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer,
    trailer_lf,
    done,
  };

  void restart(State state);
  void take(char c, Piece& piece);
  void end_trailer(Piece& piece);

  std::size_t max_trailers_;
  State state_ = State::done;
  std::uint64_t left_ = 0;
  int digits_ = 0;
  std::size_t extension_ = 0;   // of this chunk
  std::size_t extensions_ = 0;  // of all chunks
  std::uint64_t chunked_ = 0;   // data of all chunks
  std::size_t trailer_bytes_ = 0;
  std::string line_;
  std::string trailers_;
};

}  // namespace gitops::http
