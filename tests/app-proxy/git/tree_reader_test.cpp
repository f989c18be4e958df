#include "app-proxy/git/tree_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app-proxy/git/failure_codes.hpp"
#include "app-proxy/git/git_bed.hpp"
#include "app-proxy/git/repository.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::GitBed;
using test::GitServer;

std::string text_of(const Result<FolderContent>& content) {
  if (!content) return content.error().message;
  std::string text;
  for (const auto& file : content->files) text += file.path + "=" + file.content + ";";
  return text;
}

TEST(TreeReader, ReadsAFolderAtABranchAndAtACommit) {
  GitServer server;
  const auto url = server.create_repository("work");
  const auto first = server.commit("work", {{"apps/a", "1"}, {"apps/x/b", "2"}, {"c", "3"}}, "one");
  server.commit("work", {{"apps/a", "10"}}, "two");
  ASSERT_TRUE(server.git("work", {"branch", "old", first}).ok());
  test::run_coro(
      [&]() -> Task<> {
        GitBed bed(co_await asio::this_coro::executor, {});
        TreeReader reader(bed.pool, bed.clones, bed.client);
        const auto read = [&](FolderRequest request) -> Task<Result<FolderContent>> {
          request.repository = parse_repository_url(url, Scheme::http_too).value();
          request.credential = {.username = server.username(),
                                .password = Secret(server.password())};
          return reader.read(std::move(request), deadline_after(20s));
        };
        EXPECT_EQ(text_of(co_await read({.repository = {}, .folder = "apps"})), "a=10;x/b=2;");
        EXPECT_EQ(text_of(co_await read({.repository = {}, .branch = "HEAD"})),
                  "apps/a=10;apps/x/b=2;c=3;");
        EXPECT_EQ(text_of(co_await read({.repository = {}, .branch = "old", .folder = "apps"})),
                  "a=1;x/b=2;");
        EXPECT_EQ(text_of(co_await read({.repository = {}, .commit = first, .folder = "apps/x"})),
                  "b=2;");
        EXPECT_EQ(text_of(co_await read({.repository = {}, .folder = "none"})), "");
        EXPECT_EQ(text_of(co_await read({.repository = {}, .folder = "c"})), "") << "a file";
        const auto second = server.commit("work", {{"apps/a", "11"}}, "three");
        const auto some =
            co_await read({.repository = {}, .folder = "apps", .wanted = [](std::string_view path) {
                             return path == "a";
                           }});
        EXPECT_EQ(text_of(some), "a=11;") << "the branch moved";
        EXPECT_EQ(some ? some->commit : "", second);
        const auto no_branch = co_await read({.repository = {}, .branch = "none"});
        EXPECT_THAT(text_of(no_branch), testing::HasSubstr("no branch"));
        EXPECT_TRUE(!no_branch && is_missing_branch(no_branch.error()));
        EXPECT_THAT(text_of(co_await read({.repository = {}, .branch = "old", .commit = second})),
                    testing::HasSubstr("has no commit"));
        EXPECT_THAT(text_of(co_await read({.repository = {}, .commit = std::string(40, '0')})),
                    testing::HasSubstr("has no commit"));
        EXPECT_THAT(text_of(co_await read({.repository = {}, .max_bytes = 3})),
                    testing::HasSubstr("bytes"));
        co_await bed.stop();
      },
      60s);
}

// A host answers so for a token that it does not know, too.
TEST(TreeReader, ARepositoryThatIsNotShownIsNotOneWithoutTheBranch) {
  GitServer server;
  const auto url = server.create_repository("work");
  server.commit("work", {{"a", "1"}}, "one");
  const auto place = server.folder() / "repos/work.git";
  const auto away = server.folder() / "repos/away.git";
  test::run_coro(
      [&]() -> Task<> {
        GitBed bed(co_await asio::this_coro::executor, {});
        TreeReader reader(bed.pool, bed.clones, bed.client);
        // Before there is a clone, and after.
        for (const bool is_cloned : {false, true}) {
          const FolderRequest request{
              .repository = parse_repository_url(url, Scheme::http_too).value(),
              .credential = {.username = server.username(), .password = Secret(server.password())}};
          if (is_cloned) CO_ASSERT_OK(co_await reader.read(request, deadline_after(20s)));
          std::filesystem::rename(place, away);
          const auto hidden = co_await reader.read(request, deadline_after(20s));
          std::filesystem::rename(away, place);
          CO_ASSERT_TRUE(!hidden);
          EXPECT_EQ(hidden.error().code, ErrorCode::not_found) << hidden.error().message;
          EXPECT_FALSE(is_missing_branch(hidden.error())) << hidden.error().message;
        }
        co_await bed.stop();
      },
      60s);
}

TEST(TreeReader, AFolderBelowALostTreeIsNotAnEmptyOne) {
  GitServer server;
  server.create_repository("work");
  const auto commit = server.commit("work", {{"apps/x/b", "1"}}, "one");
  const auto place = server.folder() / "repos/work.git";
  const auto files = [&](const char* folder) -> Result<std::vector<std::string>> {
    auto repository = BareRepository::open(place);
    if (!repository) return std::unexpected(repository.error());
    return repository->list_files(commit, folder, 10);
  };
  const auto before = files("apps/x");
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_THAT(*before, testing::ElementsAre("b"));
  const auto tree = server.git("work", {"rev-parse", "main:apps"}).out.substr(0, 40);
  ASSERT_TRUE(std::filesystem::remove(place / "objects" / tree.substr(0, 2) / tree.substr(2)));
  const auto after = files("apps/x");
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().subcode, kBrokenClone) << after.error().message;
  const auto none = files("none");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->empty());
}

TEST(TreeReader, KnowsBranchesAndTagsWithoutAClone) {
  GitServer server;
  const auto url = server.create_repository("work");
  server.commit("work", {{"a", "1"}}, "one");
  ASSERT_TRUE(server.git("work", {"tag", "v1", "main"}).ok());
  server.create_repository("empty");
  test::run_coro(
      [&]() -> Task<> {
        GitBed bed(co_await asio::this_coro::executor, {});
        TreeReader reader(bed.pool, bed.clones, bed.client);
        const auto has = [&](std::string at, std::string ref) -> Task<Result<bool>> {
          return reader.has(parse_repository_url(at, Scheme::http_too).value(), std::move(ref),
                            {.username = server.username(), .password = Secret(server.password())},
                            deadline_after(20s));
        };
        for (const auto& [ref, expected] :
             {std::pair("main", true), {"v1", true}, {"", true}, {"v2", false}, {"HEAD", false}}) {
          const auto found = co_await has(url, ref);
          CO_ASSERT_OK(found);
          EXPECT_EQ(*found, expected) << ref;
        }
        CO_ASSERT_OK(co_await has(server.url("empty"), ""));
        const auto none = co_await has(server.url("none"), "");
        CO_ASSERT_TRUE(!none);
        EXPECT_EQ(none.error().code, ErrorCode::not_found) << none.error().message;
        EXPECT_TRUE(std::filesystem::is_empty(bed.folder.path()));
        co_await bed.stop();
      },
      60s);
}

}  // namespace
}  // namespace gitops::app_proxy
