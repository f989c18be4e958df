#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/json_text.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/trace.hpp"
#include "common/http/router.hpp"
#include "common/store/database.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/intake/event_writer.hpp"
#include "control-plane/intake/inventory_intake.hpp"
#include "control-plane/intake/report_requests.hpp"
#include "control-plane/intake/storage_watch.hpp"

namespace gitops::control_plane_server {

class AuditLog;

// Serves the event endpoint, which docs/reference/events.md describes from the sender's side: POST /2.0/api/events and its
// siblings /event-payload (CloudEvents of Git webhooks), /error (errors of event sources) and /inventory (the objects of
// a reporter, after the database went back in time), with the token of a runtime.
//
// Responses: 200 after the commit, also for a duplicate and a stale event; 400 with a code for a malformed event and one
// that the database refuses; 401; 403 for the key of a user; 413, 415; 429 and 503 with Retry-After. An event that can
// never be stored for another reason is acknowledged after it was put into quarantine, so that its reporter goes on.
class EventRoutes {
 public:
  struct Options {
    std::size_t max_body =
        10UL * 1024 * 1024;  // as sent, and decoded; the limit of the public gateway
    std::chrono::milliseconds hold{10'000};  // then 503; the event may still be committed
    std::chrono::milliseconds hold_inventory{25'000};
    // Reports of event sources, and events for the quarantine, that are written at the same time.
    std::size_t max_reports_per_runtime = 4;
    std::size_t max_reports = 64;
    std::int64_t max_quarantined = 1'000;  // rows of one runtime, or a few more; the newest stay
    // Bytes of bodies that are being read, or that are no events of the queue. The limit of an account lets others in
    // while one reads slowly.
    std::size_t max_held = 128UL * 1024 * 1024;
    std::size_t max_held_per_account = 32UL * 1024 * 1024;
    // The address whose attempts with wrong tokens count; empty: the other end of the connection.
    std::function<std::string(http::Exchange&)> client_of = {};
    AuditLog* audit = nullptr;  // of refused credentials; null: none
    Tracer* tracer = nullptr;   // of the spans of requests; null: none
    // Called after the commit of an event whose trace is recorded.
    std::function<void(std::int64_t account, const ObjectState& state, const SpanContext& trace)>
        committed = {};
  };
  // All of them outlive the routes and their requests.
  EventRoutes(Authenticator& authenticator, EventWriter& writer, store::Database& database,
              const StorageWatch& storage, Metrics& metrics, Options options);

  [[nodiscard]] std::vector<http::Route> routes();

 private:
  struct Held;
  class BodyRoom;
  struct Received {
    CallerPtr caller;
    std::string body;
    std::shared_ptr<BodyRoom> room;  // of the body
  };
  // Reports that are written now, by runtime.
  using Running = std::map<std::string, std::size_t>;
  class Permit;

  // Makes the response to what was received.
  using Respond = Task<http::Response> (EventRoutes::*)(http::Exchange&, const Received&);
  Task<> serve(http::Exchange& exchange, Respond respond);
  Task<http::Response> take_event(http::Exchange& exchange, const Received& received);
  Task<http::Response> take_event_payload(http::Exchange& exchange, const Received& received);
  Task<http::Response> take_source_error(http::Exchange& exchange, const Received& received);
  // Returns the runtime that sends and its body, or the response that refuses it. Neither when the client is gone.
  Task<std::expected<Received, std::optional<http::Response>>> receive(http::Exchange& exchange);
  // Returns the decoded body; too_many_requests when there is no room for it.
  Task<Result<std::string>> read_body(http::Exchange& exchange, BodyRoom& room) const;
  Task<http::Response> take_inventory(http::Exchange& exchange, const Received& received);
  // Tells a reporter without an event where the database is.
  Task<http::Response> tell_position(const Received& received, std::string reporter,
                                     IntakePosition seen);
  [[nodiscard]] std::string client_of(http::Exchange& exchange) const;
  void audit_refusal(http::Exchange& exchange, const Caller* caller, std::string why);
  struct Acknowledgement {
    StoredEvent stored;
    std::string again;  // X-Intake-Again; empty: none
  };
  Task<Result<Acknowledgement>> store(const http::Exchange& exchange, const Received& received,
                                      const SpanContext& trace);
  Task<http::Response> refuse(http::Exchange& exchange, const Received& received,
                              const Error& error);
  using Work = std::function<Result<void>(store::Connection&)>;
  Task<Result<void>> write_report(const Caller& caller, Work work);
  // Stores a refused event for operators.
  Task<Result<void>> quarantine(const Caller& caller, const http::Exchange& exchange,
                                std::size_t bytes, std::string why);

  Authenticator& authenticator_;
  EventWriter& writer_;
  store::Database& database_;
  const StorageWatch& storage_;
  Options options_;
  JsonParser parser_;
  InventoryIntake inventories_;
  ReportRequests requests_;
  std::int64_t quarantined_no_ = 0;
  std::shared_ptr<Running> running_ = std::make_shared<Running>();
  std::shared_ptr<Held> held_;
  Log log_{"intake"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& quarantined_;
  Counter& unauthenticated_;
  Counter& reports_;
};

}  // namespace gitops::control_plane_server
