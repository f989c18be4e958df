#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/http/message.hpp"

namespace gitops::app_proxy {

// Pages of a host that cover one page of ours, whose size may exceed the host's limit.
struct PageRange {
  std::size_t size = 0;   // of the host's pages
  std::size_t first = 1;  // the first of them, counted from 1
  std::size_t last = 1;
  std::size_t skip = 0;  // items of the first page before ours
};

// Returns the range for page `page` (from 1) of `limit` items, on a host with at most `host_limit`
// (≥ 1) items a page.
PageRange host_pages(std::size_t page, std::size_t limit, std::size_t host_limit);

// Returns the target of rel="next" in a Link field (RFC 8288); nullopt when there is none.
std::optional<std::string> next_link(const http::Headers& headers);

// Returns the number of items on all pages, from X-Total-Count (Gitea); nullopt when the host does
// not report it.
std::optional<std::size_t> total_count(const http::Headers& headers);

}  // namespace gitops::app_proxy
