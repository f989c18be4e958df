#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "request-router/access_log.hpp"
#include "request-router/config.hpp"
#include "request-router/error_answer.hpp"
#include "request-router/gate.hpp"
#include "request-router/signature.hpp"
#include "request-router/webhook_target.hpp"

namespace gitops::router {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(WebhookHost, IsTheServiceOfTheEventSource) {
  const WebhookRules rules{.namespaces = {"argo"}, .cluster_domain = "corp.local"};
  EXPECT_EQ(webhook_host("argo", "github", rules), "github-eventsource-svc.argo.svc.corp.local");
  EXPECT_EQ(webhook_host("kube-system", "x", rules).error().code, ErrorCode::forbidden);
  EXPECT_EQ(webhook_host("argo", std::string(48, 'a'), rules).error().code, ErrorCode::not_found);
  EXPECT_TRUE(webhook_host("argo", std::string(47, 'a'), rules));
  EXPECT_TRUE(webhook_host("any", "x", {.namespaces = {"*"}}));
  EXPECT_FALSE(webhook_host("any", "x", {.namespaces = {}}));
}

TEST(ErrorAnswer, IsJsonOrAPage) {
  const auto json = error_answer(502, "it is \"down\"", std::nullopt);
  EXPECT_EQ(nlohmann::json::parse(json.body),
            (nlohmann::json{
                {"statusCode", 502}, {"message", "it is \"down\""}, {"error", "Bad Gateway"}}));
  EXPECT_EQ(json.headers.find("Retry-After"), "5");
  const auto page = error_answer(404, "<script>", "text/html,application/json");
  EXPECT_EQ(page.headers.find("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, Not(HasSubstr("<script>")));
  EXPECT_EQ(page.headers.find("Retry-After"), std::nullopt);
  EXPECT_EQ(error_answer(404, "", "application/json, text/html").headers.find("Content-Type"),
            "application/json");
  for (const int status :
       {400, 403, 404, 405, 408, 413, 414, 417, 429, 431, 501, 502, 503, 504, 505}) {
    EXPECT_THAT(error_answer(status, "", std::nullopt).body, Not(HasSubstr("Unknown"))) << status;
  }
}

TEST(AccessLine, HoldsNoQuery) {
  const std::string text =
      "GET /app-proxy/a\"b?token=canary HTTP/1.1\r\nHost: h\r\ntraceparent: 00-ab\r\n\r\n";
  proxy::RequestHeadParser parser({});
  ASSERT_TRUE(parser.next(text));
  proxy::ExchangeRecord record;
  record.head = &parser.head();
  record.status = 502;
  record.failure = proxy::Failure::connect_failed;
  record.detail = "refused";
  record.request_id = "id";
  record.took = std::chrono::microseconds(1500);
  std::string line;
  append_access_line(line, record, "10.0.0.1", "2026-01-01T00:00:00.000Z");
  EXPECT_THAT(line, Not(HasSubstr("canary")));
  ASSERT_TRUE(line.ends_with("\n"));
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["path"], "/app-proxy/a\"b");
  EXPECT_EQ(json["status"], 502);
  EXPECT_EQ(json["route"], "none");
  EXPECT_EQ(json["duration_us"], 1500);
  EXPECT_EQ(json["failure"], "connect_failed");
  EXPECT_EQ(json["traceparent"], "00-ab");
  EXPECT_EQ(json["client"], "10.0.0.1");
}

TEST(AccessLine, ToleratesHeadsThatCouldNotBeRead) {
  std::string line;
  append_access_line(line, {}, "x", "now");
  EXPECT_FALSE(nlohmann::json::parse(line).contains("path"));
}

TEST(Gate, LetsABurstInAndThenTheRate) {
  Gate gate({.rate = 10});
  auto now = Clock::time_point(std::chrono::hours(1));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(gate.enter(now)) << i;
  EXPECT_FALSE(gate.enter(now));
  now += std::chrono::milliseconds(150);
  EXPECT_TRUE(gate.enter(now));
  EXPECT_FALSE(gate.enter(now));
  now += std::chrono::hours(1);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(gate.enter(now)) << i;
  EXPECT_FALSE(gate.enter(now));
}

TEST(Gate, CountsWhoIsInside) {
  Gate gate({.concurrency = 2});
  const Clock::time_point now;
  std::optional<Gate::Place> first(gate.enter(now));
  const auto second = gate.enter(now);
  EXPECT_TRUE(*first);
  EXPECT_TRUE(second);
  EXPECT_FALSE(gate.enter(now));
  first.reset();
  const auto third = gate.enter(now);
  EXPECT_TRUE(third);
  EXPECT_EQ(gate.inside(), 2);
}

TEST(Gate, IsUnusedWhenItWouldLetInWhatANewOneDoes) {
  Gate gate({.rate = 10, .concurrency = 2});
  const auto now = Clock::time_point(std::chrono::hours(1));
  EXPECT_TRUE(gate.unused(now));
  std::optional<Gate::Place> place(gate.enter(now));
  EXPECT_TRUE(*place);
  EXPECT_FALSE(gate.unused(now + std::chrono::hours(1)));
  place.reset();
  EXPECT_FALSE(gate.unused(now + std::chrono::milliseconds(50)));
  EXPECT_TRUE(gate.unused(now + std::chrono::milliseconds(150)));
}

TEST(Gates, GiveOneGatePerHostAsLongAsSomebodyHoldsIt) {
  Gates gates({.rate = 1, .concurrency = 1});
  const auto first = gates.of("a");
  EXPECT_TRUE(first->enter({}));
  EXPECT_EQ(gates.of("a"), first);
  EXPECT_NE(gates.of("b"), first);
  for (int i = 0; i < 5'000; ++i) gates.of("host-" + std::to_string(i));
  EXPECT_EQ(gates.of("a"), first);
}

TEST(Gates, ANewLimitHoldsForThoseThatAreInUse) {
  Gates gates({.concurrency = 2});
  const auto gate = gates.of("a");
  const auto first = gate->enter({});
  EXPECT_TRUE(first);
  gates.set({.concurrency = 1});
  EXPECT_FALSE(gate->enter({}));  // the one inside still counts
  EXPECT_EQ(gate->inside(), 1);
  const auto other = gates.of("b");
  const auto second = other->enter({});
  EXPECT_TRUE(second);
  EXPECT_FALSE(other->enter({}));
}

TEST(Signature, AC13_AgreesWithKnownValues) {
  // The example of GitHub's documentation.
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nX-Hub-Signature-256: "
      "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17\r\n\r\n";
  proxy::RequestHeadParser parser({});
  ASSERT_TRUE(parser.next(text));
  const auto check = [&parser](std::string_view secret, std::string_view body) {
    BodySignature signature(secret);
    signature.add(body.substr(0, 5));  // in parts
    signature.add(body.substr(5));
    return signature.is(signature_of(SignatureKind::github, parser.head()).value());
  };
  EXPECT_TRUE(check("It's a Secret to Everybody", "Hello, World!"));
  EXPECT_FALSE(check("It's a Secret to Everybody", "Hello, World"));
  EXPECT_FALSE(check("", "Hello, World!"));
  EXPECT_FALSE(signature_of(SignatureKind::gitlab, parser.head()));
  EXPECT_FALSE(signature_of(SignatureKind::bitbucket, parser.head()));
  EXPECT_TRUE(is_gitlab_token("x", "x"));
  EXPECT_FALSE(is_gitlab_token("x", "y"));
  EXPECT_FALSE(is_gitlab_token("", ""));
}

TEST(Signature, ReadsRules) {
  const auto rule = parse_signature_rule("argo/github-1=gitlab:/run/secrets/a=b");
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->ns, "argo");
  EXPECT_EQ(rule->event_source, "github-1");
  EXPECT_EQ(rule->kind, SignatureKind::gitlab);
  EXPECT_EQ(rule->secret_file, "/run/secrets/a=b");
  for (const auto* wrong : {"", "a=github:/x", "a/b=github", "a/b=svn:/x", "A/b=github:/x",
                            "a/b=github:", "a/b/c=github:/x"}) {
    EXPECT_FALSE(parse_signature_rule(wrong)) << wrong;
  }
}

TEST(Config, ReadsSizes) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("25Mi"), 25 * 1024 * 1024);
  EXPECT_EQ(parse_size("1G"), 1'000'000'000);
  for (const auto* wrong : {"", "x", "-1", "1MB", "1 Mi", "9223372036854775807Gi", "1.5Mi"}) {
    EXPECT_FALSE(parse_size(wrong)) << wrong;
  }
}

TEST(Config, TellsEveryMistake) {
  Config config;
  ConfigReader reader("request-router", "");
  bind(reader, config);
  const auto outcome =
      reader.load({"--app-proxy-url=http://user:pw@x", "--workflows-url=ftp://x",
                   "--webhook-namespaces=Argo", "--cluster-domain=a..b",
                   "--trusted-proxies=10.0.0.0/99", "--webhook-max-body=much", "--tls-key-file=x"},
                  {});
  EXPECT_EQ(outcome.mistakes.size(), 7U);
}

}  // namespace
}  // namespace gitops::router
