#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/signal_set.hpp>

#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "daemons/router_harness.hpp"
#include "narrator.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_events.hpp"
#include "plane.hpp"
#include "scene.hpp"
#include "support/git_server.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"
#include "world.hpp"

// gitops-demo: plays the scene "a change in Git reaches the control plane" on one machine, with a
// webhook, a request from outside and one through the tunnel, and checks every line. Exit code 0:
// every check passed.
namespace gitops::demo {
namespace {

constexpr const char* kHelp =
    "usage: gitops-demo [--real] [--keep]\n"
    "  --real  play on the real Kubernetes, Argo CD and Argo Events (./dev peers builds them)\n"
    "  --keep  leave everything running afterwards and print how to play with it\n";

// All programs of the scene are on this machine; a proxy of the user's is not to be asked for them.
constexpr std::array kProxyVariables = {"http_proxy",  "HTTP_PROXY", "https_proxy",
                                        "HTTPS_PROXY", "all_proxy",  "ALL_PROXY"};

constexpr std::array kEndSignals = {SIGINT, SIGTERM, SIGHUP};

// Set when the user interrupts the start.
volatile std::sig_atomic_t ended_early = 0;

struct Options {
  bool real = false;
  bool keep = false;
};

// What Debian has of the scene's programs and this machine lacks.
std::optional<std::string> missing_packages() {
  std::string packages;
  for (const auto* name : {"curl", "git", "lighttpd", "openssl"}) {
    if (!test::find_program(name)) packages += std::string(" ") + name;
  }
  if (!test::find_hosts_library()) packages += " libnss-wrapper";
  if (packages.empty()) return test::GitServer::missing();
  return "programs are missing that the demo runs; on Debian: sudo apt-get install -y" + packages;
}

Task<int> play(Options options, Narrator& narrator) {
  const auto executor = co_await asio::this_coro::executor;
  asio::thread_pool pool(2);
  // Starts the real programs on the main thread, since they end with the thread that started them.
  for (const int number : kEndSignals) {
    std::signal(number, [](int) {
      ended_early = 1;
      test::interrupt_waits();
    });
  }
  test::GitServer git;
  World world = co_await (options.real ? real_world(narrator)(pool, git) : embedded_world(git));
  Plane plane(executor, pool, world.database);
  Scene scene(narrator, world, git, plane, pool);

  std::string failure;
  bool interrupted = ended_early != 0;
  if (!interrupted) {
    TaskGroup tasks(executor, [&](const std::string&, const std::string& what) {
      if (!interrupted) failure = what;
    });
    tasks.spawn("scene", [&]() -> Task<> {
      co_await scene.play(options.keep);
      if (!options.keep) co_return;
      scene.print_hints();
      co_await scene.follow();
    });
    asio::basic_signal_set<Executor> signals(executor);
    for (const int number : kEndSignals) signals.add(number);
    signals.async_wait([&](const boost::system::error_code& error, int) {
      if (error) return;
      interrupted = true;
      test::interrupt_waits();  // ends waits of jobs on the pool
      tasks.cancel();
    });
    co_await tasks.join();
  }
  if (failure.empty()) {
    try {
      co_await scene.stop_daemons();
    } catch (const Failure& late) {
      failure = late.what();
    }
  }
  if (!failure.empty()) {
    narrator.failure(failure);
    narrator.plain(scene.daemon_logs(15));
  } else if (interrupted) {
    narrator.step(options.keep ? "stopped" : "interrupted");
  }
  co_await scene.stop_servers();
  co_await world.stop();
  co_return failure.empty() && (!interrupted || options.keep) ? 0 : 1;
}

}  // namespace
}  // namespace gitops::demo

int main(int argc, char** argv) {
  using namespace gitops;
  demo::Options options;
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  for (const std::string_view argument : arguments.subspan(1)) {
    if (argument == "--real") {
      options.real = true;
    } else if (argument == "--keep") {
      options.keep = true;
    } else {
      const bool help = argument == "--help" || argument == "-h";
      std::fputs(demo::kHelp, help ? stdout : stderr);
      return help ? 0 : 2;
    }
  }
  for (const auto* name : demo::kProxyVariables) unsetenv(name);
  demo::Narrator narrator;
  auto lacking = demo::missing_packages();
  if (options.real && !lacking) lacking = test::PeerBed::missing();
  if (options.real && !lacking) lacking = test::PeerEvents::missing();
  if (lacking) {
    narrator.failure(*lacking);
    return 1;
  }
  configure_logging(LogLevel::off, LogFormat::text);
  std::signal(SIGPIPE, SIG_IGN);  // stop the programs even after the reader has left
  Loop loop(1);
  int exit_code = 1;
  asio::co_spawn(
      loop, [&]() -> Task<> { exit_code = co_await demo::play(options, narrator); },
      [&](const std::exception_ptr& failure) {
        if (!failure) return;
        try {
          std::rethrow_exception(failure);
        } catch (const std::exception& error) {
          if (demo::ended_early != 0) {
            narrator.step("interrupted");
          } else {
            narrator.failure(error.what());
          }
        }
      });
  loop.run();
  return exit_code;
}
