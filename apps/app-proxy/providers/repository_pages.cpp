#include "app-proxy/providers/repository_pages.hpp"

#include <algorithm>
#include <utility>

#include "app-proxy/providers/page_range.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxLimit = 200;

}  // namespace

Task<Result<Answer<RepositoryPage>>> gather_page(const RepositoryQuery& query,
                                                 std::size_t host_limit, FetchPage fetch) {
  const auto page = std::max<std::size_t>(query.page, 1);
  const auto limit = std::clamp<std::size_t>(query.limit, 1, kMaxLimit);
  // Once with the limit that is documented, once with the one that the host turns out to have.
  for (int attempt = 0;; ++attempt) {
    const auto range = host_pages(page, limit, host_limit);
    Answer<RepositoryPage> out;
    out.value.page = page;
    std::size_t smaller = 0;
    std::size_t skip = range.skip;
    for (auto at = range.first; at <= range.last; ++at) {
      auto got = co_await fetch(at, range.size);
      if (!got) co_return std::unexpected(std::move(got.error()));
      out.is_last_known = out.is_last_known || got->is_last_known;
      if (attempt == 0 && got->has_next && got->size > 0 && got->size < range.size) {
        smaller = got->size;
        break;
      }
      auto& items = got->repositories;
      const auto from = std::min(skip, items.size());
      skip -= from;
      out.value.has_next = got->has_next;
      for (std::size_t i = from; i < items.size(); ++i) {
        if (out.value.repositories.size() == limit) {
          out.value.has_next = true;
          break;
        }
        out.value.repositories.push_back(std::move(items[i]));
      }
      if (!got->has_next) break;
    }
    if (smaller == 0) co_return out;
    host_limit = smaller;
  }
}

}  // namespace gitops::app_proxy
