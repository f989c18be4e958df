#include "event-reporter/report/newest_states.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Watched {
  std::map<std::string, std::string> versions;
  std::vector<std::string> undelivered(NewestStates& states) {
    return states.take_undelivered([this](const std::string& key) -> std::string_view {
      const auto found = versions.find(key);
      return found == versions.end() ? std::string_view() : found->second;
    });
  }
};

TEST(NewestStates, AStateThatStaysUndeliveredIsTakenOnce) {
  NewestStates states;
  Watched watched{{{"a/late", "5"}, {"a/delivered", "9"}, {"a/text", "x"}}};
  states.note("a/late", "u", "7");
  states.note("a/delivered", "u", "9");
  states.note("a/unwatched", "u", "7");
  states.note("a/text", "u", "y");
  EXPECT_THAT(watched.undelivered(states), IsEmpty()) << "it may be under way";
  EXPECT_THAT(watched.undelivered(states), ElementsAre("a/late"));
  EXPECT_EQ(states.uid("a/late"), nullptr);
  EXPECT_FALSE(states.is_outdated("a/late", "5"));
  EXPECT_THAT(watched.undelivered(states), IsEmpty());
}

TEST(NewestStates, ANewerStateHasItsOwnTime) {
  NewestStates states;
  Watched watched{{{"a/1", "5"}}};
  states.note("a/1", "u", "7");
  EXPECT_THAT(watched.undelivered(states), IsEmpty());
  states.note("a/1", "u", "8");
  EXPECT_THAT(watched.undelivered(states), IsEmpty());
  watched.versions["a/1"] = "8";
  EXPECT_THAT(watched.undelivered(states), IsEmpty());
  watched.versions["a/1"] = "7";  // as after a restore
  EXPECT_THAT(watched.undelivered(states), IsEmpty());
  EXPECT_THAT(watched.undelivered(states), ElementsAre("a/1"));
}

}  // namespace
}  // namespace gitops::reporter
