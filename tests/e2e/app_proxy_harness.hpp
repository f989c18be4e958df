#pragma once

#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/process.hpp"
#include "common/graphql/socket_session.hpp"
#include "common/http/client.hpp"
#include "common/http/websocket.hpp"
#include "daemons/app_proxy_process.hpp"
#include "daemons/control_plane_users.hpp"
#include "doubles/fake_platform.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {

// The running app-proxy and the double of its control plane: account "acme" with the users Ann, who is
// an administrator, and Bob, and another account with Eve.
struct AppProxyHarness {
  using Json = nlohmann::json;
  static constexpr const char* kAnn = kAnnKey;
  static constexpr const char* kBob = kBobKey;
  static constexpr const char* kEve = kEveKey;
  static constexpr const char* kRuntime = kProdToken;
  static constexpr const char* kPage = "https://ui.example.test";

  explicit AppProxyHarness(const Executor& executor)
      : platform(executor), client(executor, resolver, {}) {
    auto& accounts = platform.accounts();
    accounts.add({.id = kAccountId, .name = "acme", .admins = {kAnnId}});
    accounts.add({.id = kOtherAccountId, .name = "other", .admins = {kEveId}});
    accounts.add(
        kAnn,
        FakeAccounts::User{
            .id = kAnnId, .name = "Ann", .email = "ann@example.test", .account_id = kAccountId});
    accounts.add(kBob, FakeAccounts::User{.id = kBobId, .name = "Bob", .account_id = kAccountId});
    accounts.add(kEve,
                 FakeAccounts::User{.id = kEveId, .name = "Eve", .account_id = kOtherAccountId});
    accounts.add(kRuntime, FakeAccounts::Runtime{.name = "prod", .account_id = kAccountId});
    EXPECT_TRUE(platform.start());
  }

  [[nodiscard]] Environment environment() const {
    return {{"CF_HOST", platform.url().to_string() + "/"},
            {"RUNTIME_TOKEN", kRuntime},
            {"RUNTIME_NAME", "prod"},
            {"KUBECONFIG", "/no/such/file"},
            {"CORS", std::string(kPage) + "/ , https://g.codefresh.io"},
            // Of the original, not known here.
            {"STRIP_PREFIX", "true"}};
  }
  void start(Environment more = {}, std::vector<std::string> flags = {}) {
    more.merge(environment());
    daemon.emplace(std::move(more), std::move(flags));
  }

  struct Answer {
    int status = 0;
    http::Headers headers;
    std::string body;
    Json json;

    [[nodiscard]] std::string code() const {
      using namespace nlohmann::literals;
      if (!json.is_object() || !json.contains("errors")) return "";
      return json.value("/errors/0/extensions/code"_json_pointer, "");
    }
  };
  Task<Answer> send(http::Request request) {
    http::Url url{.scheme = "http", .host = "127.0.0.1", .port = daemon->port()};
    auto response =
        co_await client.send(url, std::move(request), deadline_after(std::chrono::seconds(40)));
    if (!response) {
      ADD_FAILURE() << response.error().message;
      co_return Answer{};
    }
    EXPECT_FALSE(response->body.contains("canary")) << response->body;
    Json json = Json::parse(response->body, nullptr, false);
    co_return Answer{.status = response->status,
                     .headers = std::move(response->headers),
                     .body = std::move(response->body),
                     .json = std::move(json)};
  }
  Task<Answer> ask(std::string query, http::Headers headers = {}, Json variables = {}) {
    if (!headers.find("Content-Type")) headers.add("Content-Type", "application/json");
    Json body{{"query", std::move(query)}};
    if (!variables.is_null()) body["variables"] = std::move(variables);
    co_return co_await send({.method = "POST",
                             .target = "/app-proxy/api/graphql",
                             .headers = std::move(headers),
                             .body = body.dump()});
  }
  // The first answer to a subscription, in the form of an answer to a query. Status 401: no session was
  // opened.
  Task<Answer> subscribe(std::string document, http::Headers headers) {
    Answer answer{.status = 401, .headers = {}, .body = {}, .json = {}};
    const http::Url url{.scheme = "ws", .host = "127.0.0.1", .port = daemon->port()};
    (void)co_await http::connect_websocket(
        client, url, {.target = "/app-proxy/api/graphql", .headers = std::move(headers)},
        graphql::kSocketProtocols, {}, deadline_after(std::chrono::seconds(20)),
        [&](http::WebSocket& socket) -> Task<> {
          (void)co_await socket.send(R"({"type":"connection_init"})");
          while (auto message = co_await socket.receive()) {
            const Json said = Json::parse(message->data, nullptr, false);
            if (said["type"] == "connection_ack") {
              answer.status = 200;
              (void)co_await socket.send(
                  Json{{"id", "1"}, {"type", "subscribe"}, {"payload", {{"query", document}}}}
                      .dump());
            } else if (said["type"] == "next" || said["type"] == "error") {
              answer.json =
                  said["type"] == "next" ? said["payload"] : Json{{"errors", said["payload"]}};
              answer.body = answer.json.dump();
              co_return;
            }
          }
        });
    co_return answer;
  }
  static http::Headers as(const std::string& token) { return {{"Authorization", token}}; }

  // Waits until the daemon knows its account.
  Task<> account_known() {
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (!daemon->log().contains("the account is known") && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(daemon->log().contains("the account is known"));
  }
  // The audit stream, once it has that many lines. The daemon writes its log on a thread of its own,
  // so the line of a request may follow its answer.
  Task<std::vector<Json>> audit(std::size_t lines) {
    EXPECT_TRUE(co_await eventually([&] { return audit().size() >= lines; }, "the audit stream"));
    co_return audit();
  }
  // The last line of that action and result, once there is one; null after default_limit().
  Task<Json> audited(std::string action, std::string result = "ok") {
    Json found;
    EXPECT_TRUE(co_await eventually(
        [&] {
          for (auto& line : audit()) {
            if (line["action"] == action && line["result"] == result) found = std::move(line);
          }
          return !found.is_null();
        },
        action + " " + result));
    co_return found;
  }
  [[nodiscard]] std::vector<Json> audit() const {
    std::vector<Json> lines;
    std::istringstream text(daemon->log());
    for (std::string line; std::getline(text, line);) {
      auto json = Json::parse(line, nullptr, false);
      if (json.is_object() && json.value("stream", "") == "audit") lines.push_back(std::move(json));
    }
    return lines;
  }

  [[nodiscard]] std::string logs() const { return daemon ? daemon->log() : ""; }
  Task<> stop() {
    client.close_idle();
    if (daemon) {
      // No secret in any line of the log, the audit stream or the pages of the admin port.
      for (const char* page : {"/metrics", "/statusz", kStatusPath}) {
        EXPECT_FALSE(daemon->admin(page).body.contains("canary")) << page;
      }
      EXPECT_FALSE(daemon->log().contains("canary")) << daemon->log();
      EXPECT_EQ(daemon->process().stop(), 0) << daemon->log();
    }
    co_await platform.stop();
  }

  FakePlatform platform;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client client;
  std::optional<AppProxyProcess> daemon;
};

inline void in_app_proxy_harness(const std::function<Task<>(AppProxyHarness&)>& body,
                                 Clock::duration limit = std::chrono::seconds(60)) {
  run_coro(
      [&]() -> Task<> {
        AppProxyHarness harness(co_await asio::this_coro::executor);
        co_await play_in(harness, body);
      },
      limit);
}

}  // namespace gitops::test
