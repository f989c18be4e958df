#include "contract/git_provider_contract.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "app-proxy/providers/git_error.hpp"
#include "common/http/message.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {

const char* const kContractFile = "deploy/app one.yaml";
const char* const kContractFileContent = "replicas: 1\nname: \"größe\"\n";

namespace {

using namespace app_proxy;
using ::testing::Contains;
using ::testing::Not;

Task<> tells_who_the_token_belongs_to(const GitHostPeer& host) {
  const auto profile = co_await host.provider.who_am_i(host.access, soon());
  CO_ASSERT_OK(profile);
  EXPECT_EQ(profile->value.login, host.login);
  EXPECT_FALSE(profile->value.id.empty());
  EXPECT_FALSE(profile->value.name.empty());
  EXPECT_TRUE(profile->value.mail.contains('@'));
  EXPECT_FALSE(profile->is_last_known);
}

Task<> rejects_an_unknown_token(const GitHostPeer& host) {
  const GitAccess wrong{Secret("0123456789abcdef0123456789abcdef01234567"), host.access.username};
  const auto profile = co_await host.provider.who_am_i(wrong, soon());
  CO_ASSERT_TRUE(!profile);
  EXPECT_EQ(profile.error().subcode, git_errors::kTokenRejected) << profile.error().message;
  const auto checked = co_await host.provider.check_token(wrong, TokenUse::user, soon());
  CO_ASSERT_TRUE(!checked);
  EXPECT_EQ(checked.error().subcode, git_errors::kTokenRejected);
}

Task<> lists_organisations(const GitHostPeer& host) {
  const auto found = co_await host.provider.organisations(host.access, soon());
  CO_ASSERT_OK(found);
  std::vector<std::string> names;
  for (const auto& organisation : found->value) names.push_back(organisation.name);
  EXPECT_THAT(names, Contains(host.organisation));
}

Task<> pages_through_repositories(const GitHostPeer& host) {
  for (const std::size_t limit : {2UL, 3UL, 100UL}) {
    std::vector<std::string> names;
    bool has_next = true;
    for (std::size_t page = 1; has_next && page < 100; ++page) {
      const auto got = co_await host.provider.repositories(
          host.access, {.search = {}, .page = page, .limit = limit}, soon());
      CO_ASSERT_OK(got);
      EXPECT_EQ(got->value.page, page);
      EXPECT_LE(got->value.repositories.size(), limit);
      has_next = got->value.has_next;
      if (has_next) {
        EXPECT_EQ(got->value.repositories.size(), limit);
      }
      for (const auto& repository : got->value.repositories) names.push_back(repository->full_name);
    }
    const std::set<std::string> once(names.begin(), names.end());
    EXPECT_EQ(once.size(), names.size()) << "none comes twice";
    EXPECT_GE(names.size(), host.extra + 1) << "none is missing";
    EXPECT_THAT(names, Contains(host.repository.full()));
  }
}

Task<> finds_repositories_by_name(const GitHostPeer& host) {
  const auto found = co_await host.provider.repositories(
      host.access, {.search = "extra", .page = 1, .limit = 200}, soon());
  CO_ASSERT_OK(found);
  EXPECT_EQ(found->value.repositories.size(), host.extra);
  EXPECT_FALSE(found->value.has_next);
  const auto none = co_await host.provider.repositories(
      host.access, {.search = "no-such-name", .page = 1, .limit = 10}, soon());
  CO_ASSERT_OK(none);
  EXPECT_TRUE(none->value.repositories.empty());
}

Task<> reads_a_repository(const GitHostPeer& host) {
  const auto found = co_await host.provider.repository(host.access, host.repository, soon());
  CO_ASSERT_OK(found);
  const auto& repository = found->value;
  EXPECT_EQ(repository.full_name, host.repository.full());
  EXPECT_FALSE(repository.id.empty());
  EXPECT_EQ(repository.default_branch, "main");
  EXPECT_TRUE(repository.clone_url.starts_with("http")) << repository.clone_url;
  EXPECT_TRUE(repository.clone_url.ends_with(".git"));
  EXPECT_FALSE(repository.clone_url.contains('@'));
  EXPECT_FALSE(repository.ssh_url.empty());
  EXPECT_FALSE(repository.web_url.empty());
  EXPECT_TRUE(repository.is_private);
}

Task<> an_unknown_repository_is_not_found(const GitHostPeer& host) {
  const RepositoryName unknown{host.repository.owner, "no-such-name"};
  const auto found = co_await host.provider.repository(host.access, unknown, soon());
  CO_ASSERT_TRUE(!found);
  EXPECT_EQ(found.error().subcode, git_errors::kNotFound);
  const auto permissions = co_await host.provider.permissions(host.access, unknown, soon());
  CO_ASSERT_OK(permissions);
  EXPECT_EQ(permissions->value, Permissions());
}

Task<> lists_branches_and_tags(const GitHostPeer& host) {
  const auto found = co_await host.provider.branches_and_tags(host.access, host.repository, soon());
  CO_ASSERT_OK(found);
  EXPECT_THAT(found->value.branches, Contains("main"));
  EXPECT_THAT(found->value.branches, Contains("feature/x"));
  EXPECT_THAT(found->value.tags, Contains("v1.0"));
}

Task<> reads_files(const GitHostPeer& host) {
  for (const auto* ref : {"main", "v1.0", "feature/x"}) {
    const auto file =
        co_await host.provider.read_file(host.access, host.repository, kContractFile, ref, soon());
    CO_ASSERT_OK(file);
    EXPECT_EQ(file->value.content, kContractFileContent) << ref;
    EXPECT_EQ(file->value.path, kContractFile);
    // git hash-object
    EXPECT_EQ(file->value.revision, "59f0f3d6c2e6c71f25502ac2c17aebd9a726c6b2");
  }
  const auto missing =
      co_await host.provider.read_file(host.access, host.repository, "no/such", "main", soon());
  CO_ASSERT_TRUE(!missing);
  EXPECT_EQ(missing.error().subcode, git_errors::kNotFound);
  const auto escaping = co_await host.provider.read_file(host.access, host.repository,
                                                         "../../../../user", "main", soon());
  CO_ASSERT_TRUE(!escaping);
  EXPECT_EQ(escaping.error().code, ErrorCode::invalid_argument);
}

Task<> tells_permissions(const GitHostPeer& host) {
  const auto full = co_await host.provider.permissions(host.access, host.repository, soon());
  CO_ASSERT_OK(full);
  EXPECT_EQ(full->value, (Permissions{.read = true, .write = true, .admin = true}));
  if (!host.reader) co_return;
  const auto less = co_await host.provider.permissions(*host.reader, host.repository, soon());
  CO_ASSERT_OK(less);
  EXPECT_EQ(less->value, (Permissions{.read = true, .write = false, .admin = false}));
}

Task<> creates_a_repository_once(const GitHostPeer& host) {
  const NewRepository wanted{.name = {host.owner_of_new, "made-here"}};
  const auto made = co_await host.provider.create_repository(host.access, wanted, soon());
  CO_ASSERT_OK(made);
  EXPECT_EQ(made->full_name, wanted.name.full());
  EXPECT_TRUE(made->is_private);
  const auto again = co_await host.provider.create_repository(host.access, wanted, soon());
  CO_ASSERT_TRUE(!again);
  EXPECT_EQ(again.error().code, ErrorCode::conflict) << again.error().message;
  if (!host.reader) co_return;
  const auto refused = co_await host.provider.create_repository(
      *host.reader, {.name = {host.owner_of_new, "not-made"}}, soon());
  CO_ASSERT_TRUE(!refused);
  EXPECT_EQ(refused.error().subcode, git_errors::kTokenLacksRight) << refused.error().message;
}

Task<> a_pull_request_is_opened_and_merged(const GitHostPeer& host) {
  const auto made = co_await host.provider.create_pull_request(host.access, host.repository,
                                                               {.title = "More <b>replicas</b>",
                                                                .description = "because",
                                                                .head = "feature/x",
                                                                .base = "main"},
                                                               soon());
  CO_ASSERT_OK(made);
  EXPECT_GT(made->id, 0);
  EXPECT_EQ(made->title, "More <b>replicas</b>");
  EXPECT_EQ(made->description, "because");
  EXPECT_EQ(made->head_branch, "feature/x");
  EXPECT_EQ(made->base_branch, "main");
  EXPECT_EQ(made->author, host.login);
  EXPECT_FALSE(made->url.empty());
  EXPECT_FALSE(made->created_at.empty());
  EXPECT_TRUE(made->is_open);
  EXPECT_FALSE(made->is_merged);
  EXPECT_EQ(made->merge_commit_sha, "");
  if (host.refuses_second_pull_request) {
    const auto second = co_await host.provider.create_pull_request(
        host.access, host.repository, {.title = "again", .head = "feature/x", .base = "main"},
        soon());
    CO_ASSERT_TRUE(!second);
    EXPECT_EQ(second.error().code, ErrorCode::conflict) << second.error().message;
  }
  co_await host.merge(made->id);
  const auto merged =
      co_await host.provider.pull_request(host.access, host.repository, made->id, soon());
  CO_ASSERT_OK(merged);
  EXPECT_FALSE(merged->value.is_open);
  EXPECT_TRUE(merged->value.is_merged);
  EXPECT_TRUE(check_sha(merged->value.merge_commit_sha)) << merged->value.merge_commit_sha;
  const auto missing =
      co_await host.provider.pull_request(host.access, host.repository, 4711, soon());
  CO_ASSERT_TRUE(!missing);
  EXPECT_EQ(missing.error().subcode, git_errors::kNotFound);
}

Task<> sets_the_status_of_a_commit(const GitHostPeer& host) {
  for (const auto state :
       {CommitStatus::State::pending, CommitStatus::State::success, CommitStatus::State::failure}) {
    CO_ASSERT_OK(co_await host.provider.set_commit_status(
        host.access, host.repository, host.commit,
        {.state = state, .context = "gitops/promotion", .description = "promoted"}, soon()));
  }
  CO_ASSERT_TRUE(!co_await host.provider.set_commit_status(
      host.access, host.repository, "../../../user", {.context = "x"}, soon()));
}

Task<> webhooks_come_and_go(const GitHostPeer& host) {
  const std::string url = "https://runtime.example.test/webhooks/shop/git";
  const auto made = co_await host.provider.create_webhook(
      host.access, host.repository, {.url = url, .secret = Secret("canary-secret")}, soon());
  CO_ASSERT_OK(made);
  EXPECT_EQ(made->url, url);
  EXPECT_TRUE(made->is_active);
  const auto listed = co_await host.provider.webhooks(host.access, host.repository, soon());
  CO_ASSERT_OK(listed);
  const auto is_ours = [&](const Webhook& webhook) { return webhook.id == made->id; };
  EXPECT_EQ(std::ranges::count_if(listed->value, is_ours), 1);
  CO_ASSERT_OK(
      co_await host.provider.delete_webhook(host.access, host.repository, made->id, soon()));
  const auto after = co_await host.provider.webhooks(host.access, host.repository, soon());
  CO_ASSERT_OK(after);
  EXPECT_EQ(std::ranges::count_if(after->value, is_ours), 0);
  CO_ASSERT_TRUE(
      !co_await host.provider.delete_webhook(host.access, host.repository, "../../..", soon()));
}

Task<> checks_tokens(const GitHostPeer& host) {
  for (const auto use : {TokenUse::user, TokenUse::runtime}) {
    const auto full = co_await host.provider.check_token(host.access, use, soon());
    CO_ASSERT_OK(full);
    EXPECT_EQ(full->profile.login, host.login);
    EXPECT_THAT(full->missing, testing::IsEmpty());
    if (!host.reader) continue;
    const auto less = co_await host.provider.check_token(*host.reader, use, soon());
    CO_ASSERT_OK(less);
    EXPECT_TRUE(less->permissions_known);
    EXPECT_THAT(less->missing, Not(testing::IsEmpty()));
  }
}

}  // namespace

std::vector<GitProviderCase> git_provider_cases() {
  return {
      {"TellsWhoTheTokenBelongsTo", tells_who_the_token_belongs_to},
      {"RejectsAnUnknownToken", rejects_an_unknown_token},
      {"ListsOrganisations", lists_organisations},
      {"PagesThroughRepositories", pages_through_repositories},
      {"FindsRepositoriesByName", finds_repositories_by_name},
      {"ReadsARepository", reads_a_repository},
      {"AnUnknownRepositoryIsNotFound", an_unknown_repository_is_not_found},
      {"ListsBranchesAndTags", lists_branches_and_tags},
      {"ReadsFiles", reads_files},
      {"TellsPermissions", tells_permissions},
      {"CreatesARepositoryOnce", creates_a_repository_once},
      {"APullRequestIsOpenedAndMerged", a_pull_request_is_opened_and_merged},
      {"SetsTheStatusOfACommit", sets_the_status_of_a_commit},
      {"WebhooksComeAndGo", webhooks_come_and_go},
      {"ChecksTokens", checks_tokens},
  };
}

}  // namespace gitops::test
