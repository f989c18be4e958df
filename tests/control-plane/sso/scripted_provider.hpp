#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/http/server.hpp"
#include "common/http/url.hpp"
#include "control-plane/sso/test_signer.hpp"

namespace gitops::control_plane_server::sso {

// An identity provider on the test's loop, whose every response a test may change. Its page for people is authorize().
// Call stop() before the destructor.
class ScriptedProvider {
 public:
  using Json = nlohmann::json;

  explicit ScriptedProvider(const Executor& executor)
      : server_(executor, {}, [this](http::Exchange& exchange) { return serve(exchange); }) {
    if (auto listening = server_.listen(); !listening) {
      throw std::runtime_error(listening.error().message);
    }
    keys = Json::array({rsa_signer().jwk("k1")});
    document = {{"issuer", issuer()},
                {"authorization_endpoint", issuer() + "/authorize"},
                {"token_endpoint", issuer() + "/token"},
                {"jwks_uri", issuer() + "/keys"},
                {"end_session_endpoint", issuer() + "/logout"},
                {"authorization_response_iss_parameter_supported", true}};
  }
  Task<> stop() { return server_.stop(Clock::now()); }

  [[nodiscard]] std::string issuer() const {
    return "http://127.0.0.1:" + std::to_string(server_.port());
  }

  // Logs the user in who was sent to this address, and returns the query of the callback.
  std::string authorize(std::string_view location) {
    const auto url = http::parse_url(location);
    if (!url) throw std::runtime_error("no address of a provider");
    const auto value = [&](const char* name) { return http::query_parameter(url->query, name); };
    const auto code = "code-" + std::to_string(++codes_);
    waiting_[code] = {.challenge = value("code_challenge"),
                      .nonce = value("nonce"),
                      .redirect_uri = value("redirect_uri")};
    return http::query_string({{"state", value("state")}, {"code", code}, {"iss", issuer()}});
  }

  Json document;
  Json keys;
  Json claims = {{"sub", "u-1"}, {"name", "Kim"}, {"preferred_username", "kim"}};
  Json header = {{"alg", "RS256"}, {"kid", "k1"}};
  const TestSigner* signer = &rsa_signer();
  std::string client_id = "gitops";
  // Path to the response that is sent instead of the usual one.
  std::map<std::string, http::Response> instead;
  std::string silent_path;           // no response at all
  std::map<std::string, int> asked;  // requests by path

 private:
  struct Waiting {
    std::string challenge;
    std::string nonce;
    std::string redirect_uri;
  };

  static http::Response json(const Json& body, int status = 200) {
    return {
        .status = status, .headers = {{"Content-Type", "application/json"}}, .body = body.dump()};
  }

  Task<> serve(http::Exchange& exchange) {
    const std::string path(exchange.path());
    ++asked[path];
    auto body = co_await exchange.read_body(64 * 1024);
    if (path == silent_path) co_await exchange.gone();
    auto response = json({{"error", "not_found"}}, 404);
    if (const auto found = instead.find(path); found != instead.end()) {
      response = found->second;
    } else if (path == "/.well-known/openid-configuration") {
      response = json(document);
    } else if (path == "/keys") {
      response = json({{"keys", keys}});
    } else if (path == "/token") {
      response = exchange_code(exchange.request().headers, body.value_or(""));
    }
    (void)co_await exchange.reply(std::move(response));
  }

  http::Response exchange_code(const http::Headers& headers, const std::string& form) {
    const auto value = [&](const char* name) { return http::query_parameter(form, name); };
    if (headers.find("Authorization") != "Basic " + base64_encode("gitops:the%20secret")) {
      return json({{"error", "invalid_client"}}, 401);
    }
    const auto waiting = waiting_.find(value("code"));
    if (waiting == waiting_.end() ||
        base64url_encode(bytes_of(sha256(value("code_verifier")))) != waiting->second.challenge ||
        value("redirect_uri") != waiting->second.redirect_uri) {
      return json({{"error", "invalid_grant"}}, 400);
    }
    const auto now =
        std::chrono::floor<std::chrono::seconds>(wall_now()).time_since_epoch().count();
    Json all{{"iss", issuer()},
             {"aud", client_id},
             {"iat", now},
             {"exp", now + 300},
             {"nonce", waiting->second.nonce}};
    all.update(claims);
    waiting_.erase(waiting);
    return json({{"access_token", "a"},
                 {"token_type", "Bearer"},
                 {"id_token", signer->token(header, all)}});
  }

  std::map<std::string, Waiting> waiting_;
  int codes_ = 0;
  http::Server server_;
};

}  // namespace gitops::control_plane_server::sso
