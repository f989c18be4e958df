#include "common/net/resolve.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using test::run_coro;
using test::run_in_test_time;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A name server whose answers, and their time, a test decides.
class NameServer {
 public:
  // Called by the threads of a resolver.
  Result<Addresses> look_up(const std::string& host) {
    std::unique_lock lock(mutex_);
    ++asked_[host];
    ++waiting_;
    changed_.wait(lock, [this] { return !silent_; });
    --waiting_;
    const auto found = answers_.find(host);
    if (found == answers_.end()) return fail(ErrorCode::not_found, "no such host");
    if (found->second.empty()) return fail(ErrorCode::unavailable, "the name server is broken");
    return Addresses{asio::ip::make_address(found->second)};
  }
  // An empty address: a failure that says nothing about the host.
  void set(const std::string& host, std::string address) {
    const std::lock_guard lock(mutex_);
    answers_[host] = std::move(address);
  }
  void fall_silent(bool silent = true) {
    const std::lock_guard lock(mutex_);
    silent_ = silent;
    changed_.notify_all();
  }
  [[nodiscard]] int asked(const std::string& host) {
    const std::lock_guard lock(mutex_);
    return asked_[host];
  }
  [[nodiscard]] int waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  Resolver::Options options(std::size_t threads = 1, std::size_t max_queued = 64) {
    return {.threads = threads,
            .max_queued = max_queued,
            .look_up = [this](const std::string& host) { return look_up(host); }};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool silent_ = false;
  int waiting_ = 0;
  std::map<std::string, std::string> answers_;
  std::map<std::string, int> asked_;
};

// Answers again at the end of a test, so that the resolver's threads end.
struct Silence {
  explicit Silence(NameServer& s) : server(s) { server.fall_silent(); }
  ~Silence() { server.fall_silent(false); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  NameServer& server;
};

// The address that a host has, or the name of the error.
Task<std::string> ask(Resolver& resolver, std::string host, Deadline deadline = kNever) {
  const auto found = co_await resolver.resolve(std::move(host), 80, deadline);
  if (!found) co_return std::string(to_string(found.error().code));
  co_return found->front().address().to_string();
}

TEST(Resolver, LiteralsNeedNoLookup) {
  NameServer names;
  Metrics metrics;
  Resolver resolver(metrics, names.options());
  run_coro([&]() -> Task<> {
    const auto four = co_await resolver.resolve("10.1.2.3", 80, kNever);
    CO_ASSERT_OK(four);
    EXPECT_EQ(four->size(), 1u);
    EXPECT_EQ(four->front().address().to_string(), "10.1.2.3");
    EXPECT_EQ(four->front().port(), 80);
    const auto six = co_await resolver.resolve("fd00::1", 443, kNever);
    CO_ASSERT_OK(six);
    EXPECT_EQ(six->front().address().to_string(), "fd00::1");
    EXPECT_EQ(names.asked("10.1.2.3"), 0);
  });
}

TEST(Resolver, FindsLocalhost) {
  Metrics metrics;
  Resolver resolver(metrics);
  run_coro([&]() -> Task<> {
    for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{81}}) {
      const auto found = co_await resolver.resolve("localhost", port, deadline_after(seconds(25)));
      CO_ASSERT_OK(found);
      EXPECT_FALSE(found->empty());
      for (const auto& endpoint : *found) {
        EXPECT_TRUE(endpoint.address().is_loopback());
        EXPECT_EQ(endpoint.port(), port);
      }
    }
  });
}

TEST(Resolver, UnknownHostsAreNamed) {
  Metrics metrics;
  Resolver resolver(metrics);
  run_coro([&]() -> Task<> {
    const auto unknown =
        co_await resolver.resolve("no-such-host.invalid", 80, deadline_after(seconds(25)));
    EXPECT_FALSE(unknown);
    // A machine without name servers cannot know.
    EXPECT_EQ(unknown.error().code, unknown.error().message.contains("no such host")
                                        ? ErrorCode::not_found
                                        : ErrorCode::unavailable);
    EXPECT_THAT(unknown.error().message,
                testing::StartsWith("lookup of no-such-host.invalid failed: "));
  });
}

TEST(Resolver, WaitersLeaveALookupThatHangs) {
  NameServer names;
  Metrics metrics;
  Resolver resolver(metrics, names.options());
  const Silence silence(names);
  run_coro([&]() -> Task<> {
    EXPECT_EQ(co_await ask(resolver, "a", deadline_after(milliseconds(20))), "timeout");
    bool returned = false;
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("resolve", [&]() -> Task<> {
      co_await ask(resolver, "a");
      returned = true;
    });
    co_await asio::post(co_await asio::this_coro::executor, use_task);
    tasks.cancel();
    co_await tasks.join();
    EXPECT_FALSE(returned);
  });
}

TEST(Resolver, EqualLookupsAreOneAndAreRemembered) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  Resolver resolver(metrics, names.options());
  run_coro([&]() -> Task<> {
    names.fall_silent();
    int found = 0;
    TaskGroup tasks(co_await asio::this_coro::executor);
    for (int i = 0; i < 5; ++i) {
      tasks.spawn("resolve",
                  [&]() -> Task<> { found += co_await ask(resolver, "a") == "10.0.0.1" ? 1 : 0; });
    }
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.waiting() == 1; }, "a query that waits"));
    names.fall_silent(false);
    co_await tasks.join();
    EXPECT_EQ(found, 5);
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    EXPECT_EQ(names.asked("a"), 1);
    resolver.look_again("a");
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    EXPECT_EQ(names.asked("a"), 2);
  });
}

// While a peer is down, each attempt to connect to it asks for a lookup.
TEST(Resolver, LooksAgainAtMostOnceASecond) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  Resolver resolver(metrics, names.options());
  run_in_test_time([&]() -> Task<> {
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    for (int i = 0; i < 10; ++i) {
      resolver.look_again("a");
      EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    }
    EXPECT_EQ(names.asked("a"), 2);
    co_await sleep_for(seconds(1));
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    EXPECT_EQ(names.asked("a"), 3) << "the second call was not forgotten";
  });
}

TEST(Resolver, AsksAgainAfterHalfAMinuteAndSoonAfterAFailure) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  Resolver resolver(metrics, names.options());
  run_in_test_time([&]() -> Task<> {
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    names.set("a", "10.0.0.2");
    co_await sleep_for(seconds(25));
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    co_await sleep_for(seconds(10));
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.2");

    EXPECT_EQ(co_await ask(resolver, "b"), "not_found");
    names.set("b", "10.0.0.3");
    EXPECT_EQ(co_await ask(resolver, "b"), "not_found");
    co_await sleep_for(seconds(3));
    EXPECT_EQ(co_await ask(resolver, "b"), "10.0.0.3");
  });
}

TEST(Resolver, TheLastGoodAnswerServesOnWhenNameServersFail) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  Resolver resolver(metrics, names.options());
  run_in_test_time([&]() -> Task<> {
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    names.set("a", "");
    co_await sleep_for(minutes(4));
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    EXPECT_EQ(names.asked("a"), 2);
    co_await sleep_for(minutes(2));
    EXPECT_EQ(co_await ask(resolver, "a"), "unavailable");
  });
}

// A connection was refused, and the name servers fail, too.
TEST(Resolver, TheLastGoodAnswerOutlivesALookAgain) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  Resolver resolver(metrics, names.options());
  run_in_test_time([&]() -> Task<> {
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    names.set("a", "");
    for (int asked = 2; asked < 6; ++asked) {
      resolver.look_again("a");
      EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
      EXPECT_EQ(names.asked("a"), asked);
      co_await sleep_for(minutes(1));
    }
    names.set("a", "10.0.0.2");
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.2");
  });
}

// One that hangs and one that is refused by the bound are no reason to lose it, either.
TEST(Resolver, TheLastGoodAnswerOutlivesALookAgainWhileNameServersAreSilent) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  Resolver resolver(metrics, names.options(1, 1));
  run_in_test_time([&]() -> Task<> {
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    names.fall_silent();
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("runs", [&]() -> Task<> { co_await ask(resolver, "b"); });
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.waiting() == 1; }, "a query that waits"));
    tasks.spawn("is queued", [&]() -> Task<> { co_await ask(resolver, "c"); });
    co_await asio::post(co_await asio::this_coro::executor, use_task);
    EXPECT_EQ(co_await ask(resolver, "d"), "too_many_requests");
    resolver.look_again("a");
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    names.fall_silent(false);
    co_await tasks.join();
  });
}

TEST(Resolver, AHostThatIsGoneIsGone) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  NameServer empty;
  bool gone = false;
  auto options = names.options();
  options.look_up = [&](const std::string& host) { return (gone ? empty : names).look_up(host); };
  Resolver resolver(metrics, options);
  run_in_test_time([&]() -> Task<> {
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    gone = true;
    co_await sleep_for(minutes(1));
    EXPECT_EQ(co_await ask(resolver, "a"), "not_found");
  });
}

TEST(Resolver, TheLastGoodAnswerServesOnWhenTooManyLookupsAreUnderWay) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  Resolver resolver(metrics, names.options(1, 0));
  run_in_test_time([&]() -> Task<> {
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    co_await sleep_for(minutes(1));
    names.fall_silent();
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("occupies", [&]() -> Task<> { co_await ask(resolver, "other"); });
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.waiting() == 1; }, "a query that waits"));
    EXPECT_EQ(co_await ask(resolver, "b"), "too_many_requests");
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    names.fall_silent(false);
    co_await tasks.join();
  });
}

TEST(Resolver, RefusesLookupsBeyondItsBound) {
  NameServer names;
  Metrics metrics;
  Resolver resolver(metrics, names.options(1, 2));
  const Silence silence(names);
  run_coro([&]() -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    for (const std::string host : {"a", "b", "c"}) {
      tasks.spawn("asks", [&resolver, host]() -> Task<> { co_await ask(resolver, host); });
    }
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.waiting() == 1; }, "a query that waits"));
    const auto refused = co_await resolver.resolve("d", 80, kNever);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::too_many_requests);
    EXPECT_THAT(refused.error().message, HasSubstr("lookup of d"));
    // A waiter that leaves makes room, since nobody waits for the answer.
    tasks.cancel();
    co_await tasks.join();
    EXPECT_EQ(co_await ask(resolver, "e", deadline_after(milliseconds(5))), "timeout");
    EXPECT_EQ(names.asked("b") + names.asked("c") + names.asked("e"), 0);
  });
}

// Two threads, of which one client has one at most, and three more lookups may wait for it.
struct Greedy {
  explicit Greedy(NameServer& names) : resolver(metrics, options(names)) {}
  static Resolver::Options options(NameServer& names) {
    auto options = names.options(2);
    options.max_queued_per_client = 3;
    return options;
  }
  static LookupClient client() { return std::make_shared<int>(0); }
  void ask_for(TaskGroup& tasks, std::string host, LookupClient client) {
    tasks.spawn("asks", [this, host = std::move(host), client]() -> Task<> {
      std::ignore = co_await resolver.resolve(host, 80, kNever, client);
    });
  }
  Metrics metrics;
  Resolver resolver;
};

TEST(Resolver, OneClientDoesNotTakeThePlacesOfTheOthers) {
  NameServer names;
  Greedy bed(names);
  const Silence silence(names);
  run_coro([&]() -> Task<> {
    const auto greedy = Greedy::client();
    const auto other = Greedy::client();
    TaskGroup tasks(co_await asio::this_coro::executor);
    for (const auto* host : {"a", "b", "c", "d"}) bed.ask_for(tasks, host, greedy);
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.waiting() == 1; }, "a query that waits"));
    const auto refused = co_await bed.resolver.resolve("e", 80, kNever, greedy);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::too_many_requests);
    // Another thread is left, although three names wait.
    bed.ask_for(tasks, "f", other);
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.asked("f") == 1; }, "a query for f"));
    EXPECT_EQ(names.asked("b") + names.asked("c") + names.asked("d"), 0);
    names.fall_silent(false);
    co_await tasks.join();
    for (const auto* host : {"a", "b", "c", "d", "f"}) EXPECT_EQ(names.asked(host), 1) << host;
  });
}

// Of a name that another client has asked for, and whose turn in that one's queue has not come.
TEST(Resolver, ALookupHasItsTurnWithEachClientThatWaitsForIt) {
  NameServer names;
  names.set("b", "10.0.0.2");
  Greedy bed(names);
  const Silence silence(names);
  run_coro([&]() -> Task<> {
    const auto greedy = Greedy::client();
    const auto other = Greedy::client();
    TaskGroup tasks(co_await asio::this_coro::executor);
    for (const auto* host : {"a", "b"}) bed.ask_for(tasks, host, greedy);
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.waiting() == 1; }, "a query that waits"));
    EXPECT_EQ(names.asked("b"), 0);
    bed.ask_for(tasks, "b", other);
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.asked("b") == 1; }, "a query for b"));
    names.fall_silent(false);
    co_await tasks.join();
    EXPECT_EQ(names.asked("b"), 1) << "also not in the turn of the first client";
  });
}

TEST(Resolver, LookupsThatAClientGivesUpTakeNoPlace) {
  NameServer names;
  Greedy bed(names);
  const Silence silence(names);
  run_coro([&]() -> Task<> {
    const auto client = Greedy::client();
    TaskGroup tasks(co_await asio::this_coro::executor);
    for (const auto* host : {"a", "b", "c", "d"}) bed.ask_for(tasks, host, client);
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.waiting() == 1; }, "a query that waits"));
    EXPECT_FALSE(co_await bed.resolver.resolve("e", 80, kNever, client));
    tasks.cancel();
    co_await tasks.join();
    const auto waits =
        co_await bed.resolver.resolve("e", 80, deadline_after(milliseconds(5)), client);
    CO_ASSERT_TRUE(!waits);
    EXPECT_EQ(waits.error().code, ErrorCode::timeout);
    EXPECT_EQ(names.asked("b") + names.asked("c") + names.asked("d") + names.asked("e"), 0);
  });
}

TEST(Resolver, ALookupThatNobodyBeganIsBegunAgainForTheNext) {
  NameServer names;
  names.set("a", "10.0.0.1");
  Metrics metrics;
  Resolver resolver(metrics, names.options());
  run_coro([&]() -> Task<> {
    names.fall_silent();
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("occupies", [&]() -> Task<> { co_await ask(resolver, "other"); });
    CO_ASSERT_TRUE(co_await test::eventually_while_clock_is_held(
        [&] { return names.waiting() == 1; }, "a query that waits"));
    EXPECT_EQ(co_await ask(resolver, "a", deadline_after(milliseconds(5))), "timeout");
    names.fall_silent(false);
    EXPECT_EQ(co_await ask(resolver, "a"), "10.0.0.1");
    co_await tasks.join();
  });
}

TEST(Resolver, RemembersABoundedNumberOfNamesAndForgetsTheOldest) {
  NameServer names;
  Metrics metrics;
  auto options = names.options();
  options.max_names = 10;
  Resolver resolver(metrics, options);
  run_in_test_time([&]() -> Task<> {
    names.set("good", "10.0.0.1");
    EXPECT_EQ(co_await ask(resolver, "good"), "10.0.0.1");
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(co_await ask(resolver, "bad-" + std::to_string(i)), "not_found");
      co_await sleep_for(milliseconds(1));
    }
    // Failures are cached for a shorter time than answers, so they are evicted first.
    EXPECT_EQ(co_await ask(resolver, "good"), "10.0.0.1");
    EXPECT_EQ(names.asked("good"), 1);
    EXPECT_EQ(co_await ask(resolver, "bad-49"), "not_found");
    EXPECT_EQ(names.asked("bad-49"), 1);
    EXPECT_EQ(co_await ask(resolver, "bad-0"), "not_found");
    EXPECT_EQ(names.asked("bad-0"), 2);
  });
}

}  // namespace
}  // namespace gitops::net
