#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/message.hpp"

namespace gitops::http {

// Which web pages may read answers, as the setting CORS lists their origins. It only adds fields: no
// request is refused because of its Origin, since clients that are no browsers send anything there.
class Cors {
 public:
  // Blanks and slashes at the end are dropped; "*" stands for every origin, whose pages then read
  // answers without credentials.
  explicit Cors(const std::vector<std::string>& origins);

  // The fields that let the page at `origin` read an answer, if it is allowed to, and "Vary: Origin"
  // in any case.
  [[nodiscard]] Headers fields(std::optional<std::string_view> origin) const;
  void allow(Response& response, std::optional<std::string_view> origin) const;
  // The answer to a preflight.
  [[nodiscard]] Response preflight(std::optional<std::string_view> origin) const;
  // True when the list names this origin: its pages may send credentials.
  [[nodiscard]] bool names(std::string_view origin) const;

 private:
  std::vector<std::string> origins_;
};

}  // namespace gitops::http
