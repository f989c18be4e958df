#include <gtest/gtest.h>

#include "app-proxy/git/git_bed.hpp"
#include "peers/peer_gitea.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;

// Commits of several users to a real Git host, over HTTPS with a private CA, by token.
TEST(Gitea, TakesCommitsOfSeveralUsers) {
  using test::PeerGitea;
  GITOPS_REQUIRE_PEER(PeerGitea);
  test::PeerGitea gitea;
  const auto owner = gitea.create_user("owner");
  const auto guest = gitea.create_user("guest");
  const auto url = gitea.create_repository(owner, "work");
  ASSERT_TRUE(
      gitea.api(owner, "PUT", "/repos/owner/work/collaborators/guest", R"({"permission":"write"})")
          .ok());
  const auto stranger = gitea.create_user("stranger");
  test::run_coro(
      [&]() -> Task<> {
        test::GitBed bed(co_await asio::this_coro::executor, {.ca_file = gitea.ca_file().string()});
        TaskGroup users(co_await asio::this_coro::executor);
        for (int i = 0; i < 20; ++i) {
          users.spawn("user", [&, i]() -> Task<> {
            const auto& user = i % 2 == 0 ? owner : guest;
            auto request = bed.request(url, "files/" + std::to_string(i), "x\n", user.name);
            request.credential = {.username = user.name, .password = Secret(user.token)};
            const auto done =
                co_await bed.committer.commit(std::move(request), deadline_after(60s));
            EXPECT_TRUE(done) << done.error().message;
          });
        }
        co_await users.join();
        auto request = bed.request(url, "x", "x\n");
        request.credential = {.username = stranger.name, .password = Secret(stranger.token)};
        const auto refused = co_await bed.committer.commit(request, deadline_after(30s));
        CO_ASSERT_TRUE(!refused);
        EXPECT_EQ(refused.error().code, ErrorCode::forbidden) << refused.error().message;
        co_await bed.stop();
      },
      120s);
  EXPECT_EQ(gitea.git(owner, "work", {"rev-list", "--count", "main"}).out, "21\n");
  EXPECT_EQ(gitea.git(owner, "work", {"rev-list", "--count", "--author=guest", "main"}).out,
            "10\n");
}

}  // namespace
}  // namespace gitops::app_proxy
