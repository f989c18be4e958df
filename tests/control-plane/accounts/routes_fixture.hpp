#pragma once

#include <functional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/http/served_routes.hpp"

namespace gitops::control_plane_server {

using Json = nlohmann::json;

// The routes behind a server, and a client of it.
struct RoutesFixture {
  explicit RoutesFixture(AccountsFixture& on)
      : accounts(on),
        authenticator(on.database, on.metrics, {.cookie = CookieForm::plain}),
        login(on.database, passwords, on.metrics, {}),
        served(on, user_routes({.database = on.database,
                                .authenticator = authenticator,
                                .login = login,
                                .public_url = "https://console.example",
                                .own_origins = {},
                                .client_of = {},
                                .audit = &audit,
                                .runtime_revoked = [this] { ++runtimes_revoked; }})) {
    audit.start();
  }
  Task<> stop() {
    co_await served.stop();
    co_await audit.stop(AccountsFixture::soon());
  }

  Task<http::Response> send(std::string method, std::string target, http::Headers headers,
                            std::string body = {}) {
    co_return co_await served.send(std::move(method), std::move(target), std::move(headers),
                                   std::move(body));
  }
  Task<http::Response> get(std::string target, const Secret& token) {
    co_return co_await send("GET", std::move(target), authorization(token));
  }
  Task<http::Response> log_in(const Json& body, http::Headers more = {}) {
    more.add("Content-Type", "application/json");
    co_return co_await send("POST", "/console/api/v1/login", std::move(more), body.dump());
  }

  int runtimes_revoked = 0;
  AccountsFixture& accounts;
  SampleAccounts& sample = accounts.sample;
  Authenticator authenticator;
  Passwords passwords{accounts.metrics, kCheap};
  Login login;
  AuditLog audit{accounts.executor, accounts.database, accounts.metrics};
  ServedRoutes served;
};

inline void with_routes(const std::function<Task<>(RoutesFixture&)>& body) {
  with_accounts([&](AccountsFixture& accounts) -> Task<> {
    RoutesFixture fixture(accounts);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

inline Json json_of(const http::Response& response) {
  return Json::parse(response.body, nullptr, false);
}

// Returns the session's cookie of a response in the form of a request.
inline http::Headers cookie_of(const http::Response& response) {
  const auto set = response.headers.find("Set-Cookie").value_or("");
  return {{"Cookie", std::string(set.substr(0, set.find(';')))}};
}

}  // namespace gitops::control_plane_server
