#include "control-plane/views/journal_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using store::Engine;
using testing::ElementsAre;

// One line of the journal: its kind, and the event's id.
std::vector<std::string> lines_of(const Json& slice) {
  std::vector<std::string> lines;
  for (const auto& edge : slice["edges"]) {
    const auto& node = edge["node"];
    lines.push_back(node["kind"].get<std::string>() + " " + node["eventId"].get<std::string>());
  }
  return lines;
}

struct JournalContract : testing::TestWithParam<Engine> {
  store::Connection& db() { return bed.connection(); }
  std::int64_t send(const std::string& body, std::int64_t sequence, Micros arrived_at,
                    std::int64_t account = 1) {
    Incoming incoming{
        .account = account, .reporter = "application", .event = event_of_body(body, sequence)};
    incoming.event.state.seen_at = arrived_at;
    incoming.event.state.changed_at = arrived_at;
    const auto outcome = must(events->store(db(), std::span(&incoming, 1)));
    return outcome.items.at(0).object;
  }
  void quarantine(const std::string& event_id, Micros at, const std::string& runtime = "prod",
                  std::int64_t account = 1) {
    must(db().execute({.name = "test.quarantine",
                       .sql = "INSERT INTO quarantine (account, at, no, runtime, event_id, why, "
                              "bytes) VALUES ($1, $2, 1, $3, $4, 'data is not an object', 77)"},
                      {account, at, runtime, event_id}));
  }
  Json journal(std::int64_t id, const PageWindow& window = {}) {
    const std::array<std::int64_t, 1> ids{id};
    const auto rows = must(objects_of_ids(db(), 1, ids, BodyUse::skip));
    return Json::parse(must(journal_slice(db(), 1, rows.at(0).state, window)));
  }
  StoreBed bed{GetParam()};
  std::unique_ptr<EventStore> events = make_event_store(GetParam(), "test");
};

TEST_P(JournalContract, HasMilestonesLastEventsRepeatsAndRefusals) {
  auto shop = application_of("shop");
  const auto id = send(app_event(shop), 1, kSeedTime + 10);
  shop["status"]["health"]["status"] = "Degraded";
  send(app_event(shop), 2, kSeedTime + 20);
  send(app_event(shop), 2, kSeedTime + 50);  // arrives again
  send(app_event(object_of("v1", "ConfigMap", "shop", "settings"), managed_by("shop")), 3,
       kSeedTime + 30);
  quarantine("uid-shop/application/9/x", kSeedTime + 40);
  // Others are not in it.
  send(app_event(object_of("v1", "ConfigMap", "cart", "settings"), managed_by("cart")), 4,
       kSeedTime + 35);
  quarantine("uid-cart/application/9/x", kSeedTime + 41);
  quarantine("uid-shop/application/9/y", kSeedTime + 42, "stage");
  quarantine("uid-shop/application/9/z", kSeedTime + 43, "prod", 2);

  const auto slice = journal(id);
  EXPECT_THAT(lines_of(slice), ElementsAre("REPEATED e2", "REFUSED uid-shop/application/9/x",
                                           "LATEST e3", "MILESTONE e2", "MILESTONE e1"));
  const auto& edges = slice["edges"];
  EXPECT_EQ(edges[1]["node"]["reason"], "data is not an object");
  EXPECT_EQ(edges[1]["node"]["bytes"], 77);
  EXPECT_EQ(edges[2]["node"]["object"]["kind"], "ConfigMap");
  EXPECT_EQ(edges[3]["node"]["object"]["kind"], "Application");
  EXPECT_EQ(edges[3]["node"]["healthStatus"], "DEGRADED");
  EXPECT_EQ(edges[3]["node"]["step"], "CHANGED");
  EXPECT_EQ(edges[4]["node"]["step"], "CREATED");
  EXPECT_EQ(edges[4]["node"]["sequence"], "1");
  EXPECT_TRUE(edges[4]["node"]["reportedAt"].is_null());  // 1 is no time
}

TEST_P(JournalContract, ASequenceThatIsATimeSaysWhenTheEventWasMade) {
  const auto id = send(app_event(application_of("shop")), kSeedTime, kSeedTime + 2'000'000);
  const auto slice = journal(id);
  EXPECT_EQ(slice["edges"][0]["node"]["reportedAt"], "2026-03-04T09:12:00.000Z");
  EXPECT_EQ(slice["edges"][0]["node"]["receivedAt"], "2026-03-04T09:12:02.000Z");
}

TEST_P(JournalContract, EventsWithoutASequenceHaveNone) {
  const auto id = send(app_event(application_of("shop")), 0, kSeedTime + 5);
  const auto slice = journal(id);
  EXPECT_EQ(slice["edges"].size(), 1U);
  EXPECT_TRUE(slice["edges"][0]["node"]["sequence"].is_null());
  EXPECT_TRUE(slice["edges"][0]["node"]["reportedAt"].is_null());
}

TEST_P(JournalContract, AnApplicationWithoutAUidHasNoResourcesAndRefusalsOfOthers) {
  auto shop = application_of("shop");
  shop["metadata"].erase("uid");
  const auto id = send(app_event(shop), 1, kSeedTime + 10);
  send(app_event(application_of("cart")), 2, kSeedTime + 20);
  quarantine("/application/9/x", kSeedTime + 30);
  EXPECT_THAT(lines_of(journal(id)), ElementsAre("MILESTONE e1"));
}

TEST_P(JournalContract, PagesFollowEachOtherBothWays) {
  const auto id = send(app_event(application_of("shop")), 1, kSeedTime);
  for (int i = 0; i < 6; ++i) {
    // Two of a time each.
    send(app_event(object_of("v1", "ConfigMap", "shop", "c" + std::to_string(i)),
                   managed_by("shop")),
         2 + i, kSeedTime + 10 + i / 2);
  }
  const auto all = lines_of(journal(id));
  ASSERT_EQ(all.size(), 7U);
  std::vector<std::string> forwards;
  PageWindow window{.limit = 2};
  for (bool has_more = true; has_more;) {
    const auto slice = journal(id, window);
    for (auto& line : lines_of(slice)) forwards.push_back(std::move(line));
    has_more = slice["pageInfo"]["hasNextPage"];
    SliceArguments next{.after = slice["pageInfo"]["endCursor"]};
    next.first = 2;
    window = must(page_window(next, kDeliveryKeyNumbers));
  }
  EXPECT_EQ(forwards, all);
  SliceArguments back{};
  back.last = 2;
  EXPECT_THAT(lines_of(journal(id, must(page_window(back, kDeliveryKeyNumbers)))),
              ElementsAre(all[5], all[6]));
}

INSTANTIATE_TEST_SUITE_P(Engines, JournalContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
