#include "common/core/credential.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/process.hpp"
#include "support/run_coro.hpp"

namespace gitops {
namespace {

using namespace std::chrono_literals;
using test::run_in_test_time;

void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path) << text;
}

// What a function of Credential::fetched() gives, one answer per call; the last one again and
// again.
class Answers {
 public:
  explicit Answers(std::vector<Result<Secret>> answers) : answers_(std::move(answers)) {}

  Credential::Fetch fetch() {
    return [this]() -> Task<Result<Secret>> {
      const auto& answer = answers_[std::min(calls_, answers_.size() - 1)];
      ++calls_;
      co_await sleep_for(10ms);
      co_return answer;
    };
  }
  [[nodiscard]] std::size_t calls() const { return calls_; }

 private:
  std::vector<Result<Secret>> answers_;
  std::size_t calls_ = 0;
};

Result<Secret> token(std::string_view text) {
  return Secret(std::string(text));
}

TEST(Credential, AFixedOneStaysAsItIs) {
  run_in_test_time([]() -> Task<> {
    auto credential = Credential::fixed(Secret("one"));
    EXPECT_EQ(credential.current().reveal(), "one");
    EXPECT_FALSE(co_await credential.refused());
    EXPECT_EQ(credential.last_error(), "");
  });
}

TEST(Credential, AFileIsReadAgainWhenItChangedAndWhenItsTokenIsRefused) {
  run_in_test_time([]() -> Task<> {
    const test::TempDir folder;
    const auto path = folder / "token";
    auto credential = Credential::file(path);
    EXPECT_TRUE(credential.current().empty());
    EXPECT_NE(credential.last_error(), "");
    write(path, "one\n");
    co_await sleep_for(2s);
    EXPECT_EQ(credential.current().reveal(), "one");
    EXPECT_EQ(credential.last_error(), "");
    EXPECT_FALSE(co_await credential.refused()) << "it is the same";
    write(path, "another");
    EXPECT_TRUE(co_await credential.refused());
    EXPECT_EQ(credential.current().reveal(), "another");
    std::filesystem::remove(path);
    co_await sleep_for(2s);
    EXPECT_EQ(credential.current().reveal(), "another") << "the last one stays in use";
    EXPECT_NE(credential.last_error(), "");
  });
}

TEST(Credential, AnEmptyFileIsNoToken) {
  run_in_test_time([]() -> Task<> {
    const test::TempDir folder;
    const auto path = folder / "token";
    auto credential = Credential::file(path);
    write(path, "canary-one\n");
    EXPECT_EQ(credential.current().reveal(), "canary-one");
    for (const auto* nothing : {"", "\n", " \n\n"}) {
      write(path, nothing);
      co_await sleep_for(2s);
      EXPECT_EQ(credential.current().reveal(), "canary-one") << "the last one stays in use";
      EXPECT_EQ(credential.last_error(), path.string() + ": is empty");
    }
    write(path, "canary-second\n");
    co_await sleep_for(2s);
    EXPECT_EQ(credential.current().reveal(), "canary-second");
    EXPECT_EQ(credential.last_error(), "");
  });
}

TEST(Credential, AFunctionIsAskedPeriodicallyAndWhenTheTokenIsRefused) {
  run_in_test_time([]() -> Task<> {
    Answers answers({token("one"), token("two"), token("three"), token("three")});
    auto credential = Credential::fetched(
        answers.fetch(), {.task = "fetch", .not_yet = "not read yet", .period = 60s});
    EXPECT_TRUE(credential.current().empty());
    EXPECT_EQ(credential.last_error(), "not read yet");
    TaskGroup tasks(co_await asio::this_coro::executor);
    credential.start(tasks);
    co_await sleep_for(1s);
    EXPECT_EQ(credential.current().reveal(), "one");
    EXPECT_EQ(credential.last_error(), "");
    EXPECT_TRUE(co_await credential.refused());
    EXPECT_EQ(credential.current().reveal(), "two");
    EXPECT_FALSE(co_await credential.refused()) << "not twice in a moment";
    EXPECT_EQ(answers.calls(), 2U);
    co_await sleep_for(70s);
    EXPECT_EQ(credential.current().reveal(), "three");
    EXPECT_EQ(answers.calls(), 3U);
    tasks.cancel();
    co_await tasks.join();
  });
}

TEST(Credential, WithoutAPeriodAFunctionIsAskedUntilThereIsATokenAndThenOnlyWhenItIsRefused) {
  run_in_test_time([]() -> Task<> {
    const auto away = fail(ErrorCode::unavailable, "away");
    Answers answers({Result<Secret>(away), token("one"), token("two")});
    auto credential = Credential::fetched(answers.fetch(), {.task = "login", .not_yet = "not yet"});
    TaskGroup tasks(co_await asio::this_coro::executor);
    credential.start(tasks);
    co_await sleep_for(1s);
    EXPECT_EQ(credential.last_error(), "away");
    EXPECT_FALSE(co_await credential.refused());
    EXPECT_EQ(answers.calls(), 1U) << "soon, but not at once";
    co_await sleep_for(2s);
    EXPECT_EQ(credential.current().reveal(), "one");
    EXPECT_EQ(credential.last_error(), "");
    co_await sleep_for(600s);
    EXPECT_EQ(answers.calls(), 2U);
    EXPECT_EQ(tasks.size(), 0U);
    EXPECT_TRUE(co_await credential.refused());
    EXPECT_EQ(credential.current().reveal(), "two");
    co_await tasks.join();
  });
}

// The 404 of an ingress and a certificate that is not ready, while the peer starts.
TEST(Credential, AFailureThatIsNoRefusalIsTriedAgainSoon) {
  run_in_test_time([]() -> Task<> {
    const auto not_found = fail(ErrorCode::not_found, "404");
    const auto untrusted = fail(ErrorCode::tls, "self-signed");
    Answers answers({Result<Secret>(not_found), Result<Secret>(untrusted), token("one")});
    auto credential = Credential::fetched(
        answers.fetch(), {.task = "login", .not_yet = "not yet", .retry_lasting = 310s});
    TaskGroup tasks(co_await asio::this_coro::executor);
    credential.start(tasks);
    co_await sleep_for(5s);
    EXPECT_EQ(credential.current().reveal(), "one");
    co_await tasks.join();
  });
}

// As at the end of a session, when several requests are refused together.
TEST(Credential, EveryoneWhoseTokenIsRefusedDuringACallGetsTheNewOne) {
  run_in_test_time([]() -> Task<> {
    Answers answers({token("one"), token("two")});
    auto credential = Credential::fetched(answers.fetch(), {.task = "login", .not_yet = "not yet"});
    TaskGroup tasks(co_await asio::this_coro::executor);
    credential.start(tasks);
    co_await sleep_for(10s);
    std::vector<bool> found;
    for (int i = 0; i < 3; ++i) {
      tasks.spawn("refused", [&]() -> Task<> { found.push_back(co_await credential.refused()); });
    }
    co_await tasks.join();
    EXPECT_EQ(found, (std::vector<bool>{true, true, true}));
    EXPECT_EQ(credential.current().reveal(), "two");
    EXPECT_EQ(answers.calls(), 2U) << "one call for all of them";
  });
}

// The client of the first request leaves, and its coroutine is cancelled.
TEST(Credential, ACallThatIsCancelledIsMadeForTheNextWhoWaits) {
  run_in_test_time([]() -> Task<> {
    Answers answers({token("one"), token("two")});
    auto credential = Credential::fetched(answers.fetch(), {.task = "login", .not_yet = "not yet"});
    TaskGroup tasks(co_await asio::this_coro::executor);
    credential.start(tasks);
    co_await sleep_for(10s);
    TaskGroup first(co_await asio::this_coro::executor);
    first.spawn("leaves", [&]() -> Task<> { (void)co_await credential.refused(); });
    co_await sleep_for(1ms);
    std::vector<bool> found;
    for (int i = 0; i < 2; ++i) {
      tasks.spawn("stays", [&]() -> Task<> { found.push_back(co_await credential.refused()); });
    }
    co_await sleep_for(1ms);
    first.cancel();
    co_await first.join();
    co_await tasks.join();
    EXPECT_EQ(found, (std::vector<bool>{true, true}));
    EXPECT_EQ(credential.current().reveal(), "two");
    EXPECT_EQ(answers.calls(), 3U) << "one call for both of them";
  });
}

TEST(Credential, AFailureThatLastsIsNotTriedAgainSoonWhoeverAsks) {
  run_in_test_time([]() -> Task<> {
    const auto wrong = fail(ErrorCode::unauthenticated, "wrong password");
    Answers answers({Result<Secret>(wrong)});
    auto credential = Credential::fetched(
        answers.fetch(), {.task = "login", .not_yet = "not yet", .retry_lasting = 70s});
    TaskGroup tasks(co_await asio::this_coro::executor);
    credential.start(tasks);
    co_await sleep_for(1ms);
    EXPECT_FALSE(co_await credential.refused()) << "a call is under way";
    for (int i = 0; i < 60; ++i) {
      co_await sleep_for(1s);
      EXPECT_FALSE(co_await credential.refused());
    }
    EXPECT_EQ(answers.calls(), 1U);
    EXPECT_EQ(credential.last_error(), "wrong password");
    co_await sleep_for(11s);
    EXPECT_EQ(answers.calls(), 2U);
    tasks.cancel();
    co_await tasks.join();
  });
}

}  // namespace
}  // namespace gitops
