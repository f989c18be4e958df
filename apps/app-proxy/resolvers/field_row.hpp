#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app-proxy/resolvers/features.hpp"
#include "app-proxy/users/caller.hpp"
#include "common/graphql/resolvers.hpp"

namespace gitops::app_proxy {

// Callers that may use a field. Rules of the account are checked by the field's own function with
// Rules::check(), since it has to read the entity first.
enum class Permission {
  anyone,  // also without a credential
  user,    // of the runtime's account
  admin,   // an administrator of that account
};

enum class RootType { query, mutation, subscription };

// A field of a root type: its permission and its resolver.
struct FieldRow {
  RootType root;
  std::string field;
  Permission permission;
  bool changes = false;                        // changes state; calls go to the audit stream
  std::vector<std::string_view> subject = {};  // arguments that name its object, as "args.name"
  graphql::Row row = {};
  std::vector<Feature> needs = {};
  std::optional<Error> missing = {};  // error of the field when the runtime lacks a feature
};

// Row of a field that only reads. `function` as in graphql::RowOf<Root>.
template <class F>
FieldRow read(std::string field, Permission permission, F function) {
  graphql::RowOf<graphql::Root> row(field, std::move(function));
  return {.root = RootType::query,
          .field = std::move(field),
          .permission = permission,
          .row = std::move(row)};
}

// Row of a field that changes state. `subject` names the arguments for the audit stream; it must
// not name a secret.
template <class F>
FieldRow change(std::string field, Permission permission, std::vector<std::string_view> subject,
                F function) {
  graphql::RowOf<graphql::Root> row(field, std::move(function));
  return {.root = RootType::mutation,
          .field = std::move(field),
          .permission = permission,
          .changes = true,
          .subject = std::move(subject),
          .row = std::move(row)};
}

// Row of a field of Subscription. `function` as in graphql::StreamRow.
template <class F>
FieldRow subscribe(std::string field, Permission permission, F function) {
  graphql::StreamRow row(field, std::move(function));
  return {.root = RootType::subscription,
          .field = std::move(field),
          .permission = permission,
          .row = std::move(row)};
}

// The same rows for a resolver with bound parts.
template <class F>
FieldRow needing(FieldRow row, Bound<F>& bound) {
  row.needs = std::move(bound.needs);
  row.missing = std::move(bound.missing);
  return row;
}
template <class F>
FieldRow read(std::string field, Permission permission, Bound<F> bound) {
  return needing(read(std::move(field), permission, std::move(bound.function)), bound);
}
template <class F>
FieldRow change(std::string field, Permission permission, std::vector<std::string_view> subject,
                Bound<F> bound) {
  return needing(
      change(std::move(field), permission, std::move(subject), std::move(bound.function)), bound);
}
template <class F>
FieldRow subscribe(std::string field, Permission permission, Bound<F> bound) {
  return needing(subscribe(std::move(field), permission, std::move(bound.function)), bound);
}

// The same field under Query, which some public clients use for changes, too. Pages of other sites
// cannot reach it: operations come by POST as JSON, or by a WebSocket that such a page may not
// open.
inline FieldRow under_query(FieldRow row) {
  row.root = RootType::query;
  return row;
}

}  // namespace gitops::app_proxy
