#include "control-plane/runtimes/tunnel_plugin.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>
#include <prometheus/counter.h>

#include "common/core/json_value.hpp"
#include "control-plane/accounts/user_routes.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxQuestion = 64 * 1024;    // bytes
constexpr std::chrono::seconds kQuestionLimit{4};  // a tunnel server waits 5 s
constexpr std::string_view kBearer = "Bearer ";

Counter& questions(Metrics& metrics, const char* result) {
  return metrics.counter("gitops_control_plane_tunnel_questions_total",
                         "Questions of tunnel servers about hosts", {{"result", result}});
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

http::Response verdict_response(std::string_view refusal) {
  return {.status = 200,
          .headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}},
          .body = tunnel_verdict(refusal)};
}

}  // namespace

Result<TunnelQuestion> read_tunnel_question(std::string_view body) {
  const Json json = parse_json_object(body);
  const Json& content = value_at(json, {"content"});
  TunnelQuestion question;
  question.operation = string_at(json, {"op"});
  if (question.operation.empty() || !content.is_object()) {
    return fail(ErrorCode::invalid_data, "the body is not a request of a tunnel server");
  }
  question.token = Secret(string_at(content, {"metas", "Authorization"}));
  question.proxy_type = string_at(content, {"proxy_type"});
  question.subdomain = string_at(content, {"subdomain"});
  if (const Json& domains = value_at(content, {"custom_domains"}); domains.is_array()) {
    for (const Json& domain : domains) {
      question.custom_domains.push_back(domain.is_string() ? domain.get<std::string>() : "?");
    }
  }
  return question;
}

std::string tunnel_subdomain(std::string_view account_id, std::string_view runtime) {
  return in_lower_case(std::string(account_id) + "-" + std::string(runtime));
}

std::string tunnel_subdomain(const Account& account, std::string_view runtime) {
  return tunnel_subdomain(account.id, runtime);
}

bool is_about_host(const TunnelQuestion& question) {
  return question.operation == "NewProxy";
}

std::string tunnel_refusal(const TunnelQuestion& question, const Caller* caller) {
  if (!is_about_host(question)) return {};
  if (caller == nullptr) return "invalid token";
  if (!caller->is_runtime()) return "the token is not that of a runtime";
  if (question.proxy_type != "http") return "only proxies of type http are allowed";
  if (!question.custom_domains.empty()) return "custom domains are not allowed";
  const auto own = tunnel_subdomain(*caller->account, caller->runtime);
  if (in_lower_case(question.subdomain) != own) {
    return "the token is for the host " + own + ", and for no other";
  }
  return {};
}

std::string tunnel_verdict(std::string_view refusal) {
  if (refusal.empty()) return R"({"reject":false,"unchange":true})";
  return to_text({{"reject", true}, {"reject_reason", refusal}});
}

TunnelPlugin::TunnelPlugin(Authenticator& authenticator, Credential token, Metrics& metrics)
    : authenticator_(authenticator),
      token_(std::move(token)),
      accepted_(questions(metrics, "accepted")),
      refused_(questions(metrics, "refused")),
      unknown_(questions(metrics, "unknown")) {}

std::vector<http::Route> TunnelPlugin::routes() {
  return {{.method = "POST",
           .pattern = "/tunnel-plugin",
           .guard = http::open_to_all(),
           .handler =
               [this](http::Exchange& exchange, const http::RouteParameters&) {
                 const auto field = exchange.request().headers.find("Authorization").value_or("");
                 return serve(exchange, Secret(std::string(field.starts_with(kBearer)
                                                               ? field.substr(kBearer.size())
                                                               : std::string_view())));
               },
           .max_body = kMaxQuestion},
          {.method = "POST",
           .pattern = "/tunnel-plugin/{token...}",  // Base64 has slashes
           .guard = http::open_to_all(),
           .handler =
               [this](http::Exchange& exchange, const http::RouteParameters& parameters) {
                 return serve(exchange, Secret(std::string(parameters.at("token"))));
               },
           .max_body = kMaxQuestion}};
}

bool TunnelPlugin::is_token(const Secret& sent) {
  const auto token = token_.current();
  return !token.empty() && sent == token;
}

Task<> TunnelPlugin::serve(http::Exchange& exchange, Secret sent) {
  if (!is_token(sent)) {
    std::ignore = co_await exchange.reply(api_error(401, "The tunnel plugin requires its token."));
    co_return;
  }
  const auto body = co_await exchange.read_body();
  if (!body) {
    // The server logs the path, which holds the token, of a request without a response.
    std::ignore = co_await exchange.reply(api_error(body.error()));
    co_return;
  }
  const auto question = read_tunnel_question(*body);
  if (!question) {
    std::ignore = co_await exchange.reply(api_error(question.error()));
    co_return;
  }
  CallerPtr caller;
  if (is_about_host(*question)) {
    const http::Headers headers{{"Authorization", std::string(question->token.reveal())}};
    // Attempts count for the name, since all requests come from the tunnel servers.
    auto found = co_await authenticator_.authenticate(headers, "tunnel " + question->subdomain,
                                                      deadline_after(kQuestionLimit));
    if (!found && found.error().code != ErrorCode::unauthenticated) {
      // The tunnel server asks its client to retry.
      unknown_.Increment();
      std::ignore = co_await exchange.reply(api_error(found.error()));
      co_return;
    }
    if (found) caller = std::move(*found);
  }
  const auto refusal = tunnel_refusal(*question, caller.get());
  (refusal.empty() ? accepted_ : refused_).Increment();
  if (!refusal.empty() && repeated_.check(question->subdomain, Clock::now()).pass) {
    log_.warning("a tunnel was refused", {{"subdomain", question->subdomain}, {"reason", refusal}});
  }
  std::ignore = co_await exchange.reply(verdict_response(refusal));
}

}  // namespace gitops::control_plane_server
