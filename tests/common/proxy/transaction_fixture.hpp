#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "common/net/memory_channel.hpp"
#include "common/proxy/server.hpp"
#include "common/proxy/transaction.hpp"
#include "support/run_coro.hpp"

// A proxy between clients and upstreams in memory.
namespace gitops::proxy {

using namespace std::chrono_literals;

inline const std::string kGet = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

// The record of a request.
struct Recorded {
  int status = 0;
  Failure failure = Failure::none;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  bool reused = false;
  std::string path;
  bool operator==(const Recorded&) const = default;
};

class TransactionFixture {
 public:
  explicit TransactionFixture(const Executor& executor, const SharedLimits& limits = {})
      : totals(std::make_shared<Totals>(limits)), executor_(executor), arrived_(executor) {
    auto made = std::make_shared<Route>();
    made->name = "r";
    made->host = "up";
    made->limits.websocket = true;
    made->upstream = std::make_shared<Upstream>(
        Dialer{.dial = [this](Deadline, const auto&) { return dial(); }}, UpstreamOptions{});
    route = made;
    server = std::make_unique<Server>(
        executor, ServerOptions{.totals = totals},
        Policy{.decide = [this](const http::RequestHead& head,
                                const PeerInfo&) { return decide(head); },
               .failed =
                   [](const http::RequestHead*, const Route*, Failure failure, int status,
                      std::string_view) {
                     return http::Response{
                         .status = status, .headers = {}, .body = std::string(to_string(failure))};
                   },
               .done =
                   [this](const TransactionRecord& record) {
                     records.push_back(
                         {record.status, record.failure, record.bytes_in, record.bytes_out,
                          record.reused,
                          record.head == nullptr ? "" : std::string(record.head->path)});
                   }});
  }

  // Connects a new client and returns its end of the connection.
  net::MemoryChannel& connect(std::size_t capacity = 64 * 1024,
                              const std::string& from = "192.0.2.1") {
    auto [near, far] = net::MemoryChannel::pair(executor_, capacity);
    server->adopt(std::move(near), {.address = asio::ip::make_address(from), .text = from});
    clients_.push_back(std::move(far));
    return *clients_.back();
  }
  // Waits for the n-th connection to the upstream and returns its far end.
  Task<net::MemoryChannel*> upstream(std::size_t n = 0) {
    while (upstreams.size() <= n) co_await arrived_.wait();
    co_return upstreams[n].get();
  }

  Decision decide(const http::RequestHead& head) {
    if (head.path == "/own") return http::Response{.status = 200, .headers = {}, .body = "own"};
    Forward forward{.route = route, .target = head.target};
    if (verify) {
      const auto body = std::make_shared<std::string>();
      forward.inspection = std::make_unique<RequestInspection>();
      forward.inspection->inspect = [this, body](std::string_view part) {
        body->append(part);
        inspected.append(part);
      };
      forward.inspection->admit = [this, body](const WholeRequest& request,
                                               std::shared_ptr<void>&) -> std::optional<Verdict> {
        auto refusal = verify(request.head, *body);
        if (!refusal) return std::nullopt;
        return [](http::Response answer) -> Verdict { co_return answer; }(std::move(*refusal));
      };
      if (keeps) {
        forward.inspection->undelivered = [this](const WholeRequest& request,
                                                 const Problem& problem) -> Verdict {
          Kept item{.failure = problem.failure, .bytes = std::string(request.forwarded_head)};
          for (const auto part : request.body) item.bytes.append(part);
          kept.push_back(std::move(item));
          co_return http::Response{.status = 202, .headers = {}, .body = "kept"};
        };
      }
    }
    if (count_admissions) {
      ++admitted;
      forward.admission = {this, [](TransactionFixture* bed) { --bed->admitted; }};
    }
    return forward;
  }

  Task<Result<std::unique_ptr<net::Channel>>> dial() {
    if (dial_takes > 0s) co_await sleep_for(dial_takes);
    if (dial_error) co_return std::unexpected(*dial_error);
    auto [near, far] = net::MemoryChannel::pair(executor_, upstream_capacity);
    upstreams.push_back(std::move(far));
    arrived_.notify_all();
    co_return std::move(near);
  }

  RouteLimits& limits() { return route->limits; }

  std::shared_ptr<Totals> totals;
  std::shared_ptr<Route> route;
  std::function<std::optional<http::Response>(const http::RequestHead&, std::string_view)> verify;
  std::string inspected;  // of the bodies of all requests that are verified
  // Those that are verified and were not delivered.
  struct Kept {
    Failure failure = Failure::none;
    std::string bytes;
  };
  bool keeps = false;
  std::vector<Kept> kept;
  std::optional<Error> dial_error;
  Clock::duration dial_takes{};
  std::size_t upstream_capacity = 64 * 1024;
  std::deque<std::unique_ptr<net::MemoryChannel>> upstreams;
  std::vector<Recorded> records;
  bool count_admissions = false;
  int admitted = 0;
  std::unique_ptr<Server> server;

 private:
  Executor executor_;
  Event arrived_;
  std::deque<std::unique_ptr<net::MemoryChannel>> clients_;
};

// Reads until `until` is in the text, or the connection ends ("<end>") or breaks ("<reset>").
inline Task<std::string> read(net::MemoryChannel& channel, std::string until = "<end>") {
  std::string text;
  std::array<char, 8192> room;
  while (!text.contains(until)) {
    const auto size = co_await channel.read_some(room);
    if (!size) co_return text + "<reset>";
    if (*size == 0) co_return text + "<end>";
    text.append(room.data(), *size);
  }
  co_return text;
}

inline Task<> send(net::MemoryChannel& channel, std::string text) {
  CO_ASSERT_OK(co_await channel.write(text));
}

// A new client that sent `request`, and the upstream, which has read it up to `until`.
struct Connections {
  net::MemoryChannel& client;
  net::MemoryChannel& upstream;
};

inline Task<Connections> ask(TransactionFixture& bed, std::string request = kGet,
                             std::string until = "\r\n\r\n") {
  auto& client = bed.connect();
  co_await send(client, std::move(request));
  auto& upstream = *co_await bed.upstream();
  (void)co_await read(upstream, std::move(until));
  co_return Connections{client, upstream};
}

using Play = std::function<Task<>(TransactionFixture&)>;

inline void play(const Play& test_body, const SharedLimits& limits = {}) {
  test::run_in_test_time([&]() -> Task<> {
    TransactionFixture bed(co_await asio::this_coro::executor, limits);
    co_await test_body(bed);
    co_await bed.server->stop(Clock::now());
  });
}

}  // namespace gitops::proxy
