// Every race of a proxied request, step by step: framing, early responses, upgrades, limits, broken
// peers. Client and upstream are the far ends of channels in memory, and time passes only while the
// loop is idle.
#include "common/proxy/transaction.hpp"

#include <charconv>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "common/http/gzip.hpp"
#include "common/net/memory_channel.hpp"
#include "common/proxy/server.hpp"
#include "common/proxy/transaction_fixture.hpp"
#include "support/run_coro.hpp"

// Absent without a sanitizer.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace gitops::proxy {
namespace {

using namespace std::chrono_literals;
using net::MemoryChannel;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::string kPost = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";

// Too long for a block; its body passes as it comes.
constexpr std::size_t kLong = 40'000;
const std::string kLongPost = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n";
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kUpgrade =
    "GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const std::string kSwitching =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

// -- requests without a fault --

TEST(Transaction, RequestAndAnswerPassAndConnectionsAreKept) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    for (const bool reused : {false, true}) {
      co_await send(client, kGet);
      auto& upstream = *co_await bed.upstream();
      const auto request = co_await read(upstream, "\r\n\r\n");
      EXPECT_THAT(request, StartsWith("GET /x HTTP/1.1\r\nHost: up\r\n"));
      EXPECT_THAT(request, HasSubstr("X-Forwarded-For: 192.0.2.1\r\n"));
      co_await send(upstream, kOk);
      EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200 OK\r\n"));
      EXPECT_EQ(bed.records.size(), reused ? 2U : 1U);
      EXPECT_EQ(bed.records.back(),
                (Recorded{.status = 200, .bytes_out = 2, .reused = reused, .path = "/x"}));
    }
    EXPECT_EQ(bed.upstreams.size(), 1U);
  });
}

TEST(Transaction, PipelinedRequestsAreAnsweredInOrder) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] =
        co_await ask(bed, kGet + "GET /own HTTP/1.1\r\nHost: a\r\n\r\n" + kPost);
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(upstream, "body"), HasSubstr("POST /x"));
    co_await send(upstream, "HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nend");
    const auto answers = co_await read(client, "end");
    EXPECT_LT(answers.find("200 OK"), answers.find("own"));
    EXPECT_LT(answers.find("own"), answers.find("201 Created"));
  });
}

TEST(Transaction, OneClientThatPipelinesDoesNotHoldUpOthers) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& many = bed.connect();
    auto& one = bed.connect();
    std::string requests;
    for (int i = 0; i < 500; ++i) requests += "GET /own HTTP/1.1\r\nHost: a\r\n\r\n";
    co_await send(many, requests);
    co_await send(one, "GET /own HTTP/1.1\r\nHost: b\r\n\r\n");
    (void)co_await read(one, "own");
    EXPECT_LT(bed.records.size(), 300U);
  });
}

TEST(Transaction, ARequestThatEndsWithItsBlockCountsLikeOthers) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& many = bed.connect(4 * 1024 * 1024);
    auto& one = bed.connect();
    std::string request = "GET /own HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";
    request.insert(request.size() - 4, std::string(4096 - request.size(), 'x'));
    std::string requests;
    for (int i = 0; i < 500; ++i) requests += request;
    co_await send(many, requests);
    co_await send(one, "GET /own HTTP/1.1\r\nHost: b\r\n\r\n");
    (void)co_await read(one, "own");
    EXPECT_LT(bed.records.size(), 100U);
  });
}

TEST(Transaction, TheAnswerToHeadHasNoBody) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed, "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await send(upstream, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    EXPECT_THAT(co_await read(client, "\r\n\r\n"), HasSubstr("Content-Length: 1000"));
    co_await send(client, kGet);
    EXPECT_THAT(co_await read(upstream, "\r\n\r\n"), HasSubstr("GET /x"));
  });
}

TEST(Transaction, AnAnswerWithoutLengthIsCompleteWhenTheUpstreamCloses) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, "HTTP/1.1 200 OK\r\n\r\nall of it");
    upstream.shutdown_send();
    EXPECT_THAT(co_await read(client, "0\r\n\r\n"), HasSubstr("all of it"));
    EXPECT_EQ(bed.records.back().failure, Failure::none);
  });
}

TEST(Transaction, TheAdmissionEndsWithTheRequest) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.count_admissions = true;
    auto& client = bed.connect();
    co_await send(client, kGet);
    auto& upstream = *co_await bed.upstream();
    EXPECT_EQ(bed.admitted, 1);
    (void)co_await read(upstream, "\r\n\r\n");
    co_await send(upstream, kOk);
    (void)co_await read(client, "ok");
    EXPECT_EQ(bed.admitted, 0);
  });
}

// -- the client before its request is complete --

TEST(Transaction, AClientThatLeavesBeforeItsRequestIsNotRecorded) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& silent = bed.connect();
    silent.shutdown_send();
    EXPECT_EQ(co_await read(silent), "<end>");
    auto& half = bed.connect();
    co_await send(half, "GET /x HT");
    half.shutdown_send();
    EXPECT_EQ(co_await read(half), "<end>");
    EXPECT_THAT(bed.records, IsEmpty());
    EXPECT_THAT(bed.upstreams, IsEmpty());
  });
}

TEST(Transaction, AnIdleClientIsClosedAfterItsTime) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    const auto begin = Clock::now();
    EXPECT_EQ(co_await read(client), "<end>");
    EXPECT_GE(Clock::now() - begin, 65s);
    EXPECT_LT(Clock::now() - begin, 66s);
  });
}

TEST(Transaction, AHeadThatComesTooSlowlyIsAnswered408) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    co_await send(client, "GET /x HTTP/1.1\r\n");
    co_await sleep_for(8s);
    co_await send(client, "Host: a\r\n");  // does not extend the deadline
    const auto begin = Clock::now();
    EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 408"));
    EXPECT_LT(Clock::now() - begin, 3s);
    EXPECT_EQ(bed.records.back().failure, Failure::head_timeout);
  });
}

TEST(Transaction, AMalformedHeadIsAnsweredAndTheConnectionEnds) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    co_await send(client, "GET /x HTTP/1.1\r\nHost : a\r\n\r\n");
    const auto answer = co_await read(client);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(answer, EndsWith("malformed_request<end>"));
    EXPECT_THAT(bed.upstreams, IsEmpty());
  });
}

TEST(Transaction, AHeadThatIsTooLargeIsAnswered431) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    std::string head = "GET /x HTTP/1.1\r\nHost: a\r\n";
    for (int i = 0; i < 10; ++i) head += "X-Field: " + std::string(4000, 'x') + "\r\n";
    co_await send(client, head);
    EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 431"));
  });
}

// -- bodies of requests --

TEST(Transaction, ABodyPassesAsItComes) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    co_await send(client, kLongPost + "ab");
    auto& upstream = *co_await bed.upstream();
    EXPECT_THAT(co_await read(upstream, "ab"), HasSubstr("Content-Length: 40000"));
    co_await send(client, "cd");
    EXPECT_EQ(co_await read(upstream, "cd"), "cd");
    co_await send(client, std::string(kLong - 6, 'x') + "ef");
    EXPECT_THAT(co_await read(upstream, "ef"), EndsWith("ef"));
    co_await send(upstream, kOk);
    (void)co_await read(client, "ok");
    EXPECT_EQ(bed.records.back().bytes_in, kLong);
    co_await send(client, kGet);  // the connection stays usable
    EXPECT_THAT(co_await read(upstream, "\r\n\r\n"), HasSubstr("GET /x"));
  });
}

TEST(Transaction, ChunksAreFramedAgain) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    co_await send(client,
                  "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "2;ext=1\r\nab\r\n1\r\nc\r\n");
    auto& upstream = *co_await bed.upstream();
    const auto request = co_await read(upstream, "abc\r\n");
    EXPECT_THAT(request, HasSubstr("\r\n\r\n3\r\nabc\r\n"));
    co_await send(client, "0\r\n\r\n");
    EXPECT_EQ(co_await read(upstream, "0\r\n\r\n"), "0\r\n\r\n");
  });
}

TEST(Transaction, AClientThatWaitsIsToldToContinueOnceTheUpstreamIsThere) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.dial_takes = 2s;
    auto& client = bed.connect();
    const auto begin = Clock::now();
    co_await send(
        client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(co_await read(client, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_GE(Clock::now() - begin, 2s);
    co_await send(client, "body");
    auto& upstream = *co_await bed.upstream();
    EXPECT_THAT(co_await read(upstream, "body"), Not(HasSubstr("Expect")));
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
  });
}

TEST(Transaction, AClientThatWaitsIsNotToldToContinueWithoutAnUpstream) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.dial_error = Error{.code = ErrorCode::unavailable, .message = "refused"};
    auto& client = bed.connect();
    co_await send(
        client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 502"));
  });
}

TEST(Transaction, ABodyThatIsTooLargeByItsLengthReachesNobody) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.limits().max_body = 3;
    auto& client = bed.connect();
    co_await send(client, kPost);
    EXPECT_THAT(co_await read(client, "body_too_large"), StartsWith("HTTP/1.1 413"));
    EXPECT_THAT(bed.upstreams, IsEmpty());
  });
}

TEST(Transaction, ABodyThatGrowsTooLargeIsCutOff) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.limits().max_body = 5;
    auto [client, upstream] = co_await ask(
        bed, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "abc");
    co_await send(client, "3\r\ndef\r\n");
    EXPECT_THAT(co_await read(client, "body_too_large"), StartsWith("HTTP/1.1 413"));
    EXPECT_THAT(co_await read(upstream), EndsWith("<reset>"));
  });
}

TEST(Transaction, AMalformedBodyIsCutOff) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(
        bed, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "abc");
    co_await send(client, "zz\r\n");
    EXPECT_THAT(co_await read(client, "malformed_body"), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(co_await read(upstream), EndsWith("<reset>"));
  });
}

TEST(Transaction, AClientLostWithinItsBodyIsRecordedAsSuch) {
  for (const bool half_close : {false, true}) {
    play([half_close](TransactionFixture& bed) -> Task<> {
      auto [client, upstream] = co_await ask(bed, kLongPost + "bo", "bo");
      if (half_close) {
        client.shutdown_send();
      } else {
        client.abort();
      }
      EXPECT_EQ(co_await read(upstream), "<reset>");
      EXPECT_EQ(bed.records.back().status, 499);
      EXPECT_EQ(bed.records.back().failure, Failure::client_gone);
    });
  }
}

TEST(Transaction, ABodyThatComesToAHaltIsAnswered408) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    co_await send(client, kLongPost + "bo");
    auto& upstream = *co_await bed.upstream();
    EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 408"));
    EXPECT_THAT(co_await read(upstream), EndsWith("<reset>"));
    EXPECT_EQ(bed.records.back().failure, Failure::body_timeout);
  });
}

TEST(Transaction, AnUpstreamThatTakesNoMoreIsWaitedForItsAnswer) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.upstream_capacity = 8 * 1024;
    auto [client, upstream] =
        co_await ask(bed, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n");
    co_await send(client, std::string(40'000, 'x'));
    co_await sleep_for(61s);  // longer than each write may take
    co_await send(upstream, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 413"));
    EXPECT_EQ(
        bed.records.back(),
        (Recorded{
            .status = 413, .bytes_in = bed.records.back().bytes_in, .bytes_out = 2, .path = "/x"}));
  });
}

TEST(Transaction, AnEarlyAnswerEndsTheUpload) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed, kLongPost + "ab", "ab");
    co_await send(upstream, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    const auto answer = co_await read(client);
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
    EXPECT_THAT(answer, EndsWith("no<end>"));
    EXPECT_EQ(bed.records.back().failure, Failure::none);
    EXPECT_NE(co_await read(upstream), "");
    co_await send(bed.connect(), kGet);
    (void)co_await bed.upstream(1);  // that connection is not used again
  });
}

TEST(Transaction, AnAnswerMayPassWhileTheBodyStillComes) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] =
        co_await ask(bed, kLongPost + std::string(kLong - 4, 'x') + "bo", "bo");
    co_await send(upstream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\non\r\n");
    EXPECT_THAT(co_await read(client, "on\r\n"), StartsWith("HTTP/1.1 200"));
    co_await send(client, "dy");
    EXPECT_EQ(co_await read(upstream, "dy"), "dy");
    co_await send(upstream, "1\r\ne\r\n0\r\n\r\n");
    EXPECT_THAT(co_await read(client), EndsWith("0\r\n\r\n<end>"));
    EXPECT_EQ(bed.records.back().bytes_in, kLong);
  });
}

TEST(Transaction, ASmallBodyIsAwaitedBeforeAnUpstreamIsTaken) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    co_await send(client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
    co_await sleep_for(1s);
    EXPECT_THAT(bed.upstreams, IsEmpty());
    EXPECT_EQ(bed.totals->held, net::BlockPool::kLarge);
    co_await send(client, "d");
    co_await sleep_for(1s);
    co_await send(client, "y" + kGet);
    auto& upstream = *co_await bed.upstream();
    EXPECT_THAT(co_await read(upstream, "body"), EndsWith("\r\nContent-Length: 4\r\n\r\nbody"));
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(upstream, "\r\n\r\n"), StartsWith("GET /x"));  // what came behind it
    EXPECT_EQ(bed.records.front(),
              (Recorded{.status = 200, .bytes_in = 4, .bytes_out = 2, .path = "/x"}));
    EXPECT_EQ(bed.totals->held, 0U);
  });
}

TEST(Transaction, ABodyThatCameInPartsIsSentAgainAsAWhole) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, first] = co_await ask(bed);
    co_await send(first, kOk);
    (void)co_await read(client, "ok");
    co_await send(client, "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
    co_await sleep_for(10ms);
    co_await send(client, "dy");
    (void)co_await read(first, "body");
    first.abort();
    auto& second = *co_await bed.upstream(1);
    EXPECT_THAT(co_await read(second, "body"), EndsWith("\r\n\r\nbody"));
    co_await send(second, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
  });
}

// Some clients send it, and it belongs to neither request.
TEST(Transaction, AnEmptyLineBehindABodyIsIgnored) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed, "\r\n" + kPost + "\r\n", "body");
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
    co_await send(client, kGet);
    EXPECT_THAT(co_await read(upstream, "\r\n\r\n"), StartsWith("GET /x "));
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
    co_await send(client, "\r\n\r\n");
    EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 400")) << "one, not several";
  });
}

TEST(Transaction, ASmallBodyPassesAsItComesWhenTooMuchIsHeld) {
  play(
      [](TransactionFixture& bed) -> Task<> {
        auto& client = bed.connect();
        co_await send(client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
        auto& upstream = *co_await bed.upstream();
        (void)co_await read(upstream, "bo");
        co_await send(client, "dy");
        EXPECT_EQ(co_await read(upstream, "dy"), "dy");
      },
      {.max_held = 100});
}

TEST(Transaction, ABodyThatDripsIsAnswered408) {
  for (const auto& head : {kLongPost, kPost.substr(0, kPost.size() - 4)}) {
    play([head](TransactionFixture& bed) -> Task<> {
      auto& client = bed.connect();
      co_await send(client, head);
      const auto begin = Clock::now();
      for (int i = 0; i < 2; ++i) {  // no silence is as long as body_timeout
        co_await send(client, "x");
        co_await sleep_for(6s);
      }
      EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 408"));
      EXPECT_LT(Clock::now() - begin, 13s);
      EXPECT_EQ(bed.records.back().failure, Failure::body_timeout);
    });
  }
}

TEST(Transaction, ASlowBodyPassesAtTheLeastRate) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed, kLongPost);
    std::size_t got = 0;
    for (std::size_t sent = 0; sent < kLong; sent += 4'000) {
      co_await sleep_for(3s);
      co_await send(client, std::string(4'000, 'x'));
      while (got < sent + 4'000) got += (co_await read(upstream, "x")).size();
    }
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
  });
}

TEST(Transaction, ABodyHasOneDeadlineForAllOfIt) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.limits().body_deadline = 20s;
    auto [client, upstream] = co_await ask(bed, kLongPost);
    const auto begin = Clock::now();
    for (int i = 0; i < 10; ++i) {
      co_await send(client, std::string(3'000, 'x'));
      co_await sleep_for(2s);
    }
    EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 408"));
    EXPECT_LT(Clock::now() - begin, 21s);
    (void)co_await read(upstream);
  });
}

TEST(Transaction, ASlowUpstreamIsNotHeldAgainstTheClient) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.upstream_capacity = 1024;
    auto& client = bed.connect();
    co_await send(client, kLongPost + std::string(kLong, 'x'));
    auto& upstream = *co_await bed.upstream();
    std::size_t got = (co_await read(upstream, "\r\n\r\n")).size();
    while (got < kLong) {  // 30 s without a byte of it, again and again
      co_await sleep_for(30s);
      for (int i = 0; i < 8 && got < kLong; ++i) got += (co_await read(upstream, "x")).size();
    }
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
  });
}

TEST(Transaction, AnEarlyAnswerToABodyThatWasThereEndsTheUpstreamsConnection) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.upstream_capacity = 1024;
    auto& client = bed.connect();
    const std::string body(20'000, 'x');
    co_await send(client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" + body);
    auto& upstream = *co_await bed.upstream();
    co_await send(upstream, kOk);  // most of the body cannot be written
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(co_await read(upstream), testing::AnyOf(EndsWith("<end>"), EndsWith("<reset>")));
    co_await send(client, kGet);
    EXPECT_THAT(co_await read(*co_await bed.upstream(1), "\r\n\r\n"), StartsWith("GET /x"));
  });
}

// -- bodies that are verified --

TEST(Transaction, ABodyIsVerifiedBeforeTheUpstreamSeesAnything) {
  play([](TransactionFixture& bed) -> Task<> {
    std::string seen;
    bed.verify = [&seen](const http::RequestHead&,
                         std::string_view body) -> std::optional<http::Response> {
      seen = body;
      if (body == "good") return std::nullopt;
      return http::Response{.status = 401, .headers = {}, .body = "wrong"};
    };
    auto& client = bed.connect();
    co_await send(client, kPost);
    EXPECT_THAT(co_await read(client, "wrong"), StartsWith("HTTP/1.1 401"));
    EXPECT_THAT(bed.upstreams, IsEmpty());
    co_await send(client,
                  "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ngo\r\n");
    co_await send(client, "2\r\nod\r\n0\r\n\r\n");
    auto& upstream = *co_await bed.upstream();
    const auto request = co_await read(upstream, "good");
    EXPECT_THAT(request, HasSubstr("Content-Length: 4"));
    EXPECT_THAT(request, Not(HasSubstr("chunked")));
    EXPECT_EQ(seen, "good");
  });
}

TEST(Transaction, BodiesThatAreVerifiedAreBoundedTogether) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.verify = [](const http::RequestHead&, std::string_view) { return std::nullopt; };
    auto totals = std::make_shared<Totals>(SharedLimits{.max_held = net::BlockPool::kLarge});
    Server small(co_await asio::this_coro::executor, ServerOptions{.totals = totals},
                 Policy{.decide = [&bed](const http::RequestHead& head,
                                         const PeerInfo&) { return bed.decide(head); },
                        .failed =
                            [](const http::RequestHead*, const Route*, Failure failure, int status,
                               std::string_view) {
                              return http::Response{.status = status,
                                                    .headers = {},
                                                    .body = std::string(to_string(failure))};
                            },
                        .done = {}});
    auto [near, far] = MemoryChannel::pair(co_await asio::this_coro::executor);
    small.adopt(std::move(near), {});
    co_await send(*far, kLongPost + std::string(kLong, 'x'));
    // It has no room at any time, so that it must not be sent again.
    EXPECT_THAT(co_await read(*far, "body_too_large"), StartsWith("HTTP/1.1 413"));
    EXPECT_EQ(totals->held, 0U);
    co_await small.stop(Clock::now());
    EXPECT_EQ(totals->connections, 0U);
  });
}

// Answers every body with 200.
std::optional<http::Response> admit_all(const http::RequestHead&, std::string_view) {
  return std::nullopt;
}

TEST(Transaction, ALongBodyThatIsVerifiedPassesWhole) {
  for (const bool chunked : {false, true}) {
    play([chunked](TransactionFixture& bed) -> Task<> {
      bed.upstream_capacity = 10'000;
      std::string body;
      for (int i = 0; body.size() < 3'000'000; ++i) body += std::to_string(i) + ",";
      std::string seen;
      bed.verify = [&](const http::RequestHead&,
                       std::string_view all) -> std::optional<http::Response> {
        seen = all;
        return std::nullopt;
      };
      auto& client = bed.connect();
      const auto length = std::to_string(body.size());
      TaskGroup tasks(co_await asio::this_coro::executor);
      tasks.spawn("client", [&]() -> Task<> {
        co_await send(client,
                      "POST /x HTTP/1.1\r\nHost: a\r\n" +
                          (chunked ? "Transfer-Encoding: chunked" : "Content-Length: " + length) +
                          "\r\n\r\n");
        for (std::size_t at = 0; at < body.size(); at += 0xfff0) {
          const auto part = body.substr(at, 0xfff0);
          std::array<char, 16> size{};
          const auto end =
              std::to_chars(size.data(), size.data() + size.size(), part.size(), 16).ptr;
          co_await send(client,
                        chunked ? std::string(size.data(), end) + "\r\n" + part + "\r\n" : part);
        }
        if (chunked) co_await send(client, "0\r\n\r\n");
      });
      auto& upstream = *co_await bed.upstream();
      EXPECT_EQ(bed.totals->held,
                (body.size() / net::BlockPool::kLarge + 1) * net::BlockPool::kLarge);
      auto got = co_await read(upstream, "\r\n\r\n");
      EXPECT_THAT(got, HasSubstr("Content-Length: " + length + "\r\n"));
      got.erase(0, got.find("\r\n\r\n") + 4);
      while (got.size() < body.size()) got += co_await read(upstream, ",");
      EXPECT_TRUE(got == body);
      EXPECT_TRUE(seen == body);
      co_await send(upstream, kOk);
      (void)co_await read(client, "ok");
      EXPECT_EQ(bed.totals->held, 0U);
      co_await tasks.join();
    });
  }
}

TEST(Transaction, ABodyIsAdmittedWhenAllOfItIsThere) {
  play([](TransactionFixture& bed) -> Task<> {
    bool asked = false;
    bed.verify = [&](const http::RequestHead&, std::string_view) -> std::optional<http::Response> {
      asked = true;
      return std::nullopt;
    };
    auto& client = bed.connect();
    co_await send(client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
    co_await sleep_for(5s);
    EXPECT_FALSE(asked);
    EXPECT_EQ(bed.inspected, "bo") << "it is inspected as it comes";
    co_await send(client, "dy");
    EXPECT_THAT(co_await read(*co_await bed.upstream(), "body"), EndsWith("body"));
    EXPECT_TRUE(asked);
    EXPECT_EQ(bed.inspected, "body");
  });
}

TEST(Transaction, WhatOneAddressMayHoldLeavesRoomForOthers) {
  play(
      [](TransactionFixture& bed) -> Task<> {
        bed.verify = admit_all;
        bed.limits().min_body_rate = 0;  // the first takes longer than the second waits for room
        auto& first = bed.connect();
        co_await send(first, kLongPost + std::string(kLong - 1, 'x'));
        co_await sleep_for(1s);
        EXPECT_EQ(bed.totals->held, 2 * net::BlockPool::kLarge);
        auto& second = bed.connect();
        co_await send(second, kLongPost + std::string(kLong, 'x'));
        EXPECT_THAT(co_await read(second, "too_much_held"), StartsWith("HTTP/1.1 503"));
        auto& other = bed.connect(64 * 1024, "192.0.2.2");
        co_await send(other, kLongPost + std::string(kLong, 'y'));
        auto& upstream = *co_await bed.upstream();
        EXPECT_THAT(co_await read(upstream, "yy"), HasSubstr("POST /x"));
      },
      {.max_held = 4 * net::BlockPool::kLarge, .max_held_per_peer = 2 * net::BlockPool::kLarge});
}

TEST(Transaction, ABodyThatIsToBeHeldWaitsUntilThereIsRoomForAllOfIt) {
  play(
      [](TransactionFixture& bed) -> Task<> {
        bed.verify = admit_all;
        auto& first = bed.connect();
        co_await send(first, kLongPost + std::string(kLong, 'x'));
        auto& upstream = *co_await bed.upstream();
        (void)co_await read(upstream, "xxxx");
        auto& second = bed.connect();
        co_await send(second, kLongPost + std::string(kLong - 1, 'y'));
        co_await sleep_for(20s);
        EXPECT_TRUE(bed.totals->is_short_of_room());
        EXPECT_EQ(bed.totals->held, 2 * net::BlockPool::kLarge) << "it is not read";
        co_await send(upstream, kOk);
        EXPECT_THAT(co_await read(first, "ok"), StartsWith("HTTP/1.1 200"));
        co_await send(second, "z");
        (void)co_await read(upstream, "yz");
        co_await send(upstream, kOk);
        EXPECT_THAT(co_await read(second, "ok"), StartsWith("HTTP/1.1 200"));
        EXPECT_EQ(bed.totals->held, 0U);
        EXPECT_FALSE(bed.totals->is_short_of_room());
      },
      {.max_held = 4 * net::BlockPool::kLarge, .max_held_per_peer = 2 * net::BlockPool::kLarge});
}

// Events, and logs that are followed: as long as a WebSocket, since the tunnel allows as much.
TEST(Transaction, AnAnswerWithoutALengthMayBeSilentAsLongAsAWebSocket) {
  for (const bool chunked : {true, false}) {
    play([chunked](TransactionFixture& bed) -> Task<> {
      bed.limits().stream_timeout = 30min;
      auto [client, upstream] = co_await ask(bed);
      const std::string framing = chunked ? "Transfer-Encoding: chunked\r\n" : "";
      co_await send(upstream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing + "\r\n");
      EXPECT_THAT(co_await read(client, "\r\n\r\n"), HasSubstr("event-stream"));
      co_await sleep_for(29min);
      co_await send(upstream, chunked ? "8\r\ndata: 1\n\r\n" : "data: 1\n");
      (void)co_await read(client, "data: 1");
      const auto begin = Clock::now();
      EXPECT_THAT(co_await read(client), EndsWith("<reset>"));
      EXPECT_GE(Clock::now() - begin, 29min);
      EXPECT_LE(Clock::now() - begin, 31min);
    });
  }
}

TEST(Transaction, AnAnswerOfKnownLengthMayPauseForAMinute) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    const auto begin = Clock::now();
    EXPECT_THAT(co_await read(client), EndsWith("<reset>"));
    EXPECT_LE(Clock::now() - begin, 61s);
  });
}

TEST(Transaction, ARequestThatNobodyTookIsOfferedToBeKept) {
  const auto expect_kept = [](TransactionFixture& bed, Failure failure) {
    ASSERT_EQ(bed.kept.size(), 1U);
    EXPECT_EQ(bed.kept[0].failure, failure);
    EXPECT_THAT(bed.kept[0].bytes, StartsWith("POST /x HTTP/1.1\r\nHost: up\r\n"));
    EXPECT_THAT(bed.kept[0].bytes, EndsWith("\r\n\r\nbody"));
  };
  play([&](TransactionFixture& bed) -> Task<> {
    bed.verify = admit_all;
    bed.keeps = true;
    bed.dial_error = Error{.code = ErrorCode::unavailable, .message = "refused"};
    auto& client = bed.connect();
    co_await send(client, kPost);
    EXPECT_THAT(co_await read(client, "kept"), StartsWith("HTTP/1.1 202"));
    expect_kept(bed, Failure::connect_failed);
    EXPECT_EQ(bed.records.at(0).failure, Failure::connect_failed);
    bed.dial_error.reset();
    co_await send(client, kPost);
    co_await send(*co_await bed.upstream(), kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"))
        << "the connection is kept";
  });
  for (const auto* status : {"500 Internal Server Error", "503 Service Unavailable"}) {
    play([&](TransactionFixture& bed) -> Task<> {
      bed.verify = admit_all;
      bed.keeps = true;
      auto [client, upstream] = co_await ask(bed, kPost, "body");
      co_await send(upstream,
                    "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: 2\r\n\r\nno");
      EXPECT_THAT(co_await read(client, "kept"), StartsWith("HTTP/1.1 202"));
      expect_kept(bed, Failure::upstream_unavailable);
    });
  }
  play([&](TransactionFixture& bed) -> Task<> {
    bed.verify = admit_all;
    bed.keeps = true;
    auto [client, upstream] = co_await ask(bed, kPost, "body");
    upstream.abort();
    EXPECT_THAT(co_await read(client, "kept"), StartsWith("HTTP/1.1 202"));
    expect_kept(bed, Failure::upstream_lost);
  });
}

TEST(Transaction, AnAnswerToABodyThatTheUpstreamDidNotTakeIsPassedOn) {
  const std::string post = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n";
  for (const bool keeps : {false, true}) {
    play([&](TransactionFixture& bed) -> Task<> {
      if (keeps) bed.verify = admit_all;
      bed.keeps = keeps;
      bed.upstream_capacity = 1024;
      auto [client, upstream] = co_await ask(bed, post + std::string(20'000, 'x'));
      co_await send(upstream, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
      upstream.close();
      EXPECT_THAT(co_await read(client, "\r\n\r\nno"), StartsWith("HTTP/1.1 413"));
      EXPECT_THAT(bed.kept, IsEmpty());
      EXPECT_EQ(bed.records.back().failure, Failure::none);
    });
  }
}

TEST(Transaction, AnAnswerThatRefusesTheRequestIsPassedOn) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.verify = admit_all;
    bed.keeps = true;
    auto [client, upstream] = co_await ask(bed, kPost, "body");
    co_await send(upstream, "HTTP/1.1 501 Not Implemented\r\nContent-Length: 2\r\n\r\nno");
    EXPECT_THAT(co_await read(client, "no"), StartsWith("HTTP/1.1 501"));
    EXPECT_THAT(bed.kept, IsEmpty());
  });
}

TEST(Transaction, ARequestThatMayBeKeptGoesOnWithoutItsClient) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.verify = admit_all;
    bed.keeps = true;
    auto [client, upstream] = co_await ask(bed, kPost, "body");
    client.close();
    co_await sleep_for(20s);
    EXPECT_THAT(bed.records, IsEmpty());
    co_await send(upstream, kOk);
    co_await sleep_for(1s);
    EXPECT_EQ(bed.records.size(), 1U);
    EXPECT_THAT(bed.kept, IsEmpty());
  });
}

TEST(Transaction, ADripAfterManyBytesEndsToo) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.verify = admit_all;
    auto& client = bed.connect(4'000'000);
    const std::string head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n";
    co_await send(client, head + std::string(2'000'000, 'x'));
    const auto begin = Clock::now();
    bool over = false;
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("drip", [&]() -> Task<> {
      while (!over) {
        (void)co_await client.write("x");
        co_await sleep_for(20s);
      }
    });
    EXPECT_THAT(co_await read(client), StartsWith("HTTP/1.1 408"));
    EXPECT_LT(Clock::now() - begin, 70s);
    over = true;
    co_await tasks.join();
  });
}

// -- the client while it waits, and within its answer --

TEST(Transaction, AClientThatLeavesWhileItWaitsGivesItsRequestUp) {
  for (const bool half_close : {false, true}) {
    play([half_close](TransactionFixture& bed) -> Task<> {
      auto [client, upstream] = co_await ask(bed);
      const auto begin = Clock::now();
      if (half_close) {
        client.shutdown_send();
      } else {
        client.abort();
      }
      EXPECT_EQ(co_await read(upstream), "<reset>");
      EXPECT_LT(Clock::now() - begin, 2s);
      EXPECT_EQ(bed.records.back().status, 499);
      EXPECT_EQ(bed.records.back().failure, Failure::client_gone);
    });
  }
}

TEST(Transaction, AClientThatHalfClosesGetsAnAnswerThatComesSoon) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    co_await send(client, kGet);
    client.shutdown_send();
    auto& upstream = *co_await bed.upstream();
    (void)co_await read(upstream, "\r\n\r\n");
    co_await sleep_for(500ms);
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
  });
}

TEST(Transaction, AClientLostWhileTheUpstreamIsConnectedToIsNoticed) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.dial_takes = 3s;
    auto& client = bed.connect();
    co_await send(client, kGet);
    co_await sleep_for(1s);
    client.abort();
    auto& upstream = *co_await bed.upstream();
    EXPECT_THAT(co_await read(upstream), EndsWith("<reset>"));
    EXPECT_EQ(bed.records.back().failure, Failure::client_gone);
  });
}

TEST(Transaction, AClientLostWithinItsAnswerEndsTheUpstreamsConnection) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\non\r\n");
    (void)co_await read(client, "on\r\n");
    client.abort();
    EXPECT_EQ(co_await read(upstream), "<reset>");
    EXPECT_EQ(bed.records.back().status, 200);
    EXPECT_EQ(bed.records.back().failure, Failure::client_gone);
  });
}

TEST(Transaction, AClientLostWhileItsBodyAndTheAnswerPassIsRecordedAsSuch) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect();
    co_await send(client, kLongPost + "bo");
    auto& upstream = *co_await bed.upstream();
    co_await send(upstream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\non\r\n");
    (void)co_await read(client, "on\r\n");
    client.abort();
    (void)co_await read(upstream);
    EXPECT_EQ(bed.records.back().failure, Failure::client_gone);
  });
}

TEST(Transaction, AClientThatDoesNotTakeItsAnswerIsCutOff) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& client = bed.connect(1024);
    co_await send(client, kGet);
    auto& upstream = *co_await bed.upstream();
    (void)co_await read(upstream, "\r\n\r\n");
    co_await send(upstream,
                  "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + std::string(9000, 'x'));
    EXPECT_EQ(co_await read(upstream), "<reset>");
    EXPECT_EQ(bed.records.back().failure, Failure::client_gone);
    EXPECT_THAT(co_await read(client), EndsWith("<reset>"));
  });
}

TEST(Transaction, ASlowClientHoldsTheUpstreamBack) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.upstream_capacity = 1024;
    auto& client = bed.connect(1024);
    co_await send(client, kGet);
    auto& upstream = *co_await bed.upstream();
    (void)co_await read(upstream, "\r\n\r\n");
    co_await send(upstream, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    std::size_t taken = 0;
    const std::string piece(1024, 'x');
    const asio::const_buffer buffer(piece.data(), piece.size());
    for (int i = 0; i < 200; ++i) {
      taken += upstream.write_now(std::span(&buffer, 1)).size;
      co_await sleep_for(1ms);
    }
    EXPECT_LE(taken, net::BlockPool::kLarge + 4 * 1024);  // capacity of a block and of the channels
  });
}

// -- the upstream --

TEST(Transaction, FailuresToConnectAreToldApart) {
  const auto status = [](ErrorCode code) {
    Recorded recorded;
    play([&recorded, code](TransactionFixture& bed) -> Task<> {
      bed.dial_error = Error{.code = code, .message = "why"};
      auto& client = bed.connect();
      co_await send(client, kGet);
      (void)co_await read(client, "\r\n\r\n");
      co_await sleep_for(1ms);
      recorded = bed.records.back();
    });
    return std::pair(recorded.status, recorded.failure);
  };
  EXPECT_EQ(status(ErrorCode::unavailable), std::pair(502, Failure::connect_failed));
  EXPECT_EQ(status(ErrorCode::tls), std::pair(502, Failure::connect_failed));
  EXPECT_EQ(status(ErrorCode::not_found), std::pair(502, Failure::no_such_host));
  EXPECT_EQ(status(ErrorCode::forbidden), std::pair(502, Failure::address_refused));
  EXPECT_EQ(status(ErrorCode::timeout), std::pair(504, Failure::connect_timeout));
}

TEST(Transaction, AnUpstreamLostBeforeItsAnswerIs502) {
  for (const bool reset : {false, true}) {
    play([reset](TransactionFixture& bed) -> Task<> {
      auto [client, upstream] = co_await ask(bed);
      if (reset) {
        upstream.abort();
      } else {
        upstream.close();
      }
      EXPECT_THAT(co_await read(client, "upstream_lost"), StartsWith("HTTP/1.1 502"));
      EXPECT_EQ(bed.upstreams.size(), 1U);  // a new connection is not tried twice
    });
  }
}

// The same, and answers the request, so that the upstream's connection is kept.
Task<Connections> ask_and_answer(TransactionFixture& bed) {
  const auto both = co_await ask(bed);
  co_await send(both.upstream, kOk);
  (void)co_await read(both.client, "ok");
  co_return both;
}

TEST(Transaction, AKeptConnectionThatClosedIsNotUsed) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, first] = co_await ask_and_answer(bed);
    first.close();
    co_await send(client, kPost);
    auto& second = *co_await bed.upstream(1);
    EXPECT_THAT(co_await read(second, "body"), HasSubstr("POST"));
  });
}

TEST(Transaction, AnIdempotentRequestIsSentAgainWhenItsKeptConnectionDies) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, first] = co_await ask_and_answer(bed);
    co_await send(client, kGet);
    (void)co_await read(first, "\r\n\r\n");
    first.abort();
    auto& second = *co_await bed.upstream(1);
    EXPECT_THAT(co_await read(second, "\r\n\r\n"), HasSubstr("GET /x"));
    co_await send(second, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
    EXPECT_FALSE(bed.records.back().reused);
    EXPECT_EQ(bed.records.back().failure, Failure::none);
  });
}

TEST(Transaction, OtherRequestsAreNotSentTwice) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, first] = co_await ask_and_answer(bed);
    co_await send(client, kPost);
    (void)co_await read(first, "body");
    first.abort();
    EXPECT_THAT(co_await read(client, "upstream_lost"), StartsWith("HTTP/1.1 502"));
    EXPECT_EQ(bed.upstreams.size(), 1U);
  });
}

TEST(Transaction, ARequestIsNotSentAgainAfterAByteOfItsAnswer) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, first] = co_await ask_and_answer(bed);
    co_await send(client, kGet);
    (void)co_await read(first, "\r\n\r\n");
    co_await send(first, "HTTP/1.1 2");
    co_await sleep_for(1ms);
    first.close();
    EXPECT_THAT(co_await read(client, "upstream_lost"), StartsWith("HTTP/1.1 502"));
    EXPECT_EQ(bed.upstreams.size(), 1U);
  });
}

TEST(Transaction, ARequestIsSentAgainOnlyOnce) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, first] = co_await ask_and_answer(bed);
    co_await send(client, kGet);
    (void)co_await read(first, "\r\n\r\n");
    first.abort();
    auto& second = *co_await bed.upstream(1);
    (void)co_await read(second, "\r\n\r\n");
    second.abort();
    EXPECT_THAT(co_await read(client, "upstream_lost"), StartsWith("HTTP/1.1 502"));
    EXPECT_EQ(bed.upstreams.size(), 2U);
  });
}

TEST(Transaction, AnAnswerThatBreaksOffDoesNotLookComplete) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    (void)co_await read(client, "half");
    upstream.close();
    EXPECT_EQ(co_await read(client), "<reset>");
    EXPECT_EQ(bed.records.back().status, 200);
    EXPECT_EQ(bed.records.back().failure, Failure::upstream_lost);
  });
}

TEST(Transaction, AnAnswerHasOneDeadlineForItsWholeHead) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    const auto begin = Clock::now();
    for (const char c : std::string("HTTP/1.1 2")) {
      co_await send(upstream, std::string(1, c));
      co_await sleep_for(5s);
    }
    EXPECT_THAT(co_await read(client, "answer_timeout"), StartsWith("HTTP/1.1 504"));
    EXPECT_LT(Clock::now() - begin, 62s);
  });
}

TEST(Transaction, AnAnswerThatComesToAHaltIsCutOff) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    EXPECT_THAT(co_await read(client), EndsWith("half<reset>"));
    EXPECT_EQ(bed.records.back().failure, Failure::answer_timeout);
  });
}

// How long a kept connection is used after an answer with these fields.
bool is_kept(const std::string& fields, Clock::duration idle) {
  bool kept = false;
  play([&](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + fields + "\r\nok");
    (void)co_await read(client, "ok");
    co_await sleep_for(idle);
    co_await send(client, kGet);
    co_await sleep_for(1ms);
    kept = bed.upstreams.size() == 1;
  });
  return kept;
}

TEST(Transaction, AnUpstreamsConnectionIsUsedAsLongAsItSaysLessASecond) {
  EXPECT_TRUE(is_kept("", 3900ms));  // Node.js closes after 5 s, and says so
  EXPECT_FALSE(is_kept("", 4100ms));
  EXPECT_TRUE(is_kept("Keep-Alive: timeout=20\r\n", 18'900ms));
  EXPECT_FALSE(is_kept("Keep-Alive: timeout=20\r\n", 19'100ms));
  EXPECT_TRUE(is_kept("Keep-Alive: max=100, Timeout=20\r\n", 18s));
  EXPECT_FALSE(is_kept("Keep-Alive: timeout=1\r\n", 0s));
  EXPECT_FALSE(is_kept("Keep-Alive: timeout=0\r\n", 0s));
  EXPECT_FALSE(is_kept("Keep-Alive: timeout=3600\r\n", 60s));  // not longer than 55 s
  EXPECT_TRUE(is_kept("Keep-Alive: timeout=x\r\n", 3s));
}

TEST(Transaction, ATimeoutDoesNotStickToAKeptConnection) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.limits().body_timeout = 1s;
    bed.upstream_capacity = 1024;
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    for (const char c : std::string("slow")) {  // longer than body_timeout altogether
      co_await sleep_for(600ms);
      co_await send(upstream, std::string(1, c));
    }
    (void)co_await read(client, "slow");
    co_await send(client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" +
                              std::string(20'000, 'x'));
    std::string got;
    while (got.size() < 20'000) got += co_await read(upstream, "x");
    co_await send(upstream, kOk);
    EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
    EXPECT_TRUE(bed.records.back().reused);
  });
}

TEST(Transaction, InterimAnswersAreDropped) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + kOk);
    const auto answer = co_await read(client, "ok");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, Not(HasSubstr("Early")));
  });
}

TEST(Transaction, InterimAnswersWithoutEndAreRefused) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    for (int i = 0; i < 17; ++i) co_await send(upstream, "HTTP/1.1 103 Early Hints\r\n\r\n");
    EXPECT_THAT(co_await read(client, "malformed_answer"), StartsWith("HTTP/1.1 502"));
  });
}

TEST(Transaction, AMalformedAnswerIs502) {
  for (const std::string answer :
       {"SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    play([answer](TransactionFixture& bed) -> Task<> {
      auto [client, upstream] = co_await ask(bed);
      co_await send(upstream, answer);
      EXPECT_THAT(co_await read(client, "malformed_answer"), StartsWith("HTTP/1.1 502"));
    });
  }
}

TEST(Transaction, WhatFollowsAnAnswerMakesItsConnectionUseless) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, kOk + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    (void)co_await read(client, "ok");
    co_await send(client, kGet);
    auto& second = *co_await bed.upstream(1);
    (void)co_await read(second, "\r\n\r\n");
    co_await send(second, kOk);
    EXPECT_THAT(co_await read(client, "ok"), Not(HasSubstr("evil")));
  });
}

TEST(Transaction, GzipIsRefusedByItsOwnWeight) {
  for (const std::string accepted : {"gzip;q=0, *", "*;q=0", "identity"}) {
    play([accepted](TransactionFixture& bed) -> Task<> {
      bed.limits().gzip = true;
      auto [client, upstream] = co_await ask(
          bed, "GET /x HTTP/1.1\r\nHost: a\r\nAccept-Encoding: " + accepted + "\r\n\r\n");
      co_await send(upstream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2000\r\n\r\n" +
                        std::string(1999, 'x') + "e");
      EXPECT_THAT(co_await read(client, "xe"), Not(HasSubstr("Content-Encoding")));
    });
  }
}

TEST(Transaction, AShortAnswerIsCompressedWhenItIsWhole) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.limits().gzip = true;
    auto [client, upstream] =
        co_await ask(bed, "GET /x HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    std::string body;
    for (int i = 0; i < 2'000; ++i) body += "line " + std::to_string(i) + "\n";
    co_await send(upstream, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body.substr(0, 9'000));
    EXPECT_THAT(co_await read(client, "\r\n\r\n"), HasSubstr("Content-Encoding: gzip"));
    co_await send(upstream, body.substr(9'000));
    const auto sent = co_await read(client, "\r\n0\r\n\r\n");
    const auto begin = sent.find("\r\n") + 2;
    const auto size = std::stoul(sent, nullptr, 16);
    EXPECT_EQ(sent.size(), begin + size + std::string_view("\r\n0\r\n\r\n").size());
    const auto decoded = http::gzip_decompress(sent.substr(begin, size), 1'000'000);
    CO_ASSERT_OK(decoded);
    EXPECT_EQ(*decoded, body);
  });
}

TEST(Transaction, AnswersAreNotCompressedWhileTooManyAre) {
  play(
      [](TransactionFixture& bed) -> Task<> {
        bed.limits().gzip = true;
        const std::string request = "GET /x HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
        const std::string head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
            "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n";
        auto [first, compressed] = co_await ask(bed, request);
        co_await send(compressed, head);
        EXPECT_THAT(co_await read(first, "\r\n\r\n"), HasSubstr("Content-Encoding: gzip"));
        auto& second = bed.connect();
        co_await send(second, request);
        auto& plain = *co_await bed.upstream(1);
        co_await send(plain, head);
        EXPECT_THAT(co_await read(second, "part"), Not(HasSubstr("Content-Encoding")));
        co_await send(compressed, "0\r\n\r\n");
        (void)co_await read(first, "0\r\n\r\n");
        co_await send(first, request);
        (void)co_await read(compressed, "\r\n\r\n");
        co_await send(compressed, head);
        EXPECT_THAT(co_await read(first, "\r\n\r\n"), HasSubstr("Content-Encoding: gzip"));
      },
      {.max_deflaters = 1});
}

// Of many requests at a time each has a transaction, and these are kept for later ones.
TEST(Transaction, ACompressedAnswerLeavesNoBufferBehind) {
  if (__sanitizer_get_current_allocated_bytes == nullptr) GTEST_SKIP() << "counted by a sanitizer";
  play([](TransactionFixture& bed) -> Task<> {
    constexpr std::size_t kClients = 16;
    constexpr std::size_t kLeft = 2048;  // bytes for each
    // A body that does not get smaller.
    const auto answer_of = [](std::size_t size) {
      std::minstd_rand random(1);
      std::string body;
      while (body.size() < size) body += static_cast<char>(random() >> 8U);
      body += "the end";
      return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
             std::to_string(body.size()) + "\r\n\r\n" + body;
    };
    std::vector<MemoryChannel*> clients;
    while (clients.size() < kClients) clients.push_back(&bed.connect());
    const auto serve_all = [&](std::string answer, std::string end) -> Task<> {
      for (std::size_t i = 0; i < kClients; ++i) {
        co_await send(*clients[i], "GET /x HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
      }
      for (std::size_t i = 0; i < kClients; ++i) {
        (void)co_await read(*co_await bed.upstream(i), "\r\n\r\n");
      }
      for (std::size_t i = 0; i < kClients; ++i) co_await send(*bed.upstreams[i], answer);
      for (auto* client : clients) EXPECT_THAT(co_await read(*client, end), EndsWith(end));
      // When a client's next request is answered, its last one has given everything back.
      for (auto* client : clients) {
        co_await send(*client, "GET /own HTTP/1.1\r\nHost: a\r\n\r\n");
        (void)co_await read(*client, "own");
      }
    };
    // The larger one first, so that the channels have all the room that they will have.
    co_await serve_all(answer_of(100'000), "the end");
    (void)http::gzip_compress("x");  // the thread keeps its compressor
    const auto plain = __sanitizer_get_current_allocated_bytes();
    bed.limits().gzip = true;
    co_await serve_all(answer_of(40'000), "\r\n0\r\n\r\n");  // compressed when it is whole
    co_await serve_all(answer_of(90'000), "\r\n0\r\n\r\n");  // piece by piece
    EXPECT_EQ(bed.records.size(), 6 * kClients);
    EXPECT_LT(__sanitizer_get_current_allocated_bytes(), plain + kClients * kLeft);
  });
}

// -- upgrades --

TEST(Transaction, AnUpgradePassesEarlyBytesOfBothSides) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed, kUpgrade + "early");
    co_await send(upstream, kSwitching + "hello");
    EXPECT_THAT(co_await read(client, "hello"), StartsWith("HTTP/1.1 101"));
    EXPECT_EQ(co_await read(upstream, "early"), "early");
    co_await send(client, "up");
    EXPECT_EQ(co_await read(upstream, "up"), "up");
    co_await send(upstream, "down");
    EXPECT_EQ(co_await read(client, "down"), "down");
    client.shutdown_send();
    EXPECT_EQ(co_await read(upstream), "<end>");
    co_await send(upstream, "last");
    EXPECT_EQ(co_await read(client, "last"), "last");
    upstream.shutdown_send();
    EXPECT_EQ(co_await read(client), "<end>");
    EXPECT_EQ(bed.records.back(),
              (Recorded{.status = 101, .bytes_in = 7, .bytes_out = 13, .path = "/x"}));
  });
}

TEST(Transaction, AnUpgradeThatLosesOneEndLosesTheOther) {
  for (const bool of_client : {false, true}) {
    play([of_client](TransactionFixture& bed) -> Task<> {
      auto [client, upstream] = co_await ask(bed, kUpgrade);
      co_await send(upstream, kSwitching);
      (void)co_await read(client, "\r\n\r\n");
      (of_client ? client : upstream).abort();
      EXPECT_EQ(co_await read(of_client ? upstream : client), "<reset>");
    });
  }
}

TEST(Transaction, AnUpgradeThatIsSilentInBothDirectionsEnds) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.limits().stream_timeout = 30s;
    auto [client, upstream] = co_await ask(bed, kUpgrade);
    co_await send(upstream, kSwitching);
    (void)co_await read(client, "\r\n\r\n");
    co_await sleep_for(20s);
    co_await send(upstream, "x");  // keeps both directions alive
    const auto begin = Clock::now();
    EXPECT_EQ(co_await read(client), "x<reset>");
    EXPECT_GE(Clock::now() - begin, 30s);
    EXPECT_LT(Clock::now() - begin, 31s);
  });
}

TEST(Transaction, AnUpgradeThatIsRefusedIsAnAnswerLikeAnother) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed, kUpgrade);
    co_await send(upstream, "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno");
    (void)co_await read(client, "no");
    co_await send(client, kGet);
    EXPECT_THAT(co_await read(upstream, "\r\n\r\n"), HasSubstr("GET /x"));
  });
}

TEST(Transaction, AnUpstreamMayNotSwitchUnasked) {
  play([](TransactionFixture& bed) -> Task<> {
    auto [client, upstream] = co_await ask(bed);
    co_await send(upstream, kSwitching);
    EXPECT_THAT(co_await read(client, "malformed_answer"), StartsWith("HTTP/1.1 502"));
    EXPECT_EQ(co_await read(upstream), "<reset>");
  });
}

// -- too many connections --

TEST(Transaction, TheConnectionIdleLongestGivesWayToANewOne) {
  play(
      [](TransactionFixture& bed) -> Task<> {
        auto& busy = bed.connect();
        co_await send(busy, kGet);
        auto& upstream = *co_await bed.upstream();
        auto& early = bed.connect(1024, "192.0.2.2");
        co_await sleep_for(1s);
        auto& late = bed.connect(1024, "192.0.2.3");
        co_await sleep_for(1s);
        auto& next = bed.connect(1024, "192.0.2.4");
        EXPECT_EQ(co_await read(early), "<end>");
        co_await send(next, "GET /own HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_THAT(co_await read(next, "own"), StartsWith("HTTP/1.1 200"));
        EXPECT_FALSE(late.peer_closed());
        co_await send(upstream, kOk);
        EXPECT_THAT(co_await read(busy, "ok"), StartsWith("HTTP/1.1 200"));
      },
      {.max_connections = 3});
}

// A head that never ends keeps its place no better than silence does.
TEST(Transaction, AHeadThatIsNotCompleteGivesWayToo) {
  play(
      [](TransactionFixture& bed) -> Task<> {
        auto& half = bed.connect(1024, "192.0.2.2");
        co_await send(half, "GET /own HT");
        co_await sleep_for(1s);
        auto& silent = bed.connect(1024, "192.0.2.3");
        co_await sleep_for(1s);
        auto& next = bed.connect(1024, "192.0.2.4");
        EXPECT_EQ(co_await read(half), "<end>");
        EXPECT_FALSE(silent.peer_closed());
        co_await send(next, "GET /own HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_THAT(co_await read(next, "own"), StartsWith("HTTP/1.1 200"));
        EXPECT_THAT(bed.records, testing::SizeIs(1)) << "that of the answer";
      },
      {.max_connections = 2});
}

TEST(Transaction, AnAddressWithTooManyConnectionsLosesItsOwn) {
  play(
      [](TransactionFixture& bed) -> Task<> {
        auto& other = bed.connect(1024, "192.0.2.2");  // idle for longer
        co_await sleep_for(1s);
        auto& first = bed.connect();
        co_await sleep_for(1s);
        auto& second = bed.connect();
        co_await sleep_for(1s);
        auto& third = bed.connect();
        EXPECT_EQ(co_await read(first), "<end>");
        EXPECT_FALSE(other.peer_closed());
        EXPECT_FALSE(second.peer_closed());
        EXPECT_FALSE(third.peer_closed());
      },
      {.max_connections = 10, .max_connections_per_peer = 2});
}

TEST(Transaction, NoRequestUnderWayGivesWay) {
  play(
      [](TransactionFixture& bed) -> Task<> {
        auto [client, upstream] = co_await ask(bed);
        EXPECT_EQ(co_await read(bed.connect()), "<end>");
        co_await send(upstream, kOk);
        EXPECT_THAT(co_await read(client, "ok"), StartsWith("HTTP/1.1 200"));
      },
      {.max_connections = 1});
}

// -- drain and stop --

TEST(Transaction, ADrainClosesIdleClientsAndLetsRequestsEnd) {
  play([](TransactionFixture& bed) -> Task<> {
    auto& idle = bed.connect();
    auto& busy = bed.connect();
    co_await send(busy, kGet);
    auto& upstream = *co_await bed.upstream();
    (void)co_await read(upstream, "\r\n\r\n");
    bed.server->drain();
    EXPECT_EQ(co_await read(idle), "<end>");
    co_await send(upstream, kOk);
    const auto answer = co_await read(busy);
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
    EXPECT_THAT(answer, EndsWith("ok<end>"));
  });
}

TEST(Transaction, AStopCutsOffWhatIsLeftAtItsDeadline) {
  play([](TransactionFixture& bed) -> Task<> {
    bed.count_admissions = true;
    auto [client, upstream] = co_await ask(bed);
    const auto begin = Clock::now();
    co_await bed.server->stop(begin + 3s);
    EXPECT_GE(Clock::now() - begin, 3s);
    EXPECT_LT(Clock::now() - begin, 4s);
    EXPECT_THAT(co_await read(client), Not(HasSubstr("200")));
    EXPECT_EQ(bed.admitted, 0);
  });
}

}  // namespace
}  // namespace gitops::proxy
