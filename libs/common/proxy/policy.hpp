#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/core/async.hpp"
#include "common/core/time.hpp"
#include "common/core/trace.hpp"
#include "common/http/head.hpp"
#include "common/http/message.hpp"
#include "common/proxy/limits.hpp"

// Decisions of a program for the proxy core: the route of a request, its limits, and the responses
// to failures. The core has no routes of its own.
namespace gitops::proxy {

class Upstream;

// Sender of a request.
struct PeerInfo {
  boost::asio::ip::address address = {};
  std::string text = {};  // the address
  bool tls = false;
  std::shared_ptr<PeerUse> use = {};  // set by a server if it is null
};

// Route to an upstream. Requests share ownership of their route, so that routes can be replaced at
// any time.
struct Route {
  std::string name;    // for logs and metrics; bounded number
  std::size_t id = 0;  // defined by the policy
  std::shared_ptr<Upstream> upstream;
  RouteLimits limits;
  std::string host;        // Host for the upstream; empty: the client's
  std::string own_origin;  // see AnswerEdits
  std::string location_prefix;
};

struct Problem;

// Request whose body is complete. Its slices are valid until the request ends.
struct WholeRequest {
  const http::RequestHead& head;
  std::string_view request_id;
  std::string_view forwarded_head;  // as sent to the upstream
  std::vector<std::string_view> body = {};
};

// The response to a request, or nothing if it continues. The client is not read until it is known.
using Verdict = Task<std::optional<http::Response>>;

// Checks that a request must pass before it gets an upstream connection. Its whole body is held in
// memory until then (at most max_body bytes).
struct RequestInspection {
  // Authorizes the request with its whole body. Returns nothing to continue at once. May set
  // `admission`, which is Forward's.
  std::function<std::optional<Verdict>(const WholeRequest& request,
                                       std::shared_ptr<void>& admission)>
      admit;
  // Receives the data of the body in order, as it arrives. May be empty.
  std::function<void(std::string_view part)> inspect = {};
  // Called when an admitted request got no response from its upstream, or one whose status shows
  // that it was not processed (see is_unavailable()). Returns the response in place of
  // Policy::failed, or nothing. If set, a request continues to its end after its client has
  // disconnected. May be empty.
  std::function<Verdict(const WholeRequest& request, const Problem& problem)> undelivered = {};
  // The account charged for the held body and the lookup of the upstream's name; null: the peer's.
  std::shared_ptr<PeerUse> holder = {};
};

struct Forward {
  std::shared_ptr<const Route> route;
  std::string_view target;  // slice of the request's head, or of `rewritten`
  std::string rewritten = {};
  std::string_view request_id = {};  // empty: generated
  bool trusted_peer = false;
  // Set for requests that are inspected with their whole body, such as signed webhooks.
  std::unique_ptr<RequestInspection> inspection = {};
  // Released at the end of the request, after its record.
  std::shared_ptr<void> admission = {};
  Span span = {};  // of the request; set by the driver
};

using Decision = std::variant<Forward, http::Response>;

// Reason why an upstream's response is missing or incomplete.
enum class Failure {
  none,
  malformed_request,
  head_timeout,
  body_too_large,
  body_timeout,
  malformed_body,
  too_much_held,
  no_such_host,
  address_refused,
  connect_failed,
  connect_timeout,
  answer_timeout,
  upstream_lost,
  upstream_unavailable,  // by its response's status; see is_unavailable()
  malformed_answer,
  client_gone,
};
std::string_view to_string(Failure failure);

// Returns whether the status of a response shows that the request was not processed and may be sent
// again: 5xx other than 501 and 505.
bool is_unavailable(int status);

// Failure of a request, with the status for its client.
struct Problem {
  Failure failure = Failure::none;
  int status = 0;
  std::string detail = {};
  explicit operator bool() const { return failure != Failure::none; }
};

// Record of a finished request, for logs and metrics.
struct TransactionRecord {
  const http::RequestHead* head = nullptr;  // null if it was not parsed
  const Route* route = nullptr;             // null for our own response
  const PeerInfo* peer = nullptr;
  int status = 0;  // 499: the client disconnected before a response
  Failure failure = Failure::none;
  std::string_view detail;  // of the failure
  std::string_view request_id;
  std::string_view traceparent;  // as sent to the upstream; may be empty
  std::uint64_t bytes_in = 0;    // bodies
  std::uint64_t bytes_out = 0;
  Clock::duration took{};
  bool reused = false;    // the upstream connection was pooled
  bool upgraded = false;  // became a tunnel
};

// Callbacks of a program. Called on the loop thread; they must not block. The head is that of the
// current request.
struct Policy {
  std::function<Decision(const http::RequestHead& head, const PeerInfo& peer)> decide;
  // Returns the response for a failure with this status; `head` is null if it was not parsed.
  std::function<http::Response(const http::RequestHead* head, const Route* route, Failure failure,
                               int status, std::string_view detail)>
      failed;
  // Called once for each request that was decided on or that failed.
  std::function<void(const TransactionRecord& record)> done;
};

}  // namespace gitops::proxy
