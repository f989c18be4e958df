#include "event-reporter/ledger/ledger.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sqlite/sqlite_probe.hpp"
#include "support/log_capture.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/tiny_disk.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::soon;
using test::TempDir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

LedgerEntry entry_of(int generation, int resources = 5, std::string_view mark = "web") {
  LedgerEntry entry{.uid = "uid",
                    .change = Digest{static_cast<std::uint8_t>(generation)},
                    .application = LedgerEntry::Part{.digest = Digest{1}}};
  for (int i = 0; i < resources; ++i) {
    entry.acknowledge({"apps", std::to_string(generation), "Deployment", "shop",
                       std::string(mark) + "-" + std::to_string(i)},
                      Digest{2});
  }
  return entry;
}

// A ledger with its task, on the loop of the coroutine that made it.
struct Running {
  Running(const Executor& executor, Ledger::Options options, Ledger::GroupOf group_of = {})
      : path(options.path),
        ledger(executor, std::move(options), metrics, std::move(group_of)),
        group(executor) {}
  Task<> start() {
    const auto opened = co_await ledger.open();
    EXPECT_TRUE(opened) << opened.error().message;
    ledger.start(group);
  }
  Task<> stop() {
    group.cancel();
    co_await group.join();
  }
  // The value of one line of /metrics.
  [[nodiscard]] double metric(const std::string& name) {
    const auto text = metrics.expose();
    const auto at = text.find("\n" + name + " ");
    return at == std::string::npos ? 0 : std::atof(text.c_str() + at + name.size() + 2);
  }
  std::string path;
  Metrics metrics;
  Ledger ledger;
  TaskGroup group;
};

// Runs `body` with an open ledger, without its log lines.
void with_ledger(const Ledger::Options& options, const Ledger::GroupOf& group_of,
                 const std::function<Task<>(Running&)>& body) {
  const test::LogCapture quiet;
  test::run_in_test_time([&]() -> Task<> {
    Running running(co_await asio::this_coro::executor, options, group_of);
    co_await running.start();
    std::exception_ptr failure;
    try {
      co_await body(running);
    } catch (...) {
      failure = std::current_exception();
    }
    co_await running.stop();
    if (failure) std::rethrow_exception(failure);
  });
}

void with_ledger(const Ledger::Options& options, const std::function<Task<>(Running&)>& body) {
  with_ledger(options, {}, body);
}

TEST(Ledger, WhatIsStoredCountsAtOnceAndAfterARestart) {
  const TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db", .commit_interval = 1h};
  with_ledger(options, [](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    EXPECT_EQ(*co_await ledger.load("ns/a"), LedgerEntry{});
    ledger.store("ns/a", entry_of(1));
    ledger.store("ns/b", entry_of(2));
    ledger.store("ns/c", entry_of(3));
    ledger.erase("ns/b");
    ledger.set_note("epoch", "4");
    EXPECT_EQ(ledger.pending(), 3U);
    EXPECT_EQ(*co_await ledger.load("ns/a"), entry_of(1));
    EXPECT_EQ(*co_await ledger.load("ns/b"), LedgerEntry{});
    EXPECT_THAT(ledger.known(), SizeIs(2));
    const auto flushed = co_await ledger.flush(soon());
    EXPECT_TRUE(flushed) << flushed.error().message;
    EXPECT_EQ(ledger.pending(), 0U);
    EXPECT_EQ(*co_await ledger.load("ns/a"), entry_of(1));
    EXPECT_EQ(*co_await ledger.load("ns/b"), LedgerEntry{});
    EXPECT_EQ(running.metric("gitops_event_reporter_ledger_rows"), 2);
    EXPECT_GT(running.metric("gitops_event_reporter_ledger_file_bytes"), 0);
    ledger.store("ns/lost", entry_of(9));  // not flushed
  });
  with_ledger(options, [](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    EXPECT_THAT(
        ledger.known(),
        UnorderedElementsAre(std::pair("ns/a", LedgerHead{.uid = "uid", .change = Digest{1}}),
                             std::pair("ns/c", LedgerHead{.uid = "uid", .change = Digest{3}})));
    EXPECT_EQ(*co_await ledger.load("ns/c"), entry_of(3));
    EXPECT_EQ(ledger.note("epoch"), "4");
    EXPECT_EQ(ledger.note("other"), std::nullopt);
  });
}

TEST(Ledger, WithoutAFileItForgetsAtTheEnd) {
  for (const bool first : {true, false}) {
    with_ledger({}, [first](Running& running) -> Task<> {
      EXPECT_THAT(running.ledger.known(), IsEmpty()) << first;
      running.ledger.store("ns/a", entry_of(1));
      EXPECT_TRUE(co_await running.ledger.flush(soon()));
      EXPECT_EQ(*co_await running.ledger.load("ns/a"), entry_of(1));
    });
  }
}

TEST(Ledger, ManyChangesShareACommit) {
  const TempDir folder;
  with_ledger({.path = folder / "ledger.db", .commit_interval = 50ms},
              [](Running& running) -> Task<> {
                for (int i = 0; i < 100; ++i) {
                  running.ledger.store("ns/app" + std::to_string(i), entry_of(i));
                }
                CO_ASSERT_TRUE(co_await test::eventually(
                    [&] { return running.ledger.pending() == 0; }, "no pending rows"));
                EXPECT_EQ(running.metric("gitops_event_reporter_ledger_commit_seconds_count"), 1);
              });
}

TEST(Ledger, ManyChangesDoNotWaitForTheInterval) {
  const TempDir folder;
  with_ledger({.path = folder / "ledger.db", .commit_interval = 1h, .commit_early = 10},
              [](Running& running) -> Task<> {
                co_await sleep_for(1ms);  // it waits for the first
                for (int i = 0; i < 10; ++i) {
                  running.ledger.store("ns/app" + std::to_string(i), entry_of(i));
                  co_await asio::post(co_await asio::this_coro::executor, use_task);
                }
                EXPECT_TRUE(co_await test::eventually([&] { return running.ledger.pending() == 0; },
                                                      "no pending rows"));
              });
}

TEST(Ledger, AFlushWithNothingToWriteReturnsAtOnce) {
  with_ledger({}, [](Running& running) -> Task<> {
    EXPECT_TRUE(co_await running.ledger.flush(Clock::now() - 1s));
  });
}

TEST(Ledger, AnEntryThatIsTooLargeIsNotKept) {
  with_ledger({}, [](Running& running) -> Task<> {
    LedgerEntry huge{.uid = std::string(kMaxEntryBytes, 'u')};
    running.ledger.store("ns/a", entry_of(1));
    running.ledger.store("ns/a", huge);
    EXPECT_THAT(running.ledger.known(), IsEmpty());
    EXPECT_EQ(*co_await running.ledger.load("ns/a"), LedgerEntry{});
    EXPECT_TRUE(co_await running.ledger.flush(soon()));
  });
}

TEST(Ledger, EndsWithACommitUnderWay) {
  const TempDir folder;
  with_ledger({.path = folder / "ledger.db", .commit_interval = 0ms},
              [](Running& running) -> Task<> {
                for (int i = 0; i < 500; ++i) {
                  running.ledger.store("ns/app" + std::to_string(i), entry_of(i, 30));
                }
                EXPECT_TRUE(co_await test::eventually(
                    [&] { return running.metric("gitops_event_reporter_ledger_pending_rows") > 0; },
                    "pending rows"));
              });
}

TEST(Ledger, AStartIsRefusedWhenTheFileIsInUse) {
  const TempDir folder;
  with_ledger({.path = folder / "ledger.db"}, [&](Running&) -> Task<> {
    Running second(co_await asio::this_coro::executor, {.path = folder / "ledger.db"});
    const auto opened = co_await second.ledger.open();
    EXPECT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::conflict);
  });
}

// -- damage --

TEST(Ledger, AC31_ADamagedFileIsReportedLoudly) {
  const TempDir folder;
  test::write_file(folder / "ledger.db", std::string(5000, 'x'));
  const test::LogCapture log;
  test::run_in_test_time([&]() -> Task<> {
    Running running(co_await asio::this_coro::executor, {.path = folder / "ledger.db"});
    co_await running.start();
    EXPECT_EQ(running.metric("gitops_event_reporter_ledger_rebuilt_total"), 1);
    EXPECT_THAT(log.text(), HasSubstr(R"("level":"error","logger":"ledger")"));
    EXPECT_THAT(log.text(), HasSubstr("set aside and recreated"));
    co_await running.stop();
  });
}

constexpr int kMany = 1000;   // more than the page cache holds
constexpr int kVictim = 100;  // among the first keys: what was read first leaves the cache first

LedgerEntry bulky_entry(std::string_view mark) {
  auto entry = entry_of(1, 40, mark);
  for (auto& [identity, resource] : entry.resources) resource.version = std::string(150, 'v');
  return entry;
}

Task<> store_many(Running& running) {
  for (int i = 0; i < kMany; ++i) {
    running.ledger.store("ns/app" + std::to_string(i),
                         bulky_entry(i == kVictim ? "victim" : "common"));
  }
  EXPECT_TRUE(co_await running.ledger.flush(soon()));
}

TEST(Ledger, AC31_ARowThatIsDamagedWhileRunningIsLostAlone) {
  const TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db"};
  with_ledger(options, [](Running& running) -> Task<> { co_await store_many(running); });
  with_ledger(options, [&](Running& running) -> Task<> {
    const auto bytes = test::read_file(options.path);
    std::fstream file(options.path, std::ios::in | std::ios::out | std::ios::binary);
    for (auto at = bytes.find("victim"); at != std::string::npos;
         at = bytes.find("victim", at + 1)) {
      file.seekp(static_cast<std::streamoff>(at));
      file << "VICTIM";
    }
    file.flush();
    const auto victim = "ns/app" + std::to_string(kVictim);
    EXPECT_EQ(*co_await running.ledger.load(victim), LedgerEntry{});
    EXPECT_EQ(running.metric("gitops_event_reporter_ledger_damaged_rows_total"), 1);
    EXPECT_FALSE(running.ledger.known().contains(victim));
    EXPECT_EQ(*co_await running.ledger.load("ns/app3"), bulky_entry("common"));
    EXPECT_TRUE(co_await running.ledger.flush(soon()));
  });
  with_ledger(options, [](Running& running) -> Task<> {
    EXPECT_THAT(running.ledger.known(), SizeIs(kMany - 1));
    EXPECT_EQ(running.metric("gitops_event_reporter_ledger_damaged_rows_total"), 0);
    co_return;
  });
}

TEST(Ledger, AC31_AFileThatIsDamagedWhileRunningIsRecreated) {
  const TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db"};
  const auto group_of = [](std::string_view key) { return std::string(key); };
  with_ledger(options, group_of, [](Running& running) -> Task<> {
    co_await store_many(running);
    auto lost = entry_of(7);
    lost.announce(Digest{7}, 70'000);
    running.ledger.store("ns/app7", lost);
    running.ledger.set_note("epoch", "5");
    EXPECT_TRUE(co_await running.ledger.flush(soon()));
  });
  with_ledger(options, group_of, [&](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    int rebuilt = 0;
    ledger.on_rebuilt([&] {
      ++rebuilt;
      EXPECT_FALSE(ledger.known().contains("ns/app7"));
      EXPECT_EQ(ledger.floor(), 1'000'001U) << "above the sequences that were lost";
      EXPECT_EQ(ledger.floor("ns/app7"), 70'001U);
    });
    auto last = entry_of(2);
    last.announce(Digest{9}, 1'000'000);
    ledger.store("ns/last", last);
    CO_ASSERT_OK(co_await ledger.flush(soon()));
    EXPECT_EQ(ledger.floor(), 0U);
    const auto size = fs::file_size(options.path);
    std::fstream(options.path, std::ios::in | std::ios::out | std::ios::binary)
        << std::string(size, '#');
    bool failed = false;
    for (int i = 0; i < kMany && !failed; ++i) {
      failed = !co_await ledger.load("ns/app" + std::to_string(i));
    }
    EXPECT_TRUE(failed);
    // That alone sets it right; nothing has to be stored for it.
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return running.metric("gitops_event_reporter_ledger_rebuilt_total") == 1; },
        "a rebuilt ledger"));
    ledger.store("ns/new", entry_of(3));
    EXPECT_TRUE(co_await ledger.flush(soon()));
    EXPECT_EQ(rebuilt, 1);
    EXPECT_EQ(ledger.last_error(), "");
    EXPECT_THAT(ledger.known(), UnorderedElementsAre(testing::Key("ns/new")));
    EXPECT_EQ(*co_await ledger.load("ns/app7"), LedgerEntry{});
  });
  with_ledger(options, group_of, [](Running& running) -> Task<> {
    EXPECT_THAT(running.ledger.known(), UnorderedElementsAre(testing::Key("ns/new")));
    EXPECT_EQ(running.ledger.note("epoch"), "5");
    EXPECT_EQ(running.ledger.floor(), 1'000'001U);
    EXPECT_EQ(running.ledger.floor("ns/app7"), 70'001U);
    co_return;
  });
}

TEST(Ledger, WhatWasCommittedLastIsLoadedFromMemory) {
  const TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db"};
  with_ledger(options, [&](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    co_await store_many(running);
    ledger.store("ns/app3", entry_of(3));
    ledger.erase("ns/app4");
    CO_ASSERT_OK(co_await ledger.flush(soon()));
    ledger.store("ns/app5", entry_of(5));
    const auto size = fs::file_size(options.path);
    std::fstream(options.path, std::ios::in | std::ios::out | std::ios::binary)
        << std::string(size, '#');
    for (int i = 0; i < kMany; ++i) {
      const auto expected = i == 4             ? LedgerEntry{}
                            : i == 3 || i == 5 ? entry_of(i)
                            : i == kVictim     ? bulky_entry("victim")
                                               : bulky_entry("common");
      EXPECT_EQ(co_await ledger.load("ns/app" + std::to_string(i)), expected) << i;
    }
  });
}

// -- a disk that takes nothing --

struct DiskCase {
  int error;
  const char* reason;
};

class LedgerOnABrokenDisk : public testing::TestWithParam<DiskCase> {};

TEST_P(LedgerOnABrokenDisk, AC31_KeepsTheNewestAndWritesItLater) {
  const TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db", .commit_interval = 1ms};
  with_ledger(options, [](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    ledger.store("ns/a", entry_of(1));
    ledger.store("ns/gone", entry_of(1));
    CO_ASSERT_TRUE(co_await ledger.flush(soon()));
    {
      const test::BrokenDisk broken(GetParam().error);
      ledger.store("ns/a", entry_of(2));
      CO_ASSERT_TRUE(co_await test::eventually([&] { return !ledger.last_error().empty(); },
                                               "an error of the ledger"));
      ledger.store("ns/a", entry_of(3));
      ledger.store("ns/b", entry_of(1));
      ledger.erase("ns/gone");
      ledger.set_note("epoch", "1");
      const auto flushed = co_await ledger.flush(deadline_after(300ms));
      CO_ASSERT_TRUE(!flushed);
      EXPECT_EQ(flushed.error().code, ErrorCode::timeout);
      EXPECT_EQ(flushed.error().message, ledger.last_error());
      EXPECT_EQ(ledger.pending(), 3U);
      EXPECT_EQ(*co_await ledger.load("ns/a"), entry_of(3));
      EXPECT_EQ(*co_await ledger.load("ns/gone"), LedgerEntry{});
      EXPECT_GT(running.metric("gitops_event_reporter_ledger_failures_total{reason=\"" +
                               std::string(GetParam().reason) + "\"}"),
                0)
          << ledger.last_error();
    }
    const auto flushed = co_await ledger.flush(soon());
    CO_ASSERT_OK(flushed);
    EXPECT_EQ(ledger.last_error(), "");
  });
  with_ledger(options, [](Running& running) -> Task<> {
    EXPECT_THAT(running.ledger.known(), SizeIs(2));
    EXPECT_EQ(*co_await running.ledger.load("ns/a"), entry_of(3));
    EXPECT_EQ(*co_await running.ledger.load("ns/b"), entry_of(1));
    EXPECT_EQ(running.ledger.note("epoch"), "1");
  });
}

INSTANTIATE_TEST_SUITE_P(Disks, LedgerOnABrokenDisk,
                         testing::Values(DiskCase{ENOSPC, "full"}, DiskCase{EDQUOT, "full"},
                                         DiskCase{EROFS, "read_only"}, DiskCase{EIO, "io"}),
                         [](const auto& disk) { return strerrorname_np(disk.param.error); });

// -- events that are sent while the file cannot be written --

LedgerEntry announced(int content, Sequence sequence, bool acknowledged = false) {
  LedgerEntry entry{.uid = "uid"};
  const Digest digest{static_cast<std::uint8_t>(content)};
  entry.announce(digest, sequence);
  if (acknowledged) entry.acknowledge(digest);
  if (acknowledged) entry.change = digest;
  return entry;
}

// The process is killed before the disk is mended, and the machine's clock is set back: neither the
// sequence of the event nor the state from before may be taken for news.
TEST(Ledger, AfterAKillOnAFullDiskEverythingIsDueAboveAllSequences) {
  const TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db", .commit_interval = 1ms};
  std::optional<test::BrokenDisk> broken;
  with_ledger(options, [&](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    CO_ASSERT_OK(co_await ledger.write_ahead("ns/a", announced(1, 1'000, true)));
    CO_ASSERT_OK(co_await ledger.write_ahead("ns/b", announced(1, 1'000)));
    broken.emplace(ENOSPC);
    CO_ASSERT_OK(co_await ledger.write_ahead("ns/a", announced(2, 5'000)));
    EXPECT_NE(ledger.last_error(), "");
    // Far ahead of the mark that is there.
    CO_ASSERT_OK(co_await ledger.write_ahead("ns/a", announced(3, 9'000'000'000)));
    EXPECT_EQ(ledger.holds_events(), "");
  });
  broken.reset();
  with_ledger(options, [](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    EXPECT_GT(ledger.floor(), 9'000'000'000U);
    const auto floor = ledger.floor();
    for (const auto* key : {"ns/a", "ns/b"}) {
      EXPECT_FALSE(ledger.known().at(key).change) << key;
      auto entry = *co_await ledger.load(key);
      EXPECT_EQ(entry.uid, "uid");
      EXPECT_EQ(entry.announce(Digest{1}, floor), floor) << key << ": a new event";
    }
    CO_ASSERT_OK(co_await ledger.write_ahead("ns/a", announced(3, floor, true)));
    // Now the file lacks nothing.
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return test::read_file(running.path + ".lock").find_first_not_of(' ') ==
                 std::string::npos;
        },
        "a lock file without an owner"));
  });
  with_ledger(options, [](Running& running) -> Task<> {
    EXPECT_TRUE(running.ledger.known().at("ns/a").change) << "trusted again";
    co_return;
  });
}

TEST(Ledger, AfterTheDiskWasMendedTheFileIsTrusted) {
  const TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db", .commit_interval = 1ms};
  with_ledger(options, [&](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    {
      const test::BrokenDisk broken(ENOSPC);
      CO_ASSERT_OK(co_await ledger.write_ahead("ns/a", announced(1, 1'000, true)));
      EXPECT_THAT(test::read_file(running.path + ".lock"), HasSubstr("1001000"));
    }
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return test::read_file(running.path + ".lock").find_first_not_of(' ') ==
                 std::string::npos;
        },
        "a lock file without an owner"));
    EXPECT_EQ(ledger.pending(), 0U);
  });
  with_ledger(options, [](Running& running) -> Task<> {
    EXPECT_TRUE(running.ledger.known().at("ns/a").change);
    co_return;
  });
}

// Nothing can be written to any file.
TEST(Ledger, EventsWaitWhileTheFileCanNeitherBeWrittenNorMarked) {
  const TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db", .commit_interval = 1ms};
  auto* const before = std::signal(SIGXFSZ, SIG_IGN);
  const auto limit = [](rlim_t bytes) {
    rlimit now{};
    ::getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = std::min(bytes, now.rlim_max);
    ::setrlimit(RLIMIT_FSIZE, &now);
  };
  with_ledger(options, [&](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    limit(0);
    const auto written = co_await ledger.write_ahead("ns/a", announced(1, 1'000));
    const auto why = ledger.holds_events();
    limit(RLIM_INFINITY);
    CO_ASSERT_TRUE(!written);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    EXPECT_EQ(why, written.error().message);
    EXPECT_THAT(why, HasSubstr("ledger.db.lock"));
    CO_ASSERT_OK(co_await ledger.flush(soon()));
    EXPECT_EQ(ledger.holds_events(), "");
    CO_ASSERT_OK(co_await ledger.write_ahead("ns/a", announced(1, 1'000)));
  });
  std::signal(SIGXFSZ, before);
}

// An entry of an application beyond all sizes is not kept, but its sequences count.
TEST(Ledger, TheFloorIsAboveTheSequencesOfAnEntryThatIsTooLarge) {
  with_ledger({}, [](Running& running) -> Task<> {
    LedgerEntry huge{.uid = std::string(kMaxEntryBytes, 'u'), .sequence = 1'000};
    running.ledger.store("ns/a", huge);
    EXPECT_EQ(running.ledger.floor(), 1'001U);
    co_return;
  });
}

TEST(Ledger, AC31_AFullDiskDelaysButLosesNothing) {
  test::TinyDisk disk;
  const Ledger::Options options{.path = disk.path() / "ledger.db", .commit_interval = 1ms};
  with_ledger(options, [&](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    int stored = 0;
    while (ledger.last_error().empty() && stored < 2000) {
      ledger.store("ns/app" + std::to_string(stored), entry_of(stored % 100, 30));
      ++stored;
      co_await sleep_for(1ms);
    }
    EXPECT_GT(running.metric("gitops_event_reporter_ledger_failures_total{reason=\"full\"}"), 0)
        << ledger.last_error();
    disk.make_room();
    CO_ASSERT_OK(co_await ledger.flush(soon()));
    EXPECT_EQ(ledger.last_error(), "");
    for (int i = 0; i < stored; ++i) {
      EXPECT_EQ(*co_await ledger.load("ns/app" + std::to_string(i)), entry_of(i % 100, 30));
    }
  });
}

// -- kill -9 --

// Stores and flushes without end; tells after each flush how many rounds are in the file.
[[noreturn]] void write_until_killed(const std::string& path, int told) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const test::LogCapture quiet;
  Loop loop(1);
  Running running(loop.get_executor(), {.path = path, .commit_interval = 1ms, .commit_early = 3});
  asio::co_spawn(
      loop,
      [&]() -> Task<> {
        co_await running.start();
        auto& ledger = running.ledger;
        const auto begin = std::stoi(ledger.note("round").value_or("0"));
        for (int round = begin + 1;; ++round) {
          for (int app = 0; app < 8; ++app) {
            ledger.store("ns/app" + std::to_string(app), entry_of(round, 1 + (round + app) % 50));
          }
          ledger.erase("ns/round" + std::to_string(round - 1));
          ledger.store("ns/round" + std::to_string(round), entry_of(round));
          ledger.set_note("round", std::to_string(round));
          if (round % 3 == 0) continue;
          if (!co_await ledger.flush(soon())) ::_exit(3);
          if (::write(told, &round, sizeof round) != sizeof round) ::_exit(4);
        }
      },
      [](const std::exception_ptr&) { ::_exit(5); });
  loop.run();
  ::_exit(6);
}

TEST(Ledger, AC31_KillingItLosesNothingThatWasFlushed) {
  const TempDir folder;
  const std::string path = folder / "ledger.db";
  int last_told = 0;
  for (int life = 0; life < 15; ++life) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const auto child = ::fork();
    if (child == 0) write_until_killed(path, pipe[1]);
    ::close(pipe[1]);
    // Let it live until it told a few rounds, and then some microseconds more.
    for (int i = 0; i < 1 + life % 5; ++i) {
      ASSERT_EQ(::read(pipe[0], &last_told, sizeof last_told), ssize_t{sizeof last_told});
    }
    const auto until = Clock::now() + std::chrono::microseconds(life * 173);
    while (Clock::now() < until) {
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "ended by itself with " << status;
    while (::read(pipe[0], &last_told, sizeof last_told) == ssize_t{sizeof last_told}) {
    }
    ::close(pipe[0]);

    with_ledger({.path = path}, [&](Running& running) -> Task<> {
      auto& ledger = running.ledger;
      EXPECT_EQ(running.metric("gitops_event_reporter_ledger_rebuilt_total"), 0);
      EXPECT_EQ(running.metric("gitops_event_reporter_ledger_damaged_rows_total"), 0);
      const int round = std::stoi(ledger.note("round").value_or("0"));
      EXPECT_GE(round, last_told);
      // A commit holds all that was stored before it in one turn, so a round is there as a whole.
      EXPECT_THAT(ledger.known(), SizeIs(9));
      for (int app = 0; app < 8; ++app) {
        EXPECT_EQ(*co_await ledger.load("ns/app" + std::to_string(app)),
                  entry_of(round, 1 + (round + app) % 50));
      }
      EXPECT_EQ(*co_await ledger.load("ns/round" + std::to_string(round)), entry_of(round));
    });
  }
  EXPECT_GT(last_told, 15);
}

// An object may come back under its uid while the machine's clock is set back.
TEST(Ledger, TheFloorIsAboveTheSequencesOfErasedEntries) {
  const test::TempDir folder;
  test::run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    for (const Sequence expected : {Sequence{0}, Sequence{1001}}) {
      Metrics metrics;
      Ledger ledger(executor, {.path = folder / "ledger.db"}, metrics);
      CO_ASSERT_OK(co_await ledger.open());
      EXPECT_EQ(ledger.floor(), expected);
      TaskGroup tasks(executor);
      ledger.start(tasks);
      ledger.store("a/b", {.uid = "u", .sequence = 1000});
      ledger.store("a/c", {.uid = "v", .sequence = 500});
      EXPECT_EQ(ledger.floor(), expected);
      ledger.erase("a/b");
      ledger.erase("a/c");
      EXPECT_EQ(ledger.floor(), 1001U);
      CO_ASSERT_OK(co_await ledger.flush(deadline_after(std::chrono::seconds(5))));
      tasks.cancel();
      co_await tasks.join();
    }
  });
}

TEST(Ledger, EachGroupHasAFloorOfItsOwnWhichIsKept) {
  const test::TempDir folder;
  const Ledger::Options options{.path = folder / "ledger.db"};
  const auto group_of = [](std::string_view key) {
    return std::string(key.substr(0, key.find('/')));
  };
  with_ledger(options, group_of, [](Running& running) -> Task<> {
    auto& ledger = running.ledger;
    ledger.store("a/b", {.uid = "u", .sequence = 1000});
    ledger.store("b/c", {.uid = "v", .sequence = 500});
    ledger.store(inventory_row("a/c", "w"), {.uid = "w", .sequence = 2000});
    EXPECT_EQ(ledger.floor("a/b"), 0U);
    ledger.erase("a/b");
    EXPECT_EQ(ledger.floor("a/other"), 1001U);
    EXPECT_EQ(ledger.floor("b/c"), 0U);
    ledger.erase("b/c");
    EXPECT_EQ(ledger.floor("b/c"), 501U);
    ledger.erase(inventory_row("a/c", "w"));
    EXPECT_EQ(ledger.floor("a/b"), 2001U);
    EXPECT_EQ(ledger.floor(), 2001U);
    CO_ASSERT_OK(co_await ledger.flush(soon()));
  });
  with_ledger(options, group_of, [](Running& running) -> Task<> {
    EXPECT_EQ(running.ledger.floor("a/b"), 2001U);
    EXPECT_EQ(running.ledger.floor("b/c"), 501U);
    EXPECT_EQ(running.ledger.floor("c/d"), 0U);
    co_return;
  });
}

}  // namespace
}  // namespace gitops::reporter
