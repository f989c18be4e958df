#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/inventory_verdict.hpp"

// Reads what an inventory is compared with. Errors are those of Connection.
namespace gitops::control_plane_server {

// A reporter of a runtime: a row of the table `reporter`.
struct ReporterName {
  std::int64_t account = 0;
  std::string runtime;
  std::string name;
};

// Returns the token of the resync that the reporter is asked for; empty: none.
Result<std::string> resync_token(store::Connection& connection, const ReporterName& reporter);
// Ends the resync with this token. One with another token goes on.
Result<void> end_resync(store::Connection& connection, const ReporterName& reporter,
                        std::string_view token);

// Returns the rows that are not gone, behind the key `after`, in the order of ObjectKey; at most `limit`.
Result<std::vector<InventoryRow>> inventory_rows(store::Connection& connection,
                                                 std::int64_t account, const ObjectKey& after,
                                                 std::int64_t limit);
// Returns those of one Application's resources.
Result<std::vector<InventoryRow>> inventory_rows_of(store::Connection& connection,
                                                    std::int64_t account, std::string_view runtime,
                                                    std::string_view owner_uid);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> inventory_statements();

}  // namespace gitops::control_plane_server
