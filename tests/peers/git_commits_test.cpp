#include <gtest/gtest.h>

#include "app-proxy/git/git_bed.hpp"
#include "common/core/crypto.hpp"
#include "peers/peer_gitea.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

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

// Git's own smart HTTP behind nginx: HTTPS with a private CA, authentication, and a proxy's limits.
TEST(GitBehindNginx, TakesCommitsOfSeveralUsers) {
  const auto nginx = test::find_program("nginx");
  if (const auto missing = test::GitServer::missing()) GTEST_SKIP() << *missing;
  if (!nginx) GTEST_SKIP() << "nginx is missing (Debian: nginx-light)";
  test::GitServer server;
  const auto behind = server.create_repository("work");
  server.commit("work", {{"a", "1\n"}}, "first");
  test::CertificateAuthority authority;
  const auto certificate =
      authority.issue({.common_name = "git", .organization = {}, .alt_names = {"localhost"}});
  const test::TempDir folder;
  const auto port = std::to_string(test::free_port());
  const auto at = folder.path().string();
  std::string config = "daemon off;\nmaster_process off;\nerror_log stderr;\npid " + at +
                       "/pid;\nevents {}\nhttp {\n  access_log off;\n  client_max_body_size 8m;\n";
  for (const std::string name : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    config += "  " + name + "_temp_path " + at + "/" + name + ";\n";
  }
  config += "  server {\n    listen 127.0.0.1:" + port + " ssl;\n    ssl_certificate " +
            certificate.cert_file.string() + ";\n    ssl_certificate_key " +
            certificate.key_file.string() + ";\n    location / { proxy_pass " +
            behind.substr(0, behind.find("/git/")) + "; proxy_http_version 1.1; }\n  }\n}\n";
  test::write_file(folder / "nginx.conf", config);
  test::Process proxy({.argv = {nginx->string(), "-c", (folder / "nginx.conf").string(), "-p", at},
                       .log_file = folder / "log"});
  const auto url = "https://localhost:" + port + behind.substr(behind.find("/git/"));
  test::require_until(
      [&] {
        return test::run_command({"git", "ls-remote", url},
                                 {{"GIT_SSL_NO_VERIFY", "1"}, {"GIT_TERMINAL_PROMPT", "0"}})
            .err.contains("terminal prompts disabled");
      },
      20s, "nginx to ask for a password");
  test::run_coro(
      [&]() -> Task<> {
        test::GitBed bed(co_await asio::this_coro::executor,
                         {.ca_file = authority.ca_file().string()});
        bed.credential = {.username = server.username(), .password = Secret(server.password())};
        TaskGroup users(co_await asio::this_coro::executor);
        for (int i = 0; i < 20; ++i) {
          users.spawn("user", [&, i]() -> Task<> {
            const auto done = co_await bed.committer.commit(
                bed.request(url, "files/" + std::to_string(i), "x\n", i % 2 == 0 ? "Ann" : "Ben"),
                deadline_after(60s));
            EXPECT_TRUE(done) << done.error().message;
          });
        }
        co_await users.join();
        // More than nginx lets pass.
        std::string large;
        while (large.size() < 12UL * 1024 * 1024) large += random_bytes(4096);
        const auto refused = co_await bed.committer.commit(
            bed.request(url, "large", std::move(large)), deadline_after(60s));
        CO_ASSERT_TRUE(!refused);
        EXPECT_EQ(refused.error().code, ErrorCode::too_large);
        EXPECT_TRUE(refused.error().message.contains("takes no request of this size"))
            << refused.error().message;
        auto request = bed.request(url, "b", "2\n");
        request.credential.password = Secret("wrong");
        const auto unknown = co_await bed.committer.commit(std::move(request), deadline_after(30s));
        CO_ASSERT_TRUE(!unknown);
        EXPECT_EQ(unknown.error().code, ErrorCode::unauthenticated) << unknown.error().message;
        co_await bed.stop();
      },
      120s);
  EXPECT_EQ(server.git("work", {"rev-list", "--count", "main"}).out, "21\n");
  EXPECT_EQ(server.git("work", {"rev-list", "--count", "--min-parents=2", "main"}).out, "0\n");
}

}  // namespace
}  // namespace gitops::app_proxy
