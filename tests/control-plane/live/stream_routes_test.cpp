// Streams over HTTP, in test time.
#include "control-plane/live/stream_routes.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/http/client.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/views/seed.hpp"
#include "support/wait.hpp"

namespace gitops::control_plane_server {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;

struct StreamFixture {
  explicit StreamFixture(AccountsFixture& on)
      : accounts(on),
        authenticator(on.database, on.metrics, {.cookie = CookieForm::plain}),
        live(on.executor, on.database, on.metrics, {.hub = {.per_user = 2}},
             [this](const std::string& subject) { authenticator.forget(subject); }),
        streams(authenticator, live, {}),
        router(streams.routes(),
               [](int status, std::string_view message) { return api_error(status, message); }),
        server(on.executor, {},
               [this](http::Exchange& exchange) { return router.serve(exchange); }),
        resolver(on.metrics),
        client(on.executor, resolver, {}) {
    authenticator.on_forget([this](const std::string& id) { live.check(id); });
    must(server.listen());
    live.start();
  }
  Task<> stop() {
    client.close_idle();
    co_await server.stop(Clock::now());
    co_await live.stop();
  }
  Task<http::ClientExchange> open(http::Headers headers, const std::string& topics = "index") {
    const http::Url url{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    co_return must(co_await client.open(url,
                                        {.method = "GET",
                                         .target = "/console/api/v1/stream?topics=" + topics,
                                         .headers = std::move(headers)},
                                        kNever));
  }
  Task<int> status(http::Headers headers, const std::string& topics = "index") {
    auto exchange = co_await open(std::move(headers), topics);
    co_return must(co_await exchange.read_head()).status;
  }

  AccountsFixture& accounts;
  SampleAccounts& sample = accounts.sample;
  Authenticator authenticator;
  LiveUpdates live;
  StreamRoutes streams;
  http::Router router;
  http::Server server;
  net::Resolver resolver;
  http::Client client;
};

// Reads a stream.
class Reader {
 public:
  explicit Reader(http::ClientExchange exchange) : exchange_(std::move(exchange)) {}
  Task<> begin() {
    const auto head = must(co_await exchange_.read_head());
    CO_ASSERT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.find("Content-Type"), "text/event-stream");
    EXPECT_EQ(head.headers.find("Cache-Control"), "no-store");
  }
  // Returns the types of events up to this one, "closed" at the end.
  Task<std::vector<std::string>> read_until(std::string type) {
    std::vector<std::string> types;
    while (std::ranges::find(types, type) == types.end()) {
      const auto bytes = must(co_await exchange_.read_some());
      if (bytes.empty()) {
        types.emplace_back("closed");
        break;
      }
      text += bytes;
      for (const auto& event : must(parser_.feed(bytes))) types.push_back(event.event);
    }
    co_return types;
  }
  std::string text;

 private:
  http::ClientExchange exchange_;
  http::ServerSentEventParser parser_{1 << 20};
};

void with_streams(const std::function<Task<>(StreamFixture&)>& body) {
  with_accounts([&](AccountsFixture& accounts) -> Task<> {
    StreamFixture fixture(accounts);
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.live.feed().has_begun(); },
                                          "the first read"));
    co_await body(fixture);
    co_await fixture.stop();
  });
}

http::Headers session_of(const Secret& session) {
  return {{"Cookie", "session=" + std::string(session.reveal())}};
}

TEST(StreamRoutes, AStreamNeedsAUserAndTopics) {
  with_streams([](StreamFixture& fixture) -> Task<> {
    const auto& sample = fixture.sample;
    EXPECT_EQ(co_await fixture.status({}), 401);
    EXPECT_EQ(co_await fixture.status(authorization(Secret(std::string("nobody.0000")))), 401);
    EXPECT_EQ(co_await fixture.status(authorization(sample.prod_token)), 403);
    EXPECT_EQ(co_await fixture.status(authorization(sample.bob_key), ""), 400);
    EXPECT_EQ(co_await fixture.status(authorization(sample.bob_key), "all"), 400);
    EXPECT_EQ(co_await fixture.status(authorization(sample.bob_key)), 200);
    EXPECT_EQ(co_await fixture.status(session_of(sample.bob_session)), 200);
    auto from_elsewhere = session_of(sample.bob_session);
    from_elsewhere.add("Origin", "https://evil.example");
    EXPECT_EQ(co_await fixture.status(std::move(from_elsewhere)), 401);
  });
}

TEST(StreamRoutes, AKeyNeedsTheScopeToRead) {
  with_streams([](StreamFixture& fixture) -> Task<> {
    const auto& sample = fixture.sample;
    const auto key = must(co_await fixture.accounts.write([&sample](store::Connection& db) {
      return create_user_key(db, sample.acme.number, sample.bob.id,
                             {.name = "ci", .scopes = {"images"}}, micros_at(wall_now()));
    }));
    EXPECT_EQ(co_await fixture.status(authorization(key.text)), 403);
  });
}

TEST(StreamRoutes, StreamsOfAUserAreLimited) {
  with_streams([](StreamFixture& fixture) -> Task<> {
    Reader first(co_await fixture.open(authorization(fixture.sample.bob_key)));
    co_await first.begin();
    {
      Reader second(co_await fixture.open(authorization(fixture.sample.bob_key)));
      co_await second.begin();
      EXPECT_EQ(co_await fixture.status(authorization(fixture.sample.bob_key)), 429);
      EXPECT_EQ(co_await fixture.status(authorization(fixture.sample.ann_key)), 200);
    }
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.live.hub().size() == 1; },
                                          "the end of the second one"));
    EXPECT_EQ(co_await fixture.status(authorization(fixture.sample.bob_key)), 200);
  });
}

// Else a page begins to read, and begins again a tenth of a second later.
TEST(StreamRoutes, AResetComesWithTheFirstBytes) {
  with_streams([](StreamFixture& fixture) -> Task<> {
    const auto began = Clock::now();
    Reader reader(co_await fixture.open(authorization(fixture.sample.bob_key)));
    co_await reader.begin();
    EXPECT_THAT(co_await reader.read_until("reset"), ElementsAre("reset"));
    EXPECT_LT(Clock::now() - began, StreamRoutes::Options().period);
  });
}

TEST(StreamRoutes, ASilentStreamHasACommentEach15Seconds) {
  with_streams([](StreamFixture& fixture) -> Task<> {
    Reader reader(co_await fixture.open(authorization(fixture.sample.bob_key)));
    co_await reader.begin();
    EXPECT_THAT(co_await reader.read_until("reset"), ElementsAre("reset"));
    reader.text.clear();
    const auto began = Clock::now();
    const auto revoke = [&]() -> Task<> {
      co_await sleep_for(seconds(50));
      must(co_await fixture.accounts.write(
          [&](store::Connection& db) { return end_sessions_of(db, fixture.sample.bob.id); }));
      must(co_await fixture.accounts.write(
          [&](store::Connection& db) { return set_disabled(db, fixture.sample.bob.id, true); }));
      fixture.authenticator.forget(fixture.sample.bob.id);
    };
    TaskGroup tasks(fixture.accounts.executor);
    tasks.spawn("revoke", revoke);
    EXPECT_THAT(co_await reader.read_until("end"), ElementsAre("end"));
    co_await tasks.join();
    EXPECT_EQ(reader.text, ":\n\n:\n\n:\n\nevent: end\ndata: {\"reason\":\"signed_out\"}\n\n");
    EXPECT_LE(Clock::now() - began, seconds(51));
    EXPECT_THAT(co_await reader.read_until("more"), ElementsAre("closed"));
  });
}

TEST(StreamRoutes, AKeyThatExpiresEndsItsStream) {
  with_streams([](StreamFixture& fixture) -> Task<> {
    const auto& sample = fixture.sample;
    const auto key = must(co_await fixture.accounts.write([&sample](store::Connection& db) {
      const auto now = micros_at(wall_now());
      return create_user_key(db, sample.acme.number, sample.bob.id,
                             {.name = "short", .scopes = {}, .expires_at = now + 20 * kSecond},
                             now);
    }));
    Reader reader(co_await fixture.open(authorization(key.text)));
    co_await reader.begin();
    const auto began = Clock::now();
    EXPECT_THAT(co_await reader.read_until("end"), ElementsAre("reset", "end"));
    EXPECT_LE(Clock::now() - began, seconds(22));
  });
}

TEST(StreamRoutes, ACheckThatCannotBeMadeEndsNothingAndShowsNothing) {
  with_streams([](StreamFixture& fixture) -> Task<> {
    Reader reader(co_await fixture.open(authorization(fixture.sample.bob_key)));
    co_await reader.begin();
    co_await reader.read_until("reset");
    const auto script = [&fixture](std::string sql) -> Task<> {
      must(co_await fixture.accounts.write(
          [sql](store::Connection& db) { return db.run_script(sql); }));
    };
    co_await script("ALTER TABLE api_key RENAME TO away");
    fixture.authenticator.forget(fixture.sample.bob.id);
    Seeder seeder(store::Engine::sqlite);
    must(co_await fixture.accounts.database.with_writer(
        AccountsFixture::soon(), [&](store::Connection& db) -> Result<void> {
          seeder.store(db, fixture.sample.acme.number, app_event(application_of("shop")));
          return {};
        }));
    fixture.live.committed(1);
    co_await sleep_for(seconds(10));
    co_await script("ALTER TABLE away RENAME TO api_key");
    EXPECT_THAT(co_await reader.read_until("reset"), ElementsAre("reset"))
        << "no row before the check";
  });
}

TEST(StreamRoutes, AChangeIsOneWriteOfTheStream) {
  with_streams([](StreamFixture& fixture) -> Task<> {
    Reader reader(co_await fixture.open(session_of(fixture.sample.bob_session)));
    co_await reader.begin();
    co_await reader.read_until("reset");
    reader.text.clear();
    Seeder seeder(store::Engine::sqlite);
    must(co_await fixture.accounts.database.with_writer(
        AccountsFixture::soon(), [&](store::Connection& db) -> Result<void> {
          seeder.store(db, fixture.sample.acme.number, app_event(application_of("shop")));
          return {};
        }));
    fixture.live.committed(1);
    EXPECT_THAT(co_await reader.read_until("patch"), Contains("patch"));
    const auto& text = reader.text;
    EXPECT_TRUE(text.contains("\"topic\":\"index\"") && text.contains("\"name\":\"shop\"")) << text;
    EXPECT_TRUE(text.contains("id: ")) << text;
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
