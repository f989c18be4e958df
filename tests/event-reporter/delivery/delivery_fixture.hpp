#pragma once

#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/task_group.hpp"
#include "common/net/resolve.hpp"
#include "doubles/fake_platform.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "support/log_capture.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "test_http/http_script.hpp"

// A Delivery, and a control plane that responds as the test says.
namespace gitops::reporter {

using namespace std::chrono_literals;

// A control plane that takes its time, counts what it is asked at the same time, and may have an
// opinion of its own about a request.
class Intake : public test::FakePlatform {
 public:
  using FakePlatform::FakePlatform;

  struct Arrival {
    std::size_t together;  // requests at this moment, this one included
    std::size_t answered;  // requests answered before
  };
  std::vector<Arrival> arrivals;
  std::chrono::milliseconds work{0};  // before each answer
  std::function<std::optional<http::Response>(const http::Request&)> opinion;

 protected:
  Task<> handle(http::Exchange& exchange) override {
    arrivals.push_back({.together = ++together_, .answered = answered_});
    {
      const Working working(*this);
      if (work > 0ms) co_await sleep_for(work);
    }
    ++answered_;
    auto response = opinion ? opinion(exchange.request()) : std::nullopt;
    if (!response) {
      co_await FakePlatform::handle(exchange);
      co_return;
    }
    const auto body = co_await exchange.read_body(64 * 1024 * 1024);
    if (body) std::ignore = co_await exchange.reply(std::move(*response));
  }

 private:
  struct Working {
    explicit Working(Intake& i) : intake(i) {}
    ~Working() { --intake.together_; }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;
    Intake& intake;
  };
  std::size_t together_ = 0;
  std::size_t answered_ = 0;
};

inline Delivery::Options fast_options() {
  Delivery::Options options;
  options.backoff = {.initial = 5ms, .max = 20ms};
  options.unauthorized_pause = 100ms;
  options.probe_turn = 300ms;
  options.breaker.pauses = {.initial = 10ms, .max = 80ms};
  options.breaker.max_permits = 16;
  return options;
}

inline Delivery::Event event(const std::string& id, const std::string& more = {}) {
  const nlohmann::json object = {{"kind", "ConfigMap"}, {"metadata", {{"name", id}}}};
  return {.part = "resource",
          .subject = "shop/web /ConfigMap:shop/" + id,
          .id = id,
          .body = nlohmann::json{{"data", {{"object", object.dump()}, {"more", more}}}}.dump()};
}

// A control plane and a Delivery to it; `reachable` decides whether it listens from the beginning.
struct DeliveryFixture {
  struct Setup {
    Delivery::Options options = fast_options();
    std::string token_file = {};  // empty: the token that the control plane expects
    bool reachable = true;
    std::optional<http::Url> url = {};  // somewhere else
  };
  DeliveryFixture(const Executor& with, const Setup& setup)
      : executor(with),
        platform(with),
        http(with, resolver, {}),
        token(setup.token_file.empty() ? Credential::fixed(Secret("platform-token"))
                                       : Credential::file(setup.token_file)),
        client(http, listening_url(setup), [this] { return token.current(); }),
        delivery(with, client, token, setup.options, metrics),
        tasks(with, [](const std::string& task, const std::string& what) {
          ADD_FAILURE() << task << ": " << what;
        }) {}

  // The port is known only once it has listened.
  http::Url listening_url(const Setup& setup) {
    if (setup.url) return *setup.url;
    EXPECT_TRUE(platform.start());
    return platform.url();
  }

  Task<Result<Delivered>> deliver(Delivery::Event what) {
    return delivery.deliver(std::move(what));
  }
  // What a worker of the reporter does with an event, until it is delivered.
  void insist(Delivery::Event what) {
    tasks.spawn("insist", [this, what = std::move(what)]() -> Task<> {
      while (true) {
        co_await delivery.ready();
        auto delivered = co_await delivery.deliver(what);
        if (delivered && delivered->kind != Delivered::Kind::put_off) {
          ended[what.id] = delivered->kind;
          co_return;
        }
        ++put_back;
      }
    });
  }
  void insist_on(int count) {
    for (int i = 0; i < count; ++i) insist(event("e-" + std::to_string(i)));
  }
  // Opens it by an outage that lasts. The first probe may be due at once, since the pause before it is
  // random and may be none.
  Task<> open() {
    co_await platform.stop();
    const auto failed = co_await delivery.deliver(event("opens"));
    EXPECT_FALSE(failed);
    EXPECT_NE(delivery.breaker().state(), Breaker::State::closed);
  }
  // The same, and no probe is due for `pause`.
  Task<> open_for(std::chrono::seconds pause) {
    platform.fail_next(1, 503, pause);
    const auto failed = co_await delivery.deliver(event("opens"));
    EXPECT_FALSE(failed);
    EXPECT_EQ(delivery.breaker().state(), Breaker::State::open);
  }
  [[nodiscard]] std::map<std::string, int> acknowledgements() const {
    std::map<std::string, int> out;
    for (const auto& report : platform.reports()) ++out[report.event_id];
    return out;
  }
  double metric(const std::string& line_start) {
    const auto text = metrics.expose();
    const auto at = text.find("\n" + line_start);
    if (at == std::string::npos) return -1;
    const auto line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    return std::stod(line.substr(line.rfind(' ') + 1));
  }

  Executor executor;
  Metrics metrics;
  Intake platform;
  net::Resolver resolver{metrics};
  http::Client http;
  Credential token;
  control_plane::Client client;
  Delivery delivery;
  TaskGroup tasks;
  std::map<std::string, Delivered::Kind> ended;
  int put_back = 0;
};

inline void with_delivery(const std::function<Task<>(DeliveryFixture&)>& body,
                          const DeliveryFixture::Setup& setup = {}) {
  const test::LogCapture log;
  test::run_in_test_time([&]() -> Task<> {
    DeliveryFixture fixture(co_await asio::this_coro::executor, setup);
    if (!setup.reachable) co_await fixture.platform.stop();
    co_await body(fixture);
    fixture.tasks.cancel();
    co_await fixture.tasks.join();
    EXPECT_EQ(fixture.delivery.breaker().in_flight(), 0U);
    co_await fixture.platform.stop();
    fixture.http.close_idle();
  });
}

}  // namespace gitops::reporter
