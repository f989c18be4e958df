#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/message.hpp"

namespace gitops::router {

// Which web pages may read the answers that the router gives in place of app-proxy while app-proxy
// is down. app-proxy's own answers have their own CORS fields.
class Cors {
 public:
  // Origins as the CORS setting of app-proxy lists them; blanks and slashes at the end are dropped,
  // and "*" stands for every origin, whose pages then read answers without credentials.
  explicit Cors(const std::vector<std::string>& origins);

  // Adds the fields that let the page at `origin` read the answer, if it is allowed to, and
  // "Vary: Origin" in any case.
  void allow(http::Response& response, std::optional<std::string_view> origin) const;
  // The answer to a preflight.
  [[nodiscard]] http::Response preflight(std::optional<std::string_view> origin) const;

 private:
  std::vector<std::string> origins_;
};

}  // namespace gitops::router
