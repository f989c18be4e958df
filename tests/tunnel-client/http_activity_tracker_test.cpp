#include "tunnel-client/http_activity_tracker.hpp"

#include <gmock/gmock.h>

namespace gitops::tunnel_client {
namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST(HttpActivityTracker, ARequestIsOverWithItsAnswer) {
  HttpActivityTracker watch;
  EXPECT_FALSE(watch.is_idle()) << "its first request is on the way";
  for (unsigned i = 1; i <= 3; ++i) {
    watch.from_user(kGet);
    EXPECT_FALSE(watch.is_idle());
    watch.from_upstream(kOk.substr(0, kOk.size() - 1));
    EXPECT_FALSE(watch.is_idle());
    watch.from_upstream(kOk.substr(kOk.size() - 1));
    EXPECT_TRUE(watch.is_idle());
    EXPECT_EQ(watch.requests(), i);
  }
  watch.from_user(kGet.substr(0, 1));
  EXPECT_FALSE(watch.is_idle()) << "the next one has begun";
}

TEST(HttpActivityTracker, BytesMayComeInAnyPieces) {
  const std::string request =
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  const std::string answer =
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n";
  for (std::size_t piece = 1; piece <= answer.size(); ++piece) {
    HttpActivityTracker watch;
    for (int i = 0; i < 2; ++i) {
      for (std::size_t at = 0; at < request.size(); at += piece) {
        watch.from_user(std::string_view(request).substr(at, piece));
        EXPECT_FALSE(watch.is_idle());
      }
      for (std::size_t at = 0; at < answer.size(); at += piece) {
        EXPECT_FALSE(watch.is_idle()) << "at " << at << " in pieces of " << piece;
        watch.from_upstream(std::string_view(answer).substr(at, piece));
      }
      EXPECT_TRUE(watch.is_idle()) << "in pieces of " << piece;
    }
    EXPECT_EQ(watch.requests(), 2u);
  }
}

TEST(HttpActivityTracker, AnAnswerBeforeTheEndOfItsRequestIsNotTheEnd) {
  HttpActivityTracker watch;
  watch.from_user("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
  watch.from_upstream(kOk);
  EXPECT_FALSE(watch.is_idle());
  watch.from_user("bc");
  EXPECT_TRUE(watch.is_idle());
}

TEST(HttpActivityTracker, AnswersWithoutABody) {
  HttpActivityTracker watch;
  watch.from_user("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  watch.from_upstream("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_TRUE(watch.is_idle());
  watch.from_user(kGet);
  watch.from_upstream("HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_TRUE(watch.is_idle());
}

TEST(HttpActivityTracker, AStreamOfEventsIsInUse) {
  HttpActivityTracker watch;
  watch.from_user(kGet);
  watch.from_upstream("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
  EXPECT_FALSE(watch.is_idle());
}

TEST(HttpActivityTracker, WhatIsNotHttpIsInUse) {
  HttpActivityTracker upgraded;
  upgraded.from_user(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  upgraded.from_upstream(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_FALSE(upgraded.is_idle());
  upgraded.from_user(kGet);
  upgraded.from_upstream(kOk);
  EXPECT_FALSE(upgraded.is_idle());
  EXPECT_EQ(upgraded.requests(), 1u);

  HttpActivityTracker other;
  other.from_user("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  other.from_upstream(std::string(100'000, 'x'));
  EXPECT_FALSE(other.is_idle());
  EXPECT_EQ(other.requests(), 1u);

  HttpActivityTracker uninvited;
  uninvited.from_user(kGet);
  uninvited.from_upstream(kOk);
  uninvited.from_upstream(kOk);
  EXPECT_FALSE(uninvited.is_idle());
}

}  // namespace
}  // namespace gitops::tunnel_client
