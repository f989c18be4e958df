#include "control-plane/views/page.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "common/core/encoding.hpp"
#include "control-plane/views/view_json.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxCursor = 4'096;
constexpr char kSeparator = ':';

// Parses "<number>:<number>:<text>" in base64url.
std::optional<SortKey> key_of(std::string_view cursor, std::size_t numbers) {
  if (cursor.size() > kMaxCursor) return std::nullopt;
  const auto plain = base64url_decode(cursor);
  if (!plain || !is_utf8(*plain) || plain->find('\0') != std::string::npos) return std::nullopt;
  SortKey key;
  std::string_view rest = *plain;
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto end = rest.find(kSeparator);
    if (end == std::string_view::npos) return std::nullopt;
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + end, number);
    if (error != std::errc() || stop != rest.data() + end) return std::nullopt;
    key.numbers.push_back(number);
    rest.remove_prefix(end + 1);
  }
  key.text = rest;
  return key;
}

std::unexpected<Error> refuse(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

}  // namespace

std::string cursor_of(const SortKey& key) {
  std::string plain;
  for (const auto number : key.numbers) plain += std::to_string(number) + kSeparator;
  plain += key.text;
  return base64url_encode(plain);
}

Result<PageWindow> page_window(const SliceArguments& arguments, std::size_t numbers) {
  if (arguments.first && arguments.last) {
    return refuse("pagination: first and last exclude each other");
  }
  if (!arguments.after.empty() && !arguments.before.empty()) {
    return refuse("pagination: after and before exclude each other");
  }
  PageWindow window;
  window.is_backward =
      arguments.last.has_value() || (!arguments.first && !arguments.before.empty());
  const auto count = window.is_backward ? arguments.last : arguments.first;
  if (count && *count < 1) {
    return refuse(std::string("pagination: ") + (window.is_backward ? "last" : "first") +
                  " must be at least 1");
  }
  if (count) window.limit = std::min(static_cast<std::size_t>(*count), kMaxPage);
  const auto& cursor = window.is_backward ? arguments.before : arguments.after;
  // Elements after a cursor are counted forwards from it, those before it backwards.
  const auto& other = window.is_backward ? arguments.after : arguments.before;
  if (!other.empty()) {
    return refuse("pagination: first goes with after, and last with before");
  }
  if (cursor.empty()) return window;
  window.from = key_of(cursor, numbers);
  if (!window.from) return refuse("pagination: the cursor is not one of this list");
  return window;
}

std::string slice_json(const PageWindow& window, std::vector<PageItem> items,
                       const std::optional<SortKey>& read_to) {
  const bool has_more = items.size() > window.limit || read_to.has_value();
  if (items.size() > window.limit) items.resize(window.limit);
  if (window.is_backward) std::ranges::reverse(items);
  auto start = items.empty() ? std::string() : cursor_of(items.front().key);
  auto end = items.empty() ? std::string() : cursor_of(items.back().key);
  if (read_to) (window.is_backward ? start : end) = cursor_of(*read_to);
  const bool has_other = window.from.has_value() && !items.empty();
  return object_json([&](ObjectJson& slice) {
    slice.array("edges", [&](ArrayJson& edges) {
      for (const auto& item : items) {
        edges.object([&](ObjectJson& edge) {
          edge.raw("node", item.node);
          edge.text("cursor", cursor_of(item.key));
        });
      }
    });
    slice.object("pageInfo", [&](ObjectJson& info) {
      info.text_or_null("startCursor", start);
      info.text_or_null("endCursor", end);
      info.flag("hasNextPage", window.is_backward ? has_other : has_more);
      info.flag("hasPrevPage", window.is_backward ? has_more : has_other);
    });
  });
}

bool is_before(const SortKey& a, const SortKey& b) {
  return a.text != b.text ? a.text < b.text : a.numbers < b.numbers;
}

std::vector<PageItem> items_in(const PageWindow& window, std::vector<PageItem> all) {
  const auto key = [](const PageItem& item) -> const SortKey& { return item.key; };
  std::ranges::sort(all, is_before, key);
  if (window.is_backward) std::ranges::reverse(all);
  if (window.from) {
    std::erase_if(all, [&](const PageItem& item) {
      return window.is_backward ? !is_before(item.key, *window.from)
                                : !is_before(*window.from, item.key);
    });
  }
  if (all.size() > window.limit) all.resize(window.limit + 1);
  return all;
}

std::string empty_slice_json() {
  return slice_json({}, {});
}

}  // namespace gitops::control_plane_server
