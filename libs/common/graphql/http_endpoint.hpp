#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

#include "common/core/async.hpp"
#include "common/graphql/engine.hpp"
#include "common/http/server.hpp"

namespace gitops::graphql {

// Authorizes a request after its document was parsed, before anything runs and before its errors
// are sent. `operation` is null if the document is refused. A returned response replaces that of
// the operation. It may change the data of the request's context.
using Admission = std::function<Task<std::optional<http::Response>>(const Prepared* operation)>;

struct HttpOptions {
  std::size_t max_body = 1024 * 1024;         // bytes; more is 413
  std::chrono::milliseconds timeout{60'000};  // time limit of an operation, see Prepared::run()
  Admission admission = {};                   // empty: allows everything
  int refused_status = 200;                   // of a well-formed request whose document is refused
};

// Serves one request of "GraphQL over HTTP" (https://graphql.github.io/graphql-over-http/draft/,
// section 6). Accepts only POST with a body of application/json: fields of Query may change state,
// and a browser needs a CORS preflight to send such a request to another site.
//
// Statuses: 200 for each well-formed request; HttpOptions::refused_status, 200 by default, if its
// document is refused; 400 for a malformed body, 405, 408, 413, 415. A client that
// accepts application/graphql-response+json and not application/json receives that type, and 400
// for a refused document. Every body except that of a 405 is a GraphQL response.
Task<> serve_http(http::Exchange& exchange, Engine& engine, Context context,
                  const HttpOptions& options = {});

}  // namespace gitops::graphql
