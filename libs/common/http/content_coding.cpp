#include "common/http/content_coding.hpp"

#include <algorithm>

#include "common/core/text.hpp"

namespace gitops::http {
namespace {

std::unexpected<Error> with_status(Error error, int status) {
  error.http_status = status;
  return std::unexpected(std::move(error));
}

}  // namespace

Result<ContentDecoder> ContentDecoder::make(const Headers& headers, std::size_t limit) {
  ContentDecoder decoder(limit);
  int codings = 0;
  for (const auto& [name, value] : headers) {
    if (!equal_ignoring_case(name, "Content-Encoding")) continue;
    const std::string_view coding = trimmed(value);
    const bool compressed = equal_ignoring_case(coding, "gzip") ||
                            equal_ignoring_case(coding, "x-gzip") ||
                            equal_ignoring_case(coding, "deflate");
    if (++codings > 1 || (!compressed && !equal_ignoring_case(coding, "identity"))) {
      return with_status({.code = ErrorCode::unsupported,
                          .message = "the body must have one Content-Encoding of gzip, deflate or "
                                     "identity"},
                         415);
    }
    if (compressed) decoder.inflater_.emplace(limit);
  }
  return decoder;
}

Result<void> ContentDecoder::feed(std::string_view bytes, std::string& out) {
  begun_ = begun_ || !bytes.empty();
  if (inflater_) {
    auto fed = inflater_->feed(bytes, out);
    if (fed) return fed;
    const int status = fed.error().code == ErrorCode::too_large ? 413 : 400;
    return with_status(std::move(fed.error()), status);
  }
  if (bytes.size() > left_) {
    return with_status({.code = ErrorCode::too_large, .message = "the body is larger than allowed"},
                       413);
  }
  left_ -= bytes.size();
  out.append(bytes);
  return {};
}

Result<void> ContentDecoder::finish() const {
  // A request without a body may still name a coding.
  if (!inflater_ || !begun_ || inflater_->finished()) return {};
  return with_status(
      {.code = ErrorCode::invalid_data, .message = "the compressed body is cut short"}, 400);
}

}  // namespace gitops::http
