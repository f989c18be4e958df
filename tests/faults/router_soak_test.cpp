// The router at full rate with good and bad behaviour of clients and upstreams. Its memory and its
// number of descriptors must stay flat. The length is a number of requests; GITOPS_SOAK=1 makes it
// thirty minutes.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "daemons/router_harness.hpp"
#include "faults/router_soak_harness.hpp"

namespace gitops::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kShortParts = 4;
constexpr std::size_t kShortRounds = 40;  // of a client in one part
constexpr std::size_t kLongParts = 30;
constexpr std::size_t kMayGrow = 4 * 1024;  // KiB
constexpr std::size_t kMayOpen = 24;        // kept connections to three upstreams on two loops

TEST(RouterSoak, MemoryAndDescriptorsStayAsTheyAre) {
  const char* wish = std::getenv("GITOPS_SOAK");
  const bool is_long = wish != nullptr && std::string(wish) == "1";
  const TempDir folder;
  const auto write_routes = [&folder](std::size_t part) {
    write_file(folder / "routes.yaml",
               "webhook-rate: 0\nwebhook-concurrency: " + std::to_string(1'000 + part) + "\n");
  };
  write_routes(0);
  // No quarantine: the sanitizer's own memory would hide the router's.
  RouterHarness bed({.environment = {{"ROUTES_FILE", folder / "routes.yaml"},
                                     {"LOOPS", "2"},
                                     {"ASAN_OPTIONS", "quarantine_size_mb=1"}},
                     .app_proxy = answer,
                     .workflows = answer,
                     .events = answer,
                     .standard_output = "/dev/null"});
  std::atomic<std::size_t> requests = 0;
  const auto begin = Clock::now();
  std::vector<Sample> samples;
  const std::size_t parts = is_long ? kLongParts : kShortParts;
  while (samples.size() < parts && !HasFailure()) {
    const auto until = Clock::now() + minutes(1);
    samples.push_back(run_part(
        bed,
        [&](std::size_t rounds) {
          return is_long ? Clock::now() >= until : rounds >= kShortRounds;
        },
        requests));
    const auto& now = samples.back();
    std::printf("part %zu: %zu requests, %zu KiB, %zu descriptors\n", samples.size(),
                requests.load(), now.memory, now.descriptors);
    std::fflush(stdout);
    write_routes(samples.size());
  }
  ASSERT_EQ(samples.size(), parts);
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::printf("%.0f s, %.0f requests/s\n", took.count(),
              static_cast<double>(requests) / took.count());
  // The first part fills pools and caches.
  EXPECT_LE(samples.back().memory, samples[1].memory + kMayGrow);
  EXPECT_LE(samples.back().descriptors, samples[1].descriptors + kMayOpen);
  bed.process().signal(SIGTERM);
  EXPECT_EQ(bed.process().wait(seconds(30)), 0) << bed.log();  // the leak check included
}

}  // namespace
}  // namespace gitops::test
