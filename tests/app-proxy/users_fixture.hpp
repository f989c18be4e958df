#pragma once

#include <functional>
#include <string>

#include "app-proxy/identity/runtime_identity.hpp"
#include "app-proxy/users/credential.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/http/client.hpp"
#include "doubles/fake_platform.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {

// The double of a control plane with an account, its runtime and two users, and a client of it.
struct UsersFixture {
  explicit UsersFixture(const Executor& on)
      : executor(on),
        platform(on),
        http(on, resolver, {}),
        control_plane(http, started(), [this] { return runtime.token(); }) {
    auto& accounts = platform.accounts();
    accounts.add({.id = "a1", .name = "acme", .admins = {"u-ann"}});
    accounts.add("runtime.1", test::FakeAccounts::Runtime{.name = "prod", .account_id = "a1"});
    accounts.add("ann.1",
                 test::FakeAccounts::User{.id = "u-ann", .name = "Ann", .account_id = "a1"});
    accounts.add("bob.1",
                 test::FakeAccounts::User{.id = "u-bob", .name = "Bob", .account_id = "a1"});
  }
  http::Url started() {
    if (auto listening = platform.start(); !listening) throw std::runtime_error("no port");
    return platform.url();
  }
  static SentCredential token(const std::string& text) {
    return {.header = "Authorization", .value = Secret(text)};
  }
  [[nodiscard]] std::size_t asked(std::string_view what) { return platform.accounts().asked(what); }

  test::LogCapture log;
  Executor executor;
  test::FakePlatform platform;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client http;
  RuntimeIdentity runtime{executor, Credential::fixed(Secret("runtime.1")), Credential::fixed({})};
  control_plane::GraphqlClient control_plane;
};

inline void with_users_fixture(const std::function<Task<>(UsersFixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    UsersFixture fixture(co_await asio::this_coro::executor);
    co_await body(fixture);
    fixture.http.close_idle();
    co_await fixture.platform.stop();
  });
}

}  // namespace gitops::app_proxy
