// Credentials that change while threads of the pool work with them.
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app-proxy/git/git_bed.hpp"
#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::GitBed;
using test::GitServer;
using test::run_coro;

// [AC-29] Users with tokens that are good, replaced or revoked commit at the same time, while the key
// of signatures is replaced as Kubernetes does it. Each commit has the permissions and the signature of one
// credential, whole.
TEST(Committer, AC29_TokensAndSigningKeysRotateWhileCommitsAreMade) {
  constexpr std::size_t kKeys = 3;
  GitServer server;
  server.create_repository("work");
  server.commit("work", {{"README.md", "hello\n"}}, "first");
  server.add_user("bo", "second-token");
  const test::TempDir folder;
  const auto key_file = [&](std::size_t i) { return folder / ("key-" + std::to_string(i)); };
  std::vector<std::string> public_keys;
  for (std::size_t i = 0; i < kKeys; ++i) {
    test::run_or_throw({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key_file(i).string()});
    public_keys.push_back(
        CommitSigner::from_openssh_key(test::read_file(key_file(i)))->public_key());
  }
  const auto mounted = folder / "ssh-privatekey";
  const auto mount = [&](std::size_t i) {
    std::filesystem::copy_file(key_file(i), folder / "next");
    std::filesystem::rename(folder / "next", mounted);
  };
  mount(0);
  std::vector<std::string> pushed;
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        SigningKey key(mounted.string());
        GitBed bed(executor, {.committer = {.signer = [&] { return key.current(); }}});
        const std::array<GitCredential, 3> credentials{{
            {.username = server.username(), .password = Secret(server.password())},
            {.username = "bo", .password = Secret("second-token")},
            {.username = "bo", .password = Secret("revoked-token")},
        }};
        bool done = false;
        std::size_t begun = 0;
        TaskGroup users(executor);
        for (int user = 0; user < 4; ++user) {
          users.spawn("user", [&]() -> Task<> {
            while (!done) {
              const std::size_t number = begun++;
              auto request = bed.request(server.url("work"), "f/" + std::to_string(number), "1\n");
              request.credential = credentials[number % credentials.size()];
              const auto made =
                  co_await bed.committer.commit(std::move(request), deadline_after(30s));
              if (number % credentials.size() == 2) {
                EXPECT_FALSE(made);
                if (!made) EXPECT_EQ(made.error().code, ErrorCode::unauthenticated);
              } else {
                EXPECT_TRUE(made) << made.error().message;
                if (made) pushed.push_back(made->sha);
              }
            }
          });
        }
        for (std::size_t i = 0; i < kKeys; ++i) {
          if (i > 0) mount(i);
          const auto current = [&] {
            const auto signer = key.current();
            return signer ? (*signer)->public_key() : signer.error().message;
          };
          EXPECT_TRUE(co_await test::eventually([&] { return current() == public_keys[i]; },
                                                "the mounted key"));
          const auto before = begun;
          EXPECT_TRUE(co_await test::eventually([&] { return begun >= before + 12; },
                                                "twelve more signatures"));
        }
        done = true;
        co_await users.join();
        co_await bed.stop();
      },
      100s);
  EXPECT_EQ(server.git("work", {"rev-list", "--count", "main"}).out,
            std::to_string(pushed.size() + 1) + "\n");
  std::size_t verified = 0;
  for (const auto& public_key : public_keys) {
    const auto allowed = folder / "allowed";
    test::write_file(allowed, "* " + public_key + "\n");
    std::size_t signed_by_it = 0;
    for (const auto& sha : pushed) {
      const auto good = server.git(
          "work", {"-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile=" + allowed.string(),
                   "verify-commit", sha});
      if (good.ok()) ++signed_by_it;
    }
    EXPECT_GT(signed_by_it, 0U);
    verified += signed_by_it;
  }
  EXPECT_EQ(verified, pushed.size());
}

}  // namespace
}  // namespace gitops::app_proxy
