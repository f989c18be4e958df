// Streams that are opened for users, in test time: rules, an API server and scripted servers of Argo.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app-proxy/logs/open_streams_fixture.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;
using Kind = LogEvent::Kind;
using Fixture = OpenStreamsFixture;

Task<std::vector<std::string>> rest(LogFeed& feed) {
  std::vector<std::string> all;
  while (true) {
    const auto event = co_await feed.next();
    if (event.kind == Kind::end) co_return all;
    all.push_back(event.kind == Kind::line ? event.line.pod + ": " + event.line.content
                                           : "error " + event.error);
  }
}

// The watch itself lasts an hour.
TEST(OpenStreams, ARuleThatIsWithdrawnEndsTheEventsOfAPod) {
  with_streams({}, [](Fixture& fixture) -> Task<> {
    for (const auto& owner : {LogStreams::EventsOwner{.app = {.name = "shop", .ns = "argocd"}},
                              LogStreams::EventsOwner{.workflow = "w"}}) {
      co_await fixture.allow({"VIEW"});
      fixture.put_event("first");
      auto opened = co_await fixture.streams->events(
          fixture.bob, owner, {.kind = "Pod", .ns = "web", .name = "ui-1"}, deadline_after(10s));
      CO_ASSERT_OK(opened);
      auto& feed = **opened;
      EXPECT_EQ((co_await feed.next()).line.content, "first");
      while (feed.has_more()) (void)co_await feed.next();
      co_await sleep_for(31s);
      fixture.put_event("second");
      EXPECT_EQ((co_await feed.next()).line.content, "second") << "the right is still there";
      co_await fixture.allow({"SYNC"});
      co_await sleep_for(31s);
      fixture.put_event("third");
      EXPECT_THAT(co_await rest(feed), ElementsAre("error Forbidden"));
      for (const char* name : {"first", "second", "third"}) {
        fixture.cluster.remove(fixture.events, {"web", name});
      }
    }
  });
}

TEST(OpenStreams, EventsAreThoseOfAnObjectOfTheApplication) {
  with_streams({}, [](Fixture& fixture) -> Task<> {
    co_await fixture.allow({"VIEW"});
    const LogStreams::EventsOwner shop{.app = {.name = "shop", .ns = "argocd"}};
    const auto refused = [&](argo::ResourceRef of) -> Task<ErrorCode> {
      const auto opened =
          co_await fixture.streams->events(fixture.bob, shop, std::move(of), deadline_after(10s));
      co_return opened ? ErrorCode::internal : opened.error().code;
    };
    EXPECT_EQ(co_await refused({.kind = "Deployment", .ns = "web", .name = "ui-1"}),
              ErrorCode::forbidden);
    EXPECT_EQ(co_await refused({.group = "x", .kind = "Pod", .ns = "web", .name = "ui-1"}),
              ErrorCode::forbidden);
    // A kind that would change the question to the API server.
    EXPECT_EQ(co_await refused({.kind = "Pod,type=Warning", .ns = "web", .name = "ui-1"}),
              ErrorCode::invalid_argument);
  });
}

TEST(OpenStreams, APodThatCannotBeReadNowMayBeOneOfTheWorkflow) {
  with_streams({}, [](Fixture& fixture) -> Task<> {
    co_await fixture.allow({"VIEW"});
    const auto refusal = [&]() -> Task<ErrorCode> {
      const auto opened = co_await fixture.streams->events(
          fixture.bob, LogStreams::EventsOwner{.workflow = "w"},
          {.kind = "Pod", .ns = "web", .name = "ui-1"}, deadline_after(10s));
      co_return opened ? ErrorCode::internal : opened.error().code;
    };
    fixture.cluster.fail_next(1'000, 503, {}, "/pods/ui-1");
    EXPECT_EQ(co_await refusal(), ErrorCode::unavailable);
    fixture.cluster.end_faults();
    fixture.cluster.remove(k8s::resources::kPods, {"web", "ui-1"});
    EXPECT_EQ(co_await refusal(), ErrorCode::forbidden);
    fixture.cluster.remove_type(k8s::resources::kPods);
    EXPECT_EQ(co_await refusal(), ErrorCode::unavailable) << "a 404 without a reason";
  });
}

TEST(OpenStreams, TheReaderIsToldWhichContainersOfAComponentCannotBeRead) {
  with_streams({.own_namespace = "runtime"}, [](Fixture& fixture) -> Task<> {
    fixture.cluster.append_pod_log("2026-03-04T09:15:27Z a line\n");
    for (const char* pod : {"reporter-0", "reporter-1"}) fixture.put_pod("runtime", pod);
    const auto refuse = [&](std::string pods) {
      fixture.cluster.set_access([pods](const test::FakeKubeApi::Access& access) {
        return access.subresource != "log" || !pods.contains(access.name);
      });
    };
    const auto read = [&](std::string pod = {}) -> Task<Result<std::vector<std::string>>> {
      auto opened = co_await fixture.streams->component(
          fixture.ann, "reporter", {.pod = std::move(pod), .tail_lines = 1}, deadline_after(10s));
      if (!opened) co_return std::unexpected(opened.error());
      co_return co_await rest(**opened);
    };
    const std::string first =
        "error reporter-0/main: the API server does not let the runtime do this; see the log of "
        "the runtime";
    refuse("reporter-0");
    const auto one = co_await read();
    CO_ASSERT_OK(one);
    EXPECT_THAT(*one, UnorderedElementsAre(first, "reporter-1: a line"));
    refuse("reporter-0 reporter-1");
    const auto none = co_await read();
    CO_ASSERT_OK(none);
    EXPECT_THAT(*none, ElementsAre(first, testing::StartsWith("error reporter-1/main: ")));
    // Nothing else was asked for: the error itself.
    EXPECT_EQ((co_await read("reporter-1")).error().subcode, "ARGO_NOT_AVAILABLE");
  });
}

TEST(OpenStreams, TheLogOfAComponentBeforeItsRestartIsAskedFor) {
  with_streams({.own_namespace = "runtime"}, [](Fixture& fixture) -> Task<> {
    fixture.put_pod("runtime", "reporter-0");
    for (const bool previous : {false, true}) {
      auto opened = co_await fixture.streams->component(
          fixture.ann, "reporter", {.previous = previous}, deadline_after(10s));
      CO_ASSERT_OK(opened);
      (void)co_await rest(**opened);
      EXPECT_EQ(fixture.cluster.count("GET", "previous=true"), previous ? 1U : 0U);
    }
  });
}

// argo-server has no such limit, and tells the times of lines only when it is asked to.
TEST(OpenStreams, TheLogOfAWorkflowEndsAtTheTimeThatIsWanted) {
  with_streams({}, [](Fixture& fixture) -> Task<> {
    const auto read = [&](std::string until) -> Task<std::vector<std::string>> {
      auto opened = co_await fixture.streams->workflow(
          fixture.ann, "web", "w", {.until_time = std::move(until)}, deadline_after(10s));
      EXPECT_TRUE(opened);
      if (!opened) co_return std::vector<std::string>();
      co_return co_await rest(**opened);
    };
    EXPECT_THAT(co_await read(""), ElementsAre("w-1: one", "w-1: two"));
    EXPECT_TRUE(fixture.log_query.contains("timestamps=false"));
    EXPECT_THAT(co_await read("2026-03-04T09:15:27Z"), ElementsAre("w-1: one"));
  });
}

TEST(OpenStreams, StreamsThatAreBeingOpenedCountAsOpen) {
  with_streams({.max_streams = 1}, [](Fixture& fixture) -> Task<> {
    fixture.is_released = false;
    const auto open = [&] {
      return fixture.streams->application(fixture.ann, {.name = "shop", .ns = "argocd"}, {}, {},
                                          deadline_after(10s));
    };
    std::vector<int> answers;
    TaskGroup readers(fixture.users.executor);
    for (int i = 0; i < 2; ++i) {
      readers.spawn("reader", [&]() -> Task<> {
        const auto opened = co_await open();
        answers.push_back(opened ? 200 : opened.error().http_status);
      });
    }
    // One waits for Argo CD; the other was refused.
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.asked + answers.size() >= 2; },
                                          "both requests"));
    EXPECT_THAT(answers, ElementsAre(429));
    fixture.is_released = true;
    fixture.released.notify_all();
    co_await readers.join();
    EXPECT_THAT(answers, ElementsAre(429, 200));
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.streams->open() == 0; },
                                          "the end of all streams"));
    // One that cannot be opened gives its place back.
    EXPECT_FALSE(co_await fixture.streams->component(fixture.ann, "none", {}, deadline_after(10s)));
    EXPECT_EQ(fixture.streams->open(), 0U);
    EXPECT_TRUE(co_await open());
  });
}

}  // namespace
}  // namespace gitops::app_proxy
