#include "k8s-client/informer.hpp"

#include <exception>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "contract/kube_watch_contract.hpp"
#include "doubles/fake_kube_api.hpp"
#include "k8s-client/kind_watch.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

// The informer against an API server that misbehaves. tests/contract/kube_watch_contract.cpp has the
// cases of a correct one.
namespace gitops::k8s {
namespace {

using namespace std::chrono_literals;
using test::FakeKubeApi;
using test::KubeWatchFixture;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

const Reflector::Options kStreaming{};
const Reflector::Options kPaged{.streaming_list = false, .page_limit = 2};

using Body = std::function<Task<>(FakeKubeApi&, KubeWatchFixture&)>;

// Runs `body` on a fresh double with the ConfigMaps a=1, b=1, c=1.
void with_double(Reflector::Options options, Body body, KubeWatchFixture::Tune tune = {}) {
  test::run_in_test_time([&]() -> Task<> {
    FakeKubeApi api(co_await asio::this_coro::executor);
    CO_ASSERT_OK(api.start());
    const test::KubeWatchPeer peer{.config = api.cluster_config(), .ns = "default"};
    std::exception_ptr failure;
    try {
      co_await test::with_kube_watch_fixture(
          peer, options,
          [&](KubeWatchFixture& fixture) -> Task<> {
            for (const auto* name : {"a", "b", "c"}) {
              CO_ASSERT_TRUE(co_await fixture.create(name, "1"));
            }
            api.forget_requests();
            co_await body(api, fixture);
          },
          tune);
    } catch (...) {
      failure = std::current_exception();
    }
    co_await api.stop();
    if (failure) std::rethrow_exception(failure);
  });
}
// The same with an informer that has synced.
void with_synced(Reflector::Options options, Body body, KubeWatchFixture::Tune tune = {}) {
  with_double(
      options,
      [&](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
        fixture.start();
        CO_ASSERT_TRUE(co_await fixture.converges());
        CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return api.open_watches() == 1; }));
        fixture.forget_told();
        co_await body(api, fixture);
      },
      tune);
}

std::string event_line(std::string_view type, std::string_view metadata) {
  return R"({"type":")" + std::string(type) + R"(","object":{"kind":"ConfigMap","metadata":{)" +
         std::string(metadata) + R"(},"data":{"value":"forged"}}})" + "\n";
}

std::string version_of(FakeKubeApi& api, const std::string& name) {
  return api.find(resources::kConfigMaps, {"default", name})
      ->at("metadata")
      .at("resourceVersion")
      .get<std::string>();
}

// The value of a metric, or "".
std::string metric(KubeWatchFixture& fixture, const std::string& name) {
  const auto all = fixture.metrics();
  const auto at = all.find("\n" + name + " ");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 2;
  return all.substr(begin, all.find('\n', begin) - begin);
}

// ---- malformed objects ----

TEST(Informer, AC24_MalformedListItemsAreQuarantinedAndTheOthersServed) {
  for (const auto& options : {kStreaming, kPaged}) {
    with_double(options, [&](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
      api.refuse_streaming_lists(true);
      api.add_list_item(resources::kConfigMaps,
                        R"({"metadata":{"name":"poison","namespace":"default","uid":17}})");
      fixture.start();
      CO_ASSERT_TRUE(co_await fixture.synced());
      EXPECT_THAT(fixture.told(), UnorderedElementsAre("+a=1", "+b=1", "+c=1"));
      EXPECT_NE(metric(fixture, "gitops_contract_watch_quarantined_total{resource=\"configmaps\"}"),
                "");
      CO_ASSERT_TRUE(co_await fixture.update("b", "2"));
      EXPECT_TRUE(co_await fixture.converges());
    });
  }
}

TEST(Informer, AC24_AnObjectThatTurnsMalformedKeepsItsLastGoodRecord) {
  with_synced(kPaged, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    api.remove(resources::kConfigMaps, {"default", "b"});
    api.remove(resources::kConfigMaps, {"default", "c"});
    api.add_list_item(resources::kConfigMaps,
                      R"({"metadata":{"name":"b","namespace":"default","uid":17}})");
    api.compact();
    fixture.reconnect();
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return !fixture.told().empty(); }));
    EXPECT_THAT(fixture.told(), ElementsAre("-c"));
    CO_ASSERT_TRUE(fixture.informer().find({"default", "b"}) != nullptr);
    EXPECT_EQ(fixture.informer().find({"default", "b"})->field(0), "1");
    // After the next good list, the deletion is delivered.
    api.add_list_item(resources::kConfigMaps, "");
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    CO_ASSERT_TRUE(co_await fixture.create("d", "1"));
    api.compact();
    fixture.reconnect();
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_THAT(fixture.told(), UnorderedElementsAre("-c", "-b", "+d=1"));
  });
}

TEST(Informer, AC24_MalformedEventsAreQuarantinedAndTheWatchGoesOn) {
  test::LogCapture log;
  with_synced(kStreaming, [&log](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    const auto requests = api.requests().size();
    api.send_on_watches(
        resources::kConfigMaps,
        event_line("MODIFIED",
                   R"("name":"a","namespace":"default","uid":[],"resourceVersion":"900")") +
            "garbage\n" +
            event_line("ADDED", R"("name":"x","namespace":"default","labels":{"canary":"s3cr3t)"
                                "\xff\"}") +
            event_line("DELETED", R"("name":"b","namespace":"default","uid":{})"));
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return !fixture.told().empty(); }));
    EXPECT_THAT(fixture.told(), ElementsAre("-b")) << "a deletion counts, however the object looks";
    EXPECT_EQ(fixture.informer().find({"default", "a"})->field(0), "1");
    CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return fixture.told().size() == 2; }));
    EXPECT_EQ(fixture.told().back(), "~a=2");
    EXPECT_EQ(metric(fixture, "gitops_contract_watch_quarantined_total{resource=\"configmaps\"}"),
              "4");
    EXPECT_EQ(metric(fixture, "gitops_contract_watch_objects{resource=\"configmaps\"}"), "2");
    EXPECT_EQ(api.requests().size(), requests + 1) << "only our own update: the watch never ended";
    EXPECT_EQ(log.count("object cannot be used"), 4U);
    EXPECT_EQ(log.count("s3cr3t"), 0U);
  });
}

TEST(Informer, AC25_ObjectsOverTheLimitsAreQuarantined) {
  with_synced(
      kStreaming,
      [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
        const auto nested = ",\"x\":" + std::string(40, '[') + std::string(40, ']');
        api.send_on_watches(
            resources::kConfigMaps,
            event_line("ADDED", R"("name":"large","namespace":"default","x":")" +
                                    std::string(20'000, 'x') + "\"") +
                event_line("ADDED", R"("name":"deep","namespace":"default")" + nested));
        CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
        EXPECT_TRUE(co_await fixture.converges());
        EXPECT_THAT(fixture.told(), ElementsAre("~a=2"));
        EXPECT_EQ(
            metric(fixture, "gitops_contract_watch_quarantined_total{resource=\"configmaps\"}"),
            "2");
      },
      [](InformerOptions& options) { options.limits = {.max_bytes = 10'000, .max_depth = 20}; });
}

// ---- watches that misbehave ----

TEST(Informer, AC27_AWatchThatSendsNothingIsCut) {
  Reflector::Options options = kPaged;
  options.watch_timeout_min = options.watch_timeout_max = 0s;
  with_double(
      options,
      [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
        api.stall_watches(true);
        fixture.start();
        CO_ASSERT_TRUE(
            co_await fixture.wait_until([&] { return !fixture.informer().last_error().empty(); }));
        EXPECT_THAT(fixture.informer().last_error(), HasSubstr("nothing received"));
        CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
        api.stall_watches(false);
        EXPECT_TRUE(co_await fixture.converges());
      },
      [](InformerOptions& informer) { informer.watch_grace = 200ms; });
}

// Otherwise it would be noticed only after the timeout of the watch, which is an hour here.
TEST(Informer, AWatchThatFallsSilentAfterABookmarkIsReopened) {
  Reflector::Options options = kStreaming;
  options.watch_timeout_min = options.watch_timeout_max = 3600s;
  with_synced(options, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    co_await sleep_for(4min);
    EXPECT_EQ(api.open_watches(), 1U);
    EXPECT_EQ(api.count("GET", "watch=1"), 1U) << "bookmarks come, so it is not silent";
    api.stall_watches(true);
    CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
    co_await sleep_for(210s);
    EXPECT_EQ(api.count("GET", "watch=1"), 2U) << "after three minutes without a bookmark";
    api.stall_watches(false);
    EXPECT_TRUE(co_await fixture.converges());
  });
}

TEST(Informer, AWatchWithoutBookmarksMayBeSilentUntilItsTimeout) {
  Reflector::Options options = kPaged;
  options.watch_timeout_min = options.watch_timeout_max = 3600s;
  with_double(options, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.stall_watches(true);
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    co_await sleep_for(50min);
    EXPECT_EQ(fixture.informer().last_error(), "");
    EXPECT_EQ(api.count("GET", "watch=1"), 1U);
  });
}

TEST(Informer, AStreamingListThatSendsNothingIsTriedAgainForTheNextList) {
  with_double(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.stall_watches(true);
    fixture.start();
    co_await sleep_for(70s);
    CO_ASSERT_TRUE(fixture.informer().has_synced());
    EXPECT_EQ(api.count("GET", "sendInitialEvents"), 1U);
    EXPECT_EQ(metric(fixture,
                     "gitops_contract_watch_relists_total{reason=\"streaming_failed\",resource="
                     "\"configmaps\"}"),
              "1");
    api.stall_watches(false);
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
    api.compact();
    fixture.reconnect();
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_EQ(api.count("GET", "sendInitialEvents"), 2U);
  });
}

TEST(Informer, AC27_AStreamingListThatSendsNothingIsReplacedByPages) {
  with_double(
      kStreaming,
      [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
        api.stall_watches(true);
        fixture.start();
        CO_ASSERT_TRUE(co_await fixture.synced());
        EXPECT_EQ(api.count("GET", "sendInitialEvents"), 1U);
        api.stall_watches(false);
        EXPECT_TRUE(co_await fixture.converges());
      },
      [](InformerOptions& informer) { informer.list_timeout = 200ms; });
}

// It sends what changes and ordinary bookmarks, but never the bookmark that ends the list.
TEST(Informer, AC27_AStreamingListWithoutAnEndIsReplacedByPages) {
  test::run_in_test_time([]() -> Task<> {
    const Executor executor = co_await asio::this_coro::executor;
    Event end(executor);
    http::Server server(executor, {}, [&](http::Exchange& exchange) -> Task<> {
      const std::string target = exchange.request().target;
      if (!target.contains("watch=1")) {
        http::Response list;
        list.body = R"({"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b"}}]})";
        CO_ASSERT_OK(co_await exchange.reply(std::move(list)));
        co_return;
      }
      CO_ASSERT_OK(co_await exchange.start({}));
      if (!target.contains("sendInitialEvents")) {
        co_await end.wait();
        co_return;
      }
      for (int version = 7;; ++version) {
        const auto bookmark = R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":")" +
                              std::to_string(version) + "\"}}}\n";
        if (!co_await exchange.write(event_line("MODIFIED", R"("name":"a")") + bookmark)) co_return;
        if (co_await end.wait(deadline_after(20s))) co_return;
      }
    });
    CO_ASSERT_OK(server.listen());
    Metrics metrics;
    net::Resolver resolver(metrics);
    ClusterConfig config;
    config.server = *http::parse_url("http://127.0.0.1:" + std::to_string(server.port()));
    Client client(executor, resolver, config, {}, "test");
    TaskGroup tasks(executor);
    std::vector<std::string> told;
    Informer informer(executor, client,
                      {.resource = resources::kConfigMaps, .fields = FieldSet({})}, metrics,
                      "test");
    const auto subscription = informer.subscribe([&](const Change& change) {
      told.push_back((change.type == Change::Type::deleted ? "-" : "+") +
                     std::string(change.now->name()));
    });
    informer.start(tasks);
    EXPECT_TRUE(co_await informer.wait_synced(deadline_after(70s)));
    EXPECT_THAT(told, testing::IsSupersetOf({"+a", "+b", "-a"})) << "the list has no a";
    EXPECT_EQ(informer.size(), 1U);
    EXPECT_THAT(metrics.expose(), HasSubstr("relists_total{reason=\"streaming_failed\""));
    tasks.cancel();
    co_await tasks.join();
    end.notify_all();
    co_await server.stop(deadline_after(1s));
  });
}

TEST(Informer, AServerWithoutStreamingListsIsAskedForThemOnce) {
  with_double(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.refuse_streaming_lists(true);
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
    api.compact();
    fixture.reconnect();
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_EQ(api.count("GET", "sendInitialEvents"), 1U);
    EXPECT_EQ(metric(fixture,
                     "gitops_contract_watch_relists_total{reason=\"streaming_refused\",resource="
                     "\"configmaps\"}"),
              "1");
    EXPECT_EQ(
        metric(fixture,
               "gitops_contract_watch_relists_total{reason=\"gone\",resource=\"configmaps\"}"),
        "1");
  });
}

TEST(Informer, AC27_AWatchThatEndsInTheMiddleOfAnEventHasFailed) {
  test::run_in_test_time([]() -> Task<> {
    const Executor executor = co_await asio::this_coro::executor;
    std::vector<std::string> asked;
    Event silence(executor);
    http::Server server(executor, {}, [&](http::Exchange& exchange) -> Task<> {
      if (!exchange.request().target.contains("watch=1")) {  // the check before it is resumed
        http::Response list;
        list.body = R"({"metadata":{"resourceVersion":"7"},"items":[]})";
        CO_ASSERT_OK(co_await exchange.reply(std::move(list)));
        co_return;
      }
      asked.push_back(exchange.request().target);
      CO_ASSERT_OK(co_await exchange.start({}));
      if (asked.size() > 1) {
        co_await silence.wait();
        co_return;
      }
      const auto half = event_line("ADDED", R"("name":"half","resourceVersion":"8")");
      CO_ASSERT_OK(co_await exchange.write(
          R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}})"
          "\n" +
          half.substr(0, half.size() - 5)));
      CO_ASSERT_OK(co_await exchange.finish());
    });
    CO_ASSERT_OK(server.listen());
    Metrics metrics;
    net::Resolver resolver(metrics);
    ClusterConfig config;
    config.server = *http::parse_url("http://127.0.0.1:" + std::to_string(server.port()));
    Client client(executor, resolver, config, {}, "test");
    TaskGroup tasks(executor);
    std::vector<std::string> told;
    Informer informer(executor, client,
                      {.resource = resources::kConfigMaps, .fields = FieldSet({})}, metrics,
                      "test");
    const auto subscription =
        informer.subscribe([&](const Change& change) { told.emplace_back(change.now->name()); });
    informer.start(tasks);
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return asked.size() >= 2; }, "the second request"));
    EXPECT_THAT(asked[1], testing::EndsWith("resourceVersion=7"))
        << "resumed from before the half event";
    EXPECT_THAT(metrics.expose(), HasSubstr("watch_errors_total{code=\"unavailable\""));
    EXPECT_THAT(told, IsEmpty());
    tasks.cancel();
    co_await tasks.join();
    silence.notify_all();
    co_await server.stop(deadline_after(1s));
  });
}

TEST(Informer, AC27_AWatchThatIsCutIsResumed) {
  with_synced(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.cut_watches();
    CO_ASSERT_TRUE(co_await fixture.update("b", "2"));
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_THAT(fixture.told(), ElementsAre("~b=2"));
    EXPECT_EQ(api.count("GET", "sendInitialEvents"), 1U) << "resumed, not listed again";
  });
}

TEST(Informer, AC27_CleanEndsAreNoFailures) {
  with_synced(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    for (const auto* value : {"2", "3", "4"}) {
      api.end_watches();
      CO_ASSERT_TRUE(co_await fixture.update("b", value));
      EXPECT_TRUE(co_await fixture.converges());
    }
    EXPECT_EQ(fixture.informer().last_error(), "");
    EXPECT_THAT(fixture.metrics(), Not(HasSubstr("gitops_contract_watch_errors_total{")));
  });
}

TEST(Informer, AC27_GoneAsAnEventListsAgain) {
  with_synced(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.send_on_watches(
        resources::kConfigMaps,
        R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})"
        "\n" +
            event_line("DELETED", R"("name":"a","namespace":"default")"));
    CO_ASSERT_TRUE(
        co_await fixture.wait_until([&] { return api.count("GET", "sendInitialEvents") == 2; }));
    CO_ASSERT_TRUE(co_await fixture.update("b", "2"));
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_THAT(fixture.told(), ElementsAre("~b=2"))
        << "what stands behind an error is not believed";
  });
}

TEST(Informer, AC27_VersionsThatGoBackAreIgnored) {
  with_synced(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    const auto uid = std::string(fixture.informer().find({"default", "a"})->uid());
    for (const auto* type : {"MODIFIED", "ADDED", "DELETED"}) {
      for (const auto& owner_uid : {uid, std::string("another")}) {
        api.send_on_watches(
            resources::kConfigMaps,
            event_line(type, R"("name":"a","namespace":"default","resourceVersion":"1","uid":")" +
                                 owner_uid + "\""));
      }
    }
    api.send_on_watches(
        resources::kConfigMaps,
        event_line("MODIFIED", R"("name":"a","namespace":"default","uid":")" + uid +
                                   R"(","resourceVersion":")" + version_of(api, "a") + "\""));
    CO_ASSERT_TRUE(co_await fixture.update("b", "2"));
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_THAT(fixture.told(), ElementsAre("~b=2"));
  });
}

TEST(Informer, AnotherObjectOfTheSameNameIsADeletionAndAnAddition) {
  with_synced(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.send_on_watches(
        resources::kConfigMaps,
        event_line("MODIFIED",
                   R"("name":"a","namespace":"default","resourceVersion":"9000","uid":"new")"));
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return fixture.told().size() == 2; }));
    EXPECT_THAT(fixture.told(), ElementsAre("-a", "+a=forged"));
  });
}

TEST(Informer, AC27_StormsOfErrorsAreSurvived) {
  with_double(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.fail_next(5, 500);
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    EXPECT_EQ(
        metric(fixture,
               "gitops_contract_watch_errors_total{code=\"unavailable\",resource=\"configmaps\"}"),
        "5");
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    api.forget_requests();
    api.fail_next(1, 429, 1s, "watch=1");
    api.fail_next(2, 503, {}, "watch=1");
    fixture.reconnect();
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return api.count("GET", "watch=1") == 4; }));
    std::vector<Clock::time_point> watches;
    for (const auto& request : api.requests()) {
      if (request.target.contains("watch=1")) watches.push_back(request.when);
    }
    EXPECT_GE(watches.at(1) - watches.at(0), 1s) << "Retry-After was not kept";
    CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_EQ(fixture.told().back(), "~a=2");
  });
}

TEST(Informer, AC27_AnIncompleteListDeletesNothing) {
  with_synced(kPaged, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    CO_ASSERT_TRUE(co_await fixture.remove("a"));
    CO_ASSERT_TRUE(co_await fixture.create("d", "1"));
    CO_ASSERT_TRUE(co_await fixture.create("e", "1"));
    api.compact();
    // The second page is not served; a restarted list fails at it again.
    api.fail_next(1000, 403, {}, "continue=");
    fixture.reconnect();
    const auto before = api.count("GET", "continue=");
    CO_ASSERT_TRUE(
        co_await fixture.wait_until([&] { return api.count("GET", "continue=") >= before + 4; }));
    EXPECT_THAT(fixture.told(), Not(testing::Contains("-a")));
    api.end_faults();
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_EQ(fixture.told().back(), "-a") << "after everything that the list had";
  });
}

// ---- a server restored from a backup ----

// In the new history, the same version means another state.
TEST(Informer, AStateWithAVersionKnownFromBeforeARestoreIsTold) {
  for (const auto& options : {kStreaming, kPaged}) {
    with_synced(options, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
      const auto backup = api.store().back_up();
      CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
      CO_ASSERT_TRUE(co_await fixture.create("d", "1"));
      CO_ASSERT_TRUE(co_await fixture.converges());
      const auto version = version_of(api, "a");
      fixture.forget_told();
      api.restore(backup);
      auto other = *api.find(resources::kConfigMaps, {"default", "a"});
      other["data"]["value"] = "other";
      api.put(resources::kConfigMaps, other);
      EXPECT_EQ(version_of(api, "a"), version);
      EXPECT_TRUE(co_await fixture.converges());
      EXPECT_THAT(fixture.told(), UnorderedElementsAre("~a=other", "~b=1", "~c=1", "-d"));
      EXPECT_EQ(fixture.informer().epoch(), 1U);
    });
  }
}

// Writes after the restore have brought the server past the version that was seen before it, and the
// versions in between are compacted.
TEST(Informer, AnOlderObjectInAListShowsARestoreToo) {
  for (const auto& options : {kStreaming, kPaged}) {
    with_synced(options, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
      const auto backup = api.store().back_up();
      CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
      CO_ASSERT_TRUE(co_await fixture.converges());
      fixture.forget_told();
      api.restore(backup);
      auto other = *api.find(resources::kConfigMaps, {"default", "b"});
      for (const auto* value : {"2", "3", "4"}) {
        other["data"]["value"] = value;
        api.put(resources::kConfigMaps, other);
      }
      api.compact();
      EXPECT_TRUE(co_await fixture.converges());
      EXPECT_EQ(fixture.informer().epoch(), 1U);
      EXPECT_EQ(fixture.informer().find({"default", "a"})->field(0), "1");
    });
  }
}

TEST(Informer, AQuarantinedObjectOfTheOldEpochIsTakenWhenItIsWellAgain) {
  with_synced(kPaged, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    const auto backup = api.store().back_up();
    for (const auto* value : {"2", "3", "4", "5"})
      CO_ASSERT_TRUE(co_await fixture.update("a", value));
    CO_ASSERT_TRUE(co_await fixture.converges());
    fixture.forget_told();
    api.restore(backup);
    auto broken = *api.find(resources::kConfigMaps, {"default", "a"});
    const auto sound = broken;
    broken["metadata"]["uid"] = 17;
    api.put(resources::kConfigMaps, broken);
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return fixture.told().size() == 2; }));
    EXPECT_THAT(fixture.told(), UnorderedElementsAre("~b=1", "~c=1"));
    EXPECT_EQ(fixture.informer().find({"default", "a"})->field(0), "5") << "its last good record";
    api.put(resources::kConfigMaps, sound);
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_EQ(fixture.told().back(), "~a=1");
  });
}

TEST(Informer, AFailedCheckIsRepeatedAndBeginsNoEpoch) {
  with_synced(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.forget_requests();
    api.fail_next(3, 500, {}, "limit=1");
    api.cut_watches();
    CO_ASSERT_TRUE(co_await fixture.update("b", "2"));
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_THAT(fixture.told(), ElementsAre("~b=2"));
    EXPECT_EQ(fixture.informer().epoch(), 0U);
    EXPECT_EQ(api.count("GET", "limit=1"), 4U);
    EXPECT_EQ(api.count("GET", "watch=1"), 1U);
  });
}

// ---- subscribers ----

TEST(Informer, SeveralSubscribersShareOneWatch) {
  with_double(kStreaming, [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    std::vector<std::string> first;
    std::vector<std::string> late;
    const auto tell = [](std::vector<std::string>& told) {
      return [&told](const Change& change) {
        told.push_back(std::string(change.type == Change::Type::added      ? "+"
                                   : change.type == Change::Type::modified ? "~"
                                                                           : "-") +
                       std::string(change.now->name()));
      };
    };
    const auto subscription = fixture.informer().subscribe(tell(first));
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.converges());
    EXPECT_THAT(first, UnorderedElementsAre("+a", "+b", "+c"));
    auto late_subscription = fixture.informer().subscribe(tell(late));
    EXPECT_THAT(late, UnorderedElementsAre("+a", "+b", "+c")) << "told at once";
    first.clear();
    late.clear();
    CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
    CO_ASSERT_TRUE(co_await fixture.remove("b"));
    CO_ASSERT_TRUE(co_await fixture.converges());
    EXPECT_THAT(first, ElementsAre("~a", "-b"));
    EXPECT_EQ(late, first);
    late_subscription.reset();
    CO_ASSERT_TRUE(co_await fixture.create("d", "1"));
    CO_ASSERT_TRUE(co_await fixture.converges());
    EXPECT_THAT(first, ElementsAre("~a", "-b", "+d"));
    EXPECT_EQ(late.size(), 2U);
    EXPECT_EQ(api.count("GET", "watch=1"), 1U);
  });
}

TEST(Informer, SubscriptionsBeginAndEndWithinACallback) {
  with_synced(kStreaming, [](FakeKubeApi&, KubeWatchFixture& fixture) -> Task<> {
    std::size_t by_first = 0;
    std::vector<std::string> by_second;
    Informer::Subscription first;
    Informer::Subscription second;
    first = fixture.informer().subscribe([&](const Change& change) {
      ++by_first;
      if (change.type != Change::Type::modified) return;
      second = fixture.informer().subscribe([&](const Change& now) {
        by_second.push_back(std::string(now.now->name()) + "=" +
                            std::string(now.now->field(0).value_or("")));
      });
      first.reset();
    });
    CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
    CO_ASSERT_TRUE(co_await fixture.converges());
    EXPECT_EQ(by_first, 3U + 1U);
    EXPECT_THAT(by_second, UnorderedElementsAre("a=2", "b=1", "c=1"))
        << "the change is in the store, and is not told twice";
    CO_ASSERT_TRUE(co_await fixture.update("a", "3"));
    CO_ASSERT_TRUE(co_await fixture.converges());
    EXPECT_EQ(by_first, 3U + 1U);
    EXPECT_EQ(by_second.back(), "a=3");
  });
}

TEST(Informer, KeepsWholeObjectsForThoseWhoAsk) {
  with_double(
      kStreaming,
      [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
        fixture.start();
        CO_ASSERT_TRUE(co_await fixture.converges());
        const auto* record = fixture.informer().find({"default", "b"});
        CO_ASSERT_TRUE(record != nullptr);
        EXPECT_EQ(nlohmann::json::parse(record->field(1).value()),
                  *api.find(resources::kConfigMaps, {"default", "b"}));
      },
      [](InformerOptions& options) { options.fields = FieldSet({"data.value", ""}); });
}

TEST(Informer, WatchesWhatAFieldSelectorChooses) {
  for (const auto& options : {kStreaming, kPaged}) {
    with_double(
        options,
        [](FakeKubeApi&, KubeWatchFixture& fixture) -> Task<> {
          fixture.start();
          CO_ASSERT_TRUE(co_await fixture.synced());
          CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
          CO_ASSERT_TRUE(co_await fixture.update("b", "2"));
          CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return fixture.told().size() == 2; }));
          EXPECT_THAT(fixture.told(), ElementsAre("+b=1", "~b=2"));
          EXPECT_EQ(fixture.informer().size(), 1U);
        },
        [](InformerOptions& informer) { informer.field_selector = "metadata.name=b"; });
  }
}

// As the chart's permissions for the Secrets of some clusters.
TEST(Informer, GoesOnAfterAWatchWithThePermissionForOneName) {
  for (const auto& options : {kStreaming, kPaged}) {
    with_double(
        options,
        [](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
          api.set_access([](const FakeKubeApi::Access& access) {
            return (access.verb != "list" && access.verb != "watch") || access.name == "b";
          });
          fixture.start();
          CO_ASSERT_TRUE(co_await fixture.synced());
          CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return api.open_watches() == 1; }));
          api.end_watches();
          CO_ASSERT_TRUE(
              co_await fixture.wait_until([&] { return api.count("GET", "limit=1") > 0; }));
          CO_ASSERT_TRUE(co_await fixture.update("b", "2"));
          CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return fixture.told().size() == 2; }));
          EXPECT_THAT(fixture.told(), ElementsAre("+b=1", "~b=2"));
          EXPECT_EQ(fixture.informer().last_error(), "");
        },
        [](InformerOptions& informer) { informer.field_selector = "metadata.name=b"; });
  }
}

// ---- the rest ----

TEST(Informer, DropsWhatKeepRefuses) {
  with_double(
      kStreaming,
      [](FakeKubeApi&, KubeWatchFixture& fixture) -> Task<> {
        fixture.start();
        CO_ASSERT_TRUE(co_await fixture.synced());
        CO_ASSERT_TRUE(co_await fixture.update("b", "2"));
        CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
        CO_ASSERT_TRUE(co_await fixture.remove("b"));
        CO_ASSERT_TRUE(co_await fixture.create("d", "1"));
        CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return fixture.told().size() == 4; }));
        EXPECT_THAT(fixture.told(), ElementsAre("+a=1", "+c=1", "~a=2", "+d=1"));
        EXPECT_EQ(fixture.informer().size(), 3U);
        EXPECT_EQ(
            metric(fixture,
                   "gitops_contract_watch_events_total{resource=\"configmaps\",type=\"dropped\"}"),
            "3");
      },
      [](InformerOptions& options) {
        options.keep = [](std::string_view, std::string_view name) { return name != "b"; };
      });
}

TEST(Informer, TellsWhatIsWrongAndRecovers) {
  test::LogCapture log;
  with_double(kStreaming, [&log](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
    api.set_access([](const FakeKubeApi::Access& access) { return access.verb != "watch"; });
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return api.count("GET", "watch=1") >= 4; }));
    EXPECT_FALSE(fixture.informer().has_synced());
    EXPECT_THAT(fixture.informer().last_error(), HasSubstr("403"));
    EXPECT_EQ(log.count("list or watch failed"), 1U) << log.text();
    EXPECT_FALSE(co_await fixture.informer().wait_synced(deadline_after(10ms)));
    api.set_access({});
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_EQ(fixture.informer().last_error(), "");
    EXPECT_EQ(log.count("work again"), 1U);
  });
}

TEST(Informer, EndsAtOnceWhenItsGroupIsCancelled) {
  for (const bool stalled : {true, false}) {
    with_double(kStreaming, [&](FakeKubeApi& api, KubeWatchFixture& fixture) -> Task<> {
      api.stall_watches(stalled);
      fixture.start();
      CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return api.open_watches() == 1; }));
      const auto before = Clock::now();
      co_await fixture.stop();
      EXPECT_LT(Clock::now() - before, 1s);
    });
  }
}

// A watch that stands still would look like one without news.
TEST(KindWatch, EndsWithTheFailureOfItsInformer) {
  const test::LogCapture quiet;
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    FakeKubeApi api(executor);
    CO_ASSERT_OK(api.start());
    api.put(resources::kConfigMaps, {{"metadata", {{"name", "a"}, {"namespace", "default"}}}});
    Metrics metrics;
    net::Resolver resolver(metrics);
    Client client(executor, resolver, api.cluster_config(), {}, "test");
    KindWatch watch(executor, client,
                    {.name = "configmaps",
                     .resource = resources::kConfigMaps,
                     .fields = FieldSet({}),
                     .ns = "default"},
                    {},
                    {.changed = [](const Change&) { throw std::runtime_error("broken"); },
                     .listed = [](const KindWatch&) -> Task<> { co_return; }},
                    metrics, "test", "in-cluster");
    std::string failure;
    TaskGroup group(executor,
                    [&failure](const std::string&, const std::string& what) { failure = what; });
    group.spawn("kind", [&watch] { return watch.run(); });
    EXPECT_TRUE(co_await test::eventually([&] { return !failure.empty(); }, "the failure"));
    EXPECT_THAT(failure, HasSubstr("broken"));
    group.cancel();
    co_await group.join();
    co_await api.stop();
  });
}

}  // namespace
}  // namespace gitops::k8s
