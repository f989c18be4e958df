#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "app-proxy/providers/git_types.hpp"
#include "common/core/async.hpp"

namespace gitops::app_proxy {

// One page of repositories as the host gives it.
struct HostPage {
  std::vector<Repository> repositories;
  std::size_t size = 0;  // items of the answer, readable or not
  bool has_next = false;
  bool is_last_known = false;
};
using FetchPage = std::function<Task<Result<HostPage>>(std::size_t page, std::size_t size)>;

// The page that `query` asks for, from as many pages of a host as it takes. `host_limit`: what the
// host gives at most at once; a host that gives less, although there is more, is asked again with
// that as its limit.
Task<Result<Answer<RepositoryPage>>> gather_page(const RepositoryQuery& query,
                                                 std::size_t host_limit, FetchPage fetch);

}  // namespace gitops::app_proxy
