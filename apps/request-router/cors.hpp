#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/message.hpp"

namespace gitops::router {

// Which pages of a browser may read what the router answers in app-proxy's place, when that is
// down. Its own answers carry its own fields.
class Cors {
 public:
  // Origins as the CORS setting of app-proxy lists them; blanks and slashes at the end are dropped,
  // and "*" stands for every origin.
  explicit Cors(const std::vector<std::string>& origins);

  // Lets the page at `origin` read the answer, if it may. The answer varies with the origin anyway.
  void allow(http::Response& response, std::optional<std::string_view> origin) const;
  // The answer to a preflight.
  [[nodiscard]] http::Response preflight(std::optional<std::string_view> origin) const;

 private:
  std::vector<std::string> origins_;
};

}  // namespace gitops::router
