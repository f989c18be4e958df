#include "chart/demo_load.hpp"

#include <string_view>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "support/run_coro.hpp"
#include "support/run_on.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using std::chrono::seconds;

constexpr auto kStartLimit = seconds(60);
constexpr auto kOutage = seconds(20);
constexpr auto kScrapeInterval = seconds(30);
constexpr const char* kApp = "shop";
constexpr const char* kResourceReporter = "resource-reporter";

double unix_time() {
  return std::chrono::duration<double>(wall_now().time_since_epoch()).count();
}

}  // namespace

DemoLoad::DemoLoad(const Executor& executor, demo::World& world, GitServer& git)
    : world_(world), git_(git), bed_(executor, world, git) {}

std::map<std::string, Day::Program> DemoLoad::programs() {
  return {{part::kReporter, {.pods = "runtime-event-reporter", .replicas = 3}},
          {kResourceReporter, {.pods = "cluster-event-reporter"}},
          {part::kPlane, {.pods = "control-plane", .is_stateful = false}},
          {part::kAppProxy, {.pods = "cap-app-proxy", .is_stateful = false}},
          {part::kRouter, {.pods = "internal-router", .is_stateful = false}},
          {part::kTunnelServer, {.pods = "tunnel-server"}},
          {part::kTunnelClient, {.pods = "codefresh-tunnel-client", .is_stateful = false}}};
}

void DemoLoad::start_resource_reporter() {
  resource_reporter_.emplace(ReporterProcess::command({}),
                             Environment{{"REPORTER_MODE", "resource"},
                                         {"WORKFLOW_NAMESPACES", "*"},
                                         {"POD_NAMESPACE", world_.app_namespace},
                                         {"KUBECONFIG", world_.kubeconfig},
                                         {"CODEFRESH_URL", bed_.plane().url()},
                                         {"CODEFRESH_TOKEN", bed_.token()}});
}

Task<> DemoLoad::start() {
  co_await bed_.start();
  const auto url = co_await run_on(bed_.pool(), [this] { return git_.create_repository(kApp); });
  co_await run_on(bed_.pool(), [this] {
    git_.commit(kApp,
                {{"first.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n"}},
                "first");
  });
  co_await world_.create_app(kApp, url);
  co_await commit();
  bed_.start_reporter();
  start_resource_reporter();
  CO_ASSERT_TRUE(co_await eventually([this] { return bed_.are_all_ready(); },
                                     "the suite to be ready", kStartLimit));
  CO_ASSERT_TRUE(co_await resource_reporter_->wait_for_readyz("ready\n"));
  users_.emplace(co_await asio::this_coro::executor, bed_, kApp);
  CO_ASSERT_TRUE(co_await eventually(
      [this]() -> Task<bool> {
        co_return (co_await users_->ask(SuiteUsers::Kind::application)).empty();
      },
      "an answer through the tunnel", kStartLimit));
}

Task<> DemoLoad::stop() {
  if (resource_reporter_) EXPECT_EQ(co_await resource_reporter_->stop(), 0);
  co_await bed_.stop();
}

Task<> DemoLoad::commit() {
  const auto number = std::to_string(++commits_);
  const auto revision = co_await run_on(bed_.pool(), [&] {
    return git_.commit(kApp,
                       {{"settings.yaml",
                         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: "
                         "{value: \"" +
                             number + "\"}\n"}},
                       "change " + number);
  });
  co_await world_.sync(kApp, revision);
}

Task<Frame> DemoLoad::scrape() {
  Frame frame;
  for (const auto& [name, program] : programs()) {
    const auto text =
        name == kResourceReporter
            ? co_await run_on(bed_.pool(),
                              [this] { return resource_reporter_->get("/metrics").body; })
            : co_await bed_.metrics(name);
    if (text.empty()) continue;
    frame.programs[name] = {.scrape = read_scrape(text, unix_time()), .start = starts_[name]};
  }
  co_return frame;
}

Task<> DemoLoad::work(Load load) {
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < load.commits; ++i) co_await commit();
  for (std::size_t i = 0; i < load.requests; ++i) {
    std::ignore = co_await users_->ask(i % 2 == 0 ? SuiteUsers::Kind::version
                                                  : SuiteUsers::Kind::application);
  }
  const auto end = begin + seconds(1);
  if (Clock::now() < end) co_await sleep_for(end - Clock::now());
}

Task<std::vector<Frame>> DemoLoad::record(Load load, std::size_t seconds) {
  std::vector<Frame> frames{co_await scrape()};
  while (frames.size() < seconds) {
    co_await work(load);
    frames.push_back(co_await scrape());
  }
  co_return frames;
}

Task<std::vector<Frame>> DemoLoad::record_restarts(Load load) {
  std::vector<Frame> frames{co_await scrape()};
  for (const auto& [name, program] : programs()) {
    if (name == kResourceReporter) {
      EXPECT_EQ(co_await resource_reporter_->stop(), 0);
      start_resource_reporter();
      EXPECT_TRUE(co_await resource_reporter_->wait_for_readyz("ready\n"));
    } else {
      co_await bed_.terminate(name);
      co_await bed_.start_again(name);
    }
    ++starts_[name];
    EXPECT_TRUE(co_await eventually([this] { return bed_.are_all_ready(); },
                                    "the suite to be ready after a restart of " + name,
                                    kStartLimit));
    for (int second = 0; second < 2; ++second) {
      co_await work(load);
      frames.push_back(co_await scrape());
    }
  }
  co_return frames;
}

Task<std::vector<Frame>> DemoLoad::record_outage(Load load) {
  const auto begin = Clock::now();
  std::vector<Frame> frames{co_await scrape()};
  bed_.kill(part::kPlane);
  while (Clock::now() < begin + kOutage) co_await work(load);
  co_await bed_.start_again(part::kPlane);
  ++starts_[part::kPlane];
  while (Clock::now() < begin + kScrapeInterval) co_await work(load);
  for (int second = 0; second < 5; ++second) {
    frames.push_back(co_await scrape());
    co_await work(load);
  }
  co_return frames;
}

}  // namespace gitops::test
