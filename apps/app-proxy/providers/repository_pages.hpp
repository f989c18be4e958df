#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "app-proxy/providers/git_types.hpp"
#include "common/core/async.hpp"
#include "common/http/message.hpp"

namespace gitops::app_proxy {

using FetchPage = std::function<Task<Result<Answer<std::shared_ptr<const HostPage>>>>(
    std::size_t page, std::size_t size)>;

// Returns a page of a host that names the next page in a Link field.
Result<HostPage> linked_page(Result<std::vector<Repository>> repositories,
                             const http::Headers& headers);

// Page size limit of a host. An administrator of the host can set a smaller limit; responses show
// it, and then the request is repeated.
struct HostLimit {
  std::size_t items = 100;
  bool is_certain = true;
};

// Fetches a page of one of several lists. Lists are counted from 0, pages from 1.
using FetchListPage = std::function<Task<Result<Answer<std::shared_ptr<const HostPage>>>>(
    std::size_t list, std::size_t page)>;
// Returns the page for `query` from lists that are read one after the other. A list whose pages
// report its total can be skipped after its first page.
Task<Result<Answer<RepositoryPage>>> gather_lists(const RepositoryQuery& query, std::size_t lists,
                                                  FetchListPage fetch);

// Returns the page for `query` from the necessary number of pages of a host.
Task<Result<Answer<RepositoryPage>>> gather_page(const RepositoryQuery& query, HostLimit host_limit,
                                                 FetchPage fetch);

}  // namespace gitops::app_proxy
