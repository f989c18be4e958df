#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/control_plane/inventory.hpp"
#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/core/trace.hpp"
#include "common/http/client.hpp"

namespace gitops::control_plane {

// The control plane's response to one event.
struct Answer {
  int status = 0;
  // The body is a page, as of a proxy or a login in front of the event endpoint. A success then
  // does not confirm the event.
  bool is_page = false;
  std::chrono::milliseconds retry_after{0};  // zero: no Retry-After
  std::string position = {};  // X-Intake-Position: where the database is; empty: not told
  std::string resync = {};    // X-Intake-Resync: the database went back in time; empty: it did not
  std::string again = {};     // X-Intake-Again, see read_report_requests(); empty: not sent
  // The beginning of a refusal's body. It may quote the event or the token, so only excerpt_of()
  // may be shown.
  std::string quoting;

  [[nodiscard]] bool is_success() const { return status >= 200 && status < 300 && !is_page; }
};

// Returns Answer::quoting for people: at most 200 printable characters, in which quotes from the
// event or the token are replaced by "…". Takes about 2 ms for each MB of the payload. Pure.
[[nodiscard]] std::string excerpt_of(std::string_view quoting, std::string_view payload,
                                     const Secret& token);

// The control plane's event endpoint: POST <url>/2.0/api/events, gzip, raw token in Authorization.
// One attempt for each call. Loop thread only.
class Client {
 public:
  // `token` is called before each request, so that a rotated token is used at once.
  Client(http::Client& http, http::Url url, std::function<Secret()> token);

  // The headers that identify and order an event (docs/reference/events.md, "Ids").
  struct Label {
    std::string id;              // X-Event-Id: the receiver drops an event with a known id
    std::uint64_t sequence = 0;  // X-Event-Sequence: the receiver drops older events of an object
    std::string reporter =
        {};                  // X-Reporter: the sender, "<mode>/<shard>/<ledger>"; empty: not told
    std::string seen = {};   // X-Intake-Seen: the Answer::position of last time; empty: none
    SpanContext trace = {};  // traceparent: the post becomes a span of it
  };
  // Sends an event. `payload` is the JSON body {"data":…}. It and `label` must stay valid until the
  // call returns. Any complete head is an Answer, even if its body is lost; an Error means that
  // none arrived. The media type and the beginning of the body reveal a page; a page's media type
  // with a lost body counts as one.
  Task<Result<Answer>> post(std::string_view payload, const Label& label, Deadline deadline);
  // Sends a payload that the caller has compressed (http::gzip_compress), as post() does.
  Task<Result<Answer>> post_compressed(std::string compressed, const Label& label,
                                       Deadline deadline);

  // Sends an inventory of this reporter (Label::reporter). Returns the uids of the objects whose resources have to be
  // told, too. A response other than 2xx is an Error with its status and Retry-After, as post_event()'s; one that has
  // another shape is unavailable.
  Task<Result<std::vector<std::string>>> post_inventory(const Inventory& inventory,
                                                        std::string reporter, Deadline deadline);

  // Asks where the database is, for a reporter (Label::reporter, Label::seen) without an event to
  // send: the Answer has position and resync. Errors are those of post_inventory(). A control plane
  // that does not know the question refuses it.
  Task<Result<Answer>> post_position(Label label, Deadline deadline);

  // Sends an event for callers that only need success or failure: a response other than 2xx is an
  // Error with its status and Retry-After, without any of the payload.
  Task<Result<void>> post_event(std::string payload, Label label, Deadline deadline);

 private:
  // A response with its body; `is_cut` when it was not read to its end.
  struct Reply {
    Answer answer;
    std::string body;
    bool is_cut = false;
  };
  // The limits of reading the body of a response.
  struct BodyLimits {
    std::size_t max_bytes = 0;
    // Time from the head on; absent: up to the deadline of the request.
    std::optional<std::chrono::milliseconds> time = std::nullopt;
  };
  Task<Result<Reply>> send(std::string_view path, http::Headers headers, std::string compressed,
                           BodyLimits limits, Deadline deadline);

  http::Client& http_;
  http::Url url_;
  std::function<Secret()> token_;
};

}  // namespace gitops::control_plane
