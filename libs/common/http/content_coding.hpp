#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/decompressor.hpp"
#include "common/http/message.hpp"

namespace gitops::http {

// A Content-Encoding besides gzip and deflate, from a library that not every program links.
struct ContentCoding {
  std::string_view name;
  std::unique_ptr<Decompressor> (*make)(std::size_t limit);
};
using ContentCodings = std::span<const ContentCoding>;

// Returns the codings of request bodies, "gzip, deflate" and the given ones: the value of
// Accept-Encoding in a response of 415.
std::string accepted_codings(ContentCodings more = {});

// Decodes the Content-Encoding of a body while it is read: identity, gzip, deflate or a given
// coding, one of them. Produces at most `limit` bytes (AC-07).
class ContentDecoder {
 public:
  // Selects the decoder by the Content-Encoding of `headers`. Error: ErrorCode::unsupported with
  // status 415, for another coding or several.
  static Result<ContentDecoder> make(const Headers& headers, std::size_t limit,
                                     ContentCodings more = {});

  // Decodes these bytes and appends the result. Errors: too_large (413), invalid_data (400).
  Result<void> feed(std::string_view bytes, std::string& out);
  // Checks the end of the body. Error: invalid_data (400), for a truncated compressed body.
  [[nodiscard]] Result<void> finish() const;

 private:
  explicit ContentDecoder(std::size_t limit) : left_(limit) {}

  std::size_t left_;
  std::unique_ptr<Decompressor> decompressor_;  // null: identity
  bool begun_ = false;
};

}  // namespace gitops::http
