#include <chrono>
#include <filesystem>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "request-router/access_log.hpp"
#include "request-router/config.hpp"
#include "request-router/error_answer.hpp"
#include "request-router/gate.hpp"
#include "request-router/routes_file.hpp"
#include "request-router/signature.hpp"
#include "request-router/webhook_target.hpp"
#include "support/process.hpp"

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
  http::RequestHeadParser parser({});
  ASSERT_TRUE(parser.next(text));
  proxy::TransactionRecord record;
  record.head = &parser.head();
  record.status = 502;
  record.failure = proxy::Failure::connect_failed;
  record.detail = "refused";
  record.request_id = "id";
  record.took = std::chrono::microseconds(1500);
  record.traceparent = "00-ab";
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
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(gate.acquire(now)) << i;
  EXPECT_FALSE(gate.acquire(now));
  now += std::chrono::milliseconds(150);
  EXPECT_TRUE(gate.acquire(now));
  EXPECT_FALSE(gate.acquire(now));
  now += std::chrono::hours(1);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(gate.acquire(now)) << i;
  EXPECT_FALSE(gate.acquire(now));
}

TEST(Gate, CountsWhoIsInside) {
  Gate gate({.concurrency = 2});
  const Clock::time_point now;
  std::optional<Gate::Permit> first(gate.acquire(now));
  const auto second = gate.acquire(now);
  EXPECT_TRUE(*first);
  EXPECT_TRUE(second);
  EXPECT_FALSE(gate.acquire(now));
  first.reset();
  const auto third = gate.acquire(now);
  EXPECT_TRUE(third);
  EXPECT_EQ(gate.inside(), 2);
}

TEST(Gate, SoManyMayWait) {
  Gate gate({.concurrency = 1});
  std::list<Gate::Waiting> waiting;
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(waiting.emplace_back(gate)) << i;
  EXPECT_FALSE(waiting.emplace_back(gate));
  waiting.pop_back();
  waiting.pop_back();
  EXPECT_TRUE(waiting.emplace_back(gate));
}

TEST(Gate, IsUnusedWhenItWouldLetInWhatANewOneDoes) {
  Gate gate({.rate = 10, .concurrency = 2});
  const auto now = Clock::time_point(std::chrono::hours(1));
  EXPECT_TRUE(gate.unused(now));
  std::optional<Gate::Permit> permit(gate.acquire(now));
  EXPECT_TRUE(*permit);
  EXPECT_FALSE(gate.unused(now + std::chrono::hours(1)));
  permit.reset();
  EXPECT_FALSE(gate.unused(now + std::chrono::milliseconds(50)));
  EXPECT_TRUE(gate.unused(now + std::chrono::milliseconds(150)));
}

TEST(Gates, GiveOneGatePerHostAsLongAsSomebodyHoldsIt) {
  Gates gates({.rate = 1, .concurrency = 1});
  const auto first = gates.of("a");
  EXPECT_TRUE(first->acquire({}));
  EXPECT_EQ(gates.of("a"), first);
  EXPECT_NE(gates.of("b"), first);
  for (int i = 0; i < 5'000; ++i) gates.of("host-" + std::to_string(i));
  EXPECT_EQ(gates.of("a"), first);
}

TEST(Gates, ANewLimitHoldsForThoseThatAreInUse) {
  Gates gates({.concurrency = 2});
  const auto gate = gates.of("a");
  const auto first = gate->acquire({});
  EXPECT_TRUE(first);
  gates.set({.concurrency = 1});
  EXPECT_FALSE(gate->acquire({}));  // the one inside still counts
  EXPECT_EQ(gate->inside(), 1);
  const auto other = gates.of("b");
  const auto second = other->acquire({});
  EXPECT_TRUE(second);
  EXPECT_FALSE(other->acquire({}));
}

// A webhook with these fields, and the secrets of its event source.
struct Webhook {
  SignatureKind kind = SignatureKind::github;
  std::string fields;
  std::string body = "Hello, World!";
  std::vector<std::string> secrets = {"It's a Secret to Everybody"};
  WallTime now = WallTime(std::chrono::seconds(1'614'265'330));
};

bool passes(const Webhook& webhook) {
  const std::string text = "POST / HTTP/1.1\r\nHost: h\r\n" + webhook.fields + "\r\n";
  http::RequestHeadParser parser({});
  EXPECT_TRUE(parser.next(text)) << webhook.fields;
  std::vector<Secret> secrets;
  for (const auto& secret : webhook.secrets) secrets.emplace_back(secret);
  auto check = SignatureCheck::begin(webhook.kind, parser.head(), secrets, webhook.now);
  if (!check) return false;
  check->add(webhook.body.substr(0, 5));  // in parts
  check->add(webhook.body.substr(5));
  return check->passes();
}

// The example of GitHub's documentation.
const std::string kGithubSum = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
const std::string kGithub = "X-Hub-Signature-256: sha256=" + kGithubSum + "\r\n";

// The example of the Standard Webhooks' libraries.
const std::string kStandardSum = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const std::string kStandardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

std::string standard_fields(const std::string& signatures, const std::string& sent = "1614265330",
                            const std::string& id = "msg_p5jXN8AQM9LWM0D4loKWxJek") {
  return "webhook-id: " + id + "\r\nwebhook-timestamp: " + sent +
         "\r\nWebhook-Signature: " + signatures + "\r\n";
}

Webhook standard(std::string fields) {
  return {.kind = SignatureKind::standard_webhooks,
          .fields = std::move(fields),
          .body = R"({"test": 2432232314})",
          .secrets = {kStandardSecret}};
}

TEST(Signature, AC13_AgreesWithKnownValues) {
  EXPECT_TRUE(passes({.fields = kGithub}));
  EXPECT_FALSE(passes({.fields = kGithub, .body = "Hello, World"}));
  EXPECT_FALSE(passes({.fields = kGithub, .secrets = {"another"}}));
  EXPECT_FALSE(passes({.fields = kGithub, .secrets = {}}));
  EXPECT_FALSE(passes({.kind = SignatureKind::gitlab, .fields = kGithub}));
  EXPECT_FALSE(passes({.kind = SignatureKind::bitbucket, .fields = kGithub}));
  EXPECT_TRUE(passes({.kind = SignatureKind::bitbucket,
                      .fields = "X-Hub-Signature: sha256=" + kGithubSum + "\r\n"}));
  EXPECT_TRUE(passes(standard(standard_fields("v1," + kStandardSum))));
}

TEST(Signature, GitLabsTokenIsComparedAsItIs) {
  const auto token = [](std::string fields, std::vector<std::string> secrets) {
    return passes({.kind = SignatureKind::gitlab,
                   .fields = std::move(fields),
                   .secrets = std::move(secrets)});
  };
  EXPECT_TRUE(token("X-Gitlab-Token: x\r\n", {"x"}));
  EXPECT_FALSE(token("X-Gitlab-Token: x\r\n", {"y"}));
  EXPECT_FALSE(token("X-Gitlab-Token: x\r\nX-Gitlab-Token: x\r\n", {"x"}));
  EXPECT_FALSE(token("X-Gitlab-Token:\r\n", {}));
  EXPECT_FALSE(token("", {"x"}));
}

TEST(Signature, StandardWebhooksCoverIdAndTime) {
  const std::string good = "v1," + kStandardSum;
  EXPECT_FALSE(passes(standard(standard_fields(good, "1614265331"))));
  EXPECT_FALSE(passes(standard(standard_fields(good, "1614265330", "msg_other"))));
  for (const auto& [seconds, valid] : std::vector<std::pair<int, bool>>{
           {-301, false}, {-300, true}, {0, true}, {300, true}, {301, false}}) {
    auto webhook = standard(standard_fields(good));
    webhook.now += std::chrono::seconds(seconds);
    EXPECT_EQ(passes(webhook), valid) << seconds;
  }
  for (const auto* sent : {"", "now", "1614265330.0", "+1614265330", "99999999999999999999"}) {
    EXPECT_FALSE(passes(standard(standard_fields(good, sent)))) << sent;
  }
  EXPECT_FALSE(passes(standard(standard_fields(good, "1614265330", ""))));
  EXPECT_FALSE(passes(standard(standard_fields(good) + "webhook-id: again\r\n")));
  EXPECT_FALSE(passes(standard("webhook-signature: " + good + "\r\n")));
}

TEST(Signature, OneOfTheListedStandardSignaturesMustBeRight) {
  const std::string good = "v1," + kStandardSum;
  EXPECT_TRUE(passes(standard(standard_fields("v1a,AAAA v1,AAAA " + good))));
  EXPECT_TRUE(passes(standard(standard_fields(good + " v2,AAAA"))));
  for (const std::string& list :
       {std::string(), std::string("v1,"), std::string("v1,AAAA"), kStandardSum,
        "v2," + kStandardSum, "v1=" + kStandardSum, "v1," + kStandardSum.substr(1)}) {
    EXPECT_FALSE(passes(standard(standard_fields(list)))) << list;
  }
  auto webhook = standard(standard_fields(good));
  webhook.body += " ";
  EXPECT_FALSE(passes(webhook));
  for (const auto* secret : {"whsec_", "whsec_!", "whsec_AAAA", "other"}) {
    webhook = standard(standard_fields(good));
    webhook.secrets = {secret};
    EXPECT_FALSE(passes(webhook)) << secret;
  }
  webhook.secrets = {kStandardSecret.substr(6)};
  EXPECT_TRUE(passes(webhook)) << "the prefix is optional";
}

TEST(Signature, GitLabsSigningTokenIsAKeyOfStandardWebhooks) {
  auto webhook = standard(standard_fields("v1," + kStandardSum));
  webhook.kind = SignatureKind::gitlab;
  EXPECT_TRUE(passes(webhook));
  // Both may be in use, during a change from one to the other.
  webhook.secrets = {"token", kStandardSecret};
  EXPECT_TRUE(passes(webhook));
  webhook.fields = "X-Gitlab-Token: token\r\n";
  EXPECT_TRUE(passes(webhook));
  // A signing token is never sent.
  webhook.fields = "X-Gitlab-Token: " + kStandardSecret + "\r\n";
  EXPECT_FALSE(passes(webhook));
}

TEST(Signature, AnySecretOfARotationWillDo) {
  const std::vector<std::string> secrets{"next", "It's a Secret to Everybody", kStandardSecret};
  EXPECT_TRUE(passes({.fields = kGithub, .secrets = secrets}));
  EXPECT_TRUE(passes({.kind = SignatureKind::bitbucket,
                      .fields = "X-Hub-Signature: sha256=" + kGithubSum + "\r\n",
                      .secrets = secrets}));
  EXPECT_TRUE(passes(
      {.kind = SignatureKind::gitlab, .fields = "X-Gitlab-Token: next\r\n", .secrets = secrets}));
  auto webhook = standard(standard_fields("v1," + kStandardSum));
  webhook.secrets = secrets;
  EXPECT_TRUE(passes(webhook));
}

TEST(Signature, SecretsAreTheLinesOfTheirFile) {
  const test::TempDir folder;
  const auto read = [&folder](const std::string& text) {
    test::write_file(folder / "secret", text);
    SignatureSecrets secrets((folder / "secret").string());
    std::vector<std::string> found;
    for (const auto& secret : secrets.current(Clock::now())) found.emplace_back(secret.reveal());
    return found;
  };
  EXPECT_THAT(read("one"), testing::ElementsAre("one"));
  EXPECT_THAT(read("one\r\n\ntwo \n"), testing::ElementsAre("one", "two "));
  EXPECT_THAT(read("1\n2\n3\n4\n5\n"), testing::ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(read("\n\n"), testing::ElementsAre());
  SignatureSecrets missing((folder / "missing").string());
  EXPECT_TRUE(missing.current(Clock::now()).empty());
}

// As while it is written in place.
TEST(Signature, SecretsStayWhileTheirFileIsEmptyForAMoment) {
  using std::chrono::seconds;
  const test::TempDir folder;
  const auto file = folder / "secret";
  SignatureSecrets secrets(file.string());
  const auto begin = Clock::now();
  const auto found = [&](seconds after) {
    std::vector<std::string> all;
    for (const auto& secret : secrets.current(begin + after)) all.emplace_back(secret.reveal());
    return all;
  };
  test::write_file(file, "canary-one\n");
  EXPECT_THAT(found(seconds(0)), testing::ElementsAre("canary-one"));
  test::write_file(file, "");
  EXPECT_THAT(found(seconds(2)), testing::ElementsAre("canary-one"));
  test::write_file(file, "canary-the-next\n");
  EXPECT_THAT(found(seconds(4)), testing::ElementsAre("canary-the-next"));
  test::write_file(file, "");
  EXPECT_THAT(found(seconds(6)), testing::ElementsAre("canary-the-next"));
  EXPECT_THAT(found(seconds(8)), testing::ElementsAre()) << "still empty: it is meant";
}

// A failed read says nothing about the secrets, and is followed by another one.
TEST(Signature, SecretsStayWhileTheirFileCannotBeRead) {
  using std::chrono::seconds;
  const test::TempDir folder;
  const auto file = folder / "secret";
  test::write_file(file, "one");
  SignatureSecrets secrets(file.string());
  const auto begin = Clock::now();
  const auto found = [&](seconds after) {
    std::vector<std::string> all;
    for (const auto& secret : secrets.current(begin + after)) all.emplace_back(secret.reveal());
    return all;
  };
  EXPECT_THAT(found(seconds(0)), testing::ElementsAre("one"));
  test::write_file(file, "the next one");
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto meanwhile = found(seconds(2));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_THAT(meanwhile, testing::ElementsAre("one"));
  EXPECT_THAT(found(seconds(4)), testing::ElementsAre("the next one"));
  std::filesystem::remove(file);
  EXPECT_THAT(found(seconds(6)), testing::ElementsAre());
  test::write_file(file, "again");
  EXPECT_THAT(found(seconds(8)), testing::ElementsAre("again"));
}

TEST(Signature, OnlyThePingOfBitbucketDataCenterMayBeUnsigned) {
  const auto is_ping = [](SignatureKind kind, const std::string& fields) {
    const std::string text = "POST / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
    http::RequestHeadParser parser({});
    EXPECT_TRUE(parser.next(text));
    return is_unsigned_ping(kind, parser.head());
  };
  const std::string ping = "X-Event-Key: diagnostics:ping\r\n";
  EXPECT_TRUE(is_ping(SignatureKind::bitbucket, ping));
  EXPECT_FALSE(is_ping(SignatureKind::bitbucket, ping + "X-Hub-Signature: sha256=00\r\n"));
  EXPECT_FALSE(is_ping(SignatureKind::bitbucket, "X-Event-Key: repo:refs_changed\r\n"));
  EXPECT_FALSE(is_ping(SignatureKind::bitbucket, ping + "X-Event-Key: repo:refs_changed\r\n"));
  EXPECT_FALSE(is_ping(SignatureKind::github, ping));
  EXPECT_FALSE(is_ping(SignatureKind::gitlab, "X-GitHub-Event: ping\r\n"));
}

TEST(Signature, ReadsRules) {
  const auto rule = parse_signature_rule("argo/github-1=gitlab:/run/secrets/a=b");
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->ns, "argo");
  EXPECT_EQ(rule->event_source, "github-1");
  EXPECT_EQ(rule->kind, SignatureKind::gitlab);
  EXPECT_EQ(rule->secret_file, "/run/secrets/a=b");
  EXPECT_EQ(parse_signature_rule("a/b=standard-webhooks:/x")->kind,
            SignatureKind::standard_webhooks);
  for (const auto* wrong : {"", "a=github:/x", "a/b=github", "a/b=svn:/x", "A/b=github:/x",
                            "a/b=github:", "a/b/c=github:/x"}) {
    EXPECT_FALSE(parse_signature_rule(wrong)) << wrong;
  }
}

// As while it is written in place. Without its settings, no webhook needs a signature.
TEST(RoutesFile, AnEmptyFileCountsWhenItStaysEmpty) {
  const test::TempDir folder;
  const auto file = folder / "routes.yaml";
  test::write_file(file, "webhook-rate: 5\n");
  RoutesFile routes(file.string(), {});
  EXPECT_FALSE(routes.changed());
  test::write_file(file, "");
  EXPECT_FALSE(routes.changed());
  test::write_file(file, "webhook-rate: 17\n");
  EXPECT_TRUE(routes.changed());
  EXPECT_FALSE(routes.changed());
  test::write_file(file, "\n");
  EXPECT_FALSE(routes.changed());
  EXPECT_TRUE(routes.changed()) << "still empty: it is meant";
  EXPECT_FALSE(routes.changed());
}

// The look of changed() and the reading are two: an emptied file would count at once.
TEST(RoutesFile, AFileThatIsEmptiedAfterTheLookDoesNotCount) {
  const test::TempDir folder;
  const auto file = folder / "routes.yaml";
  test::write_file(file, "webhook-rate: 5\n");
  RoutesFile routes(file.string(), {});
  ASSERT_TRUE(routes.read());
  test::write_file(file, "webhook-rate: 111\n");
  EXPECT_TRUE(routes.changed());
  test::write_file(file, "");
  const auto emptied = routes.read();
  ASSERT_FALSE(emptied);
  EXPECT_EQ(emptied.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(routes.changed());
  test::write_file(file, "webhook-rate: 17\n");
  EXPECT_TRUE(routes.changed());
  const auto settings = routes.read();
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->webhook_rate, 17);
}

TEST(RoutesFile, AChangeThatCannotBeReadYetIsReadLater) {
  const test::TempDir folder;
  const auto file = folder / "routes.yaml";
  test::write_file(file, "webhook-rate: 5\n");
  RoutesFile routes(file.string(), {});
  EXPECT_FALSE(routes.changed());
  test::write_file(file, "webhook-rate: 11\n");
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const bool was_changed = routes.changed();
  const auto unread = routes.read();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(was_changed);
  EXPECT_FALSE(unread);
  EXPECT_TRUE(routes.changed());
  const auto settings = routes.read();
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->webhook_rate, 11);
  EXPECT_FALSE(routes.changed());
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
