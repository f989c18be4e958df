#include "common/http/content_coding.hpp"

#include <algorithm>

#include "common/core/text.hpp"
#include "common/http/gzip.hpp"

namespace gitops::http {
namespace {

std::unexpected<Error> with_status(Error error, int status) {
  error.http_status = status;
  return std::unexpected(std::move(error));
}

// Returns the decoder of a coding; null for an unknown one.
std::unique_ptr<Decompressor> decompressor_of(std::string_view coding, std::size_t limit,
                                              ContentCodings more) {
  for (const auto* known : {"gzip", "x-gzip", "deflate"}) {
    if (equal_ignoring_case(coding, known)) return std::make_unique<Inflater>(limit);
  }
  for (const auto& known : more) {
    if (equal_ignoring_case(coding, known.name)) return known.make(limit);
  }
  return nullptr;
}

}  // namespace

std::string accepted_codings(ContentCodings more) {
  std::string text = "gzip, deflate";
  for (const auto& coding : more) text += ", " + std::string(coding.name);
  return text;
}

Result<ContentDecoder> ContentDecoder::make(const Headers& headers, std::size_t limit,
                                            ContentCodings more) {
  ContentDecoder decoder(limit);
  int codings = 0;
  for (const auto& [name, value] : headers) {
    if (!equal_ignoring_case(name, "Content-Encoding")) continue;
    const std::string_view coding = trimmed(value);
    decoder.decompressor_ = decompressor_of(coding, limit, more);
    if (++codings > 1 || (!decoder.decompressor_ && !equal_ignoring_case(coding, "identity"))) {
      return with_status({.code = ErrorCode::unsupported,
                          .message = "the body must have one Content-Encoding of " +
                                     accepted_codings(more) + ", identity"},
                         415);
    }
  }
  return decoder;
}

Result<void> ContentDecoder::feed(std::string_view bytes, std::string& out) {
  begun_ = begun_ || !bytes.empty();
  if (decompressor_) {
    auto fed = decompressor_->feed(bytes, out);
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
  if (!decompressor_ || !begun_ || decompressor_->finished()) return {};
  return with_status(
      {.code = ErrorCode::invalid_data, .message = "the compressed body is cut short"}, 400);
}

}  // namespace gitops::http
