#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/providers/api_root.hpp"
#include "common/core/error.hpp"
#include "common/http/message.hpp"

// Failures of a Git host. Error::subcode is one of git_errors; the message ends with a remedy. It
// never contains a token, even when the host sends it back.
namespace gitops::app_proxy {

// Subject of an error: "<what> at <host>".
struct GitErrorPlace {
  const ApiRoot& root;
  std::string_view what;
};

// Error for a response that is not 2xx. `token` is removed from the host's text.
Error refused_by_host(const GitErrorPlace& place, const http::Response& response,
                      std::string_view token);
// Error for a request without a response.
Error host_unreachable(const GitErrorPlace& place, Error cause);
Error host_throttles(const GitErrorPlace& place, std::chrono::milliseconds wait);
Error bad_answer(const GitErrorPlace& place, std::string_view problem);
Error redirected_away(const GitErrorPlace& place);

// Returns the explanation in an error's body, one line of at most 200 characters; empty when there
// is none, or when it contains `token`. Hosts write {"message"}, {"error"}, {"error":{"message"}}
// or {"errors":[{"message"}]}.
std::string host_message(std::string_view body, std::string_view token);

}  // namespace gitops::app_proxy
