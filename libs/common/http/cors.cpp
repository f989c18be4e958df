#include "common/http/cors.hpp"

#include <algorithm>

namespace gitops::http {

Cors::Cors(const std::vector<std::string>& origins) {
  for (std::string origin : origins) {
    while (!origin.empty() && (origin.back() == '/' || origin.back() == ' ')) origin.pop_back();
    if (!origin.empty()) origins_.push_back(std::move(origin));
  }
}

bool Cors::names(std::string_view origin) const {
  return std::ranges::any_of(
      origins_, [&](const std::string& known) { return equal_ignoring_case(known, origin); });
}

Headers Cors::fields(std::optional<std::string_view> origin) const {
  Headers fields{{"Vary", "Origin"}};
  if (!origin || origin->empty()) return fields;
  const bool listed = names(*origin);
  const bool any = std::ranges::find(origins_, "*") != origins_.end();
  if (!listed && !any) return fields;
  fields.add("Access-Control-Allow-Origin", listed ? std::string(*origin) : "*");
  if (listed) fields.add("Access-Control-Allow-Credentials", "true");
  fields.add("Access-Control-Allow-Methods", "GET,HEAD,PUT,PATCH,POST,DELETE");
  fields.add("Access-Control-Allow-Headers",
             "content-type,x-access-token,authorization,traceparent");
  fields.add("Access-Control-Expose-Headers", "x-request-id,retry-after");
  return fields;
}

void Cors::allow(Response& response, std::optional<std::string_view> origin) const {
  for (const auto& [name, value] : fields(origin)) response.headers.add(name, value);
}

Response Cors::preflight(std::optional<std::string_view> origin) const {
  Response response{.status = 204, .headers = {}, .body = {}};
  allow(response, origin);
  return response;
}

}  // namespace gitops::http
