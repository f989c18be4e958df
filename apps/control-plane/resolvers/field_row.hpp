#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/graphql/resolvers.hpp"
#include "common/store/database.hpp"
#include "control-plane/accounts/identity.hpp"
#include "control-plane/accounts/scopes.hpp"

namespace gitops::control_plane_server {

class Authenticator;
class LiveUpdates;
class SecretStore;
class TunnelBans;

// The permission that a field requires. Rows of other accounts stay invisible in any case: every statement contains the
// account of the caller.
enum class Permission {
  anyone,   // also without a credential
  member,   // a user or a runtime of the account
  user,     // a user of the account
  admin,    // an administrator of the account
  runtime,  // a runtime of the account
};

enum class RootType { query, mutation, subscription };

// The request of an operation, as its resolvers see it: the context of graphql::Call. Outlives the operation.
struct RequestContext {
  CallerPtr caller = {};        // null: no credential, or one that is not valid
  std::string request_id = {};  // for the log
  std::string peer = {};        // address of the client
};

// Returns the caller of a field that requires one. The reference is valid until the operation has ended.
inline const Caller& caller_of(const graphql::Call& call) {
  return *call.context<RequestContext>().caller;
}

// The dependencies of the resolvers. App owns all of them; they outlive the engine.
struct Dependencies {
  store::Database& database;
  Authenticator* authenticator = nullptr;  // null in tests that change no credential
  SecretStore* secrets = nullptr;          // null: no master key, so keys cannot be sealed
  TunnelBans* tunnels = nullptr;           // null: no tunnel server is configured
  LiveUpdates* live = nullptr;             // null in tests without subscriptions
  std::string tunnel_domain = {};          // parent of the hosts of tunnels; empty: none
  // Called after a change that add_account_change() has recorded; empty: the next poll finds it.
  std::function<void()> account_changed = {};
};

// A field of a root type: its permission and its resolver.
struct FieldRow {
  RootType root;
  std::string field;
  Permission permission;
  bool changes = false;    // state
  bool is_report = false;  // a change that a program reports, which is not audited
  std::vector<std::string_view> subject = {};  // its arguments that name the object, as "args.name"
  Scopes scopes = {};                          // one of which an API key with scopes needs
  graphql::Row row = {};
};

// Makes the row of a field that only reads. `function` as in graphql::RowOf<Root>.
template <class F>
FieldRow read(std::string field, Permission permission, F function, Scopes scopes = {kScopeRead}) {
  graphql::RowOf<graphql::Root> row(field, std::move(function));
  return {.root = RootType::query,
          .field = std::move(field),
          .permission = permission,
          .scopes = std::move(scopes),
          .row = std::move(row)};
}

// Makes the row of a field that changes state. `subject` names arguments that may be logged; it never names a secret.
template <class F>
FieldRow change(std::string field, Permission permission, std::vector<std::string_view> subject,
                F function, Scopes scopes = {kScopeWrite}) {
  graphql::RowOf<graphql::Root> row(field, std::move(function));
  return {.root = RootType::mutation,
          .field = std::move(field),
          .permission = permission,
          .changes = true,
          .subject = std::move(subject),
          .scopes = std::move(scopes),
          .row = std::move(row)};
}

// Makes the row of a field whose events are sent as they come. `function` as in graphql::StreamRow.
template <class F>
FieldRow subscribe(std::string field, Permission permission, F function) {
  graphql::StreamRow row(field, std::move(function));
  return {.root = RootType::subscription,
          .field = std::move(field),
          .permission = permission,
          .scopes = {kScopeRead},
          .row = std::move(row)};
}

// Makes the row of a field by which a runtime reports about itself, several times a minute.
template <class F>
FieldRow report(std::string field, std::vector<std::string_view> subject, F function) {
  auto row = change(std::move(field), Permission::runtime, std::move(subject), std::move(function));
  row.is_report = true;
  return row;
}

}  // namespace gitops::control_plane_server
