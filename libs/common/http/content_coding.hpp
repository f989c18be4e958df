#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/gzip.hpp"
#include "common/http/message.hpp"

namespace gitops::http {

// Value of Accept-Encoding in a response of 415: the supported codings of request bodies.
inline constexpr std::string_view kAcceptedCodings = "gzip, deflate";

// Decodes the Content-Encoding of a body while it is read: identity, gzip or deflate, one of them.
// Produces at most `limit` bytes (AC-07).
class ContentDecoder {
 public:
  // Selects the decoder by the Content-Encoding of `headers`. Error: ErrorCode::unsupported with
  // status 415, for another coding or several.
  static Result<ContentDecoder> make(const Headers& headers, std::size_t limit);

  // Decodes these bytes and appends the result. Errors: too_large (413), invalid_data (400).
  Result<void> feed(std::string_view bytes, std::string& out);
  // Checks the end of the body. Error: invalid_data (400), for a truncated compressed body.
  Result<void> finish() const;

 private:
  explicit ContentDecoder(std::size_t limit) : left_(limit) {}

  std::size_t left_;
  std::optional<Inflater> inflater_;
  bool begun_ = false;
};

}  // namespace gitops::http
