// The delivery of events to a control plane that is slow, down, refuses some of them or answers with
// nonsense: attempts, the circuit breaker, the order, and what is given up. In test time.
#include "event-reporter/delivery/delivery.hpp"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/task_group.hpp"
#include "common/net/resolve.hpp"
#include "doubles/fake_platform.hpp"
#include "event-reporter/delivery/delivery_fixture.hpp"
#include "support/log_capture.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/status_page.hpp"
#include "support/wait.hpp"
#include "test_http/http_script.hpp"

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Kind = Delivered::Kind;
using State = Breaker::State;
using test::HttpScript;
using test::LogCapture;
using test::RawConnection;
using test::run_in_test_time;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(Delivery, TheTableOfAnswersIsComplete) {
  const std::set<int> unauthorized = {401, 403};
  const std::set<int> outages = {408, 425, 429, 499};
  const std::set<int> misdirected = {402, 404, 405, 406, 407, 410, 411,
                                     415, 417, 421, 426, 501, 505};
  for (int status = 100; status < 600; ++status) {
    auto expected = Verdict::refused;
    if (status < 200 || (status >= 300 && status < 400) || misdirected.contains(status)) {
      expected = Verdict::misdirected;
    } else if (status < 300) {
      expected = Verdict::acknowledged;
    } else if (status >= 500 || outages.contains(status)) {
      expected = Verdict::outage;
    } else if (unauthorized.contains(status)) {
      expected = Verdict::unauthorized;
    } else if (status == 413) {
      expected = Verdict::too_large;
    }
    EXPECT_EQ(verdict_of(status), expected) << status;
  }
}

TEST(Delivery, DeliversAndKeepsARecord) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    co_await fixture.delivery.ready();
    const auto delivered = co_await fixture.deliver(event("uid-1"));
    CO_ASSERT_OK(delivered);
    EXPECT_EQ(delivered->kind, Kind::acknowledged);
    CO_ASSERT_EQ(fixture.platform.reports().size(), 1U);
    EXPECT_EQ(fixture.platform.reports()[0].event_id, "uid-1");
    EXPECT_EQ(fixture.delivery.last_error(), "");
    const test::StatusPage status(fixture.delivery.status());
    EXPECT_EQ(status.state("control plane"), "ok") << status;
    EXPECT_EQ(status.message("control plane"), "takes events");
    EXPECT_EQ(status.count("control plane", "under_way"), 0);
    EXPECT_EQ(status.count("control plane", "under_way_of"), 16);
    EXPECT_THAT(status.text("last acknowledgement", "time"), StartsWith("20"));
    const auto journal = Json::parse(fixture.delivery.journal().json("shop/web"));
    CO_ASSERT_EQ(journal["deliveries"].size(), 1U);
    const auto& entry = journal["deliveries"][0];
    EXPECT_EQ(entry["result"], "acknowledged");
    EXPECT_EQ(entry["http_status"], 200);
    EXPECT_EQ(entry["attempt"], 1);
    EXPECT_EQ(entry["bytes"], event("uid-1").body.size());
    EXPECT_EQ(fixture.metric(
                  R"(gitops_event_reporter_reports_total{part="resource",result="acknowledged"})"),
              1);
    EXPECT_EQ(fixture.metric("gitops_event_reporter_breaker_state "), 0);
    EXPECT_EQ(fixture.metric("gitops_event_reporter_permitted_posts "), 16);
    EXPECT_EQ(fixture.metric("gitops_event_reporter_posts_in_flight "), 0);
    EXPECT_EQ(fixture.metric("gitops_event_reporter_next_probe_timestamp_seconds "), 0);
  });
}

TEST(Delivery, AllArriveExactlyOnceAfterAnOutage) {
  const auto patient = [] {
    auto options = fast_options();
    options.max_attempts = 3;
    return options;
  };
  with_delivery(
      [](DeliveryFixture& fixture) -> Task<> {
        int recoveries = 0;
        fixture.delivery.on_recovery([&] { ++recoveries; });
        fixture.insist_on(30);
        CO_ASSERT_TRUE(co_await test::eventually(
            [&] { return fixture.delivery.breaker().state() != State::closed; },
            "a breaker that is not closed"));
        EXPECT_THAT(fixture.delivery.last_error(), HasSubstr("refused"));
        const test::StatusPage status(fixture.delivery.status());
        EXPECT_EQ(status.state("control plane"), "failed") << status;
        EXPECT_EQ(status.message("control plane"), "takes no events");
        EXPECT_THAT(status.since("control plane"), StartsWith("20"));
        EXPECT_GE(fixture.metric("gitops_event_reporter_breaker_state "), 1);
        CO_ASSERT_TRUE(co_await test::eventually(
            [&] {
              return fixture.metric("gitops_event_reporter_next_probe_timestamp_seconds ") > 1e9;
            },
            "the time of the next probe"));
        co_await sleep_for(200ms);
        CO_ASSERT_OK(fixture.platform.start());
        CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 30; },
                                                 "the end of 30 deliveries"));
        EXPECT_THAT(fixture.acknowledgements(), SizeIs(30));
        for (const auto& [id, times] : fixture.acknowledgements()) EXPECT_EQ(times, 1) << id;
        EXPECT_EQ(recoveries, 1);
        EXPECT_EQ(fixture.delivery.last_error(), "");
        EXPECT_EQ(fixture.metric("gitops_event_reporter_next_probe_timestamp_seconds "), 0);
      },
      {.options = patient(), .reachable = false});
}

TEST(Delivery, TellsWhenAnOutageBeginsAndEndsAndHowLongItWas) {
  const LogCapture log;
  run_in_test_time([&]() -> Task<> {
    DeliveryFixture fixture(co_await asio::this_coro::executor, {});
    co_await fixture.platform.stop();
    fixture.insist_on(20);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return log.count("still takes no events") > 0; },
                                             "the log line about the outage"));
    CO_ASSERT_OK(fixture.platform.start());
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 20; },
                                             "the end of 20 deliveries"));
    EXPECT_EQ(log.count("the control plane takes no events"), 1U) << log.text();
    EXPECT_EQ(log.count("the control plane takes events again"), 1U);
    EXPECT_EQ(log.count("the control plane still takes no events"), 1U) << "repeats are held back";
    EXPECT_EQ(log.count(R"("after_ms":)"), 1U);
    EXPECT_EQ(log.count(R"("failed_probes":)"), 1U);
    co_await fixture.tasks.join();
    co_await fixture.platform.stop();
    fixture.http.close_idle();
  });
}

TEST(Delivery, RetryAfterIsHonoured) {
  for (const int status : {503, 429}) {
    with_delivery([&](DeliveryFixture& fixture) -> Task<> {
      fixture.platform.fail_next(1, status, 1s);
      const auto refused = co_await fixture.deliver(event("first"));
      CO_ASSERT_TRUE(!refused);
      EXPECT_EQ(refused.error().http_status, status);
      EXPECT_EQ(fixture.delivery.breaker().state(), State::open);
      const auto other = co_await fixture.deliver(event("other"));
      CO_ASSERT_TRUE(!other);
      EXPECT_EQ(fixture.platform.requests().size(), 1U) << "nothing is sent in between";
      fixture.insist(event("first"));
      CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 1; },
                                               "the end of the delivery"));
      const auto& requests = fixture.platform.requests();
      CO_ASSERT_EQ(requests.size(), 2U);
      EXPECT_GE(requests[1].when - requests[0].when, 1s);
      EXPECT_LE(requests[1].when - requests[0].when, 1900ms);
    });
  }
}

TEST(Delivery, PassingFailuresAreTriedAgainAtOnce) {
  for (const int status : {408, 425, 429, 500, 502, 503, 504}) {
    with_delivery([&](DeliveryFixture& fixture) -> Task<> {
      fixture.platform.fail_next(3, status);
      const auto delivered = co_await fixture.deliver(event("once"));
      CO_ASSERT_OK(delivered);
      EXPECT_EQ(delivered->kind, Kind::acknowledged);
      EXPECT_EQ(fixture.platform.requests().size(), 4U);
      EXPECT_EQ(fixture.delivery.breaker().state(), State::closed);
      EXPECT_EQ(
          fixture.metric(R"(gitops_event_reporter_reports_total{part="resource",result="failed"})"),
          3);
      const auto journal = Json::parse(fixture.delivery.journal().json("shop/web"));
      EXPECT_EQ(journal["deliveries"][0]["attempt"], 4);
      EXPECT_EQ(journal["deliveries"][1]["result"], "failed");
      EXPECT_EQ(journal["deliveries"][1]["http_status"], status);
    });
  }
}

TEST(Delivery, AttemptsAreBounded) {
  auto options = fast_options();
  options.max_attempts = 3;
  with_delivery(
      [](DeliveryFixture& fixture) -> Task<> {
        fixture.platform.fail_next(3, 500);
        const auto delivered = co_await fixture.deliver(event("x"));
        CO_ASSERT_TRUE(!delivered);
        EXPECT_EQ(delivered.error().http_status, 500);
        EXPECT_EQ(fixture.platform.requests().size(), 3U);
        EXPECT_EQ(fixture.delivery.breaker().state(), State::closed);
      },
      {.options = options});
}

TEST(Delivery, ManyCallersMakeFewAttemptsInAnOutage) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    fixture.platform.fail_next(10'000, 503);
    fixture.insist_on(100);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.delivery.breaker().state() != State::closed; },
        "a breaker that is not closed"));
    co_await sleep_for(1s);
    // The first 16 and a few that were under way when it opened, then one at a time with pauses of
    // 40 ms on average.
    EXPECT_LE(fixture.platform.requests().size(), 90U);
    EXPECT_GE(fixture.platform.requests().size(), 20U);
    // Each of those that were there when it opened once, and then the probes.
    EXPECT_LE(fixture.put_back, 100 + static_cast<int>(fixture.platform.requests().size()));
  });
}

TEST(Delivery, ANewerTokenIsTriedAtOnce) {
  const test::TempDir folder;
  const auto file = (folder / "token").string();
  test::write_file(file, "old-token\n");
  const LogCapture log;
  with_delivery(
      [&](DeliveryFixture& fixture) -> Task<> {
        fixture.platform.set_token("old-token");
        CO_ASSERT_OK(co_await fixture.deliver(event("1")));
        fixture.platform.set_token("new-token");
        test::write_file(file, "new-token\n");
        for (const char* id : {"2", "3", "4", "5"}) fixture.insist(event(id));
        CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 4; },
                                                 "the end of 4 deliveries"));
        EXPECT_EQ(fixture.delivery.breaker().state(), State::closed);
        EXPECT_EQ(fixture.put_back, 0);
        EXPECT_THAT(fixture.platform.refused(), SizeIs(4));
      },
      {.token_file = file});
}

TEST(Delivery, ATokenThatStaysRefusedIsAnAlarmAndFewLogins) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    fixture.platform.set_token("another");
    fixture.insist_on(50);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.delivery.breaker().state() != State::closed; },
        "a breaker that is not closed"));
    co_await sleep_for(1050ms);
    const auto& requests = fixture.platform.requests();
    // Those that were under way together, then at most one in 100 ms.
    EXPECT_LE(requests.size(), 16U + 11U);
    EXPECT_GE(requests.size(), 5U);
    for (std::size_t i = 17; i < requests.size(); ++i) {
      EXPECT_GE(requests[i].when - requests[i - 1].when, 95ms);
    }
    EXPECT_THAT(fixture.delivery.last_error(), HasSubstr("401 Unauthorized, it refuses the token"));
    fixture.platform.set_token("platform-token");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 50; },
                                             "the end of 50 deliveries"));
    EXPECT_THAT(fixture.acknowledgements(), SizeIs(50));
    EXPECT_EQ(fixture.delivery.last_error(), "");
  });
}

TEST(Delivery, ANewerTokenEndsTheLongPause) {
  const test::TempDir folder;
  const auto file = (folder / "token").string();
  test::write_file(file, "old-token");
  auto options = fast_options();
  options.unauthorized_pause = 4min;
  with_delivery(
      [&](DeliveryFixture& fixture) -> Task<> {
        fixture.insist(event("1"));
        CO_ASSERT_TRUE(co_await test::eventually(
            [&] { return fixture.delivery.breaker().state() == State::open; }, "an open breaker"));
        test::write_file(file, "platform-token");
        CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 1; },
                                                 "the end of the delivery"));
        EXPECT_EQ(fixture.platform.requests().size(), 2U);
      },
      {.options = options, .token_file = file});
}

TEST(Delivery, NothingIsSentWithoutAUsableToken) {
  const test::TempDir folder;
  const auto file = (folder / "token").string();
  with_delivery(
      [&](DeliveryFixture& fixture) -> Task<> {
        const auto none = co_await fixture.deliver(event("1"));
        CO_ASSERT_TRUE(!none);
        EXPECT_EQ(none.error().code, ErrorCode::unauthenticated);
        EXPECT_THAT(fixture.delivery.last_error(), HasSubstr(file));
        fixture.insist(event("2"));
        test::write_file(file, "two\nlines");
        CO_ASSERT_TRUE(co_await test::eventually(
            [&] { return fixture.delivery.last_error().contains("must not be sent"); },
            "the error 'must not be sent'"));
        EXPECT_THAT(fixture.delivery.last_error(), Not(HasSubstr("two")));
        EXPECT_THAT(fixture.platform.requests(), IsEmpty());
        test::write_file(file, "platform-token");
        CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 1; },
                                                 "the end of the delivery"));
      },
      {.token_file = file});
}

// 413 for everything whose compressed body is larger than `limit`.
auto at_most(std::size_t limit) {
  return [limit](const http::Request& request) -> std::optional<http::Response> {
    if (std::stoul(std::string(request.headers.find("Content-Length").value_or("0"))) <= limit) {
      return std::nullopt;
    }
    return http::Response{.status = 413, .headers = {}, .body = "too much"};
  };
}

std::string noise(std::size_t size) {
  std::string out;
  for (std::size_t i = 0; out.size() < size; ++i) out += std::to_string(i * 2654435761U % 1000003U);
  return out;
}

TEST(Delivery, WhatIsTooLargeIsReduced) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    fixture.platform.opinion = at_most(1000);
    auto large = event("large", noise(20'000));
    int reductions = 0;
    large.reduce = [&](std::string_view) {
      ++reductions;
      return event("large").body;
    };
    const auto delivered = co_await fixture.deliver(std::move(large));
    CO_ASSERT_OK(delivered);
    EXPECT_EQ(delivered->kind, Kind::reduced);
    EXPECT_EQ(reductions, 1);
    CO_ASSERT_EQ(fixture.platform.reports().size(), 1U);
    EXPECT_EQ(fixture.platform.reports()[0].event_id, "large");
    EXPECT_EQ(fixture.platform.reports()[0].data["more"], "");
    EXPECT_EQ(
        fixture.metric(R"(gitops_event_reporter_reports_total{part="resource",result="reduced"})"),
        1);
  });
}

TEST(Delivery, WhatCannotBeReducedEnoughIsRefused) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    fixture.platform.opinion = at_most(1000);
    const auto large = event("large", noise(20'000));
    auto nothing_less = large;
    nothing_less.reduce = [](std::string_view) { return std::string(); };
    auto still_large = large;
    still_large.reduce = [](std::string_view) { return event("large", noise(10'000)).body; };
    for (const auto& one : {large, nothing_less, still_large}) {
      const auto once = co_await fixture.deliver(one);
      CO_ASSERT_OK(once);
      EXPECT_EQ(once->kind, Kind::put_off);
      CO_ASSERT_OK(co_await fixture.deliver(event("small")));
      const auto twice = co_await fixture.deliver(one);
      CO_ASSERT_OK(twice);
      EXPECT_EQ(twice->kind, Kind::refused);
      EXPECT_EQ(twice->error.http_status, 413);
    }
    EXPECT_EQ(fixture.metric(R"(gitops_event_reporter_dead_letters_total{reason="413"})"), 3);
  });
}

// The answer of the control plane to the event "bad".
auto refuses_bad(int status) {
  return [status](const http::Request& request) -> std::optional<http::Response> {
    if (request.headers.find("X-Event-Id") != "bad") return std::nullopt;
    return http::Response{
        .status = status, .headers = {}, .body = "{\"message\": \"no such\n kind\"}"};
  };
}

// A proxy on the way may answer so to every event.
TEST(Delivery, ARefusalIsFinalOnlyWhenAnotherEventWasAcknowledgedInBetween) {
  for (const int status : {400, 409, 422}) {
    with_delivery([&](DeliveryFixture& fixture) -> Task<> {
      fixture.platform.opinion = refuses_bad(status);
      for (int i = 0; i < 2; ++i) {
        const auto bad = co_await fixture.deliver(event("bad"));
        CO_ASSERT_OK(bad);
        EXPECT_EQ(bad->kind, Kind::put_off);
      }
      const auto good = co_await fixture.deliver(event("good"));
      CO_ASSERT_OK(good);
      EXPECT_EQ(good->kind, Kind::acknowledged);
      const auto bad = co_await fixture.deliver(event("bad"));
      CO_ASSERT_OK(bad);
      EXPECT_EQ(bad->kind, Kind::refused);
      EXPECT_EQ(bad->error.http_status, status);
      EXPECT_THAT(bad->error.message, HasSubstr("{\"message\": \"no such kind\"}"));
      EXPECT_EQ(fixture.platform.requests().size(), 4U) << "one attempt each";
      EXPECT_EQ(fixture.delivery.last_error(), "");
      const auto journal = Json::parse(fixture.delivery.journal().json("shop/web"));
      EXPECT_EQ(journal["deliveries"][0]["result"], "refused");
      EXPECT_EQ(journal["deliveries"][2]["result"], "put_off");
    });
  }
}

TEST(Delivery, RefusalsInARowAreAnOutage) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    int outages = 0;
    fixture.delivery.on_recovery([&] { ++outages; });
    fixture.platform.fail_next(7, 400);
    fixture.insist_on(10);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 10; },
                                             "the end of 10 deliveries"));
    for (const auto& [id, kind] : fixture.ended) EXPECT_EQ(kind, Kind::acknowledged) << id;
    EXPECT_THAT(fixture.acknowledgements(), SizeIs(10));
    EXPECT_EQ(outages, 1);
    EXPECT_THAT(test::StatusPage(fixture.delivery.status()).message("last error of platform"),
                HasSubstr("400"));
  });
}

TEST(Delivery, AnEventThatWasRefusedBeforeSaysNothingAboutTheWay) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    fixture.platform.opinion = refuses_bad(422);
    auto bad = event("bad");
    bad.refused_before = true;
    for (int i = 0; i < 10; ++i) {
      const auto again = co_await fixture.deliver(bad);
      CO_ASSERT_OK(again);
      EXPECT_EQ(again->kind, Kind::refused);
    }
    EXPECT_EQ(fixture.delivery.breaker().state(), State::closed);
  });
}

// While the same token is good enough for others.
TEST(Delivery, A403OfOneEventIsARefusalOfThatEvent) {
  auto options = fast_options();
  options.unauthorized_pause = 1h;
  with_delivery(
      [](DeliveryFixture& fixture) -> Task<> {
        fixture.platform.opinion = refuses_bad(403);
        CO_ASSERT_OK(co_await fixture.deliver(event("first")));
        for (int i = 0; i < 10; ++i) {
          const auto bad = co_await fixture.deliver(event("bad"));
          CO_ASSERT_OK(bad);
          EXPECT_EQ(bad->kind, i % 2 == 0 ? Kind::put_off : Kind::refused);
          EXPECT_THAT(bad->error.message, StartsWith("control plane: 403 Forbidden: {"));
          EXPECT_EQ(fixture.delivery.breaker().state(), State::closed);
          CO_ASSERT_OK(co_await fixture.deliver(event(std::to_string(i))));
        }
        EXPECT_EQ(fixture.delivery.last_error(), "");
      },
      {.options = options});
}

TEST(Delivery, A403OfEveryEventIsARefusalOfTheToken) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.deliver(event("first")));
    fixture.platform.fail_next(8, 403);
    fixture.insist_on(10);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.delivery.last_error().contains("it refuses the token"); },
        "the error 'it refuses the token'"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 10; },
                                             "the end of 10 deliveries"));
    for (const auto& [id, kind] : fixture.ended) EXPECT_EQ(kind, Kind::acknowledged) << id;
  });
}

TEST(Delivery, AnIdThatCannotBeSentIsRefused) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    const auto delivered = co_await fixture.deliver(event("a\r\nX-Evil: 1"));
    CO_ASSERT_OK(delivered);
    EXPECT_EQ(delivered->kind, Kind::refused);
    EXPECT_THAT(fixture.platform.requests(), IsEmpty());
  });
}

// As after the release of a shard, also while it waits for a permit.
TEST(Delivery, AnEventThatMustNotBeSentAnyMoreIsNotSent) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    fixture.platform.fail_next(1, 503);
    auto revoked = event("revoked");
    int asked = 0;
    revoked.allowed = [&asked] { return ++asked == 1; };
    const auto delivered = co_await fixture.deliver(std::move(revoked));
    EXPECT_FALSE(delivered);
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(fixture.platform.requests().size(), 1U) << "the first attempt";
    EXPECT_EQ(fixture.delivery.breaker().in_flight(), 0U);
  });
}

// 200 is that of a page.
TEST(Delivery, AWrongEndpointCostsNoEvent) {
  for (const int status : {200, 302, 404, 501}) {
    with_delivery([&](DeliveryFixture& fixture) -> Task<> {
      fixture.platform.fail_next(12, status);
      for (int i = 0; i < 3; ++i) fixture.insist(event("e-" + std::to_string(i)));
      CO_ASSERT_TRUE(co_await test::eventually(
          [&] { return fixture.delivery.last_error().contains("this is not the event endpoint"); },
          "the error 'this is not the event endpoint'"));
      CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 3; },
                                               "the end of 3 deliveries"));
      EXPECT_THAT(fixture.acknowledgements(), SizeIs(3));
    });
  }
}

TEST(Delivery, ASlowPeerIsAnOutage) {
  auto options = fast_options();
  options.post_timeout = 100ms;
  with_delivery(
      [](DeliveryFixture& fixture) -> Task<> {
        fixture.platform.delay_answers(1s);
        const auto late = co_await fixture.deliver(event("late"));
        CO_ASSERT_TRUE(!late);
        EXPECT_EQ(late.error().code, ErrorCode::timeout);
        EXPECT_NE(fixture.delivery.breaker().state(), State::closed);
        fixture.insist(event("late"));
        fixture.platform.delay_answers(0ms);
        CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 1; },
                                                 "the end of the delivery"));
        EXPECT_GE(fixture.acknowledgements()["late"], 1);
      },
      {.options = options});
}

TEST(Delivery, APeerThatIsNotTrustedIsAnOutage) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Intake plain(executor);
    CO_ASSERT_OK(plain.start());
    auto url = plain.url();
    url.scheme = "https";
    {
      DeliveryFixture fixture(executor, {.url = url});
      const auto failed = co_await fixture.deliver(event("1"));
      CO_ASSERT_TRUE(!failed);
      EXPECT_EQ(failed.error().code, ErrorCode::tls);
      EXPECT_NE(fixture.delivery.breaker().state(), State::closed);
    }
    co_await plain.stop();
  });
}

TEST(Delivery, AnAnswerCutInItsHeadIsNoneAndOneCutInItsBodyIs) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    HttpScript server(
        executor, {HttpScript::answer("HTTP/1.1 20"), HttpScript::answer("HTTP/1.1 200 OK\r\nCont"),
                   HttpScript::answer("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"a"),
                   HttpScript::answer("HTTP/1.1 422 No\r\nContent-Length: 99\r\n\r\nbecause")});
    {
      DeliveryFixture fixture(executor, {.url = server.url()});
      const auto delivered = co_await fixture.deliver(event("1"));
      CO_ASSERT_OK(delivered);
      EXPECT_EQ(delivered->kind, Kind::acknowledged);
      EXPECT_EQ(server.connections(), 3U);
      const auto refused = co_await fixture.deliver(event("2"));
      CO_ASSERT_OK(refused);
      EXPECT_EQ(refused->kind, Kind::put_off);
      EXPECT_EQ(refused->error.http_status, 422);
      EXPECT_THAT(refused->error.message, HasSubstr(": because"));
    }
    co_await server.stop();
  });
}

TEST(Delivery, APeerThatDoesNotSpeakHttpIsAnOutage) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    HttpScript server(executor, std::vector<HttpScript::Script>(
                                    5, HttpScript::answer("SSH-2.0-OpenSSH_9.2\r\n\r\n")));
    {
      DeliveryFixture fixture(executor, {.url = server.url()});
      const auto failed = co_await fixture.deliver(event("1"));
      CO_ASSERT_TRUE(!failed);
      EXPECT_NE(fixture.delivery.breaker().state(), State::closed);
    }
    co_await server.stop();
  });
}

TEST(Delivery, ABodyIsMadeOnlyWhenItsEventMayBeSent) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    int made = 0;
    const auto lazy = [&made](const std::string& id) {
      auto what = event(id);
      what.make_body = [&made, body = std::move(what.body)] {
        ++made;
        return body;
      };
      what.body.clear();
      return what;
    };
    CO_ASSERT_OK(co_await fixture.deliver(lazy("sent")));
    EXPECT_EQ(made, 1);
    co_await fixture.open_for(1s);
    EXPECT_FALSE(co_await fixture.deliver(lazy("not sent")));
    EXPECT_EQ(made, 1);
    fixture.platform.fail_next(2, 503);
    fixture.insist(lazy("insisted on"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.contains("insisted on"); },
                                             "the end of delivery 'insisted on'"));
    EXPECT_EQ(fixture.acknowledgements().at("insisted on"), 1);
  });
}

TEST(Delivery, ALargeBodyIsMadeAndReducedOffTheLoop) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    fixture.platform.opinion = at_most(1000);
    const auto loop = std::this_thread::get_id();
    for (const bool large : {false, true}) {
      std::vector<bool> on_loop;
      auto what = event(large ? "large" : "small");
      what.make_body = [&] {
        on_loop.push_back(std::this_thread::get_id() == loop);
        return event("large", noise(20'000)).body;
      };
      what.reduce = [&](std::string_view) {
        on_loop.push_back(std::this_thread::get_id() == loop);
        return event("large").body;
      };
      what.body.clear();
      what.large = large;
      const auto delivered = co_await fixture.deliver(std::move(what));
      CO_ASSERT_OK(delivered);
      EXPECT_EQ(delivered->kind, Kind::reduced);
      EXPECT_EQ(on_loop, std::vector<bool>(2, !large));
    }
  });
}

// The excerpt of the refusal searches all of the event.
TEST(Delivery, TheLoopIsNotHeldByTheRefusalOfALargeEvent) {
  const auto cpu = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const std::string content(8'000'000, 'x');
  const auto begin = cpu();
  EXPECT_EQ(control_plane::excerpt_of("no such kind", content, Secret("token")), "no such kind");
  const auto search = cpu() - begin;
  run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    HttpScript server(executor, {HttpScript::answer("HTTP/1.1 422 No\r\nContent-Length: 12\r\n\r\n"
                                                    "no such kind")});
    {
      DeliveryFixture fixture(executor, {.url = server.url()});
      auto what = event("large");
      what.make_body = [&content] { return content; };
      what.body.clear();
      what.large = true;
      const auto before = cpu();
      const auto refused = co_await fixture.deliver(std::move(what));
      EXPECT_LT(cpu() - before, search / 2);
      CO_ASSERT_OK(refused);
      EXPECT_THAT(refused->error.message, HasSubstr(": no such kind"));
    }
    co_await server.stop();
  });
}

TEST(Delivery, ALargeEventIsNotSentWhenItMustNotBeAnyMoreAfterItsBodyWasMade) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    std::atomic<bool> allowed = true;
    auto what = event("large");
    what.make_body = [&allowed, body = std::move(what.body)] {
      allowed = false;
      return body;
    };
    what.body.clear();
    what.large = true;
    what.allowed = [&allowed] { return allowed.load(); };
    EXPECT_FALSE(co_await fixture.deliver(std::move(what)));
    EXPECT_TRUE(fixture.platform.reports().empty());
  });
}

TEST(Delivery, OnlyOneCallerAtATimeIsLetThroughInAnOutage) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    co_await fixture.open();
    int through = 0;
    for (int i = 0; i < 10; ++i) {
      fixture.tasks.spawn("waits", [&]() -> Task<> {
        co_await fixture.delivery.ready();
        ++through;
      });
    }
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return through == 1; }, "a caller that may send"));
    co_await sleep_for(200ms);
    EXPECT_EQ(through, 1) << "within the turn of the first";
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return through == 2; }, "2 callers that may send"))
        << "the first had no event";
    CO_ASSERT_OK(fixture.platform.start());
    fixture.insist(event("probe"));
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return through == 10; }, "10 callers that may send"));
  });
}

TEST(Delivery, NoHerdAfterAnOutage) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    co_await fixture.open();
    fixture.insist_on(200);
    co_await sleep_for(100ms);
    fixture.platform.work = 20ms;
    CO_ASSERT_OK(fixture.platform.start());
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 200; },
                                             "the end of 200 deliveries"));
    const auto& arrivals = fixture.platform.arrivals;
    EXPECT_EQ(arrivals.front().together, 1U);
    // Each answer permits one more: what is under way at most doubles in a round trip.
    for (const auto& arrival : arrivals) {
      EXPECT_LE(arrival.together, std::clamp<std::size_t>(arrival.answered, 1, 16));
    }
    EXPECT_GT(std::ranges::max(arrivals, {}, &Intake::Arrival::together).together, 4U);
    EXPECT_EQ(fixture.delivery.breaker().permitted(), 16U) << "full speed in the end";
    for (const auto& [id, times] : fixture.acknowledgements()) EXPECT_EQ(times, 1) << id;
  });
}

TEST(Delivery, NeverSendsMoreAtATimeThanPermitted) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    fixture.platform.work = 20ms;
    fixture.insist_on(300);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 300; },
                                             "the end of 300 deliveries"));
    const auto peak =
        std::ranges::max(fixture.platform.arrivals, {}, &Intake::Arrival::together).together;
    EXPECT_LE(peak, 16U);
    EXPECT_GT(peak, 4U) << "but several";
  });
}

TEST(Delivery, EventsLeaveInTheOrderTheyCame) {
  auto options = fast_options();
  options.breaker.max_permits = 1;
  with_delivery(
      [](DeliveryFixture& fixture) -> Task<> {
        fixture.insist_on(50);
        CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.size() == 50; },
                                                 "the end of 50 deliveries"));
        for (std::size_t i = 0; i < 50; ++i) {
          EXPECT_EQ(fixture.platform.reports()[i].event_id, "e-" + std::to_string(i));
        }
      },
      {.options = options});
}

// Wherever it waits: for readiness, for a permit, between attempts, for an answer.
TEST(Delivery, CancellationLeavesNothingBehind) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    TaskGroup callers(fixture.executor, [](const std::string& task, const std::string& what) {
      ADD_FAILURE() << task << ": " << what;
    });
    const auto call = [&](const std::string& id) {
      callers.spawn("call", [&fixture, id]() -> Task<> {
        std::ignore = co_await fixture.delivery.deliver(event(id));
        ADD_FAILURE() << "not cancelled";
      });
    };
    fixture.platform.delay_answers(1h);
    for (int i = 0; i < 40; ++i) call("under way or in line " + std::to_string(i));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.requests().size() == 16; }, "16 requests in flight"));
    callers.cancel();
    co_await callers.join();
    EXPECT_EQ(fixture.delivery.breaker().in_flight(), 0U);
    EXPECT_EQ(fixture.delivery.breaker().state(), State::closed);

    fixture.platform.delay_answers(0ms);
    CO_ASSERT_OK(co_await fixture.deliver(event("after")));

    co_await fixture.open();
    TaskGroup waiters(fixture.executor);
    for (int i = 0; i < 5; ++i) {
      waiters.spawn("wait", [&]() -> Task<> {
        while (true) {
          co_await fixture.delivery.ready();
          std::ignore = co_await fixture.delivery.deliver(event("wait"));
        }
      });
    }
    co_await sleep_for(50ms);
    waiters.cancel();
    co_await waiters.join();
    EXPECT_EQ(fixture.delivery.breaker().in_flight(), 0U);

    CO_ASSERT_OK(fixture.platform.start());
    fixture.insist(event("at last"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.contains("at last"); },
                                             "the end of delivery 'at last'"));
  });
}

TEST(Delivery, ACancelledProbeMakesRoomForTheNext) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    co_await fixture.open();
    fixture.platform.delay_answers(1h);
    const auto asked = fixture.platform.requests().size();
    CO_ASSERT_OK(fixture.platform.start());
    TaskGroup prober(fixture.executor);
    prober.spawn("probe", [&]() -> Task<> {
      co_await fixture.delivery.ready();
      std::ignore = co_await fixture.delivery.deliver(event("cancelled"));
    });
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return fixture.platform.requests().size() == asked + 1; }, "the probe"));
    EXPECT_EQ(fixture.delivery.breaker().state(), State::probing);
    fixture.insist(event("next"));
    fixture.platform.delay_answers(0ms);
    co_await sleep_for(20ms);
    EXPECT_FALSE(fixture.ended.contains("next"));
    prober.cancel();
    co_await prober.join();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return fixture.ended.contains("next"); },
                                             "the end of delivery 'next'"));
  });
}

// A peer that shows in its answers whatever it was sent.
TEST(Delivery, AC28_NeitherTokenNorEventIsSeenAnywhere) {
  const std::string token = "CANARY-token-5c1d8a7b9e10";
  const std::string content = "CANARY-content-0a9b8c7d6e5f";
  const test::TempDir folder;
  const auto file = (folder / "credential").string();
  test::write_file(file, token);
  const LogCapture log(LogLevel::debug);
  std::string visible;
  run_in_test_time([&]() -> Task<> {
    DeliveryFixture fixture(co_await asio::this_coro::executor, {.token_file = file});
    fixture.platform.set_token(token);
    int status = 0;
    const auto sent = event("seen", content);
    fixture.platform.opinion = [&](const http::Request& request) {
      return http::Response{.status = status,
                            .headers = {},
                            .body = "you sent " +
                                    std::string(request.headers.find("Authorization").value()) +
                                    " with " + sent.body};
    };
    for (const int next : {200, 302, 400, 401, 403, 404, 413, 422, 429, 500}) {
      status = next;
      TaskGroup group(fixture.executor);
      group.spawn("deliver", [&]() -> Task<> {
        for (int i = 0; i < 6; ++i) {
          co_await fixture.delivery.ready();
          const auto delivered = co_await fixture.deliver(sent);
          visible += (delivered ? delivered->error.message : delivered.error().message) + "\n";
          visible += fixture.delivery.last_error() + "\n" + status_text(fixture.delivery.status()) +
                     status_json(fixture.delivery.status());
          if (delivered) break;
        }
      });
      co_await group.join();
      visible += fixture.delivery.journal().json_all(1000) + fixture.metrics.expose();
    }
    co_await fixture.platform.stop();
    fixture.http.close_idle();
  });
  visible += log.text();
  EXPECT_THAT(visible, HasSubstr("you sent … with "));
  EXPECT_THAT(visible, Not(HasSubstr("CANARY")));
  EXPECT_THAT(visible, Not(HasSubstr(content.substr(8))));
  EXPECT_THAT(visible, Not(HasSubstr(token.substr(8))));
}

}  // namespace
}  // namespace gitops::reporter
