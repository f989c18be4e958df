#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/accounts/identity.hpp"
#include "control-plane/projection/object.hpp"

// Finds the owner of a token in the database. Blocks.
namespace gitops::control_plane_server {

inline constexpr Micros kRuntimeSeenPeriod = 60LL * 1'000'000;  // between writes of runtime.seen_at

// The times of last use that a request has to update. They are written separately, because a reader cannot write.
struct DueTimes {
  std::int64_t account = 0;
  std::string key_id;
  std::string runtime;
  std::string session_hash;

  [[nodiscard]] bool empty() const {
    return key_id.empty() && runtime.empty() && session_hash.empty();
  }
};

struct Identification {
  // Null: the credential is unknown, expired or revoked; its user is disabled or no member; its service account is
  // disabled; its runtime is deleted.
  CallerPtr caller;
  DueTimes due;
};

// Returns the owner of a token: an API key, a runtime's token, a session or a page token. Errors are those of Connection; the owner
// is then not known.
Result<Identification> identify(store::Connection& connection, const Secret& token, Micros now);
Result<void> write_times(store::Connection& connection, const DueTimes& due, Micros now);

std::span<const store::Statement> identification_statements();

}  // namespace gitops::control_plane_server
