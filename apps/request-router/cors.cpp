#include "request-router/cors.hpp"

#include <algorithm>

namespace gitops::router {

Cors::Cors(const std::vector<std::string>& origins) {
  for (std::string origin : origins) {
    while (!origin.empty() && (origin.back() == '/' || origin.back() == ' ')) origin.pop_back();
    if (!origin.empty()) origins_.push_back(std::move(origin));
  }
}

void Cors::allow(http::Response& response, std::optional<std::string_view> origin) const {
  response.headers.add("Vary", "Origin");
  if (!origin || origin->empty()) return;
  const bool listed = std::ranges::any_of(origins_, [&](const std::string& known) {
    return http::equal_ignoring_case(known, *origin);
  });
  const bool any = std::ranges::find(origins_, "*") != origins_.end();
  if (!listed && !any) return;
  response.headers.add("Access-Control-Allow-Origin", listed ? std::string(*origin) : "*");
  if (listed) response.headers.add("Access-Control-Allow-Credentials", "true");
  response.headers.add("Access-Control-Allow-Methods", "GET,HEAD,PUT,PATCH,POST,DELETE");
  response.headers.add("Access-Control-Allow-Headers", "content-type,x-access-token,authorization");
  response.headers.add("Access-Control-Expose-Headers", "x-request-id,retry-after");
}

http::Response Cors::preflight(std::optional<std::string_view> origin) const {
  http::Response response{.status = 204, .headers = {}, .body = {}};
  allow(response, origin);
  return response;
}

}  // namespace gitops::router
