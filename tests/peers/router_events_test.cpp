#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/router_harness.hpp"
#include "peers/bus_subscription.hpp"
#include "peers/peer_events.hpp"
#include "peers/shared_cluster.hpp"
#include "support/run_coro.hpp"

// Webhooks of GitHub through the real router to a real event source and its bus.
namespace gitops::test {
namespace {

using nlohmann::json;

constexpr const char* kBody = R"({"ref":"refs/heads/main","after":"4f1d2c"})";
constexpr const char* kSecret = "s3cret";

// An event source of type github that asks for no signature: only the router does.
struct PeerRouterEvents : testing::Test {
  void SetUp() override {
    GITOPS_REQUIRE_PEER(PeerCluster);
    GITOPS_REQUIRE_PEER(PeerEvents);
    events = std::make_unique<PeerEvents>(shared_cluster());
    shared_cluster().create_namespace(ns);
    events->serve(ns, "github", PeerEvents::github_push(target(), port), port);
  }

  std::string target() const { return "/webhooks/" + ns + "/github"; }

  // A router that knows the Service of the event source by its full name, as cluster DNS has it,
  // and may find it at one loopback address alone.
  std::unique_ptr<RouterHarness> router(const std::string& allowed_address,
                                        const std::string& signatures = {}) const {
    auto bed = std::make_unique<RouterHarness>(
        RouterHarness::Options{.environment = {{"WEBHOOK_ALLOWED_NAMESPACES", ns},
                                               {"WEBHOOK_PORT", std::to_string(port)},
                                               {"WEBHOOK_SIGNATURES", signatures},
                                               {"CLUSTER_DOMAIN", "shop.internal"},
                                               {"UPSTREAM_ALLOWED_ADDRESSES", allowed_address}}});
    bed->set_hosts("127.0.0.1 github-eventsource-svc." + ns + ".svc.shop.internal\n");
    return bed;
  }

  int deliver(const RouterHarness& bed, const std::string& delivery,
              const std::string& signature) const {
    std::string fields = "Content-Type: application/json\r\nX-GitHub-Event: push\r\n";
    fields += "X-GitHub-Delivery: " + delivery + "\r\n";
    if (!signature.empty()) fields += "X-Hub-Signature-256: sha256=" + signature + "\r\n";
    return raw_call(bed.port(), RouterHarness::request("POST", target(), fields, kBody)).status;
  }

  // What the event source says that it was sent.
  int requests() {
    static constexpr std::string_view kLine = "\"received a request, processing it...\"";
    const std::string log = read_file(events->event_source().log_file());
    int count = 0;
    for (auto at = log.find(kLine); at != std::string::npos; at = log.find(kLine, at + 1)) ++count;
    return count;
  }

  std::string ns = "router-events-" + random_hex(6);
  int port = free_port();
  std::unique_ptr<PeerEvents> events;
};

TEST_F(PeerRouterEvents, AC13_OnlySignedWebhooksReachTheEventSourceAndItsBus) {
  const TempDir folder;
  write_file(folder / "secret", kSecret);
  const auto strict = router("127.0.0.1", ns + "/github=github:" + (folder / "secret").string());
  const auto open = router("127.0.0.1");
  run_coro(
      [&]() -> Task<> {
        BusSubscription bus(co_await asio::this_coro::executor);
        const auto deadline = deadline_after(std::chrono::seconds(20));
        CO_ASSERT_OK(co_await bus.open(events->bus_port(), "default.>", deadline));
        const std::string forged = hmac_sha256("other", kBody);
        EXPECT_EQ(deliver(*strict, "forged", forged), 401);
        EXPECT_EQ(deliver(*strict, "unsigned", ""), 401);
        EXPECT_EQ(requests(), 0);
        EXPECT_EQ(events->stored_messages(), 0);

        EXPECT_EQ(deliver(*strict, "signed", hmac_sha256(kSecret, kBody)), 200);
        // Where no signature is asked for, the forged one is the event source's matter.
        EXPECT_EQ(deliver(*open, "unchecked", forged), 200);
        for (const auto* delivery : {"signed", "unchecked"}) {
          const auto message = co_await bus.next(deadline);
          CO_ASSERT_OK(message);
          EXPECT_EQ(message->subject, "default.github.push");
          const auto data = json::parse(PeerEvents::data_of(message->payload));
          EXPECT_EQ(data.at("/body/after"_json_pointer), "4f1d2c");
          const auto& headers = data.at("headers");
          EXPECT_EQ(headers.at("X-Github-Delivery"), json::array({delivery}));
          EXPECT_EQ(headers.at("X-Forwarded-For"), json::array({"127.0.0.1"}));
        }
      },
      std::chrono::seconds(30));
  EXPECT_EQ(events->stored_messages(), 2);
  EXPECT_EQ(requests(), 2);
}

TEST_F(PeerRouterEvents, AC02_AnEventSourceAtALoopbackAddressIsReachedByPermissionOnly) {
  EXPECT_EQ(deliver(*router("127.0.0.2"), "refused", ""), 502);
  EXPECT_EQ(requests(), 0);
  EXPECT_EQ(deliver(*router("127.0.0.1"), "permitted", ""), 200);
  EXPECT_EQ(requests(), 1);
}

}  // namespace
}  // namespace gitops::test
