// An owner and a candidate at one Lease, in simulated time that starts at 0.
#include "event-reporter/shards/lease_owner.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Kind = k8s::LeaseSteps::Action::Kind;

const k8s::ObjectKey kKey{"default", "shard-0"};
const WallTime kWall = *parse_rfc3339("2030-01-02T03:04:05Z");

k8s::LeaseOptions options_of(const std::string& name) {
  return {.key = kKey, .identity = name};
}

// An API server with one Lease.
class Table {
 public:
  struct Candidate {
    std::unique_ptr<k8s::LeaseSteps> steps;
    Clock::time_point next{};
  };

  k8s::LeaseSteps& add(std::unique_ptr<k8s::LeaseSteps> steps) {
    candidates.push_back({.steps = std::move(steps)});
    return *candidates.back().steps;
  }

  // Runs the candidates in the order of their times, up to `end`.
  void run_until(Clock::duration end) {
    while (true) {
      const auto first = std::ranges::min_element(candidates, {}, &Candidate::next);
      if (first == candidates.end() || first->next > Clock::time_point(end)) break;
      now = std::max(now, first->next);
      step(*first);
    }
    now = Clock::time_point(end);
  }

  const Json& spec() { return lease["spec"]; }

  std::vector<Candidate> candidates;
  Clock::time_point now{};
  Json lease;
  int version = 0;

 private:
  void step(Candidate& candidate) {
    const auto action = candidate.steps->next(
        now, kWall + std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()));
    if (action.kind == Kind::wait) {
      ASSERT_GT(action.until, now);
      candidate.next = action.until;
    } else {
      candidate.steps->on_answer(serve(action), now);
    }
  }
  Result<std::string> serve(const k8s::LeaseSteps::Action& action) {
    if (action.kind == Kind::read) {
      if (lease.is_null()) return fail(ErrorCode::not_found, "no Lease");
      return lease.dump();
    }
    Json sent = Json::parse(action.object);
    const bool creates = action.kind == Kind::create;
    if (creates != lease.is_null()) return fail(ErrorCode::conflict, "");
    if (!creates &&
        sent["metadata"].value("resourceVersion", Json()) != lease["metadata"]["resourceVersion"]) {
      return fail(ErrorCode::conflict, "");
    }
    sent["metadata"]["resourceVersion"] = std::to_string(++version);
    lease = sent;
    return lease.dump();
  }
};

TEST(LeaseOwnerSteps, AnOwnerAsksForItsLeaseOnce) {
  Table table;
  table.add(std::make_unique<k8s::LeaseSteps>(options_of("a"), std::hash<std::string>()("a")));
  table.run_until(1s);
  auto& owner = table.add(std::make_unique<LeaseOwnerSteps>(options_of("owner"), 1));
  const auto spec = table.spec();
  table.run_until(1s);
  EXPECT_EQ(table.lease["metadata"]["annotations"][kWantedBy], "owner");
  EXPECT_EQ(table.spec(), spec) << "does not count as a renewal";
  EXPECT_FALSE(owner.stop(table.now)) << "nothing to give back";
  table.candidates.erase(table.candidates.begin());
  const auto version = table.version;
  table.run_until(12s);
  EXPECT_EQ(table.version, version);
  table.run_until(20s);
  EXPECT_TRUE(owner.leading(table.now));
  EXPECT_EQ(table.lease["metadata"]["annotations"], Json::object());
}

TEST(LeaseOwnerSteps, EachWriteOfTheRecordRemovesTheRequest) {
  k8s::LeaseView view(kKey, {}, {}, kWantedBy);
  constexpr Clock::time_point kNow(1s);
  view.see(view.taken("a", 15s, kWall, kNow), kNow);
  view.see(view.with_annotation(kWantedBy, "owner"), Clock::time_point(2s));
  EXPECT_EQ(wanted_by(view), "owner");
  for (const auto& written : {view.taken("a", 15s, kWall, kNow), view.freed(kWall, kNow)}) {
    auto after = view;
    after.see(written, Clock::time_point(3s));
    EXPECT_EQ(wanted_by(after), "");
  }
}

// An owner that asked in step with the renewals of the holder met a conflict each time.
TEST(LeaseOwnerSteps, AnOwnerWhoseRequestConflictsAsksOutOfStep) {
  LeaseOwnerSteps owner({.key = kKey, .identity = "owner"}, 1);
  Clock::time_point now{};
  std::set<Clock::duration> waits;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(owner.next(now, kWall).kind, Kind::read);
    const Json renewed{
        {"metadata", {{"name", kKey.name}, {"namespace", kKey.ns}, {"resourceVersion", "1"}}},
        {"spec",
         {{"holderIdentity", "stand-in"},
          {"leaseDurationSeconds", 15},
          {"renewTime", "2030-01-02T03:04:0" + std::to_string(i) + ".000000Z"}}}};
    owner.on_answer(renewed.dump(), now);
    ASSERT_EQ(owner.next(now, kWall).kind, Kind::annotate);
    owner.on_answer(fail(ErrorCode::conflict, "another write came first"), now);
    const auto action = owner.next(now, kWall);
    ASSERT_EQ(action.kind, Kind::wait);
    waits.insert(action.until - now);
    now = action.until;
  }
  EXPECT_GT(waits.size(), 4U);
}

}  // namespace
}  // namespace gitops::reporter
