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

// What a host gives at most at once. Where an administrator of the host can set a smaller limit, that
// shows in its answers: then it is asked again.
struct HostLimit {
  std::size_t items = 100;
  bool is_certain = true;
};

// The page that `query` asks for, from as many pages of a host as it takes.
Task<Result<Answer<RepositoryPage>>> gather_page(const RepositoryQuery& query, HostLimit host_limit,
                                                 FetchPage fetch);

}  // namespace gitops::app_proxy
