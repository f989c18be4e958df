// The login of a user at a Git host, with a browser before the running app-proxy, and doubles of an API
// server and of GitHub behind it.
#include <chrono>

#include <gmock/gmock.h>

#include "e2e/git_harness.hpp"
#include "e2e/login_browser.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;
constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kBob = AppProxyHarness::kBob;
constexpr auto kEve = AppProxyHarness::kEve;
constexpr const char* kPath = "/app-proxy/api/git-auth/github";
constexpr const char* kForBob = "/app-proxy/api/git-auth/github?userId=u-bob&accountId=acc-1";

void add_application(GitHarness& harness) {
  harness.host.set_oauth({});
  harness.cluster.put_secret({"default", "github-login"},
                             {{"appId", "1"},
                              {"url", harness.host.url().to_string() + "/"},
                              {"clientId", "client-1"},
                              {"clientSecret", "canary-client-secret"}},
                             {{"codefresh_io_entity", "git-pat-obtainer-sec"}});
}

// With the integration "default", and an OAuth application for its host.
void in_login_harness(const std::function<Task<>(GitHarness&)>& body) {
  in_git_harness([&](GitHarness& harness) -> Task<> {
    harness.start({{"INGRESS_HOST", LoginBrowser::kAddress}});
    co_await harness.base.account_known();
    add_application(harness);
    EXPECT_EQ((co_await harness.add()).code(), "");
    co_await body(harness);
  });
}

// Who is registered with the integration.
Task<Json> registered(GitHarness& harness) {
  const auto answer = co_await harness.get(kAnn);
  co_return answer.json["data"]["gitIntegration"]["registeredUsers"];
}

// The last line of the audit stream, once it is about a login with that result.
Task<Json> audited(GitHarness& harness, std::string result) {
  const auto deadline = deadline_after(10s);
  while (true) {
    const auto lines = harness.base.audit();
    const Json last = lines.empty() ? Json::object() : lines.back();
    const bool is_it = last.value("action", "") == "registerToGitIntegration" &&
                       last.value("result", "") == result;
    if (is_it || Clock::now() > deadline) co_return last;
    co_await sleep_for(20ms);
  }
}

// Sends the form with a key; where the browser is led.
Task<std::string> begin(LoginBrowser& browser, const char* key, const char* user) {
  const auto answer =
      co_await browser.submit(kPath, {{"userId", user}, {"accountId", "acc-1"}, {"apiKey", key}});
  EXPECT_EQ(answer.status, 200) << answer.body;
  co_return LoginBrowser::onward(answer);
}

TEST(GitLogin, LeadsFromTheLinkOfTheCommandLineToARegisteredToken) {
  in_login_harness([](GitHarness& harness) -> Task<> {
    LoginBrowser browser(harness.base);
    const auto page = co_await browser.open(kForBob);
    EXPECT_EQ(page.status, 200);
    EXPECT_THAT(page.body, AllOf(HasSubstr("<form method=\"post\">"), HasSubstr("GitHub"),
                                 HasSubstr("name=\"userId\" value=\"u-bob\"")));
    EXPECT_THAT(std::string(page.headers.find("Content-Security-Policy").value_or("")),
                HasSubstr("default-src 'none'"));
    EXPECT_EQ(page.headers.find("X-Frame-Options"), "DENY");
    EXPECT_EQ(browser.cookie, "") << "nothing has begun";

    const auto address = co_await begin(browser, kBob, "u-bob");
    EXPECT_THAT(address, StartsWith(harness.host.url().to_string() + "/login/oauth/authorize?"));
    EXPECT_THAT(address,
                HasSubstr("redirect_uri=https%3A%2F%2Fruntime.example.test%2Fapp-proxy%2Fapi%2F"
                          "git-auth%2Fgithub%2Fcallback"));
    EXPECT_THAT(browser.set_cookie,
                AllOf(HasSubstr("; Path=/app-proxy/api/git-auth/github/callback;"),
                      HasSubstr("; HttpOnly"), HasSubstr("; SameSite=Lax"), HasSubstr("; Secure")));
    EXPECT_EQ(co_await registered(harness), Json::array());

    const auto done = co_await browser.open(harness.host.authorize(address));
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_THAT(done.body, AllOf(HasSubstr("Your account dana at GitHub is registered"),
                                 HasSubstr("close this window")));
    EXPECT_THAT(browser.set_cookie, HasSubstr("Max-Age=0"));
    EXPECT_EQ(co_await registered(harness), Json{"u-bob"});
    // The token works.
    const auto repositories =
        co_await harness.ask(kBob, "{gitRepositories(args:{page:1,limit:3}){data{fullName}}}");
    EXPECT_EQ(repositories.json["data"]["gitRepositories"]["data"][0]["fullName"], "acme/shop")
        << repositories.body;
    const Json audit = co_await audited(harness, "ok");
    EXPECT_EQ(audit.value("result", ""), "ok") << audit;
    EXPECT_EQ(audit.value("user", ""), "u-bob");
    EXPECT_EQ(audit.value("userName", ""), "Bob");
    EXPECT_EQ(audit.value("account", ""), "acc-1");
    EXPECT_EQ(audit.value("subject", Json()), (Json{{"name", "default"}, {"login", "github"}}));
  });
}

TEST(GitLogin, ACredentialOfTheRequestNeedsNoForm) {
  in_login_harness([](GitHarness& harness) -> Task<> {
    LoginBrowser browser(harness.base);
    const auto sent_on = co_await browser.open(kForBob, AppProxyHarness::as(kBob));
    EXPECT_EQ(sent_on.status, 303);
    const auto address = std::string(sent_on.headers.find("Location").value_or(""));
    EXPECT_THAT(address, StartsWith(harness.host.url().to_string() + "/login/oauth/authorize?"));
    const auto done = co_await browser.open(harness.host.authorize(address));
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_EQ(co_await registered(harness), Json{"u-bob"});
    // A credential that is wrong is refused as on every other route.
    const auto wrong = co_await browser.open(kForBob, AppProxyHarness::as(kEve));
    EXPECT_EQ(wrong.status, 401);
    const auto others = co_await browser.open(kForBob, AppProxyHarness::as(kAnn));
    EXPECT_EQ(others.status, 403);
    const auto runtime =
        co_await browser.open(kPath, AppProxyHarness::as(AppProxyHarness::kRuntime));
    EXPECT_EQ(runtime.status, 403);
  });
}

// The link names a user and proves nothing.
TEST(GitLoginAttacks, ALinkIsForItsUserOnly) {
  in_login_harness([](GitHarness& harness) -> Task<> {
    LoginBrowser browser(harness.base);
    const LoginBrowser::Fields for_bob = {{"userId", "u-bob"}, {"accountId", "acc-1"}};
    const auto with_key = [&](std::string_view key) {
      auto fields = for_bob;
      fields.emplace_back("apiKey", key);
      return fields;
    };
    const auto others = co_await browser.submit(kPath, with_key(kAnn));
    EXPECT_EQ(others.status, 403);
    EXPECT_THAT(others.body, HasSubstr("this link is for another user"));
    for (const char* key : {kEve, "canary-nobody", "", "a\r\nX-Other: b"}) {
      const auto unknown = co_await browser.submit(kPath, with_key(key));
      EXPECT_EQ(unknown.status, 401) << key;
      EXPECT_THAT(unknown.body, HasSubstr("not the API key of a user"));
    }
    const auto account = co_await browser.submit(
        kPath, {{"userId", "u-bob"}, {"accountId", "acc-2"}, {"apiKey", kBob}});
    EXPECT_EQ(account.status, 403);
    EXPECT_EQ(browser.cookie, "");
    EXPECT_EQ(co_await registered(harness), Json::array());
    const Json audit = co_await audited(harness, "forbidden");
    EXPECT_EQ(audit.value("result", ""), "forbidden") << audit;
  });
}

// Another site's page sends the form with a key of its author: the Git account of who looks at the
// page would become the author's.
TEST(GitLoginAttacks, AFormOfAnotherSiteIsRefused) {
  in_login_harness([](GitHarness& harness) -> Task<> {
    const std::vector<http::Headers> senders = {
        {},
        {{"Origin", "null"}},
        {{"Origin", "https://evil.example.test"}},
        {{"Origin", AppProxyHarness::kPage}},
        {{"Origin", "http://runtime.example.test"}},
        {{"Origin", LoginBrowser::kAddress}, {"Sec-Fetch-Site", "cross-site"}},
        {{"Origin", LoginBrowser::kAddress}, {"Sec-Fetch-Site", "same-site"}},
        {{"Origin", LoginBrowser::kAddress}, {"Sec-Fetch-Site", "none"}},
    };
    for (const auto& sender : senders) {
      LoginBrowser browser(harness.base);
      const auto refused = co_await browser.submit_with(kPath, {{"apiKey", kBob}}, sender);
      EXPECT_EQ(refused.status, 400) << refused.body;
      EXPECT_EQ(browser.cookie, "");
    }
    LoginBrowser browser(harness.base);
    const auto taken = co_await browser.submit_with(kPath, {{"apiKey", kBob}},
                                                    {{"Sec-Fetch-Site", "same-origin"}});
    EXPECT_EQ(taken.status, 200) << taken.body;
    const auto json = co_await harness.base.send({.method = "POST",
                                                  .target = kPath,
                                                  .headers = {{"Content-Type", "application/json"}},
                                                  .body = "{}"});
    EXPECT_EQ(json.status, 415);
  });
}

TEST(GitLoginAttacks, ALoginBelongsToTheBrowserThatBeganIt) {
  in_login_harness([](GitHarness& harness) -> Task<> {
    LoginBrowser attacker(harness.base);
    const auto address = co_await begin(attacker, kBob, "u-bob");
    const auto sent_back = harness.host.authorize(address);
    // Whoever got the link has no cookie, or that of a login of his own.
    LoginBrowser victim(harness.base);
    EXPECT_EQ((co_await victim.open(sent_back)).status, 403);
    (void)co_await begin(victim, kAnn, "u-ann");
    EXPECT_EQ((co_await victim.open(sent_back)).status, 403);
    victim.cookie = "gitops-git-login=";
    EXPECT_EQ((co_await victim.open(sent_back)).status, 403);
    EXPECT_EQ(co_await registered(harness), Json::array());
    EXPECT_EQ(harness.host.count("POST", "/login/oauth"), 0U) << "no code was exchanged";
    EXPECT_EQ((co_await attacker.open(sent_back)).status, 200) << "it was not used up";
  });
}

TEST(GitLoginAttacks, AStateCountsOnceAndAsItIs) {
  in_login_harness([](GitHarness& harness) -> Task<> {
    LoginBrowser browser(harness.base);
    const auto sent_back = harness.host.authorize(co_await begin(browser, kBob, "u-bob"));
    const std::string cookie = browser.cookie;
    // To another provider's callback, changed, and cut.
    auto elsewhere = sent_back;
    elsewhere.replace(elsewhere.find("/github/"), 8, "/gitlab/");
    EXPECT_EQ((co_await browser.open(elsewhere)).status, 400);
    auto changed = sent_back;
    auto& letter = changed[changed.find("state=") + 60];
    letter = letter == 'A' ? 'B' : 'A';
    EXPECT_EQ((co_await browser.open(changed)).status, 400);
    EXPECT_EQ((co_await browser.open(std::string(kPath) + "/callback?code=x&state=abc")).status,
              400);
    EXPECT_EQ((co_await browser.open(std::string(kPath) + "/callback?code=x")).status, 400);
    EXPECT_EQ(
        (co_await browser.open(std::string("/app-proxy/api/git-auth/nowhere/callback"))).status,
        404);
    // A look by HEAD does not use it up.
    (void)co_await harness.base.send({.method = "HEAD",
                                      .target = sent_back.substr(sent_back.find("/app-proxy")),
                                      .headers = {{"Cookie", cookie}}});
    EXPECT_EQ((co_await browser.open(sent_back)).status, 200);
    browser.cookie = cookie;
    const auto again = co_await browser.open(sent_back);
    EXPECT_EQ(again.status, 400);
    EXPECT_THAT(again.body, HasSubstr("used before"));
    EXPECT_EQ(harness.host.count("POST", "/login/oauth"), 1U);
  });
}

TEST(GitLogin, WhatTheHostSaysIsShownAsText) {
  in_login_harness([](GitHarness& harness) -> Task<> {
    LoginBrowser browser(harness.base);
    const auto address = co_await begin(browser, kBob, "u-bob");
    const auto refused = co_await browser.open(harness.host.authorize(address, "access_denied"));
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("access_denied: The user said &lt;no&gt;"));
    EXPECT_EQ(co_await registered(harness), Json::array());
    EXPECT_EQ((co_await audited(harness, "forbidden")).value("result", ""), "forbidden");
  });
}

TEST(GitLogin, AHostThatFailsRegistersNothing) {
  in_login_harness([](GitHarness& harness) -> Task<> {
    const auto end_of_login = [&]() -> Task<int> {
      LoginBrowser browser(harness.base);
      const auto address = co_await begin(browser, kBob, "u-bob");
      co_return (co_await browser.open(harness.host.authorize(address))).status;
    };
    for (const auto& [status, expected] : {std::pair(503, 503), std::pair(200, 502)}) {
      harness.host.fail_next(1, status, {}, "/login/oauth");
      EXPECT_EQ(co_await end_of_login(), expected) << status;
    }
    harness.host.abort_next(1, "/login/oauth");
    EXPECT_GE(co_await end_of_login(), 502);
    // A code that is not this login's.
    LoginBrowser browser(harness.base);
    auto sent_back = harness.host.authorize(co_await begin(browser, kBob, "u-bob"));
    sent_back.replace(sent_back.find("code=") + 5, std::string::npos, "other");
    EXPECT_EQ((co_await browser.open(sent_back)).status, 403);
    EXPECT_EQ(co_await registered(harness), Json::array());
    // A slow one is waited for.
    harness.host.delay_answers(2s, "/login/oauth");
    EXPECT_EQ(co_await end_of_login(), 200);
    harness.host.delay_answers(0s);
    EXPECT_EQ(co_await registered(harness), Json{"u-bob"});
  });
}

TEST(GitLogin, SaysWhatIsMissing) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start({{"INGRESS_HOST", LoginBrowser::kAddress}});
    co_await harness.base.account_known();
    LoginBrowser browser(harness.base);
    const LoginBrowser::Fields bob = {{"apiKey", kBob}};
    const auto no_integration = co_await browser.submit(kPath, bob);
    EXPECT_EQ(no_integration.status, 404);
    EXPECT_THAT(no_integration.body, HasSubstr("no Git integration &quot;default&quot;"));
    EXPECT_EQ((co_await harness.add()).code(), "");
    const auto no_application = co_await browser.submit(kPath, bob);
    EXPECT_EQ(no_application.status, 404);
    EXPECT_THAT(no_application.body, HasSubstr("codefresh_io_entity=git-pat-obtainer-sec"));
    add_application(harness);
    const auto other_kind = co_await browser.submit("/api/git-auth/gitlab", bob);
    EXPECT_EQ(other_kind.status, 400);
    EXPECT_THAT(other_kind.body, HasSubstr("open /app-proxy/api/git-auth/github"));
    const auto no_provider = co_await browser.open("/api/git-auth/bitbucket");
    EXPECT_EQ(no_provider.status, 404);
    EXPECT_THAT(no_provider.body, HasSubstr("github, gitlab, bitbucket-server, gitea"));
    const auto hidden = co_await browser.submit(kPath, {{"integration", "../x"}, {"apiKey", kBob}});
    EXPECT_EQ(hidden.status, 400);
    // Too many logins of one user.
    int status = 0;
    for (int i = 0; i < 12 && status != 429; ++i) {
      status = (co_await browser.submit(kPath, bob)).status;
    }
    EXPECT_EQ(status, 429);
  });
}

TEST(GitLogin, NeedsThePublicAddress) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    add_application(harness);
    EXPECT_EQ((co_await harness.add()).code(), "");
    LoginBrowser browser(harness.base);
    const auto answer = co_await browser.open(kForBob, AppProxyHarness::as(kBob));
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr("INGRESS_HOST"));
    EXPECT_EQ((co_await browser.open(kForBob)).status, 200);
  });
}

}  // namespace
}  // namespace gitops::test
