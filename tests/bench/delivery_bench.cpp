// What the delivery of events costs above the request itself, and what its journal holds and takes.

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <time.h>
#include <tuple>

#include <malloc.h>

#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/http/server.hpp"
#include "common/net/resolve.hpp"
#include "event-reporter/delivery/delivery.hpp"

namespace gitops::reporter {
namespace {

constexpr int kEvents = 20'000;
constexpr int kCallers = 32;
constexpr int kRounds = 5;

double micros(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

void row(const char* name, const char* unit, double ours, const char* peer, const char* ratio,
         const char* goal, const char* holds, const char* note) {
  std::printf(
      R"({"name":"%s","unit":"%s","ours":%.2f,"peer":%s,"ratio":%s,"goal":"%s","holds":%s,"note":"%s"})"
      "\n",
      name, unit, ours, peer, ratio, goal, holds, note);
}

const char* truth(bool value) {
  return value ? "true" : "false";
}

// An event of the usual size: 2 KB that gzip halves or so.
std::string payload() {
  std::string text = R"({"data":{"object":")";
  for (unsigned i = 0; text.size() < 2200; ++i) text += std::to_string(i * 2654435761U % 9973U);
  return text + R"("}})";
}

// CPU time of the process, so that others on the machine do not count.
Clock::duration cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// What `kEvents` calls of `one` take, by kCallers callers at a time.
Task<Clock::duration> timed(const Executor& executor, std::function<Task<>(int)> one) {
  TaskGroup callers(executor);
  const auto began = cpu_time();
  int next = 0;
  for (int i = 0; i < kCallers; ++i) {
    callers.spawn("caller", [&]() -> Task<> {
      while (next < kEvents) co_await one(next++);
    });
  }
  co_await callers.join();
  co_return cpu_time() - began;
}

Task<> bench_delivery(Executor executor) {
  http::Server server(executor, {.address = "127.0.0.1", .port = 0},
                      [](http::Exchange& exchange) -> Task<> {
                        if (co_await exchange.read_body(1'000'000)) {
                          std::ignore = co_await exchange.reply({});
                        }
                      });
  if (!server.listen()) std::abort();
  http::Url url{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
  Metrics metrics;
  net::Resolver resolver(metrics);
  http::ClientOptions options;
  options.max_idle_per_host = kCallers;
  http::Client http(executor, resolver, options);
  auto token = Credential::fixed(Secret("a-token"));
  control_plane::Client client(http, url, [&] { return token.current(); });
  Delivery delivery(executor, client, token, {}, metrics);

  const auto body = payload();
  const auto plain = [&](int number) -> Task<> {
    const auto answer = co_await client.post(body, {.id = std::to_string(number)},
                                             deadline_after(std::chrono::minutes(1)));
    if (!answer) std::abort();
  };
  const auto whole = [&](int number) -> Task<> {
    co_await delivery.ready();
    const auto delivered = co_await delivery.deliver(
        {.part = "resource",
         .subject = "shop/app-" + std::to_string(number % 3000) + " apps/Deployment:shop/web",
         .id = std::to_string(number),
         .body = body});
    if (!delivered) std::abort();
  };
  co_await timed(executor, plain);  // warms up
  auto best_plain = Clock::duration::max();
  auto best_whole = Clock::duration::max();
  for (int round = 0; round < kRounds; ++round) {
    best_plain = std::min(best_plain, co_await timed(executor, plain));
    best_whole = std::min(best_whole, co_await timed(executor, whole));
    std::fprintf(stderr, "round %d of %d\n", round + 1, kRounds);
  }
  const double per_plain = micros(best_plain) / kEvents;
  const double per_whole = micros(best_whole) / kEvents;
  row("CPU to deliver an event, both ends in one process", "us", per_whole,
      std::to_string(per_plain).c_str(), std::to_string(per_whole / per_plain).c_str(), "<= 1.25",
      truth(per_whole / per_plain <= 1.25), "peer: the request alone; 32 callers, 2.2 KB");
  co_await server.stop(Clock::now());
  http.close_idle();
}

void bench_journal() {
  const auto before = mallinfo2().uordblks;
  Journal journal({});
  constexpr int kAdds = 200'000;
  const auto began = cpu_time();
  for (int i = 0; i < kAdds; ++i) {
    journal.add(
        "shop/app-" + std::to_string(i % 10'000) + " apps/Deployment:shop/web",
        {.time = wall_now(),
         .part = "resource",
         .event_id = "3f0c1f2e-0d53-4a0e-9f0e-5c1d8a7b9e10/48211/apps:v1:Deployment:shop:web/" +
                     std::to_string(i),
         .result = "acknowledged",
         .http_status = 200,
         .bytes = 2200});
  }
  const auto took = cpu_time() - began;
  const double held = static_cast<double>(mallinfo2().uordblks - before) / (1024 * 1024);
  row("journal, one entry", "us", micros(took) / kAdds, "null", "null", "<= 5",
      truth(micros(took) / kAdds <= 5), "10,000 subjects that do not all fit");
  row("journal, memory when full", "MiB", held, "null", "null", "<= 5", truth(held <= 5),
      "limit 4 MiB, estimated by the journal itself");
  const auto asked = cpu_time();
  const auto text = journal.json_all(10'000);
  const double answer = micros(cpu_time() - asked);
  if (text.empty()) std::abort();
  row("journal, all of it as JSON", "us", answer, "null", "null", "<= 10000",
      truth(answer <= 10'000), "on the loop, when somebody asks");
}

}  // namespace
}  // namespace gitops::reporter

int main() {
  using namespace gitops;
  Loop loop(1);
  asio::co_spawn(
      loop, [&] { return reporter::bench_delivery(loop.get_executor()); },
      [](const std::exception_ptr& failure) {
        if (failure) std::rethrow_exception(failure);
      });
  loop.run();
  reporter::bench_journal();
}
