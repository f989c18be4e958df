#include "tunnel-server/authorizer.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/http/router.hpp"
#include "common/http/server.hpp"
#include "common/tunnel/authentication.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"

namespace gitops::tunnel_server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tunnel::Login;
using tunnel::NewProxy;

NewProxy proxy(std::string subdomain, std::string token) {
  NewProxy proxy{.proxy_name = subdomain, .proxy_type = "http", .subdomain = subdomain};
  if (!token.empty()) proxy.metas.emplace("Authorization", Secret(std::move(token)));
  return proxy;
}

std::string mistake_of(std::string_view text) {
  const auto list = RuntimeList::parse(text);
  return list ? "" : list.error().message;
}

TEST(RuntimeList, AC16_ATokenIsForItsOwnHostsOnly) {
  const auto list = RuntimeList::parse(
      "# comment\n\nacc-a,www.a.test  token-a\n acc-b\ttoken-b\r\nacc-a token-a2\n");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 3u);
  EXPECT_TRUE(list->admit(proxy("acc-a", "token-a")));
  EXPECT_TRUE(list->admit(proxy("ACC-A", "token-a2")));
  EXPECT_TRUE(list->admit(proxy("acc-b", "token-b")));
  EXPECT_EQ(list->admit(proxy("acc-b", "token-a")).error().message,
            "the token is not for this host");
  EXPECT_EQ(list->admit(proxy("acc-a", "guess")).error().message, "invalid token");
  EXPECT_EQ(list->admit(proxy("acc-a", "")).error().message, "metas.Authorization is missing");
  auto with_domain = proxy("acc-a", "token-a");
  with_domain.custom_domains = {"WWW.a.test"};
  EXPECT_TRUE(list->admit(with_domain));
  with_domain.custom_domains.emplace_back("www.b.test");
  EXPECT_FALSE(list->admit(with_domain));
  with_domain = proxy("acc-a", "token-a2");
  with_domain.custom_domains = {"www.a.test"};
  EXPECT_FALSE(list->admit(with_domain));
}

TEST(RuntimeList, TakesSumsInsteadOfTokens) {
  const auto sum = hex_encode(bytes_of(sha256("token-a")));
  const auto right = RuntimeList::parse("acc-a sha256:" + sum + "\n");
  ASSERT_TRUE(right);
  EXPECT_TRUE(right->admit(proxy("acc-a", "token-a")));
  EXPECT_FALSE(right->admit(proxy("acc-a", "token-b")));
  EXPECT_FALSE(right->admit(proxy("acc-a", "sha256:" + sum)));
}

TEST(RuntimeList, NamesTheLineAndNeverTheToken) {
  EXPECT_EQ(mistake_of("a t\nb\n"), "line 2: not of the form PREFIX[,DOMAIN...] TOKEN");
  EXPECT_EQ(mistake_of("a s3cret more"), "line 1: the token has blanks");
  EXPECT_EQ(mistake_of("a, s3cret"), "line 1: an empty name");
  EXPECT_EQ(mistake_of("a sha256:s3cret"), "line 1: not a SHA-256 in hex");
}

TEST(PluginAnswer, SaysWhatHolds) {
  EXPECT_EQ(read_plugin_answer(R"({"reject":false,"unchange":true})")->content, "");
  EXPECT_EQ(read_plugin_answer(R"({"content":{"subdomain":"b"}})")->content,
            R"({"subdomain":"b"})");
  const auto refused = read_plugin_answer(R"({"reject":true,"reject_reason":"invalid token"})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::forbidden);
  EXPECT_EQ(refused.error().message, "invalid token");
}

// frp's server takes "{}" for a message without members, and offers a tcp proxy without a name.
TEST(PluginAnswer, AC17_AnAnswerThatSaysNothingAllowsNothing) {
  for (const char* answer :
       {"", "{}", "[]", "null", R"({"reject":false})", R"({"reject":"yes","unchange":true})",
        R"({"content":{}})", R"({"content":"x"})", R"({"unchange":"true"})"}) {
    const auto read = read_plugin_answer(answer);
    ASSERT_FALSE(read) << answer;
    EXPECT_EQ(read.error().code, ErrorCode::protocol) << answer;
  }
}

// A plugin that answers each question with the next answer.
class Plugin {
 public:
  explicit Plugin(const Executor& executor)
      : server_(executor, {}, [this](http::Exchange& exchange) -> Task<> {
          targets.push_back(exchange.request().target);
          questions.push_back(parse_json_object((co_await exchange.read_body(100'000)).value()));
          (void)co_await exchange.reply(http::text_response(status, answer));
        }) {
    EXPECT_TRUE(server_.listen());
  }
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server_.port());
  }
  Task<> stop() { return server_.stop(Clock::now()); }

  std::vector<std::string> targets;
  std::vector<nlohmann::json> questions;
  int status = 200;
  std::string answer = R"({"unchange":true})";

 private:
  http::Server server_;
};

void with_plugin(const std::function<Task<>(Plugin&, Authorizer&)>& body,
                 const std::string& path = "/hook?a=b") {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    Plugin plugin(executor);
    {
      net::Resolver names(metrics);
      Authorizer authorizer(
          executor, names,
          {.plugin_url = *http::parse_url(plugin.url() + path),
           .plugin_operations = {"Login", "NewProxy", "Ping", "NewWorkConn", "CloseProxy"},
           .plugin_timeout = std::chrono::milliseconds(300)});
      co_await body(plugin, authorizer);
    }
    co_await plugin.stop();
  });
}

const Authorizer::Subject kSubject{
    .address = "10.1.2.3", .user = "u", .metas = {{"k", Secret("v")}}, .run_id = "run-1"};

TEST(Authorizer, AsksThePluginAsFrpDoes) {
  with_plugin([](Plugin& plugin, Authorizer& authorizer) -> Task<> {
    Login login{.version = "0.70.0", .timestamp = 7, .pool_count = 1};
    login.privilege_key = tunnel::privilege_key(Secret(), 7);
    auto admitted = co_await authorizer.admit_login(kSubject, login);
    CO_ASSERT_OK(admitted);
    EXPECT_EQ(*admitted, login);
    auto asked = proxy("a", "token");
    CO_ASSERT_OK(co_await authorizer.admit_proxy(kSubject, asked));
    CO_ASSERT_OK(co_await authorizer.admit_ping(kSubject, {}));
    CO_ASSERT_OK(co_await authorizer.admit_work(kSubject, {.run_id = "run-1"}));
    co_await authorizer.report_closed(kSubject, "a");
    EXPECT_THAT(
        plugin.targets,
        ElementsAre("/hook?a=b&version=0.1.0&op=Login", "/hook?a=b&version=0.1.0&op=NewProxy",
                    "/hook?a=b&version=0.1.0&op=Ping", "/hook?a=b&version=0.1.0&op=NewWorkConn",
                    "/hook?a=b&version=0.1.0&op=CloseProxy"));
    const auto& at_login = plugin.questions[0];
    EXPECT_EQ(at_login["version"], "0.1.0");
    EXPECT_EQ(at_login["op"], "Login");
    EXPECT_EQ(at_login["content"]["client_address"], "10.1.2.3");
    EXPECT_EQ(at_login["content"]["version"], "0.70.0");
    const auto& at_proxy = plugin.questions[1];
    EXPECT_EQ(at_proxy["content"]["metas"]["Authorization"], "token");
    EXPECT_EQ(at_proxy["content"]["user"]["run_id"], "run-1");
    EXPECT_EQ(at_proxy["content"]["user"]["user"], "u");
    EXPECT_EQ(at_proxy["content"]["user"]["metas"]["k"], "v");
    EXPECT_EQ(plugin.questions[2]["content"]["user"]["run_id"], "run-1");
  });
}

TEST(Authorizer, AsksAtTheWholePathOfThePlugin) {
  with_plugin(
      [](Plugin& plugin, Authorizer& authorizer) -> Task<> {
        CO_ASSERT_OK(co_await authorizer.admit_ping(kSubject, {}));
        EXPECT_THAT(plugin.targets, ElementsAre("/hook/canary+a/b/?version=0.1.0&op=Ping"));
      },
      "/hook/canary+a/b/");
}

TEST(Authorizer, TakesThePluginsContent) {
  with_plugin([](Plugin& plugin, Authorizer& authorizer) -> Task<> {
    plugin.answer =
        R"({"unchange":false,"content":{"proxy_name":"a","proxy_type":"http","subdomain":"b",)"
        R"("user":{"user":"u"}}})";
    const auto admitted = co_await authorizer.admit_proxy(kSubject, proxy("a", "token"));
    CO_ASSERT_OK(admitted);
    EXPECT_EQ(admitted->subdomain, "b");
    EXPECT_TRUE(admitted->metas.empty());
  });
}

TEST(Authorizer, PassesOnThePluginsReason) {
  with_plugin([](Plugin& plugin, Authorizer& authorizer) -> Task<> {
    plugin.answer = R"({"reject":true,"reject_reason":"invalid token"})";
    EXPECT_EQ((co_await authorizer.admit_proxy(kSubject, proxy("a", "t"))).error().message,
              "invalid token");
  });
}

TEST(Authorizer, AC17_APluginThatCannotBeAskedAllowsNothing) {
  with_plugin([](Plugin& plugin, Authorizer& authorizer) -> Task<> {
    plugin.status = 500;
    const auto refused = co_await authorizer.admit_proxy(kSubject, proxy("a", "t"));
    EXPECT_THAT(refused.error().message, HasSubstr("try again later"));
    plugin.status = 200;
    plugin.answer = "{}";
    EXPECT_FALSE(co_await authorizer.admit_proxy(kSubject, proxy("a", "t")));
    co_await plugin.stop();
    EXPECT_FALSE(co_await authorizer.admit_proxy(kSubject, proxy("a", "t")));
  });
}

TEST(Authorizer, ReadsItsFilesAgain) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver names(metrics);
    test::TempDir folder;
    const auto file = folder / "runtimes";
    const auto token_file = folder / "token";
    test::write_file(file, "acc-a token-a\n");
    test::write_file(token_file, "s3cret\n");
    Authorizer authorizer(executor, names,
                          {.token_file = token_file.string(), .runtimes_file = file.string()});
    CO_ASSERT_OK(authorizer.check());
    EXPECT_TRUE(authorizer.confirms_owners());
    CO_ASSERT_OK(co_await authorizer.admit_proxy(kSubject, proxy("acc-a", "token-a")));
    EXPECT_FALSE(co_await authorizer.admit_proxy(kSubject, proxy("acc-b", "token-b")));
    Login login{.timestamp = 7};
    login.privilege_key = tunnel::privilege_key(Secret("s3cret"), 7);
    CO_ASSERT_OK(co_await authorizer.admit_login(kSubject, login));

    test::write_file(file, "acc-b token-b and more than before\n");  // a mistake: nothing changes
    test::write_file(token_file, "an0ther\n");
    co_await sleep_for(std::chrono::seconds(2));
    CO_ASSERT_OK(co_await authorizer.admit_proxy(kSubject, proxy("acc-a", "token-a")));
    EXPECT_EQ((co_await authorizer.admit_login(kSubject, login)).error().message,
              "token in login doesn't match token from configuration");
    test::write_file(file, "acc-b token-b\n");
    co_await sleep_for(std::chrono::seconds(2));
    EXPECT_FALSE(co_await authorizer.admit_proxy(kSubject, proxy("acc-a", "token-a")));
    CO_ASSERT_OK(co_await authorizer.admit_proxy(kSubject, proxy("acc-b", "token-b")));
  });
}

// As while it is written in place.
TEST(Authorizer, AnEmptyFileOfRuntimesIsNoList) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver names(metrics);
    test::TempDir folder;
    const auto file = folder / "runtimes";
    test::write_file(file, "acc-a canary-a\n");
    Authorizer authorizer(executor, names, {.runtimes_file = file.string()});
    CO_ASSERT_OK(authorizer.check());
    test::write_file(file, "\n");
    co_await sleep_for(std::chrono::seconds(2));
    CO_ASSERT_OK(co_await authorizer.admit_proxy(kSubject, proxy("acc-a", "canary-a")));
    EXPECT_EQ(authorizer.lists(), 1U);
    test::write_file(file, "acc-b canary-b\n");
    co_await sleep_for(std::chrono::seconds(2));
    CO_ASSERT_OK(co_await authorizer.admit_proxy(kSubject, proxy("acc-b", "canary-b")));
    test::write_file(file, "# nobody\n");
    co_await sleep_for(std::chrono::seconds(2));
    EXPECT_FALSE(co_await authorizer.admit_proxy(kSubject, proxy("acc-b", "canary-b")));
  });
}

TEST(Authorizer, AC16_TheListThatIsInForceAfterThePluginsAnswerDecides) {
  test::TempDir folder;
  const auto file = folder / "runtimes";
  test::write_file(file, "acc-a token-a\n");
  test::run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    Authorizer* asked_by = nullptr;
    http::Server plugin(executor, {}, [&](http::Exchange& exchange) -> Task<> {
      test::write_file(file, "acc-b token-b\nacc-c token-c\n");
      co_await sleep_for(std::chrono::milliseconds(1'100));
      asked_by->refresh();
      (void)co_await exchange.reply(http::text_response(200, R"({"unchange":true})"));
    });
    CO_ASSERT_OK(plugin.listen());
    {
      net::Resolver names(metrics);
      Authorizer authorizer(executor, names,
                            {.runtimes_file = file.string(),
                             .plugin_url = *http::parse_url(
                                 "http://127.0.0.1:" + std::to_string(plugin.port()) + "/hook")});
      asked_by = &authorizer;
      CO_ASSERT_OK(authorizer.check());
      EXPECT_FALSE(co_await authorizer.admit_proxy(kSubject, proxy("acc-a", "token-a")));
      EXPECT_EQ(authorizer.lists(), 2U);
    }
    co_await plugin.stop(Clock::now());
  });
}

TEST(Authorizer, SaysWhichFileIsMissing) {
  test::run_in_test_time([]() -> Task<> {
    Metrics metrics;
    net::Resolver names(metrics);
    Authorizer authorizer(co_await asio::this_coro::executor, names,
                          {.runtimes_file = "/nowhere/runtimes"});
    const auto checked = authorizer.check();
    CO_ASSERT_TRUE(!checked);
    EXPECT_THAT(checked.error().message, HasSubstr("/nowhere/runtimes"));
  });
}

}  // namespace
}  // namespace gitops::tunnel_server
