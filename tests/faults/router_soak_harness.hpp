#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "daemons/router_harness.hpp"
#include "support/wait.hpp"

// Clients of every behaviour, and samples of the memory of the router.
namespace gitops::test {

inline constexpr std::size_t kClients = 4;

inline std::string request(const std::string& method, const std::string& target,
                           const std::string& more = {}, const std::string& body = {}) {
  return RouterHarness::request(method, target, more, body);
}

inline bool answer(const RecordedRequest& seen, RawSocket& socket) {
  static const std::string kLarge(100'000, 'x');
  const auto target = seen.target();
  if (target.ends_with("/die")) return false;
  if (target.ends_with("/large")) {
    return RecordingUpstream::reply(socket, kLarge, "Content-Type: application/json\r\n");
  }
  if (target.ends_with("/cut")) {
    socket.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart");
    return false;
  }
  if (target.ends_with("/socket")) {
    socket.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\n\r\n");
    socket.send(socket.read_exactly(5));
    return false;
  }
  return RecordingUpstream::reply(socket, seen.body);
}

// One client: a kept connection, and new ones for requests that end theirs.
class SoakClient {
 public:
  explicit SoakClient(std::uint16_t port) : port_(port), kept_(port) {}

  // Sends some requests of every kind and returns their number.
  std::size_t round() {
    static const std::string kBody(3'000, 'b');
    for (int i = 0; i < 8; ++i) expect("POST", "/app-proxy/x", "", kBody, 200);
    expect("GET", "/workflows/y", "", "", 200);
    expect("POST", "/webhooks/argo/github", "", kBody, 200);
    expect("POST", "/webhooks/argo/nobody", "", kBody, 404);
    expect("GET", "/nope", "", "", 404);
    expect("GET", "/app-proxy/large", "Accept-Encoding: gzip\r\n", "", 200);
    expect("GET", "/app-proxy/large", "", "", 200);
    expect("GET", "/app-proxy/die", "", "", 502);
    kept_.send(request("POST", "/app-proxy/x", "Transfer-Encoding: chunked\r\n") +
               "4\r\nabcd\r\n0\r\n\r\n");
    check(kept_.read_response(), 200, "chunked");

    check(raw_call(port_, "GET /app-proxy/../x HTTP/1.1\r\nHost: a\r\n\r\n"), 400, "dots");
    check(raw_call(port_, "GET / HTTP/7\r\n\r\n"), 400, "version");
    {
      RawSocket cut(port_);
      cut.send(request("GET", "/app-proxy/cut"));
      EXPECT_FALSE(cut.read_response().complete);
    }
    {
      RawSocket leaving(port_);
      leaving.send("POST /app-proxy/x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nsome");
      leaving.reset();
    }
    {
      RawSocket socket(port_);
      socket.send(
          request("GET", "/app-proxy/socket", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
      check(socket.read_response(), 101, "WebSocket");
      socket.send("hello");
      EXPECT_EQ(socket.read_exactly(5), "hello");
    }
    return 21;
  }

 private:
  void expect(const std::string& method, const std::string& target, const std::string& more,
              const std::string& body, int status) {
    kept_.send(request(method, target, more, body));
    check(kept_.read_response(), status, target);
  }
  static void check(const RawResponse& response, int status, const std::string& what) {
    EXPECT_EQ(response.status, status) << what;
    EXPECT_TRUE(response.complete || status == 101) << what;
  }

  std::uint16_t port_;
  RawSocket kept_;
};

struct Sample {
  std::size_t memory = 0;  // KiB
  std::size_t descriptors = 0;
};

// Lets all clients do rounds until `ended`, then waits until the router is idle.
inline Sample run_part(RouterHarness& bed, const std::function<bool(std::size_t rounds)>& ended,
                       std::atomic<std::size_t>& requests) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t running = kClients;
  {
    std::vector<std::jthread> clients;
    for (std::size_t i = 0; i < kClients; ++i) {
      clients.emplace_back([&] {
        SoakClient client(bed.port());
        for (std::size_t rounds = 0; !ended(rounds) && !testing::Test::HasFailure(); ++rounds) {
          requests += client.round();
        }
        const std::lock_guard lock(mutex);
        --running;
        changed.notify_all();
      });
    }
    std::unique_lock lock(mutex);
    // Drop the upstreams' records, which would grow without bound.
    while (!changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
      bed.forget();
    }
  }
  bed.forget();
  const auto idle = [&bed] {
    return http_call({.url = "http://127.0.0.1:" + std::to_string(bed.admin_port()) + "/metrics"})
        .body.contains("\ngitops_router_connections 0\n");
  };
  EXPECT_TRUE(wait_until(idle, std::chrono::seconds(20), "the clients' connections to end"));
  return {.memory = bed.memory(), .descriptors = bed.descriptors()};
}

}  // namespace gitops::test
