#include "app-proxy/providers/page_range.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

TEST(PageRange, CoversExactlyThePageThatIsAskedFor) {
  for (std::size_t limit = 1; limit <= 7; ++limit) {
    for (std::size_t host_limit = 1; host_limit <= 7; ++host_limit) {
      for (std::size_t page = 1; page <= 9; ++page) {
        const auto range = host_pages(page, limit, host_limit);
        ASSERT_LE(range.size, host_limit);
        const auto begin = (range.first - 1) * range.size + range.skip;
        EXPECT_EQ(begin, (page - 1) * limit);
        EXPECT_LT(range.skip, range.size);
        EXPECT_GE(range.last * range.size, page * limit);
        EXPECT_LT((range.last - 1) * range.size, page * limit);
      }
    }
  }
}

TEST(PageRange, UsesOnePageWhereTheHostAllowsIt) {
  const auto range = host_pages(3, 50, 100);
  EXPECT_EQ(range.size, 50U);
  EXPECT_EQ(range.first, 3U);
  EXPECT_EQ(range.last, 3U);
  EXPECT_EQ(range.skip, 0U);
}

TEST(NextLink, FindsTheRelation) {
  const auto next = [](std::string value) {
    return next_link({{"Link", std::move(value)}}).value_or("none");
  };
  EXPECT_EQ(
      next("<https://h.test/x?page=2>; rel=\"next\", <https://h.test/x?page=9>; rel=\"last\""),
      "https://h.test/x?page=2");
  EXPECT_EQ(next("<https://h.test/x?page=9>; rel=\"last\",<https://h.test/x?a=1,2>;rel=next"),
            "https://h.test/x?a=1,2");
  EXPECT_EQ(next("<https://h.test/x>; title=\"t\"; rel=\"next\""), "https://h.test/x");
  EXPECT_EQ(next("<https://h.test/x>; rel=\"prev\""), "none");
  EXPECT_EQ(next("<https://h.test/x; rel=\"next\""), "none");
  EXPECT_EQ(next("nonsense"), "none");
  EXPECT_FALSE(next_link({}));
}

TEST(TotalCount, IsANumber) {
  EXPECT_EQ(total_count({{"X-Total-Count", " 70 "}}), 70U);
  for (const char* text : {"", "-1", "7x", "99999999999999999999"}) {
    EXPECT_FALSE(total_count({{"X-Total-Count", text}})) << text;
  }
  EXPECT_FALSE(total_count({}));
}

}  // namespace
}  // namespace gitops::app_proxy
