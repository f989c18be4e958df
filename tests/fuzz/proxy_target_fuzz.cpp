// Request heads from anywhere, and what their targets mean to the router. What is forwarded must be
// a target of its own, that means the same when it is read again, and names of webhooks must be
// labels.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/http/head.hpp"
#include "request-router/route.hpp"
#include "request-router/webhook_target.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops;
  const std::string text(reinterpret_cast<const char*>(data), size);
  http::RequestHeadParser parser({});
  const auto end = parser.next(text);

  // The bytes may come one by one.
  http::RequestHeadParser slow({});
  auto found = slow.next(std::string_view(text).substr(0, 0));
  for (std::size_t seen = 1; seen <= size && found && *found == 0; ++seen) {
    found = slow.next(std::string_view(text).substr(0, seen));
  }
  require(found.has_value() == end.has_value());
  if (!end) {
    const int status = end.error().http_status;
    require(status == 400 || status == 414 || status == 417 || status == 431 || status == 501 ||
            status == 505);
    return 0;
  }
  require(*found == *end);
  if (*end == 0) return 0;

  const auto& head = parser.head();
  for (const auto& field : head.fields) {
    require(!field.name.empty() && field.value.find_first_of("\r\n\0") == std::string_view::npos);
  }
  const auto match = router::match_route(head);
  if (match.status != 0 || match.kind == router::RouteKind::none) return 0;
  const std::string target = match.rewritten.empty() ? std::string(match.target) : match.rewritten;
  if (match.kind == router::RouteKind::health || match.kind == router::RouteKind::ready) return 0;
  require(target.starts_with('/'));
  require(target.find_first_of(" \t\r\n#\\\0") == std::string::npos || head.query.contains('\\'));
  if (match.kind == router::RouteKind::webhook) {
    require(router::is_dns_label(match.ns) && router::is_dns_label(match.event_source));
    const auto host = router::webhook_host(match.ns, match.event_source, {.namespaces = {"*"}});
    require(!host ||
            host->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos);
    require(target.starts_with("/webhooks/" + std::string(match.ns) + "/" +
                               std::string(match.event_source)));
  }
  if (match.kind == router::RouteKind::app_proxy || match.kind == router::RouteKind::webhook) {
    const std::string again = "GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n";
    http::RequestHeadParser second({.max_line = 16384, .max_head = 65536});
    const auto read = second.next(again);
    require(read && *read == again.size());
    const auto same = router::match_route(second.head());
    require(same.kind == match.kind && same.status == 0 && same.rewritten.empty());
    require(same.target == target);
  }
  return 0;
}
