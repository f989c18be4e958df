#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "daemons/router_harness.hpp"
#include "support/wait.hpp"

// One client, or one event source, that takes as much as it can get: what it leaves for others.
namespace gitops::test {
namespace {

using namespace std::chrono_literals;

std::string request(const std::string& method, const std::string& target,
                    const std::string& more = {}, const std::string& body = {}) {
  return RouterHarness::request(method, target, more, body);
}

std::string head_of(const std::string& target, std::size_t length, const std::string& more = {}) {
  return "POST " + target + " HTTP/1.1\r\nHost: a\r\n" + more +
         "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}

TEST(RouterFairness, AC14_StalledWebhooksKeepNoGenuineOneOut) {
  for (const std::size_t length : {1'000UL, 100'000UL}) {
    SCOPED_TRACE(length);
    RouterHarness bed;
    std::vector<RawSocket> stalled;
    for (int i = 0; i < 64; ++i) {
      stalled.emplace_back(bed.port());
      stalled.back().send(head_of("/webhooks/argo/github", length) + std::string(length / 2, 'x'));
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(raw_call(bed.port(), request("POST", "/webhooks/argo/github", "", "{}")).status,
                200);
    }
    // Those that stall reach nobody; they end when their time is over.
    EXPECT_EQ(bed.events().requests().size(), 3U);
  }
}

TEST(RouterFairness, AC14_AClientThatDripsIsEnded) {
  RouterHarness bed({.environment = {{"REQUEST_BODY_DEADLINE", "2s"}}});
  RawSocket slow(bed.port());
  slow.send(head_of("/app-proxy/x", 100'000) + std::string(50'000, 'x'));
  std::jthread drip([&slow](const std::stop_token& stop) {
    while (!stop.stop_requested() && slow.send("x")) std::this_thread::sleep_for(100ms);
  });
  EXPECT_EQ(slow.read_response().status, 408);
}

TEST(RouterFairness, AC13_ForgedWebhooksDoNotUseUpTheRate) {
  const TempDir folder;
  const auto secret = (folder / "secret").string();
  write_file(secret, "s3cret");
  RouterHarness bed({.environment = {{"WEBHOOK_RATE", "1"},
                                     {"WEBHOOK_SIGNATURES", "argo/github=github:" + secret}}});
  const auto call = [&bed](const std::string& key) {
    return raw_call(bed.port(),
                    request("POST", "/webhooks/argo/github",
                            "X-Hub-Signature-256: sha256=" + hmac_sha256(key, "{}") + "\r\n", "{}"))
        .status;
  };
  for (int i = 0; i < 20; ++i) EXPECT_EQ(call("forged"), 401);
  EXPECT_EQ(call("s3cret"), 200);
}

TEST(RouterFairness, AC14_LargeSignedBodiesThatDripKeepNoGenuineOneOut) {
  const TempDir folder;
  const auto secret = (folder / "secret").string();
  write_file(secret, "s3cret");
  RouterHarness bed({.environment = {{"WEBHOOK_SIGNATURES", "argo/github=github:" + secret}}});
  constexpr std::size_t kLarge = 22'000'000;
  const std::string part(kLarge, 'x');
  const std::string forged = "X-Hub-Signature-256: sha256=" + std::string(64, '0') + "\r\n";
  std::vector<RawSocket> slow;
  for (int i = 0; i < 3; ++i) {
    slow.emplace_back(bed.port());
    slow.back().send(head_of("/webhooks/argo/github", kLarge + 1'000'000, forged));
  }
  // The first is read; the others wait until there is room for all of them.
  std::vector<std::jthread> senders;
  for (auto& socket : slow) senders.emplace_back([&] { socket.send(part); });
  const std::string body(2'000'000, 'g');
  EXPECT_EQ(
      raw_call(bed.port(),
               request("POST", "/webhooks/argo/github",
                       "X-Hub-Signature-256: sha256=" + hmac_sha256("s3cret", body) + "\r\n", body))
          .status,
      200);
  EXPECT_EQ(bed.events().requests().at(0).body.size(), body.size());
  bed.process().kill();  // ends the senders
}

TEST(RouterFairness, LookupsThatHangKeepNobodyElseWaiting) {
  RecordingUpstream app_proxy("app-proxy");
  RouterHarness bed({.environment = {{"LD_PRELOAD", hosts_and_silent_names()},
                                     {"APP_PROXY_URL",
                                      "http://app-proxy.test:" + std::to_string(app_proxy.port())},
                                     {"TRUSTED_PROXIES", "127.0.0.1"},
                                     {"CONNECT_TIMEOUT", "1m"}}});
  bed.set_hosts(
      "127.0.0.1 app-proxy.test\n"
      "127.0.0.1 github-eventsource-svc.argo.svc.cluster.local\n");
  require_until([&] { return bed.get("/readyz").status == 200; }, 10s, "app-proxy to be found");
  std::vector<RawSocket> hang;
  const auto webhook = [](const std::string& client, const std::string& source) {
    return request("POST", "/webhooks/argo/" + source, "X-Forwarded-For: " + client + "\r\n", "{}");
  };
  const auto ask_in_vain = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      hang.emplace_back(bed.port());
      hang.back().send(webhook("10.0.0.1", "silent-" + std::to_string(i)));
    }
  };
  ask_in_vain(0, 16);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(bed.get("/app-proxy/x").body, "app-proxy");
  RecordProperty("app_proxy_ms",
                 static_cast<int>((std::chrono::steady_clock::now() - begin) / 1ms));
  // More than may wait for one client; the rest is refused, with the time to come again.
  ask_in_vain(16, 66);
  const auto refused = raw_call(bed.port(), webhook("10.0.0.1", "silent-66"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.header("Retry-After"));
  // The name of this event source is not known yet.
  EXPECT_EQ(raw_call(bed.port(), webhook("10.0.0.2", "github")).status, 200);
  EXPECT_EQ(bed.get("/app-proxy/x").body, "app-proxy");
}

TEST(RouterFairness, AClientThatPipelinesWithoutEndDelaysNobody) {
  RouterHarness bed;
  RawSocket flood(bed.port());
  std::atomic<bool> over = false;
  std::jthread writer([&] {
    std::string many;
    for (int i = 0; i < 500; ++i) many += request("GET", "/healthz");
    while (!over && flood.send(many)) {
    }
  });
  RawSocket reader(::dup(flood.descriptor()));
  std::jthread discard([&] {
    while (!over && !reader.read_some().empty()) {
    }
  });
  std::vector<std::chrono::microseconds> times;
  RawSocket other(bed.port(), 5s);
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    other.send(request("GET", "/healthz"));
    EXPECT_EQ(other.read_response().status, 200);
    times.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begin));
  }
  over = true;
  bed.process().kill();
  std::ranges::sort(times);
  RecordProperty("p50_us", static_cast<int>(times[100].count()));
  RecordProperty("p99_us", static_cast<int>(times[198].count()));
}

TEST(RouterFairness, AnUploadPassesOnAConnectionThatCarriedALongAnswer) {
  const auto answer = [](const RecordedRequest& seen, RawSocket& socket) {
    if (seen.target() != "/app-proxy/long") {
      return RecordingUpstream::reply(socket, std::to_string(seen.body.size()));
    }
    socket.send("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 8; ++i) {  // each within the timeout, all of them not
      socket.send("1\r\nx\r\n");
      std::this_thread::sleep_for(500ms);
    }
    return socket.send("0\r\n\r\n");
  };
  RouterHarness bed(
      {.environment = {{"BODY_TIMEOUT", "3s"}, {"ANSWER_TIMEOUT", "10s"}}, .app_proxy = answer});
  EXPECT_EQ(bed.get("/app-proxy/long").body, "xxxxxxxx");
  const std::string upload(12'000'000, 'u');
  const auto response = raw_call(bed.port(), request("POST", "/app-proxy/up", "", upload));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "12000000");
  EXPECT_EQ(bed.app_proxy().requests().at(0).connection,
            bed.app_proxy().requests().at(1).connection);
}

TEST(RouterFairness, AReloadResetsNeitherGatesNorConnections) {
  const TempDir folder;
  const auto file = folder / "routes.yaml";
  write_file(file, "webhook-concurrency: 1\n");
  std::binary_semaphore go(0);
  const auto answer = [&go](const RecordedRequest& seen, RawSocket& socket) {
    if (seen.target().ends_with("waits")) EXPECT_TRUE(go.try_acquire_for(20s));
    return RecordingUpstream::reply(socket, "done");
  };
  RouterHarness bed(
      {.environment = {{"ROUTES_FILE", file.string()}, {"UPSTREAM_IDLE_TIMEOUT", "1m"}},
       .events = answer});
  EXPECT_EQ(bed.get("/app-proxy/x").status, 200);
  RawSocket inside(bed.port());
  inside.send(request("GET", "/webhooks/argo/github/waits"));
  require_until([&] { return bed.events().requests().size() == 1; }, 30s, "the webhook to arrive");
  write_file(file, "webhook-concurrency: 1\nwebhook-max-body: 1Mi\n");
  require_until([&] { return bed.log().contains("took over the routes file"); }, 30s,
                "the routes to change");
  EXPECT_EQ(bed.get("/webhooks/argo/github").status, 429);
  go.release();
  EXPECT_EQ(inside.read_response().status, 200);
  EXPECT_EQ(bed.get("/webhooks/argo/github").status, 200);
  EXPECT_EQ(bed.get("/app-proxy/x").status, 200);
  // The router also connects to app-proxy to see whether it is there.
  const auto seen = bed.app_proxy().requests();
  EXPECT_EQ(seen.at(0).connection, seen.at(1).connection);
  EXPECT_EQ(bed.events().connections(), 1U);
}

TEST(RouterFairness, TheLimitOfOpenFilesIsRaisedOrToldAbout) {
  RouterHarness plenty({.environment = {{"MAX_CONNECTIONS", "100"}}});
  EXPECT_FALSE(plenty.log().contains("RLIMIT_NOFILE"));
  RouterHarness few({.environment = {{"MAX_CONNECTIONS", "1000000"}}});
  const auto limits = read_file("/proc/" + std::to_string(few.process().pid()) + "/limits");
  const auto line = limits.substr(limits.find("Max open files"));
  std::size_t soft = 0;
  std::size_t hard = 0;
  ASSERT_EQ(std::sscanf(line.c_str(), "Max open files %zu %zu", &soft, &hard), 2);
  EXPECT_EQ(soft, std::min<std::size_t>(hard, 2'000'100));
  EXPECT_EQ(few.log().contains("RLIMIT_NOFILE"), hard < 2'000'100);
}

TEST(RouterFairness, ReadinessTellsStrangersNoNames) {
  RouterHarness bed({.environment = {{"APP_PROXY_URL", "http://internal-name.invalid:1"}}});
  const auto answer = bed.get("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "app-proxy cannot be reached\n");
  EXPECT_TRUE(raw_call(bed.admin_port(), request("GET", "/readyz")).body.contains("app-proxy"));
}

}  // namespace
}  // namespace gitops::test
