// Lists, which select by statements where they can, against the check of a single Application: random rules and
// Applications, on both engines.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/resolvers/random_rules.hpp"
#include "control-plane/resolvers/visible.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr int kApplications = 200;
constexpr int kRounds = 50;

// Returns the uids of all pages of the list.
std::set<std::string> listed(store::Connection& db, std::int64_t account,
                             const Visibility& visibility) {
  ObjectList list;
  list.append = [](std::string& out, const ObjectState& state, const ParsedBody&) {
    out += Json(state.uid).dump();
  };
  std::set<std::string> uids;
  if (!limit_to_visible(list, visibility)) return uids;
  list.window.limit = 17;  // several pages
  while (true) {
    const auto page = Json::parse(must(object_slice(db, account, list)));
    for (const auto& edge : page["edges"]) uids.insert(edge["node"].get<std::string>());
    if (page["pageInfo"]["hasNextPage"] != true) return uids;
    SliceArguments next{.after = page["pageInfo"]["endCursor"]};
    next.first = 17;
    list.window = must(page_window(next, kObjectKeyNumbers));
  }
}

void check_cases(store::Engine engine, unsigned seed) {
  with_graphql(
      [&](GraphqlFixture& graphql) -> Task<> {
        auto checked = co_await graphql.accounts.database.with_writer(
            AccountsFixture::soon(), [&](store::Connection& db) -> Result<std::int64_t> {
              const auto account = graphql.sample.acme.number;
              RandomRules random(seed);
              Seeder seeder(engine);
              std::vector<ObjectName> names;
              for (int i = 0; i < kApplications; ++i) {
                const auto application = random.application(i);
                const auto runtime = random.one_of("rt", 2);
                seeder.store(db, account, app_event(application), runtime);
                names.push_back({.runtime = runtime,
                                 .object_namespace = application["metadata"]["namespace"],
                                 .name = application["metadata"]["name"]});
              }
              std::int64_t cases = 0;
              std::int64_t shown = 0;
              const std::vector<std::string> teams{"team0"};
              for (int round = 0; round < kRounds; ++round) {
                const Visibility visibility(random.rules(), teams);
                const auto uids = listed(db, account, visibility);
                for (const auto& name : names) {
                  const auto found = must(find_visible(db, account, name, visibility));
                  EXPECT_EQ(found.has_value(), uids.contains("uid-" + name.name))
                      << "seed " << seed << ", round " << round << ", " << name.name;
                  ++cases;
                  shown += found ? 1 : 0;
                }
              }
              // Neither everything nor nothing, or the cases would say little.
              EXPECT_GT(shown, cases / 50);
              EXPECT_LT(shown, cases / 2);
              return cases;
            });
        EXPECT_EQ(must(std::move(checked)), 10'000);
      },
      engine);
}

TEST(VisibleCases, ListsAgreeWithSingleChecksOnSqlite) {
  check_cases(store::Engine::sqlite, std::random_device{}());
}

TEST(VisibleCases, ListsAgreeWithSingleChecksOnPostgres) {
  check_cases(store::Engine::postgres, std::random_device{}());
}

}  // namespace
}  // namespace gitops::control_plane_server
