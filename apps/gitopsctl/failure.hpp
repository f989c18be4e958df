#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

// The meaning of responses of a control plane or an app-proxy, and the texts of failures. Pure.
namespace gitops::ctl {

// Error::subcode of a mistake in what the user wrote: exit code 2.
inline constexpr std::string_view kUsage = "usage";
// Error::subcode of a wait that was not fulfilled in time: exit code 1.
inline constexpr std::string_view kNotReached = "not-reached";
// Error::subcode of a failure before the request that changes something was sent.
inline constexpr std::string_view kNotSent = "not-sent";

// Returns the `data` of a GraphQL response. The error has the code of the first entry of `errors`, by its extensions, and
// the id of the request. A page, or JSON of another shape, is `protocol`: a status of 200 is no proof.
Result<nlohmann::json> graphql_data(const http::Response& response);
// Returns the JSON of a REST response; null for an empty body.
Result<nlohmann::json> rest_value(const http::Response& response);

// The exit code of a failure; cli::ExitCode.
int exit_code_of(const Error& error);
// Returns whether a server that was there is away or busy: what goes on for long asks it again.
bool is_away(const Error& error);
// Returns lines for standard error: "Error from server (NotFound): …", or "Unable to connect to the server: …", and
// what to do when that is known.
std::string failure_text(const Error& error);

// The end of a request to change something, so that nobody takes a lost answer for a failure.
enum class Outcome {
  refused,  // nothing was changed
  failed,
  unknown,  // it may have been changed
};
Outcome outcome_of(const Error& error);
// Returns lines for standard error: "Refused (Forbidden): … Nothing was changed." `look` is the command that shows
// whether it was changed.
std::string outcome_text(const Error& error, std::string_view look);

}  // namespace gitops::ctl
