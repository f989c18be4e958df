// Git integrations of the running app-proxy, between doubles of an API server and of GitHub.
#include <filesystem>
#include <optional>

#include <gmock/gmock.h>

#include "e2e/git_harness.hpp"
#include "test_http/canned_server.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kBob = AppProxyHarness::kBob;

Json sample_args(GitHarness& harness, std::string name, std::string sharing) {
  return {{"name", std::move(name)},
          {"provider", "GITHUB"},
          {"apiUrl", harness.host.api_root().text()},
          {"sharingPolicy", std::move(sharing)}};
}

TEST(AppProxyGit, AnIntegrationLivesAsTheCommandLineSeesIt) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    EXPECT_EQ((co_await harness.list(kBob)).json,
              (Json{{"data", {{"gitIntegrations", Json::array()}}}}));
    EXPECT_EQ((co_await harness.get(kBob)).json, (Json{{"data", {{"gitIntegration", nullptr}}}}));
    const Json wanted{{"name", "default"},
                      {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"},
                      {"provider", "GITHUB"},
                      {"apiUrl", harness.host.api_root().text()},
                      {"registeredUsers", Json::array()}};
    const auto refused = co_await harness.add(kBob, sample_args(harness, "x", "ACCOUNT_ADMINS"));
    EXPECT_EQ(refused.status, 200);
    EXPECT_EQ(refused.json["errors"][0]["message"],
              "only an administrator of the account may do this");
    EXPECT_EQ(refused.code(), "FORBIDDEN");
    EXPECT_EQ((co_await harness.add()).json, (Json{{"data", {{"addGitIntegration", wanted}}}}));
    EXPECT_EQ((co_await harness.add()).code(), "GIT_INTEGRATION_EXISTS");
    auto registered = wanted;
    registered["registeredUsers"] = {"u-bob"};
    EXPECT_EQ((co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}})).json,
              (Json{{"data", {{"registerToGitIntegration", registered}}}}));
    const auto listed = co_await harness.list(kBob);
    EXPECT_EQ(listed.json["data"]["gitIntegrations"][0]["users"],
              (Json::array({{{"userId", "u-bob"}}})));
    EXPECT_EQ((co_await harness.edit(kAnn, {{"apiUrl", ""}, {"sharingPolicy", "ACCOUNT_ADMINS"}}))
                  .json["data"]["editGitIntegration"]["registeredUsers"],
              (Json{"u-bob"}));
    EXPECT_EQ((co_await harness.get(kBob)).json["data"]["gitIntegration"], nullptr) << "hidden now";
    EXPECT_EQ(
        (co_await harness.edit(kAnn, {{"apiUrl", ""}, {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}))
            .code(),
        "");
    EXPECT_EQ((co_await harness.deregister(kBob)).json,
              (Json{{"data", {{"deregisterFromGitIntegration", wanted}}}}));
    EXPECT_EQ((co_await harness.remove(kAnn, "default")).json,
              (Json{{"data", {{"removeGitIntegration", nullptr}}}}));
    EXPECT_EQ((co_await harness.get(kAnn)).json, (Json{{"data", {{"gitIntegration", nullptr}}}}));
    EXPECT_EQ((co_await harness.remove(kAnn, "default")).code(), "GIT_INTEGRATION_NOT_FOUND");
    // Each change, refused or not, stands in the audit stream.
    (void)co_await harness.base.audited("addGitIntegration", "forbidden");
    (void)co_await harness.base.audited("registerToGitIntegration");
    (void)co_await harness.base.audited("removeGitIntegration");
  });
}

TEST(AppProxyGit, RepositoriesAreReadWithTheTokenOfTheCaller) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    co_await harness.add();
    const auto early = co_await harness.ask(kBob, "{gitOrganizations{name}}");
    EXPECT_EQ(early.code(), "GIT_TOKEN_MISSING");
    EXPECT_EQ(harness.host.requests().size(), 0U);
    co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}});
    EXPECT_EQ((co_await harness.ask(kBob, "{gitOrganizations{name}}")).json,
              (Json{{"data", {{"gitOrganizations", Json::array({{{"name", "acme"}}})}}}}));
    const auto page = co_await harness.ask(
        kBob,
        "{gitRepositories(args:{page:1,limit:10}){page count hasNext data{id provider fullName "
        "isRepoPrivate pushedAt openIssues cloneUrl sshUrl ownerLogin ownerAvatarUrl repoCreator "
        "org "
        "defaultBranch isRepoAdmin webUrl project}}}");
    const Json repositories = page.json["data"]["gitRepositories"];
    EXPECT_EQ(repositories["count"], 1) << page.body;
    EXPECT_EQ(repositories["data"][0]["fullName"], "acme/shop");
    EXPECT_EQ(repositories["data"][0]["isRepoAdmin"], true);
    EXPECT_EQ(repositories["data"][0]["org"], "acme");
    EXPECT_EQ(repositories["data"][0]["project"], nullptr);
    const auto found =
        co_await harness.ask(kBob, "{gitRepositories(filter:{name:\"sho\"}){data{fullName}}}");
    EXPECT_EQ(found.json["data"]["gitRepositories"]["data"].size(), 1U) << found.body;
    EXPECT_EQ((co_await harness.ask(
                   kBob, "{repositoryBranchesAndTags(repo:\"acme/shop\"){branches tags}}"))
                  .json["data"]["repositoryBranchesAndTags"],
              (Json{{"branches", {"feature/x", "main"}}, {"tags", {"v1.0"}}}));
    // More than are shown: the default branch is among them, and the answer says that there are
    // others.
    for (int i = 0; i < 3'010; ++i) {
      harness.host.find("acme", "shop")->branches.insert("b" + std::to_string(i));
    }
    const auto many =
        (co_await harness.ask(
             kBob, "{repositoryBranchesAndTags(repo:\"acme/shop\"){branches truncated}}"))
            .json["data"]["repositoryBranchesAndTags"];
    EXPECT_EQ(many["truncated"], true);
    EXPECT_EQ(many["branches"][0], "main");
    EXPECT_GE(many["branches"].size(), 3'000U);
    harness.host.find("acme", "shop")->branches = {"feature/x", "main"};
    const auto file = co_await harness.ask(
        kBob,
        "{readFile(args:{ref:\"HEAD\",repo:\"acme/shop\",path:\"deploy/app.yaml\"}){path revision "
        "data}}");
    EXPECT_EQ(file.json["data"]["readFile"], (Json{{"path", "deploy/app.yaml"},
                                                   {"revision", git_blob_id("replicas: 1\n")},
                                                   {"data", "replicas: 1\n"}}));
    const auto made = co_await harness.ask(
        kBob,
        "mutation{createPullRequest(args:{repo:\"acme/shop\",head:\"feature/x\",base:\"HEAD\","
        "title:\"<script>\"}){id repo title baseBranch state isMerged mergeCommitSHA}}");
    EXPECT_EQ(made.json["data"]["createPullRequest"], (Json{{"id", 1},
                                                            {"repo", "acme/shop"},
                                                            {"title", "<script>"},
                                                            {"baseBranch", "main"},
                                                            {"state", "OPEN"},
                                                            {"isMerged", false},
                                                            {"mergeCommitSHA", nullptr}}))
        << made.body;
    harness.host.merge("acme", "shop", 1);
    const auto merged = co_await harness.ask(
        kBob, "{pullRequest(repo:\"acme/shop\",id:1){state isMerged mergeCommitSHA}}");
    EXPECT_EQ(merged.json["data"]["pullRequest"]["isMerged"], true) << merged.body;
    EXPECT_EQ((co_await harness.ask(kBob, "{pullRequest(repo:\"acme/shop\",id:9){id}}")).json,
              (Json{{"data", {{"pullRequest", nullptr}}}}));
  });
}

TEST(AppProxyGit, ErrorsSayWhatToDo) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    co_await harness.add();
    const auto weak = co_await harness.register_user(kBob, {{"token", FakeGitHost::kReader}});
    EXPECT_EQ(weak.status, 200);
    EXPECT_EQ(weak.code(), "GIT_TOKEN_LACKS_RIGHT");
    EXPECT_THAT(weak.body, HasSubstr("create a token"));
    EXPECT_EQ(weak.json["errors"][0]["extensions"]["statusCode"], 400);
    co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}});
    harness.host.refuse_tokens(true);
    const auto rejected = co_await harness.ask(kBob, "{gitOrganizations{name}}");
    EXPECT_EQ(rejected.code(), "GIT_TOKEN_REJECTED");
    EXPECT_EQ(rejected.json["errors"][0]["extensions"]["statusCode"], 400)
        << "the caller's own session is fine";
    harness.host.refuse_tokens(false);
    EXPECT_EQ((co_await harness.ask(kBob, "{gitOrganizations{name}}")).code(), "");
    // A host that throttles: the last known answer.
    harness.host.fail_next(1, 429, std::chrono::seconds(60));
    EXPECT_EQ((co_await harness.ask(kBob, "{gitOrganizations{name}}"))
                  .json["data"]["gitOrganizations"][0]["name"],
              "acme");
    const auto unknown = co_await harness.ask(kBob, "{gitRepositories{count}}");
    EXPECT_EQ(unknown.code(), "GIT_THROTTLED");
    EXPECT_EQ(unknown.json["errors"][0]["extensions"]["statusCode"], 429);
    // The cluster's own errors stay in the log.
    harness.cluster.fail_next(1, 403);
    const auto down = co_await harness.list(kBob);
    EXPECT_EQ(down.code(), "UNAVAILABLE");
    EXPECT_THAT(down.body, Not(HasSubstr("403")));
    const auto name = co_await harness.add(kAnn, sample_args(harness, "../x", "ACCOUNT_ADMINS"));
    EXPECT_EQ(name.code(), "INVALID_ARGUMENT");
    const auto gerrit = co_await harness.add(kAnn, {{"provider", "GERRIT"},
                                                    {"apiUrl", "https://g.example.test"},
                                                    {"sharingPolicy", "ACCOUNT_ADMINS"}});
    EXPECT_EQ(gerrit.code(), "UNSUPPORTED");
  });
}

// The key that a user's stored token was sealed with.
std::string stored_key(const GitHarness& harness) {
  const auto secret =
      harness.cluster.find(k8s::resources::kSecrets, {"default", "git-default-acc-1"});
  if (!secret) return {};
  for (const auto& [key, value] : (*secret)["data"].items()) {
    if (!key.starts_with("user-")) continue;
    const auto text = base64_decode(value.get<std::string>()).value_or("");
    return Json::parse(text, nullptr, false).value("keyId", "");
  }
  return {};
}

TEST(AppProxyGit, TheKeyOfStoredTokensFollowsBothOfItsParts) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    const TempDir folder;
    write_file(folder / "token", std::string(AppProxyHarness::kRuntime));
    write_file(folder / "iv", "canary-iv-1");
    harness.start({{"RUNTIME_TOKEN", std::nullopt}, {"RUNTIME_STORE_IV", std::nullopt}},
                  {"--runtime-token-file=" + (folder / "token").string(),
                   "--runtime-store-iv-file=" + (folder / "iv").string()});
    co_await harness.base.account_known();
    co_await harness.add();
    const auto registered = co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}});
    EXPECT_EQ(registered.code(), "") << registered.body;
    const auto first = stored_key(harness);
    EXPECT_FALSE(first.empty());
    write_file(folder / "iv", "canary-iv-2");
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (stored_key(harness) == first && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(200));
      (void)co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}});
    }
    EXPECT_NE(stored_key(harness), first);
    // What was sealed before can still be opened.
    EXPECT_EQ((co_await harness.ask(kBob, "{gitOrganizations{name}}")).code(), "");
  });
}

// [AC-28]
TEST(AppProxyGit, AC28_CanaryTokensAppearNowhere) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    co_await harness.add();
    std::string shown;
    const auto note = [&](const GitHarness::Answer& answer) { shown += answer.body; };
    note(co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}}));
    note(co_await harness.register_user(kAnn, {{"token", "canary-unknown"}, {"username", "ann"}}));
    note(co_await harness.register_user(kAnn, {{"token", "canary\nX-Evil: 1"}}));
    note(co_await harness.register_user(kAnn,
                                        {{"token", "canary"}, {"tokenType", "RUNTIME_TOKEN"}}));
    note(co_await harness.ask(
        kAnn, "query($args: ValidateGitProviderArgs!){validateGitProvider(args:$args)}",
        {{"args",
          {{"provider", "GITHUB"},
           {"apiUrl", harness.host.api_root().text()},
           {"token", "canary-validate"}}}}));
    note(co_await harness.ask(
        kAnn, "query($args: GitOrganizationsArgs){gitOrganizations(args:$args){name}}",
        {{"args",
          {{"authDetails",
            {{"provider", "GITHUB"},
             {"apiUrl", "http://canary:canary@127.0.0.1:1/api/v3"},
             {"password", "canary-password"}}}}}}));
    note(co_await harness.ask(kBob, "{gitOrganizations{name}}"));
    harness.host.fail_next(1, 500);
    note(co_await harness.ask(
        kBob, "{readFile(args:{ref:\"main\",repo:\"acme/shop\",path:\"a\"}){data}}"));
    note(co_await harness.list(kAnn));
    EXPECT_THAT(shown, Not(HasSubstr("canary"))) << shown;
    const auto secret =
        harness.cluster.find(k8s::resources::kSecrets, {"default", "git-default-acc-1"});
    CO_ASSERT_TRUE(secret.has_value());
    for (const auto& [key, value] : (*secret)["data"].items()) {
      EXPECT_THAT(base64_decode(value.get<std::string>()).value(), Not(HasSubstr("canary")));
    }
    // GitHarness::stop() looks at the log, the audit stream, the metrics and the status page.
  });
}

// [AC-30]
TEST(AppProxyGit, AC30_AKubeconfigRunsNoProgram) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    const TempDir folder;
    const auto mark = folder / "ran";
    write_file(folder / "program", "#!/bin/sh\ntouch " + mark.string() + "\n");
    std::filesystem::permissions(folder / "program", std::filesystem::perms::owner_all);
    write_file(folder / "kubeconfig",
               "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: "
               "{cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: \"" +
                   harness.cluster.url().to_string() +
                   "\"}}]\nusers: [{name: u, user: {exec: {apiVersion: "
                   "client.authentication.k8s.io/v1, command: " +
                   (folder / "program").string() + ", interactiveMode: Never}}}]\n");
    harness.start({{"KUBECONFIG", (folder / "kubeconfig").string()}});
    co_await harness.base.account_known();
    EXPECT_EQ((co_await harness.list(kAnn)).code(), "UNAVAILABLE");
    EXPECT_FALSE(std::filesystem::exists(mark));
    EXPECT_EQ(harness.cluster.requests().size(), 0U);
  });
}

// [AC-34]
TEST(AppProxyGit, AC34_AHiddenIntegrationLooksLikeNone) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    co_await harness.add(kAnn, sample_args(harness, "hidden", "ACCOUNT_ADMINS"));
    const auto masked = [](std::string body, const std::string& name) {
      for (std::size_t at = 0; (at = body.find(name, at)) != std::string::npos;) {
        body.replace(at, name.size(), "NAME");
      }
      return body;
    };
    using Ask = std::function<Task<GitHarness::Answer>(std::string)>;
    const std::vector<Ask> asks = {
        [&](std::string name) { return harness.get(kBob, std::move(name)); },
        [&](std::string name) {
          return harness.register_user(kBob,
                                       {{"name", std::move(name)}, {"token", FakeGitHost::kToken}});
        },
        [&](std::string name) { return harness.deregister(kBob, std::move(name)); },
        [&](std::string name) {
          return harness.ask(kBob,
                             "query($n:String){gitRepositories(args:{integrationName:$n}){count}}",
                             {{"n", std::move(name)}});
        },
        [&](std::string name) { return harness.remove(kBob, std::move(name)); },
        [&](std::string name) {
          return harness.edit(kBob,
                              {{"name", std::move(name)}, {"sharingPolicy", "ACCOUNT_ADMINS"}});
        },
    };
    for (const auto& ask : asks) {
      const auto hidden = co_await ask("hidden");
      const auto absent = co_await ask("absent");
      EXPECT_EQ(hidden.status, absent.status);
      EXPECT_EQ(masked(hidden.body, "hidden"), masked(absent.body, "absent"));
    }
    EXPECT_EQ(harness.host.requests().size(), 0U);
    const auto listed = co_await harness.list(kBob);
    EXPECT_THAT(listed.body, Not(HasSubstr("hidden")));
  });
}

// [AC-38]
TEST(AppProxyGit, AC38_LinksOfAHostAreOnlyWebLinks) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    CannedServer evil(
        co_await asio::this_coro::executor,
        {json_response(200, R"({"id":1,"login":"<img src=x>","email":null})"),
         json_response(404, "{}"), json_response(200, R"json([{"id":1,"full_name":"acme/shop",
                          "html_url":"javascript:alert(1)","clone_url":"data:text/html,x",
                          "ssh_url":"-oProxyCommand=x","owner":{"login":"<b>","avatar_url":"//x"}}])json")});
    harness.start({{"SKIP_PERMISSIONS_VALIDATION", "true"}});
    co_await harness.base.account_known();
    auto args = sample_args(harness, "evil", "ALL_USERS_IN_ACCOUNT");
    args["apiUrl"] = evil.url().to_string();
    co_await harness.add(kAnn, args);
    const auto registered =
        co_await harness.register_user(kBob, {{"name", "evil"}, {"token", "canary-evil"}});
    EXPECT_EQ(registered.code(), "") << registered.body;
    const auto page = co_await harness.ask(
        kBob,
        "{gitRepositories(args:{integrationName:\"evil\"}){data{webUrl cloneUrl sshUrl "
        "ownerAvatarUrl}}}");
    EXPECT_EQ(page.json["data"]["gitRepositories"]["data"][0],
              (Json{{"webUrl", ""}, {"cloneUrl", ""}, {"sshUrl", ""}, {"ownerAvatarUrl", ""}}))
        << page.body;
    EXPECT_THAT(std::string(page.headers.find("Content-Type").value_or("")), HasSubstr("json"));
    co_await evil.stop();
  });
}

// [AC-39]
TEST(AppProxyGit, AC39_ATokenDoesNotFollowARedirectToAnotherHost) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    CannedServer thief(executor, {json_response(200, "{}")});
    http::Response moved{.status = 307,
                         .headers = {{"Location", thief.url().to_string() + "/api/v3/user"}}};
    CannedServer host(executor, {moved});
    harness.start();
    co_await harness.base.account_known();
    auto args = sample_args(harness, "moved", "ALL_USERS_IN_ACCOUNT");
    args["apiUrl"] = host.url().to_string();
    EXPECT_EQ((co_await harness.add(kAnn, args)).code(), "");
    const auto refused =
        co_await harness.register_user(kBob, {{"name", "moved"}, {"token", "canary-moved"}});
    EXPECT_EQ(refused.code(), "GIT_REDIRECTED") << refused.body;
    EXPECT_GE(host.seen().size(), 1U);
    EXPECT_EQ(thief.seen().size(), 0U);
    // Paths that would leave the repository are refused before the host is asked.
    co_await harness.add();
    co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}});
    const auto before = harness.host.requests().size();
    for (const char* path : {"../../../user", "/etc/passwd", "a/../../x"}) {
      const auto answer = co_await harness.ask(
          kBob, "query($p:String!){readFile(args:{ref:\"main\",repo:\"acme/shop\",path:$p}){data}}",
          {{"p", path}});
      EXPECT_EQ(answer.code(), "INVALID_ARGUMENT") << path;
    }
    for (const char* repo : {"../user", "acme/..", "acme/shop?x", "https://h.test/acme/shop"}) {
      const auto answer = co_await harness.ask(
          kBob, "query($r:String!){repositoryBranchesAndTags(repo:$r){branches}}", {{"r", repo}});
      EXPECT_EQ(answer.code(), "INVALID_ARGUMENT") << repo;
    }
    EXPECT_EQ(harness.host.requests().size(), before);
    co_await host.stop();
    co_await thief.stop();
  });
}

TEST(AppProxyGit, ATokenThatExpiresIsToldOnce) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start({{"GIT_CHECK_PERIOD", "1s"}});
    co_await harness.base.account_known();
    co_await harness.add();
    co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}});
    harness.host.refuse_tokens(true);
    const auto is_valid = [&]() -> Task<Json> {
      const auto answer = co_await harness.ask(kAnn, "{gitIntegration{users{userId isValid}}}");
      co_return answer.json["data"]["gitIntegration"]["users"][0]["isValid"];
    };
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (co_await is_valid() != false && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(co_await is_valid(), false);
    // Two more rounds.
    const auto asked = harness.host.requests().size();
    while (harness.host.requests().size() < asked + 2 && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(50));
    }
    const auto log = harness.logs();
    const std::string line = "a Git token is not valid any more";
    const auto first = log.find(line);
    CO_ASSERT_TRUE(first != std::string::npos);
    EXPECT_EQ(log.find(line, first + 1), std::string::npos) << "once";
  });
}

TEST(AppProxyGit, TheAccountsOwnHostIsTheDefault) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.base.platform.accounts().add({.id = "acc-1",
                                          .name = "acme",
                                          .admins = {"u-ann"},
                                          .git_provider = "GITLAB",
                                          .git_api_url = "https://git.example.test/"});
    // What another program has stored there stays.
    harness.cluster.put_secret({"default", "git-default-acc-1"}, {{"layout", "unknown"}});
    harness.cluster.fail_next(1, 503);
    harness.start();
    co_await harness.base.account_known();
    const auto deadline = deadline_after(std::chrono::seconds(20));
    Json found;
    while (found.is_null() && Clock::now() < deadline) {
      found = (co_await harness.get(kBob)).json["data"]["gitIntegration"];
      if (found.is_null()) co_await sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(found, (Json{{"name", "default"},
                           {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"},
                           {"provider", "GITLAB"},
                           {"apiUrl", "https://git.example.test/api/v4"},
                           {"registeredUsers", Json::array()}}));
    const auto secret =
        harness.cluster.find(k8s::resources::kSecrets, {"default", "git-default-acc-1"});
    EXPECT_TRUE((*secret)["data"].contains("layout"));
  });
}

TEST(AppProxyGit, WithoutAClusterTheRestServes) {
  in_app_proxy_harness([](AppProxyHarness& harness) -> Task<> {
    harness.start({{"KUBECONFIG", "/no/such/file"}});
    co_await harness.account_known();
    const auto answer =
        co_await harness.ask("{gitIntegrations{name}}", AppProxyHarness::as(AppProxyHarness::kBob));
    EXPECT_EQ(answer.code(), "UNAVAILABLE");
    EXPECT_EQ((co_await harness.ask("{versionInfo{version}}")).status, 200);
    const auto status = harness.daemon->status();
    EXPECT_EQ(status.state("Git integrations"), "unavailable") << status;
    EXPECT_NE(status.message("Git integrations"), "");
    // The one test of the whole text; the others compare its entries.
    const testing::Matcher<const std::string&> is_whole = testing::MatchesRegex(
        "app-proxy [0-9.]+\n"
        "up [0-9hms]+\n"
        "ready\n"
        "\n"
        "account: acc-1\n"
        "users known: [0-9]+\n"
        "(rules for [a-zA-Z-]+: fresh\n)+"
        "Argo CD: not configured\n"
        "Argo Workflows: not configured\n"
        "report of clusters: not available\n"
        "sealing key: not available\n"
        "logs being read: 0\n"
        "Git integrations: [^\n]+\n");
    auto text = harness.daemon->admin("/statusz").body;
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (!is_whole.Matches(text) && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(20));
      text = harness.daemon->admin("/statusz").body;
    }
    EXPECT_THAT(text, is_whole);
  });
}

// [AC-41]
TEST(AppProxyGit, AC41_NothingIsClonedOverSsh) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    co_await harness.add();
    co_await harness.register_user(kBob, {{"token", FakeGitHost::kToken}});
    for (const char* url : {"ssh://git@127.0.0.1/acme/shop.git", "git@127.0.0.1:acme/shop.git",
                            "ext::sh -c true", "file:///etc"}) {
      harness.host.find("acme", "shop")->clone_url = url;
      const auto answer = co_await harness.ask(
          kBob, "mutation($args: CommitFilesArgs!){commitFiles(args:$args){sha}}",
          {{"args",
            {{"repo", "acme/shop"}, {"files", Json::array({{{"path", "a"}, {"data", "b"}}})}}}});
      EXPECT_EQ(answer.code(), "GIT_BAD_ANSWER") << url << answer.body;
    }
    EXPECT_THAT(harness.base.daemon->admin("/metrics").body,
                HasSubstr("gitops_app_proxy_git_clones 0"));
  });
}

}  // namespace
}  // namespace gitops::test
