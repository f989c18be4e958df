#include "event-reporter/report/children.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Children, AreFoundByTheirMark) {
  Children children;
  children.set("a/x", "apps");
  children.set("a/y", "apps");
  children.set("a/z", "team_apps");
  children.set("a/x", "apps");
  EXPECT_THAT(children.of("apps"), ElementsAre("a/x", "a/y"));
  EXPECT_THAT(children.of("team_apps"), ElementsAre("a/z"));
  children.set("a/x", "team_apps");
  children.set("a/y", "");
  children.set("a/unknown", "");
  EXPECT_THAT(children.of("apps"), IsEmpty());
  EXPECT_THAT(children.of("team_apps"), ElementsAre("a/x", "a/z"));
}

}  // namespace
}  // namespace gitops::reporter
