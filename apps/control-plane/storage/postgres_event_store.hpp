#pragma once

#include "control-plane/storage/event_store.hpp"

namespace gitops::control_plane_server {

// Stores a batch in two round trips: BEGIN and the locked states, then all writes and COMMIT. Each table has one
// statement, with an array for each column. The connection is a store::PostgresConnection.
class PostgresEventStore final : public EventStore {
 public:
  explicit PostgresEventStore(std::string instance) : EventStore(std::move(instance)) {}

 protected:
  Result<Loaded> load(store::Connection& connection, std::span<const AccountKey> objects,
                      std::span<const ReporterKey> reporters) override;
  Result<void> apply(store::Connection& connection, const Writes& writes) override;
  Result<std::int64_t> take_ids(store::Connection& connection, std::int64_t count) override;

 private:
  Result<void> find_identity(store::Connection& connection);

  // The statement for the database's identity; null: not known yet.
  const store::Statement* identity_ = nullptr;
  // The remaining ids of the last block, and the connection that got it. After a failover, or a restore to an earlier
  // time, the server may give the same block to others.
  std::uint64_t ids_of_ = 0;
  std::int64_t next_id_ = 0;
  std::int64_t last_id_ = -1;
};

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> postgres_event_statements();

}  // namespace gitops::control_plane_server
