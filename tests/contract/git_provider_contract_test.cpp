#include "contract/git_provider_contract.hpp"

#include <tuple>

#include <gtest/gtest.h>

#include "app-proxy/providers/providers.hpp"
#include "common/core/metrics.hpp"
#include "doubles/fake_git_hosts.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using namespace app_proxy;

Task<> run_on_double(const GitProviderCase& contract_case, ProviderKind kind, FakeGitHost& host,
                     http::Client& http, Metrics& metrics) {
  const auto executor = co_await asio::this_coro::executor;
  GitHostClient client(executor, http, metrics);
  CO_ASSERT_OK(host.start());
  // As an administrator of Gitea can set it.
  if (kind == ProviderKind::gitea) host.limit_pages(3);
  auto& repository = host.add_repository(host.organisation(), "shop");
  repository.branches = {"main", "feature/x"};
  repository.tags = {"v1.0"};
  repository.files[kContractFile] = kContractFileContent;
  const bool is_server = kind == ProviderKind::bitbucket_server;
  const std::string own = is_server ? std::string("~") + FakeGitHost::kLogin : FakeGitHost::kLogin;
  for (int i = 0; i < 7; ++i) {
    host.add_repository(i % 2 == 0 ? own : host.organisation(), "extra-" + std::to_string(i));
  }
  const auto provider = make_provider(client, host.api_root());
  const std::string username = kind == ProviderKind::bitbucket ? FakeGitHost::kLogin : "";
  const GitHostPeer peer{
      .provider = *provider,
      .access = {Secret(FakeGitHost::kToken), username},
      .reader = GitAccess{Secret(FakeGitHost::kReader), username},
      .login = FakeGitHost::kLogin,
      .organisation = host.organisation(),
      .repository = {host.organisation(), "shop"},
      .extra = 7,
      .owner_of_new = host.organisation(),
      .commit = FakeGitHost::kCommit,
      .refuses_second_pull_request = kind != ProviderKind::bitbucket,
      .merge = [&](std::int64_t id) -> Task<> {
        host.merge(host.organisation(), "shop", static_cast<std::size_t>(id));
        co_return;
      },
  };
  co_await contract_case.run(peer);
}

struct FakeGitHostLists : testing::TestWithParam<ProviderKind> {};

// Lists are read to their end, or say that they were not.
TEST_P(FakeGitHostLists, AreCompleteOrMarked) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    GitHostClient client(executor, http, metrics);
    FakeGitHost host(executor, GetParam());
    CO_ASSERT_OK(host.start());
    auto& repository = host.add_repository(host.organisation(), "shop");
    const auto provider = make_provider(client, host.api_root());
    const std::string username = GetParam() == ProviderKind::bitbucket ? FakeGitHost::kLogin : "";
    const GitAccess access{Secret(FakeGitHost::kToken), username};
    const RepositoryName name{host.organisation(), "shop"};
    for (const std::size_t count : {1'300UL, 3'000UL, 3'050UL}) {
      repository.branches = {"main"};
      while (repository.branches.size() < count) {
        repository.branches.insert("b" + std::to_string(repository.branches.size()));
      }
      repository.tags = {"v1"};
      const auto found = co_await provider->branches_and_tags(
          access, name, deadline_after(std::chrono::seconds(60)));
      CO_ASSERT_OK(found);
      const bool is_all = count <= 3'000;
      EXPECT_EQ(found->value.branches.size(), is_all ? count : 3'000) << count;
      EXPECT_EQ(found->value.is_truncated, !is_all) << count;
      EXPECT_EQ(found->value.tags, std::vector<std::string>{"v1"});
    }
    http.close_idle();
    co_await host.stop();
  });
}

// Whose repositories are searched is a list of its own.
TEST(FakeGitHubSearch, FailsWhenTheOrganisationsCannotBeRead) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    GitHostClient client(executor, http, metrics);
    FakeGitHost host(executor, ProviderKind::github);
    CO_ASSERT_OK(host.start());
    host.add_repository(host.organisation(), "shop");
    const auto provider = make_provider(client, host.api_root());
    const GitAccess access{Secret(FakeGitHost::kToken), ""};
    const RepositoryQuery query{.search = "shop", .page = 1, .limit = 10};
    const auto limit = deadline_after(std::chrono::seconds(60));
    for (const int status : {503, 200}) {
      host.fail_next(1, status, {}, "/user/orgs");
      EXPECT_FALSE(co_await provider->repositories(access, query, limit)) << status;
    }
    // A token that may not list them.
    host.fail_next(1, 403, {}, "/user/orgs");
    const auto own = co_await provider->repositories(access, query, limit);
    CO_ASSERT_OK(own);
    EXPECT_TRUE(host.requests().back().target.contains("user%3Adana"));
    EXPECT_FALSE(host.requests().back().target.contains("acme"));
    const auto all = co_await provider->repositories(access, query, limit);
    CO_ASSERT_OK(all);
    EXPECT_TRUE(host.requests().back().target.contains("acme"));
    http.close_idle();
    co_await host.stop();
  });
}

// As an administrator of Gitea can set it (MAX_RESPONSE_ITEMS).
TEST(FakeGiteaLists, AreReadToTheirEndWithoutALink) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    GitHostClient client(executor, http, metrics);
    FakeGitHost host(executor, ProviderKind::gitea);
    CO_ASSERT_OK(host.start());
    host.limit_pages(3);
    auto& repository = host.add_repository(host.organisation(), "shop");
    for (int i = 0; i < 7; ++i) {
      const auto number = std::to_string(i);
      repository.tags.insert("v" + number);
      repository.hooks.push_back(
          {.id = i + 1, .url = "https://runtime.example.test/" + number, .secret = {}});
    }
    const auto provider = make_provider(client, host.api_root());
    const GitAccess access{Secret(FakeGitHost::kToken), ""};
    const RepositoryName name{host.organisation(), "shop"};
    const auto limit = deadline_after(std::chrono::seconds(60));
    const auto found = co_await provider->branches_and_tags(access, name, limit);
    CO_ASSERT_OK(found);
    EXPECT_EQ(found->value.tags.size(), 7U);
    const auto hooks = co_await provider->webhooks(access, name, limit);
    CO_ASSERT_OK(hooks);
    EXPECT_EQ(hooks->value.size(), 7U);
    http.close_idle();
    co_await host.stop();
  });
}

// Tags may have slashes in their names, as branches do.
TEST_P(FakeGitHostLists, AFileIsReadAtATagOfAnyName) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    GitHostClient client(executor, http, metrics);
    FakeGitHost host(executor, GetParam());
    CO_ASSERT_OK(host.start());
    auto& repository = host.add_repository(host.organisation(), "shop");
    repository.tags = {"release/v1"};
    repository.files[kContractFile] = kContractFileContent;
    const auto provider = make_provider(client, host.api_root());
    const std::string username = GetParam() == ProviderKind::bitbucket ? FakeGitHost::kLogin : "";
    const GitAccess access{Secret(FakeGitHost::kToken), username};
    const RepositoryName name{host.organisation(), "shop"};
    for (const bool is_there : {true, false}) {
      const auto file = co_await provider->read_file(access, name, kContractFile,
                                                     is_there ? "release/v1" : "release/v2",
                                                     deadline_after(std::chrono::seconds(60)));
      EXPECT_EQ(file.has_value(), is_there) << (file ? "" : file.error().message);
      if (!file) EXPECT_EQ(file.error().subcode, git_errors::kNotFound);
    }
    http.close_idle();
    co_await host.stop();
  });
}

// Bitbucket Cloud answers with a list in place of the content.
TEST_P(FakeGitHostLists, AFolderIsNoFile) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    GitHostClient client(executor, http, metrics);
    FakeGitHost host(executor, GetParam());
    CO_ASSERT_OK(host.start());
    auto& repository = host.add_repository(host.organisation(), "shop");
    repository.files["deploy/app.yaml"] = "replicas: 1\n";
    repository.files["list.json"] = R"({"pagelen":10,"values":[{"type":"commit"}]})";
    const auto provider = make_provider(client, host.api_root());
    const std::string username = GetParam() == ProviderKind::bitbucket ? FakeGitHost::kLogin : "";
    const GitAccess access{Secret(FakeGitHost::kToken), username};
    const RepositoryName name{host.organisation(), "shop"};
    const auto limit = deadline_after(std::chrono::seconds(60));
    EXPECT_FALSE(co_await provider->read_file(access, name, "deploy", "main", limit));
    for (const auto& [path, content] : repository.files) {
      const auto file = co_await provider->read_file(access, name, path, "main", limit);
      CO_ASSERT_OK(file);
      EXPECT_EQ(file->value.content, content);
    }
    http.close_idle();
    co_await host.stop();
  });
}

TEST(FakeBitbucketServerPermissions, OfAListThatIsLastKnownAreMarked) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    GitHostClient client(executor, http, metrics);
    FakeGitHost host(executor, ProviderKind::bitbucket_server);
    CO_ASSERT_OK(host.start());
    host.add_repository(host.organisation(), "shop");
    const auto provider = make_provider(client, host.api_root());
    const GitAccess access{Secret(FakeGitHost::kToken), ""};
    const RepositoryName name{host.organisation(), "shop"};
    const auto limit = deadline_after(std::chrono::seconds(60));
    const auto first = co_await provider->permissions(access, name, limit);
    CO_ASSERT_OK(first);
    EXPECT_FALSE(first->is_last_known);
    host.fail_next(1, 429, std::chrono::seconds(60), "permission=REPO_WRITE");
    const auto throttled = co_await provider->permissions(access, name, limit);
    CO_ASSERT_OK(throttled);
    EXPECT_TRUE(throttled->is_last_known);
    http.close_idle();
    co_await host.stop();
  });
}

// GitHub tells no scopes of a fine-grained token; they are tried in a repository.
TEST(FakeGitHubTokens, AreTriedWhereTheUserHasTheRight) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    GitHostClient client(executor, http, metrics);
    FakeGitHost host(executor, ProviderKind::github);
    CO_ASSERT_OK(host.start());
    // A token's page of repositories is kept for a while, so there are two.
    const GitAccess early{Secret("github_pat_early"), ""};
    const GitAccess late{Secret("github_pat_late"), ""};
    host.add_user("github_pat_early", {.id = 8, .login = "robin", .name = "Robin Example"});
    host.add_user("github_pat_late", {.id = 8, .login = "robin", .name = "Robin Example"});
    host.add_repository(host.organisation(), "handbook").is_read_only = true;
    const auto provider = make_provider(client, host.api_root());
    const auto limit = deadline_after(std::chrono::seconds(60));
    const auto nowhere = co_await provider->check_token(early, TokenUse::user, limit);
    CO_ASSERT_OK(nowhere);
    EXPECT_FALSE(nowhere->missing.empty());
    host.add_repository(host.organisation(), "shop");
    for (const auto use : {TokenUse::user, TokenUse::runtime}) {
      const auto check = co_await provider->check_token(late, use, limit);
      CO_ASSERT_OK(check);
      EXPECT_TRUE(check->permissions_known);
      EXPECT_TRUE(check->missing.empty());
    }
    http.close_idle();
    co_await host.stop();
  });
}

// Commits would carry the no-reply address until the user registers again.
TEST(FakeGitHostProfiles, AreNoneWithoutTheAddressThatCannotBeReadNow) {
  for (const auto kind : {ProviderKind::github, ProviderKind::bitbucket}) {
    run_in_test_time([kind]() -> Task<> {
      const auto executor = co_await asio::this_coro::executor;
      Metrics metrics;
      net::Resolver resolver(metrics);
      http::Client http(executor, resolver, {});
      GitHostClient client(executor, http, metrics);
      FakeGitHost host(executor, kind);
      CO_ASSERT_OK(host.start());
      const bool is_github = kind == ProviderKind::github;
      // GitHub is asked for it only then; the double has no such path.
      if (is_github) host.hide_mail();
      const auto provider = make_provider(client, host.api_root());
      const GitAccess access{Secret(FakeGitHost::kToken), is_github ? "" : FakeGitHost::kLogin};
      const auto limit = deadline_after(std::chrono::seconds(60));
      for (const int status : {503, 200}) {
        host.fail_next(1, status, {}, "/user/emails");
        EXPECT_FALSE(co_await provider->who_am_i(access, limit)) << status;
      }
      const auto profile = co_await provider->who_am_i(access, limit);
      CO_ASSERT_OK(profile);
      EXPECT_EQ(profile->value.mail.contains("noreply"), is_github) << profile->value.mail;
      http.close_idle();
      co_await host.stop();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Providers, FakeGitHostLists,
                         testing::Values(ProviderKind::github, ProviderKind::gitlab,
                                         ProviderKind::bitbucket, ProviderKind::bitbucket_server,
                                         ProviderKind::gitea));

using Parameters = std::tuple<ProviderKind, GitProviderCase>;
struct FakeGitHostContract : testing::TestWithParam<Parameters> {};

TEST_P(FakeGitHostContract, Holds) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const auto kind = std::get<0>(GetParam());
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    FakeGitHost host(executor, kind);
    std::exception_ptr failure;
    try {
      co_await run_on_double(std::get<1>(GetParam()), kind, host, http, metrics);
    } catch (...) {
      failure = std::current_exception();
    }
    http.close_idle();
    co_await host.stop();
    if (failure) std::rethrow_exception(failure);
  });
}

std::string name_of(const testing::TestParamInfo<Parameters>& info) {
  static constexpr const char* kNames[] = {"GitHub", "GitLab", "Bitbucket", "BitbucketServer",
                                           "Gitea"};
  return std::string(kNames[static_cast<std::size_t>(std::get<0>(info.param))]) + "_" +
         std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(
    Providers, FakeGitHostContract,
    testing::Combine(testing::Values(ProviderKind::github, ProviderKind::gitlab,
                                     ProviderKind::bitbucket, ProviderKind::bitbucket_server,
                                     ProviderKind::gitea),
                     testing::ValuesIn(git_provider_cases())),
    name_of);

}  // namespace
}  // namespace gitops::test
