#pragma once

#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"

namespace gitops::control_plane {

// The control plane's GraphQL endpoint: POST <url>/2.0/api/graphql, raw token in Authorization. One
// attempt per call. Loop thread only.
class GraphqlClient {
 public:
  // `token` is called before each request; an empty token is not sent.
  GraphqlClient(http::Client& http, http::Url url, std::function<Secret()> token);

  // The query `me`: the name of the token's account, which may be empty. `unauthenticated` when the
  // token is refused.
  Task<Result<std::string>> account(Deadline deadline);

 private:
  http::Client& http_;
  http::Url url_;
  std::function<Secret()> token_;
};

}  // namespace gitops::control_plane
