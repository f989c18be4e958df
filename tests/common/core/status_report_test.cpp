#include "common/core/status_report.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;

const WallTime kTime = parse_rfc3339("2026-03-04T09:15:27Z").value();

StatusReport sample() {
  StatusEntry queue{.name = "queue"};
  queue.add_count_of("waiting", 2, 1000);
  queue.add_count("in_work", 1);
  StatusEntry outage{.name = "control plane",
                     .state = StatusState::failed,
                     .message = "takes no events",
                     .since = kTime};
  outage.add_count("failed_probes", 3, "probes failed");
  outage.add_duration("next_probe_in", milliseconds(5000), "until the next probe");
  outage.add_text("reason", "401 Unauthorized");
  StatusEntry clone{.name = "https://git.test/acme/shop"};
  clone.since = kTime;
  clone.add_count("received_bytes", 70, "bytes");
  StatusEntry commits{.name = "commits"};
  commits.add_count("waiting", 0);
  commits.add_detail(std::move(clone));
  StatusEntry cluster{.name = "cluster prod"};
  cluster.add_detail(
      {.name = "rollouts", .state = StatusState::unavailable, .message = "not served"});
  return {{.name = "registration"},
          {.name = "argocd-token", .state = StatusState::pending},
          std::move(queue),
          std::move(outage),
          std::move(commits),
          std::move(cluster),
          status_count("users known", 3)};
}

TEST(StatusReport, IsALineForEachEntry) {
  EXPECT_EQ(status_text(sample()),
            "registration: ok\n"
            "argocd-token: pending\n"
            "queue: 2 of 1000 waiting, 1 in work\n"
            "control plane: takes no events since 2026-03-04T09:15:27Z, 3 probes failed, 5s until "
            "the next probe, reason: 401 Unauthorized\n"
            "commits: 0 waiting\n"
            "  https://git.test/acme/shop: 70 bytes, since 2026-03-04T09:15:27Z\n"
            "cluster prod\n"
            "  rollouts: not served\n"
            "users known: 3\n");
  EXPECT_EQ(status_text({}), "");
}

TEST(StatusReport, HasTheSameEntriesInJson) {
  EXPECT_EQ(Json::parse(status_json(sample())), Json::parse(R"([
    {"name": "registration", "state": "ok", "message": ""},
    {"name": "argocd-token", "state": "pending", "message": ""},
    {"name": "queue", "state": "ok", "message": "",
     "values": {"waiting": 2, "waiting_of": 1000, "in_work": 1}},
    {"name": "control plane", "state": "failed", "message": "takes no events",
     "since": "2026-03-04T09:15:27Z",
     "values": {"failed_probes": 3, "next_probe_in_ms": 5000, "reason": "401 Unauthorized"}},
    {"name": "commits", "state": "ok", "message": "", "values": {"waiting": 0},
     "details": [{"name": "https://git.test/acme/shop", "state": "ok", "message": "",
                  "since": "2026-03-04T09:15:27Z", "values": {"received_bytes": 70}}]},
    {"name": "cluster prod", "state": "ok", "message": "",
     "details": [{"name": "rollouts", "state": "unavailable", "message": "not served"}]},
    {"name": "users known", "state": "ok", "message": "", "values": {"count": 3}}])"));
  EXPECT_EQ(status_json({}), "[]");
}

TEST(StatusReport, EachStateHasAName) {
  const std::vector<std::pair<StatusState, std::string_view>> names{
      {StatusState::ok, "ok"},
      {StatusState::pending, "pending"},
      {StatusState::degraded, "degraded"},
      {StatusState::failed, "failed"},
      {StatusState::standby, "standby"},
      {StatusState::unknown, "unknown"},
      {StatusState::unavailable, "unavailable"}};
  for (const auto& [state, name] : names) {
    EXPECT_EQ(to_string(state), name);
  }
}

TEST(StatusReport, AnEntryWithAnErrorHasFailed) {
  const auto good = status_entry("logs", "", "read");
  EXPECT_EQ(good.state, StatusState::ok);
  EXPECT_EQ(good.message, "read");
  const auto bad = status_entry("logs", "403", "read");
  EXPECT_EQ(bad.state, StatusState::failed);
  EXPECT_EQ(bad.message, "403");
}

TEST(StatusReport, TextsOfOthersStayInTheirLineAndAreCut) {
  StatusEntry entry{.name = "peer\nlink 2: serving",
                    .message = "a\r\nb\tc " + std::string(5000, 'x')};
  entry.add_text("reason", "\x7f\n" + std::string(5000, 'y'));
  const auto text = status_text({entry});
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  EXPECT_THAT(text, HasSubstr("peer link 2: serving: a  b c xxx"));
  EXPECT_LT(text.size(), 2200U);
  const auto json = status_json({entry});
  EXPECT_LT(json.size(), 2300U);
  EXPECT_EQ(Json::parse(json)[0]["name"], "peer\nlink 2: serving");
}

TEST(StatusReport, DetailsAreBounded) {
  StatusEntry entry{.name = "refused events"};
  for (int i = 0; i < 103; ++i) entry.add_detail({.name = std::to_string(i)});
  EXPECT_EQ(entry.details.size(), kMaxStatusDetails);
  EXPECT_EQ(entry.omitted, 3U);
  EXPECT_THAT(status_text({entry}), EndsWith("  99: ok\n  and 3 more\n"));
  EXPECT_EQ(Json::parse(status_json({entry}))[0]["omitted"], 3);
}

}  // namespace
}  // namespace gitops
