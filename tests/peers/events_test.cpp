#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peers/bus_subscription.hpp"
#include "peers/peer_events.hpp"
#include "peers/shared_cluster.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;

TEST(PeerEventsTest, AWebhooksPostAppearsOnTheBus) {
  GITOPS_REQUIRE_PEER(PeerCluster);
  GITOPS_REQUIRE_PEER(PeerEvents);
  PeerEvents events(shared_cluster());
  shared_cluster().create_namespace("events");
  const int port = free_port();
  const json spec = {
      {"webhook",
       {{"push", {{"port", std::to_string(port)}, {"endpoint", "/push"}, {"method", "POST"}}}}}};
  events.serve("events", "hooks", spec.dump(), port);
  EXPECT_EQ(events.stored_messages(), 0);

  run_coro(
      [&]() -> Task<> {
        BusSubscription bus(co_await asio::this_coro::executor);
        const auto deadline = deadline_after(std::chrono::seconds(20));
        CO_ASSERT_OK(co_await bus.open(events.bus_port(), "default.>", deadline));
        const auto posted = http_call({.method = "POST",
                                       .url = "http://127.0.0.1:" + std::to_string(port) + "/push",
                                       .headers = {"Content-Type: application/json"},
                                       .body = R"({"ref":"refs/heads/main"})"});
        EXPECT_EQ(posted.status, 200) << posted.body;
        const auto message = co_await bus.next(deadline);
        CO_ASSERT_OK(message);
        EXPECT_EQ(message->subject, "default.hooks.push");
        const auto event = json::parse(message->payload);
        EXPECT_EQ(event.at("specversion"), "1.0");
        EXPECT_EQ(event.at("source"), "hooks");
        EXPECT_EQ(event.at("subject"), "push");
        const auto data = json::parse(PeerEvents::data_of(message->payload));
        EXPECT_EQ(data.at("/body/ref"_json_pointer), "refs/heads/main");
      },
      std::chrono::seconds(30));
  EXPECT_EQ(events.stored_messages(), 1);
}

}  // namespace
}  // namespace gitops::test
