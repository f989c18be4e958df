// The router beside nginx, configured with the semantics of the router it replaces, and beside
// HAProxy: each gets the same bytes. Every difference is listed here and intended.
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/http/hostile_heads.hpp"
#include "daemons/router_harness.hpp"
#include "e2e/router_cases.hpp"
#include "e2e/router_differential_harness.hpp"

namespace gitops::test {
namespace {

TEST(RouterDifferential, CasesDifferFromNginxWhereTheyShould) {
  // 70 to 76 are hostile segments, which the other proxies do not check.
  const std::set<int> meant{2,  3,  8,  14, 15, 17, 20, 21, 22, 24, 27, 51,
                            52, 59, 62, 64, 65, 66, 67, 68, 69, 77, 78};
  RouterHarness ours;
  OtherProxy nginx("nginx");
  std::set<int> different;
  for (const auto& each : router_cases()) {
    if (each.number >= 70 && each.number <= 76) continue;
    const auto mine = outcome_of(ours, ours.port(), each.bytes);
    EXPECT_NE(mine.status, 0) << "case " << each.number;
    const auto theirs = outcome_of(nginx, nginx.port(), each.bytes);
    if (mine == theirs) continue;
    different.insert(each.number);
    EXPECT_TRUE(meant.contains(each.number))
        << "case " << each.number << "\nours:  " << mine << "\nnginx: " << theirs;
  }
  for (const int number : meant) {
    EXPECT_TRUE(different.contains(number)) << "case " << number << " is as with nginx";
  }
}

// Targets composed of fixed pieces.
std::vector<std::string> generated_targets(const std::vector<std::string>& pieces,
                                           std::size_t count) {
  std::mt19937 random(5);
  const std::vector<std::string> starts{"/app-proxy", "/workflows", "/webhooks/argo/github",
                                        "/x",         "/healthz",   "/app-proxyx"};
  std::vector<std::string> targets;
  for (std::size_t i = 0; i < count; ++i) {
    std::string target = starts[random() % starts.size()];
    for (auto left = random() % 5; left > 0; --left) {
      target += "/" + pieces[random() % pieces.size()];
    }
    if (random() % 3 == 0) target += "?a=/../%2e&b=" + pieces[random() % pieces.size()];
    targets.push_back(target);
  }
  return targets;
}

TEST(RouterDifferential, PlainTargetsAreAsWithNginx) {
  RouterHarness ours;
  OtherProxy nginx("nginx");
  for (const auto& target : generated_targets(
           {"a", "b-c", "api", "v1", "a;b=c", "a%20b", "%C3%A4", "a:b@c", "~x", "..."}, 150)) {
    if (target.starts_with("/app-proxyx") || target.starts_with("/healthz/")) continue;  // 2 and 8
    const auto bytes = RouterHarness::request("GET", target);
    const auto outcome = outcome_of(ours, ours.port(), bytes);
    EXPECT_NE(outcome.status, 0) << target;
    EXPECT_EQ(outcome, outcome_of(nginx, nginx.port(), bytes)) << target;
  }
}

TEST(RouterDifferential, AC03_OddTargetsAreRefusedOrGoWhereTheySay) {
  RouterHarness ours;
  for (const auto& target :
       generated_targets({"a", "..", ".", "%2e%2e", "%2F", "..%2f", "..;", "", "%5c..", "%00", "\\",
                          "webhooks", "%252e%252e", "app-proxy"},
                         300)) {
    const auto outcome = outcome_of(ours, ours.port(), RouterHarness::request("GET", target));
    if (outcome.status != 200 || target.starts_with("/healthz")) {
      EXPECT_EQ(outcome.requests.size(), 0U) << target;
      continue;
    }
    ASSERT_EQ(outcome.requests.size(), 1U) << target;
    const auto& request = outcome.requests[0];
    if (target.starts_with("/app-proxy")) {
      EXPECT_EQ(request, "app-proxy GET " + target + " ");
    } else if (target.starts_with("/webhooks/")) {
      EXPECT_EQ(request, "events GET " + target + " ");
    } else {
      EXPECT_TRUE(target.starts_with("/workflows/")) << target;
      EXPECT_TRUE(request.starts_with("workflows GET /")) << request;
    }
  }
}

// Inputs on which HTTP parsers have disagreed.
struct Smuggling {
  std::string name;
  std::string bytes;
  int status;         // the router's first status
  std::size_t taken;  // requests that reach an upstream
};

std::vector<Smuggling> smuggling_corpus() {
  const std::string post = "POST /app-proxy/x HTTP/1.1\r\nHost: a\r\n";
  const std::string hidden = "GET /app-proxy/hidden HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  return {
      {"CL and TE", post + "Content-Length: 6\r\n" + chunked + "0\r\n\r\n" + hidden, 400, 0},
      {"TE and CL", post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", 400,
       0},
      {"two lengths", post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400, 0},
      {"two equal lengths", post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, 0},
      {"list of lengths", post + "Content-Length: 3, 3\r\n\r\nabc", 400, 0},
      {"signed length", post + "Content-Length: +3\r\n\r\nabc", 400, 0},
      {"negative length", post + "Content-Length: -3\r\n\r\nabc", 400, 0},
      {"hexadecimal length", post + "Content-Length: 0x3\r\n\r\nabc", 400, 0},
      {"huge length", post + "Content-Length: 99999999999999999999\r\n\r\nabc", 400, 0},
      {"empty length", post + "Content-Length: \r\n\r\n", 400, 0},
      {"space before colon", post + "Content-Length : 3\r\n\r\nabc", 400, 0},
      {"space before TE colon", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400, 0},
      {"folded TE", post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 501, 0},
      {"folded field", post + "X: a\r\n b\r\nContent-Length: 0\r\n\r\n", 400, 0},
      {"TE xchunked", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, 0},
      {"TE identity", post + "Transfer-Encoding: identity\r\n\r\n", 501, 0},
      {"TE chunked, identity", post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501,
       0},
      {"TE gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, 0},
      {"TE twice", post + "Transfer-Encoding: chunked\r\n" + chunked + "0\r\n\r\n", 400, 0},
      {"TE with tab", post + "Transfer-Encoding: \tchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, 1},
      {"TE quoted", post + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501, 0},
      {"TE with vertical tab", post + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", 400, 0},
      {"TE in 1.0", "POST /app-proxy/x HTTP/1.0\r\n" + chunked + "0\r\n\r\n", 400, 0},
      {"bare LF", "GET /app-proxy/x HTTP/1.1\nHost: a\n\n", 400, 0},
      {"bare LF in a field", "GET /app-proxy/x HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, 0},
      {"bare CR in a field", "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\nX: b\rY: c\r\n\r\n", 400, 0},
      {"NUL in a field",
       "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\nX: " + std::string(1, '\0') + "\r\n\r\n", 400, 0},
      {"no colon", "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 400, 0},
      {"empty name", "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400, 0},
      {"two hosts", "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, 0},
      {"host with slash", "GET /app-proxy/x HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, 0},
      {"host with user", "GET /app-proxy/x HTTP/1.1\r\nHost: a@b\r\n\r\n", 400, 0},
      {"no version", "GET /app-proxy/x\r\n\r\n", 400, 0},
      {"version 2", "GET /app-proxy/x HTTP/2.0\r\nHost: a\r\n\r\n", 505, 0},
      {"version 1.2", "GET /app-proxy/x HTTP/1.2\r\nHost: a\r\n\r\n", 505, 0},
      {"lower case version", "GET /app-proxy/x http/1.1\r\nHost: a\r\n\r\n", 400, 0},
      {"two spaces", "GET  /app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0},
      {"space in the target", "GET /app-proxy/x y HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0},
      {"tab for space", "GET\t/app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0},
      {"leading blank line", "\r\nGET /app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n", 200, 1},
      {"blank line behind a body", post + "Content-Length: 3\r\n\r\nabc\r\n" + hidden, 200, 2},
      {"fragment", "GET /app-proxy/x#y HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, 0},
      {"TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00", 7), 400, 0},
      {"chunk extension", post + chunked + "3;a=b\r\nabc\r\n0\r\n\r\n", 200, 1},
      {"chunk with LF", post + chunked + "3\nabc\r\n0\r\n\r\n", 400, 0},
      {"chunk with sign", post + chunked + "+3\r\nabc\r\n0\r\n\r\n", 400, 0},
      {"chunk with 0x", post + chunked + "0x3\r\nabc\r\n0\r\n\r\n", 400, 0},
      {"chunk with space", post + chunked + "3 \r\nabc\r\n0\r\n\r\n", 400, 0},
      {"chunk too long", post + chunked + "3\r\nabcd\r\n0\r\n\r\n", 400, 0},
      {"huge chunk", post + chunked + "fffffffffffffffff\r\nabc\r\n0\r\n\r\n", 400, 0},
      {"no chunk size", post + chunked + "\r\nabc\r\n0\r\n\r\n", 400, 0},
      {"LF in a chunk extension", post + chunked + "3;a\nb\r\nabc\r\n0\r\n\r\n", 400, 0},
      {"trailer with a length", post + chunked + "0\r\nContent-Length: 5\r\n\r\n", 400, 0},
      {"folded trailer", post + chunked + "0\r\nX: a\r\n b\r\n\r\n", 400, 0},
      {"GET with a body", "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
       200, 1},
      {"pipelined", hidden + hidden, 200, 2},
      {"pipelined behind a body", post + "Content-Length: 3\r\n\r\nabc" + hidden, 200, 2},
      {"pipelined behind chunks", post + chunked + "3\r\nabc\r\n0\r\n\r\n" + hidden, 200, 2},
      {"pipelined behind an error",
       "GET /app-proxy/%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + hidden, 400, 0},
      {"pipelined behind a malformed head", "GET /app-proxy/x HTTP/1.1\r\nX : y\r\n\r\n" + hidden,
       400, 0},
      {"1.0 keep-alive", "GET /app-proxy/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + hidden,
       200, 2},
      {"1.0 ends", "GET /app-proxy/x HTTP/1.0\r\n\r\n" + hidden, 200, 1},
      {"length dropped by Connection",
       post + "Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc" + hidden, 200, 2},
      {"upgrade with a body",
       post + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc", 200, 1},
      {"unknown expectation", post + "Expect: 200-ok\r\nContent-Length: 3\r\n\r\nabc", 417, 0},
  };
}

TEST(RouterDifferential, AC04_SmugglingIsRefusedAtLeastWhereOthersDo) {
  // Inputs that nginx or HAProxy refuse and the router accepts.
  const std::set<std::string> more_patient{
      "TE with tab",  // RFC 9110: white space around a value is not part of it
  };
  RouterHarness ours;
  OtherProxy nginx("nginx");
  OtherProxy haproxy("haproxy");
  std::set<std::string> patient;
  for (const auto& each : smuggling_corpus()) {
    SCOPED_TRACE(each.name);
    const auto mine = outcome_of(ours, ours.port(), each.bytes, true);
    EXPECT_EQ(mine.status, each.status);
    EXPECT_EQ(mine.requests.size(), each.taken) << mine;
    const auto by_nginx = outcome_of(nginx, nginx.port(), each.bytes, true);
    const auto by_haproxy = outcome_of(haproxy, haproxy.port(), each.bytes, true);
    const bool others_refuse = by_nginx.status != 200 || by_haproxy.status != 200;
    if (others_refuse && mine.status == 200) patient.insert(each.name);
    // Every proxy that accepts the input must see the same requests.
    for (const auto& theirs : {by_nginx, by_haproxy}) {
      if (mine.status == 200 && theirs.status == 200 && mine.requests.size() > 0) {
        EXPECT_EQ(mine.requests, theirs.requests);
        EXPECT_EQ(mine.further, theirs.further);
      }
    }
  }
  EXPECT_EQ(patient, more_patient);
}

// Answers of an upstream on which HTTP parsers have disagreed.
struct HostileAnswer {
  std::string bytes;
  int status;             // for the client; 0: any, but not a complete answer
  std::string body = {};  // of a complete one with status 200
};

std::vector<HostileAnswer> hostile_answers() {
  std::vector<HostileAnswer> all;
  for (const auto& head : hostile_responses()) all.push_back({.bytes = head.text, .status = 502});
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::string chunked = ok + "Transfer-Encoding: chunked\r\n\r\n";
  const auto incomplete = [&all](const std::string& bytes) { all.push_back({bytes, 0}); };
  const auto whole = [&all](const std::string& bytes, const std::string& body) {
    all.push_back({bytes, 200, body});
  };
  all.push_back({ok + "X: a\nSet-Cookie: evil\r\nContent-Length: 0\r\n\r\n", 502});
  all.push_back({ok + "X: a\rSet-Cookie: evil\r\nContent-Length: 0\r\n\r\n", 502});
  all.push_back({ok + "X : a\r\nContent-Length: 0\r\n\r\n", 502});
  all.push_back({ok + "Content-Length: -1\r\n\r\n", 502});
  all.push_back({ok + "Content-Length: 0x2\r\n\r\nok", 502});
  all.push_back({ok + "Content-Length: 2, 2\r\n\r\nok", 502});
  incomplete(ok + "Content-Length: 5\r\n\r\nhalf");
  incomplete(chunked + "4\r\nhalf\r\n");
  incomplete(chunked + "zz\r\nhalf\r\n0\r\n\r\n");
  incomplete(chunked + "4\nhalf\r\n0\r\n\r\n");
  incomplete(chunked + "4\r\nhalf2\r\n0\r\n\r\n");
  incomplete(chunked + "-4\r\nhalf\r\n0\r\n\r\n");
  incomplete(chunked + "4\r\nhalf\r\n0\r\n");
  whole(ok + "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nevil", "ok");
  whole(chunked + "2;a=b\r\nok\r\n0\r\n\r\nevil", "ok");
  whole("HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nok", "ok");
  whole("HTTP/1.0 200 OK\r\n\r\nok", "ok");
  return all;
}

TEST(RouterDifferential, AC06_HostileAnswersAreRefusedOrReadAsOthersDo) {
  std::mutex mutex;  // a proxy may have given up a request that its upstream still answers
  std::string bytes;
  const auto answer = [&](const RecordedRequest&, RawSocket& socket) {
    std::unique_lock lock(mutex);
    const auto now = bytes;
    lock.unlock();
    socket.send(now);
    return false;
  };
  RouterHarness ours({.app_proxy = answer});
  OtherProxy nginx("nginx", answer);
  OtherProxy haproxy("haproxy", answer);
  const auto call = [](std::uint16_t port) {
    return raw_call(port, RouterHarness::request("GET", "/app-proxy/x", "Connection: close\r\n"));
  };
  for (const auto& each : hostile_answers()) {
    SCOPED_TRACE(each.bytes);
    {
      const std::lock_guard lock(mutex);
      bytes = each.bytes;
    }
    const auto mine = call(ours.port());
    EXPECT_FALSE(mine.head.contains("evil")) << mine.head;
    if (each.status == 0) {
      EXPECT_FALSE(mine.status == 200 && mine.complete) << mine.head << mine.body;
    } else {
      EXPECT_EQ(mine.status, each.status);
      EXPECT_TRUE(mine.complete);
    }
    if (each.status != 200) continue;
    EXPECT_EQ(mine.body, each.body);
    for (const auto port : {nginx.port(), haproxy.port()}) {
      const auto theirs = call(port);
      if (theirs.status == 200 && theirs.complete) EXPECT_EQ(theirs.body, mine.body);
    }
  }
}

}  // namespace
}  // namespace gitops::test
