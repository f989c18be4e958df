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

// The page of a host whose answers tell of the next one in a Link field.
Result<HostPage> linked_page(Result<std::vector<Repository>> repositories,
                             const http::Headers& headers);

// What a host gives at most at once. Where an administrator of the host can set a smaller limit, that
// shows in its answers: then it is asked again.
struct HostLimit {
  std::size_t items = 100;
  bool is_certain = true;
};

// A page of one of several lists, both counted from 0 and 1.
using FetchListPage = std::function<Task<Result<Answer<std::shared_ptr<const HostPage>>>>(
    std::size_t list, std::size_t page)>;
// The page that `query` asks for, from lists that are read one after the other. A list whose pages
// tell its total is passed over after its first page.
Task<Result<Answer<RepositoryPage>>> gather_lists(const RepositoryQuery& query, std::size_t lists,
                                                  FetchListPage fetch);

// The page that `query` asks for, from as many pages of a host as it takes.
Task<Result<Answer<RepositoryPage>>> gather_page(const RepositoryQuery& query, HostLimit host_limit,
                                                 FetchPage fetch);

}  // namespace gitops::app_proxy
