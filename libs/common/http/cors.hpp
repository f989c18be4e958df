#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/message.hpp"

namespace gitops::http {

// Cross-origin access of web pages to responses, by the origins of the setting CORS. Only adds
// fields. Refuses no request by its Origin, since clients other than browsers send arbitrary
// values.
class Cors {
 public:
  // Ignores white space and slashes at the ends of `origins`. "*" means every origin, whose pages
  // then read responses without credentials.
  explicit Cors(const std::vector<std::string>& origins);

  // Returns the fields that allow the page at `origin` to read a response, if the origin is
  // allowed. Always includes "Vary: Origin".
  [[nodiscard]] Headers fields(std::optional<std::string_view> origin) const;
  void allow(Response& response, std::optional<std::string_view> origin) const;
  // Returns the response to a preflight.
  [[nodiscard]] Response preflight(std::optional<std::string_view> origin) const;
  // Returns whether the list names this origin, so that its pages may send credentials.
  [[nodiscard]] bool names(std::string_view origin) const;

 private:
  std::vector<std::string> origins_;
};

}  // namespace gitops::http
