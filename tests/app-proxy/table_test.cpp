#include "app-proxy/resolvers/table.hpp"

#include <algorithm>
#include <ranges>
#include <set>

#include <gmock/gmock.h>

#include "common/graphql/engine.hpp"

namespace gitops::app_proxy {
namespace {

struct Fixture {
  VersionInfo version;
  ResolverDependencies dependencies{.version = version};
  std::vector<FieldRow> rows = table(dependencies);
  Audit audit{""};
};

TEST(ResolverTable, EveryFieldOfTheSchemaHasItsRow) {
  Fixture fixture;
  const auto engine =
      graphql::Engine::make(std::string(schema_text()), resolvers(fixture.rows, fixture.audit));
  ASSERT_TRUE(engine) << engine.error().message;
  fixture.rows.pop_back();
  const auto short_of_one =
      graphql::Engine::make(std::string(schema_text()), resolvers(fixture.rows, fixture.audit));
  ASSERT_FALSE(short_of_one);
  EXPECT_THAT(short_of_one.error().message, testing::HasSubstr("Subscription.podEvents"));
}

TEST(ResolverTable, OnlyTheVersionIsForEverybody) {
  const Fixture fixture;
  std::set<std::string> open;
  std::set<std::string> changes_by_query;
  for (const FieldRow& row : fixture.rows) {
    if (row.permission == Permission::anyone) open.insert(row.field);
    if (row.root == RootType::mutation) EXPECT_TRUE(row.changes) << row.field;
    if (row.root == RootType::query && row.changes) changes_by_query.insert(row.field);
  }
  EXPECT_THAT(open, testing::ElementsAre("versionInfo"));
  // For clients that ask for them so; the same fields are under Mutation.
  EXPECT_THAT(changes_by_query, testing::ElementsAre("appRollback", "refresh", "sync",
                                                     "terminateApplicationOperation"));
  for (const auto& field : changes_by_query) {
    EXPECT_TRUE(std::ranges::any_of(fixture.rows, [&](const FieldRow& row) {
      return row.root == RootType::mutation && row.field == field;
    })) << field;
  }
}

TEST(ResolverTable, AuditedArgumentsAreThereAndNoSecrets) {
  const Fixture fixture;
  const auto schema = graphql::Schema::parse(std::string(schema_text()));
  ASSERT_TRUE(schema);
  for (const FieldRow& row : fixture.rows) {
    const auto* root = (*schema)->find(row.root == RootType::query      ? "Query"
                                       : row.root == RootType::mutation ? "Mutation"
                                                                        : "Subscription");
    const auto* field = root->field(row.field);
    ASSERT_TRUE(field) << row.field;
    for (const auto path : row.subject) {
      const graphql::InputValue* value = nullptr;
      for (const auto part : std::views::split(path, '.')) {
        const std::string name(part.begin(), part.end());
        value = value == nullptr ? field->argument(name) : value->type->named->input(name);
        ASSERT_TRUE(value) << row.field << " " << path;
        EXPECT_THAT(name, testing::Not(testing::AnyOf("data", "files", "secureData",
                                                      testing::HasSubstr("oken"),
                                                      testing::HasSubstr("assword"))))
            << row.field;
      }
    }
  }
}

// A runtime without any feature still tells its version.
TEST(ResolverTable, EveryOtherFieldNamesWhatItNeeds) {
  const Fixture fixture;
  for (const FieldRow& row : fixture.rows) {
    const bool is_version = row.field == "versionInfo";
    EXPECT_EQ(row.needs.empty(), is_version) << row.field;
    EXPECT_EQ(row.missing.has_value(), !is_version) << row.field;
  }
}

TEST(ResolverTable, UnknownFieldsNeedAUser) {
  const Fixture fixture;
  EXPECT_EQ(permission_of(fixture.rows, RootType::query, "versionInfo"), Permission::anyone);
  EXPECT_EQ(permission_of(fixture.rows, RootType::query, "__typename"), Permission::anyone);
  EXPECT_EQ(permission_of(fixture.rows, RootType::mutation, "versionInfo"), Permission::user);
  EXPECT_EQ(permission_of(fixture.rows, RootType::query, "__schema"), Permission::user);
}

}  // namespace
}  // namespace gitops::app_proxy
