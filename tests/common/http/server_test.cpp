#include "common/http/server.hpp"

#include "common/http/loopback.hpp"
#include "common/net/memory_channel.hpp"
#include "support/log_capture.hpp"
#include "support/wait.hpp"

namespace gitops::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Answers with the method, the target and the body.
Task<> echo(Exchange& exchange) {
  const auto body = co_await exchange.read_body(1'000'000);
  if (!body) {
    co_await answer(exchange, body.error().message,
                    body.error().code == ErrorCode::too_large ? 413 : 400);
    co_return;
  }
  co_await answer(exchange,
                  exchange.request().method + " " + exchange.request().target + " " + *body);
}

std::string get(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n";
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

void with_server(Handler handler, ServerOptions options,
                 const std::function<Task<>(TestServer&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    TestServer server(co_await asio::this_coro::executor, handler, options);
    co_await body(server);
    co_await server.stop();
  });
}

TEST(Server, AnswersOnAKeptConnection) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    for (int i = 0; i < 3; ++i) {
      const auto response = co_await client.post(server.url(), "you", "/x?y=1");
      CO_ASSERT_OK(response);
      EXPECT_EQ(response->status, 200);
      EXPECT_EQ(response->body, "POST /x?y=1 you");
      EXPECT_TRUE(response->headers.find("Date"));
    }
    EXPECT_EQ(server.server.connections(), 1u);
  });
}

TEST(Server, ListensOnIPv4TooWithAnAddressOfIPv6) {
  const auto say_who = [](Exchange& exchange) { return answer(exchange, exchange.peer_address()); };
  with_server(say_who, {.address = "::"}, [](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    const auto response = co_await client.get(server.url("127.0.0.1"));
    CO_ASSERT_OK(response);
    EXPECT_EQ(response->body, "127.0.0.1");
  });
}

TEST(Server, RefusesToListenOnWhatIsNoAddress) {
  test::run_in_test_time([]() -> Task<> {
    Server server(co_await asio::this_coro::executor, {.address = "localhost"}, echo);
    const auto listening = server.listen();
    CO_ASSERT_TRUE(!listening);
    EXPECT_EQ(listening.error().code, ErrorCode::invalid_argument);
  });
}

TEST(Server, SplitsTheTarget) {
  with_server(
      [](Exchange& exchange) -> Task<> {
        EXPECT_EQ(exchange.peer_address(), "127.0.0.1");
        co_await answer(exchange,
                        std::string(exchange.path()) + "|" + std::string(exchange.query()));
      },
      {},
      [](TestServer& server) -> Task<> {
        TestClient client(co_await asio::this_coro::executor);
        EXPECT_EQ((co_await client.get(server.url(), "/a/b?c=d?e"))->body, "/a/b|c=d?e");
        EXPECT_EQ((co_await client.get(server.url(), "/a"))->body, "/a|");
      });
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    const auto answers = co_await test::raw_exchange(
        server.port(),
        get("/1") + "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" +
            "POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" +
            get("/4", "Connection: close\r\n") + get("/5"));
    EXPECT_EQ(count(answers, "HTTP/1.1 200 OK"), 4u);
    EXPECT_LT(answers.find("GET /1 "), answers.find("POST /2 abc"));
    EXPECT_LT(answers.find("POST /2 abc"), answers.find("POST /3 x"));
    EXPECT_THAT(answers, EndsWith("GET /4 "));
    EXPECT_EQ(count(answers, "Connection: close"), 1u);
  });
}

TEST(Server, SendsNoBodyForHead) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    const auto answers = co_await test::raw_exchange(
        server.port(), "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n" + get("/2", "Connection: close\r\n"));
    EXPECT_THAT(answers, HasSubstr("Content-Length: 7\r\n"));
    EXPECT_THAT(answers, Not(HasSubstr("HEAD /")));
    EXPECT_THAT(answers, EndsWith("GET /2 "));
  });
}

TEST(Server, SpeaksHttp10) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    EXPECT_THAT(co_await test::raw_exchange(server.port(), "GET / HTTP/1.0\r\n\r\n"),
                AllOf(HasSubstr("Connection: close"), EndsWith("GET / ")));
    const auto kept = co_await test::raw_exchange(
        server.port(), "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.0\r\n\r\n");
    EXPECT_THAT(kept, AllOf(HasSubstr("Connection: keep-alive"), EndsWith("GET /2 ")));
  });
}

TEST(Server, StreamsChunkedOrUntilClose) {
  const Handler handler = [](Exchange& exchange) -> Task<> {
    CO_ASSERT_OK(co_await exchange.start({.status = 200, .headers = {{"X-A", "b"}}}));
    CO_ASSERT_OK(co_await exchange.write("one"));
    CO_ASSERT_OK(co_await exchange.write(""));
    CO_ASSERT_OK(co_await exchange.write("two and more"));
    CO_ASSERT_OK(co_await exchange.finish());
  };
  with_server(handler, {}, [](TestServer& server) -> Task<> {
    EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/", "Connection: close\r\n")),
                AllOf(HasSubstr("Transfer-Encoding: chunked\r\n"), HasSubstr("X-A: b\r\n"),
                      EndsWith("\r\n\r\n3\r\none\r\nc\r\ntwo and more\r\n0\r\n\r\n")));
    EXPECT_THAT(co_await test::raw_exchange(server.port(),
                                            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
                AllOf(Not(HasSubstr("chunked")), HasSubstr("Connection: close"),
                      EndsWith("\r\n\r\nonetwo and more")));
    EXPECT_THAT(co_await test::raw_exchange(
                    server.port(), "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
                EndsWith("\r\n\r\n"));
  });
}

TEST(Server, SendsContinueWhenTheBodyIsRead) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    auto connection = co_await test::raw_connect(server.port());
    co_await connection.send(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(co_await connection.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
    co_await connection.send("abc");
    EXPECT_THAT(co_await connection.read_until("POST / abc"), StartsWith("HTTP/1.1 200 OK"));
    // No interim answer for a body that is already there.
    co_await connection.send(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nxyz");
    EXPECT_THAT(co_await connection.read_until("POST / xyz"), StartsWith("HTTP/1.1 200 OK"));
  });
}

TEST(Server, RefusesABodyBeforeItIsSent) {
  with_server(
      [](Exchange& exchange) -> Task<> { co_await answer(exchange, "no", 403); }, {},
      [](TestServer& server) -> Task<> {
        EXPECT_THAT(
            co_await test::raw_exchange(server.port(),
                                        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
                                        "Expect: 100-continue\r\n\r\n"),
            AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("Connection: close"), EndsWith("no")));
        EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/", "Expect: tea\r\n")),
                    StartsWith("HTTP/1.1 417 "));
      });
}

TEST(Server, DropsASmallUnreadBodyAndGoesOn) {
  with_server(
      [](Exchange& exchange) -> Task<> { co_await answer(exchange, exchange.request().target); },
      {},
      [](TestServer& server) -> Task<> {
        const auto answers = co_await test::raw_exchange(
            server.port(), "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n" +
                               std::string(60'000, 'x') + get("/2", "Connection: close\r\n"));
        EXPECT_EQ(count(answers, "HTTP/1.1 200 OK"), 2u);
        EXPECT_THAT(answers, EndsWith("/2"));
      });
}

TEST(Server, ClosesInsteadOfReadingALargeUnreadBody) {
  with_server(
      [](Exchange& exchange) -> Task<> { co_await answer(exchange, "enough"); }, {},
      [](TestServer& server) -> Task<> {
        auto connection = co_await test::raw_connect(server.port());
        co_await connection.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" +
                                 std::string(300'000, 'x'));
        EXPECT_THAT(co_await connection.read_to_end(),
                    AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("Connection: close"),
                          EndsWith("enough")));
        EXPECT_TRUE(connection.ended());  // orderly: a reset could destroy the answer
      });
}

TEST(Server, AC11_LimitsTheBody) {
  std::size_t most = 0;
  const Handler handler = [&](Exchange& exchange) -> Task<> {
    const auto body = co_await exchange.read_body(1000);
    most = std::max(most, body ? body->size() : 0);
    if (!body) EXPECT_EQ(body.error().code, ErrorCode::too_large);
    co_await answer(exchange, "", body ? 200 : 413);
  };
  with_server(handler, {}, [&](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    EXPECT_EQ((co_await client.post(server.url(), std::string(1000, 'x')))->status, 200);
    EXPECT_EQ((co_await client.post(server.url(), std::string(1001, 'x')))->status, 413);
    EXPECT_EQ((co_await client.post(server.url(), std::string(500'000, 'x')))->status, 413);
    const auto chunked =
        co_await test::raw_exchange(server.port(),
                                    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
                                    "chunked\r\nConnection: close\r\n\r\n3e9\r\n" +
                                        std::string(1001, 'x') + "\r\n0\r\n\r\n");
    EXPECT_THAT(chunked, StartsWith("HTTP/1.1 413 "));
    EXPECT_EQ(most, 1000u);
  });
}

TEST(Server, AC04_AnswersMalformedRequestsAndCloses) {
  int handled = 0;
  const Handler handler = [&](Exchange& exchange) -> Task<> {
    ++handled;
    co_await echo(exchange);
  };
  with_server(handler, {}, [&](TestServer& server) -> Task<> {
    const std::string smuggled = get("/smuggled");
    const std::vector<std::pair<std::string, std::string>> cases{
        {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: "
         "chunked\r\n\r\n0\r\n\r\n",
         "400"},
        {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n", "400"},
        {"GET / HTTP/1.1\nHost: h\n\n", "400"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX: y\r\n z\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", "501"},
        {"GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n", "400"},
        {"GET /\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\n\r\n", "400"},
        {"GET / HTTP/3.0\r\nHost: h\r\n\r\n", "505"},
        {"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", "501"},
        {std::string("\x16\x03\x01\x00\xa5\x01", 6), "400"},
    };
    for (const auto& [bytes, status] : cases) {
      const auto answers = co_await test::raw_exchange(server.port(), bytes + smuggled);
      EXPECT_THAT(answers,
                  AllOf(StartsWith("HTTP/1.1 " + status + " "), HasSubstr("Connection: close")))
          << bytes;
      EXPECT_EQ(count(answers, "HTTP/1.1 "), 1u) << bytes;
    }
    EXPECT_EQ(handled, 0);
    // A body whose chunks are malformed fails its own request; what follows is not a request.
    const auto answers = co_await test::raw_exchange(
        server.port(),
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n" +
            smuggled);
    EXPECT_THAT(answers, StartsWith("HTTP/1.1 400 "));
    EXPECT_EQ(count(answers, "HTTP/1.1 "), 1u);
    EXPECT_EQ(handled, 1);
  });
}

TEST(Server, AC04_OneByteAtATimeIsTheSame) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    auto connection = co_await test::raw_connect(server.port());
    co_await connection.send_in_pieces(
        "POST /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" +
            get("/2", "Connection: close\r\n"),
        1);
    EXPECT_THAT(co_await connection.read_to_end(),
                AllOf(HasSubstr("POST /1 abc"), EndsWith("GET /2 ")));
  });
}

TEST(Server, AC07_LimitsTheHead) {
  with_server(echo, {.max_head = 2000}, [](TestServer& server) -> Task<> {
    EXPECT_THAT(
        co_await test::raw_exchange(
            server.port(), get("/", "X: " + std::string(1900, 'x') + "\r\nConnection: close\r\n")),
        StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/" + std::string(2000, 'x'))),
                StartsWith("HTTP/1.1 431 "));
    EXPECT_THAT(co_await test::raw_exchange(server.port(),
                                            "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x')),
                StartsWith("HTTP/1.1 431 "));
  });
}

TEST(Server, AC07_EndsSlowHeads) {
  with_server(echo, {.head_timeout = milliseconds(60)}, [](TestServer& server) -> Task<> {
    auto connection = co_await test::raw_connect(server.port());
    const auto started = Clock::now();
    co_await connection.send("GET / HTTP/1.1\r\nX");
    EXPECT_THAT(co_await connection.read_to_end(), StartsWith("HTTP/1.1 408 "));
    EXPECT_GE(Clock::now() - started, milliseconds(55));
    // Trickling does not move the limit.
    auto slow = co_await test::raw_connect(server.port());
    const auto begun = Clock::now();
    while (co_await slow.send("X")) {
      co_await sleep_for(milliseconds(5));
      if (Clock::now() - begun > seconds(2)) break;
    }
    EXPECT_LT(Clock::now() - begun, seconds(1));
  });
}

TEST(Server, ClosesIdleConnectionsSilently) {
  with_server(echo, {.idle_timeout = milliseconds(50)}, [](TestServer& server) -> Task<> {
    EXPECT_EQ(co_await test::raw_exchange(server.port(), ""), "");
    const auto answers = co_await test::raw_exchange(server.port(), get("/"));
    EXPECT_EQ(count(answers, "HTTP/1.1 "), 1u);
  });
}

TEST(Server, IgnoresOneEmptyLineBeforeARequest) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    const auto post = "\r\nPOST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi\r\n";
    const auto last = get("/last", "Connection: close\r\n");
    const auto answers = co_await test::raw_exchange(server.port(), post + last);
    EXPECT_EQ(count(answers, "HTTP/1.1 200 OK"), 2u);
    EXPECT_THAT(answers, EndsWith("GET /last "));
    EXPECT_THAT(co_await test::raw_exchange(server.port(), "\r\n\r\n" + last),
                StartsWith("HTTP/1.1 400"));
  });
}

// nginx and load balancers of clouds keep theirs for 60 s, and do not repeat a POST that is lost.
TEST(Server, KeepsIdleConnectionsLongerThanProxies) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    auto proxy = co_await test::raw_connect(server.port());
    co_await sleep_for(seconds(62));
    co_await proxy.send(get("/", "Connection: close\r\n"));
    EXPECT_THAT(co_await proxy.read_to_end(), EndsWith("GET / "));
  });
}

TEST(Server, AC07_EndsStalledBodies) {
  ErrorCode seen = ErrorCode::internal;
  const Handler handler = [&](Exchange& exchange) -> Task<> {
    const auto body = co_await exchange.read_body(100);
    if (!body) seen = body.error().code;
    co_await answer(exchange, "", 408);
  };
  with_server(handler, {.body_timeout = milliseconds(50)}, [&](TestServer& server) -> Task<> {
    EXPECT_THAT(co_await test::raw_exchange(
                    server.port(), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"),
                AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("Connection: close")));
    EXPECT_EQ(seen, ErrorCode::timeout);
  });
}

// Each byte comes in time, the body never.
TEST(Server, AC07_EndsBodiesThatDrip) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [client, served] = net::MemoryChannel::pair(executor);
    server.server.adopt(std::move(served), asio::ip::make_address("192.0.2.1"));
    CO_ASSERT_OK(
        co_await client->write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n"));
    const auto begin = Clock::now();
    while (server.server.connections() > 0 && Clock::now() < begin + std::chrono::minutes(10)) {
      (void)co_await client->write("x");
      co_await sleep_for(seconds(1));
    }
    EXPECT_LE(Clock::now() - begin, seconds(70));
  });
}

TEST(Server, ABodyMayComeSlowly) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [client, served] = net::MemoryChannel::pair(executor);
    server.server.adopt(std::move(served), asio::ip::make_address("192.0.2.1"));
    CO_ASSERT_OK(
        co_await client->write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 409600\r\n\r\n"));
    for (int i = 0; i < 10; ++i) {
      co_await sleep_for(seconds(39));
      CO_ASSERT_OK(co_await client->write(std::string(40'960, 'x')));
    }
    std::array<char, 64> room{};
    const auto size = co_await client->read_some(room);
    CO_ASSERT_OK(size);
    EXPECT_THAT(std::string(room.data(), *size), StartsWith("HTTP/1.1 200"));
  });
}

TEST(Server, AC07_EndsClientsThatDoNotRead) {
  ErrorCode seen = ErrorCode::internal;
  const Handler handler = [&](Exchange& exchange) -> Task<> {
    CO_ASSERT_OK(co_await exchange.start({.status = 200}));
    const std::string part(100'000, 'x');
    while (true) {
      const auto sent = co_await exchange.write(part);
      if (sent) continue;
      seen = sent.error().code;
      co_return;
    }
  };
  with_server(handler, {.body_timeout = milliseconds(50)}, [&](TestServer& server) -> Task<> {
    auto connection = co_await test::raw_connect(server.port());
    co_await connection.send(get("/"));
    EXPECT_TRUE(co_await test::eventually([&] { return seen != ErrorCode::internal; },
                                          "an error of the handler"));
    EXPECT_EQ(seen, ErrorCode::timeout);
  });
}

// A page of many objects over a slow line takes longer than body_timeout.
TEST(Server, AnAnswerMayBeReadSlowly) {
  const std::string page(1'000'000, 'x');
  const Handler handler = [&](Exchange& exchange) -> Task<> {
    if (exchange.path() == "/reply") {
      (void)co_await exchange.reply({.status = 200, .body = page});
      co_return;
    }
    (void)co_await exchange.start({.status = 200});
    (void)co_await exchange.write(page);
    (void)co_await exchange.finish();
  };
  with_server(handler, {.body_timeout = seconds(60)}, [&](TestServer& server) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    for (const auto* path : {"/reply", "/stream"}) {
      auto [client, served] = net::MemoryChannel::pair(executor);
      server.server.adopt(std::move(served), asio::ip::make_address("192.0.2.1"));
      CO_ASSERT_OK(co_await client->write(get(path, "Connection: close\r\n")));
      std::array<char, 20'000> room{};
      std::string received;
      while (true) {
        const auto size = co_await client->read_some(room);
        if (!size || *size == 0) break;
        received.append(room.data(), *size);
        co_await sleep_for(seconds(10));
      }
      EXPECT_EQ(count(received, "x"), page.size()) << path;
    }
  });
}

TEST(Server, WaitingHandlersAreNotTimedOut) {
  const Handler handler = [](Exchange& exchange) -> Task<> {
    CO_ASSERT_OK(co_await exchange.start({.status = 200}));
    co_await sleep_for(milliseconds(120));
    CO_ASSERT_OK(co_await exchange.write("late"));
    CO_ASSERT_OK(co_await exchange.finish());
  };
  with_server(handler,
              {.head_timeout = milliseconds(20),
               .idle_timeout = milliseconds(40),
               .body_timeout = milliseconds(40)},
              [](TestServer& server) -> Task<> {
                EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/")),
                            EndsWith("4\r\nlate\r\n0\r\n\r\n"));
              });
}

TEST(Server, FailingHandlersGive500) {
  test::LogCapture log;
  const Handler handler = [](Exchange& exchange) -> Task<> {
    if (exchange.path().starts_with("/throws")) throw std::runtime_error("handler bug");
    if (exchange.path() == "/late") {
      CO_ASSERT_OK(co_await exchange.start({.status = 200}));
      CO_ASSERT_OK(co_await exchange.write("part"));
      throw std::runtime_error("too late");
    }
    if (exchange.path() == "/unfinished") {
      CO_ASSERT_OK(co_await exchange.start({.status = 200}));
    }
  };
  with_server(handler, {}, [&](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    EXPECT_EQ((co_await client.get(server.url(), "/throws?token=canary"))->status, 500);
    EXPECT_EQ(log.count("handler bug"), 1u);
    EXPECT_EQ(log.count("canary"), 0u);  // queries may hold secrets
    EXPECT_EQ((co_await client.get(server.url(), "/throws/v1/Canary-1/xX+canary9"))->status, 500);
    EXPECT_EQ(log.count("handler bug"), 2u);
    EXPECT_EQ(log.count(R"("/throws/v1/*/*")"), 1u);  // and so may a path
    EXPECT_EQ((co_await client.get(server.url(), "/silent"))->status, 500);
    for (const char* target : {"/late", "/unfinished"}) {
      const auto cut = co_await client.get(server.url(), target);
      EXPECT_FALSE(cut) << target;
    }
  });
}

TEST(Server, RefusesHeadersThatMustNotBeSent) {
  const Handler handler = [](Exchange& exchange) -> Task<> {
    for (const Headers& headers : {Headers{{"X", "a\r\nSet-Cookie: b"}}, Headers{{"X\r\n", "a"}},
                                   Headers{{"", "a"}}, Headers{{"X", std::string("a\0b", 3)}}}) {
      const auto sent = co_await exchange.reply({.status = 200, .headers = headers});
      EXPECT_FALSE(sent);
      EXPECT_EQ(sent.error().code, ErrorCode::invalid_argument);
    }
    EXPECT_FALSE(co_await exchange.reply({.status = 100}));
    co_await answer(exchange, "fine");
    EXPECT_FALSE(co_await exchange.reply({.status = 200, .body = "twice"}));
  };
  with_server(handler, {}, [](TestServer& server) -> Task<> {
    EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/", "Connection: close\r\n")),
                AllOf(EndsWith("\r\n\r\nfine"), Not(HasSubstr("Set-Cookie"))));
  });
}

TEST(Server, KeepsFramingFieldsToItself) {
  const Handler handler = [](Exchange& exchange) -> Task<> {
    const Headers headers{{"content-length", "99"},
                          {"Transfer-Encoding", "chunked"},
                          {"Connection", "close"},
                          {"Date", "yesterday"}};
    CO_ASSERT_OK(co_await exchange.reply({.status = 200, .headers = headers, .body = "body"}));
  };
  with_server(handler, {}, [](TestServer& server) -> Task<> {
    const auto answer = co_await test::raw_exchange(server.port(), get("/"));
    EXPECT_EQ(
        answer,
        "HTTP/1.1 200 OK\r\nDate: yesterday\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
  });
}

TEST(Server, NoContentHasNoLength) {
  with_server([](Exchange& exchange) -> Task<> { co_await answer(exchange, "", 204); }, {},
              [](TestServer& server) -> Task<> {
                EXPECT_THAT(
                    co_await test::raw_exchange(server.port(), get("/", "Connection: close\r\n")),
                    AllOf(StartsWith("HTTP/1.1 204 No Content\r\n"),
                          Not(HasSubstr("Content-Length")), EndsWith("\r\n\r\n")));
              });
}

TEST(Server, HandlersSeeATargetOfAsciiOnly) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    EXPECT_THAT(co_await test::raw_exchange(
                    server.port(), get("/caf\xc3\xa9?q=\xe2\x82\xac", "Connection: close\r\n")),
                EndsWith("\r\n\r\nGET /caf%C3%A9?q=%E2%82%AC "));
  });
}

// A handler whose requests for /busy wait until the test lets them go. The body of /unread is left;
// others are echoed.
struct Gate {
  explicit Gate(const Executor& executor) : changed(executor) {}
  Task<> handle(Exchange& exchange) {
    if (exchange.path() == "/busy") {
      ++inside;
      changed.notify_all();
      while (!open) co_await changed.wait();
    }
    if (exchange.path() == "/unread") co_return co_await answer(exchange, "unread");
    co_await echo(exchange);
  }
  Task<> until_inside(int wanted) {
    while (inside < wanted) co_await changed.wait();
  }
  void let_go() {
    open = true;
    changed.notify_all();
  }
  Event changed;
  int inside = 0;
  bool open = false;
};

void with_gate(ServerOptions options, const std::function<Task<>(TestServer&, Gate&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Gate gate(executor);
    TestServer server(
        executor, [&gate](Exchange& exchange) { return gate.handle(exchange); }, options);
    co_await body(server, gate);
    gate.let_go();
    co_await server.stop();
  });
}

const std::string kClose = "Connection: close\r\n";

TEST(Server, TheConnectionThatHasWaitedLongestGivesWayToANewOne) {
  with_gate({.max_connections = 4}, [](TestServer& server, Gate& gate) -> Task<> {
    auto busy = co_await test::raw_connect(server.port());
    co_await busy.send(get("/busy"));
    co_await gate.until_inside(1);
    auto kept = co_await test::raw_connect(server.port());
    co_await sleep_for(seconds(1));
    auto half = co_await test::raw_connect(server.port());
    co_await half.send("GET / HT");  // a head that is never complete
    co_await sleep_for(seconds(1));
    co_await kept.send(get("/"));  // so that it has waited for a shorter time
    EXPECT_THAT(co_await kept.read_until("GET / "), EndsWith("GET / "));
    co_await sleep_for(seconds(1));
    auto idle = co_await test::raw_connect(server.port());
    co_await sleep_for(seconds(1));

    EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/", kClose)), EndsWith("GET / "));
    EXPECT_EQ(co_await half.read_to_end(), "");
    auto fresh = co_await test::raw_connect(server.port());
    co_await fresh.send(get("/"));
    co_await fresh.read_until("GET / ");
    auto next = co_await test::raw_connect(server.port());
    co_await next.send(get("/"));
    co_await next.read_until("GET / ");
    EXPECT_EQ(co_await kept.read_to_end(), "");
    gate.let_go();
    EXPECT_THAT(co_await busy.read_until("GET /busy "), StartsWith("HTTP/1.1 200 "));
    co_await idle.send(get("/", kClose));
    EXPECT_THAT(co_await idle.read_to_end(), EndsWith("GET / "));
  });
}

TEST(Server, ABodyThatIsNotSentThoughItIsAnsweredGivesWayToo) {
  with_gate({.max_connections = 1}, [](TestServer& server, Gate&) -> Task<> {
    auto silent = co_await test::raw_connect(server.port());
    co_await silent.send(get("/unread", "Content-Length: 9\r\n"));
    EXPECT_THAT(co_await silent.read_until("\r\n\r\nunread"), StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/", kClose)), EndsWith("GET / "));
    EXPECT_EQ(co_await silent.read_to_end(), "");
  });
}

TEST(Server, SilentBodiesOfOneHostDoNotKeepOthersOut) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Server server(executor, {.max_connections = 4}, echo);
    const auto connect = [&](const char* peer) {
      auto [mine, its] = net::MemoryChannel::pair(executor);
      server.adopt(std::move(its), asio::ip::make_address(peer));
      return test::RawConnection(std::move(mine));
    };
    const auto head = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n" + kClose + "\r\n";
    auto slow = connect("192.0.2.1");
    co_await slow.send(head);
    co_await sleep_for(seconds(1));
    auto first = connect("192.0.2.2");
    co_await first.send(head + "a");
    co_await sleep_for(seconds(1));
    auto second = connect("192.0.2.2");
    co_await second.send(head + "b");
    auto third = connect("192.0.2.2");
    co_await third.send(head + "c");
    co_await sleep_for(seconds(1));
    auto early = connect("192.0.2.3");
    EXPECT_EQ(co_await early.read_to_end(), "") << "nobody is silent for long yet";
    co_await sleep_for(seconds(6));
    auto next = connect("192.0.2.3");
    co_await next.send(head + "abc");
    EXPECT_THAT(co_await next.read_to_end(), EndsWith("POST /x abc"));
    EXPECT_EQ(co_await first.read_to_end(), "");
    co_await slow.send("xyz");
    EXPECT_THAT(co_await slow.read_to_end(), EndsWith("POST /x xyz"));
    co_await second.send("yz");
    EXPECT_THAT(co_await second.read_to_end(), EndsWith("POST /x byz"));
    third.close();
    co_await server.stop(deadline_after(seconds(1)));
  });
}

TEST(Server, ResponsesThatOneHostDoesNotReadDoNotKeepOthersOut) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const std::string large(500'000, 'l');
    Server server(executor, {.max_connections = 5}, [&large](Exchange& exchange) -> Task<> {
      if (exchange.path() == "/small") co_return co_await answer(exchange, "small");
      (void)co_await exchange.start({.status = 200});
      if (co_await exchange.write(large)) (void)co_await exchange.finish();
    });
    const auto connect = [&](const char* peer) {
      auto [mine, its] = net::MemoryChannel::pair(executor);
      server.adopt(std::move(its), asio::ip::make_address(peer));
      return test::RawConnection(std::move(mine));
    };
    // The last three are of one host, which has many addresses of IPv6.
    std::vector<test::RawConnection> clients;
    for (const auto* peer :
         {"192.0.2.9", "192.0.2.9", "2001:db8::1", "2001:db8::2", "2001:db8::3"}) {
      clients.push_back(connect(peer));
      co_await clients.back().send(get("/large", kClose));
      co_await sleep_for(seconds(1));
    }
    co_await sleep_for(seconds(6));
    auto next = connect("192.0.2.3");
    co_await next.send(get("/small", kClose));
    EXPECT_THAT(co_await next.read_to_end(), EndsWith("small"));
    for (std::size_t i = 0; i < clients.size(); ++i) {
      EXPECT_EQ((co_await clients[i].read_to_end()).size() < large.size(), i == 2) << i;
    }
    co_await server.stop(deadline_after(seconds(1)));
  });
}

TEST(Server, RefusesFurtherConnectionsWhileAllAreBusy) {
  with_gate({.max_connections = 2}, [](TestServer& server, Gate& gate) -> Task<> {
    auto first = co_await test::raw_connect(server.port());
    auto second = co_await test::raw_connect(server.port());
    co_await first.send(get("/busy", kClose));
    co_await second.send(get("/busy", kClose));
    co_await gate.until_inside(2);
    EXPECT_EQ(co_await test::raw_exchange(server.port(), ""), "");
    gate.let_go();
    EXPECT_THAT(co_await first.read_to_end(), StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(co_await second.read_to_end(), StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/", kClose)),
                StartsWith("HTTP/1.1 200 "));
  });
}

TEST(Server, TheReserveIsForTheRequestsThatItIsMeantFor) {
  const ServerOptions options{
      .max_connections = 1, .reserve = 1, .reserved_for = [](const Request& request) {
        return request.target == "/probe";
      }};
  with_gate(options, [](TestServer& server, Gate& gate) -> Task<> {
    auto busy = co_await test::raw_connect(server.port());
    co_await busy.send(get("/busy"));
    co_await gate.until_inside(1);
    // Each time the place in the reserve is taken by a client that sends nothing.
    std::vector<test::RawConnection> silent;
    for (int i = 0; i < 3; ++i) {
      silent.push_back(co_await test::raw_connect(server.port()));
      EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/probe")),
                  AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\r\nConnection: close\r\n"),
                        EndsWith("GET /probe ")));
      EXPECT_EQ(co_await silent.back().read_to_end(), "");
    }
    EXPECT_THAT(co_await test::raw_exchange(server.port(), get("/")),
                AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("too many connections\n")));
    gate.let_go();
    EXPECT_THAT(co_await busy.read_until("GET /busy "), StartsWith("HTTP/1.1 200 "));
  });
}

TEST(Server, DrainEndsIdleConnectionsAndLetsRequestsFinish) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Event entered(executor);
    Event leave(executor);
    bool inside = false;
    bool may_leave = false;
    TestServer server(executor, [&](Exchange& exchange) -> Task<> {
      inside = true;
      entered.notify_all();
      while (!may_leave) co_await leave.wait();
      co_await answer(exchange, "finished");
    });
    auto idle = co_await test::raw_connect(server.port());
    auto busy = co_await test::raw_connect(server.port());
    co_await busy.send(get("/"));
    while (!inside) co_await entered.wait();
    server.server.drain();
    EXPECT_EQ(co_await idle.read_to_end(), "");
    may_leave = true;
    leave.notify_all();
    EXPECT_THAT(co_await busy.read_to_end(),
                AllOf(HasSubstr("Connection: close"), EndsWith("finished")));
    co_await server.stop();
    EXPECT_EQ(server.server.connections(), 0u);
    bool refused = false;
    try {
      co_await test::raw_connect(server.port());
    } catch (const std::runtime_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
}

TEST(Server, StopCancelsWhatDoesNotEnd) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    bool cancelled = false;
    bool inside = false;
    TestServer server(executor, [&](Exchange&) -> Task<> {
      inside = true;
      struct Note {
        bool& flag;
        ~Note() { flag = true; }
      } note{cancelled};
      co_await sleep_until(kNever);
    });
    auto connection = co_await test::raw_connect(server.port());
    co_await connection.send(get("/"));
    EXPECT_TRUE(co_await test::eventually([&] { return inside; }, "the handler"));
    co_await server.server.stop(deadline_after(milliseconds(20)));
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(server.server.connections(), 0u);
    EXPECT_EQ(co_await connection.read_to_end(), "");
  });
}

TEST(Server, AbortResetsTheConnection) {
  with_server(
      [](Exchange& exchange) -> Task<> {
        CO_ASSERT_OK(co_await exchange.start({.status = 200}));
        exchange.abort();
        EXPECT_FALSE(co_await exchange.write("x"));
      },
      {},
      [](TestServer& server) -> Task<> {
        auto connection = co_await test::raw_connect(server.port());
        co_await connection.send(get("/"));
        co_await connection.read_to_end();
        EXPECT_TRUE(connection.was_reset());
      });
}

TEST(Server, ListenErrorsNameAddressAndPort) {
  with_server(echo, {}, [](TestServer& server) -> Task<> {
    Server second(co_await asio::this_coro::executor, {.port = server.port()}, echo);
    const auto listening = second.listen();
    EXPECT_FALSE(listening);
    EXPECT_THAT(listening.error().message, HasSubstr("127.0.0.1:" + std::to_string(server.port())));
    Server third(co_await asio::this_coro::executor, {.address = "not-an-ip"}, echo);
    EXPECT_FALSE(third.listen());
  });
}

// A server without a port, whose connections are made in memory.
TEST(Server, AdoptedConnectionsAreServedLikeAcceptedOnes) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Server server(executor, {.max_connections = 1}, [](Exchange& exchange) -> Task<> {
      co_await answer(exchange, exchange.peer_address());
    });
    const auto peer = asio::ip::make_address("::ffff:192.0.2.7");
    auto [mine, its] = net::MemoryChannel::pair(executor);
    server.adopt(std::move(its), peer);
    EXPECT_EQ(server.connections(), 1u);
    test::RawConnection connection(std::move(mine));
    for (int i = 0; i < 2; ++i) {
      co_await connection.send(get("/"));
      EXPECT_THAT(co_await connection.read_until("192.0.2.7"), EndsWith("\r\n\r\n192.0.2.7"));
    }
    auto [other, its_other] = net::MemoryChannel::pair(executor);
    server.adopt(std::move(its_other), peer);
    EXPECT_EQ(co_await connection.read_to_end(), "");  // the limit is one
    EXPECT_TRUE(connection.ended());
    test::RawConnection further(std::move(other));
    co_await further.send(get("/"));
    EXPECT_THAT(co_await further.read_until("192.0.2.7"), EndsWith("\r\n\r\n192.0.2.7"));
    server.drain();  // ends the read of the idle connection
    EXPECT_EQ(co_await further.read_to_end(), "");
    EXPECT_TRUE(further.ended());
    auto [late, its_late] = net::MemoryChannel::pair(executor);
    server.adopt(std::move(its_late), peer);
    EXPECT_FALSE(its_late);
    EXPECT_TRUE(late->is_stale());
    co_await server.stop(deadline_after(seconds(1)));
    EXPECT_EQ(server.connections(), 0u);
  });
}

}  // namespace
}  // namespace gitops::http
