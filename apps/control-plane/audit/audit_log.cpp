#include "control-plane/audit/audit_log.hpp"

#include <chrono>
#include <string>
#include <utility>

#include <prometheus/counter.h>

#include "common/net/address_list.hpp"
#include "control-plane/audit/audit_store.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxWaiting = 10'000;
constexpr auto kWait = std::chrono::seconds(5);  // of a request for its entry
constexpr auto kWriteLimit = std::chrono::seconds(10);

}  // namespace

// An entry on its way.
struct AuditLog::Waiting {
  Waiting(const Executor& executor, AuditEntry the_entry)
      : entry(std::move(the_entry)), done(executor) {}
  AuditEntry entry;
  bool is_done = false;
  gitops::Event done;
};

AuditLog::AuditLog(const Executor& executor, store::Database& database, Metrics& metrics)
    : database_(database),
      executor_(executor),
      queued_(executor),
      written_(executor),
      stored_(metrics.counter("gitops_control_plane_audit_entries_total",
                              "Entries of the audit log that were stored")),
      not_stored_(metrics.counter("gitops_control_plane_audit_entries_not_stored_total",
                                  "Entries of the audit log that are in the program's log "
                                  "instead, because the database did not take them")),
      tasks_(executor) {}

AuditLog::~AuditLog() = default;

void AuditLog::start() {
  tasks_.spawn("audit", [this] { return run(); });
}

Task<> AuditLog::idle(Deadline deadline) {
  while (!queue_.empty() || !under_way_.empty()) {
    if (!co_await written_.wait(deadline)) co_return;
  }
}

Task<> AuditLog::stop(Deadline deadline) {
  co_await idle(deadline);
  tasks_.cancel();
  co_await tasks_.join();
  for (const auto& waiting : std::exchange(under_way_, {})) {
    write_to_log(waiting->entry, "the program stops before it is known to be stored");
  }
  for (const auto& waiting : std::exchange(queue_, {})) {
    write_to_log(waiting->entry, "the program stops");
  }
}

void AuditLog::push(std::shared_ptr<Waiting> entry) {
  entry->entry.at = micros_at(wall_now());
  queue_.push_back(std::move(entry));
  queued_.notify_all();
}

Task<> AuditLog::add(AuditEntry entry) {
  if (queue_.size() >= kMaxWaiting) {
    write_to_log(entry, "too many entries wait");
    co_return;
  }
  const auto waiting = std::make_shared<Waiting>(executor_, std::move(entry));
  push(waiting);
  const auto deadline = deadline_after(kWait);
  while (!waiting->is_done && co_await waiting->done.wait(deadline)) {
  }
}

void AuditLog::add_refusal(AuditEntry entry) {
  const auto now = Clock::now();
  const auto verdict = refusals_.check(
      entry.caller_id + "\n" + entry.peer + "\n" + entry.action + "\n" + entry.target, now);
  if (!verdict.pass) return;
  const auto who = entry.caller_id.empty() ? net::client_network(entry.peer) : entry.caller_id;
  if (different_refusals_.wait_of(who, now) > Clock::duration::zero()) {
    ++left_out_;
    if (repeated_.check(who, now).pass) {
      log_.warning("refusals are left out of the audit log: there are too many of one client",
                   {{"caller_id", entry.caller_id}, {"peer", entry.peer}});
    }
    return;
  }
  different_refusals_.spend(who, now);
  if (left_out_ > 0) {
    entry.detail += " (and " + std::to_string(std::exchange(left_out_, 0)) +
                    " others before this entry were left out)";
  }
  if (verdict.suppressed > 0) {
    entry.detail += " (and " + std::to_string(verdict.suppressed) + " more since the last entry)";
  }
  if (queue_.size() >= kMaxWaiting) return write_to_log(entry, "too many entries wait");
  push(std::make_shared<Waiting>(executor_, std::move(entry)));
}

Task<> AuditLog::run() {
  while (true) {
    while (queue_.empty()) co_await queued_.wait();
    under_way_ = std::exchange(queue_, {});
    std::vector<AuditEntry> entries;
    for (const auto& waiting : under_way_) entries.push_back(waiting->entry);
    const auto stored = co_await database_.write(
        deadline_after(kWriteLimit),
        [entries](store::Connection& connection) { return append_audit(connection, entries); });
    const auto batch = std::exchange(under_way_, {});
    for (const auto& waiting : batch) {
      if (!stored) write_to_log(waiting->entry, stored.error().message.c_str());
      waiting->is_done = true;
      waiting->done.notify_all();
    }
    if (stored) stored_.Increment(static_cast<double>(batch.size()));
    written_.notify_all();
  }
}

void AuditLog::write_to_log(const AuditEntry& entry, const char* why) {
  not_stored_.Increment();
  const auto clean = cleaned(entry);
  log_.warning("an entry of the audit log is not in the database",
               {{"caller", clean.caller},
                {"caller_id", clean.caller_id},
                {"peer", clean.peer},
                {"action", clean.action},
                {"target", clean.target},
                {"result", to_string(clean.result)},
                {"detail", clean.detail},
                {"request_id", clean.request_id},
                {"error", why}});
}

}  // namespace gitops::control_plane_server
