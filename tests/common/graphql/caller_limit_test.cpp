#include "common/graphql/caller_limit.hpp"

#include <gtest/gtest.h>

namespace gitops::graphql {
namespace {

TEST(CallerLimit, CountsTheOperationsOfEachCaller) {
  CallerLimit limit(2);
  auto first = limit.acquire("ann");
  auto second = limit.acquire("ann");
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  const auto third = limit.acquire("ann");
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().http_status, 429);
  EXPECT_EQ(third.error().retry_after, std::chrono::seconds(1));
  EXPECT_TRUE(limit.acquire("bob"));

  first->reset();
  EXPECT_TRUE(limit.acquire("ann"));
  second->reset();
  EXPECT_TRUE(limit.acquire("ann"));
}

TEST(CallerLimit, PermitsMayOutliveIt) {
  Result<std::shared_ptr<void>> permit;
  {
    CallerLimit limit(1);
    permit = limit.acquire("ann");
  }
  ASSERT_TRUE(permit);
  permit->reset();
}

}  // namespace
}  // namespace gitops::graphql
