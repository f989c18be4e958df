// A real Gitea over HTTPS with an authority of its own: the contract of Git hosts, and the running
// app-proxy with the public Go SDK as its client.
#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "app-proxy/providers/providers.hpp"
#include "contract/git_provider_contract.hpp"
#include "daemons/router_harness.hpp"
#include "e2e/git_harness.hpp"
#include "e2e/login_browser.hpp"
#include "k8s-client/resource.hpp"
#include "peers/go_sdk.hpp"
#include "peers/peer_gitea.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using namespace app_proxy;
using Json = nlohmann::json;
using testing::HasSubstr;

// Gitea with the user dana, who owns the organisation acme, and rita, who may read acme/shop.
class GiteaHost : public PeerGitea {
 public:
  GiteaHost() : dana_(create_user("dana")) {
    const auto rita = create_user("rita");
    reader_ = create_token(rita, "read:repository,read:user,read:organization");
    fill();
  }

  [[nodiscard]] const User& dana() const { return dana_; }
  [[nodiscard]] const std::string& token() const { return dana_.token; }
  [[nodiscard]] const std::string& reader() const { return reader_; }
  [[nodiscard]] const std::string& commit() const { return commit_; }

  // As dana. Throws unless the answer is 2xx.
  Json must(const std::string& method, const std::string& path, const Json& body) const {
    const auto reply = api(dana_, method, path, body.is_null() ? "" : body.dump());
    if (!reply.ok()) throw std::runtime_error(method + " " + path + ": " + reply.body);
    return Json::parse(reply.body, nullptr, false);
  }
  void merge(std::int64_t id, const std::string& repository = "acme/shop") const {
    // Gitea works out first whether there are conflicts.
    require_until(
        [&] {
          return api(dana_, "POST",
                     "/repos/" + repository + "/pulls/" + std::to_string(id) + "/merge",
                     R"({"Do":"merge"})")
              .ok();
        },
        std::chrono::seconds(20), "the merge");
  }

 private:
  void fill() {
    must("POST", "/orgs", {{"username", "acme"}});
    must("POST", "/orgs/acme/repos",
         {{"name", "shop"}, {"private", true}, {"auto_init", true}, {"default_branch", "main"}});
    for (int i = 0; i < 7; ++i) {
      must("POST", i % 2 == 0 ? "/user/repos" : "/orgs/acme/repos",
           {{"name", "extra-" + std::to_string(i)}, {"private", true}});
    }
    const auto file = [&](const std::string& path, const std::string& text,
                          const std::string& branch) {
      must("POST", "/repos/acme/shop/contents/" + path,
           {{"content", base64_encode(text)}, {"message", "add"}, {"branch", branch}});
    };
    file("deploy/app%20one.yaml", kContractFileContent, "main");
    must("POST", "/repos/acme/shop/branches",
         {{"new_branch_name", "feature/x"}, {"old_branch_name", "main"}});
    must("POST", "/repos/acme/shop/tags", {{"tag_name", "v1.0"}, {"target", "main"}});
    file("more.yaml", "more: true\n", "feature/x");
    must("PUT", "/repos/acme/shop/collaborators/rita", {{"permission", "read"}});
    commit_ = must("GET", "/repos/acme/shop/branches/main", nullptr)["commit"]["id"];
  }

  User dana_;
  std::string reader_;
  std::string commit_;
};

GiteaHost& gitea() {
  static GiteaHost host;
  return host;
}

struct GiteaContract : testing::TestWithParam<GitProviderCase> {};

TEST_P(GiteaContract, Holds) {
  GITOPS_REQUIRE_PEER(GiteaHost);
  auto& host = gitea();
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        Metrics metrics;
        net::Resolver resolver(metrics);
        http::ClientOptions options;
        options.tls.ca_file = host.ca_file().string();
        http::Client http(executor, resolver, options);
        GitHostClient client(executor, http, metrics);
        const auto provider = make_provider(client, *make_api_root("gitea", host.url()));
        const GitHostPeer peer{
            .provider = *provider,
            .access = {Secret(host.token())},
            .reader = GitAccess{Secret(host.reader())},
            .login = "dana",
            .organisation = "acme",
            .repository = {"acme", "shop"},
            .extra = 7,
            .owner_of_new = "acme",
            .commit = host.commit(),
            .merge = [&](std::int64_t id) -> Task<> {
              host.merge(id);
              co_return;
            },
        };
        co_await GetParam().run(peer);
        http.close_idle();
      },
      std::chrono::seconds(60));
}

INSTANTIATE_TEST_SUITE_P(Gitea, GiteaContract, testing::ValuesIn(git_provider_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GoSdk, RunsEveryOperationOnGitIntegrations) {
  GITOPS_REQUIRE_PEER(GoSdk);
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    constexpr auto kAnn = AppProxyHarness::kAnn;
    constexpr auto kBob = AppProxyHarness::kBob;
    EXPECT_EQ(co_await GoSdk::ok(harness.base, kBob, "git-integrations"), Json::array());
    EXPECT_EQ(co_await GoSdk::ok(harness.base, kBob, "git-integration"), Json());
    const std::string root = harness.host.api_root().text();
    const Json args{
        {"provider", "GITHUB"}, {"apiUrl", root}, {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}};
    const auto forbidden =
        co_await GoSdk::run(harness.base, kBob, "add-git-integration", args.dump());
    EXPECT_EQ(forbidden.exit_code, 1);
    EXPECT_THAT(forbidden.err, HasSubstr("only an administrator of the account may do this"));
    const auto added = co_await GoSdk::ok(harness.base, kAnn, "add-git-integration", args.dump());
    EXPECT_EQ(added["name"], "default");
    EXPECT_EQ(added["provider"], "GITHUB");
    EXPECT_EQ(added["apiUrl"], root);
    EXPECT_EQ(added["registeredUsers"], Json::array());
    const auto edited =
        co_await GoSdk::ok(harness.base, kAnn, "edit-git-integration",
                           Json{{"apiUrl", ""}, {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}.dump());
    EXPECT_EQ(edited["apiUrl"], root);
    const auto weak = co_await GoSdk::run(harness.base, kBob, "register-to-git-integration",
                                          Json{{"token", FakeGitHost::kReader}}.dump());
    EXPECT_EQ(weak.exit_code, 1);
    EXPECT_THAT(weak.err, HasSubstr("lacks these rights"));
    const auto registered = co_await GoSdk::ok(harness.base, kBob, "register-to-git-integration",
                                               Json{{"token", FakeGitHost::kToken}}.dump());
    EXPECT_EQ(registered["registeredUsers"], Json{"u-bob"});
    const auto listed = co_await GoSdk::ok(harness.base, kBob, "git-integrations");
    CO_ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed[0]["users"][0]["userId"], "u-bob");
    EXPECT_EQ(
        (co_await GoSdk::ok(harness.base, kBob, "git-integration", "default"))["sharingPolicy"],
        "ALL_USERS_IN_ACCOUNT");
    const auto left = co_await GoSdk::ok(harness.base, kBob, "deregister-from-git-integration");
    EXPECT_EQ(left["registeredUsers"], Json::array());
    co_await GoSdk::ok(harness.base, kAnn, "remove-git-integration", "default");
    EXPECT_EQ(co_await GoSdk::ok(harness.base, kBob, "git-integrations"), Json::array());
    const auto gone = co_await GoSdk::run(harness.base, kAnn, "remove-git-integration", "default");
    EXPECT_EQ(gone.exit_code, 1);
  });
}

TEST(GoSdk, RegistersWithARealGitea) {
  GITOPS_REQUIRE_PEER(GoSdk);
  GITOPS_REQUIRE_PEER(GiteaHost);
  auto& host = gitea();
  in_git_harness([&](GitHarness& harness) -> Task<> {
    harness.start(
        {{"GIT_INSECURE_HTTP", "false"}, {"NODE_EXTRA_CA_CERTS", host.ca_file().string()}});
    co_await harness.base.account_known();
    const Json args{{"provider", "GITHUB"},
                    {"apiUrl", host.url() + "/api/v1"},
                    {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}};
    co_await GoSdk::ok(harness.base, AppProxyHarness::kAnn, "add-git-integration", args.dump());
    const auto registered =
        co_await GoSdk::ok(harness.base, AppProxyHarness::kBob, "register-to-git-integration",
                           Json{{"token", host.token()}}.dump());
    EXPECT_EQ(registered["registeredUsers"], Json{"u-bob"});
    std::size_t count = 0;
    bool has_next = true;
    for (int page = 1; has_next && page < 20; ++page) {
      const auto answer = co_await harness.ask(
          AppProxyHarness::kBob, "{gitRepositories(args:{page:" + std::to_string(page) +
                                     ",limit:3}){hasNext data{fullName cloneUrl}}}");
      const Json repositories = answer.json["data"]["gitRepositories"];
      CO_ASSERT_TRUE(repositories.is_object()) << answer.body;
      count += repositories["data"].size();
      has_next = repositories["hasNext"];
    }
    EXPECT_GE(count, 8U);
    const auto file = co_await harness.ask(
        AppProxyHarness::kBob,
        "{readFile(args:{ref:\"HEAD\",repo:\"acme/shop\",path:\"deploy/app one.yaml\"}){data}}");
    EXPECT_EQ(file.json["data"]["readFile"]["data"], kContractFileContent) << file.body;
    EXPECT_FALSE(harness.logs().contains(host.token()));
  });
}

// Who may do what with the repository of a Git source, and a change of that at the host, come to the
// control plane by themselves.
TEST(Gitea, PermissionsOfUsersAreReported) {
  GITOPS_REQUIRE_PEER(GiteaHost);
  auto& host = gitea();
  host.must("POST", "/orgs/acme/repos",
            {{"name", "source"}, {"private", true}, {"auto_init", true}});
  in_git_harness([&](GitHarness& harness) -> Task<> {
    auto& accounts = harness.base.platform.accounts();
    accounts.add(FakeAccounts::GitSource{
        .name = "source", .runtime = "prod", .repository_url = host.url() + "/acme/source.git"});
    harness.start({{"GIT_INSECURE_HTTP", "false"},
                   {"NODE_EXTRA_CA_CERTS", host.ca_file().string()},
                   {"SKIP_PERMISSIONS_VALIDATION", "true"},  // rita's token may only read
                   {"GIT_CHECK_PERIOD", "1s"}});
    co_await harness.base.account_known();
    EXPECT_EQ(
        (co_await harness.add(AppProxyHarness::kAnn, {{"provider", "GITHUB"},
                                                      {"apiUrl", host.url() + "/api/v1"},
                                                      {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}))
            .code(),
        "");
    const auto reported = [&](bool rita_reads, bool rita_writes) -> Task<> {
      const Json wanted =
          Json::array({{{"userId", "u-ann"}, {"read", rita_reads}, {"write", rita_writes}},
                       {{"userId", "u-bob"}, {"read", true}, {"write", true}}});
      const auto deadline = deadline_after(std::chrono::seconds(20));
      while (accounts.git_sources()[0].permissions != wanted && Clock::now() < deadline) {
        co_await sleep_for(std::chrono::milliseconds(10));
      }
      EXPECT_EQ(accounts.git_sources()[0].permissions, wanted);
    };
    EXPECT_EQ(
        (co_await harness.register_user(AppProxyHarness::kAnn, {{"token", host.reader()}})).code(),
        "");
    EXPECT_EQ(
        (co_await harness.register_user(AppProxyHarness::kBob, {{"token", host.token()}})).code(),
        "");
    co_await reported(false, false);
    host.must("PUT", "/repos/acme/source/collaborators/rita", {{"permission", "read"}});
    co_await reported(true, false);
    host.must("PUT", "/repos/acme/source/collaborators/rita", {{"permission", "write"}});
    co_await reported(true, true);
    const auto status = harness.base.daemon->status();
    EXPECT_EQ(status.state("Git permissions of users"), "ok") << status;
    EXPECT_EQ(status.count("Git permissions of users", "known"), 2) << status;
    EXPECT_EQ(status.count("Git permissions of users", "known_of"), 2) << status;
    EXPECT_EQ(status.count("Git permissions of users", "git_sources"), 1) << status;
  });
}

// A browser before Gitea, as far as it is needed to log in there and to agree to an application.
class GiteaBrowser {
 public:
  using Fields = std::vector<std::pair<std::string_view, std::string_view>>;
  GiteaBrowser(http::Client& http, http::Url url) : http_(http), url_(std::move(url)) {}

  Task<http::Response> get(std::string target) {
    http::Request request{.target = std::move(target)};
    co_return co_await send(std::move(request));
  }
  Task<http::Response> post(std::string target, Fields fields) {
    http::Request request{.method = "POST",
                          .target = std::move(target),
                          .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                          .body = http::query_string(fields)};
    co_return co_await send(std::move(request));
  }
  // The value of a hidden field, as it is written: none of them holds what HTML escapes.
  static std::string hidden(std::string_view page, const std::string& name) {
    const std::string begin = "name=\"" + name + "\" value=\"";
    const auto at = page.find(begin);
    if (at == std::string_view::npos) return {};
    const auto start = at + begin.size();
    return std::string(page.substr(start, page.find('"', start) - start));
  }
  Task<> log_in(const PeerGitea::User& user) {
    const auto page = co_await get("/user/login");
    const auto csrf = hidden(page.body, "_csrf");
    const auto done = co_await post(
        "/user/login", {{"_csrf", csrf}, {"user_name", user.name}, {"password", user.password}});
    EXPECT_EQ(done.status, 303) << done.body;
  }
  // Where the browser is sent back to when its user agrees.
  Task<std::string> agree(const std::string& address) {
    const auto asked = http::parse_url(address);
    if (!asked) {
      ADD_FAILURE() << address;
      co_return std::string();
    }
    const auto page = co_await get(asked->path + "?" + asked->query);
    EXPECT_EQ(page.status, 200) << page.body;
    const std::string_view form = std::string_view(page.body).substr(
        std::min(page.body.find("/login/oauth/grant"), page.body.size()));
    const auto csrf = hidden(form, "_csrf");
    const auto client_id = hidden(form, "client_id");
    const auto state = hidden(form, "state");
    const auto scope = hidden(form, "scope");
    const auto nonce = hidden(form, "nonce");
    const auto redirect_uri = hidden(form, "redirect_uri");
    const auto done = co_await post("/login/oauth/grant", {{"_csrf", csrf},
                                                           {"client_id", client_id},
                                                           {"state", state},
                                                           {"scope", scope},
                                                           {"nonce", nonce},
                                                           {"redirect_uri", redirect_uri},
                                                           {"granted", "true"}});
    EXPECT_EQ(done.status, 303) << done.body;
    co_return std::string(done.headers.find("Location").value_or(""));
  }

 private:
  Task<http::Response> send(http::Request request) {
    std::string cookies;
    for (const auto& [name, value] : cookies_) {
      cookies += (cookies.empty() ? "" : "; ") + name + "=" + value;
    }
    if (!cookies.empty()) request.headers.add("Cookie", cookies);
    auto response =
        co_await http_.send(url_, std::move(request), deadline_after(std::chrono::seconds(20)));
    if (!response) {
      ADD_FAILURE() << response.error().message;
      co_return http::Response{.status = 0};
    }
    for (const auto& [name, value] : response->headers) {
      if (!http::equal_ignoring_case(name, "Set-Cookie")) continue;
      const auto pair = value.substr(0, value.find(';'));
      const auto equals = pair.find('=');
      cookies_[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
    co_return std::move(*response);
  }

  http::Client& http_;
  http::Url url_;
  std::map<std::string, std::string> cookies_;
};

// The user's entry in the Secret of an integration, of which there is one.
Json stored_user(GitHarness& harness) {
  const auto secret =
      harness.cluster.find(k8s::resources::kSecrets, {"default", "git-default-acc-1"});
  if (!secret) return {};
  for (const auto& [key, value] : (*secret)["data"].items()) {
    if (!key.starts_with("user-")) continue;
    return Json::parse(base64_decode(value.get<std::string>()).value_or(""), nullptr, false);
  }
  return {};
}

// From the command line's link, by Gitea's own pages, to a token that commits, and to the next one.
TEST(Gitea, AUserLogsInByABrowserAndTheTokenIsRenewed) {
  GITOPS_REQUIRE_PEER(GiteaHost);
  auto& host = gitea();
  host.must(
      "POST", "/orgs/acme/repos",
      {{"name", "login"}, {"private", true}, {"auto_init", true}, {"default_branch", "main"}});
  const std::string address = LoginBrowser::kAddress;
  const Json application =
      host.must("POST", "/user/applications/oauth2",
                {{"name", "runtime"},
                 {"confidential_client", true},
                 {"redirect_uris", {address + "/app-proxy/api/git-auth/gitea/callback"}}});
  const std::string client_secret = application["client_secret"];
  in_git_harness([&](GitHarness& harness) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    harness.start({{"GIT_INSECURE_HTTP", "false"},
                   {"NODE_EXTRA_CA_CERTS", host.ca_file().string()},
                   {"INGRESS_HOST", address}});
    co_await harness.base.account_known();
    harness.cluster.put_secret({"default", "gitea-login"},
                               {{"url", host.url()},
                                {"clientId", application["client_id"].get<std::string>()},
                                {"clientSecret", client_secret}},
                               {{"codefresh_io_entity", "git-pat-obtainer-sec"}});
    EXPECT_EQ(
        (co_await harness.add(AppProxyHarness::kAnn, {{"provider", "GITEA"},
                                                      {"apiUrl", host.url() + "/api/v1"},
                                                      {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}))
            .code(),
        "");
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::ClientOptions options;
    options.tls.ca_file = host.ca_file().string();
    http::Client http(executor, resolver, options);
    GiteaBrowser at_gitea(http, http::parse_url(host.url()).value());
    co_await at_gitea.log_in(host.dana());

    constexpr const char* kPath = "/app-proxy/api/git-auth/gitea";
    LoginBrowser browser(harness.base);
    EXPECT_EQ((co_await browser.open(std::string(kPath) + "?userId=u-bob&accountId=acc-1")).status,
              200);
    const auto onward = LoginBrowser::onward(co_await browser.submit(
        kPath, {{"userId", "u-bob"}, {"accountId", "acc-1"}, {"apiKey", AppProxyHarness::kBob}}));
    const auto sent_back = co_await at_gitea.agree(onward);
    EXPECT_THAT(sent_back, testing::StartsWith(address + kPath + "/callback?"));
    const auto done = co_await browser.open(sent_back);
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_THAT(done.body, HasSubstr("Your account dana at Gitea is registered"));
    const Json first = stored_user(harness);
    EXPECT_EQ(first.value("login", ""), "dana");
    EXPECT_TRUE(first.contains("refreshToken")) << first;
    EXPECT_GT(first.value("expiresAt", 0LL), wall_now().time_since_epoch().count());

    // It has less than five minutes left, so it is renewed before it is used.
    const auto commit = co_await harness.ask(
        AppProxyHarness::kBob, "mutation($args: CommitFilesArgs!){commitFiles(args:$args){sha}}",
        {{"args",
          {{"repo", "acme/login"},
           {"branchName", "main"},
           {"files", {{{"path", "login.yaml"}, {"data", "by: oauth\n"}}}},
           {"msg", "By a login"}}}});
    EXPECT_EQ(commit.code(), "") << commit.body;
    EXPECT_EQ(host.must("GET", "/repos/acme/login/branches/main", nullptr)["commit"]["id"],
              commit.json["data"]["commitFiles"]["sha"])
        << commit.body;
    const Json second = stored_user(harness);
    EXPECT_NE(second.value("token", ""), first.value("token", ""));
    EXPECT_NE(second.value("refreshToken", ""), first.value("refreshToken", ""));
    EXPECT_EQ(second.value("state", ""), "valid");

    // The same callback again leads nowhere.
    EXPECT_NE((co_await browser.open(sent_back)).status, 200);
    EXPECT_FALSE(harness.logs().contains(client_secret));
    http.close_idle();
  });
}

// A webhook of Gitea as the event source got it.
struct Delivery {
  std::string event;
  Json body;
};
std::vector<Delivery> deliveries(RouterHarness& router) {
  std::vector<Delivery> all;
  for (const auto& request : router.events().requests()) {
    all.push_back(
        {request.header("X-Gitea-Event").value_or(""), Json::parse(request.body, nullptr, false)});
  }
  return all;
}

// What a user does in a day, through the router: from the integration to the merged pull request, whose
// webhooks come back through the router to an event source.
TEST(GiteaThroughTheRuntime, FromTheIntegrationToTheWebhookOfAMerge) {
  GITOPS_REQUIRE_PEER(GiteaHost);
  auto& host = gitea();
  const std::string branch = "change";
  host.must("POST", "/orgs/acme/repos",
            {{"name", "day"}, {"private", true}, {"auto_init", true}, {"default_branch", "main"}});
  host.must("POST", "/repos/acme/day/contents/deploy/app%20one.yaml",
            {{"content", base64_encode(kContractFileContent)}, {"message", "add"}});
  host.must("POST", "/repos/acme/day/branches",
            {{"new_branch_name", branch}, {"old_branch_name", "main"}});
  in_git_harness([&](GitHarness& harness) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    harness.start(
        {{"GIT_INSECURE_HTTP", "false"}, {"NODE_EXTRA_CA_CERTS", host.ca_file().string()}});
    co_await harness.base.account_known();
    const TempDir folder;
    const std::string secret = "webhook-" + random_hex(8);
    write_file(folder / "secret", secret);
    RouterHarness router({.environment = {{"APP_PROXY_URL", harness.base.daemon->url()},
                                          {"WEBHOOK_SIGNATURES",
                                           "argo/github=github:" + (folder / "secret").string()}}});
    const http::Url entrance{.scheme = "http", .host = "127.0.0.1", .port = router.port()};
    const auto ask = [&](const char* user, std::string query, Json variables) -> Task<Json> {
      const auto answer = co_await harness.base.client.send(
          entrance,
          {.method = "POST",
           .target = "/app-proxy/api/graphql",
           .headers = {{"Authorization", user}, {"Content-Type", "application/json"}},
           .body = Json{{"query", query}, {"variables", std::move(variables)}}.dump()},
          deadline_after(std::chrono::seconds(30)));
      if (!answer) {
        ADD_FAILURE() << answer.error().message;
        co_return Json();
      }
      EXPECT_EQ(answer->status, 200) << answer->body;
      EXPECT_FALSE(answer->body.contains(host.token()));
      const Json json = Json::parse(answer->body, nullptr, false);
      EXPECT_FALSE(json.contains("errors")) << answer->body;
      co_return json.is_object() && json["data"].is_object() ? json["data"].begin().value()
                                                             : Json();
    };
    constexpr auto kAnn = AppProxyHarness::kAnn;
    constexpr auto kBob = AppProxyHarness::kBob;

    (void)co_await ask(
        kAnn, "mutation($args: AddGitIntegrationArgs!){addGitIntegration(args:$args){name}}",
        {{"args",
          {{"provider", "GITEA"},
           {"apiUrl", host.url() + "/api/v1"},
           {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}}});
    const Json registered = co_await ask(
        kBob,
        "mutation($args: RegisterToGitIntegrationArgs!){registerToGitIntegration(args:$args){"
        "registeredUsers}}",
        {{"args", {{"token", host.token()}}}});
    EXPECT_EQ(registered["registeredUsers"], Json{"u-bob"});

    // Listed by pages: each repository once.
    std::set<std::string> names;
    std::size_t listed = 0;
    bool has_next = true;
    for (int page = 1; has_next && page < 20; ++page) {
      const Json one =
          co_await ask(kBob,
                       "query($p: Int){gitRepositories(args:{page:$p,limit:3}){hasNext "
                       "count data{fullName cloneUrl}}}",
                       {{"p", page}});
      CO_ASSERT_TRUE(one.is_object());
      EXPECT_LE(one["data"].size(), 3U);
      for (const auto& repository : one["data"]) names.insert(repository["fullName"]);
      listed += one["data"].size();
      has_next = one["hasNext"];
    }
    EXPECT_GE(listed, 8U);
    EXPECT_EQ(names.size(), listed);
    EXPECT_TRUE(names.contains("acme/day"));

    const Json file = co_await ask(
        kBob, "query($args: ReadFileArgs!){readFile(args:$args){path revision data}}",
        {{"args", {{"ref", branch}, {"repo", "acme/day"}, {"path", "deploy/app one.yaml"}}}});
    EXPECT_EQ(file["data"], kContractFileContent);

    // The webhook, as the provider makes it.
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::ClientOptions options;
    options.tls.ca_file = host.ca_file().string();
    http::Client http(executor, resolver, options);
    GitHostClient client(executor, http, metrics);
    const auto provider = make_provider(client, *make_api_root("gitea", host.url()));
    const auto hook = co_await provider->create_webhook(
        {Secret(host.token())}, {"acme", "day"},
        {.url = "http://127.0.0.1:" + std::to_string(router.port()) + "/webhooks/argo/github",
         .secret = Secret(secret)},
        deadline_after(std::chrono::seconds(20)));
    CO_ASSERT_TRUE(hook.has_value()) << hook.error().message;

    // A commit with the revision that was read; its push is delivered.
    const Json commit =
        co_await ask(kBob,
                     "mutation commitFiles($args: CommitFilesArgs!) { commitFiles(args: $args) { "
                     "COMMIT_SHA: sha "
                     "committer { name email } } }",
                     {{"args",
                       {{"repo", "acme/day"},
                        {"branchName", branch},
                        {"files",
                         {{{"path", "deploy/app one.yaml"},
                           {"revision", file["revision"]},
                           {"data", std::string(kContractFileContent) + "# changed\n"}}}},
                        {"msg", "Change it"}}}});
    const std::string sha = commit.value("COMMIT_SHA", "");
    EXPECT_EQ(host.must("GET", "/repos/acme/day/branches/" + branch, nullptr)["commit"]["id"], sha);
    EXPECT_EQ(commit["committer"]["name"], "dana");
    const auto delivered = [&](const std::function<bool(const Delivery&)>& fits) -> Task<bool> {
      const auto deadline = deadline_after(std::chrono::seconds(30));
      while (Clock::now() < deadline) {
        const auto all = deliveries(router);
        if (std::ranges::any_of(all, fits)) co_return true;
        co_await sleep_for(std::chrono::milliseconds(50));
      }
      co_return false;
    };
    EXPECT_TRUE(co_await delivered([&](const Delivery& delivery) {
      return delivery.event == "push" && delivery.body.value("after", "") == sha;
    }));

    const Json pull_request = co_await ask(
        kBob,
        "mutation($args: CreatePullRequestArgs!){createPullRequest(args:$args){id state isMerged "
        "baseBranch headBranch}}",
        {{"args",
          {{"repo", "acme/day"}, {"head", branch}, {"base", "HEAD"}, {"title", "Please"}}}});
    EXPECT_EQ(pull_request["state"], "OPEN");
    EXPECT_EQ(pull_request["baseBranch"], "main");
    const auto id = pull_request.value("id", 0);
    host.merge(id, "acme/day");
    const Json merged = co_await ask(
        kBob,
        "query($id: Int!){pullRequest(repo:\"acme/day\",id:$id){state isMerged mergeCommitSHA}}",
        {{"id", id}});
    EXPECT_EQ(merged["isMerged"], true);
    EXPECT_EQ(merged["mergeCommitSHA"],
              host.must("GET", "/repos/acme/day/branches/main", nullptr)["commit"]["id"]);
    EXPECT_TRUE(co_await delivered([&](const Delivery& delivery) {
      return delivery.event == "pull_request" && delivery.body.value("action", "") == "closed" &&
             delivery.body["pull_request"]["merged"] == true;
    }));
    CO_ASSERT_OK(co_await provider->delete_webhook({Secret(host.token())}, {"acme", "day"},
                                                   hook->id,
                                                   deadline_after(std::chrono::seconds(20))));
    EXPECT_FALSE(harness.logs().contains(host.token()));
    EXPECT_FALSE(router.log().contains(secret));
    http.close_idle();
  });
}

}  // namespace
}  // namespace gitops::test
