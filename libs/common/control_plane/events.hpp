#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"

namespace gitops::control_plane {

// What the control plane answered to one event.
struct Answer {
  int status = 0;
  std::chrono::milliseconds retry_after{0};  // zero when it asked for nothing
  // The beginning of a refusal's body, for people: at most 200 printable characters. What it quotes
  // of the event or of the token is replaced by "…".
  std::string excerpt;

  [[nodiscard]] bool is_success() const { return status >= 200 && status < 300; }
};

// The control plane's event endpoint: POST <url>/2.0/api/events, gzip, raw token in Authorization.
// One attempt per call. Loop thread only.
class Client {
 public:
  // `token` is asked for before each request, so that a rotated one is used at once.
  Client(http::Client& http, http::Url url, std::function<Secret()> token);

  // `payload` is the JSON body {"data":…}; `event_id` goes into the X-Event-Id header so that a
  // receiver can drop duplicates (uid + resourceVersion + part). Both are used until it returns.
  // Any complete head is an answer, whatever becomes of its body; an Error means that none came.
  Task<Result<Answer>> post(std::string_view payload, std::string_view event_id, Deadline deadline);

  // The same for callers that ask only whether it was taken: an answer other than 2xx is an Error
  // with status and Retry-After but never the payload.
  Task<Result<void>> post_event(std::string payload, std::string event_id, Deadline deadline);

 private:
  http::Client& http_;
  http::Url url_;
  std::function<Secret()> token_;
};

}  // namespace gitops::control_plane
