#pragma once

#include <string>
#include <vector>

namespace gitops::test {

// A head that no reader may accept, since another reader could take it for something else (AC-04).
struct HostileHead {
  std::string text;
  int status = 400;  // what a client is told; 0: one of 400, 501 and 505. Not for responses.
};

// Sent to both readers of request heads: http/parser, which handlers stand on, and proxy/head.
inline std::vector<HostileHead> hostile_requests() {
  using std::string;
  std::vector<HostileHead> all;
  const string post = "POST / HTTP/1.1\r\nHost: h\r\n";
  for (const string& fields : {
           string("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
           string("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
           string("Content-Length: 5\r\nContent-Length: 6\r\n"),
           string("Content-Length: 5\r\nContent-Length: 5\r\n"),
           string("Content-Length: 5, 5\r\n"),
           string("Content-Length: 5,6\r\n"),
           string("Content-Length: 1,1\r\n"),
           string("Content-Length: +5\r\n"),
           string("Content-Length: -5\r\n"),
           string("Content-Length: 0x5\r\n"),
           string("Content-Length: 5 5\r\n"),
           string("Content-Length: five\r\n"),
           string("Content-Length:\r\n"),
           string("Content-Length: 1111111111111111111\r\n"),
           string("Content-Length: 0000000000000000005\r\n"),
           string("Content-Length: 18446744073709551616\r\n"),
           string("Content-Length: 99999999999999999999999\r\n"),
           string("Content-Length : 5\r\n"),
           string("Content-Length\t: 5\r\n"),
           string(" Content-Length: 5\r\n"),
           string("Content-Length: \r\n 5\r\n"),
           string("X: y\r\n\tContent-Length: 5\r\n"),
           string("X: y\r\n z\r\n"),
           string("Transfer-Encoding : chunked\r\n"),
           string("Transfer-Encoding:\x0b"
                  "chunked\r\n"),
           string("Transfer-Encoding\x01: chunked\r\n"),
           string("Transfer-Encoding\r\n: chunked\r\n"),
           string("X: y\nTransfer-Encoding: chunked\r\n"),
           string("X: y\n\nGET /admin HTTP/1.1\r\n"),
           string("X: y\rTransfer-Encoding: chunked\r\n"),
           string("X: y\r\rZ: z\r\n"),
           string("X: y\rz\r\n"),
           string("X: y\n"),
           string("X: a\0b\r\n", 8),
           string("X\0: a\r\n", 7),
           string("X: \x01\r\n"),
           string("X: \x7f\r\n"),
           string(": x\r\n"),
           string("X\r\n"),
           string("X : y\r\n"),
           string("X Y: z\r\n"),
           string("X(: z\r\n"),
           string("(X): y\r\n"),
           string("\xc3\xa4: z\r\n"),
           string("Host: h\r\n"),
           string("Host: other\r\n"),
       }) {
    all.push_back({post + fields + "\r\n0\r\n\r\n"});
  }
  for (const char* coding :
       {"identity", "gzip", "gzip, chunked", "chunked, identity", "chunked, chunked", "xchunked",
        "chunkedx", "\"chunked\"", "chunked;q=1", "chunked,", ",chunked", ""}) {
    all.push_back({post + "Transfer-Encoding: " + coding + "\r\n\r\n0\r\n\r\n", 501});
  }
  for (const char* second : {"chunked", "identity"}) {
    all.push_back(
        {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: " + second + "\r\n\r\n0\r\n\r\n",
         0});
  }
  for (const string& line : {
           string("GET /"),  // HTTP/0.9
           string("GET / HTTP/1.1 "),
           string("GET  / HTTP/1.1"),
           string("GET /  HTTP/1.1"),
           string(" GET / HTTP/1.1"),
           string("GET\t/ HTTP/1.1"),
           string("GET /a b HTTP/1.1"),
           string("GET /\x01 HTTP/1.1"),
           string("GET /\0 HTTP/1.1", 16),
           string("GET /\x7f HTTP/1.1"),
           string("GET /\x80 HTTP/1.1"),
           string("GET /\xff HTTP/1.1"),
           string("GET /\xc3 HTTP/1.1"),
           string("GET /\xc0\xae\xc0\xae/ HTTP/1.1"),  // overlong dots
           string("GET /\xed\xa0\x80 HTTP/1.1"),
           string("GET /\xc3\xa4\x01 HTTP/1.1"),
           string("GET /#f HTTP/1.1"),
           string("GET /a#b HTTP/1.1"),
           string("GET x HTTP/1.1"),
           string("GET * HTTP/1.1"),
           string("GET h:80 HTTP/1.1"),
           string("GET ftp://h/ HTTP/1.1"),
           string("GET http:///x HTTP/1.1"),
           string("GET http://a@b/ HTTP/1.1"),
           string("G(T / HTTP/1.1"),
           string("GET / HTTP/1.1\rX: y"),
           string("GET / http/1.1"),
           string("GET / HTTP/11"),
           string("GET / HTTP/1.x"),
           string("\r\nGET / HTTP/1.1"),
           string("\x16\x03\x01\x02"),
           string("PRI * HTTP/2.0"),
       }) {
    all.push_back({line + "\r\nHost: h\r\n\r\n", 0});
  }
  for (const char* version : {"HTTP/1.2", "HTTP/2.0", "HTTP/3.0"}) {
    all.push_back({"GET / " + string(version) + "\r\nHost: h\r\n\r\n", 505});
  }
  for (const char* host :
       {"", "a b", "a,b", "a/b", "a@b", "a?b", "a#b", "a\\b", "\"a\"", "\xc3\xa4"}) {
    all.push_back({"GET / HTTP/1.1\r\nHost: " + string(host) + "\r\n\r\n"});
  }
  all.push_back({"GET / HTTP/1.1\r\n\r\n"});
  all.push_back({"GET / HTTP/1.1\nHost: h\n\n"});
  all.push_back({"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"});
  all.push_back({"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"});
  return all;
}

// The same for responses.
inline std::vector<HostileHead> hostile_responses() {
  std::vector<HostileHead> all;
  for (const char* text : {
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
           "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
           "HTTP/1.1 200 OK\nContent-Length: 5\n\n",
           "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n",
           "HTTP/1.1 99 Low\r\n\r\n",
           "HTTP/1.1 099 Low\r\n\r\n",
           "HTTP/1.1 20 x\r\n\r\n",
           "HTTP/1.1 20x OK\r\n\r\n",
           "HTTP/1.1 200x\r\n\r\n",
           "HTTP/1.1 200 a\rb\r\n\r\n",
           "HTTP/2 200 OK\r\n\r\n",
           "HTTP/2.0 200 OK\r\n\r\n",
           "ICY 200 OK\r\n\r\n",
           "SSH-2.0-OpenSSH\r\n",
           "\x15\x03\x01 binary\r\n\r\n",
       }) {
    all.push_back({text});
  }
  return all;
}

}  // namespace gitops::test
