#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/http/client.hpp"
#include "common/http/router.hpp"
#include "common/http/server.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/user_routes.hpp"

namespace gitops::control_plane_server {

// Routes behind a server, and a client of it. What the handlers use must outlive it.
class ServedRoutes {
 public:
  ServedRoutes(AccountsFixture& accounts, std::vector<http::Route> routes)
      : router_(std::move(routes),
                [](int status, std::string_view message) { return api_error(status, message); }),
        server_(accounts.executor, {},
                [this](http::Exchange& exchange) { return router_.serve(exchange); }),
        resolver_(accounts.metrics),
        client_(accounts.executor, resolver_, {}) {
    must(server_.listen());
  }
  Task<> stop() {
    client_.close_idle();
    co_await server_.stop(Clock::now());
  }
  [[nodiscard]] http::Url url() const {
    return {.scheme = "http", .host = "127.0.0.1", .port = server_.port()};
  }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  Task<http::Response> send(std::string method, std::string target, http::Headers headers,
                            std::string body = {}) {
    auto response = co_await client_.send(url(),
                                          {.method = std::move(method),
                                           .target = std::move(target),
                                           .headers = std::move(headers),
                                           .body = std::move(body)},
                                          AccountsFixture::soon());
    co_return must(std::move(response));
  }

 private:
  http::Router router_;
  http::Server server_;
  net::Resolver resolver_;
  http::Client client_;
};

}  // namespace gitops::control_plane_server
