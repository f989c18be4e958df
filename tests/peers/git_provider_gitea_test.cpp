// A real Gitea over HTTPS with an authority of its own: the contract of Git hosts, and the running
// app-proxy with the public Go SDK as its client.
#include <filesystem>
#include <future>

#include <gmock/gmock.h>

#include "app-proxy/providers/providers.hpp"
#include "contract/git_provider_contract.hpp"
#include "e2e/git_world.hpp"
#include "peers/peer_programs.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using namespace app_proxy;
using Json = nlohmann::json;
using testing::HasSubstr;

// Gitea with the user dana, who owns the organisation acme, and rita, who may read acme/shop.
class GiteaHost {
 public:
  static std::optional<std::string> missing() {
    if (!fs::exists(peer_program("gitea"))) return "gitea is not built (./dev peers gitea)";
    return std::nullopt;
  }

  GiteaHost()
      : certificate_(authority_.issue(
            {.common_name = "gitea", .organization = {}, .alt_names = {"localhost"}})) {
    const auto ini = programs_.folder() / "app.ini";
    write_file(ini, config());
    const std::string program = peer_program("gitea").string();
    const auto admin = [&](std::vector<std::string> arguments) {
      std::vector<std::string> argv{program, "admin", "user"};
      argv.insert(argv.end(), arguments.begin(), arguments.end());
      argv.insert(argv.end(), {"-c", ini.string()});
      // The last line is the answer; a warning about the user may come before it.
      const auto out = run_or_throw(argv);
      return out.substr(out.rfind('\n') + 1);
    };
    run_or_throw({program, "migrate", "-c", ini.string()});
    for (const char* user : {"dana", "rita"}) {
      admin({"create", "--username", user, "--password", "pass-" + std::string(user), "--email",
             std::string(user) + "@example.test", "--must-change-password=false"});
    }
    programs_.start("gitea", {program, "web", "-c", ini.string()});
    programs_.await("gitea", [this] { return call("GET", "/version", {}, {}).ok(); });
    token_ = admin({"generate-access-token", "-u", "dana", "--scopes", "all", "--raw"});
    reader_ = admin({"generate-access-token", "-u", "rita", "--scopes",
                     "read:repository,read:user,read:organization", "--raw"});
    fill();
  }

  [[nodiscard]] std::string url() const { return "https://localhost:" + std::to_string(port_); }
  [[nodiscard]] const std::string& token() const { return token_; }
  [[nodiscard]] const std::string& reader() const { return reader_; }
  [[nodiscard]] const std::string& commit() const { return commit_; }
  [[nodiscard]] fs::path ca_file() const { return authority_.ca_file(); }

  HttpReply call(const std::string& method, const std::string& path, const std::string& token,
                 const Json& body) const {
    HttpCall call{.method = method,
                  .url = url() + "/api/v1" + path,
                  .headers = {"Content-Type: application/json"},
                  .body = body.is_null() ? "" : body.dump(),
                  .ca_file = ca_file()};
    if (!token.empty()) call.headers.push_back("Authorization: token " + token);
    return http_call(call);
  }
  void merge(std::int64_t id) const {
    // Gitea works out first whether there are conflicts.
    require_until(
        [&] {
          return call("POST", "/repos/acme/shop/pulls/" + std::to_string(id) + "/merge", token_,
                      {{"Do", "merge"}})
              .ok();
        },
        std::chrono::seconds(20), "the merge");
  }

 private:
  [[nodiscard]] std::string config() const {
    const auto folder = programs_.folder().string();
    const auto share = (peers_folder() / "share" / "gitea").string();
    return "WORK_PATH = " + folder + "\nRUN_USER = " + run_or_throw({"id", "-un"}) +
           "\nI_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true\n[server]\nPROTOCOL = https\nCERT_FILE = " +
           certificate_.cert_file.string() + "\nKEY_FILE = " + certificate_.key_file.string() +
           "\nHTTP_ADDR = 127.0.0.1\nHTTP_PORT = " + std::to_string(port_) +
           "\nROOT_URL = " + url() + "/\nDISABLE_SSH = true\nOFFLINE_MODE = true\n" +
           "STATIC_ROOT_PATH = " + share + "\nLFS_START_SERVER = false\n[database]\n" +
           "DB_TYPE = sqlite3\nPATH = " + folder + "/gitea.db\n[repository]\nROOT = " + folder +
           "/repositories\nDEFAULT_BRANCH = main\n[security]\nINSTALL_LOCK = true\n" +
           "SECRET_KEY = key-of-a-test\nINTERNAL_TOKEN = " +
           "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYmYiOjE3MDAwMDAwMDB9."
           "bO3dVvLuOwZSEuYrvrEtlWqyiiVzHEaAV1s7Cqn7xnQ\n" +
           "[service]\nDISABLE_REGISTRATION = true\n[log]\nLEVEL = Warn\n";
  }

  Json must(const std::string& method, const std::string& path, const Json& body) {
    const auto reply = call(method, path, token_, body);
    if (!reply.ok()) throw std::runtime_error(method + " " + path + ": " + reply.body);
    return Json::parse(reply.body, nullptr, false);
  }
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

  CertificateAuthority authority_{"Gitea CA"};
  Certificate certificate_;
  int port_ = free_port();
  PeerPrograms programs_{"gitops-gitea"};
  std::string token_;
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

// The public Go SDK, which runs while the doubles on the loop go on.
struct GitSdk {
  static std::optional<std::string> missing() {
    if (!fs::exists(peer_program("go-sdk-client")))
      return "go-sdk is not built (./dev peers go-sdk)";
    return std::nullopt;
  }
  static Task<CommandResult> run(GitWorld& world, std::string token, std::string operation,
                                 std::string arguments = {}) {
    auto& platform = world.base.platform;
    platform.accounts().set_ingress_host("prod", world.base.daemon->url());
    std::vector<std::string> argv{peer_program("go-sdk-client").string(),
                                  platform.url().to_string(), "prod", std::move(operation)};
    if (!arguments.empty()) argv.push_back(std::move(arguments));
    auto running = std::async(std::launch::async,
                              [argv, token] { return run_command(argv, {{"CF_API_KEY", token}}); });
    while (running.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      co_await sleep_for(std::chrono::milliseconds(5));
    }
    co_return running.get();
  }
  static Task<Json> ok(GitWorld& world, std::string token, std::string operation,
                       std::string arguments = {}) {
    const auto result = co_await run(world, std::move(token), operation, std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << operation << ": " << result.err;
    co_return Json::parse(result.out, nullptr, false);
  }
};

TEST(GoSdk, RunsEveryOperationOnGitIntegrations) {
  GITOPS_REQUIRE_PEER(GitSdk);
  in_git_world([](GitWorld& world) -> Task<> {
    world.start();
    co_await world.base.account_known();
    constexpr auto kAnn = AppProxyWorld::kAnn;
    constexpr auto kBob = AppProxyWorld::kBob;
    EXPECT_EQ(co_await GitSdk::ok(world, kBob, "git-integrations"), Json::array());
    EXPECT_EQ(co_await GitSdk::ok(world, kBob, "git-integration"), Json());
    const std::string root = world.host.api_root().text();
    const Json args{
        {"provider", "GITHUB"}, {"apiUrl", root}, {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}};
    const auto forbidden = co_await GitSdk::run(world, kBob, "add-git-integration", args.dump());
    EXPECT_EQ(forbidden.exit_code, 1);
    EXPECT_THAT(forbidden.err, HasSubstr("Forbidden"));
    const auto added = co_await GitSdk::ok(world, kAnn, "add-git-integration", args.dump());
    EXPECT_EQ(added["name"], "default");
    EXPECT_EQ(added["provider"], "GITHUB");
    EXPECT_EQ(added["apiUrl"], root);
    EXPECT_EQ(added["registeredUsers"], Json::array());
    const auto edited =
        co_await GitSdk::ok(world, kAnn, "edit-git-integration",
                            Json{{"apiUrl", ""}, {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}.dump());
    EXPECT_EQ(edited["apiUrl"], root);
    const auto weak = co_await GitSdk::run(world, kBob, "register-to-git-integration",
                                           Json{{"token", FakeGitHost::kReader}}.dump());
    EXPECT_EQ(weak.exit_code, 1);
    EXPECT_THAT(weak.err, HasSubstr("lacks these rights"));
    const auto registered = co_await GitSdk::ok(world, kBob, "register-to-git-integration",
                                                Json{{"token", FakeGitHost::kToken}}.dump());
    EXPECT_EQ(registered["registeredUsers"], Json{"u-bob"});
    const auto listed = co_await GitSdk::ok(world, kBob, "git-integrations");
    CO_ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed[0]["users"][0]["userId"], "u-bob");
    EXPECT_EQ((co_await GitSdk::ok(world, kBob, "git-integration", "default"))["sharingPolicy"],
              "ALL_USERS_IN_ACCOUNT");
    const auto left = co_await GitSdk::ok(world, kBob, "deregister-from-git-integration");
    EXPECT_EQ(left["registeredUsers"], Json::array());
    co_await GitSdk::ok(world, kAnn, "remove-git-integration", "default");
    EXPECT_EQ(co_await GitSdk::ok(world, kBob, "git-integrations"), Json::array());
    const auto gone = co_await GitSdk::run(world, kAnn, "remove-git-integration", "default");
    EXPECT_EQ(gone.exit_code, 1);
  });
}

TEST(GoSdk, RegistersWithARealGitea) {
  GITOPS_REQUIRE_PEER(GitSdk);
  GITOPS_REQUIRE_PEER(GiteaHost);
  auto& host = gitea();
  in_git_world([&](GitWorld& world) -> Task<> {
    world.start({{"GIT_INSECURE_HTTP", "false"}, {"NODE_EXTRA_CA_CERTS", host.ca_file().string()}});
    co_await world.base.account_known();
    const Json args{{"provider", "GITHUB"},
                    {"apiUrl", host.url() + "/api/v1"},
                    {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}};
    co_await GitSdk::ok(world, AppProxyWorld::kAnn, "add-git-integration", args.dump());
    const auto registered =
        co_await GitSdk::ok(world, AppProxyWorld::kBob, "register-to-git-integration",
                            Json{{"token", host.token()}}.dump());
    EXPECT_EQ(registered["registeredUsers"], Json{"u-bob"});
    std::size_t count = 0;
    bool has_next = true;
    for (int page = 1; has_next && page < 20; ++page) {
      const auto answer = co_await world.ask(AppProxyWorld::kBob,
                                             "{gitRepositories(args:{page:" + std::to_string(page) +
                                                 ",limit:3}){hasNext data{fullName cloneUrl}}}");
      const Json repositories = answer.json["data"]["gitRepositories"];
      CO_ASSERT_TRUE(repositories.is_object()) << answer.body;
      count += repositories["data"].size();
      has_next = repositories["hasNext"];
    }
    EXPECT_GE(count, 8U);
    const auto file = co_await world.ask(
        AppProxyWorld::kBob,
        "{readFile(args:{ref:\"HEAD\",repo:\"acme/shop\",path:\"deploy/app one.yaml\"}){data}}");
    EXPECT_EQ(file.json["data"]["readFile"]["data"], kContractFileContent) << file.body;
    EXPECT_FALSE(world.logs().contains(host.token()));
  });
}

}  // namespace
}  // namespace gitops::test
