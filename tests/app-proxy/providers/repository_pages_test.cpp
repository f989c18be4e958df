#include "app-proxy/providers/repository_pages.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

// A host with `total` repositories that gives at most `most` at once, and the ids of the page that
// was gathered from it.
struct Gathered {
  std::vector<std::size_t> ids;
  bool has_next = false;
  std::size_t requests = 0;
};
Gathered gather(std::size_t total, std::size_t most, std::size_t announced, RepositoryQuery query) {
  Gathered out;
  test::run_in_test_time([&]() -> Task<> {
    const auto page = co_await gather_page(
        query, {.items = announced, .is_certain = most == announced},
        [&](std::size_t number,
            std::size_t size) -> Task<Result<Answer<std::shared_ptr<const HostPage>>>> {
          ++out.requests;
          const auto given = std::min(size, most);
          HostPage host;
          for (auto i = (number - 1) * given; i < std::min(total, number * given); ++i) {
            host.repositories.emplace_back().id = std::to_string(i);
          }
          host.size = host.repositories.size();
          host.has_next = number * given < total;
          co_return Answer<std::shared_ptr<const HostPage>>{
              std::make_shared<const HostPage>(std::move(host))};
        });
    CO_ASSERT_OK(page);
    for (const auto& repository : page->value.repositories) {
      out.ids.push_back(std::stoul(repository->id));
    }
    out.has_next = page->value.has_next;
  });
  return out;
}

// Several lists of a host whose pages hold two, one after the other.
TEST(RepositoryPages, ListsAreReadOneAfterTheOther) {
  const std::vector<std::size_t> sizes{3, 0, 5, 1};
  for (const std::size_t limit : {1UL, 2UL, 4UL, 9UL, 20UL}) {
    for (const bool tells_total : {true, false}) {
      std::vector<std::string> seen;
      bool has_next = true;
      for (std::size_t number = 1; has_next; ++number) {
        ASSERT_LE(number, 10U);
        test::run_in_test_time([&]() -> Task<> {
          const auto page = co_await gather_lists(
              {.search = {}, .page = number, .limit = limit}, sizes.size(),
              [&](std::size_t list,
                  std::size_t at) -> Task<Result<Answer<std::shared_ptr<const HostPage>>>> {
                HostPage host{.repositories = {},
                              .has_next = at * 2 < sizes[list],
                              .total = tells_total ? sizes[list] : 0};
                for (auto i = (at - 1) * 2; i < std::min(at * 2, sizes[list]); ++i) {
                  host.repositories.emplace_back().id =
                      std::to_string(list) + "-" + std::to_string(i);
                }
                host.size = host.repositories.size();
                co_return Answer<std::shared_ptr<const HostPage>>{
                    std::make_shared<const HostPage>(std::move(host))};
              });
          CO_ASSERT_OK(page);
          EXPECT_EQ(page->value.page, number);
          EXPECT_LE(page->value.repositories.size(), limit);
          for (const auto& each : page->value.repositories) seen.push_back(each->id);
          has_next = page->value.has_next;
        });
      }
      EXPECT_EQ(seen, (std::vector<std::string>{"0-0", "0-1", "0-2", "2-0", "2-1", "2-2", "2-3",
                                                "2-4", "3-0"}))
          << limit;
    }
  }
}

TEST(RepositoryPages, HoldExactlyWhatIsAskedFor) {
  for (const std::size_t total : {0UL, 1UL, 6UL, 7UL, 20UL}) {
    for (const std::size_t most : {1UL, 3UL, 4UL, 50UL}) {
      for (const std::size_t limit : {1UL, 3UL, 6UL, 7UL}) {
        std::vector<std::size_t> seen;
        bool has_next = true;
        for (std::size_t page = 1; has_next; ++page) {
          ASSERT_LE(page, total + 1);
          // The host keeps to a smaller limit than the documented one.
          const auto got = gather(total, most, 50, {.search = {}, .page = page, .limit = limit});
          seen.insert(seen.end(), got.ids.begin(), got.ids.end());
          has_next = got.has_next;
        }
        ASSERT_EQ(seen.size(), total) << most << " at once, pages of " << limit;
        for (std::size_t i = 0; i < total; ++i) EXPECT_EQ(seen[i], i);
      }
    }
  }
}

TEST(RepositoryPages, TakeOneRequestWhereTheHostAllowsIt) {
  EXPECT_EQ(gather(500, 100, 100, {.search = {}, .page = 3, .limit = 100}).requests, 1U);
  EXPECT_EQ(gather(500, 100, 100, {.search = {}, .page = 1, .limit = 200}).requests, 2U);
}

TEST(RepositoryPages, AreLimited) {
  EXPECT_EQ(gather(500, 100, 100, {.search = {}, .page = 1, .limit = 100'000}).ids.size(), 200U);
  EXPECT_EQ(gather(5, 100, 100, {.search = {}, .page = 0, .limit = 0}).ids.size(), 1U);
}

}  // namespace
}  // namespace gitops::app_proxy
