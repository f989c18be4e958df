#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/graphql/ast.hpp"

namespace gitops::graphql {

// Entry of `errors` in a response (section 7.1.2 of the specification).
struct ResponseError {
  std::string message;
  std::vector<Location> locations = {};
  std::string path = {};        // JSON text of an array; empty without a path
  std::string extensions = {};  // JSON text; empty without extensions

  bool operator==(const ResponseError&) const = default;
};

// Appends `{"message":…,"locations":…,"path":…,"extensions":…}`.
void append_json(std::string& out, const ResponseError& error);
// Returns `[…]`.
std::string errors_json(const std::vector<ResponseError>& errors);
// Returns `{"errors":[…]}`: the response to a request that was not executed.
std::string errors_body(const std::vector<ResponseError>& errors);

// Returns an error with `{"code":…,"statusCode":…}` as its extensions.
ResponseError coded_error(std::string message, std::string_view code, int status);

// Error::subcode of a `forbidden` whose message clients may see, because it reveals nothing about
// an object, such as that of a field for administrators only.
inline constexpr std::string_view kPublicRefusal = "FORBIDDEN";

// Returns a resolver's error for clients: its message, and as extensions the code in capitals and
// the HTTP status. An Error::subcode of the form THIS_FORM replaces the code, also of a
// `forbidden`. Any other ErrorCode::forbidden except kPublicRefusal becomes "Forbidden" with the
// number 403 as extensions, which a public client compares. ErrorCode::internal hides its message.
ResponseError present(const Error& error);

}  // namespace gitops::graphql
