// A daemon that fails on request, for daemon_test.cpp.

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "common/core/worker_pool.hpp"
#include "common/daemon/daemon.hpp"

namespace gitops {
namespace {

struct Config {
  std::string fault = "none";
  std::int64_t size = 3;
  std::chrono::milliseconds stop_takes{0};
  Secret token;
};

// Owns only its tasks. The configured fault decides what fails and when.
class App {
 public:
  App(DaemonContext context, const Config& config)
      : context_(std::move(context)),
        config_(config),
        tasks_(context_.executor, [this](const std::string& task, const std::string& what) {
          context_.fail(task + ": " + what);
        }) {
    if (config.fault == "make") throw std::runtime_error("no App today");
  }

  Task<Result<void>> start() {
    if (config_.fault == "start") co_return fail(ErrorCode::unavailable, "nobody there");
    if (config_.fault == "start-throws") throw std::runtime_error("start went wrong");
    if (config_.fault == "start-hangs") co_await sleep_until(kNever);
    tasks_.spawn("work", [this]() -> Task<> {
      if (config_.fault == "task") throw std::runtime_error("lost its way");
      co_await sleep_until(kNever);
    });
    if (config_.fault == "handler") {
      asio::post(context_.executor, [] { throw std::runtime_error("out of a handler"); });
    }
    if (config_.fault == "thread") {
      std::thread([] { throw std::runtime_error("out of a thread"); }).join();
    }
    if (config_.fault == "pool") {
      tasks_.spawn("blocks", [this]() -> Task<> {
        (void)co_await pool_.run(kNever, [](const std::stop_token&) {
          std::this_thread::sleep_for(std::chrono::hours(1));
        });
      });
    }
    co_return Result<void>();
  }

  Task<> stop(Deadline) {
    if (config_.fault == "stop-throws") throw std::runtime_error("stop went wrong");
    if (config_.fault == "stop-hangs") co_await sleep_until(kNever);
    if (config_.fault == "stop-deaf") {
      co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
      co_await sleep_until(kNever);
    }
    co_await sleep_for(config_.stop_takes);
    tasks_.cancel();
    if (config_.fault != "pool") co_await tasks_.join();
  }

  [[nodiscard]] std::string not_ready_because() const {
    return config_.fault == "not-ready" ? "the cache is empty" : "";
  }

 private:
  DaemonContext context_;
  const Config& config_;
  WorkerPool pool_{{.name = "test"}, context_.metrics};
  TaskGroup tasks_;
};

DaemonSpec test_daemon() {
  const auto config = std::make_shared<Config>();
  DaemonSpec spec;
  spec.name = "test-daemon";
  spec.summary = "Does nothing, in several ways";
  spec.admin_address_env = "METRICS_LISTEN_ADDRESS";
  spec.bind = [config](ConfigReader& reader) {
    reader.add({"fault", {"TEST_FAULT"}, "What goes wrong"}, config->fault);
    reader.add({"size", {"TEST_SIZE"}, "How many"}, config->size, 1, 5);
    reader.add({"stop-takes", {}, "How long the end takes"}, config->stop_takes,
               std::chrono::milliseconds(0), std::chrono::hours(1));
    reader.add_secret({"token", {"TEST_TOKEN"}, "Shows whom it is"}, config->token);
    reader.check({"size", "token"}, [config] {
      return config->size == 5 && config->token.empty() ? std::string("5 needs a token")
                                                        : std::string();
    });
  };
  spec.make = [config](DaemonContext context) {
    DaemonApp frame;
    frame.commands["/settings"] = [read_again = context.read_again](std::string_view) {
      Config next;
      const auto mistakes = read_again([&next](ConfigReader& reader) {
        reader.add({"size", {"TEST_SIZE"}, "How many"}, next.size, 1, 5);
      });
      if (!mistakes) return AdminPage{.body = "unchanged"};
      return AdminPage{.body = mistakes->empty() ? "size " + std::to_string(next.size)
                                                 : mistakes->front()};
    };
    const auto app = std::make_shared<App>(std::move(context), *config);
    frame.start = [app] { return app->start(); };
    frame.stop = [app](Deadline deadline) { return app->stop(deadline); };
    frame.ready_checks = {{"cache", [app] { return app->not_ready_because(); }},
                          {"always", [] { return std::string(); }}};
    frame.report = [] { return StatusReport{status_count("things", 3)}; };
    frame.pages["/things"] = [](std::string_view query) {
      return AdminPage{.body = "{\"asked\":\"" + std::string(query) + "\"}"};
    };
    frame.commands["/flood"] = [n = 0](std::string_view) mutable {
      const Log log("flood");
      for (const int end = n + 10'000; n < end; ++n) log.info("line", {{"n", n}});
      return AdminPage{.body = "done"};
    };
    frame.pages["/healthz"] = [](std::string_view) { return AdminPage{.body = "hidden"}; };
    return frame;
  };
  return spec;
}

}  // namespace
}  // namespace gitops

int main(int argc, char** argv) {
  return gitops::run_daemon(gitops::test_daemon(), argc, argv);
}
