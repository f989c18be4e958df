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
#include "common/http/message.hpp"
#include "common/proxy/head.hpp"
#include "common/proxy/limits.hpp"

// What a program decides for the proxy core: where a request goes, which limits apply, and what
// failures say. The core knows no routes itself.
namespace gitops::proxy {

class Upstream;

// Who sent a request.
struct PeerInfo {
  boost::asio::ip::address address = {};
  std::string text = {};  // the address
  bool tls = false;
  std::shared_ptr<PeerUse> use = {};  // a server sets it where it is missing
};

// A route to an upstream. Requests share ownership of theirs, so that routes can be replaced at any
// time.
struct Route {
  std::string name;    // for logs and metrics: bounded
  std::size_t id = 0;  // the policy's own
  std::shared_ptr<Upstream> upstream;
  RouteLimits limits;
  std::string host;        // Host for the upstream; empty: the client's
  std::string own_origin;  // see AnswerEdits
  std::string location_prefix;
};

struct Problem;

// A request whose body is complete. Its slices are valid until the request ends.
struct WholeRequest {
  const RequestHead& head;
  std::string_view request_id;
  std::string_view forwarded_head;  // as the upstream gets it
  std::vector<std::string_view> body = {};
};

// What a request must pass before an upstream is taken for it. Its whole body is held in memory until
// then (at most max_body bytes). The functions that return a Task may wait; the client is not read
// meanwhile.
struct RequestInspection {
  // Asked once the whole body is there: nothing when the request may go on, else the answer to it.
  // May set `admission`, which is Forward's.
  std::function<Task<std::optional<http::Response>>(const WholeRequest& request,
                                                    std::shared_ptr<void>& admission)>
      admit;
  // Is given the data of the body as it comes, in order. May be empty.
  std::function<void(std::string_view part)> inspect = {};
  // Asked when an admitted request got no answer from its upstream, or one with a status that says
  // that nobody took it (see is_unavailable()): the answer in place of Policy::failed, or nothing.
  // With it, a request goes on to its end when its client has left. May be empty.
  std::function<Task<std::optional<http::Response>>(const WholeRequest& request,
                                                    const Problem& problem)>
      undelivered = {};
  // To whom the held body, and the lookup of the upstream's name, are charged; null: to the peer.
  std::shared_ptr<PeerUse> holder = {};
};

struct Forward {
  std::shared_ptr<const Route> route;
  std::string_view target;  // into the request's head, or into `rewritten`
  std::string rewritten = {};
  std::string_view request_id = {};  // empty: a new one
  bool trusted_peer = false;
  // For requests that are inspected with their whole body, such as signed webhooks.
  std::unique_ptr<RequestInspection> inspection = {};
  // Released at the end of the request, after it was recorded.
  std::shared_ptr<void> admission = {};
};

using Decision = std::variant<Forward, http::Response>;

// Why an upstream's answer is missing or incomplete.
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
  upstream_unavailable,  // it answered so; see is_unavailable()
  malformed_answer,
  client_gone,
};
std::string_view to_string(Failure failure);

// Whether the status of an answer says that the request was not dealt with and may be sent again: 5xx
// other than 501 and 505.
bool is_unavailable(int status);

// Why a request failed, and the status for its client.
struct Problem {
  Failure failure = Failure::none;
  int status = 0;
  std::string detail = {};
  explicit operator bool() const { return failure != Failure::none; }
};

// A finished request, for logs and metrics.
struct TransactionRecord {
  const RequestHead* head = nullptr;  // null when it could not be read
  const Route* route = nullptr;       // null when we answered ourselves
  const PeerInfo* peer = nullptr;
  int status = 0;  // 499: the client went away before an answer
  Failure failure = Failure::none;
  std::string_view detail;  // of the failure
  std::string_view request_id;
  std::uint64_t bytes_in = 0;  // bodies
  std::uint64_t bytes_out = 0;
  Clock::duration took{};
  bool reused = false;    // the upstream's connection
  bool upgraded = false;  // became a tunnel
};

// The callbacks of a program. Called on the loop thread; must not block. The head is that of the
// current request.
struct Policy {
  std::function<Decision(const RequestHead& head, const PeerInfo& peer)> decide;
  // The answer for a failure with this status; `head` is null when it could not be read.
  std::function<http::Response(const RequestHead* head, const Route* route, Failure failure,
                               int status, std::string_view detail)>
      failed;
  // Called once for each request that was decided on or failed.
  std::function<void(const TransactionRecord& record)> done;
};

}  // namespace gitops::proxy
