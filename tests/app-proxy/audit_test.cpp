#include "app-proxy/users/audit.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "support/log_capture.hpp"
#include "support/process.hpp"

namespace gitops::app_proxy {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

TEST(Audit, ALineTellsWhoDidWhatToWhat) {
  Caller caller{.request_id = "r-1", .peer = "203.0.113.9"};
  const WallTime when{};
  const auto nobody =
      audit_line({.caller = caller, .action = "commitFiles", .result = "unauthenticated"}, when);
  EXPECT_FALSE(json::parse(nobody).contains("user"));
  caller.user = std::make_shared<User>(User{.id = "u1", .name = "Ann \"x\"\n", .account_id = "a1"});
  const auto line = audit_line({.caller = caller,
                                .action = "commitFiles",
                                .subject = {{"repo", "o/r"}, {"branchName", std::string(300, 'b')}},
                                .result = "ok",
                                .took = std::chrono::milliseconds(12)},
                               when);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto read = json::parse(line);
  EXPECT_EQ(read["stream"], "audit");
  EXPECT_EQ(read["time"], "1970-01-01T00:00:00Z");
  EXPECT_EQ(read["user"], "u1");
  EXPECT_EQ(read["userName"], "Ann \"x\"\n");
  EXPECT_EQ(read["requestId"], "r-1");
  EXPECT_EQ(read["peer"], "203.0.113.9");
  EXPECT_EQ(read["subject"]["repo"], "o/r");
  EXPECT_EQ(read["subject"]["branchName"], std::string(200, 'b') + "…");
  EXPECT_EQ(read["milliseconds"], 12);
}

TEST(Audit, FollowsItsFileWhenThatIsRenamed) {
  test::TempDir folder;
  const auto path = folder / "audit.log";
  Audit audit(path);
  ASSERT_TRUE(audit.open());
  const Caller caller;
  audit.write({.caller = caller, .action = "one", .result = "ok"});
  fs::rename(path, folder / "audit.log.1");
  audit.write({.caller = caller, .action = "two", .result = "ok"});
  EXPECT_THAT(test::read_file(folder / "audit.log.1"), testing::HasSubstr("\"one\""));
  EXPECT_THAT(test::read_file(path), testing::HasSubstr("\"two\""));
}

// A limit on the file size plays a full disk.
TEST(Audit, ALineThatWasCutOffDoesNotSpoilTheNextOne) {
  test::TempDir folder;
  const auto path = folder / "audit.log";
  Audit audit(path);
  ASSERT_TRUE(audit.open());
  audit.write({.caller = {}, .action = "one", .result = "ok"});
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit full{.rlim_cur = fs::file_size(path) + 20, .rlim_max = limit.rlim_max};
  const test::LogCapture captured(LogLevel::error);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  audit.write({.caller = {}, .action = "two", .result = "ok"});
  audit.write({.caller = {}, .action = "three", .result = "ok"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(captured.lines().size(), 2U);
  audit.write({.caller = {}, .action = "four", .result = "ok"});
  EXPECT_EQ(captured.lines().size(), 2U);
  const auto text = test::read_file(path);
  ASSERT_TRUE(text.ends_with('\n'));
  const auto last = text.rfind('\n', text.size() - 2);
  ASSERT_NE(last, std::string::npos);
  EXPECT_EQ(json::parse(text.substr(last + 1))["action"], "four");
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
}

// As for want of descriptors, or while a volume is mounted again.
TEST(Audit, OpensItsFileLaterWhenItCannotNow) {
  test::TempDir folder;
  const auto path = folder / "logs" / "audit.log";
  fs::create_directory(folder / "logs");
  Audit audit(path);
  ASSERT_TRUE(audit.open());
  fs::rename(folder / "logs", folder / "old");
  const test::LogCapture captured(LogLevel::error);
  audit.write({.caller = {}, .action = "one", .result = "ok"});
  EXPECT_EQ(captured.lines().size(), 1U);
  fs::create_directory(folder / "logs");
  audit.write({.caller = {}, .action = "two", .result = "ok"});
  EXPECT_EQ(captured.lines().size(), 1U);
  EXPECT_THAT(test::read_file(path), testing::HasSubstr("\"two\""));
}

TEST(Audit, WithoutAFileItsLinesAreAmongTheLogLines) {
  const test::LogCapture captured(LogLevel::error);
  Audit audit("");
  ASSERT_TRUE(audit.open());
  audit.write({.caller = {}, .action = "one", .result = "ok"});
  ASSERT_EQ(captured.lines().size(), 1U);
  const auto read = json::parse(captured.lines().front());
  EXPECT_EQ(read["stream"], "audit");
  EXPECT_EQ(read["action"], "one");
}

TEST(Audit, SaysWhenItsFileCannotBeOpened) {
  Audit audit("/no/such/folder/audit.log");
  const auto opened = audit.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, testing::HasSubstr("/no/such/folder/audit.log"));
}

}  // namespace
}  // namespace gitops::app_proxy
