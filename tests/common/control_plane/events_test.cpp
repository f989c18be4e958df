#include "common/control_plane/events.hpp"

#include <gmock/gmock.h>

#include "common/http/gzip.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "test_http/canned_server.hpp"
#include "test_http/http_script.hpp"

namespace gitops::control_plane {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::run_in_test_time;
using test::soon;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A control plane with these answers and a client of it.
struct Fixture {
  Fixture(const Executor& executor, std::vector<http::Response> answers, const std::string& path)
      : server(executor, std::move(answers)),
        http(executor, resolver, {}),
        client(http, with_path(server.url(), path), [this] { return token; }) {}

  static http::Url with_path(http::Url url, const std::string& path) {
    url.path = path;
    return url;
  }

  CannedServer server;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client http;
  Secret token{"raw-token"};
  Client client;
};

void with_fixture(std::vector<http::Response> answers, const std::function<Task<>(Fixture&)>& body,
                  const std::string& path = {}) {
  run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor, std::move(answers), path);
    co_await body(fixture);
    co_await fixture.server.stop();
  });
}

const std::string kPayload = R"({"data":{"timestamp":"2030-01-02T03:04:05.000Z"}})";

TEST(PlatformClient, PostsAnEventAsPeersDo) {
  for (const char* path : {"", "/", "/base/"}) {
    with_fixture(
        {{.status = 201, .headers = {}, .body = "ignored"}},
        [&](Fixture& fixture) -> Task<> {
          CO_ASSERT_OK(co_await fixture.client.post_event(
              kPayload, {.id = "uid-7-app", .sequence = 17}, soon()));
          const http::Request& request = fixture.server.seen().at(0);
          EXPECT_EQ(request.method, "POST");
          EXPECT_EQ(request.target, std::string(path[0] == '\0' || path[1] == '\0' ? "" : "/base") +
                                        "/2.0/api/events");
          EXPECT_EQ(request.headers.find("Content-Type"), "application/json");
          EXPECT_EQ(request.headers.find("Content-Encoding"), "gzip");
          EXPECT_EQ(request.headers.find("Authorization"), "raw-token");
          EXPECT_EQ(request.headers.find("X-Event-Id"), "uid-7-app");
          EXPECT_EQ(request.headers.find("X-Event-Sequence"), "17");
          const auto body = http::gzip_decompress(request.body, 1'000'000);
          CO_ASSERT_OK(body);
          EXPECT_EQ(*body, kPayload);
        },
        path);
  }
}

TEST(PlatformClient, AC28_TellsAFailureWithoutTokenAndPayload) {
  for (const int status : {301, 400, 401, 413, 429, 500, 503}) {
    with_fixture({{.status = status, .headers = {{"Retry-After", "9"}}, .body = kPayload}},
                 [&](Fixture& fixture) -> Task<> {
                   const auto posted =
                       co_await fixture.client.post_event(kPayload, {.id = "id"}, soon());
                   CO_ASSERT_TRUE(!posted);
                   EXPECT_EQ(posted.error().http_status, status);
                   EXPECT_EQ(posted.error().code, error_code_of_status(status));
                   EXPECT_EQ(posted.error().retry_after, 9s);
                   EXPECT_THAT(posted.error().message,
                               AllOf(HasSubstr(std::to_string(status)),
                                     HasSubstr(fixture.server.url().host_header()),
                                     Not(HasSubstr("timestamp")), Not(HasSubstr("raw-token"))));
                   EXPECT_EQ(fixture.server.seen().size(), 1U) << "one attempt";
                 });
  }
}

TEST(PlatformClient, GivesTheAnswerWhateverItsStatus) {
  for (const int status : {200, 204, 301, 400, 401, 429, 503}) {
    with_fixture({{.status = status, .headers = {{"Retry-After", "9"}}, .body = ""}},
                 [&](Fixture& fixture) -> Task<> {
                   const auto answer = co_await fixture.client.post(kPayload, {.id = "id"}, soon());
                   CO_ASSERT_OK(answer);
                   EXPECT_EQ(answer->status, status);
                   EXPECT_EQ(answer->is_success(), status < 300);
                   EXPECT_EQ(answer->retry_after, 9s);
                   EXPECT_EQ(answer->quoting, "");
                 });
  }
}

// The uids of many objects, on a slow path.
TEST(PlatformClient, TheAnswerToAnInventoryMayComeSlowly) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    test::HttpScript server(
        executor, {[](test::RawConnection& connection) -> Task<> {
          co_await connection.read_head();
          co_await connection.send(
              "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n"
              "{\"again\":");
          co_await sleep_for(5s);
          co_await connection.send("[\"uid-1\"]}");
        }});
    Metrics metrics;
    net::Resolver resolver{metrics};
    http::Client http(executor, resolver, {});
    Client client(http, server.url(), [] { return Secret("raw-token"); });
    const auto again = co_await client.post_inventory(
        {.token = "e-9", .shards = {0}, .sequence = 1}, "app/0/1f2e", deadline_after(30s));
    CO_ASSERT_OK(again);
    EXPECT_THAT(*again, testing::ElementsAre("uid-1"));
    co_await server.stop();
  });
}

// A login or an ingress without a backend answers in the place of the event endpoint.
TEST(PlatformClient, APageIsNoAcknowledgement) {
  const http::Headers html{{"Content-Type", "text/html; charset=utf-8"}};
  for (const std::string body : {"<!DOCTYPE html><html></html>", "\n <html>"}) {
    with_fixture({{.status = 200, .headers = html, .body = body}}, [&](Fixture& fixture) -> Task<> {
      const auto answer = co_await fixture.client.post(kPayload, {.id = "id"}, soon());
      CO_ASSERT_OK(answer);
      EXPECT_TRUE(answer->is_page);
      EXPECT_FALSE(answer->is_success());
      const auto posted = co_await fixture.client.post_event(kPayload, {.id = "id"}, soon());
      CO_ASSERT_TRUE(!posted);
      EXPECT_TRUE(posted.error().is_transient());
    });
  }
  // Servers that send their "ok" as HTML, or that do not say what it is.
  for (const std::string body : {"ok", ""}) {
    with_fixture({{.status = 200, .headers = html, .body = body},
                  {.status = 200, .headers = {}, .body = "<ok/>"}},
                 [&](Fixture& fixture) -> Task<> {
                   for (int i = 0; i < 2; ++i) {
                     const auto answer =
                         co_await fixture.client.post(kPayload, {.id = "id"}, soon());
                     CO_ASSERT_OK(answer);
                     EXPECT_TRUE(answer->is_success()) << body << i;
                   }
                 });
  }
}

// The excerpt of a refusal with this body.
std::string excerpt(const std::string& body, const std::string& payload = kPayload) {
  std::string out;
  with_fixture({{.status = 422, .headers = {}, .body = body}}, [&](Fixture& fixture) -> Task<> {
    const auto answer = co_await fixture.client.post(payload, {.id = "id"}, soon());
    CO_ASSERT_OK(answer);
    out = excerpt_of(answer->quoting, payload, Secret("raw-token"));
  });
  return out;
}

TEST(PlatformClient, ShowsTheBeginningOfARefusal) {
  EXPECT_EQ(excerpt("\n  {\"message\":\r\n\t\"no such   kind\"}\n"),
            R"({"message": "no such kind"})");
  EXPECT_EQ(excerpt(std::string("a\x01\x02\x7f\xff") + "b\x1b[31mc"), "a b [31mc");
  EXPECT_EQ(excerpt(std::string(300, 'x')), std::string(200, 'x'));
  EXPECT_EQ(excerpt(std::string(500'000, 'x')), std::string(200, 'x'));
  EXPECT_EQ(excerpt(std::string(400, ' ') + "late"), "late");
}

TEST(PlatformClient, AC28_LeavesOutWhatAnAnswerQuotes) {
  const std::string payload =
      R"({"data":{"object":"eyJhIjoiYmMifQ==","password":"hunter2hunter2"}})";
  EXPECT_EQ(excerpt("wrong: " + payload + "!", payload), "wrong: …!");
  EXPECT_EQ(excerpt(R"(the value "hunter2hunter2" is not allowed)", payload),
            R"(the value … is not allowed)");
  EXPECT_EQ(excerpt(R"({"seen":"{\"data\":{\"object\":\"eyJhIjoiYmMifQ==\",\"password\":)"
                    R"(\"hunter2hunter2\"}}"})",
                    payload),
            R"({"seen":"{\"data\":{\"object\":\…\",\"password\":\…\"}}"})");
  EXPECT_EQ(excerpt("the token raw-token is wrong, raw-token"), "the token … is wrong, …");
  EXPECT_EQ(excerpt("field password: too short", payload), "field password: too short");
}

TEST(PlatformClient, TheHeadIsTheVerdict) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const auto then_hang = [](std::string bytes) {
      return [bytes = std::move(bytes)](test::RawConnection& connection) -> Task<> {
        co_await connection.read_head();
        co_await connection.send(bytes);
        co_await connection.read_to_end();
      };
    };
    test::HttpScript server(
        executor,
        {test::HttpScript::answer("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\n{"),
         then_hang("HTTP/1.1 400 Bad Request\r\nContent-Length: 50\r\n\r\nhalf of it"),
         test::HttpScript::answer("HTTP/1.1 200 OK\r\nContent-"), test::HttpScript::answer("")});
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    Client client(http, server.url(), [] { return Secret("raw-token"); });
    const auto cut = co_await client.post(kPayload, {.id = "1"}, soon());
    CO_ASSERT_OK(cut);
    EXPECT_EQ(cut->status, 201);
    const auto hanging = co_await client.post(kPayload, {.id = "2"}, deadline_after(60s));
    CO_ASSERT_OK(hanging);
    EXPECT_EQ(hanging->status, 400);
    EXPECT_EQ(hanging->quoting, "half of it");
    for (const char* id : {"3", "4"}) {
      const auto none = co_await client.post(kPayload, {.id = id}, soon());
      CO_ASSERT_TRUE(!none);
      EXPECT_EQ(none.error().code, ErrorCode::unavailable);
    }
    co_await server.stop();
  });
}

TEST(PlatformClient, UsesARotatedTokenAtOnce) {
  with_fixture({{.status = 200, .headers = {}, .body = ""}}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.client.post_event(kPayload, {.id = "1"}, soon()));
    fixture.token = Secret("next");
    CO_ASSERT_OK(co_await fixture.client.post_event(kPayload, {.id = "2"}, soon()));
    EXPECT_EQ(fixture.server.seen().at(1).headers.find("Authorization"), "next");
  });
}

TEST(PlatformClient, ReportsAnAbsentControlPlane) {
  with_fixture({{.status = 200, .headers = {}, .body = ""}}, [](Fixture& fixture) -> Task<> {
    co_await fixture.server.stop();
    const auto posted = co_await fixture.client.post_event(kPayload, {.id = "1"}, soon());
    CO_ASSERT_TRUE(!posted);
    EXPECT_EQ(posted.error().code, ErrorCode::unavailable);
    EXPECT_TRUE(posted.error().is_transient());
  });
}

}  // namespace
}  // namespace gitops::control_plane
