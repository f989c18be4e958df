#include "common/graphql/http_endpoint.hpp"

#include <gmock/gmock.h>

#include "common/net/memory_channel.hpp"
#include "support/run_coro.hpp"
#include "test_http/http_script.hpp"

namespace gitops::graphql {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::unique_ptr<Engine> make() {
  Resolvers to;
  to.query({{"version", [] { return "1"; }},
            {"fails", []() -> Result<int> { return fail(ErrorCode::unavailable, "not now"); }}});
  to.mutation({{"go", [] { return true; }}});
  to.subscription(
      {{"ticks", []() -> Task<Result<Stream>> { co_return fail(ErrorCode::unsupported, "no"); }}});
  auto engine = Engine::make(
      "type Query { version: String fails: Int } type Mutation { go: Boolean } type Subscription { "
      "ticks: Int }",
      to);
  return std::move(*engine);
}

// The answer to one request, over a connection in memory.
std::string ask(std::string head, const std::string& body, std::size_t max_body = 10'000,
                const Admission& admission = {}) {
  const auto engine = make();
  std::string answer;
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    http::Server server(executor, {}, [&](http::Exchange& exchange) -> Task<> {
      co_await serve_http(exchange, *engine, Context(),
                          {.max_body = max_body, .admission = admission});
    });
    auto [mine, its] = net::MemoryChannel::pair(executor);
    server.adopt(std::move(its), asio::ip::make_address("192.0.2.1"));
    test::RawConnection connection(std::move(mine));
    head += "Host: x\r\nConnection: close\r\n";
    if (!body.empty()) head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    co_await connection.send(head + "\r\n" + body);
    answer = co_await connection.read_to_end();
    co_await server.stop(deadline_after(std::chrono::seconds(1)));
  });
  return answer;
}

constexpr const char* kPost = "POST /api/graphql HTTP/1.1\r\nContent-Type: application/json\r\n";

TEST(GraphqlHttp, AnswersAQuery) {
  EXPECT_THAT(ask(kPost, R"({"query":"{ version }"})"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                    HasSubstr("Content-Type: application/json; charset=utf-8\r\n"),
                    HasSubstr("\r\n\r\n{\"data\":{\"version\":\"1\"}}")));
  EXPECT_THAT(ask(kPost, R"({"query":"mutation { go }"})"), HasSubstr(R"({"data":{"go":true}})"));
}

TEST(GraphqlHttp, ErrorsOfWellFormedRequestsAre200) {
  EXPECT_THAT(ask(kPost, R"({"query":"{ fails }"})"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("not now")));
  EXPECT_THAT(ask(kPost, R"({"query":"{ nothing }"})"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Cannot query field")));
  const std::string asking = std::string(kPost) + "Accept: application/graphql-response+json\r\n";
  EXPECT_THAT(ask(asking, R"({"query":"{ nothing }"})"),
              AllOf(StartsWith("HTTP/1.1 400 "),
                    HasSubstr("Content-Type: application/graphql-response+json; charset=utf-8")));
  EXPECT_THAT(ask(asking, R"({"query":"{ version fails }"})"), StartsWith("HTTP/1.1 200 "));
}

TEST(GraphqlHttp, RefusesMalformedRequests) {
  EXPECT_THAT(ask(kPost, "{"), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("not valid JSON")));
  EXPECT_THAT(ask(kPost, "[]"), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("BATCH_REFUSED")));
  EXPECT_THAT(ask(kPost, R"({"query":"subscription { ticks }"})"),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("SUBSCRIPTION_OVER_HTTP")));
  EXPECT_THAT(ask(kPost, std::string(11'000, ' ')),
              AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("BODY_TOO_LARGE")));
}

// A client may send the same request again, and a malformed one it may not.
TEST(GraphqlHttp, ABodyThatDoesNotArriveInTimeIsNotMalformed) {
  EXPECT_THAT(ask(std::string(kPost) + "Content-Length: 10\r\n", ""), StartsWith("HTTP/1.1 408 "));
}

// Attack case 32: a page of another site can send a GET, a form or plain text without asking first.
TEST(GraphqlHttp, Ac32CrossSiteFormsAreRefused) {
  EXPECT_THAT(ask("GET /api/graphql?query=mutation%20%7B%20go%20%7D HTTP/1.1\r\n", ""),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: POST")));
  EXPECT_THAT(ask("GET /api/graphql?query=%7B%20version%20%7D HTTP/1.1\r\n", ""),
              StartsWith("HTTP/1.1 405 "));
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
        "application/json; charset=utf-7", "text/plain; application/json"}) {
    EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Type: " + std::string(type) + "\r\n",
                    R"({"query":"mutation { go }"})"),
                StartsWith("HTTP/1.1 415 "))
        << type;
  }
  EXPECT_THAT(ask("POST / HTTP/1.1\r\n", R"({"query":"mutation { go }"})"),
              StartsWith("HTTP/1.1 415 "));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Type: Application/JSON; charset=\"UTF-8\"\r\n",
                  R"({"query":"{ version }"})"),
              StartsWith("HTTP/1.1 200 "));
}

TEST(GraphqlHttp, RequestsAreAdmittedOnceTheirDocumentWasRead) {
  std::vector<std::string> asked;
  const Admission admission =
      [&](const Prepared* operation) -> Task<std::optional<http::Response>> {
    std::string fields = operation ? "" : "refused";
    if (operation) {
      for (const auto field : operation->root_fields()) fields += std::string(field) + " ";
    }
    asked.push_back(fields);
    if (fields == "version __typename ") co_return std::nullopt;
    co_return http::Response{.status = 401, .headers = {}, .body = "who?"};
  };
  const auto admitted = [&](const std::string& query) {
    return ask(kPost, "{\"query\":\"" + query + "\"}", 10'000, admission);
  };
  EXPECT_THAT(admitted("{ a: version ...F } fragment F on Query { __typename a: version }"),
              HasSubstr(R"({"data":{"a":"1","__typename":"Query"}})"));
  // Nothing is told of a document before somebody is admitted, and nothing is done.
  for (const char* query : {"{ nothing }", "{", "mutation { go }", "{ version fails }",
                            "{ __schema { types { name } } }"}) {
    const auto answer = admitted(query);
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("who?"))) << query;
    EXPECT_THAT(answer, testing::Not(HasSubstr("errors")));
  }
  EXPECT_THAT(asked, testing::ElementsAre("version __typename ", "refused", "refused", "go ",
                                          "version fails ", "__schema "));
}

}  // namespace
}  // namespace gitops::graphql
