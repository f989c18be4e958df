#include "app-proxy/providers/git_host_client.hpp"

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "common/http/server.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "test_http/canned_server.hpp"
#include "test_http/responses.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::ok;
using test::run_in_test_time;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "ghp_canary0123456789";

// A host with these answers.
struct Fixture {
  Fixture(const Executor& executor, std::vector<http::Response> answers,
          GitHostClient::Options options)
      : server(executor, std::move(answers)),
        http(executor, resolver, {}),
        client(executor, http, metrics, options),
        root{ProviderKind::github, server.url()} {}

  Task<Result<ApiAnswer>> get(std::string path = "/user", std::string token = kToken,
                              Urgency urgency = Urgency::person) {
    const GitAccess access{Secret(std::move(token)), {}, urgency};
    co_return co_await client.send(root, AuthStyle::bearer, access,
                                   {.path = std::move(path), .what = "user"}, deadline_after(5s));
  }
  Task<Result<ApiAnswer>> post(std::string path = "/user/repos") {
    const GitAccess access{Secret(kToken)};
    co_return co_await client.send(
        root, AuthStyle::bearer, access,
        {.method = "POST", .path = std::move(path), .body = "{}", .what = "new repository"},
        deadline_after(5s));
  }
  // A page with as many repositories as the body has characters.
  Task<Result<Answer<std::shared_ptr<const HostPage>>>> page(
      std::string token = kToken, std::string path = "/user/repos",
      Deadline deadline = deadline_after(5s)) {
    const GitAccess access{Secret(std::move(token))};
    co_return co_await client.page(
        root, AuthStyle::bearer, access, {.path = std::move(path), .what = "repositories"},
        [this](std::string_view body, const http::Headers&) -> Result<HostPage> {
          ++reads;
          if (body == "broken") return fail(ErrorCode::invalid_data, "no JSON");
          HostPage out;
          out.repositories.resize(body.size());
          return out;
        },
        deadline);
  }
  [[nodiscard]] std::string header(std::size_t request, std::string_view name) const {
    return std::string(server.seen().at(request).headers.find(name).value_or("(none)"));
  }

  CannedServer server;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client http;
  GitHostClient client;
  ApiRoot root;
  std::size_t reads = 0;
};

void with_bench(std::vector<http::Response> answers, const std::function<Task<>(Fixture&)>& body,
                GitHostClient::Options options = {}) {
  run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor, std::move(answers), options);
    co_await body(fixture);
    fixture.http.close_idle();
    co_await fixture.server.stop();
  });
}

TEST(GitHostClient, AnUnchangedAnswerComesFromTheCache) {
  with_bench({ok("{\"a\":1}", {{"ETag", "\"v1\""}}), {.status = 304}, ok("{\"a\":2}")},
             [](Fixture& fixture) -> Task<> {
               CO_ASSERT_OK(co_await fixture.get());
               const auto second = co_await fixture.get();
               CO_ASSERT_OK(second);
               EXPECT_EQ(second->body, "{\"a\":1}");
               EXPECT_FALSE(second->is_last_known);
               EXPECT_EQ(fixture.header(0, "If-None-Match"), "(none)");
               EXPECT_EQ(fixture.header(1, "If-None-Match"), "\"v1\"");
               EXPECT_EQ(fixture.header(1, "Authorization"), std::string("Bearer ") + kToken);
               CO_ASSERT_OK(co_await fixture.get("/user", "another-token"));
               EXPECT_EQ(fixture.header(2, "If-None-Match"), "(none)") << "another token";
             });
}

TEST(GitHostClient, AThrottledTokenGetsTheLastKnownAnswerWithoutARequest) {
  const http::Response limited{.status = 403,
                               .headers = {{"Retry-After", "60"}},
                               .body = R"({"message":"secondary rate limit"})"};
  with_bench({ok("known"), limited, ok("new")}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.get());
    const auto throttled = co_await fixture.get();
    CO_ASSERT_OK(throttled);
    EXPECT_TRUE(throttled->is_last_known);
    EXPECT_EQ(throttled->body, "known");
    EXPECT_EQ(fixture.server.seen().size(), 2U);
    const auto again = co_await fixture.get();
    CO_ASSERT_OK(again);
    EXPECT_TRUE(again->is_last_known);
    const auto unknown = co_await fixture.get("/orgs");
    CO_ASSERT_TRUE(!unknown);
    EXPECT_EQ(unknown.error().subcode, git_errors::kThrottled);
    EXPECT_EQ(unknown.error().retry_after, 60s);
    EXPECT_EQ(fixture.server.seen().size(), 2U) << "a host that throttles is left alone";
    CO_ASSERT_OK(co_await fixture.get("/user", "another-token"));
    EXPECT_EQ(fixture.server.seen().size(), 3U) << "a budget belongs to one token";
    co_await sleep_for(61s);
    const auto fresh = co_await fixture.get();
    CO_ASSERT_OK(fresh);
    EXPECT_FALSE(fresh->is_last_known);
    EXPECT_EQ(fresh->body, "new");
  });
}

TEST(GitHostClient, ARejectedTokenLosesWhatItWasShown) {
  with_bench({ok("known"), {.status = 401}, {.status = 429}}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.get());
    const auto rejected = co_await fixture.get();
    CO_ASSERT_TRUE(!rejected);
    EXPECT_EQ(rejected.error().subcode, git_errors::kTokenRejected);
    EXPECT_EQ(fixture.client.cached_bytes(), 0U);
    const auto throttled = co_await fixture.get();
    CO_ASSERT_TRUE(!throttled);
    EXPECT_EQ(throttled.error().subcode, git_errors::kThrottled);
  });
}

TEST(GitHostClient, FollowsRedirectsOnTheSameHost) {
  with_bench({{.status = 301, .headers = {{"Location", "/repositories/42?x=1"}}}, ok("moved")},
             [](Fixture& fixture) -> Task<> {
               const auto answer = co_await fixture.get("/repos/old/name");
               CO_ASSERT_OK(answer);
               EXPECT_EQ(answer->body, "moved");
               EXPECT_EQ(fixture.server.seen().at(1).target, "/repositories/42?x=1");
             });
  with_bench({{.status = 302, .headers = {{"Location", "/loop"}}}}, [](Fixture& fixture) -> Task<> {
    const auto answer = co_await fixture.get();
    CO_ASSERT_TRUE(!answer);
    EXPECT_EQ(answer.error().subcode, git_errors::kRedirected);
    EXPECT_EQ(fixture.server.seen().size(), 4U);
  });
}

TEST(GitHostClient, RepeatsAChangeOnlyWhereTheHostSaysSo) {
  with_bench({{.status = 302, .headers = {{"Location", "/elsewhere"}}}},
             [](Fixture& fixture) -> Task<> {
               CO_ASSERT_TRUE(!co_await fixture.post());
               EXPECT_EQ(fixture.server.seen().size(), 1U);
             });
  with_bench({{.status = 307, .headers = {{"Location", "/elsewhere"}}}, {.status = 201}},
             [](Fixture& fixture) -> Task<> {
               CO_ASSERT_OK(co_await fixture.post());
               EXPECT_EQ(fixture.server.seen().at(1).method, "POST");
               EXPECT_EQ(fixture.server.seen().at(1).body, "{}");
             });
}

// [AC-39]
TEST(GitHostClient, AC39_ACredentialIsNeverSentToAnotherHost) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    CannedServer thief(executor, {ok("{}")});
    const auto other = thief.url();
    const std::string port = std::to_string(other.port);
    for (const auto& location :
         {"http://127.0.0.1:" + port + "/user", "//127.0.0.1:" + port + "/user",
          "http://localhost:" + port + "/user", "https://127.0.0.1:" + port + "/user",
          "http://x@127.0.0.1:" + port + "/user", "http:/\\127.0.0.1:" + port,
          std::string("javascript:alert(1)"), std::string()}) {
      for (const int status : {301, 302, 303, 307, 308}) {
        Fixture fixture(executor, {{.status = status, .headers = {{"Location", location}}}}, {});
        const auto answer = co_await fixture.get();
        EXPECT_FALSE(answer.has_value()) << location;
        EXPECT_EQ(fixture.server.seen().size(), 1U) << location << " is not followed on our host";
        if (!answer) {
          EXPECT_EQ(answer.error().subcode, git_errors::kRedirected);
          EXPECT_THAT(answer.error().message, Not(HasSubstr("canary")));
        }
        fixture.http.close_idle();
        co_await fixture.server.stop();
      }
    }
    EXPECT_TRUE(thief.seen().empty()) << "no request reached the other host";
    co_await thief.stop();
  });
}

// [AC-28]
TEST(GitHostClient, AC28_TokensStandInNoErrorLogOrMetric) {
  test::LogCapture log;
  with_bench({{.status = 401, .body = R"({"message":"ghp_canary0123456789 is bad"})"},
              {.status = 500, .body = "ghp_canary0123456789"},
              {.status = 302, .headers = {{"Location", "/x?t=ghp_canary0123456789"}}},
              {.status = 429},
              ok("x")},
             [](Fixture& fixture) -> Task<> {
               for (int i = 0; i < 6; ++i) {
                 const auto answer = co_await fixture.get("/user" + std::to_string(i));
                 if (!answer) {
                   EXPECT_THAT(answer.error().message, Not(HasSubstr("canary")));
                 }
                 co_await sleep_for(61s);
               }
               const auto broken = co_await fixture.get("/user", "ghp_canary\r\nX-Evil: 1");
               CO_ASSERT_TRUE(!broken);
               EXPECT_EQ(broken.error().subcode, git_errors::kTokenRejected);
               EXPECT_THAT(broken.error().message, Not(HasSubstr("canary")));
               EXPECT_THAT(fixture.metrics.expose(), Not(HasSubstr("canary")));
             });
  EXPECT_THAT(log.text(), Not(HasSubstr("canary")));
}

TEST(GitHostClient, AHostThatCannotBeReachedIsToldFromARefusal) {
  with_bench({ok("{}")}, [](Fixture& fixture) -> Task<> {
    co_await fixture.server.stop();
    fixture.http.close_idle();
    const auto answer = co_await fixture.get();
    CO_ASSERT_TRUE(!answer);
    EXPECT_EQ(answer.error().subcode, git_errors::kUnreachable);
    EXPECT_THAT(answer.error().message, HasSubstr("proxy and CA settings"));
  });
}

TEST(GitHostClient, LargeAnswersAreRefused) {
  with_bench({ok(std::string(9UL * 1024 * 1024, 'x'))}, [](Fixture& fixture) -> Task<> {
    const auto answer = co_await fixture.get();
    CO_ASSERT_TRUE(!answer);
    EXPECT_EQ(answer.error().subcode, git_errors::kBadAnswer);
    EXPECT_EQ(fixture.client.cached_bytes(), 0U);
  });
}

const http::Headers kMinute = {{"ETag", "\"v1\""}, {"Cache-Control", "private, max-age=60"}};

TEST(GitHostClient, AFreshPageNeedsNoQuestion) {
  with_bench({ok("xx", kMinute), ok("xxx", kMinute), ok("x")}, [](Fixture& fixture) -> Task<> {
    const auto first = co_await fixture.page();
    CO_ASSERT_OK(first);
    EXPECT_EQ(first->value->repositories.size(), 2U);
    co_await sleep_for(59s);
    const auto second = co_await fixture.page();
    CO_ASSERT_OK(second);
    EXPECT_EQ(second->value, first->value) << "the same one, and no copy of it";
    EXPECT_FALSE(second->is_last_known);
    EXPECT_EQ(fixture.server.seen().size(), 1U);
    const auto other = co_await fixture.page("another-token");
    CO_ASSERT_OK(other);
    EXPECT_EQ(other->value->repositories.size(), 3U) << "another token is asked for";
    co_await sleep_for(2s);
    const auto third = co_await fixture.page();
    CO_ASSERT_OK(third);
    EXPECT_EQ(third->value->repositories.size(), 1U);
    EXPECT_EQ(fixture.reads, 3U);
  });
}

TEST(GitHostClient, AnUnchangedPageIsNotReadAgain) {
  with_bench({ok("xx", kMinute),
              {.status = 304, .headers = {{"Cache-Control", "private, max-age=60"}}},
              {.status = 304},
              ok("x", {{"ETag", "\"v2\""}}),
              {.status = 304}},
             [](Fixture& fixture) -> Task<> {
               const auto first = co_await fixture.page();
               CO_ASSERT_OK(first);
               co_await sleep_for(61s);
               const auto same = co_await fixture.page();
               CO_ASSERT_OK(same);
               EXPECT_EQ(same->value, first->value);
               EXPECT_EQ(fixture.header(1, "If-None-Match"), "\"v1\"");
               CO_ASSERT_OK(co_await fixture.page());
               EXPECT_EQ(fixture.server.seen().size(), 2U) << "the 304 made it fresh again";
               co_await sleep_for(61s);
               CO_ASSERT_OK(co_await fixture.page());
               EXPECT_EQ(fixture.reads, 1U);
               const auto changed = co_await fixture.page();
               CO_ASSERT_OK(changed);
               EXPECT_EQ(changed->value->repositories.size(), 1U)
                   << "the second 304 did not call it fresh";
               CO_ASSERT_OK(co_await fixture.page());
               EXPECT_EQ(fixture.header(4, "If-None-Match"), "\"v2\"");
               EXPECT_EQ(fixture.reads, 2U);
             });
}

TEST(GitHostClient, AChangeByTheTokenEndsTheFreshness) {
  with_bench({ok("x", kMinute), {.status = 422}, {.status = 201}, ok("xx", kMinute)},
             [](Fixture& fixture) -> Task<> {
               CO_ASSERT_OK(co_await fixture.page());
               CO_ASSERT_TRUE(!co_await fixture.post());
               CO_ASSERT_OK(co_await fixture.page());
               EXPECT_EQ(fixture.server.seen().size(), 2U) << "nothing was changed";
               CO_ASSERT_OK(co_await fixture.post());
               const auto page = co_await fixture.page();
               CO_ASSERT_OK(page);
               EXPECT_EQ(page->value->repositories.size(), 2U);
             });
}

TEST(GitHostClient, ARejectedOrRemovedTokenLosesItsPages) {
  with_bench({ok("x", kMinute), {.status = 401}, {.status = 401}, ok("x", kMinute), ok("xx")},
             [](Fixture& fixture) -> Task<> {
               CO_ASSERT_OK(co_await fixture.page());
               CO_ASSERT_TRUE(!co_await fixture.get());
               CO_ASSERT_TRUE(!co_await fixture.page());
               CO_ASSERT_OK(co_await fixture.page());
               fixture.client.forget(fixture.root, GitAccess{Secret(kToken)});
               EXPECT_EQ(fixture.client.cached_bytes(), 0U);
               CO_ASSERT_OK(co_await fixture.page());
               EXPECT_EQ(fixture.server.seen().size(), 5U);
             });
}

TEST(GitHostClient, AThrottledTokenGetsItsLastKnownPage) {
  with_bench({ok("xx", {{"Cache-Control", "max-age=1"}}), {.status = 429}},
             [](Fixture& fixture) -> Task<> {
               CO_ASSERT_OK(co_await fixture.page());
               co_await sleep_for(2s);
               const auto page = co_await fixture.page();
               CO_ASSERT_OK(page);
               EXPECT_TRUE(page->is_last_known);
               EXPECT_EQ(page->value->repositories.size(), 2U);
             });
}

TEST(GitHostClient, APageThatCannotBeReadIsNotKept) {
  with_bench({ok("broken", kMinute), ok("x")}, [](Fixture& fixture) -> Task<> {
    const auto broken = co_await fixture.page();
    CO_ASSERT_TRUE(!broken);
    EXPECT_EQ(fixture.client.cached_bytes(), 0U);
    CO_ASSERT_OK(co_await fixture.page());
  });
}

// A host that answers only when it is told to.
struct SlowHost {
  explicit SlowHost(const Executor& executor)
      : released(executor),
        server(executor, {}, [this](http::Exchange& exchange) { return answer(exchange); }) {
    EXPECT_TRUE(server.listen());
  }
  Task<> answer(http::Exchange& exchange) {
    ++waiting;
    ++by_token[std::string(exchange.request().headers.find("Authorization").value_or(""))];
    most = std::max(most, waiting);
    while (!open) co_await released.wait();
    --waiting;
    (void)co_await exchange.reply(ok("{}"));
  }
  Event released;
  bool open = false;
  std::size_t waiting = 0;
  std::size_t most = 0;
  std::map<std::string, std::size_t> by_token;
  http::Server server;
};

TEST(GitHostClient, OneTokenCannotTakeAllPlaces) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    SlowHost host(executor);
    Metrics metrics;
    net::Resolver resolver{metrics};
    http::Client http(executor, resolver, {});
    GitHostClient client(
        executor, http, metrics,
        {.max_parallel = 4, .max_parallel_of_token = 2, .max_waiting_of_token = 3});
    ApiRoot root{ProviderKind::github, {}};
    root.url.scheme = "http";
    root.url.host = "127.0.0.1";
    root.url.port = host.server.port();
    TaskGroup group(executor);
    std::size_t answered = 0;
    std::size_t refused = 0;
    const auto ask = [&](std::string token) {
      group.spawn("ask", [&, token]() -> Task<> {
        const GitAccess access{Secret(token)};
        const auto answer =
            co_await client.send(root, AuthStyle::bearer, access, {.path = "/user", .what = "user"},
                                 deadline_after(30s));
        if (answer) {
          ++answered;
        } else {
          EXPECT_EQ(answer.error().code, ErrorCode::too_many_requests);
          ++refused;
        }
      });
    };
    for (int i = 0; i < 10; ++i) ask("loud");
    co_await sleep_for(1s);
    EXPECT_EQ(host.waiting, 2U);
    EXPECT_GT(refused, 0U) << "its queue is short";
    ask("quiet");
    co_await sleep_for(1s);
    EXPECT_EQ(host.by_token["Bearer quiet"], 1U) << "another token does not wait behind it";
    host.open = true;
    host.released.notify_all();
    co_await group.join();
    EXPECT_EQ(answered + refused, 11U);
    EXPECT_LE(host.most, 4U);
    http.close_idle();
    co_await host.server.stop(Clock::now());
  });
}

// A slow host and a client, and what those who ask for a page of it get.
struct PageRace {
  explicit PageRace(const Executor& executor)
      : host(executor),
        http(executor, resolver, {}),
        client(executor, http, metrics),
        group(executor) {
    root.url.scheme = "http";
    root.url.host = "127.0.0.1";
    root.url.port = host.server.port();
  }
  void ask(std::string token, Deadline deadline, Urgency urgency = Urgency::person) {
    group.spawn("ask", [this, token, deadline, urgency]() -> Task<> {
      const GitAccess access{Secret(token), {}, urgency};
      const auto page = co_await client.page(
          root, AuthStyle::bearer, access, {.path = "/user/repos", .what = "repositories"},
          [](std::string_view, const http::Headers&) -> Result<HostPage> { return HostPage(); },
          deadline);
      ++(page ? answered : refused);
    });
  }
  Task<> release() {
    host.open = true;
    host.released.notify_all();
    co_await group.join();
    http.close_idle();
    co_await host.server.stop(Clock::now());
  }
  SlowHost host;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client http;
  GitHostClient client;
  ApiRoot root{ProviderKind::github, {}};
  TaskGroup group;
  std::size_t answered = 0;
  std::size_t refused = 0;
};

TEST(GitHostClient, ThoseWhoAskForAPageAtTheSameTimeShareOneRequest) {
  run_in_test_time([]() -> Task<> {
    PageRace race(co_await asio::this_coro::executor);
    for (int i = 0; i < 100; ++i) race.ask("anna", deadline_after(30s));
    race.ask("ben", deadline_after(30s));
    co_await sleep_for(1s);
    EXPECT_EQ(race.host.by_token["Bearer anna"], 1U);
    EXPECT_EQ(race.host.by_token["Bearer ben"], 1U) << "tokens never share";
    co_await race.release();
    EXPECT_EQ(race.answered, 101U);
    EXPECT_EQ(race.host.by_token["Bearer anna"], 1U);
  });
}

TEST(GitHostClient, PeopleDoNotJoinRequestsOfBackgroundWork) {
  run_in_test_time([]() -> Task<> {
    PageRace race(co_await asio::this_coro::executor);
    for (int i = 0; i < 5; ++i) race.ask("anna", deadline_after(30s), Urgency::background);
    for (int i = 0; i < 5; ++i) race.ask("anna", deadline_after(30s));
    co_await sleep_for(1s);
    EXPECT_EQ(race.host.by_token["Bearer anna"], 2U);
    co_await race.release();
    EXPECT_EQ(race.answered, 10U);
  });
}

TEST(GitHostClient, WhoJoinsARequestKeepsAnOwnDeadline) {
  run_in_test_time([]() -> Task<> {
    PageRace race(co_await asio::this_coro::executor);
    race.ask("anna", deadline_after(10s));
    co_await sleep_for(1s);
    race.ask("anna", deadline_after(2s));
    race.ask("anna", deadline_after(60s));
    co_await sleep_for(3s);
    EXPECT_EQ(race.refused, 1U) << "the second one waits no longer than it may";
    co_await sleep_for(10s);
    EXPECT_EQ(race.refused, 2U) << "the one who asked";
    EXPECT_EQ(race.host.by_token["Bearer anna"], 2U) << "the third one asks again";
    co_await race.release();
    EXPECT_EQ(race.answered, 1U);
  });
}

}  // namespace
}  // namespace gitops::app_proxy
