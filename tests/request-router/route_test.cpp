#include "request-router/route.hpp"

#include <string>

#include <gmock/gmock.h>

namespace gitops::router {
namespace {

// A head as the core hands it over.
struct Parsed {
  explicit Parsed(const std::string& method, const std::string& target)
      : text(method + " " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"), parser({}) {
    const auto size = parser.next(text);
    ok = size && *size == text.size();
  }
  std::string text;
  http::RequestHeadParser parser;
  bool ok = false;
};

struct Found {
  RouteKind kind;
  int status;
  std::string target;
};

Found find(const std::string& method, const std::string& target) {
  const Parsed parsed(method, target);
  if (!parsed.ok) return {RouteKind::none, 400, {}};
  const auto match = match_route(parsed.parser.head());
  return {match.kind, match.status,
          match.rewritten.empty() ? std::string(match.target) : match.rewritten};
}

Found get(const std::string& target) {
  return find("GET", target);
}

void expect_forwarded(const std::string& target, RouteKind kind, const std::string& forwarded) {
  const auto found = get(target);
  EXPECT_EQ(found.status, 0) << target;
  EXPECT_EQ(found.kind, kind) << target;
  EXPECT_EQ(found.target, forwarded) << target;
}

void expect_refused(const std::string& target, int status) {
  const auto found = get(target);
  EXPECT_EQ(found.status, status) << target;
  EXPECT_TRUE(found.target.empty() || status == 405) << target;
}

void expect_unknown(const std::string& target) {
  const auto found = get(target);
  EXPECT_EQ(found.kind, RouteKind::none) << target;
  EXPECT_EQ(found.status, 0) << target;
}

TEST(Route, PassesAppProxyTargetsUntouched) {
  for (const auto* target :
       {"/app-proxy", "/app-proxy/", "/app-proxy/api/graphql?query=%7Ba%7D&x=1+2",
        "/app-proxy/a%2Fb%20c%3Fd%23e;f=1", "/app-proxy//double///slash", "/app-proxy?a=/../b",
        "/app-proxy/webhooks/argo/github/x", "/app-proxy/a%252e%252e/b", "/app-proxy/...",
        "/app-proxy/a..b/.c"}) {
    expect_forwarded(target, RouteKind::app_proxy, target);
  }
  expect_forwarded("http://other.example/app-proxy/abs?x", RouteKind::app_proxy,
                   "/app-proxy/abs?x");
}

// The core encodes what it forwards.
TEST(Route, TakesUtf8WhereItTakesItsEscapes) {
  for (const auto* target :
       {"/app-proxy/caf\xc3\xa9?q=\xe2\x82\xac", "/webhooks/argo/github/\xc3\xa4"}) {
    const auto kind =
        std::string(target).starts_with("/app-proxy") ? RouteKind::app_proxy : RouteKind::webhook;
    expect_forwarded(target, kind, target);
  }
  expect_forwarded("/workflows/\xc3\xa4/../x", RouteKind::workflows, "/x");
  expect_refused("/app-proxy/\xc3\xa4/%2e%2e/x", 400);
  expect_refused("/app-proxy/\xc0\xae\xc0\xae/x", 400);
  expect_unknown("/webhooks/argo/caf\xc3\xa9");
}

TEST(Route, WritesOutNeedlessEscapes) {
  expect_forwarded("/app%2Dproxy/y%7e?z=%2D", RouteKind::app_proxy, "/app-proxy/y~?z=%2D");
  expect_forwarded("/%61pp-proxy", RouteKind::app_proxy, "/app-proxy");
}

TEST(Route, StripsOnePrefixOfWorkflows) {
  expect_forwarded("/workflows/", RouteKind::workflows, "/");
  expect_forwarded("/workflows/api/v1/info?x=1", RouteKind::workflows, "/api/v1/info?x=1");
  expect_forwarded("/workflows/workflows/x", RouteKind::workflows, "/workflows/x");
  expect_forwarded("/workflows/a%2Fb%20c%3Fd%25e", RouteKind::workflows, "/a%2Fb%20c%3Fd%25e");
  expect_forwarded("/workflows//api//v1", RouteKind::workflows, "//api//v1");
  expect_forwarded("/workflows/webhooks/argo/github/x", RouteKind::workflows,
                   "/webhooks/argo/github/x");
  expect_forwarded("/workflows", RouteKind::workflows_redirect, "/workflows/");
  expect_forwarded("/workflows?a=b", RouteKind::workflows_redirect, "/workflows/?a=b");
}

TEST(Route, ResolvesPlainDotsBelowWorkflowsOnly) {
  expect_forwarded("/workflows/artifacts/ns/wf/../../secret", RouteKind::workflows,
                   "/artifacts/secret");
  expect_forwarded("/workflows/a/./b/..", RouteKind::workflows, "/a/");
  expect_refused("/workflows/..", 400);
  expect_refused("/workflows/../app-proxy/x", 400);
  expect_refused("/workflows/a/../../app-proxy", 400);
  expect_refused("/workflows/a/%2e%2e/b", 400);
}

TEST(Route, AC03_RefusesAmbiguousPaths) {
  for (const auto* target : {"/app-proxy/./a/../b",
                             "/app-proxy/../secret",
                             "/app-proxy/..%2f..%2fetc/passwd",
                             "/app-proxy/%2e%2e/workflows/api",
                             "/app-proxy/%2e%2e/%2e%2e/x",
                             "/app-proxy/a%00b",
                             "/app-proxy/%zz",
                             "/app-proxy/%",
                             "/app-proxy/%2",
                             "/app-proxy/%0d%0aX:1",
                             "/app-proxy/%7f",
                             "/x/../app-proxy/y",
                             "/app-proxy\\..\\x",
                             "/app-proxy/..%5c..%5cx",
                             "/app-proxy/..;/x",
                             "/app-proxy/..;a=b/x",
                             "/app-proxy/%2e%2e;/x",
                             "/app-proxy/.%2e/x",
                             "/app-proxy/a%2f..%2fb",
                             "/webhooks/../app-proxy/x",
                             "/webhooks/argo/../github/x",
                             "/webhooks/argo/github/../x",
                             "/webhooks/argo/github/%2e%2e/x",
                             "/webhooks/argo/github/%zz",
                             "/nope/../x"}) {
    expect_refused(target, 400);
  }
}

TEST(Route, AnchorsPrefixesAtSegments) {
  for (const auto* target :
       {"/", "/nope", "/app-proxyevil/x", "/APP-PROXY/x", "//app-proxy/y", "/app-proxy;x/y",
        "/workflowsX/a", "/healthzzz/extra", "/healthz/", "/healthz/webhooks/argo/github",
        "/prefix/webhooks/argo/github/x", "/webhooksX/argo/github", "/WEBHOOKS/argo/github/x",
        "/app-proxy%2Fx"}) {
    expect_unknown(target);
  }
}

TEST(Route, TakesWebhooksOfTwoLabels) {
  const Parsed parsed("POST", "/webhooks/my-ns/github-1/push?x=%2e");
  const auto match = match_route(parsed.parser.head());
  EXPECT_EQ(match.kind, RouteKind::webhook);
  EXPECT_EQ(match.ns, "my-ns");
  EXPECT_EQ(match.event_source, "github-1");
  EXPECT_EQ(match.target, "/webhooks/my-ns/github-1/push?x=%2e");
  expect_forwarded("/webhooks/argo/github", RouteKind::webhook, "/webhooks/argo/github");
  expect_forwarded("/webhooks/argo/github/", RouteKind::webhook, "/webhooks/argo/github/");
  expect_forwarded("/webhooks/argo/github/a%2Fb%3Fc%20d?e=f", RouteKind::webhook,
                   "/webhooks/argo/github/a%2Fb%3Fc%20d?e=f");
}

TEST(Route, AC01_LabelsAreTakenBeforeAnyDecoding) {
  const std::string longest(63, 'a');
  expect_forwarded("/webhooks/" + longest + "/x", RouteKind::webhook,
                   "/webhooks/" + longest + "/x");
  for (const std::string target : {"/webhooks",
                                   "/webhooks/",
                                   "/webhooks/argo",
                                   "/webhooks/argo/",
                                   "/webhooks/argo//github/x",
                                   "/webhooks/argo%2Fgithub/x",
                                   "/webhooks/ARGO/GitHub/x",
                                   "/webhooks/foo/127.0.0.11:8443%3Fa=1/x",
                                   "/webhooks/foo/victim.internal%3F/x",
                                   "/webhooks/evil.example%3F/es/x",
                                   "/webhooks/argo/git%0d%0ahub/x",
                                   "/webhooks/argo/a%23/x",
                                   "/webhooks/argo/a:80/x",
                                   "/webhooks/argo/[::1]/x",
                                   "/webhooks/argo/a%3A80/x",
                                   "/webhooks/a.b/es/x",
                                   "/webhooks/a@b/es",
                                   "/webhooks/a%20b/es",
                                   "/webhooks/argo/a%0a/x",
                                   "/webhooks/unix:/run/x",
                                   "/webhooks/unix%3A%2Frun/x",
                                   "/webhooks/%2e%2e/es",
                                   "/webhooks/argo/%67ithub/x",
                                   "/webhooks/-a/es",
                                   "/webhooks/a-/es",
                                   "/webhooks/a_b/es",
                                   "/webhooks/2130706433.x/es"}) {
    expect_unknown(target);
  }
  expect_unknown("/webhooks/" + longest + "a/x");
}

TEST(Route, RefusesMethodsAndFormsThatNobodyNeeds) {
  EXPECT_EQ(find("TRACE", "/app-proxy/x").status, 405);
  EXPECT_EQ(find("CONNECT", "a:1").status, 405);
  EXPECT_EQ(find("OPTIONS", "*").status, 400);
  EXPECT_EQ(find("POST", "/readyz").status, 405);
  EXPECT_EQ(find("HEAD", "/healthz").kind, RouteKind::health);
  EXPECT_EQ(find("HEAD", "/healthz").status, 0);
}

TEST(Route, KnowsLabels) {
  EXPECT_TRUE(is_dns_label("a"));
  EXPECT_TRUE(is_dns_label("0-9"));
  EXPECT_FALSE(is_dns_label(""));
  EXPECT_FALSE(is_dns_label("A"));
  EXPECT_FALSE(is_dns_label("a.b"));
  EXPECT_FALSE(is_dns_label("a\n"));
}

}  // namespace
}  // namespace gitops::router
