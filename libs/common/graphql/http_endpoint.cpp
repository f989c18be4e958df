#include "common/graphql/http_endpoint.hpp"

#include <string>
#include <string_view>

#include "common/core/text.hpp"
#include "common/http/message.hpp"

namespace gitops::graphql {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kResponse = "application/graphql-response+json";

// Returns whether the type without parameters is application/json and the charset, if any, is
// UTF-8.
bool is_json(std::string_view content_type) {
  if (!http::equal_ignoring_case(http::media_type(content_type), kJson)) return false;
  const auto end = content_type.find(';');
  if (end == std::string_view::npos) return true;
  const std::string_view parameter = trimmed(content_type.substr(end + 1));
  const auto equals = parameter.find('=');
  if (!http::equal_ignoring_case(trimmed(parameter.substr(0, equals)), "charset")) return true;
  if (equals == std::string_view::npos) return false;
  std::string_view charset = trimmed(parameter.substr(equals + 1));
  if (charset.size() > 1 && charset.starts_with('"') && charset.ends_with('"')) {
    charset = charset.substr(1, charset.size() - 2);
  }
  return http::equal_ignoring_case(charset, "utf-8");
}

bool wants_response_type(const http::Request& request) {
  const auto accept = request.headers.find("Accept");
  return accept && accept->contains(kResponse) && !accept->contains(kJson);
}

http::Response answer(int status, std::string body, std::string_view type = kJson) {
  http::Response response{.status = status, .headers = {}, .body = std::move(body)};
  response.headers.add("Content-Type", std::string(type) + "; charset=utf-8");
  response.headers.add("Cache-Control", "no-store");
  return response;
}

http::Response refused(int status, std::string message, std::string_view code) {
  return answer(status, errors_body({coded_error(std::move(message), code, status)}));
}

std::string too_large(std::size_t limit) {
  return "The body has more than " + byte_count(limit) + ", the limit of this server.";
}

}  // namespace

Task<> serve_http(http::Exchange& exchange, Engine& engine, Context context,
                  const HttpOptions& options) {
  const http::Request& request = exchange.request();
  if (request.method != "POST") {
    http::Response response =
        refused(405, "GraphQL is served over POST only.", "METHOD_NOT_ALLOWED");
    response.headers.add("Allow", "POST");
    (void)co_await exchange.reply(std::move(response));
    co_return;
  }
  const auto content_type = request.headers.find("Content-Type");
  if (!content_type || !is_json(*content_type)) {
    (void)co_await exchange.reply(refused(
        415, "The Content-Type must be application/json, in UTF-8.", "UNSUPPORTED_MEDIA_TYPE"));
    co_return;
  }
  const bool has_response_type = wants_response_type(request);
  const std::string_view type = has_response_type ? kResponse : kJson;
  if (const auto fits = exchange.limit_body(options.max_body); !fits) {
    (void)co_await exchange.reply(refused(413, too_large(options.max_body), "BODY_TOO_LARGE"));
    co_return;
  }
  const auto body = co_await exchange.read_decoded_body();
  if (!body) {
    const int status = body.error().http_status != 0               ? body.error().http_status
                       : body.error().code == ErrorCode::too_large ? 413
                       : body.error().code == ErrorCode::timeout   ? 408
                                                                   : 400;
    (void)co_await exchange.reply(
        status == 413 ? refused(status, too_large(options.max_body), "BODY_TOO_LARGE")
                      : refused(status, body.error().message, "BAD_REQUEST"));
    co_return;
  }
  auto prepared = engine.prepare_body(*body, context, deadline_after(options.timeout));
  if (options.admission) {
    if (auto refusal = co_await options.admission(prepared ? prepared->get() : nullptr)) {
      (void)co_await exchange.reply(std::move(*refusal));
      co_return;
    }
  }
  if (!prepared) {
    const Refusal& refusal = prepared.error();
    const int status = refusal.is_well_formed && !has_response_type ? options.refused_status : 400;
    (void)co_await exchange.reply(answer(status, refusal.body(), type));
    co_return;
  }
  if ((*prepared)->kind() == OperationKind::subscription) {
    (void)co_await exchange.reply(
        refused(400, "Subscriptions are served over WebSocket only.", "SUBSCRIPTION_OVER_HTTP"));
    co_return;
  }
  (void)co_await exchange.reply(answer(200, co_await (*prepared)->run(), type));
}

}  // namespace gitops::graphql
