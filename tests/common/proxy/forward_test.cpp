#include "common/proxy/forward.hpp"

#include <string>

#include <gmock/gmock.h>

namespace gitops::proxy {
namespace {

using Kind = BodyFraming::Kind;
using testing::HasSubstr;
using testing::Not;

std::string forward(const std::string& fields, RequestEdits edits = {}, BodyFraming framing = {}) {
  const std::string text = "GET /x HTTP/1.1\r\nHost: public\r\n" + fields + "\r\n";
  http::RequestHeadParser parser({});
  EXPECT_EQ(parser.next(text), text.size());
  if (edits.target.empty()) edits.target = "/x";
  edits.host = "upstream:80";
  edits.client = "10.0.0.1";
  edits.scheme = "http";
  edits.request_id = "id";
  std::string out;
  append_forwarded_request(out, parser.head(), edits, framing);
  return out;
}

std::string answer(const std::string& fields, const AnswerEdits& edits = {},
                   BodyFraming framing = {}, const std::string& status = "200 OK") {
  const std::string text = "HTTP/1.1 " + status + "\r\n" + fields + "\r\n";
  http::ResponseHeadParser parser({});
  EXPECT_EQ(parser.next(text), text.size());
  std::string out;
  append_forwarded_answer(out, parser.head(), edits, framing);
  return out;
}

TEST(ForwardedRequest, IsTheClientsWithOurEdits) {
  EXPECT_EQ(forward("Accept: a\r\nx_y: z\r\n", {.target = "/other"}, {Kind::length, 3}),
            "GET /other HTTP/1.1\r\nHost: upstream:80\r\nAccept: a\r\nx_y: z\r\n"
            "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: public\r\n"
            "X-Request-Id: id\r\nContent-Length: 3\r\n\r\n");
  EXPECT_THAT(forward("Transfer-Encoding: chunked\r\n", {}, {Kind::chunked}),
              HasSubstr("Transfer-Encoding: chunked\r\n\r\n"));
}

TEST(ForwardedRequest, HasATargetOfAsciiOnly) {
  EXPECT_THAT(forward("", {.target = "/caf\xc3\xa9/%20?q=\xe2\x82\xac&r=1"}),
              testing::StartsWith("GET /caf%C3%A9/%20?q=%E2%82%AC&r=1 HTTP/1.1\r\n"));
}

TEST(ForwardedHops, AreAddressesWithoutPorts) {
  const std::string text =
      "GET / HTTP/1.1\r\nHost: public\r\nX-Forwarded-For: 203.0.113.7:4711\r\n"
      "X-Forwarded-For: [2001:db8::1]:443, 10.0.0.2\r\n\r\n";
  http::RequestHeadParser parser({});
  ASSERT_EQ(parser.next(text), text.size());
  EXPECT_THAT(forwarded_hops(parser.head()),
              testing::ElementsAre("203.0.113.7", "2001:db8::1", "10.0.0.2"));
}

TEST(ForwardedRequest, LeavesHopByHopFieldsBehind) {
  const auto head = forward(
      "Connection: keep-alive, X-Hop, Upgrade\r\nX-Hop: a\r\nKeep-Alive: b\r\nTE: c\r\n"
      "Trailer: d\r\nUpgrade: h2c\r\nHTTP2-Settings: e\r\nProxy-Connection: f\r\n"
      "Proxy-Authorization: g\r\nExpect: 100-continue\r\n");
  for (const auto* name : {"X-Hop", "Keep-Alive", "TE:", "Trailer", "Upgrade", "HTTP2", "Proxy",
                           "Expect", "Connection"}) {
    EXPECT_THAT(head, Not(HasSubstr(name))) << name;
  }
}

TEST(ForwardedRequest, AC05_ConnectionCannotTakeAwayWhoTheClientIs) {
  const auto head = forward(
      "Connection: Authorization, X-Forwarded-For, Content-Type\r\n"
      "Authorization: a\r\nContent-Type: b\r\n");
  EXPECT_THAT(head, HasSubstr("Authorization: a\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: b\r\n"));
  EXPECT_THAT(head, HasSubstr("X-Forwarded-For: 10.0.0.1\r\n"));
}

TEST(ForwardedRequest, KeepsWhatTrustedPeersSay) {
  const std::string claims =
      "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https\r\n"
      "X-Forwarded-Host: h\r\nX-Forwarded-Port: 443\r\nX_Forwarded_Port: 1\r\nForwarded: for=x\r\n";
  const auto trusted = forward(claims, {.trusted_peer = true});
  EXPECT_THAT(trusted, HasSubstr("X-Forwarded-For: 1.1.1.1, 2.2.2.2, 10.0.0.1\r\n"));
  EXPECT_THAT(trusted, HasSubstr("X-Forwarded-Proto: https\r\n"));
  EXPECT_THAT(trusted, HasSubstr("X-Forwarded-Host: h\r\n"));
  EXPECT_THAT(trusted, HasSubstr("X-Forwarded-Port: 443\r\n"));
  EXPECT_THAT(trusted, HasSubstr("Forwarded: for=x\r\n"));
  EXPECT_THAT(trusted, Not(HasSubstr("X_Forwarded")));
  const auto other = forward(claims);
  for (const auto* claim : {"1.1.1.1", "https", ": h\r\n", "443", "for=x"}) {
    EXPECT_THAT(other, Not(HasSubstr(claim))) << claim;
  }
}

TEST(ForwardedAnswer, IsTheUpstreamsInOurFraming) {
  EXPECT_EQ(
      answer("Server: s\r\nContent-Length: 9\r\nConnection: close\r\n", {}, {Kind::length, 9}),
      "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 9\r\n\r\n");
  EXPECT_EQ(answer("Content-Length: 9\r\n", {}, {}),
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
  EXPECT_EQ(answer("Content-Length: 9\r\n", {}, {}, "204 No"), "HTTP/1.1 204 No\r\n\r\n");
  EXPECT_THAT(answer("", {.keep_alive = false}, {Kind::chunked}),
              HasSubstr("Transfer-Encoding: chunked\r\nConnection: close\r\n"));
  EXPECT_THAT(answer("", {.client_http_1_1 = false}, {}), HasSubstr("Connection: keep-alive\r\n"));
  EXPECT_THAT(answer("", {}, {Kind::until_close}), HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(answer("X-Request-Id: theirs\r\n", {.request_id = "ours"}, {}),
            "HTTP/1.1 200 OK\r\nX-Request-Id: ours\r\n\r\n");
}

TEST(ForwardedAnswer, MakesItsOwnLocationsRelative) {
  const AnswerEdits edits{.own_origin = "http://up:80", .location_prefix = "/p"};
  const auto location = [](const std::string& value, const AnswerEdits& with) {
    const auto head = answer("Location: " + value + "\r\n", with);
    const auto at = head.find("Location: ") + 10;
    return head.substr(at, head.find("\r\n", at) - at);
  };
  EXPECT_EQ(location("http://up:80/x?y", edits), "/p/x?y");
  EXPECT_EQ(location("HTTP://UP:80", edits), "/p/");
  EXPECT_EQ(location("http://up:80?y", edits), "/p/?y");
  EXPECT_EQ(location("http://up:8080/x", edits), "http://up:8080/x");
  EXPECT_EQ(location("http://up:80.evil/x", edits), "http://up:80.evil/x");
  EXPECT_EQ(location("/x", {}), "/x");
  EXPECT_EQ(location("/x", edits), "/p/x");
  EXPECT_EQ(location("/px", edits), "/p/px");
  for (const auto* kept : {"/p", "/p/x", "/p?y", "//elsewhere/x", "x", "?y", ""}) {
    EXPECT_EQ(location(kept, edits), kept);
  }
}

// "//host" would send the client elsewhere. Clients read a backslash as a slash, and drop tabs.
TEST(ForwardedAnswer, ItsOwnLocationNeverBecomesAnotherHost) {
  const auto location = [](const std::string& value, const std::string& prefix) {
    const auto head = answer("Location: " + value + "\r\n",
                             {.own_origin = "http://up:80", .location_prefix = prefix});
    const auto at = head.find("Location: ") + 10;
    return head.substr(at, head.find("\r\n", at) - at);
  };
  EXPECT_EQ(location("http://up:80//evil.example/x", ""), "/.//evil.example/x");
  EXPECT_EQ(location("http://up:80/\\evil.example/x", ""), "/./\\evil.example/x");
  EXPECT_EQ(location("http://up:80/\t/evil.example/x", ""), "/./\t/evil.example/x");
  EXPECT_EQ(location("http://up:80//evil.example/x", "/p"), "/p//evil.example/x");
  EXPECT_EQ(location("http://up:80/x//y", ""), "/x//y");
}

TEST(ForwardedAnswer, WeakensWhatCompressionChanges) {
  const auto head = answer("ETag: \"a\"\r\nAccept-Ranges: bytes\r\nContent-Length: 9\r\n",
                           {.gzip = true, .gzip_varies = true}, {Kind::chunked});
  EXPECT_THAT(head, HasSubstr("ETag: W/\"a\"\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Accept-Ranges")));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length")));
}

TEST(AnswerBody, TellsHowItEnds) {
  const auto of = [](const std::string& fields, std::string_view method = "GET", bool modern = true,
                     const std::string& status = "200 OK") {
    const std::string text = "HTTP/1.1 " + status + "\r\n" + fields + "\r\n";
    http::ResponseHeadParser parser({});
    EXPECT_TRUE(parser.next(text).has_value());
    const auto body = answer_body(parser.head(), method, modern, false);
    return std::pair(body.in.kind, body.out.kind);
  };
  EXPECT_EQ(of("Content-Length: 3\r\n"), std::pair(Kind::length, Kind::length));
  EXPECT_EQ(of("Transfer-Encoding: chunked\r\n"), std::pair(Kind::chunked, Kind::chunked));
  EXPECT_EQ(of("Transfer-Encoding: chunked\r\n", "GET", false),
            std::pair(Kind::chunked, Kind::until_close));
  EXPECT_EQ(of(""), std::pair(Kind::until_close, Kind::chunked));
  EXPECT_EQ(of("Content-Length: 3\r\n", "HEAD"), std::pair(Kind::none, Kind::none));
  EXPECT_EQ(of("Content-Length: 3\r\n", "GET", true, "304 x"), std::pair(Kind::none, Kind::none));
}

}  // namespace
}  // namespace gitops::proxy
