#include "common/http/parser.hpp"

#include <set>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/hostile_heads.hpp"

namespace gitops::http {
namespace {

constexpr std::size_t kMaxHead = 4096;

template <class Parser>
std::string describe_head(Parser& parser) {
  std::string out;
  if constexpr (std::is_same_v<Parser, RequestParser>) {
    out = parser.head().method + " " + parser.head().target;
  } else {
    out = std::to_string(parser.head().status);
  }
  for (const auto& [name, value] : parser.head().headers) out += " " + name + "=" + value;
  if (parser.keep_alive()) out += " keep";
  return out;
}

// What a connection sees that receives `pieces` one after the other: heads, bodies and ends of all
// messages, up to the first error or the end of the input.
template <class Parser>
std::string transcript(const std::vector<std::string_view>& pieces,
                       std::size_t max_head = kMaxHead) {
  Parser parser(max_head);
  std::string out;
  std::string buffer;
  std::string body;
  for (const auto piece : pieces) {
    buffer += piece;
    while (true) {
      const auto step = parser.next(buffer);
      if (!step) {
        const Error& error = step.error();
        return out + "error " + std::to_string(error.http_status) + " " +
               std::string(to_string(error.code));
      }
      body += step->body;
      buffer.erase(0, step->consumed);
      if (step->event == ParseStep::Event::more) break;
      if (step->event == ParseStep::Event::head) out += "[" + describe_head(parser) + "]";
      if (step->event == ParseStep::Event::end) {
        out += "(" + body + ")";
        body.clear();
        parser.reset();
      }
    }
  }
  if (!body.empty()) out += "(" + body;
  if (!buffer.empty()) out += "...";
  return out;
}

template <class Parser>
std::string one_shot(std::string_view text) {
  return transcript<Parser>({text});
}

// The outcome of `text`, which must not depend on how it is split.
template <class Parser>
std::string outcome(std::string_view text) {
  std::string whole = one_shot<Parser>(text);
  for (std::size_t i = 1; i < text.size(); ++i) {
    EXPECT_EQ((transcript<Parser>({text.substr(0, i), text.substr(i)})), whole) << "split at " << i;
  }
  std::vector<std::string_view> bytes;
  for (std::size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
  EXPECT_EQ(transcript<Parser>(bytes), whole) << "byte by byte";
  return whole;
}

std::string request(std::string_view text) {
  return outcome<RequestParser>(text);
}
std::string response(std::string_view text) {
  return outcome<ResponseParser>(text);
}

TEST(RequestParser, ReadsAHead) {
  EXPECT_EQ(request("GET /a?b=c HTTP/1.1\r\nHost: h:80\r\nX-A:  b c \t\r\nEmpty:\r\n\r\n"),
            "[GET /a?b=c Host=h:80 X-A=b c Empty= keep]()");
}

TEST(RequestParser, ReadsBodies) {
  EXPECT_EQ(request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"),
            "[POST / Host=h Content-Length=5 keep](hello)");
  EXPECT_EQ(request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"),
            "[POST / Host=h Content-Length=0 keep]()");
  EXPECT_EQ(request("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
                    "5\r\nhello\r\n6;a=b;c=\"d\"\r\n world\r\n0\r\n\r\n"),
            "[POST / Host=h Transfer-Encoding=Chunked keep](hello world)");
  EXPECT_EQ(request("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "00A\r\n0123456789\r\n000\r\nTrailer: x\r\nOther: y\r\n\r\n"),
            "[POST / Host=h Transfer-Encoding=chunked keep](0123456789)");
}

TEST(RequestParser, ReadsPipelinedRequests) {
  EXPECT_EQ(
      request("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"
              "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
              "POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
              "GET /4 HT"),
      "[POST /1 Host=h Content-Length=2 keep](ab)[GET /2 Host=h keep]()"
      "[POST /3 Host=h Transfer-Encoding=chunked keep](x)...");
}

TEST(RequestParser, KnowsWhetherTheConnectionIsKept) {
  EXPECT_EQ(request("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
            "[GET / Host=h Connection=close]()");
  EXPECT_EQ(request("GET / HTTP/1.0\r\n\r\n"), "[GET /]()");
  EXPECT_EQ(request("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
            "[GET / Connection=Keep-Alive keep]()");
}

TEST(RequestParser, WaitsForMore) {
  EXPECT_EQ(request("GET / HTTP/1.1\r\nHost: h\r\n"), "...");
  EXPECT_EQ(request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel"),
            "[POST / Host=h Content-Length=5 keep](hel");
}

TEST(RequestParser, AC04_RefusesWhatCouldBeReadInTwoWays) {
  for (const auto& [text, status] : test::hostile_requests()) {
    std::set<std::string> expected;
    for (const int one : status == 0 ? std::vector{400, 501, 505} : std::vector{status}) {
      expected.insert("error " + std::to_string(one) +
                      (one == 400 ? " invalid_data" : " unsupported"));
    }
    EXPECT_THAT(expected, testing::Contains(request(text))) << text;
  }
}

TEST(RequestParser, AC04_RefusesTargetsThatAreNoPaths) {
  for (const std::string line : {"GET http://h/ HTTP/1.1", "OPTIONS * HTTP/1.1"}) {
    EXPECT_EQ(request(line + "\r\nHost: h\r\n\r\n"), "error 400 invalid_data") << line;
  }
  EXPECT_EQ(request("CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n"), "error 501 unsupported");
}

TEST(RequestParser, AC04_RefusesMalformedChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string seen = "[POST / Host=h Transfer-Encoding=chunked keep]";
  for (const std::string& body : {
           std::string("5\nhello\r\n0\r\n\r\n"),
           std::string("x\r\nhello\r\n0\r\n\r\n"),
           std::string("\r\nhello\r\n0\r\n\r\n"),
           std::string("0x5\r\nhello\r\n0\r\n\r\n"),
           std::string("-5\r\nhello\r\n0\r\n\r\n"),
           std::string("+5\r\nhello\r\n0\r\n\r\n"),
           std::string(" 5\r\nhello\r\n0\r\n\r\n"),
           std::string("5 \r\nhello\r\n0\r\n\r\n"),
           std::string("5 ;a\r\nhello\r\n0\r\n\r\n"),
           std::string("5;\r\nhello\r\n0\r\n\r\n"),
           std::string("5;a\nb\r\nhello\r\n0\r\n\r\n"),
           std::string("5;a=\x01\r\nhello\r\n0\r\n\r\n"),
           std::string(1000, '0') + "\r\n",
           std::string("5;") + std::string(300, 'a') + "\r\nhello\r\n0\r\n\r\n",
           std::string("10000000000000000\r\nhello\r\n0\r\n\r\n"),
           std::string("ffffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
           std::string("0\r\nContent-Length: 5\r\n\r\nhello"),
           std::string("0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
           std::string("0\r\nbad trailer\r\n\r\n"),
           std::string("0\r\nX: \x01\r\n\r\n"),
       }) {
    EXPECT_EQ(request(head + body), seen + "error 400 invalid_data") << body;
  }
  EXPECT_EQ(request(head + "5\r\nhelloX\r\n0\r\n\r\n"), seen + "error 400 invalid_data");
  EXPECT_EQ(request(head + "5\r\nhell\r\n0\r\n\r\n"), seen + "error 400 invalid_data");
}

TEST(RequestParser, AC07_LimitsTheHead) {
  const auto run = [](const std::string& text, std::size_t piece) {
    std::vector<std::string_view> pieces;
    for (std::size_t i = 0; i < text.size(); i += piece)
      pieces.push_back(std::string_view(text).substr(i, piece));
    return transcript<RequestParser>(pieces);
  };
  const std::string start = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
  const std::string fits = start + std::string(kMaxHead - start.size() - 4, 'x') + "\r\n\r\n";
  const std::string beyond = start + std::string(kMaxHead - start.size() - 3, 'x') + "\r\n\r\n";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, fits.size() + 1}) {
    EXPECT_THAT(run(fits, piece), testing::EndsWith("keep]()"));
    EXPECT_EQ(run(beyond, piece), "error 431 too_large");
    EXPECT_EQ(run("GET /" + std::string(100'000, 'a'), piece), "error 431 too_large");
    EXPECT_EQ(run(std::string(100'000, 'A'), piece), "error 431 too_large");
  }
}

TEST(RequestParser, AC07_LimitsTrailers) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string seen = "[POST / Host=h Transfer-Encoding=chunked keep]";
  std::string many;
  while (many.size() < 2 * kMaxHead) many += "X: y\r\n";
  for (const std::string& rest :
       {"0\r\nX: " + std::string(2 * kMaxHead, 'x') + "\r\n\r\n", "0\r\n" + many + "\r\n"}) {
    EXPECT_EQ(one_shot<RequestParser>(head + rest), seen + "error 431 too_large");
    EXPECT_EQ((transcript<RequestParser>({head, rest.substr(0, 5000), rest.substr(5000)})),
              seen + "error 431 too_large");
  }
}

TEST(RequestParser, KnowsWhoAwaitsAContinue) {
  const auto awaits = [](const std::string& line, const std::string& fields) {
    RequestParser parser(kMaxHead);
    EXPECT_TRUE(parser.next(line + "\r\nHost: h\r\n" + fields + "\r\n"));
    return parser.expects_continue();
  };
  const std::string length = "Content-Length: 7\r\n";
  const std::string expect = "Expect: 100-Continue\r\n";
  EXPECT_TRUE(awaits("POST / HTTP/1.1", length + expect));
  EXPECT_FALSE(awaits("POST / HTTP/1.1", length));
  EXPECT_FALSE(awaits("POST / HTTP/1.1", expect));
  EXPECT_FALSE(awaits("POST / HTTP/1.0", length + expect));
  EXPECT_EQ(request("POST / HTTP/1.1\r\nHost: h\r\nExpect: a-miracle\r\n\r\n"),
            "error 417 unsupported");
}

TEST(RequestParser, KnowsTheLength) {
  const auto length = [](const std::string& fields) {
    RequestParser parser(kMaxHead);
    EXPECT_TRUE(parser.next("POST / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n"));
    return parser.content_length();
  };
  EXPECT_EQ(length(""), 0u);
  EXPECT_EQ(length("Content-Length: 7\r\n"), 7u);
  EXPECT_EQ(length("Transfer-Encoding: chunked\r\n"), std::nullopt);
}

TEST(ResponseParser, ReadsResponses) {
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
            "[200 Content-Length=5 keep](hello)");
  EXPECT_EQ(response("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n"),
            "[404 Content-Length=0 keep]()");
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            "[200 Transfer-Encoding=chunked keep](abc)");
  EXPECT_EQ(
      response(
          "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
      "[204 keep]()[304 Content-Length=9 keep]()");
  EXPECT_EQ(response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
            "[100 keep]()[200 Content-Length=1 keep](x)");
}

TEST(ResponseParser, ReadsToTheEndOfTheConnection) {
  ResponseParser parser(kMaxHead);
  const std::string text = "HTTP/1.1 200 OK\r\n\r\nall of it";
  auto step = parser.next(text);
  ASSERT_EQ(step->event, ParseStep::Event::head);
  EXPECT_FALSE(parser.keep_alive());
  EXPECT_FALSE(parser.complete());
  EXPECT_EQ(parser.next(text.substr(step->consumed))->body, "all of it");
  EXPECT_TRUE(parser.next_eof());
}

TEST(ResponseParser, NoticesTruncation) {
  for (const std::string& text :
       {std::string("HTTP/1.1 200 OK\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n")}) {
    ResponseParser parser(kMaxHead);
    std::string rest = text;
    while (true) {
      const auto step = parser.next(rest);
      ASSERT_TRUE(step);
      rest.erase(0, step->consumed);
      if (step->event == ParseStep::Event::more) break;
      ASSERT_NE(step->event, ParseStep::Event::end);
    }
    EXPECT_FALSE(parser.next_eof()) << text;
  }
}

TEST(ResponseParser, AnswersToHeadHaveNoBody) {
  ResponseParser parser(kMaxHead);
  parser.reset(true);
  const auto step = parser.next("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1");
  ASSERT_TRUE(step);
  EXPECT_TRUE(parser.complete());
  EXPECT_EQ(parser.next("HTTP/1.1")->event, ParseStep::Event::end);
}

TEST(ResponseParser, AC04_RefusesAmbiguousFraming) {
  for (const auto& hostile : test::hostile_responses()) {
    EXPECT_THAT(response(hostile.text), testing::EndsWith("error 0 protocol")) << hostile.text;
  }
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
            "[200 Content-Length=5 Content-Length=5 keep](hello)");
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"),
            "[200 Content-Length=5, 5 keep](hello)");
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello"), "error 0 protocol");
}

// The space after the status is missing in the responses of some servers.
TEST(ResponseParser, ReadsAStatusLineWithoutReason) {
  EXPECT_EQ(response("HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n"), "[404 Content-Length=0 keep]()");
}

TEST(ResponseParser, AC07_LimitsTheHead) {
  EXPECT_EQ(
      one_shot<ResponseParser>("HTTP/1.1 200 OK\r\nX: " + std::string(kMaxHead, 'x') + "\r\n\r\n"),
      "error 0 too_large");
}

}  // namespace
}  // namespace gitops::http
