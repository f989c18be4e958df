#pragma once

#include "control-plane/storage/event_store.hpp"

namespace gitops::control_plane_server {

// Stores a batch with one statement for each row. SQLite runs in the process, so fewer statements would not be faster.
class SqliteEventStore final : public EventStore {
 public:
  explicit SqliteEventStore(std::string instance) : EventStore(std::move(instance)) {}

 protected:
  Result<Loaded> load(store::Connection& connection, std::span<const AccountKey> objects,
                      std::span<const ReporterKey> reporters) override;
  Result<void> apply(store::Connection& connection, const Writes& writes) override;
  Result<std::int64_t> take_ids(store::Connection& connection, std::int64_t count) override;

 private:
  std::int64_t next_id_ = 0;  // 0: not known yet
};

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> sqlite_event_statements();

}  // namespace gitops::control_plane_server
