#include <filesystem>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>

#include "k8s-client/token_source.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"

namespace gitops::k8s {
namespace {

namespace fs = std::filesystem;

// Two loops read one token file while it is replaced: each gets whole tokens in order.
TEST(TokenSourceThreads, AC29_ATokenFileRotatesWhileItIsRead) {
  const test::TempDir folder;
  const auto file = folder / "token";
  const auto install = [&](int serial) {
    test::write_file(folder / "token.new", std::string(2000, 't') + std::to_string(serial) + "\n");
    fs::rename(folder / "token.new", file);
  };
  constexpr int kFirst = 100'000;  // all serials have as many digits
  install(kFirst);
  std::jthread writer([&](const std::stop_token& stop) {
    for (int serial = kFirst; !stop.stop_requested(); ++serial) install(serial);
  });
  const auto read_often = [&] {
    test::run_coro(
        [&]() -> Task<> {
          ClusterConfig config;
          config.token_file = file;
          TokenSource tokens(co_await asio::this_coro::executor, config);
          int last = kFirst;
          int changes = 0;
          while (changes < 50) {
            const auto got =
                co_await tokens.authorization(deadline_after(std::chrono::seconds(10)));
            CO_ASSERT_OK(got);
            const std::string text(got->reveal());
            const std::string head = "Bearer " + std::string(2000, 't');
            CO_ASSERT_EQ(text.size(), head.size() + 6);
            CO_ASSERT_TRUE(text.starts_with(head));
            const int serial = std::stoi(text.substr(head.size()));
            EXPECT_GE(serial, last);
            changes += serial > last ? 1 : 0;
            last = serial;
            tokens.invalidate(*got);
          }
        },
        std::chrono::seconds(20));
  };
  std::jthread other(read_often);
  read_often();
}

}  // namespace
}  // namespace gitops::k8s
