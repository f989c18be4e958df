#include "control-plane/audit/audit_entry.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

using ::testing::HasSubstr;

AuditEntry sample() {
  return {.account = 1,
          .no = 7,
          .at = 1'772'625'600'000'000,
          .caller = "ann",
          .caller_id = "u1",
          .peer = "192.0.2.1",
          .action = "deleteRuntime",
          .target = "name=prod",
          .result = AuditResult::done,
          .detail = "d",
          .request_id = "r"};
}

TEST(AuditEntry, EveryValueCountsForItsDigest) {
  std::set<std::string> digests{audit_digest("", sample()), audit_digest("before", sample())};
  const std::vector<void (*)(AuditEntry&)> changes{
      [](AuditEntry& e) { ++e.account; }, [](AuditEntry& e) { ++e.no; },
      [](AuditEntry& e) { ++e.at; }, [](AuditEntry& e) { e.caller = "bob"; },
      [](AuditEntry& e) { e.caller_id = "u2"; }, [](AuditEntry& e) { e.peer = "192.0.2.2"; },
      [](AuditEntry& e) { e.action = "createRuntime"; },
      [](AuditEntry& e) { e.target = "name=stage"; },
      [](AuditEntry& e) { e.result = AuditResult::refused; }, [](AuditEntry& e) { e.detail = ""; },
      [](AuditEntry& e) { e.request_id = ""; },
      // The same letters in other places.
      [](AuditEntry& e) { e.caller = "an", e.caller_id = "nu1"; }};
  for (const auto change : changes) {
    auto entry = sample();
    change(entry);
    EXPECT_TRUE(digests.insert(audit_digest("", entry)).second);
  }
  EXPECT_EQ(audit_digest("", sample()).size(), 32U);
}

TEST(AuditEntry, LongTextsAndControlCharactersAreRemoved) {
  auto entry = sample();
  entry.target = std::string(500, 'x');
  entry.caller = "a\nb\x7f";
  entry.detail = std::string(1'000, 'y');
  const auto clean = cleaned(entry);
  EXPECT_EQ(clean.target, std::string(200, 'x') + "…");
  EXPECT_EQ(clean.caller, "a b ");
  EXPECT_EQ(clean.detail, std::string(500, 'y') + "…");
  EXPECT_EQ(clean.action, entry.action);
}

TEST(AuditEntry, CredentialsInUrlsAreMasked) {
  auto entry = sample();
  entry.target = "repo=https://ann:canary@git.example/a.git other=https://git.example/b@c";
  EXPECT_EQ(cleaned(entry).target,
            "repo=https://***@git.example/a.git other=https://git.example/b@c");
}

TEST(AuditEntry, ACsvIsReadByASpreadsheetAsText) {
  auto entry = sample();
  entry.caller = "=HYPERLINK(\"http://x\")";
  entry.target = "name=a,b";
  const auto csv = audit_csv({entry});
  EXPECT_THAT(csv, testing::StartsWith("\"no\",\"time\","));
  EXPECT_THAT(csv, HasSubstr("\r\n\"7\",\"2026-03-04T"));
  EXPECT_THAT(csv, HasSubstr("\"'=HYPERLINK(\"\"http://x\"\")\""));
  EXPECT_THAT(csv, HasSubstr("\"name=a,b\""));
}

}  // namespace
}  // namespace gitops::control_plane_server
