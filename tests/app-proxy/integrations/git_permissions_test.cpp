#include "app-proxy/integrations/git_permissions.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "app-proxy/integrations/integrations_fixture.hpp"
#include "support/status_page.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::FakeGitHost;
using test::soon;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPart = "Git permissions of users";

// As many questions as Git sources, all of them answered.
void expect_all_known(const StatusEntry& entry, std::int64_t number) {
  const test::StatusPage status({entry});
  EXPECT_EQ(status.state(kPart), "ok") << status;
  EXPECT_EQ(status.count(kPart, "known"), number) << status;
  EXPECT_EQ(status.count(kPart, "known_of"), number) << status;
  EXPECT_EQ(status.count(kPart, "git_sources"), number) << status;
}

TEST(RepositoryAt, ReadsTheRepositoryOfACloneUrl) {
  const auto at = [](std::string_view provider, std::string_view api, std::string_view url) {
    const auto name = repository_at(make_api_root(provider, api).value(), url);
    return name ? name->full() : std::string("none");
  };
  EXPECT_EQ(at("GITHUB", "", "https://github.com/acme/shop.git"), "acme/shop");
  EXPECT_EQ(at("GITHUB", "", "https://github.com/acme/shop/"), "acme/shop");
  EXPECT_EQ(at("GITHUB", "", "https://gitlab.com/acme/shop.git"), "none");
  EXPECT_EQ(at("GITHUB", "", "https://github.com/acme"), "none");
  EXPECT_EQ(at("GITHUB", "", "git@github.com:acme/shop.git"), "none");
  EXPECT_EQ(at("GITHUB", "https://ghe.test", "https://ghe.test/acme/shop.git"), "acme/shop");
  EXPECT_EQ(at("GITLAB", "", "https://gitlab.com/a/b/c.git"), "a/b/c");
  EXPECT_EQ(at("GITLAB", "https://x.test/lab/api/v4", "https://x.test/lab/a/b.git"), "a/b");
  EXPECT_EQ(at("BITBUCKET", "", "https://bitbucket.org/acme/shop.git"), "acme/shop");
  EXPECT_EQ(at("BITBUCKET_SERVER", "https://bb.test", "https://bb.test/scm/key/shop.git"),
            "key/shop");
}

// Git permissions on a fixture whose control plane is a list.
struct PermissionsFixture {
  explicit PermissionsFixture(IntegrationsFixture& b)
      : fixture(b),
        permissions(
            b.integrations, b.leadership,
            [this](Deadline) -> Task<Result<bool>> {
              if (!failure.message.empty()) co_return std::unexpected(failure);
              co_return filters;
            },
            [this](Deadline) -> Task<Result<std::vector<KnownGitSource>>> {
              if (!failure.message.empty()) co_return std::unexpected(failure);
              co_return sources;
            },
            [this](const KnownGitSource& source, Deadline) -> Task<Result<void>> {
              const auto found = std::ranges::find(sources, source.name, &KnownGitSource::name);
              found->permissions = source.permissions;
              ++reports;
              co_return Result<void>();
            },
            {.max_questions = 5}) {}

  void add(std::string name, std::string repository) {
    sources.push_back({.account_id = "acc",
                       .name = std::move(name),
                       .source_namespace = "runtime",
                       .repository_url = "https://" + fixture.host.api_root().url.host + "/" +
                                         repository + ".git",
                       .permissions = {}});
  }
  // With a token that may only read, which no user could register.
  Task<Result<Integration>> register_reader(Actor actor) {
    return lenient.register_user(std::move(actor), {}, {Secret(FakeGitHost::kReader)}, soon());
  }
  std::size_t asked() const { return fixture.host.requests().size(); }

  IntegrationsFixture& fixture;
  GitIntegrations lenient{
      fixture.store,
      fixture.seal,
      fixture.hosts,
      {.skip_permissions_validation = true, .plain_http = PlainHttp::insecure_allowed}};
  std::vector<KnownGitSource> sources;
  bool filters = true;
  Error failure = {.message = ""};
  std::size_t reports = 0;
  GitPermissions permissions;
};

const UserPermission kWriter{kUser.user_id, true, true};
const UserPermission kReader{"user-2", true, false};
const UserPermission kNobody{kUser.user_id, false, false};
const Actor kOther{"user-2", "acc", false};

void with_permissions(const std::function<Task<>(PermissionsFixture&)>& body) {
  with_integrations([&](IntegrationsFixture& fixture) -> Task<> {
    fixture.host.add_repository("acme", "shop");
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    PermissionsFixture permissions(fixture);
    co_await body(permissions);
  });
}

TEST(GitPermissions, AreReportedOnceForEachUserAndGitSource) {
  with_permissions([](PermissionsFixture& w) -> Task<> {
    CO_ASSERT_OK(co_await w.register_reader(kOther));
    w.add("shop", "acme/shop");
    w.add("shop-again", "acme/shop");  // one question for both
    w.add("none", "acme/none");
    w.sources.push_back(w.sources[0]);
    w.sources.back().name = "elsewhere";
    w.sources.back().repository_url = "https://elsewhere.test/acme/shop.git";
    const auto before = w.asked();
    co_await w.permissions.round();
    EXPECT_THAT(w.sources[0].permissions, ElementsAre(kWriter, kReader));
    EXPECT_THAT(w.sources[1].permissions, ElementsAre(kWriter, kReader));
    EXPECT_THAT(w.sources[2].permissions,
                ElementsAre(kNobody, UserPermission{"user-2", false, false}));
    EXPECT_THAT(w.sources[3].permissions, IsEmpty());
    EXPECT_EQ(w.reports, 3U);
    EXPECT_EQ(w.asked() - before, 4U);
    expect_all_known(w.permissions.status(), 4);
    // Until something changes or time passes nobody is asked or told again.
    co_await w.permissions.round();
    EXPECT_EQ(w.reports, 3U);
    EXPECT_EQ(w.asked() - before, 4U);
  });
}

TEST(GitPermissions, ANewTokenAndANewGitSourceAreAskedAboutAtOnce) {
  with_permissions([](PermissionsFixture& w) -> Task<> {
    w.add("shop", "acme/shop");
    co_await w.permissions.round();
    EXPECT_THAT(w.sources[0].permissions, ElementsAre(kWriter));
    CO_ASSERT_OK(co_await w.register_reader(kUser));
    w.fixture.host.add_repository("acme", "store");
    w.add("store", "acme/store");
    auto before = w.asked();
    co_await w.permissions.round();
    const UserPermission reads{kUser.user_id, true, false};
    EXPECT_THAT(w.sources[0].permissions, ElementsAre(reads));
    EXPECT_THAT(w.sources[1].permissions, ElementsAre(reads));
    EXPECT_EQ(w.asked() - before, 2U);
    // Without a token nothing is known, and nothing stays.
    CO_ASSERT_OK(co_await w.fixture.integrations.deregister_user(kUser, {}, soon()));
    before = w.asked();
    co_await w.permissions.round();
    EXPECT_THAT(w.sources[0].permissions, IsEmpty());
    EXPECT_EQ(w.asked(), before);
  });
}

// A change at the host is found within a period and a half; a new process and another replica begin
// with what was reported.
TEST(GitPermissions, AreAskedAgainAfterAPeriod) {
  with_permissions([](PermissionsFixture& w) -> Task<> {
    w.add("shop", "acme/shop");
    co_await w.permissions.round();
    EXPECT_EQ(w.reports, 1U);
    PermissionsFixture other(w.fixture);
    other.sources = w.sources;
    const auto before = w.asked();
    co_await other.permissions.round();
    EXPECT_EQ(w.asked(), before);
    w.fixture.host.refuse_tokens(true);
    co_await sleep_for(91min);
    co_await other.permissions.round();
    EXPECT_THAT(other.sources[0].permissions, ElementsAre(kNobody));
  });
}

// As after another registration of the runtime, or another address of the host: nobody can ask the
// host with it any more.
TEST(GitPermissions, NothingStaysOfATokenThatCannotBeUsed) {
  for (const bool is_there : {true, false}) {
    with_permissions([is_there](PermissionsFixture& w) -> Task<> {
      w.add("shop", "acme/shop");
      co_await w.permissions.round();
      EXPECT_THAT(w.sources[0].permissions, ElementsAre(kWriter));
      const auto spoil = [is_there](Integration& there) -> Result<bool> {
        auto& token = *there.find(kUser.user_id);
        if (is_there) {
          token.sealed.key_id = "of an earlier registration";
        } else {
          token.sealed = {};
        }
        return true;
      };
      CO_ASSERT_OK(co_await w.fixture.store.apply("default", "acc", spoil, soon()));
      co_await sleep_for(91min);
      co_await w.permissions.round();
      EXPECT_THAT(w.sources[0].permissions, ElementsAre(kNobody));
    });
  }
}

TEST(GitPermissions, WhatIsNotKnownStaysAsItWas) {
  with_permissions([](PermissionsFixture& w) -> Task<> {
    w.add("shop", "acme/shop");
    co_await w.permissions.round();
    co_await sleep_for(91min);
    for (const int status : {500, 403, 429}) {
      w.fixture.host.fail_next(1, status);
      co_await w.permissions.round();
      co_await sleep_for(30min);
    }
    w.fixture.host.end_faults();
    w.fixture.host.abort_next(2);
    co_await w.permissions.round();
    w.fixture.host.end_faults();
    EXPECT_THAT(w.sources[0].permissions, ElementsAre(kWriter));
    EXPECT_EQ(w.reports, 1U);
    w.failure = {.code = ErrorCode::unavailable, .message = "the control plane is away"};
    co_await w.permissions.round();
    EXPECT_EQ(w.permissions.status().state, StatusState::failed);
    EXPECT_THAT(w.permissions.status().message, HasSubstr("away"));
    w.failure = {.message = ""};
    co_await w.permissions.round();
    expect_all_known(w.permissions.status(), 1);
  });
}

// Many Git sources cost a tick no more than its share of questions.
TEST(GitPermissions, ATickAsksLittle) {
  with_permissions([](PermissionsFixture& w) -> Task<> {
    for (int i = 0; i < 12; ++i) {
      const auto name = "extra-" + std::to_string(i);
      w.fixture.host.add_repository("acme", name);
      w.add(name, "acme/" + name);
    }
    // Its list is not to be had.
    w.fixture.host.fail_next(1'000, 500, {}, "/user/repos");
    for (const std::size_t reports : {4U, 8U, 12U, 12U}) {
      const auto before = w.asked();
      co_await w.permissions.round();
      EXPECT_LE(w.asked() - before, 5U);
      EXPECT_EQ(w.reports, reports);
    }
  });
}

TEST(GitPermissions, ManyQuestionsOfATokenAreAnsweredByItsList) {
  with_permissions([](PermissionsFixture& w) -> Task<> {
    CO_ASSERT_OK(co_await w.register_reader(kOther));
    for (int i = 0; i < 120; ++i) {
      w.fixture.host.add_repository("acme", "extra-" + std::to_string(i));
    }
    for (int i = 0; i < 8; ++i) {
      const auto name = (i % 2 == 0 ? "Extra-" : "extra-") + std::to_string(i * 15);
      w.add(name, "acme/" + name);
    }
    w.add("none", "acme/none");  // in no list
    const auto before = w.asked();
    co_await w.permissions.round();
    for (int i = 0; i < 8; ++i)
      EXPECT_THAT(w.sources[static_cast<std::size_t>(i)].permissions,
                  ElementsAre(kWriter, kReader));
    EXPECT_THAT(w.sources[8].permissions, ElementsAre(kNobody));
    EXPECT_EQ(w.asked() - before, 5U) << "two pages each, and one question, the tick's fifth";
    co_await w.permissions.round();
    EXPECT_EQ(w.asked() - before, 6U) << "only the last one is left";
    EXPECT_EQ(w.reports, 10U);
    const UserPermission unknown{"user-2", false, false};
    EXPECT_THAT(w.sources[8].permissions, ElementsAre(kNobody, unknown));
  });
}

TEST(GitPermissions, AnAccountThatDoesNotFilterByThemIsToldNone) {
  with_permissions([](PermissionsFixture& w) -> Task<> {
    w.add("shop", "acme/shop");
    w.filters = false;
    const auto before = w.asked();
    co_await w.permissions.round();
    EXPECT_EQ(w.asked(), before);
    EXPECT_EQ(w.reports, 0U);
    EXPECT_EQ(w.permissions.status().state, StatusState::unavailable);
    EXPECT_THAT(w.permissions.status().message, HasSubstr("not wanted"));
    w.filters = true;
    co_await sleep_for(11min);
    co_await w.permissions.round();
    EXPECT_THAT(w.sources[0].permissions, ElementsAre(kWriter));
    // A control plane that is away changes nothing.
    w.failure = {.code = ErrorCode::unavailable, .message = "away"};
    co_await sleep_for(11min);
    co_await w.permissions.round();
    const test::StatusPage status({w.permissions.status()});
    EXPECT_EQ(status.count(kPart, "known"), 1) << status;
    EXPECT_EQ(status.count(kPart, "known_of"), 1) << status;
  });
}

// The same on every kind of host.
class GitPermissionsOfHosts : public ::testing::TestWithParam<ProviderKind> {};

TEST_P(GitPermissionsOfHosts, AreWhatTheHostSays) {
  with_integrations(
      [](IntegrationsFixture& fixture) -> Task<> {
        const auto owner = fixture.host.organisation();
        fixture.host.add_repository(owner, "shop");
        CO_ASSERT_OK(co_await fixture.add());
        CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
        PermissionsFixture w(fixture);
        CO_ASSERT_OK(co_await w.register_reader(kOther));
        w.add("shop", owner + "/shop");
        w.add("none", owner + "/none");
        const UserPermission unknown{"user-2", false, false};
        co_await w.permissions.round();
        EXPECT_THAT(w.sources[0].permissions, ElementsAre(kWriter, kReader));
        EXPECT_THAT(w.sources[1].permissions, ElementsAre(kNobody, unknown));
        EXPECT_EQ(w.reports, 2U);
        // What the host does not tell now stays as it was.
        for (const int status : {500, 429}) {
          co_await sleep_for(91min);
          fixture.host.fail_next(1'000, status);
          co_await w.permissions.round();
          fixture.host.end_faults();
        }
        EXPECT_EQ(w.reports, 2U);
        // A repository that appears, and tokens that the host does not accept any more.
        fixture.host.add_repository(owner, "none");
        co_await sleep_for(91min);
        co_await w.permissions.round();
        EXPECT_THAT(w.sources[1].permissions, ElementsAre(kWriter, kReader));
        fixture.host.refuse_tokens(true);
        co_await sleep_for(91min);
        co_await w.permissions.round();
        EXPECT_THAT(w.sources[0].permissions, ElementsAre(kNobody, unknown));
      },
      GetParam());
}

INSTANTIATE_TEST_SUITE_P(Hosts, GitPermissionsOfHosts,
                         ::testing::Values(ProviderKind::github, ProviderKind::gitea,
                                           ProviderKind::gitlab, ProviderKind::bitbucket,
                                           ProviderKind::bitbucket_server),
                         [](const auto& kind) { return provider_name(kind.param); });

}  // namespace
}  // namespace gitops::app_proxy
