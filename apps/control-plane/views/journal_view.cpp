#include "control-plane/views/journal_view.hpp"

#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "control-plane/projection/event.hpp"
#include "control-plane/views/view_json.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

// A uid that no object has, for Applications whose uid is not known.
constexpr std::string_view kNoUid = "\n";

// Rows of the Application's timeline, of its resources, of the Application itself unless the timeline has that delivery,
// and of the quarantine. `source` is a DeliveryKind, but for `repeated`, which has a column of its own.
constexpr std::string_view kDeliveries =
    "SELECT at, source, no, step, event_id, sequence, is_repeated, api_group, kind, namespace, "
    "name, revision, sync, health, phase, author, message, bytes FROM ("
    "SELECT t.at AS at, CAST(0 AS BIGINT) AS source, t.sequence AS no, t.step AS step, t.event_id "
    "AS event_id, t.sequence AS sequence, 0 AS is_repeated, '' AS api_group, '' AS kind, '' AS "
    "namespace, '' AS name, t.revision AS revision, t.sync AS sync, t.health AS health, t.phase AS "
    "phase, t.author AS author, t.message AS message, 0 AS bytes FROM timeline t "
    "WHERE t.account = $1 AND t.object = $2 "
    "UNION ALL SELECT o.seen_at, 1, o.id, o.presence, o.event_id, o.sequence, 0, o.api_group, "
    "o.kind, o.namespace, o.name, o.revision, o.sync, o.health, o.phase, '', o.health_message, 0 "
    "FROM object o WHERE o.account = $1 AND o.runtime = $3 AND o.origin = 0 AND o.owner_uid = $4 "
    "UNION ALL SELECT o.seen_at, 1, o.id, o.presence, o.event_id, o.sequence, CASE WHEN "
    "o.event_id <> '' AND EXISTS (SELECT 1 FROM timeline t WHERE t.account = $1 AND t.object = "
    "o.id AND t.event_id = o.event_id) THEN 1 ELSE 0 END, o.api_group, o.kind, o.namespace, "
    "o.name, o.revision, o.sync, o.health, o.phase, '', o.health_message, 0 FROM object o "
    "WHERE o.account = $1 AND o.id = $2 AND NOT EXISTS (SELECT 1 FROM timeline t WHERE t.account = "
    "$1 AND t.object = o.id AND t.at = o.seen_at) "
    "UNION ALL SELECT q.at, 3, q.no, 0, q.event_id, 0, 0, '', '', '', '', '', 0, 0, 0, '', q.why, "
    "q.bytes FROM quarantine q WHERE q.account = $1 AND q.runtime = $3 AND "
    "strpos(q.event_id, $5) = 1) e ";
constexpr std::string_view kDescending =
    "WHERE (at, source, no) < ($6, $7, $8) ORDER BY at DESC, source DESC, no DESC LIMIT $9";
constexpr std::string_view kAscending =
    "WHERE (at, source, no) > ($6, $7, $8) ORDER BY at, source, no LIMIT $9";
constexpr std::array<Statement, 2> kStatements{{
    {.name = "views.journal_desc", .sql = store::joined<kDeliveries, kDescending>},
    {.name = "views.journal_asc", .sql = store::joined<kDeliveries, kAscending>},
}};

struct Delivery {
  Micros at = 0;
  std::int64_t source = 0;
  std::int64_t no = 0;
  TimelineStep step = TimelineStep::changed;
  std::string event_id = {};
  std::int64_t sequence = 0;
  DeliveryKind kind = DeliveryKind::milestone;
  ObjectKey object = {};
  std::string revision = {};
  SyncStatus sync = SyncStatus::unknown;
  HealthStatus health = HealthStatus::none;
  Phase phase = Phase::none;
  std::string author = {};
  std::string message = {};
  std::int64_t bytes = 0;
};

Delivery delivery_of(const store::Rows& rows, std::size_t row) {
  std::size_t at = 0;
  const auto number = [&] { return rows.number(row, at++); };
  const auto text = [&] { return rows.string(row, at++); };
  Delivery found;
  found.at = number();
  found.source = number();
  found.no = number();
  const auto step = number();
  found.event_id = text();
  found.sequence = number();
  found.kind = number() != 0 ? DeliveryKind::repeated : static_cast<DeliveryKind>(found.source);
  found.object.group = text();
  found.object.kind = text();
  found.object.object_namespace = text();
  found.object.name = text();
  found.revision = text();
  found.sync = static_cast<SyncStatus>(number());
  found.health = static_cast<HealthStatus>(number());
  found.phase = static_cast<Phase>(number());
  found.author = text();
  found.message = text();
  found.bytes = number();
  // A row of the table `object` has a presence in place of a step.
  if (found.source == 0) {
    found.step = static_cast<TimelineStep>(step);
  } else if (static_cast<Presence>(step) == Presence::gone) {
    found.step = TimelineStep::gone;
  }
  return found;
}

std::string_view to_string(DeliveryKind kind) {
  constexpr std::array<std::string_view, 4> kWords{"MILESTONE", "LATEST", "REPEATED", "REFUSED"};
  return kWords.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(TimelineStep step) {
  constexpr std::array<std::string_view, 4> kWords{"CREATED", "CHANGED", "RECREATED", "GONE"};
  return kWords.at(static_cast<std::size_t>(step));
}

// A sequence is the time at which our reporters made the event (docs/reference/events.md, "Ids and order"). Other reporters may
// send any number.
Micros reported_at(const Delivery& delivery) {
  constexpr Micros kEarliest = 1'577'836'800'000'000;  // 2020
  constexpr Micros kAhead = 600'000'000;               // of the clock here
  const bool is_time = delivery.sequence >= kEarliest && delivery.sequence <= delivery.at + kAhead;
  // The timeline has the time of arrival in the place of a sequence that was not sent.
  return is_time && delivery.sequence != delivery.at ? delivery.sequence : 0;
}

void append_delivery(std::string& out, const Delivery& delivery, const ObjectState& application) {
  const bool is_refused = delivery.kind == DeliveryKind::refused;
  const auto& object = delivery.object.kind.empty() ? application.key : delivery.object;
  const bool has_sequence = delivery.sequence > 0 && delivery.sequence != delivery.at;
  ObjectJson at(out);
  at.text("kind", to_string(delivery.kind));
  at.text_or_null("eventId", delivery.event_id);
  at.text_or_null("sequence", has_sequence ? std::to_string(delivery.sequence) : "");
  at.time_or_null("reportedAt", reported_at(delivery));
  at.time_or_null("receivedAt", delivery.at);
  if (is_refused) {
    at.text("reason", delivery.message);
    at.number("bytes", delivery.bytes);
    at.end();
    return;
  }
  at.text("step", to_string(delivery.step));
  at.object("object", [&](ObjectJson& of) {
    of.text_or_null("group", object.group);
    of.text("kind", object.kind);
    of.text_or_null("namespace", object.object_namespace);
    of.text("name", object.name);
  });
  at.text_or_null("revision", delivery.revision);
  at.text("syncStatus", to_string(delivery.sync));
  at.text_or_null("healthStatus", to_string(delivery.health));
  at.text_or_null("phase", to_string(delivery.phase));
  if (delivery.source == 0) {
    at.text_or_null("commitAuthor", delivery.author);
    at.text_or_null("commitMessage", delivery.message);
  } else {
    at.text_or_null("healthMessage", delivery.message);
  }
  at.end();
}

}  // namespace

Result<std::string> journal_slice(Connection& connection, std::int64_t account,
                                  const ObjectState& application, const PageWindow& window) {
  const auto end = window.is_backward ? 0 : std::numeric_limits<std::int64_t>::max();
  const auto from = window.from ? window.from->numbers : std::vector<std::int64_t>{end, end, end};
  const std::string_view uid = application.uid.empty() ? kNoUid : std::string_view(application.uid);
  const auto prefix = std::string(uid) + '/';
  const auto rows = connection.run(kStatements.at(window.is_backward ? 1 : 0),
                                   {account, application.id, application.key.runtime, uid, prefix,
                                    from.at(0), from.at(1), from.at(2), window.limit + 1});
  if (!rows) return std::unexpected(rows.error());
  std::vector<PageItem> items;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    const auto delivery = delivery_of(*rows, row);
    auto& item = items.emplace_back();
    item.key.numbers = {delivery.at, delivery.source, delivery.no};
    append_delivery(item.node, delivery, application);
  }
  return slice_json(window, std::move(items));
}

std::span<const Statement> journal_statements() {
  return kStatements;
}

}  // namespace gitops::control_plane_server
