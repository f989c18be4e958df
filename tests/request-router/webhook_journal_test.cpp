#include "request-router/webhook_journal.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <prometheus/counter.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/log_capture.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace {

// System calls that fail while they are set.
std::atomic<bool> ftruncate_fails = false;
std::atomic<bool> fdatasync_fails = false;
std::atomic<bool> fdatasync_hangs = false;
std::atomic<int> hanging = 0;  // calls

int fail_with_io_error() {
  errno = EIO;
  return -1;
}

}  // namespace

// The journal's calls arrive here instead of in the C library.
extern "C" int ftruncate(int descriptor, off_t size) noexcept {
  if (ftruncate_fails) return fail_with_io_error();
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
}

extern "C" int fdatasync(int descriptor) {
  if (fdatasync_fails) return fail_with_io_error();
  ++hanging;
  fdatasync_hangs.wait(true);
  --hanging;
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

namespace gitops::router {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

KeptWebhook webhook(std::uint64_t id, std::string bytes = "POST / HTTP/1.1\r\n\r\n") {
  return {.id = id,
          .source = {"argo", "github"},
          .request_id = "r" + std::to_string(id),
          .bytes = std::move(bytes),
          .since = Clock::now()};
}

const std::string kMagic = "gitops-webhooks-1\n";
constexpr WallTime kSince{1'700'000'000'000ms};

std::vector<std::uint64_t> ids_of(const std::vector<RecoveredWebhook>& found) {
  std::vector<std::uint64_t> ids;
  for (const auto& item : found) ids.push_back(item.webhook.id);
  return ids;
}

TEST(WebhookRecords, LeaveWhatIsNotGone) {
  std::string journal = kMagic;
  const std::string bytes("a\0b\xff", 4);
  append_kept_record(journal, webhook(7, bytes), kSince);
  append_kept_record(journal, webhook(8), kSince);
  append_gone_record(journal, 8);
  append_gone_record(journal, 9);
  const auto found = replay(journal);
  ASSERT_THAT(ids_of(found), ElementsAre(7));
  EXPECT_EQ(found[0].webhook.source, (SourceName{"argo", "github"}));
  EXPECT_EQ(found[0].webhook.request_id, "r7");
  EXPECT_EQ(found[0].webhook.bytes, bytes);
  EXPECT_EQ(found[0].since, kSince);
}

TEST(WebhookRecords, ATornTailCostsOnlyItself) {
  std::string journal = kMagic;
  append_kept_record(journal, webhook(1), kSince);
  const auto whole = journal.size();
  append_kept_record(journal, webhook(2), kSince);
  for (std::size_t size = whole; size < journal.size(); ++size) {
    EXPECT_THAT(ids_of(replay(journal.substr(0, size))), ElementsAre(1)) << size;
  }
  for (std::size_t at = whole; at < journal.size(); ++at) {
    auto damaged = journal;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    EXPECT_THAT(ids_of(replay(damaged)), ElementsAre(1)) << at;
  }
  for (std::size_t size = 0; size < whole; ++size) {
    EXPECT_THAT(replay(journal.substr(0, size)), IsEmpty());
  }
}

// A journal, and what it has found of others.
struct Process {
  explicit Process(const std::filesystem::path& folder, std::size_t compact_above = 1 << 20)
      : journal(
            {.folder = folder, .compact_above = compact_above, .look_interval = 20ms},
            [this](std::vector<RecoveredWebhook> items) {
              std::vector<Kept> taken;
              for (auto& item : items) {
                item.webhook.id += 1'000;
                taken.push_back(std::make_shared<KeptWebhook>(std::move(item.webhook)));
              }
              found += taken.size();
              return std::optional(std::move(taken));
            },
            errors) {
    const auto opened = journal.open();
    EXPECT_TRUE(opened) << opened.error().message;
  }
  // Returns whether it is on the disk, once that is known.
  bool is_kept(const KeptWebhook& item) {
    std::latch done(1);
    bool is_on_disk = false;
    journal.keep(std::make_shared<KeptWebhook>(item), [&](const Result<void>& written) {
      is_on_disk = written.has_value();
      done.count_down();
    });
    done.wait();
    return is_on_disk;
  }
  void keep(const KeptWebhook& item) { EXPECT_TRUE(is_kept(item)); }

  Counter errors;
  std::atomic<std::size_t> found = 0;
  WebhookJournal journal;
};

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) all.push_back(entry.path());
  return all;
}

TEST(WebhookJournal, ANewProcessTakesOverWhatAnotherLeft) {
  const test::TempDir folder;
  const auto path = folder / "journal";
  {
    Process first(path);
    first.keep(webhook(1));
    first.keep(webhook(2));
    first.journal.gone(1);
    struct stat file = {};
    ASSERT_EQ(files_in(path).size(), 1U);
    ASSERT_EQ(::stat(files_in(path).at(0).c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777U, 0600U);
  }
  {
    const Process second(path);
    EXPECT_EQ(second.found, 1U);
    EXPECT_EQ(files_in(path).size(), 1U);
  }
  Process third(path);
  EXPECT_EQ(third.found, 1U) << "what was taken over is in the new journal";
  third.journal.gone(2'002);
}

TEST(WebhookJournal, OneThatRunsKeepsItsOwnAndFindsOthersLater) {
  const test::TempDir folder;
  auto first = std::make_unique<Process>(folder / "journal");
  first->keep(webhook(1));
  const Process second(folder / "journal");
  EXPECT_EQ(second.found, 0U);
  first.reset();
  test::require_until([&] { return second.found == 1; }, 10s, "the journal to be taken over");
}

TEST(WebhookJournal, IsRemovedWhenNothingIsLeftAndWrittenAgainWhenMostIsGone) {
  const test::TempDir folder;
  const auto path = folder / "journal";
  {
    Process process(path, 100'000);
    process.keep(webhook(1, "stays"));
    for (std::uint64_t id = 2; id < 50; ++id) {
      process.keep(webhook(id, std::string(10'000, 'x')));
      process.journal.gone(id);
    }
    process.keep(webhook(50));
    test::require_until(
        [&] {
          const auto files = files_in(path);
          std::error_code ec;
          return files.size() == 1 && std::filesystem::file_size(files[0], ec) < 150'000;
        },
        10s, "the journal to be rewritten");
    process.journal.gone(50);
  }
  {
    Process process(path);
    EXPECT_EQ(process.found, 1U);
    process.journal.gone(1'001);
  }
  EXPECT_THAT(files_in(path), IsEmpty());
}

// A full disk, during its life: no file grows beyond `size`.
class FullDisk {
 public:
  explicit FullDisk(rlim_t size = 1) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{.rlim_cur = size, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

TEST(WebhookJournal, WhatAFullDiskDidNotTakeIsWrittenLater) {
  ::signal(SIGXFSZ, SIG_IGN);
  const test::TempDir folder;
  {
    Process process(folder / "journal");
    process.keep(webhook(1));
    process.keep(webhook(2));
    {
      const FullDisk full;
      std::latch done(1);
      process.journal.gone(1);
      process.journal.keep(std::make_shared<KeptWebhook>(webhook(3)),
                           [&done](const Result<void>& written) {
                             EXPECT_FALSE(written);
                             done.count_down();
                           });
      process.journal.keep(std::make_shared<KeptWebhook>(webhook(4)),
                           [](const Result<void>&) {});  // gone() may come first
      process.journal.gone(4);
      done.wait();
      test::require_until([&] { return process.errors.Value() >= 4; }, 10s, "another attempt");
    }
    process.keep(webhook(5));
    test::require_until(
        [&] {
          const auto files = files_in(folder / "journal");
          return ids_of(replay(test::read_file(files.at(0)))) ==
                 std::vector<std::uint64_t>{2, 3, 5};
        },
        10s, "the records to be written");
  }
  const Process next(folder / "journal");
  EXPECT_EQ(next.found, 3U);
}

// What the disk did not take stays in the journal of the other process, but only until it is
// delivered or written.
TEST(WebhookJournal, WhatIsTakenOverOnAFullDiskIsTakenOverOnce) {
  ::signal(SIGXFSZ, SIG_IGN);
  const test::TempDir folder;
  const auto path = folder / "journal";
  {
    auto first = std::make_unique<Process>(path);
    first->keep(webhook(1));
    first->keep(webhook(2));
    Process second(path);
    {
      const FullDisk full;
      first.reset();
      test::require_until([&] { return second.errors.Value() >= 2; }, 10s, "another attempt");
      EXPECT_EQ(second.found, 2U);
      second.journal.gone(1'001);
    }
    test::require_until([&] { return files_in(path).size() == 1; }, 10s,
                        "the other journal to be removed");
  }
  const Process third(path);
  EXPECT_EQ(third.found, 1U) << "1001 was delivered";
}

// Otherwise the router would not start, and the webhooks that fill the disk would stay there.
TEST(WebhookJournal, OneThatBeginsOnAFullDiskDeliversWhatFillsIt) {
  ::signal(SIGXFSZ, SIG_IGN);
  const test::TempDir folder;
  const auto path = folder / "journal";
  {
    Process first(path);
    first.keep(webhook(1));
    first.keep(webhook(2));
  }
  {
    std::optional<FullDisk> full(std::in_place);
    Process second(path);
    EXPECT_EQ(second.found, 2U);
    EXPECT_FALSE(second.is_kept(webhook(3)));
    for (const std::uint64_t id : {1'001U, 1'002U, 3U}) second.journal.gone(id);
    test::require_until([&] { return files_in(path).empty(); }, 10s,
                        "the delivered journal to be removed");
    full.reset();
    std::uint64_t id = 10;
    test::require_until([&] { return second.is_kept(webhook(++id)); }, 10s, "a new journal");
  }
  const Process third(path);
  EXPECT_GE(third.found, 1U);
}

TEST(WebhookJournal, AFileOfDeliveredWebhooksGivesItsRoomToOthers) {
  ::signal(SIGXFSZ, SIG_IGN);
  const test::TempDir folder;
  const auto path = folder / "journal";
  const std::string bytes(15'000, 'x');
  {
    const FullDisk small(20'000);
    Process process(path);
    process.keep(webhook(1, bytes));
    EXPECT_FALSE(process.is_kept(webhook(2, bytes)));
    process.journal.gone(1);
  }
  const Process next(path);
  EXPECT_EQ(next.found, 1U);
}

TEST(WebhookJournal, TellsThatTheWebhooksOfAnotherProcessWaitForRoom) {
  const test::TempDir folder;
  const auto path = folder / "journal";
  {
    Process first(path);
    first.keep(webhook(1));
    first.keep(webhook(2));
  }
  Counter errors;
  const test::LogCapture log;
  WebhookJournal journal({.folder = path}, [](const auto&) { return std::nullopt; }, errors);
  ASSERT_TRUE(journal.open());
  EXPECT_THAT(log.text(), testing::HasSubstr("wait until there is room"));
  EXPECT_THAT(log.text(), testing::HasSubstr(R"("webhooks":2})"));
}

// A disk that does not answer, during its life.
struct HangingDisk {
  HangingDisk() { fdatasync_hangs = true; }
  ~HangingDisk() {
    fdatasync_hangs = false;
    fdatasync_hangs.notify_all();
  }
  HangingDisk(const HangingDisk&) = delete;
  HangingDisk& operator=(const HangingDisk&) = delete;
};

TEST(WebhookJournal, WhatIsDeliveredWhileTheDiskHangsLeavesTheMemory) {
  const test::TempDir folder;
  Process process(folder / "journal");
  process.keep(webhook(1));
  const HangingDisk disk;
  process.journal.keep(std::make_shared<KeptWebhook>(webhook(2)), [](const Result<void>&) {});
  test::require_until([] { return hanging == 1; }, 10s, "the disk to hang");
  auto delivered = std::make_shared<const KeptWebhook>(webhook(3));
  const std::weak_ptr<const KeptWebhook> in_memory = delivered;
  bool is_answered = false;
  process.journal.keep(std::move(delivered), [&is_answered](const Result<void>& written) {
    is_answered = written.has_value();
  });
  process.journal.gone(3);
  EXPECT_TRUE(in_memory.expired());
  EXPECT_TRUE(is_answered) << "its sender need not wait for the disk";
}

TEST(WebhookJournal, TellsAtItsEndWhatIsLostAndWhatStays) {
  ::signal(SIGXFSZ, SIG_IGN);
  const test::TempDir folder;
  const test::LogCapture log;
  {
    const FullDisk small(10'000);
    Process process(folder / "journal");
    process.keep(webhook(1));
    process.keep(webhook(2));
    EXPECT_FALSE(process.is_kept(webhook(3, std::string(20'000, 'x'))));
  }
  EXPECT_THAT(log.text(), testing::HasSubstr(R"(took no records","webhooks":1})"));
  EXPECT_THAT(log.text(), testing::HasSubstr(R"(stay in the journal","webhooks":2})"));
}

// The records behind a partial one would be lost with it.
TEST(WebhookJournal, NoRecordFollowsAPartialOneThatCannotBeRemoved) {
  ::signal(SIGXFSZ, SIG_IGN);
  const test::TempDir folder;
  const auto path = folder / "journal";
  {
    Process process(path);
    process.keep(webhook(1));
    const auto size = std::filesystem::file_size(files_in(path).at(0));
    {
      const FullDisk full(size + 20);
      ftruncate_fails = true;
      EXPECT_FALSE(process.is_kept(webhook(2, std::string(1'000, 'x'))));
      ftruncate_fails = false;
    }
    process.is_kept(webhook(3));
  }
  const Process next(path);
  EXPECT_EQ(next.found, 3U);
}

// A second fdatasync of the same file would succeed without the pages that the first has lost.
TEST(WebhookJournal, AFileThatCouldNotBeSyncedIsReplaced) {
  const test::TempDir folder;
  const auto path = folder / "journal";
  {
    Process process(path);
    process.keep(webhook(1));
    const auto first = files_in(path).at(0);
    fdatasync_fails = true;
    EXPECT_FALSE(process.is_kept(webhook(2)));
    fdatasync_fails = false;
    test::require_until([&] { return !std::filesystem::exists(first); }, 10s,
                        "the file to be replaced");
    process.keep(webhook(3));
  }
  const Process next(path);
  EXPECT_EQ(next.found, 3U);
}

TEST(WebhookJournal, AFolderThatCannotBeMadeIsAnError) {
  const test::TempDir folder;
  test::write_file(folder / "file", "");
  Counter errors;
  WebhookJournal journal({.folder = folder / "file" / "journal"}, {}, errors);
  EXPECT_FALSE(journal.open());
}

}  // namespace
}  // namespace gitops::router
