#include "common/platform/client.hpp"

#include <gmock/gmock.h>

#include "common/http/gzip.hpp"
#include "support/canned_server.hpp"
#include "support/run_coro.hpp"

namespace gitops::platform {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::run_coro;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A control plane with these answers and a client of it.
struct Bench {
  Bench(const Executor& executor, std::vector<http::Response> answers, const std::string& path)
      : server(executor, std::move(answers)),
        resolver(executor, pool),
        http(executor, resolver, {}),
        client(http, with_path(server.url(), path), [this] { return token; }) {}

  static http::Url with_path(http::Url url, const std::string& path) {
    url.path = path;
    return url;
  }

  CannedServer server;
  asio::thread_pool pool{1};
  http::Resolver resolver;
  http::Client http;
  Secret token{"raw-token"};
  Client client;
};

void with_bench(std::vector<http::Response> answers, const std::function<Task<>(Bench&)>& body,
                const std::string& path = {}) {
  run_coro([&]() -> Task<> {
    Bench bench(co_await asio::this_coro::executor, std::move(answers), path);
    co_await body(bench);
    co_await bench.server.stop();
  });
}

Deadline soon() {
  return deadline_after(3s);
}

const std::string kPayload = R"({"data":{"timestamp":"2030-01-02T03:04:05.000Z"}})";

TEST(PlatformClient, PostsAnEventAsPeersDo) {
  for (const char* path : {"", "/", "/base/"}) {
    with_bench(
        {{.status = 201, .headers = {}, .body = "ignored"}},
        [&](Bench& bench) -> Task<> {
          CO_ASSERT_OK(co_await bench.client.post_event(kPayload, "uid-7-app", soon()));
          const http::Request& request = bench.server.seen().at(0);
          EXPECT_EQ(request.method, "POST");
          EXPECT_EQ(request.target, std::string(path[0] == '\0' || path[1] == '\0' ? "" : "/base") +
                                        "/2.0/api/events");
          EXPECT_EQ(request.headers.find("Content-Type"), "application/json");
          EXPECT_EQ(request.headers.find("Content-Encoding"), "gzip");
          EXPECT_EQ(request.headers.find("Authorization"), "raw-token");
          EXPECT_EQ(request.headers.find("X-Event-Id"), "uid-7-app");
          const auto body = http::gzip_decompress(request.body, 1'000'000);
          CO_ASSERT_OK(body);
          EXPECT_EQ(*body, kPayload);
        },
        path);
  }
}

TEST(PlatformClient, AC28_TellsAFailureWithoutTokenAndPayload) {
  for (const int status : {301, 400, 401, 413, 429, 500, 503}) {
    with_bench({{.status = status, .headers = {{"Retry-After", "9"}}, .body = kPayload}},
               [&](Bench& bench) -> Task<> {
                 const auto posted = co_await bench.client.post_event(kPayload, "id", soon());
                 CO_ASSERT_TRUE(!posted);
                 EXPECT_EQ(posted.error().http_status, status);
                 EXPECT_EQ(posted.error().code, error_code_of_status(status));
                 EXPECT_EQ(posted.error().retry_after, 9s);
                 EXPECT_THAT(posted.error().message,
                             AllOf(HasSubstr(std::to_string(status)),
                                   HasSubstr(bench.server.url().host_header()),
                                   Not(HasSubstr("timestamp")), Not(HasSubstr("raw-token"))));
                 EXPECT_EQ(bench.server.seen().size(), 1U) << "one attempt";
               });
  }
}

TEST(PlatformClient, UsesARotatedTokenAtOnce) {
  with_bench({{.status = 200, .headers = {}, .body = ""}}, [](Bench& bench) -> Task<> {
    CO_ASSERT_OK(co_await bench.client.post_event(kPayload, "1", soon()));
    bench.token = Secret("next");
    CO_ASSERT_OK(co_await bench.client.post_event(kPayload, "2", soon()));
    EXPECT_EQ(bench.server.seen().at(1).headers.find("Authorization"), "next");
  });
}

TEST(PlatformClient, ReportsAnAbsentControlPlane) {
  with_bench({{.status = 200, .headers = {}, .body = ""}}, [](Bench& bench) -> Task<> {
    co_await bench.server.stop();
    const auto posted = co_await bench.client.post_event(kPayload, "1", soon());
    CO_ASSERT_TRUE(!posted);
    EXPECT_EQ(posted.error().code, ErrorCode::unavailable);
    EXPECT_TRUE(posted.error().is_transient());
  });
}

}  // namespace
}  // namespace gitops::platform
