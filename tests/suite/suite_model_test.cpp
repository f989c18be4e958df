// The oracle of the suite's history sees each kind of wrong row.
#include "suite/suite_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kKind = "ConfigMap";

// "shop", whose second commit wrote "a" and deleted "c"; "visitor" is on the list only.
struct SuiteModelTest : testing::Test {
  SuiteModelTest() {
    model.sync("shop", "1111111", "first", {{"a", "1"}, {"b", "1"}, {"c", "1"}});
    model.sync("shop", "2222222", "second", {{"a", "2"}, {"c", std::nullopt}});
    model.sync("visitor", "3333333", "hello", {{"v", "1"}}, false);
    const RowState shop{
        .sync = "SYNCED", .health = "HEALTHY", .revision = "2222222", .message = "second"};
    rows[{kListPage, "Application", "shop"}] = shop;
    rows[{"shop", "Application", "shop"}] = shop;
    rows[{"shop", kKind, "a"}] = {
        .sync = "SYNCED", .health = "", .revision = "2222222", .message = ""};
    rows[{"shop", kKind, "b"}] = {
        .sync = "SYNCED", .health = "", .revision = "1111111", .message = ""};
    rows[{kListPage, "Application", "visitor"}] = {
        .sync = "SYNCED", .health = "HEALTHY", .revision = "3333333", .message = "hello"};
  }

  SuiteModel model{kKind};
  PageRows rows;
};

TEST_F(SuiteModelTest, RightRowsAreRight) {
  EXPECT_EQ(model.size(), rows.size());
  EXPECT_THAT(model.wrong(rows), IsEmpty());
  // A later report of what was left alone.
  rows[{"shop", kKind, "b"}].revision = "2222222";
  EXPECT_THAT(model.wrong(rows), IsEmpty());
}

TEST_F(SuiteModelTest, AMissingRowIsWrong) {
  rows.erase({"shop", kKind, "a"});
  rows.erase({kListPage, "Application", "visitor"});
  EXPECT_THAT(model.wrong(rows), ElementsAre(HasSubstr("ConfigMap a is missing"),
                                             HasSubstr("Application visitor is missing")));
}

TEST_F(SuiteModelTest, AnOutdatedRowIsWrong) {
  rows[{"shop", kKind, "b"}].content = "0";
  rows[{kListPage, "Application", "shop"}].message = "first";
  rows[{"shop", "Application", "shop"}].sync = "OUT_OF_SYNC";
  EXPECT_THAT(
      model.wrong(rows),
      ElementsAre(
          HasSubstr("page list, Application shop is SYNCED HEALTHY at 2222222 \"first\""),
          HasSubstr("page shop, Application shop is OUT_OF_SYNC"),
          HasSubstr(
              "ConfigMap b is SYNCED  at 1111111 \"\" 0, written by 1111111 with content 1")));
}

TEST_F(SuiteModelTest, AResourceMayBeOfTheCommitBeforeTheLastWriteAndNoEarlierOne) {
  rows[{"shop", kKind, "a"}].revision = "1111111";
  EXPECT_THAT(model.wrong(rows), IsEmpty());
  model.sync("shop", "4444444", "third", {{"a", "3"}});
  EXPECT_THAT(model.wrong(rows), Contains(HasSubstr("ConfigMap a is SYNCED  at 1111111")));
}

TEST_F(SuiteModelTest, ARowOfWhatIsGoneIsWrong) {
  rows[{"shop", kKind, "c"}] = {
      .sync = "SYNCED", .health = "", .revision = "1111111", .message = ""};
  model.remove("visitor");
  EXPECT_THAT(model.wrong(rows),
              ElementsAre(HasSubstr("Application visitor is shown, and does not exist"),
                          HasSubstr("ConfigMap c is shown, and does not exist")));
}

}  // namespace
}  // namespace gitops::test
