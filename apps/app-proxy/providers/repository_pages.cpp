#include "app-proxy/providers/repository_pages.hpp"

#include <algorithm>
#include <utility>

#include "app-proxy/providers/page_range.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxLimit = 200;

}  // namespace

Result<HostPage> linked_page(Result<std::vector<Repository>> repositories,
                             const http::Headers& headers) {
  if (!repositories) return std::unexpected(std::move(repositories.error()));
  HostPage out{.repositories = std::move(*repositories),
               .has_next = next_link(headers).has_value()};
  out.size = out.repositories.size();
  return out;
}

Task<Result<Answer<RepositoryPage>>> gather_page(const RepositoryQuery& query, HostLimit host_limit,
                                                 FetchPage fetch) {
  const auto page = std::max<std::size_t>(query.page, 1);
  const auto limit = std::clamp<std::size_t>(query.limit, 1, kMaxLimit);
  while (true) {
    const auto range = host_pages(page, limit, host_limit.items);
    Answer<RepositoryPage> out;
    out.value.page = page;
    std::size_t smaller = 0;  // the host's limit, when it is smaller than expected
    std::size_t skip = range.skip;
    for (auto at = range.first; at <= range.last; ++at) {
      const auto got = co_await fetch(at, range.size);
      if (!got) co_return std::unexpected(got.error());
      const auto& given = *got->value;
      out.is_last_known = out.is_last_known || got->is_last_known;
      if (!host_limit.is_certain && at == range.first && given.size < range.size) {
        if (given.has_next) smaller = given.size;
        if (!given.has_next && at > 1) {
          // A short page is the last one, or the host's pages are smaller; the first page shows which.
          const auto first = co_await fetch(1, range.size);
          if (!first) co_return std::unexpected(first.error());
          if (first->value->has_next && first->value->size < range.size) {
            smaller = first->value->size;
          }
        }
        if (smaller > 0) break;
      }
      const auto count = given.repositories.size();
      const auto from = std::min(skip, count);
      skip -= from;
      out.value.has_next = given.has_next;
      for (std::size_t i = from; i < count; ++i) {
        if (out.value.repositories.size() == limit) {
          out.value.has_next = true;
          break;
        }
        out.value.repositories.push_back(item_of(got->value, i));
      }
      if (!given.has_next) break;
    }
    if (smaller == 0) co_return out;
    host_limit = {.items = smaller, .is_certain = true};
  }
}

Task<Result<Answer<RepositoryPage>>> gather_lists(const RepositoryQuery& query, std::size_t lists,
                                                  FetchListPage fetch) {
  const auto limit = std::clamp<std::size_t>(query.limit, 1, kMaxLimit);
  Answer<RepositoryPage> out;
  out.value.page = std::max<std::size_t>(query.page, 1);
  std::size_t skip = (out.value.page - 1) * limit;
  for (std::size_t list = 0; list < lists; ++list) {
    bool has_next = true;
    for (std::size_t page = 1; has_next; ++page) {
      const auto answer = co_await fetch(list, page);
      if (!answer) co_return std::unexpected(answer.error());
      const auto& found = *answer->value;
      out.is_last_known = out.is_last_known || answer->is_last_known;
      has_next = found.has_next && found.size > 0;
      if (page == 1 && found.total > 0 && found.total <= skip) {
        skip -= found.total;
        break;
      }
      const auto count = found.repositories.size();
      const auto from = std::min(skip, count);
      skip -= from;
      for (std::size_t i = from; i < count; ++i) {
        if (out.value.repositories.size() == limit) {
          out.value.has_next = true;
          co_return out;
        }
        out.value.repositories.push_back(item_of(answer->value, i));
      }
      if (has_next && out.value.repositories.size() == limit) {
        out.value.has_next = true;
        co_return out;
      }
    }
  }
  co_return out;
}

}  // namespace gitops::app_proxy
