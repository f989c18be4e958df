// The exporter beside a scripted collector: batches, outages, refusals, and the end of a process.
#include "common/daemon/trace_exporter.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "test_http/canned_server.hpp"

namespace gitops {
namespace {

using test::CannedServer;
using test::eventually;
using test::run_coro;

http::Response answer(int status, std::string body = "{}") {
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

// A tracer that records everything, and its exporter to a collector with these answers.
struct Fixture {
  Fixture(const Executor& executor, std::vector<http::Response> answers)
      : collector(executor, std::move(answers)) {
    tracer.record(1);
    auto url = collector.url();
    url.path = "/base/";
    exporter.emplace(
        executor, tracer, metrics, Credential::fixed(Secret(std::string("api-key=canary"))),
        TraceExporter::Options{.collector = url,
                               .resource = {.program = "p", .version = "1", .instance = "i"},
                               .pause = std::chrono::milliseconds(10),
                               .batch = 4});
  }
  void make_spans(int count) {
    for (int i = 0; i < count; ++i) tracer.begin("work").end();
  }
  [[nodiscard]] std::string counted(const std::string& result) {
    const auto text = metrics.expose();
    const auto line = "gitops_trace_spans_total{result=\"" + result + "\"} ";
    const auto at = text.find(line);
    if (at == std::string::npos) return "none";
    const auto begin = at + line.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  // Number of spans in the request of that index.
  [[nodiscard]] std::size_t spans(std::size_t request) const {
    const auto body = nlohmann::json::parse(collector.seen().at(request).body);
    return body["resourceSpans"][0]["scopeSpans"][0]["spans"].size();
  }

  Metrics metrics;
  Tracer tracer;
  CannedServer collector;
  std::optional<TraceExporter> exporter;
};

Task<> end(Fixture& fixture, TaskGroup& tasks) {
  tasks.cancel();
  co_await tasks.join();
  co_await fixture.collector.stop();
}

TEST(TraceExporter, SendsBatchesWithTheHeaders) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Fixture fixture(executor, {answer(200)});
    TaskGroup tasks(executor);
    fixture.make_spans(6);
    tasks.spawn("traces", [&] { return fixture.exporter->run(); });
    CO_ASSERT_TRUE(co_await eventually([&] { return fixture.counted("sent") == "6"; }, "spans"));
    EXPECT_EQ(fixture.spans(0), 4U);
    EXPECT_EQ(fixture.spans(1), 2U);
    const auto& request = fixture.collector.seen().front();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/base/v1/traces");
    EXPECT_EQ(request.headers.find("Content-Type"), "application/json");
    EXPECT_EQ(request.headers.find("api-key"), "canary");
    co_await end(fixture, tasks);
  });
}

TEST(TraceExporter, SendsAgainWhatWasNotTaken) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Fixture fixture(executor, {answer(503), answer(429), answer(200)});
    TaskGroup tasks(executor);
    fixture.make_spans(1);
    tasks.spawn("traces", [&] { return fixture.exporter->run(); });
    CO_ASSERT_TRUE(co_await eventually([&] { return fixture.counted("sent") == "1"; }, "the span"));
    EXPECT_EQ(fixture.collector.seen().size(), 3U);
    EXPECT_EQ(fixture.collector.seen()[0].body, fixture.collector.seen()[2].body);
    co_await end(fixture, tasks);
  });
}

TEST(TraceExporter, GivesUpWhatIsRefused) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Fixture fixture(
        executor,
        {answer(400), answer(200, R"({"partialSuccess":{"rejectedSpans":"1"}})"), answer(200)});
    TaskGroup tasks(executor);
    fixture.make_spans(7);
    tasks.spawn("traces", [&] { return fixture.exporter->run(); });
    CO_ASSERT_TRUE(co_await eventually([&] { return fixture.counted("sent") == "2"; }, "spans"));
    EXPECT_EQ(fixture.counted("refused"), "5");
    co_await end(fixture, tasks);
  });
}

TEST(TraceExporter, SendsWhatIsLeftAtTheEnd) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Fixture fixture(executor, {answer(200)});
    fixture.make_spans(5);
    co_await fixture.exporter->flush(deadline_after(std::chrono::seconds(10)));
    EXPECT_EQ(fixture.counted("sent"), "5");
    co_await fixture.collector.stop();
  });
}

// The end of a process does not wait for a collector that is away.
TEST(TraceExporter, EndsWithoutACollector) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Fixture fixture(executor, {answer(200)});
    co_await fixture.collector.stop();
    fixture.make_spans(5);
    co_await fixture.exporter->flush(deadline_after(std::chrono::seconds(10)));
    EXPECT_EQ(fixture.counted("sent"), "0");
  });
}

}  // namespace
}  // namespace gitops
