#include "app-proxy/http/promotion_routes.hpp"

#include <string>
#include <utility>
#include <vector>

#include "app-proxy/http/routes.hpp"

namespace gitops::app_proxy {
namespace {

// Time limit of a promotion. It is below the router's response timeout.
constexpr auto kPromotionTime = std::chrono::seconds(53);

}  // namespace

Task<> serve_promotion(http::Exchange& exchange, PromotionKind kind, RequestGate& gate,
                       Audit& audit, Promotions* promotions) {
  const auto admission = co_await gate.authenticate(exchange);
  if (!admission) co_return;
  const auto body = co_await exchange.read_body();
  if (!body) {
    (void)co_await exchange.reply(
        rest_error(status_of_unread_body(body.error()), body.error().message));
    co_return;
  }
  const auto begin = Clock::now();
  auto request = parse_promotion(kind, *body);
  std::vector<std::pair<std::string_view, std::string>> subject;
  if (request) {
    for (const auto& [name, id] : {std::pair<std::string_view, const control_plane::ApplicationId*>(
                                       "srcAppId", &request->source),
                                   {"destAppId", &request->destination}}) {
      subject.emplace_back(name, id->runtime + "/" + id->application_namespace + "/" + id->name);
    }
  }
  Result<std::string> answer;
  if (!request) {
    answer = std::unexpected(request.error());
  } else if (promotions == nullptr) {
    answer = fail(ErrorCode::unavailable, "the runtime has no folder for clones; see its log");
  } else {
    answer = co_await promotions->promote(kind, *admission->caller.user, std::move(*request),
                                          begin + kPromotionTime);
  }
  audit.write(
      {.caller = admission->caller,
       .action = kind == PromotionKind::commit ? "promotions/commit" : "promotions/pullRequest",
       .subject = std::move(subject),
       .result = answer ? "ok" : to_string(answer.error().code),
       .took = Clock::now() - begin});
  (void)co_await exchange.reply(answer ? http::Response{.status = 200,
                                                        .headers = {{"Content-Type",
                                                                     "application/json; "
                                                                     "charset=utf-8"},
                                                                    {"Cache-Control", "no-store"}},
                                                        .body = std::move(*answer)}
                                       : refusal_response(answer.error()));
}

}  // namespace gitops::app_proxy
