// Promotions by the running app-proxy, between doubles of the control plane and of GitHub's REST
// interface, and Git's own server with two branches of an application.
#include <tuple>

#include <gmock/gmock.h>

#include "e2e/git_harness.hpp"
#include "support/git_server.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
using Answer = AppProxyHarness::Answer;

constexpr const char* kNothing =
    R"({"statusCode":400,"message":"no changes found between source and destination applications",)"
    R"("error":"Bad Request"})";

// The runtime's Git token is that of the host's user. "shop-dev" is the folder "dev" of the branch
// "dev", "shop-prod" the folder "prod" of the default branch.
struct PromotionHarness {
  explicit PromotionHarness(GitHarness& w) : harness(w) {
    git.create_repository("shop");
    git.create_repository("config");
    git.commit("shop",
               {{"dev/values.yaml", "image:\n  tag: \"2\"\nreplicas: 1\n"},
                {"dev/new.yaml", "a: 1\n"},
                {"prod/values.yaml", "image:\n  tag: \"1\"  # promoted\nreplicas: 9\n"}},
               "begin");
    EXPECT_TRUE(git.git("shop", {"branch", "dev", "main"}).ok());
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    auto& accounts = harness.base.platform.accounts();
    accounts.add({.id = "acc-1",
                  .name = "acme",
                  .admins = {"u-ann"},
                  .git_provider = "GITHUB",
                  .git_api_url = harness.host.api_root().text(),
                  .shared_config_repo = git.url("config")});
    accounts.set_application("shop-dev", {git.url("shop"), "dev", "./dev"});
    accounts.set_application("shop-prod", {git.url("shop"), "HEAD", "prod/"});
    accounts.set_promotion_rules({{{"glob", "**/values.yaml"}, {"jsonPaths", {"$.image.tag"}}}});
    for (const auto& [key, id] : {std::pair{kMay, "u-may"}, {kMayNot, "u-not"}}) {
      accounts.add(key, FakeAccounts::User{.id = id, .name = id, .account_id = "acc-1"});
    }
    accounts.set_team("may", {"u-may"});
    accounts.set_team("not", {"u-not"});
    accounts.set_rules({rule("may", "argocd"), rule("not", "other")});
  }
  static Json rule(const char* team, const char* ns) {
    return {{"id", team},
            {"accountId", "acc-1"},
            {"entityType", "gitopsApplications"},
            {"teams", {team}},
            {"actions", {"VIEW", "PROMOTE_TO"}},
            {"attributes", {{{"name", "NAMESPACE"}, {"value", ns}}}}};
  }

  Task<> start(const char* password = FakeGitHost::kToken) {
    harness.start({{"REPOS_DIR", (folder / "clones").string()},
                   {"GIT_USERNAME", FakeGitHost::kLogin},
                   {"GIT_PASSWORD", password},
                   {"TRUSTED_PROXIES", "127.0.0.1"}});
    co_await harness.base.account_known();
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (harness.base.daemon->status().count_in_state("rules for ", "pending") > 0 &&
           Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(20));
    }
  }

  // The body that the operator sends, with the control plane's words.
  static Json body() {
    const auto id = [](const char* name) {
      return Json{{"runtime", "prod"}, {"namespace", "argocd"}, {"name", name}};
    };
    return {{"srcAppId", id("shop-dev")},
            {"destAppId", id("shop-prod")},
            {"message", "promoting argocd/shop-dev to argocd/shop-prod"}};
  }
  Task<Answer> promote(const char* token, Json with, const char* route = "commit") {
    http::Headers headers = AppProxyHarness::as(token);
    headers.add("Content-Type", "application/json");
    headers.add("X-Forwarded-For", "203.0.113." + std::to_string(++asked));
    co_return co_await harness.base.send({.method = "POST",
                                          .target = std::string("/api/promotions/") + route,
                                          .headers = std::move(headers),
                                          .body = with.dump()});
  }
  [[nodiscard]] std::string line(const std::vector<std::string>& args) const {
    auto result = git.git("shop", args);
    EXPECT_TRUE(result.ok()) << result.err;
    while (result.out.ends_with('\n')) result.out.pop_back();
    return result.out;
  }

  static constexpr auto kMay = "canary-may.6666";
  static constexpr auto kMayNot = "canary-not.7777";
  GitHarness& harness;
  GitServer git;
  TempDir folder;
  int asked = 0;
};

void in_promotion_harness(const std::function<Task<>(PromotionHarness&)>& body) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([&](GitHarness& harness) -> Task<> {
    PromotionHarness promotions(harness);
    co_await body(promotions);
  });
}

TEST(AppProxyPromotions, ACommitBringsTheNamedValues) {
  in_promotion_harness([](PromotionHarness& w) -> Task<> {
    co_await w.start();
    const auto done = co_await w.promote(AppProxyHarness::kRuntime, PromotionHarness::body());
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_EQ(done.json,
              (Json{{"COMMIT_SHA", w.git.head("shop")},
                    {"COMMIT_MESSAGE", "promoting argocd/shop-dev to argocd/shop-prod"},
                    {"COMMIT_AUTHOR", "GitOps runtime prod <gitops-runtime@noreply.invalid>"}}));
    EXPECT_EQ(w.git.file_at_head("shop", "prod/values.yaml"),
              "image:\n  tag: \"2\"  # promoted\nreplicas: 9\n");
    EXPECT_THAT(w.line({"log", "-1", "--format=%B", "main"}),
                HasSubstr("promoting argocd/shop-dev to argocd/shop-prod\n\nPromoted from "
                          "argocd/shop-dev at "));
    EXPECT_THAT(w.line({"log", "-1", "--format=%B", "main"}),
                HasSubstr("Requested by prod through runtime prod."));
    // Nothing is left to do.
    const auto again = co_await w.promote(AppProxyHarness::kRuntime, PromotionHarness::body());
    EXPECT_EQ(again.status, 400);
    EXPECT_EQ(again.body, kNothing);
    EXPECT_EQ(w.line({"rev-list", "--count", "main"}), "2");

    // At a commit of the source: what it was then.
    const auto old = w.line({"rev-parse", "dev"});
    Json back = PromotionHarness::body();
    back["srcAppCommitSha"] = old;
    EXPECT_EQ((co_await w.promote(AppProxyHarness::kRuntime, back)).body, kNothing);
    back["srcAppCommitSha"] = std::string(40, '1');
    EXPECT_EQ((co_await w.promote(AppProxyHarness::kRuntime, back)).status, 404);

    // Without a template: all files.
    w.harness.base.platform.accounts().set_promotion_rules(Json::array());
    const auto all = co_await w.promote(AppProxyHarness::kAnn, PromotionHarness::body());
    EXPECT_EQ(all.status, 200) << all.body;
    EXPECT_EQ(w.git.file_at_head("shop", "prod/new.yaml"), "a: 1\n");
    EXPECT_THAT(w.line({"log", "-1", "--format=%B", "main"}),
                HasSubstr("Requested by Ann through runtime prod."));
    EXPECT_EQ((co_await w.harness.base.audited("promotions/commit"))["subject"]["destAppId"],
              "prod/argocd/shop-prod");
  });
}

TEST(AppProxyPromotions, APullRequestHasABranchOfItsOwn) {
  in_promotion_harness([](PromotionHarness& w) -> Task<> {
    auto& repository = w.harness.host.add_repository("git", "shop");
    repository.branches = {"main", "promote/2"};
    co_await w.start();
    Json body = PromotionHarness::body();
    body["head"] = "promote/2";
    body["title"] = "Shop 2";
    body["description"] = "to production";
    const auto done = co_await w.promote(AppProxyHarness::kRuntime, body, "pullRequest");
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_EQ(done.json.value("COMMIT_SHA", ""), w.line({"rev-parse", "promote/2"}));
    EXPECT_EQ(done.json.value("repo", ""), "git/shop");
    EXPECT_EQ(done.json.value("headBranch", ""), "promote/2");
    EXPECT_EQ(done.json.value("baseBranch", ""), "main");
    EXPECT_EQ(done.json.value("state", ""), "OPEN");
    EXPECT_EQ(w.line({"show", "promote/2:prod/values.yaml"}),
              "image:\n  tag: \"2\"  # promoted\nreplicas: 9");
    EXPECT_EQ(w.line({"rev-list", "--count", "main"}), "1") << "only the branch has it";
    CO_ASSERT_TRUE(repository.pull_requests.size() == 1);
    EXPECT_EQ(repository.pull_requests[0].title, "Shop 2");
    EXPECT_EQ(repository.pull_requests[0].description, "to production");
    // Again: the commit is there, and so is the pull request.
    EXPECT_EQ((co_await w.promote(AppProxyHarness::kRuntime, body, "pullRequest")).status, 409);
    EXPECT_EQ(w.line({"rev-list", "--count", "promote/2"}), "2");
    // The pull request of a commit whose request was cut off.
    repository.pull_requests.clear();
    EXPECT_EQ((co_await w.promote(AppProxyHarness::kRuntime, body, "pullRequest")).status, 200);
    EXPECT_EQ(w.line({"rev-list", "--count", "promote/2"}), "2");

    for (const auto& [key, value, message] :
         std::vector<std::tuple<const char*, const char*, const char*>>{
             {"head", "main", "head is the destination's own branch"},
             {"head", "-x", "head: "},
             {"title", "", "title should not be empty"}}) {
      Json wrong = body;
      wrong[key] = value;
      const auto answer = co_await w.promote(AppProxyHarness::kRuntime, wrong, "pullRequest");
      EXPECT_EQ(answer.status, 400) << answer.body;
      EXPECT_THAT(answer.body, HasSubstr(message));
    }
  });
}

// The commit is in Git by then, and the next request completes it.
TEST(AppProxyPromotions, AFailedPullRequestTellsItsBranch) {
  in_promotion_harness([](PromotionHarness& w) -> Task<> {
    auto& repository = w.harness.host.add_repository("git", "shop");
    repository.branches = {"main", "promote/2"};
    co_await w.start();
    Json body = PromotionHarness::body();
    body["head"] = "promote/2";
    body["title"] = "Shop 2";
    w.harness.host.fail_next(1, 503, {}, "/pulls");
    const auto failed = co_await w.promote(AppProxyHarness::kRuntime, body, "pullRequest");
    EXPECT_EQ(failed.status, 503) << failed.body;
    EXPECT_THAT(failed.body,
                HasSubstr("branch promote/2 has commit " + w.line({"rev-parse", "promote/2"}) +
                          "; its pull request: "));
    const auto opened = co_await w.promote(AppProxyHarness::kRuntime, body, "pullRequest");
    EXPECT_EQ(opened.status, 200) << opened.body;
    EXPECT_EQ(w.line({"rev-list", "--count", "promote/2"}), "2");
  });
}

// The branch of an earlier request is looked for in Git. A look that fails does not say that there is
// nothing to promote.
TEST(AppProxyPromotions, ABranchThatCannotBeReadIsNotNothingToPromote) {
  in_promotion_harness([](PromotionHarness& w) -> Task<> {
    w.git.create_repository("ops");
    w.git.commit("ops", {{"prod/values.yaml", "image:\n  tag: \"1\"\n"}}, "begin");
    w.harness.base.platform.accounts().set_application("shop-prod",
                                                       {w.git.url("ops"), "HEAD", "prod/"});
    auto& repository = w.harness.host.add_repository("git", "ops");
    repository.branches = {"main", "promote/2"};
    co_await w.start();
    Json body = PromotionHarness::body();
    body["head"] = "promote/2";
    body["title"] = "Shop 2";
    const auto done = co_await w.promote(AppProxyHarness::kRuntime, body, "pullRequest");
    EXPECT_EQ(done.status, 200) << done.body;
    repository.pull_requests.clear();
    // Git can be written to, and not be read.
    EXPECT_TRUE(w.git.git("ops", {"config", "http.uploadpack", "false"}).ok());
    const auto unread = co_await w.promote(AppProxyHarness::kRuntime, body, "pullRequest");
    EXPECT_EQ(unread.status, 400) << unread.body;
    EXPECT_NE(unread.body, kNothing);
    EXPECT_THAT(unread.body, HasSubstr("forbids access to"));
    EXPECT_TRUE(w.git.git("ops", {"config", "http.uploadpack", "true"}).ok());
    EXPECT_EQ((co_await w.promote(AppProxyHarness::kRuntime, body, "pullRequest")).status, 200);
  });
}

TEST(AppProxyPromotions, AskEachCallerForTheRight) {
  in_promotion_harness([](PromotionHarness& w) -> Task<> {
    co_await w.start();
    for (const char* route : {"commit", "pullRequest"}) {
      Json body = PromotionHarness::body();
      body["head"] = "x";
      body["title"] = "t";
      EXPECT_EQ((co_await w.harness.base.send({.method = "POST",
                                               .target = std::string("/api/promotions/") + route,
                                               .headers = {},
                                               .body = body.dump()}))
                    .status,
                401);
      EXPECT_EQ((co_await w.promote(AppProxyHarness::kEve, body, route)).status, 401);
      EXPECT_EQ((co_await w.promote(AppProxyHarness::kBob, body, route)).status, 403);
      const auto forbidden = co_await w.promote(PromotionHarness::kMayNot, body, route);
      EXPECT_EQ(forbidden.status, 403);
      // What is not there looks the same.
      Json unknown = body;
      unknown["destAppId"]["name"] = "none";
      const auto hidden = co_await w.promote(PromotionHarness::kMay, unknown, route);
      EXPECT_EQ(hidden.body, forbidden.body);
      EXPECT_EQ((co_await w.promote(AppProxyHarness::kAnn, unknown, route)).status, 404);
    }
    EXPECT_EQ(w.line({"rev-list", "--count", "main"}), "1");
    const auto allowed = co_await w.promote(PromotionHarness::kMay, PromotionHarness::body());
    EXPECT_EQ(allowed.status, 200) << allowed.body;
  });
}

// Rules on attributes that an Application's labels and annotations hold.
TEST(AppProxyPromotions, RulesSeeTheLabelsTheProductAndTheGitSource) {
  in_promotion_harness([](PromotionHarness& w) -> Task<> {
    auto& accounts = w.harness.base.platform.accounts();
    const auto pair = [](const char* key, const char* value) {
      return Json{{"key", key}, {"value", value}};
    };
    const Json labels = Json::array({pair("team", "web")});
    const Json annotations = Json::array(
        {pair("codefresh.io/product", "shop"),
         pair("argocd.argoproj.io/tracking-id", "gs:argoproj.io/Application:argocd/x")});
    accounts.set_application("shop-dev", {w.git.url("shop"), "dev", "./dev", labels, annotations});
    accounts.set_application("shop-prod",
                             {w.git.url("shop"), "HEAD", "prod/", labels, annotations});
    Json rules = Json::array();
    for (const auto& [team, source] : {std::pair{"may", "gs"}, {"not", "another"}}) {
      Json rule = PromotionHarness::rule(team, "argocd");
      rule["attributes"].push_back({{"name", "LABEL"}, {"key", "team"}, {"value", "web"}});
      rule["attributes"].push_back({{"name", "PRODUCT_NAME"}, {"value", "shop"}});
      rule["attributes"].push_back({{"name", "GIT_SOURCE"}, {"value", source}});
      rules.push_back(std::move(rule));
    }
    accounts.set_rules(std::move(rules));
    co_await w.start();
    const auto refused = co_await w.promote(PromotionHarness::kMayNot, PromotionHarness::body());
    EXPECT_EQ(refused.status, 403) << refused.body;
    const auto allowed = co_await w.promote(PromotionHarness::kMay, PromotionHarness::body());
    EXPECT_EQ(allowed.status, 200) << allowed.body;
  });
}

TEST(AppProxyPromotions, MistakesAreToldAndChangeNothing) {
  in_promotion_harness([](PromotionHarness& w) -> Task<> {
    co_await w.start();
    auto& accounts = w.harness.base.platform.accounts();
    for (const auto& [wrong, message] : std::vector<std::pair<Json, std::string>>{
             {{{"srcAppId", nullptr}}, "srcAppId.runtime should not be empty"},
             {{{"destAppId", {{"runtime", "prod"}, {"namespace", "a"}}}},
              "destAppId.name should not be empty"},
             {{{"srcAppCommitSha", "HEAD"}}, "srcAppCommitSha should be the full id"},
         }) {
      Json body = PromotionHarness::body();
      body.update(wrong);
      const auto answer = co_await w.promote(AppProxyHarness::kAnn, body);
      EXPECT_EQ(answer.status, 400);
      EXPECT_THAT(answer.body, HasSubstr(message)) << wrong.dump();
      EXPECT_EQ(answer.json.value("error", ""), "Bad Request");
    }
    EXPECT_EQ((co_await w.promote(AppProxyHarness::kAnn, "text")).status, 400);
    // The runtime's token goes to its own host only.
    accounts.set_application("shop-prod", {"https://evil.example.test/a/b.git", "HEAD", "."});
    const auto elsewhere = co_await w.promote(AppProxyHarness::kAnn, PromotionHarness::body());
    EXPECT_EQ(elsewhere.status, 400);
    EXPECT_THAT(elsewhere.body, HasSubstr("not the account's Git host"));
    accounts.set_application("shop-prod", {w.git.url("shop"), "HEAD", "../x"});
    EXPECT_EQ((co_await w.promote(AppProxyHarness::kAnn, PromotionHarness::body())).status, 400);
    accounts.set_application("shop-prod", {w.git.url("shop"), "none", "prod"});
    EXPECT_EQ((co_await w.promote(AppProxyHarness::kAnn, PromotionHarness::body())).status, 404);
    accounts.set_application("shop-prod", {w.git.url("shop"), "HEAD", "elsewhere"});
    const auto no_file = co_await w.promote(AppProxyHarness::kAnn, PromotionHarness::body());
    EXPECT_EQ(no_file.status, 400);
    EXPECT_THAT(no_file.body, HasSubstr("no file elsewhere/values.yaml"));
    EXPECT_EQ(w.line({"rev-list", "--count", "main"}), "1");
  });
}

TEST(AppProxyPromotions, NeedTheRuntimesToken) {
  in_promotion_harness([](PromotionHarness& w) -> Task<> {
    co_await w.start("");
    const auto answer = co_await w.promote(AppProxyHarness::kRuntime, PromotionHarness::body());
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr("GIT_PASSWORD"));
  });
}

}  // namespace
}  // namespace gitops::test
