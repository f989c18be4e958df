#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/client.hpp"
#include "common/http/server.hpp"
#include "support/run_coro.hpp"
#include "test_http/http_script.hpp"

namespace gitops::http {

using std::chrono::milliseconds;
using std::chrono::seconds;

// An http::Client with its resolver and metrics.
struct TestClient {
  explicit TestClient(const Executor& executor, ClientOptions options = {})
      : client(executor, resolver, std::move(options)) {}

  Metrics metrics;
  net::Resolver resolver{metrics};
  Client client;

  Task<Result<Response>> get(const Url& url, std::string target = "/") {
    Request request;
    request.target = std::move(target);
    co_return co_await client.send(url, std::move(request), deadline_after(seconds(5)));
  }
  Task<Result<Response>> post(const Url& url, std::string body, std::string target = "/") {
    Request request;
    request.method = "POST";
    request.target = std::move(target);
    request.body = std::move(body);
    co_return co_await client.send(url, std::move(request), deadline_after(seconds(5)));
  }
};

// A listening http::Server; await stop() before the destructor.
struct TestServer {
  TestServer(const Executor& executor, Handler handler, ServerOptions options = {})
      : tls(options.tls.has_value()), server(executor, std::move(options), std::move(handler)) {
    if (auto listening = server.listen(); !listening)
      throw std::runtime_error(listening.error().message);
  }

  Url url(const std::string& host = "127.0.0.1") const {
    Url out;
    out.scheme = tls ? "https" : "http";
    out.host = host;
    out.port = server.port();
    return out;
  }
  std::uint16_t port() const { return server.port(); }
  Task<> stop() { co_await server.stop(deadline_after(seconds(1))); }

  bool tls;
  Server server;
};

inline Task<> answer(Exchange& exchange, std::string body = "ok", int status = 200) {
  auto sent = co_await exchange.reply({.status = status, .body = std::move(body)});
  (void)sent;
}

}  // namespace gitops::http
