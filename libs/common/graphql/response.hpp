#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/graphql/ast.hpp"

namespace gitops::graphql {

// One entry of an answer's `errors` (section 7.1.2 of the specification).
struct ResponseError {
  std::string message;
  std::vector<Location> locations = {};
  std::string path = {};        // JSON text of an array; empty without one
  std::string extensions = {};  // JSON text; empty without any

  bool operator==(const ResponseError&) const = default;
};

// `{"message":…,"locations":…,"path":…,"extensions":…}`
void append_json(std::string& out, const ResponseError& error);
// `[…]`
std::string errors_json(const std::vector<ResponseError>& errors);
// `{"errors":[…]}`: the answer to a request that was not executed.
std::string errors_body(const std::vector<ResponseError>& errors);

// An error with `{"code":…,"statusCode":…}` as its extensions.
ResponseError coded_error(std::string message, std::string_view code, int status);

// Error::subcode of a `forbidden` that tells nothing of an object, as that of a field for administrators alone: its
// message is shown.
inline constexpr std::string_view kPublicRefusal = "FORBIDDEN";

// How a resolver's error is shown to clients: its message, and for its extensions the code in capitals and its HTTP
// status. Error::subcode in the form THIS_FORM is the code instead, also of a `forbidden`. Any other
// ErrorCode::forbidden but a kPublicRefusal becomes "Forbidden" with the number 403 for extensions, which a public
// client compares; ErrorCode::internal hides its message.
ResponseError present(const Error& error);

}  // namespace gitops::graphql
