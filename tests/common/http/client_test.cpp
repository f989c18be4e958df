#include "common/http/client.hpp"

#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "common/http/gzip.hpp"
#include "common/http/loopback.hpp"
#include "common/http/upgraded.hpp"
#include "support/wait.hpp"

namespace gitops::http {
namespace {

using test::HttpScript;
using test::RawConnection;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// Runs `body` with a client against a scripted server.
void with_script(std::vector<HttpScript::Script> scripts, ClientOptions options,
                 const std::function<Task<>(TestClient&, HttpScript&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    HttpScript script(executor, scripts);
    {
      TestClient client(executor, options);
      co_await body(client, script);
    }
    co_await script.stop();
  });
}

HttpScript::Script hold() {
  return [](RawConnection& connection) -> Task<> { co_await connection.read_to_end(); };
}

// Answers one request and waits for the client to close.
HttpScript::Script answer_and_hold(std::string bytes) {
  return [bytes](RawConnection& connection) -> Task<> {
    co_await connection.read_head();
    co_await connection.send(bytes);
    co_await connection.read_to_end();
  };
}

TEST(Client, SendsWhatItIsGiven) {
  with_script(
      {HttpScript::answer_each(kOk, 3)}, {.user_agent = "tester"},
      [](TestClient& client, HttpScript& script) -> Task<> {
        const std::string host = "127.0.0.1:" + std::to_string(script.port());
        CO_ASSERT_OK(co_await client.get(script.url(), "/a?b"));
        CO_ASSERT_OK(co_await client.post(script.url(), "", "/c"));
        Request request{.method = "GET",
                        .target = "/d",
                        .headers = {{"Host", "other"},
                                    {"X-A", "b"},
                                    {"Accept-Encoding", "br"},
                                    {"user-agent", "mine"}}};
        CO_ASSERT_OK(
            co_await client.client.send(script.url(), request, deadline_after(seconds(1))));
        EXPECT_EQ(script.received().at(0),
                  "GET /a?b HTTP/1.1\r\nHost: " + host +
                      "\r\nUser-Agent: tester\r\nAccept-Encoding: gzip\r\n\r\n"
                      "POST /c HTTP/1.1\r\nHost: " +
                      host +
                      "\r\nUser-Agent: tester\r\nAccept-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
                      "GET /d HTTP/1.1\r\nHost: other\r\nX-A: b\r\nAccept-Encoding: "
                      "br\r\nuser-agent: mine\r\n\r\n");
      });
}

TEST(Client, ReusesConnections) {
  with_script({HttpScript::answer_each(kOk, 3)}, {},
              [](TestClient& client, HttpScript& script) -> Task<> {
                for (int i = 0; i < 3; ++i) {
                  const auto response = co_await client.get(script.url());
                  CO_ASSERT_OK(response);
                  EXPECT_EQ(response->body, "ok");
                }
                EXPECT_EQ(script.connections(), 1u);
              });
}

TEST(Client, ReusesNoConnectionPastItsAge) {
  with_script({answer_and_hold(kOk), answer_and_hold(kOk)}, {.max_age = milliseconds(1)},
              [](TestClient& client, HttpScript& script) -> Task<> {
                CO_ASSERT_OK(co_await client.get(script.url()));
                co_await sleep_for(milliseconds(2));
                CO_ASSERT_OK(co_await client.get(script.url()));
                EXPECT_EQ(script.connections(), 2u);
              });
}

TEST(Client, DoesNotReuseWhatCannotBeReused) {
  for (const std::string& response : {
           std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
           std::string("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 "
                       "OK\r\nContent-Length: 6\r\n\r\npoison"),
       }) {
    with_script({answer_and_hold(response), answer_and_hold(kOk)}, {},
                [&](TestClient& client, HttpScript& script) -> Task<> {
                  const auto first = co_await client.get(script.url());
                  CO_ASSERT_OK(first);
                  EXPECT_EQ(first->body, "ok");
                  EXPECT_EQ(client.client.idle_connections(), 0u);
                  const auto second = co_await client.get(script.url());
                  CO_ASSERT_OK(second);
                  EXPECT_EQ(second->body, "ok");
                  EXPECT_EQ(script.connections(), 2u);
                });
  }
}

TEST(Client, AC06_UnsolicitedBytesOnAnIdleConnectionPoisonNobody) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Event answered(executor);
    Event poisoned(executor);
    bool go = false;
    bool done = false;
    HttpScript script(
        executor, {[&](RawConnection& connection) -> Task<> {
                     co_await connection.read_head();
                     co_await connection.send(kOk);
                     while (!go) co_await answered.wait();
                     co_await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
                     done = true;
                     poisoned.notify_all();
                     co_await connection.read_to_end();
                   },
                   answer_and_hold(kOk)});
    {
      TestClient client(executor);
      CO_ASSERT_OK(co_await client.get(script.url()));
      go = true;
      answered.notify_all();
      while (!done) co_await poisoned.wait();
      const auto second = co_await client.get(script.url());
      CO_ASSERT_OK(second);
      EXPECT_EQ(second->body, "ok");
      EXPECT_EQ(script.connections(), 2u);
    }
    co_await script.stop();
  });
}

TEST(Client, NoticesAConnectionThatWasClosedWhileIdle) {
  // The script ends after its answer: the connection is closed by the time of the second request.
  with_script({HttpScript::answer(kOk), HttpScript::answer(kOk)}, {},
              [](TestClient& client, HttpScript& script) -> Task<> {
                CO_ASSERT_OK(co_await client.post(script.url(), "1"));
                co_await sleep_for(milliseconds(5));
                CO_ASSERT_OK(
                    co_await client.post(script.url(), "2"));  // not idempotent, and not sent twice
                EXPECT_EQ(script.connections(), 2u);
                EXPECT_THAT(script.received().at(0), Not(HasSubstr("\r\n\r\n2")));
              });
}

// Answers once, then takes a second request and closes without an answer.
HttpScript::Script closes_on_second(bool with_reset) {
  return [with_reset](RawConnection& connection) -> Task<> {
    co_await connection.read_head();
    co_await connection.send(kOk);
    co_await connection.read_head();
    if (with_reset) connection.reset();
  };
}

TEST(Client, RepeatsOnceWhatAReusedConnectionLost) {
  for (const bool with_reset : {false, true}) {
    with_script({closes_on_second(with_reset), HttpScript::answer(kOk)}, {},
                [](TestClient& client, HttpScript& script) -> Task<> {
                  CO_ASSERT_OK(co_await client.get(script.url()));
                  CO_ASSERT_OK(co_await client.get(script.url()));
                  EXPECT_EQ(script.connections(), 2u);
                });
  }
}

TEST(Client, DoesNotRepeatWhatMayHaveHappened) {
  // A request that is not idempotent.
  with_script({closes_on_second(false), HttpScript::answer(kOk)}, {},
              [](TestClient& client, HttpScript& script) -> Task<> {
                CO_ASSERT_OK(co_await client.get(script.url()));
                const auto lost = co_await client.post(script.url(), "");
                CO_ASSERT_TRUE(!lost);
                EXPECT_EQ(lost.error().code, ErrorCode::unavailable);
                EXPECT_EQ(script.connections(), 1u);
              });
  // A new connection.
  with_script({[](RawConnection& connection) -> Task<> { co_await connection.read_head(); }}, {},
              [](TestClient& client, HttpScript& script) -> Task<> {
                const auto lost = co_await client.get(script.url());
                CO_ASSERT_TRUE(!lost);
                EXPECT_EQ(lost.error().message,
                          "127.0.0.1:" + std::to_string(script.port()) +
                              ": the connection was closed before an answer came");
                EXPECT_EQ(script.connections(), 1u);
              });
  // An answer that had begun.
  with_script({[](RawConnection& connection) -> Task<> {
                co_await connection.read_head();
                co_await connection.send(kOk);
                co_await connection.read_head();
                co_await connection.send("HTTP/1.1 200 OK\r\n");
              }},
              {}, [](TestClient& client, HttpScript& script) -> Task<> {
                CO_ASSERT_OK(co_await client.get(script.url()));
                EXPECT_FALSE(co_await client.get(script.url()));
                EXPECT_EQ(script.connections(), 1u);
              });
}

TEST(Client, ReadsEveryKindOfBody) {
  struct Case {
    std::string bytes;
    int status;
    std::string body;
  };
  for (const Case& c : std::vector<Case>{
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nT: "
            "x\r\n\r\n",
            200, "abcde"},
           {"HTTP/1.1 200 OK\r\n\r\nto the end", 200, "to the end"},
           {"HTTP/1.0 500 Oops\r\n\r\n", 500, ""},
           {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
           {"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n", 304, ""},
           {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + kOk, 200,
            "ok"},
           {"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n", 302,
            ""},
       }) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}}) {
      with_script({[&](RawConnection& connection) -> Task<> {
                    co_await connection.read_head();
                    co_await connection.send_in_pieces(c.bytes, piece);
                  }},
                  {}, [&](TestClient& client, HttpScript& script) -> Task<> {
                    const auto response = co_await client.get(script.url());
                    CO_ASSERT_OK(response);
                    EXPECT_EQ(response->status, c.status);
                    EXPECT_EQ(response->body, c.body);
                  });
    }
  }
}

TEST(Client, AnswersToHeadHaveNoBody) {
  with_script({[](RawConnection& connection) -> Task<> {
                co_await connection.read_head();
                co_await connection.send(
                    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Encoding: gzip\r\n\r\n");
                co_await connection.read_head();
                co_await connection.send(kOk);
              }},
              {}, [](TestClient& client, HttpScript& script) -> Task<> {
                const auto head = co_await client.client.send(script.url(), {.method = "HEAD"},
                                                              deadline_after(seconds(1)));
                CO_ASSERT_OK(head);
                EXPECT_EQ(head->headers.find("Content-Length"), "9");
                CO_ASSERT_OK(co_await client.get(script.url()));
                EXPECT_EQ(script.connections(), 1u);
              });
}

TEST(Client, NoticesTruncation) {
  for (const std::string& bytes :
       {std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"),
        std::string("HTTP/1.1 200 OK\r\nContent-"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")}) {
    with_script({HttpScript::answer(bytes)}, {},
                [&](TestClient& client, HttpScript& script) -> Task<> {
                  const auto cut = co_await client.get(script.url());
                  CO_ASSERT_TRUE(!cut);
                  EXPECT_EQ(cut.error().code, ErrorCode::unavailable) << bytes;
                  EXPECT_THAT(cut.error().message, EndsWith("the answer is cut off"));
                });
  }
}

TEST(Client, RefusesWhatIsNotHttp) {
  for (const std::string& bytes :
       {std::string("SSH-2.0-OpenSSH_9\r\n"), std::string("HTTP/2 200\r\n\r\n"),
        std::string("\x15\x03\x03\x00\x02\x02\x46", 7),
        std::string("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
        std::string(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")}) {
    with_script({answer_and_hold(bytes)}, {},
                [&](TestClient& client, HttpScript& script) -> Task<> {
                  const auto refused = co_await client.get(script.url());
                  CO_ASSERT_TRUE(!refused);
                  EXPECT_EQ(refused.error().code, ErrorCode::protocol) << bytes;
                });
  }
}

TEST(Client, AC07_LimitsHeadAndBody) {
  with_script(
      {answer_and_hold("HTTP/1.1 200 OK\r\nX: " + std::string(2000, 'x')),
       answer_and_hold("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"),
       answer_and_hold("HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'x')),
       answer_and_hold("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x'))},
      {.max_response_head = 1000}, [](TestClient& client, HttpScript& script) -> Task<> {
        for (int i = 0; i < 3; ++i) {
          const auto refused =
              co_await client.client.send(script.url(), {}, deadline_after(seconds(2)), 1000);
          CO_ASSERT_TRUE(!refused);
          EXPECT_EQ(refused.error().code, ErrorCode::too_large);
        }
        CO_ASSERT_OK(
            co_await client.client.send(script.url(), {}, deadline_after(seconds(2)), 1000));
      });
}

TEST(Client, InflatesWhenItAskedForIt) {
  const std::string text = std::string(100'000, 'x') + "end";
  const std::string packed = gzip_compress(text);
  const std::string gzip = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " +
                           std::to_string(packed.size()) + "\r\n\r\n" + packed;
  with_script({HttpScript::answer_each(gzip, 2)}, {},
              [&](TestClient& client, HttpScript& script) -> Task<> {
                const auto response = co_await client.get(script.url());
                CO_ASSERT_OK(response);
                EXPECT_TRUE(response->body == text);
                EXPECT_FALSE(response->headers.find("Content-Encoding"));
                EXPECT_FALSE(response->headers.find("Content-Length"));
                // The caller asks itself: it gets what was sent.
                const auto raw = co_await client.client.send(
                    script.url(), {.headers = {{"Accept-Encoding", "gzip"}}},
                    deadline_after(seconds(1)));
                CO_ASSERT_OK(raw);
                EXPECT_TRUE(raw->body == packed);
                EXPECT_EQ(script.connections(), 1u);
              });
}

TEST(Client, AC07_CompressedBombsStop) {
  const std::string bomb = gzip_compress(std::string(20 * 1024 * 1024, '\0'), 9);
  const std::string gzip = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " +
                           std::to_string(bomb.size()) + "\r\n\r\n" + bomb;
  with_script({answer_and_hold(gzip), answer_and_hold(gzip)}, {},
              [](TestClient& client, HttpScript& script) -> Task<> {
                const auto refused = co_await client.client.send(
                    script.url(), {}, deadline_after(seconds(2)), 1'000'000);
                CO_ASSERT_TRUE(!refused);
                EXPECT_EQ(refused.error().code, ErrorCode::too_large);
                // As a stream it comes in parts of bounded size.
                auto exchange =
                    co_await client.client.open(script.url(), {}, deadline_after(seconds(5)));
                CO_ASSERT_OK(exchange);
                CO_ASSERT_OK(co_await exchange->read_head());
                std::size_t total = 0;
                std::size_t largest = 0;
                while (true) {
                  const auto part = co_await exchange->read_some();
                  CO_ASSERT_OK(part);
                  if (part->empty()) break;
                  total += part->size();
                  largest = std::max(largest, part->size());
                }
                EXPECT_EQ(total, 20u * 1024 * 1024);
                EXPECT_LE(largest, 4u * 1024 * 1024);
              });
}

TEST(Client, CorruptCompressionIsAnError) {
  std::string packed = gzip_compress("hello hello hello");
  const std::string cut = packed.substr(0, packed.size() - 4);
  packed[12] ^= 0x55;
  for (const std::string& body : {cut, packed, std::string("plain")}) {
    with_script(
        {HttpScript::answer("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " +
                            std::to_string(body.size()) + "\r\n\r\n" + body)},
        {}, [](TestClient& client, HttpScript& script) -> Task<> {
          const auto refused = co_await client.get(script.url());
          CO_ASSERT_TRUE(!refused);
          EXPECT_EQ(refused.error().code, ErrorCode::invalid_data);
        });
  }
}

TEST(Client, DeliversEachEventOfAStreamAtOnce) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Event received(executor);
    int seen = 0;
    HttpScript script(
        executor, {[&](RawConnection& connection) -> Task<> {
          co_await connection.read_head();
          co_await connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
          for (int i = 0; i < 3; ++i) {
            co_await connection.send("6\r\nevent\n\r\n");
            while (seen <= i) co_await received.wait();  // until it was read
          }
          co_await connection.send("0\r\n\r\n");
        }});
    {
      TestClient client(executor);
      auto watch = co_await client.client.open(script.url(), {.target = "/?watch=1"},
                                               deadline_after(seconds(1)));
      CO_ASSERT_OK(watch);
      CO_ASSERT_OK(co_await watch->read_head());
      watch->set_deadline(deadline_after(seconds(2)));
      for (int i = 0; i < 3; ++i) {
        const auto event = co_await watch->read_some();
        CO_ASSERT_OK(event);
        EXPECT_EQ(*event, "event\n");
        ++seen;
        received.notify_all();
      }
      EXPECT_EQ(*co_await watch->read_some(), "");
      EXPECT_EQ(*co_await watch->read_some(), "");
    }
    co_await script.stop();
  });
}

TEST(Client, TimesOut) {
  for (const std::string& bytes : {std::string(), std::string("HTTP/1.1 200 OK\r\nContent-Le"),
                                   std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")}) {
    with_script({answer_and_hold(bytes)}, {}, [](TestClient& client, HttpScript& script) -> Task<> {
      const auto started = Clock::now();
      const auto late =
          co_await client.client.send(script.url(), {}, deadline_after(milliseconds(50)));
      CO_ASSERT_TRUE(!late);
      EXPECT_EQ(late.error().code, ErrorCode::timeout);
      EXPECT_THAT(late.error().message, StartsWith("127.0.0.1:"));
      EXPECT_GE(Clock::now() - started, milliseconds(45));
      EXPECT_LT(Clock::now() - started, seconds(2));
      EXPECT_EQ(client.client.idle_connections(), 0u);
    });
  }
}

TEST(Client, MovedDeadlinesCountFromThenOn) {
  with_script({answer_and_hold("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")}, {},
              [](TestClient& client, HttpScript& script) -> Task<> {
                auto watch =
                    co_await client.client.open(script.url(), {}, deadline_after(seconds(5)));
                CO_ASSERT_OK(watch);
                CO_ASSERT_OK(co_await watch->read_head());
                watch->set_deadline(deadline_after(milliseconds(40)));
                const auto started = Clock::now();
                const auto part = co_await watch->read_some();
                CO_ASSERT_TRUE(!part);
                EXPECT_EQ(part.error().code, ErrorCode::timeout);
                EXPECT_LT(Clock::now() - started, seconds(2));
              });
}

TEST(Client, RefusedAndUnknownHostsAreNamed) {
  with_script({}, {}, [](TestClient& client, HttpScript& script) -> Task<> {
    Url url = script.url();
    co_await script.stop();
    const auto refused = co_await client.get(url);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_EQ(refused.error().message,
              "127.0.0.1:" + std::to_string(url.port) + ": connection refused");
    url.host = "no-such-host.invalid";
    const auto unknown = co_await client.get(url);
    CO_ASSERT_TRUE(!unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::unavailable);
    EXPECT_THAT(unknown.error().message, AllOf(StartsWith("no-such-host.invalid:"),
                                               HasSubstr("lookup of no-such-host.invalid failed")));
  });
}

TEST(Client, AC01_RefusesHeaderInjection) {
  with_script({hold()}, {}, [](TestClient& client, HttpScript& script) -> Task<> {
    for (const Request& request : {
             Request{.method = "GET / HTTP/1.1\r\nX: "},
             Request{.method = ""},
             Request{.target = "/ HTTP/1.1\r\nX: y"},
             Request{.target = "/\r\nX: y"},
             Request{.target = "/a b"},
             Request{.target = "a"},
             Request{.target = ""},
             Request{.target = "http://other/"},
             Request{.target = "@other/"},
             Request{.target = "/#x"},
             Request{.headers = {{"X\r\nY", "z"}}},
             Request{.headers = {{"X", "y\r\nZ: z"}}},
             Request{.headers = {{"X", "y\n"}}},
             Request{.headers = {{"", "y"}}},
             Request{.headers = {{"Content-Length", "5"}}},
             Request{.headers = {{"transfer-encoding", "chunked"}}},
         }) {
      const auto refused =
          co_await client.client.send(script.url(), request, deadline_after(seconds(1)));
      CO_ASSERT_TRUE(!refused);
      EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    }
    for (const std::string& received : script.received()) EXPECT_EQ(received, "");
  });
}

TEST(Client, IdleConnectionsAreLimitedAndExpire) {
  with_script({hold(), hold(), hold()}, {.idle_timeout = milliseconds(60), .max_idle_per_host = 2},
              [](TestClient&, HttpScript&) -> Task<> { co_return; });
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Event release(executor);
    int waiting = 0;
    TestServer server(executor, [&](Exchange& exchange) -> Task<> {
      if (++waiting < 3) {
        while (waiting < 3) co_await release.wait();
      }
      release.notify_all();
      co_await answer(exchange);
    });
    {
      TestClient client(executor, {.idle_timeout = milliseconds(60), .max_idle_per_host = 2});
      TaskGroup tasks(executor);
      for (int i = 0; i < 3; ++i) {
        tasks.spawn("get", [&]() -> Task<> { CO_ASSERT_OK(co_await client.get(server.url())); });
      }
      co_await tasks.join();
      EXPECT_EQ(client.client.idle_connections(), 2u);
      EXPECT_TRUE(co_await test::eventually([&] { return client.client.idle_connections() == 0; },
                                            "the end of idle connections"));
      EXPECT_TRUE(co_await test::eventually([&] { return server.server.connections() == 0; },
                                            "their end at the server"));
    }
    co_await server.stop();
  });
}

TEST(Client, AnUnreadAnswerClosesItsConnection) {
  with_script({answer_and_hold(kOk)}, {}, [](TestClient& client, HttpScript& script) -> Task<> {
    {
      auto exchange = co_await client.client.open(script.url(), {}, deadline_after(seconds(1)));
      CO_ASSERT_OK(exchange);
      CO_ASSERT_OK(co_await exchange->read_head());
    }
    EXPECT_EQ(client.client.idle_connections(), 0u);
  });
}

TEST(Client, StreamsBothWaysThroughBoundedMemory) {
  static constexpr std::size_t kTotal = 100 * 1024 * 1024;
  static constexpr std::size_t kPart = 64 * 1024;
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const std::string all_u(16 * 1024, 'u');
    const std::string all_d(16 * 1024, 'd');
    std::size_t uploaded = 0;
    std::size_t downloaded = 0;
    std::size_t read = 0;
    std::size_t most_in_flight = 0;
    bool intact = true;
    TestServer server(executor, [&](Exchange& exchange) -> Task<> {
      while (true) {
        const auto part = co_await exchange.read_some();
        CO_ASSERT_OK(part);
        if (part->empty()) break;
        intact = intact && part->size() <= 16 * 1024 && std::string_view(all_u).starts_with(*part);
        uploaded += part->size();
      }
      CO_ASSERT_OK(co_await exchange.start({.status = 200}));
      const std::string part(kPart, 'd');
      for (std::size_t sent = 0; sent < kTotal; sent += part.size()) {
        CO_ASSERT_OK(co_await exchange.write(part));
        downloaded += part.size();
        most_in_flight = std::max(most_in_flight, downloaded - read);
      }
      CO_ASSERT_OK(co_await exchange.finish());
    });
    {
      TestClient client(executor);
      auto exchange = co_await client.client.open(
          server.url(), {.method = "POST"}, deadline_after(seconds(60)), Client::Body::streamed);
      CO_ASSERT_OK(exchange);
      const std::string part(kPart, 'u');
      for (std::size_t sent = 0; sent < kTotal; sent += part.size()) {
        CO_ASSERT_OK(co_await exchange->write(part));
        most_in_flight = std::max(most_in_flight, sent - uploaded);
      }
      CO_ASSERT_OK(co_await exchange->finish());
      CO_ASSERT_OK(co_await exchange->read_head());
      while (true) {
        const auto got = co_await exchange->read_some();
        CO_ASSERT_OK(got);
        if (got->empty()) break;
        intact = intact && got->size() <= 16 * 1024 && std::string_view(all_d).starts_with(*got);
        read += got->size();
      }
      EXPECT_EQ(uploaded, kTotal);
      EXPECT_EQ(read, kTotal);
      EXPECT_TRUE(intact);
      EXPECT_LT(most_in_flight, 16u * 1024 * 1024);  // what the kernel buffers
      EXPECT_EQ(client.client.idle_connections(), 1u);
    }
    co_await server.stop();
  });
}

TEST(Client, AStreamedBodyWithALengthIsNotChunked) {
  const auto script = [](RawConnection& connection) -> Task<> {
    const auto head = co_await connection.read_head();
    EXPECT_TRUE(head.contains("Content-Length: 6\r\n")) << head;
    EXPECT_FALSE(head.contains("Transfer-Encoding")) << head;
    EXPECT_EQ(co_await connection.read_exactly(6), "abcdef");
    co_await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(co_await connection.read_to_end(), "");
  };
  const auto cut = [](RawConnection& connection) -> Task<> {
    co_await connection.read_head();
    EXPECT_EQ(co_await connection.read_to_end(), "abc");
  };
  with_script({script, cut}, {}, [](TestClient& client, HttpScript& script) -> Task<> {
    const auto url = script.url();
    const auto open = [&] {
      return client.client.open(url, {.method = "POST"}, deadline_after(seconds(2)),
                                Client::Body::streamed, 6);
    };
    {
      auto exchange = co_await open();
      CO_ASSERT_OK(exchange);
      CO_ASSERT_OK(co_await exchange->write("abc"));
      EXPECT_FALSE(co_await exchange->write("defg"));  // one too many: nothing of it is sent
      CO_ASSERT_OK(co_await exchange->write("def"));
      CO_ASSERT_OK(co_await exchange->finish());
      const auto head = co_await exchange->read_head();
      CO_ASSERT_OK(head);
      EXPECT_EQ(head->status, 200);
      EXPECT_EQ(client.client.idle_connections(), 1u);
      client.client.close_idle();
    }
    auto exchange = co_await open();
    CO_ASSERT_OK(exchange);
    CO_ASSERT_OK(co_await exchange->write("abc"));
    EXPECT_FALSE(co_await exchange->finish());  // the connection cannot be used any more
    EXPECT_EQ(client.client.idle_connections(), 0u);
  });
}

TEST(Client, ReadsAnEarlyAnswerToAnUpload) {
  with_script(
      {[](RawConnection& connection) -> Task<> {
        co_await connection.read_head();
        co_await connection.send(
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      }},
      {}, [](TestClient& client, HttpScript& script) -> Task<> {
        auto exchange = co_await client.client.open(
            script.url(), {.method = "POST"}, deadline_after(seconds(2)), Client::Body::streamed);
        CO_ASSERT_OK(exchange);
        const std::string part(64 * 1024, 'x');
        while (co_await exchange->write(part)) {
        }
        const auto head = co_await exchange->read_head();
        CO_ASSERT_OK(head);
        EXPECT_EQ(head->status, 413);
        EXPECT_EQ(client.client.idle_connections(), 0u);
      });
}

TEST(Client, CancellationLeavesNothingBehind) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    bool arrived = false;
    TestServer server(executor, [&](Exchange& exchange) -> Task<> {
      arrived = true;
      while (co_await exchange.read_some()) {
        co_await sleep_for(milliseconds(1));
      }
    });
    {
      TestClient client(executor);
      TaskGroup tasks(executor);
      bool returned = false;
      tasks.spawn("get", [&]() -> Task<> {
        auto response = co_await client.get(server.url());
        (void)response;
        returned = true;
      });
      EXPECT_TRUE(co_await test::eventually([&] { return arrived; }, "the request at the server"));
      tasks.cancel();
      co_await tasks.join();
      EXPECT_FALSE(returned);  // cancellation is an exception
      EXPECT_EQ(client.client.idle_connections(), 0u);
    }
    co_await server.server.stop(deadline_after(milliseconds(10)));
    EXPECT_EQ(server.server.connections(), 0u);
  });
}

TEST(Client, KeepsAConnectionNoLongerThanItsServer) {
  const auto serve = [](RawConnection& connection) -> Task<> {
    while (!(co_await connection.read_head()).empty()) {
      co_await connection.send(
          "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=100\r\nContent-Length: 2\r\n\r\nok");
    }
  };
  with_script({serve, serve}, {}, [](TestClient& client, HttpScript& script) -> Task<> {
    CO_ASSERT_OK(co_await client.post(script.url(), "a"));
    co_await sleep_for(milliseconds(3'500));
    CO_ASSERT_OK(co_await client.post(script.url(), "b"));
    EXPECT_EQ(script.connections(), 1u);
    co_await sleep_for(milliseconds(4'500));
    CO_ASSERT_OK(co_await client.post(script.url(), "c"));
    EXPECT_EQ(script.connections(), 2u);
  });
}

ClientOptions through(const HttpScript& proxy, const std::string& userinfo = "") {
  Url url = proxy.url();
  url.userinfo = userinfo;
  return {.proxy = {.http = url, .https = url}};
}

Url origin(const std::string& text) {
  return *parse_url(text);
}

TEST(Client, SendsAbsoluteTargetsToAnHttpProxy) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    HttpScript proxy(executor, {HttpScript::answer_each(kOk, 2)});
    {
      TestClient client(executor, through(proxy, "us%20er:pass"));
      CO_ASSERT_OK(co_await client.get(origin("http://a.example:8080/ignored"), "/x?y"));
      CO_ASSERT_OK(co_await client.get(origin("http://b.example"), "/z"));
      const auto seen = proxy.received().at(0);
      EXPECT_THAT(seen,
                  StartsWith("GET http://a.example:8080/x?y HTTP/1.1\r\nHost: a.example:8080\r\n"));
      EXPECT_THAT(seen, HasSubstr("GET http://b.example/z HTTP/1.1\r\nHost: b.example\r\n"));
      EXPECT_THAT(seen,
                  HasSubstr("Proxy-Authorization: Basic " + base64_encode("us er:pass") + "\r\n"));
      EXPECT_EQ(proxy.connections(), 1u);
    }
    co_await proxy.stop();
  });
}

// Proxies do not forward an upgrade (RFC 6455 section 4.1).
TEST(Client, SwitchesProtocolsThroughATunnelOfAnHttpProxy) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    HttpScript proxy(executor, {[](RawConnection& connection) -> Task<> {
                       co_await connection.read_head();
                       co_await connection.send("HTTP/1.1 200 Connection established\r\n\r\n");
                       co_await connection.read_head();
                       co_await connection.send(
                           "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                           "Upgrade: upper\r\n\r\n");
                       co_await connection.read_to_end();
                     }});
    {
      TestClient client(executor, through(proxy, "user:pass"));
      Request request{.target = "/up",
                      .headers = {{"Connection", "Upgrade"}, {"Upgrade", "upper"}}};
      auto upgraded = co_await client.client.upgrade(origin("ws://a.example:8080"), request,
                                                     deadline_after(seconds(5)));
      CO_ASSERT_OK(upgraded);
      upgraded->channel->close();
      const auto seen = proxy.received().at(0);
      const auto tunneled = seen.substr(seen.find("\r\n\r\n") + 4);
      EXPECT_THAT(seen, StartsWith("CONNECT a.example:8080 HTTP/1.1\r\n"));
      EXPECT_THAT(seen, HasSubstr("Proxy-Authorization: Basic "));
      EXPECT_THAT(tunneled, StartsWith("GET /up HTTP/1.1\r\n"));
      EXPECT_THAT(tunneled, Not(HasSubstr("Proxy-Authorization")));
    }
    co_await proxy.stop();
  });
}

// A SOCKS proxy that also plays the destination, which must be host "a", port 80.
HttpScript::Script socks(bool with_user, std::string answer) {
  return [=](test::RawConnection& connection) -> Task<> {
    using namespace std::string_literals;
    co_await connection.read_exactly(with_user ? 4 : 3);
    co_await connection.send(with_user ? "\x05\x02"s : "\x05\x00"s);
    if (with_user) {
      EXPECT_EQ(co_await connection.read_exactly(11), "\x01\x05us er\x03p:w"s);
      co_await connection.send("\x01\x00"s);
    }
    EXPECT_EQ(co_await connection.read_exactly(8), "\x05\x01\x00\x03\x01\x61\x00\x50"s);
    co_await connection.send(answer);
    co_await connection.read_head();
    co_await connection.send(kOk);
    co_await connection.read_to_end();
  };
}

TEST(Client, GoesThroughASocksProxy) {
  test::run_coro([]() -> Task<> {
    using namespace std::string_literals;
    const auto executor = co_await asio::this_coro::executor;
    const auto connected = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"s;
    HttpScript proxy(executor,
                     {socks(false, connected), socks(true, connected), socks(false, "\x05\x05"s)});
    const auto name = "proxy 127.0.0.1:" + std::to_string(proxy.port());
    const auto client_of = [&](const std::string& userinfo) {
      auto options = through(proxy, userinfo);
      options.proxy.http->scheme = "socks5h";
      return std::make_unique<TestClient>(executor, options);
    };
    {
      const auto client = client_of("");
      const auto response = co_await client->get(origin("http://a"), "/x");
      CO_ASSERT_OK(response);
      EXPECT_EQ(response->body, "ok");
      EXPECT_THAT(proxy.received().at(0), HasSubstr("GET /x HTTP/1.1\r\nHost: a\r\n"))
          << "as to the origin itself";
    }
    CO_ASSERT_OK(co_await client_of("us%20er:p%3Aw")->get(origin("http://a")));
    const auto refused = co_await client_of("")->get(origin("http://a"));
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message, AllOf(StartsWith(name), HasSubstr("refused behind")));
    co_await proxy.stop();
  });
}

TEST(Client, ErrorsTellTheProxyFromTheOrigin) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    HttpScript proxy(
        executor, {HttpScript::answer(
                       "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"),
                   HttpScript::answer(
                       "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"),
                   HttpScript::answer("HTTP/1.1 502 Bad Gateway\r\n\r\n"), HttpScript::answer(""),
                   HttpScript::answer("HTTP/1.1 200 OK\r\n\r\nspeaks first")});
    const std::string name = "proxy 127.0.0.1:" + std::to_string(proxy.port());
    {
      TestClient client(executor, through(proxy, "user:canary"));
      const auto plain = co_await client.get(origin("http://a.example"));
      CO_ASSERT_TRUE(!plain);
      EXPECT_EQ(plain.error().code, ErrorCode::unauthenticated);
      EXPECT_EQ(plain.error().message, name + ": proxy authentication required");
      EXPECT_EQ(plain.error().http_status, 0) << "the origin did not answer";
      const auto tunnel = co_await client.get(origin("https://a.example"));
      CO_ASSERT_TRUE(!tunnel);
      EXPECT_EQ(tunnel.error().code, ErrorCode::unauthenticated);
      EXPECT_EQ(tunnel.error().message,
                name + ": refused to connect to a.example:443: 407 Proxy Authentication Required");
      EXPECT_EQ(tunnel.error().http_status, 0);
      EXPECT_THAT(proxy.received().at(1),
                  StartsWith("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n"));
      const auto gateway = co_await client.get(origin("https://a.example"));
      CO_ASSERT_TRUE(!gateway);
      EXPECT_EQ(gateway.error().code, ErrorCode::unavailable);
      EXPECT_EQ(gateway.error().message,
                name + ": refused to connect to a.example:443: 502 Bad Gateway");
      for (int i = 0; i < 2; ++i) {
        const auto broken = co_await client.get(origin("https://a.example"));
        CO_ASSERT_TRUE(!broken);
        EXPECT_THAT(broken.error().message, AllOf(StartsWith(name), Not(HasSubstr("canary"))));
      }
    }
    co_await proxy.stop();
    {
      TestClient client(executor, through(proxy));
      const auto refused = co_await client.get(origin("https://a.example"));
      CO_ASSERT_TRUE(!refused);
      EXPECT_EQ(refused.error().message, name + ": connection refused");
    }
  });
}

TEST(Client, AProxyThatCannotBeUsedIsAnErrorOfTheRequestsThatNeedIt) {
  const ClientOptions options{
      .proxy = {.http_mistake = Error{.code = ErrorCode::unavailable, .message = "HTTP_PROXY: bad"},
                .no_proxy = {"127.0.0.1"},
                .proxies_loopback = true}};
  with_script({HttpScript::answer(kOk)}, options,
              [](TestClient& client, HttpScript& script) -> Task<> {
                CO_ASSERT_OK(co_await client.get(script.url()));
                const auto needed = co_await client.get(origin("http://a.example"));
                CO_ASSERT_TRUE(!needed);
                EXPECT_EQ(needed.error().code, ErrorCode::unavailable);
                EXPECT_EQ(needed.error().message, "a.example:80: HTTP_PROXY: bad");
                Request upgrade;
                const auto switched = co_await client.client.upgrade(
                    origin("http://a.example"), std::move(upgrade), deadline_after(seconds(1)));
                CO_ASSERT_TRUE(!switched);
                EXPECT_EQ(switched.error().message, "a.example:80: HTTP_PROXY: bad");
              });
}

// Others have turns in between, also when all of it came at once.
TEST(HttpClient, ALargeAnswerIsInflatedInSlices) {
  constexpr std::size_t kSize = std::size_t{16} << 20;
  const auto packed = gzip_compress(std::string(kSize, 'x'));
  with_script({HttpScript::answer("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " +
                                  std::to_string(packed.size()) + "\r\n\r\n" + packed)},
              {}, [&](TestClient& client, HttpScript& script) -> Task<> {
                const auto executor = co_await asio::this_coro::executor;
                auto exchange = co_await client.client.open(
                    script.url(), {}, deadline_after(std::chrono::seconds(30)));
                CO_ASSERT_OK(exchange);
                CO_ASSERT_OK(co_await exchange->read_head());
                std::size_t all = 0;
                std::size_t in_turn = 0;
                std::size_t most_in_turn = 0;
                TaskGroup others(executor);
                others.spawn("other", [&]() -> Task<> {
                  while (all < kSize) {
                    in_turn = 0;
                    co_await asio::post(executor, use_task);
                  }
                });
                while (all < kSize) {
                  const auto part = co_await exchange->read_some();
                  CO_ASSERT_OK(part);
                  if (part->empty()) break;
                  all += part->size();
                  in_turn += part->size();
                  most_in_turn = std::max(most_in_turn, in_turn);
                }
                co_await others.join();
                EXPECT_EQ(all, kSize);
                EXPECT_LE(most_in_turn, std::size_t{5} << 20) << "a step makes up to 2 MiB";
              });
}

}  // namespace
}  // namespace gitops::http
