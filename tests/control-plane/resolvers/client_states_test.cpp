// Random states of the store on both engines: no query of a public client is answered with a value that makes the client
// fail. GITOPS_SEED replays a seed; GITOPS_LONG=1 looks at more states.
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include <gmock/gmock.h>

#include "control-plane/resolvers/client_states_fixture.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr int kStates = 25;  // of a seed

struct ClientStates : testing::TestWithParam<store::Engine> {};

TEST_P(ClientStates, NoResponseBreaksAClient) {
  const char* only = std::getenv("GITOPS_SEED");
  const unsigned first = only == nullptr ? 1 : static_cast<unsigned>(std::stoul(only));
  const unsigned seeds = only != nullptr ? 1 : std::getenv("GITOPS_LONG") != nullptr ? 60 : 6;
  const auto all = client_queries();
  std::map<std::string, std::size_t> values;
  for (unsigned seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("GITOPS_SEED=" + std::to_string(seed));
    std::mt19937 random(seed);
    with_graphql(
        [&](GraphqlFixture& graphql) -> Task<> {
          StatesFixture fixture(graphql, GetParam(), random);
          for (int state = 0; state < kStates && !HasFailure(); ++state) {
            co_await fixture.change_state();
            for (const auto& query : all) values[query.name] += co_await fixture.look(query);
          }
        },
        GetParam());
  }
  if (only != nullptr || HasFailure()) return;
  // Each query had objects to show.
  for (const auto& query : all) EXPECT_GT(values[query.name], 100U) << query.name;
}

TEST_P(ClientStates, MutationsSucceedOrSayWhy) {
  std::mt19937 random(7);
  std::map<std::string, int> successes;
  with_graphql(
      [&](GraphqlFixture& graphql) -> Task<> {
        StatesFixture fixture(graphql, GetParam(), random);
        for (int round = 0; round < 30 && !HasFailure(); ++round) {
          for (const auto& mutation : requests_of_file(true)) {
            // The token of the runtime ends with it.
            if (mutation.root_field.starts_with("delete")) continue;
            if (co_await fixture.change(mutation)) ++successes[mutation.name];
          }
        }
        for (const auto& mutation : requests_of_file(true)) {
          if (co_await fixture.change(mutation)) ++successes[mutation.name];
        }
      },
      GetParam());
  for (const auto* name : {"create-runtime", "report-errors", "suggest-isc-repo"}) {
    EXPECT_GT(successes[name], 3) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ClientStates,
                         testing::Values(store::Engine::sqlite, store::Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
