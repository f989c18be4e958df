#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

#include "common/core/async.hpp"
#include "common/graphql/engine.hpp"
#include "common/http/server.hpp"

namespace gitops::graphql {

// Asked about each request when its document was read, before anything is told of the document or
// done; null: the document is refused. A response is sent instead of the answer. It may change what
// the request's context refers to.
using Admission = std::function<Task<std::optional<http::Response>>(const Prepared* operation)>;

struct HttpOptions {
  std::size_t max_body = 1024 * 1024;         // bytes; more is 413
  std::chrono::milliseconds timeout{60'000};  // of an operation, see Prepared::run()
  Admission admission = {};                   // none: everybody may do everything
  int refused_status = 200;                   // of a well-formed request whose document is refused
};

// Answers one request of "GraphQL over HTTP" (https://graphql.github.io/graphql-over-http/draft/,
// section 6). Only POST with a body of application/json is served: fields of Query may change state,
// and a browser sends such a request to another site only after asking for leave.
//
// Statuses: 200 for each well-formed request, also, unless HttpOptions says otherwise, when its
// document is refused; 400 for a body that is no request, 405, 413, 415. A client that accepts application/graphql-response+json and not
// application/json gets that, and 400 for a refused document. Every body but that of a 405 has the
// form of a GraphQL answer.
Task<> serve_http(http::Exchange& exchange, Engine& engine, Context context,
                  const HttpOptions& options = {});

}  // namespace gitops::graphql
