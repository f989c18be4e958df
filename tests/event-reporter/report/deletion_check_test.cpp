#include "event-reporter/report/deletion_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "common/net/resolve.hpp"
#include "doubles/fake_kube_api.hpp"
#include "event-reporter/report/application_reporter.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "test_http/canned_server.hpp"

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;

TEST(DeletionCheck, AReadThatFailsHoldsUpNoOther) {
  const test::LogCapture quiet;
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    test::FakeKubeApi kube(executor);
    CO_ASSERT_OK(kube.start());
    k8s::Client client(executor, resolver, kube.cluster_config(), {}, "test");
    kube.put(k8s::resources::kApplications,
             {{"metadata", {{"name", "exists"}, {"namespace", "argocd"}, {"uid", "u"}}}});
    kube.fail_next(1'000'000, 503, {}, "/applications/blocked");
    std::vector<std::string> gone;
    TaskGroup tasks(executor);
    tasks.spawn("check", [&]() -> Task<> {
      co_await check_deletions(
          client, {{"argocd/blocked", "u-1"}, {"argocd/exists", "u-2"}, {"argocd/gone", "u-3"}},
          {.resource = k8s::resources::kApplications, .object = application_key, .pauses = {}},
          [&](const std::string& key, const std::string& uid) { gone.push_back(key + " " + uid); });
    });
    co_await sleep_for(std::chrono::minutes(5));
    EXPECT_THAT(gone, ElementsAre("argocd/gone u-3"));
    kube.end_faults();
    co_await tasks.join();
    EXPECT_THAT(gone, ElementsAre("argocd/gone u-3", "argocd/blocked u-1"));
    co_await kube.stop();
  });
}

// The permissions do not cover its namespace any more.
TEST(DeletionCheck, AReadThatIsRefusedForGoodIsRepeatedRarely) {
  const test::LogCapture quiet;
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    test::FakeKubeApi kube(executor);
    CO_ASSERT_OK(kube.start());
    k8s::Client client(executor, resolver, kube.cluster_config(), {}, "test");
    kube.fail_next(1'000'000, 403, {}, "/applications/hidden");
    std::vector<std::string> gone;
    TaskGroup tasks(executor);
    tasks.spawn("check", [&]() -> Task<> {
      co_await check_deletions(
          client, {{"argocd/hidden", "u-1"}, {"argocd/gone", "u-2"}},
          {.resource = k8s::resources::kApplications, .object = application_key, .pauses = {}},
          [&](const std::string& key, const std::string& uid) { gone.push_back(key + " " + uid); });
    });
    co_await sleep_for(std::chrono::hours(4));
    EXPECT_THAT(gone, ElementsAre("argocd/gone u-2"));
    EXPECT_LT(kube.count("GET", "/applications/hidden"), 150U);
    kube.end_faults();
    co_await tasks.join();
    EXPECT_THAT(gone, ElementsAre("argocd/gone u-2", "argocd/hidden u-1"));
    co_await kube.stop();
  });
}

// Its namespace is left out of the settings now, or the watch has set it aside. Nothing else tells
// of its end.
TEST(DeletionCheck, WhatExistsAndIsNotWatchedIsReadAgainRarely) {
  const test::LogCapture quiet;
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    test::FakeKubeApi kube(executor);
    CO_ASSERT_OK(kube.start());
    k8s::Client client(executor, resolver, kube.cluster_config(), {}, "test");
    for (const auto* name : {"goes", "comes"}) {
      kube.put(k8s::resources::kApplications,
               {{"metadata", {{"name", name}, {"namespace", "team"}, {"uid", name}}}});
    }
    bool comes = false;
    std::vector<std::string> gone;
    TaskGroup tasks(executor);
    tasks.spawn("check", [&]() -> Task<> {
      co_await check_deletions(
          client, {{"team/goes", "u-1"}, {"team/comes", "u-2"}},
          {.resource = k8s::resources::kApplications,
           .object = application_key,
           .pauses = {},
           .is_watched = [&](const std::string& key) { return comes && key == "team/comes"; }},
          [&](const std::string& key, const std::string& uid) { gone.push_back(key + " " + uid); });
    });
    co_await sleep_for(std::chrono::hours(4));
    EXPECT_THAT(gone, testing::IsEmpty());
    EXPECT_LT(kube.count("GET", "/applications/goes"), 150U);
    comes = true;
    EXPECT_TRUE(kube.remove(k8s::resources::kApplications, {"team", "goes"}));
    co_await tasks.join();
    EXPECT_THAT(gone, ElementsAre("team/goes u-1"));
    co_await kube.stop();
  });
}

// The 404 of an ingress without a backend, and what a login in front of the API server says.
TEST(DeletionCheck, WhatAnswersInPlaceOfTheApiServerSaysNothing) {
  const test::LogCapture quiet;
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Response plain{.status = 404,
                         .headers = {{"Content-Type", "text/plain"}},
                         .body = "default backend - 404"};
    http::Response status{
        .status = 404,
        .headers = {{"Content-Type", "application/json"}},
        .body = R"({"kind":"Status","code":404,"reason":"NotFound","message":"not found"})"};
    test::CannedServer server(
        executor, {plain, test::page_of_a_proxy(404), test::page_of_a_proxy(200), status});
    k8s::ClusterConfig config;
    config.server = server.url();
    k8s::Client client(executor, resolver, config, {}, "test");
    std::vector<std::size_t> gone;
    co_await check_deletions(
        client, {{"argocd/web", "u"}},
        {.resource = k8s::resources::kApplications, .object = application_key, .pauses = {}},
        [&](const std::string&, const std::string&) { gone.push_back(server.seen().size()); });
    EXPECT_THAT(gone, ElementsAre(4U)) << "the number of answers that it took";
    co_await server.stop();
  });
}

// For example 401, while a token is replaced.
TEST(DeletionCheck, NoOtherAnswerThanNotFoundSaysAnything) {
  for (const int status : {400, 401, 403, 409, 500}) {
    const test::LogCapture quiet;
    test::run_in_test_time([status]() -> Task<> {
      const auto executor = co_await asio::this_coro::executor;
      Metrics metrics;
      net::Resolver resolver(metrics);
      test::FakeKubeApi kube(executor);
      CO_ASSERT_OK(kube.start());
      k8s::Client client(executor, resolver, kube.cluster_config(), {}, "test");
      kube.fail_next(3, status, {}, "/applications/");
      std::vector<std::string> gone;
      co_await check_deletions(
          client, {{"argocd/web", "u"}},
          {.resource = k8s::resources::kApplications, .object = application_key, .pauses = {}},
          [&](const std::string& key, const std::string&) { gone.push_back(key); });
      EXPECT_THAT(gone, ElementsAre("argocd/web")) << status;
      co_await kube.stop();
    });
  }
}

}  // namespace
}  // namespace gitops::reporter
