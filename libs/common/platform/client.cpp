#include "common/platform/client.hpp"

#include <utility>

#include "common/http/gzip.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

namespace gitops::platform {
namespace {

constexpr std::string_view kEventsPath = "/2.0/api/events";
constexpr std::size_t kMaxAnswer = 1024 * 1024;

}  // namespace

Client::Client(http::Client& http, http::Url url, std::function<Secret()> token)
    : http_(http), url_(std::move(url)), token_(std::move(token)) {}

Task<Result<void>> Client::post_event(std::string payload, std::string event_id,
                                      Deadline deadline) {
  http::Request request;
  request.method = "POST";
  request.target = http::join_target(url_, kEventsPath);
  request.headers.set("Content-Type", "application/json");
  request.headers.set("Content-Encoding", "gzip");
  // Raw, without "Bearer": the control plane's rule.
  request.headers.set("Authorization", std::string(token_().reveal()));
  request.headers.set("X-Event-Id", std::move(event_id));
  // The length is known, so it is sent; receivers of the chunked form that peers use take both.
  request.body = http::gzip_compress(payload);
  auto response = co_await http_.send(url_, std::move(request), deadline, kMaxAnswer);
  if (!response) co_return fail("control plane: event", std::move(response.error()));
  if (response->status >= 200 && response->status < 300) co_return Result<void>();
  Error error;
  error.code = error_code_of_status(response->status);
  error.http_status = response->status;
  // The answer's body is not shown: it may quote the event.
  error.message = "control plane: event refused by " + url_.host_header() + ": " +
                  std::to_string(response->status) + " " +
                  std::string(http::reason_phrase(response->status));
  if (const auto value = response->headers.find("Retry-After")) {
    error.retry_after = parse_retry_after(*value, wall_now());
  }
  co_return std::unexpected(std::move(error));
}

}  // namespace gitops::platform
