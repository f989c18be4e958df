#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/gzip.hpp"
#include "common/http/message.hpp"

namespace gitops::http {

// What an answer of 415 tells in Accept-Encoding: the codings that request bodies may have.
inline constexpr std::string_view kAcceptedCodings = "gzip, deflate";

// Undoes the Content-Encoding of a body while it is read: identity, gzip or deflate, one of them.
// Never gives more than `limit` bytes, whatever the body claims to hold (AC-07).
class ContentDecoder {
 public:
  // Chooses by the Content-Encoding of `headers`; another coding, or several, is
  // ErrorCode::unsupported with status 415.
  static Result<ContentDecoder> make(const Headers& headers, std::size_t limit);

  // Appends what these bytes decode to. Errors: too_large (413), invalid_data (400).
  Result<void> feed(std::string_view bytes, std::string& out);
  // To be called at the end of the body: a compressed one that is cut short is invalid_data (400).
  Result<void> finish() const;

 private:
  explicit ContentDecoder(std::size_t limit) : left_(limit) {}

  std::size_t left_;
  std::optional<Inflater> inflater_;
  bool begun_ = false;
};

}  // namespace gitops::http
