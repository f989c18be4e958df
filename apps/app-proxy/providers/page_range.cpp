#include "app-proxy/providers/page_range.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

// Checks whether the parameters of a link ("; rel=\"next\"; …") name the relation "next".
bool is_next(std::string_view parameters) {
  while (!parameters.empty()) {
    const auto end = std::min(parameters.find(';'), parameters.size());
    auto parameter = trimmed(parameters.substr(0, end));
    parameters.remove_prefix(std::min(end + 1, parameters.size()));
    if (!parameter.starts_with("rel=")) continue;
    parameter.remove_prefix(4);
    if (parameter.size() >= 2 && parameter.front() == '"' && parameter.back() == '"') {
      parameter = parameter.substr(1, parameter.size() - 2);
    }
    if (parameter == "next") return true;
  }
  return false;
}

}  // namespace

PageRange host_pages(std::size_t page, std::size_t limit, std::size_t host_limit) {
  page = std::max<std::size_t>(page, 1);
  limit = std::max<std::size_t>(limit, 1);
  const auto size = std::min(limit, std::max<std::size_t>(host_limit, 1));
  const auto begin = (page - 1) * limit;
  return {.size = size,
          .first = begin / size + 1,
          .last = (begin + limit - 1) / size + 1,
          .skip = begin % size};
}

std::optional<std::string> next_link(const http::Headers& headers) {
  const auto field = headers.find("Link");
  if (!field) return std::nullopt;
  std::string_view rest = *field;
  while (true) {
    const auto open = rest.find('<');
    if (open == std::string_view::npos) return std::nullopt;
    const auto close = rest.find('>', open);
    if (close == std::string_view::npos) return std::nullopt;
    const auto target = rest.substr(open + 1, close - open - 1);
    rest.remove_prefix(close + 1);
    // The link ends before the next one, whose '<' follows a comma.
    const auto end = std::min(rest.find(",", 0), rest.size());
    if (is_next(rest.substr(0, end))) return std::string(target);
  }
}

std::optional<std::size_t> total_count(const http::Headers& headers) {
  const auto field = headers.find("X-Total-Count");
  if (!field) return std::nullopt;
  const auto text = trimmed(*field);
  std::size_t count = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), count);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return count;
}

}  // namespace gitops::app_proxy
