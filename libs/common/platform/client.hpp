#pragma once

#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"

namespace gitops::platform {

// The control plane's event endpoint: POST <url>/2.0/api/events, gzip, raw token in Authorization.
// One attempt per call; 2xx is success, everything else an Error with status and Retry-After but
// never the payload. Loop thread only.
class Client {
 public:
  // `token` is asked for before each request, so that a rotated one is used at once.
  Client(http::Client& http, http::Url url, std::function<Secret()> token);

  // `payload` is the JSON body {"data":…}; `event_id` goes into the X-Event-Id header so that a
  // receiver can drop duplicates (uid + resourceVersion + part).
  Task<Result<void>> post_event(std::string payload, std::string event_id, Deadline deadline);

 private:
  http::Client& http_;
  http::Url url_;
  std::function<Secret()> token_;
};

}  // namespace gitops::platform
