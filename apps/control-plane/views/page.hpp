#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

namespace gitops::control_plane_server {

// Largest number of elements of one page, and of a list without pagination.
inline constexpr std::size_t kMaxPage = 1'000;

// SlicePaginationArgs, as a client sends it. Empty cursors count as none.
struct SliceArguments {
  std::string after = {};
  std::string before = {};
  std::optional<std::int64_t> first = {};
  std::optional<std::int64_t> last = {};
};

// The position of an element in its list: the values that the list is sorted by.
struct SortKey {
  std::vector<std::int64_t> numbers = {};
  std::string text = {};

  bool operator==(const SortKey&) const = default;
};
// Compares by text, then by numbers.
bool is_before(const SortKey& a, const SortKey& b);

// The requested part of a list, in keyset form.
struct PageWindow {
  std::optional<SortKey> from = {};  // exclusive; none: from the start of the list, or from its end
  bool is_backward = false;          // elements before `from`, the nearest first
  std::size_t limit = kMaxPage;
};

// Returns the window for these arguments. `numbers` is the count of numbers in the list's keys.
//
// Errors: invalid_argument for a cursor that cursor_of() did not make, for `first` or `last` below 1, and for arguments
// that exclude each other. Limits above kMaxPage are reduced to it.
Result<PageWindow> page_window(const SliceArguments& arguments, std::size_t numbers);

// Returns the cursor of a key: base64url, opaque to clients.
std::string cursor_of(const SortKey& key);

struct PageItem {
  std::string node;  // JSON
  SortKey key;
};

// Returns the JSON of a slice: edges and pageInfo. The items come in the order of the query, up to one more than the
// limit: the extra item shows that more follow. A page without elements never has a next page, since clients follow
// endCursor.
//
// `read_to` is the key behind which a query stopped reading before its page was full. It is the end of the page then,
// which has a next one.
std::string slice_json(const PageWindow& window, std::vector<PageItem> items,
                       const std::optional<SortKey>& read_to = {});
// Returns the window of a list in memory, as a query would return it: sorted by text, then numbers.
std::vector<PageItem> items_in(const PageWindow& window, std::vector<PageItem> all);
// Returns the JSON of a slice without elements.
std::string empty_slice_json();

}  // namespace gitops::control_plane_server
