#include "control-plane/storage/report_request_store.hpp"

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/storage/retention.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using nlohmann::json;
using store::Engine;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr Micros kMinute = 60LL * 1'000'000;

json owned(const std::string& kind, const std::string& name, const std::string& owner) {
  auto object = object_of("apps/v1", kind, "shop", name);
  object["metadata"]["ownerReferences"] = json::array(
      {{{"kind", "Rollout"}, {"name", owner}, {"uid", "uid-" + owner}, {"controller", true}}});
  return object;
}

struct ReportRequestContract : testing::TestWithParam<Engine> {
  StoreBed bed{GetParam()};
  Seeder seeder{GetParam()};
  std::int64_t account = must(create_account(db(), "acme", kNow)).number;
  store::Connection& db() { return bed.connection(); }

  void send(const std::string& body, const std::string& runtime = "prod") {
    seeder.store(db(), account, body, runtime);
  }
  ObjectState shop(const std::string& name = "shop") {
    return must(find_object(db(), account, {.name = name}, BodyUse::skip)).value().state;
  }
  ReportRequestOutcome request(const ObjectState& application, Micros now = kNow) {
    return must(request_report(db(), account, application, now));
  }
  std::vector<ReportRequestRow> open(Micros now = kNow) {
    return must(open_report_requests(db(), account, now));
  }
  std::vector<std::string> open_uids(Micros now = kNow) {
    std::vector<std::string> uids;
    for (const auto& row : open(now)) uids.push_back(row.uid);
    return uids;
  }
};

TEST_P(ReportRequestContract, ARequestIsOpenUntilItIsClosedOrExpires) {
  send(app_event(application_of("shop")));
  const auto asked = request(shop());
  EXPECT_TRUE(asked.is_new);
  EXPECT_EQ(asked.at, kNow);
  EXPECT_THAT(open(), ElementsAre(ReportRequestRow{.runtime = "prod",
                                                   .uid = "uid-shop",
                                                   .application = "uid-shop",
                                                   .number = kNow,
                                                   .sequence = 1}));
  EXPECT_THAT(must(open_report_requests(db(), account + 1, kNow)), IsEmpty());
  EXPECT_THAT(open(kNow + kReportRequestLife - 1), SizeIs(1));
  EXPECT_THAT(open(kNow + kReportRequestLife), IsEmpty());
  must(close_report_request(db(), account, open().front()));
  EXPECT_THAT(open(), IsEmpty());
}

TEST_P(ReportRequestContract, ARequestThatIsOpenIsTheSameOne) {
  send(app_event(application_of("shop")));
  request(shop());
  const auto again = request(shop(), kNow + kMinute);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.at, kNow);
  EXPECT_THAT(open(), SizeIs(1));
  // After an event a request is a new one, even if the first was not closed.
  send(app_event(application_of("shop")));
  EXPECT_TRUE(request(shop(), kNow + 2 * kMinute).is_new);
  EXPECT_EQ(open().front().number, kNow + 2 * kMinute);
  EXPECT_EQ(open().front().sequence, 2);
  EXPECT_TRUE(request(shop(), kNow + 2 * kMinute + kReportRequestLife).is_new);
}

TEST_P(ReportRequestContract, NumbersGrowAlthoughAClockGoesBack) {
  send(app_event(application_of("shop")));
  request(shop());
  const auto first = open().front();
  must(close_report_request(db(), account, first));
  EXPECT_EQ(request(shop(), kNow - kMinute).at, kNow + 1);
  must(close_report_request(db(), account, first));
  EXPECT_THAT(open(), SizeIs(1)) << "a late end of the first one";
}

TEST_P(ReportRequestContract, AnAccountHasAtMostAHundred) {
  send(app_event(application_of("shop")));
  auto state = shop();
  for (std::int64_t i = 0; i < kMaxReportRequests; ++i) {
    state.uid = "uid-" + std::to_string(i);
    request(state);
  }
  state.uid = "uid-more";
  EXPECT_EQ(request_report(db(), account, state, kNow).error().code, ErrorCode::too_many_requests);
  EXPECT_TRUE(must(request_report(db(), account + 1, state, kNow)).is_new);
  state.uid = "uid-7";
  EXPECT_FALSE(request(state).is_new) << "one that is open is none more";
  must(close_report_request(db(), account, open()[7]));
  state.uid = "uid-more";
  EXPECT_TRUE(request(state).is_new);
}

TEST_P(ReportRequestContract, WhatNoHeadCanNameIsRefused) {
  send(app_event(application_of("shop")));
  auto state = shop();
  for (const auto& uid :
       {std::string(), std::string("a b"), std::string("a;1"), std::string(65, 'a')}) {
    state.uid = uid;
    EXPECT_EQ(request_report(db(), account, state, kNow).error().code, ErrorCode::unsupported);
  }
  EXPECT_THAT(open(), IsEmpty());
}

TEST_P(ReportRequestContract, RolloutsOfTheApplicationAreAskedForToo) {
  send(app_event(application_of("shop")));
  send(app_event(application_of("cart")));
  const auto rollout = object_of("argoproj.io/v1alpha1", "Rollout", "shop", "web");
  const auto elsewhere = object_of("argoproj.io/v1alpha1", "Rollout", "shop", "other");
  send(app_event(rollout, managed_by("shop")));
  send(app_event(elsewhere, managed_by("cart")));
  send(app_event(object_of("v1", "ConfigMap", "shop", "settings"), managed_by("shop")));
  send(resource_event(rollout));
  send(resource_event(elsewhere));
  send(resource_event(owned("ReplicaSet", "web-1", "web")));
  send(resource_event(owned("ReplicaSet", "web-0", "web"), true));
  send(resource_event(owned("ReplicaSet", "other-1", "other")));
  request(shop());
  EXPECT_THAT(open_uids(), UnorderedElementsAre("uid-shop", "uid-web", "uid-web-1"));
  for (const auto& row : open()) {
    EXPECT_EQ(row.application, "uid-shop");
    EXPECT_EQ(row.number, kNow);
    EXPECT_EQ(row.origin(), row.uid == "uid-shop" ? Origin::application : Origin::resource);
  }
  request(shop("cart"));
  EXPECT_THAT(open(), SizeIs(6));
}

TEST_P(ReportRequestContract, OldRowsAreRemoved) {
  send(app_event(application_of("shop")));
  request(shop());
  const auto rows = [&] {
    constexpr store::Statement kAll{.name = "test.report_requests",
                                    .sql = "SELECT count(*) FROM report_request"};
    return must(db().run(kAll)).number(0, 0);
  };
  must(remove_expired(db(), {.report_requests = kNow}, 10));
  EXPECT_EQ(rows(), 1);
  must(remove_expired(db(), {.report_requests = kNow + 1}, 10));
  EXPECT_EQ(rows(), 0);
  EXPECT_EQ(retention_cuts({}, kNow).report_requests, kNow - kReportRequestsKept);
}

INSTANTIATE_TEST_SUITE_P(Engines, ReportRequestContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
