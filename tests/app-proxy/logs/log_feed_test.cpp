#include "app-proxy/logs/log_feed.hpp"

#include <functional>

#include <gmock/gmock.h>

#include "common/core/metrics.hpp"
#include "common/http/server.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Kind = LogEvent::Kind;

// A server that streams, and a feed that reads it.
struct Fixture {
  explicit Fixture(const Executor& executor, std::function<Task<>(http::Exchange&)> handler)
      : executor_(executor),
        server(executor, {}, std::move(handler)),
        resolver(metrics),
        client(executor, resolver, {}),
        ending(executor) {
    EXPECT_TRUE(server.listen());
  }
  Task<LogSource> open(LogFormat format, std::string pod = {}) {
    const http::Url url{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    auto exchange = co_await client.open(url, {.method = "GET", .target = "/" + pod}, kNever);
    co_return LogSource{
        .exchange = std::move(*exchange), .format = format, .needs_head = true, .pod = pod};
  }
  Task<> stop() {
    co_await ending.join();
    co_await server.stop(Clock::now());
  }

  Executor executor_;
  http::Server server;
  Metrics metrics;
  net::Resolver resolver;
  http::Client client;
  TaskGroup ending;
};

void in_fixture(std::function<Task<>(http::Exchange&)> handler,
                const std::function<Task<>(Fixture&)>& body) {
  test::run_coro([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor, handler);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

std::unique_ptr<LogFeed> feed_of(Fixture& fixture, LogSource source,
                                 LogFeed::Options options = {}) {
  std::vector<LogSource> sources;
  sources.push_back(std::move(source));
  return std::make_unique<LogFeed>(fixture.ending, fixture.executor_, std::move(sources),
                                   std::move(options));
}

Task<std::vector<std::string>> rest(LogFeed& feed) {
  std::vector<std::string> all;
  while (true) {
    const auto event = co_await feed.next();
    if (event.kind == Kind::end) co_return all;
    all.push_back(event.kind == Kind::line ? event.line.pod + ":" + event.line.content
                                           : "error " + event.error);
  }
}

TEST(LogFeed, GivesTheLinesAndSaysTheEnd) {
  in_fixture(
      [](http::Exchange& exchange) -> Task<> {
        (void)co_await exchange.start({.status = 200});
        (void)co_await exchange.write("2026-03-04T09:15:27Z one\n2026-03-04T09:15:28Z tw");
        (void)co_await exchange.write("o\n2026-03-04T09:15:29Z drop this\nlast");
        (void)co_await exchange.finish();
      },
      [](Fixture& fixture) -> Task<> {
        const auto feed = feed_of(fixture, co_await fixture.open(LogFormat::kubernetes, "p"),
                                  {.filter = {.contains = "!drop"}});
        EXPECT_THAT(co_await rest(*feed), ElementsAre("p:one", "p:two", "p:last"));
        EXPECT_EQ((co_await feed->next()).kind, Kind::end);
      });
}

TEST(LogFeed, JoinsSeveralAndOneThatFailsStopsNoOther) {
  in_fixture(
      [](http::Exchange& exchange) -> Task<> {
        if (exchange.path() == "/bad") {
          http::Response refusal{.status = 404, .body = R"({"error":{"message":"no such pod"}})"};
          (void)co_await exchange.reply(std::move(refusal));
          co_return;
        }
        (void)co_await exchange.start({.status = 200});
        (void)co_await exchange.write("2026-03-04T09:15:27Z hi\n");
        if (exchange.path() == "/cut") exchange.abort();
        (void)co_await exchange.finish();
      },
      [](Fixture& fixture) -> Task<> {
        std::vector<LogSource> sources;
        for (const char* pod : {"a", "bad", "cut"}) {
          sources.push_back(co_await fixture.open(LogFormat::kubernetes, pod));
        }
        LogFeed feed(fixture.ending, fixture.executor_, std::move(sources), {});
        const auto all = co_await rest(feed);
        EXPECT_THAT(all, testing::Contains("a:hi"));
        EXPECT_THAT(all, testing::Contains("error bad: the server answered 404: no such pod"));
        EXPECT_THAT(all, testing::Contains(HasSubstr("error cut: ")));
      });
}

// As all of several containers of a component.
TEST(LogFeed, StreamsThatCouldNotBeOpenedAreErrorsFirst) {
  in_fixture(
      [](http::Exchange& exchange) -> Task<> {
        (void)co_await exchange.start({.status = 200});
        (void)co_await exchange.write("one\n");
        (void)co_await exchange.finish();
      },
      [](Fixture& fixture) -> Task<> {
        LogFeed none(fixture.ending, fixture.executor_, {}, {.errors = {"a: no", "b: no"}});
        EXPECT_TRUE(none.has_more());
        EXPECT_THAT(co_await rest(none), ElementsAre("error a: no", "error b: no"));
        const auto some = feed_of(fixture, co_await fixture.open(LogFormat::kubernetes, "c"),
                                  {.errors = {"a: no"}});
        EXPECT_THAT(co_await rest(*some), ElementsAre("error a: no", "c:one"));
      });
}

// What nobody reads stays with the server.
TEST(LogFeed, ASlowReaderHoldsUpTheServer) {
  const auto written = std::make_shared<std::size_t>(0);
  in_fixture(
      [written](http::Exchange& exchange) -> Task<> {
        (void)co_await exchange.start({.status = 200});
        const std::string line = "2026-03-04T09:15:27Z " + std::string(4'000, 'x') + "\n";
        co_await exchange.stream(
            [](http::Exchange& to, const std::string& text, std::size_t& count) -> Task<> {
              while (co_await to.write(text)) count += text.size();
            }(exchange, line, *written));
      },
      [written](Fixture& fixture) -> Task<> {
        auto feed = feed_of(fixture, co_await fixture.open(LogFormat::kubernetes, "p"));
        EXPECT_EQ((co_await feed->next()).kind, Kind::line);
        // Until the buffers of the two sockets are full.
        std::size_t before = 0;
        do {
          before = *written;
          co_await sleep_for(std::chrono::milliseconds(200));
        } while (*written != before);
        // Reading goes on where it stopped.
        const auto stuck = *written;
        for (std::size_t read = 0; read < stuck + 1'000'000; read += 4'000) {
          EXPECT_EQ((co_await feed->next()).kind, Kind::line);
        }
        EXPECT_GT(*written, stuck);
        feed.reset();
        co_await fixture.ending.join();
      });
}

TEST(LogFeed, ATimeWithoutLinesIsToldAndALostRightIsTheEnd) {
  in_fixture(
      [](http::Exchange& exchange) -> Task<> {
        (void)co_await exchange.start({.status = 200});
        (void)co_await exchange.write("a\n");
        co_await exchange.stream([]() -> Task<> { co_await sleep_until(kNever); }());
      },
      [](Fixture& fixture) -> Task<> {
        bool is_allowed = true;
        auto feed = feed_of(fixture, co_await fixture.open(LogFormat::kubernetes),
                            {.is_allowed = [&]() -> Result<void> {
                               if (is_allowed) return {};
                               return fail(ErrorCode::forbidden, "no");
                             },
                             .check_period = std::chrono::milliseconds(0)});
        EXPECT_EQ((co_await feed->next()).kind, Kind::line);
        EXPECT_EQ((co_await feed->next(deadline_after(std::chrono::milliseconds(20)))).kind,
                  Kind::nothing_yet);
        auto second = feed_of(
            fixture, co_await fixture.open(LogFormat::kubernetes),
            {.is_allowed = [&]() -> Result<void> { return fail(ErrorCode::forbidden, "no"); },
             .check_period = std::chrono::milliseconds(0)});
        EXPECT_EQ((co_await second->next()).error, "Forbidden");
        EXPECT_EQ((co_await second->next()).kind, Kind::end);
        // Both go while their servers stream.
        feed.reset();
        second.reset();
      });
}

}  // namespace
}  // namespace gitops::app_proxy
