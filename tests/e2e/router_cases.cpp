#include "e2e/router_cases.hpp"

#include <utility>

#include "daemons/router_harness.hpp"

namespace gitops::test {
namespace {

std::string request(const std::string& method, const std::string& target,
                    const std::string& more = {}, const std::string& body = {}) {
  return RouterHarness::request(method, target, more, body);
}

RouterCase passes(int number, const std::string& method, const std::string& target,
                  const std::string& upstream, const std::string& forwarded,
                  const std::string& body = {}) {
  return {number, request(method, target, {}, body), 200, upstream, forwarded};
}

RouterCase untouched(int number, const std::string& method, const std::string& target,
                     const std::string& upstream, const std::string& body = {}) {
  return passes(number, method, target, upstream, target, body);
}

RouterCase refused(int number, const std::string& target, int status,
                   const std::string& method = "GET") {
  return {number, request(method, target), status};
}

}  // namespace

std::vector<RouterCase> router_cases() {
  const std::string json = R"({"query":"{a}"})";
  std::vector<RouterCase> all{
      refused(1, "/healthz", 200),
      refused(2, "/healthzzz/extra", 404),
      refused(3, "/readyz", 405, "POST"),
      refused(3, "/healthz", 200, "HEAD"),
      refused(4, "/", 404),
      refused(5, "/nope", 404),
      refused(5, "/nope", 404, "POST"),
      untouched(6, "GET", "/app-proxy", "app-proxy"),
      untouched(7, "GET", "/app-proxy/", "app-proxy"),
      refused(8, "/app-proxyevil/x", 404),
      refused(9, "/APP-PROXY/x", 404),
      untouched(10, "GET", "/app-proxy/api/graphql?query=%7Ba%7D&x=1+2", "app-proxy"),
      untouched(12, "GET", "/app-proxy/a%2Fb%20c%3Fd%23e;f=1", "app-proxy"),
      untouched(13, "GET", "/app-proxy//double///slash", "app-proxy"),
      refused(14, "/app-proxy/./a/../b", 400),
      refused(15, "/app-proxy/../secret", 400),
      refused(16, "/app-proxy/..%2f..%2fetc/passwd", 400),
      refused(17, "/app-proxy/%2e%2e/workflows/api", 400),
      refused(18, "/app-proxy/%2e%2e/%2e%2e/x", 400),
      refused(19, "/app-proxy/a%00b", 400),
      refused(19, "/app-proxy/%zz", 400),
      refused(20, "/x/../app-proxy/y", 400),
      refused(21, "//app-proxy/y", 404),
      passes(22, "GET", "/app%2Dproxy/y", "app-proxy", "/app-proxy/y"),
      passes(23, "GET", "http://other.example/app-proxy/abs", "app-proxy", "/app-proxy/abs"),
      refused(24, "/app-proxy\\..\\x", 400),
      untouched(25, "OPTIONS", "/app-proxy/x", "app-proxy"),
      untouched(25, "DELETE", "/app-proxy/x", "app-proxy"),
      untouched(25, "PATCH", "/app-proxy/x", "app-proxy", json),
      refused(26, "/app-proxy/x", 405, "TRACE"),
      refused(27, "a:1", 405, "CONNECT"),
      {37, "GET /app-proxy/x HTTP/1.1\r\n\r\n", 400},
      {37, "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {37,
       "POST /app-proxy/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {37, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {38, "GET /healthz HTTP/1.0\r\n\r\n", 200},
      passes(49, "GET", "/workflows/", "workflows", "/"),
      passes(49, "GET", "/workflows/api/v1/info?x=1", "workflows", "/api/v1/info?x=1"),
      refused(50, "/workflowsX/a", 404),
      passes(51, "GET", "/workflows/a%2Fb%20c%3Fd%25e", "workflows", "/a%2Fb%20c%3Fd%25e"),
      passes(52, "GET", "/workflows//api//v1", "workflows", "//api//v1"),
      passes(53, "GET", "/workflows/workflows/x", "workflows", "/workflows/x"),
      passes(54, "GET", "/workflows/artifacts/ns/wf/../../secret", "workflows",
             "/artifacts/secret"),
      untouched(56, "POST", "/webhooks/argo/github/push", "events", json),
      untouched(57, "POST", "/webhooks/argo/github", "events", json),
      untouched(57, "POST", "/webhooks/argo/github/", "events", json),
      refused(58, "/webhooks/argo", 404, "POST"),
      refused(58, "/webhooks/argo/", 404, "POST"),
      refused(59, "/webhooks/argo//github/x", 404, "POST"),
      untouched(60, "GET", "/webhooks/argo/github?challenge=1", "events"),
      untouched(61, "POST", "/webhooks/argo/github/a%2Fb%3Fc%20d?e=f", "events", json),
      refused(62, "/webhooks/argo/nosuch/x", 404, "POST"),
      refused(64, "/prefix/webhooks/argo/github/x", 404, "POST"),
      untouched(65, "POST", "/app-proxy/webhooks/argo/github/x", "app-proxy", json),
      passes(66, "POST", "/workflows/webhooks/argo/github/x", "workflows",
             "/webhooks/argo/github/x", json),
      refused(66, "/healthz/webhooks/argo/github", 404),
      refused(67, "/webhooks/argo%2Fgithub/x", 404, "POST"),
      refused(68, "/WEBHOOKS/argo/github/x", 404, "POST"),
      refused(68, "/webhooks/ARGO/GitHub/x", 404, "POST"),
      refused(69, "/webhooks/kube-system/victim/x", 403, "POST"),
      refused(77, "/webhooks/../app-proxy/x", 400),
      refused(78, "/webhooks/argo/../github/x", 400),
  };
  // 70 to 76: segments that are not DNS labels.
  const std::vector<std::pair<int, std::string>> segments{
      {70, "foo/127.0.0.11:8443%3Fa=1"},
      {71, "foo/victim.internal%3F"},
      {72, "evil.example%3F/es"},
      {73, "argo/git%0d%0ahub"},
      {73, "argo%0D%0AX:1/github"},
      {74, "argo/a%23b"},
      {74, "argo/a:8443"},
      {74, "argo/a%3A8443"},
      {74, "argo/%5B::1%5D"},
      {75, "a.b/github"},
      {75, "argo@b/github"},
      {75, "argo/git%20hub"},
      {75, "argo/github%0a"},
      {76, "unix:/github"},
      {76, "argo/unix:%2Frun%2Fx"},
  };
  for (const auto& [number, segment] : segments) {
    all.push_back(refused(number, "/webhooks/" + segment + "/x", 404, "POST"));
  }
  return all;
}

}  // namespace gitops::test
