#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/time.hpp"
#include "common/graphql/resolvers.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/resolvers/field_row.hpp"
#include "control-plane/views/entity_view.hpp"
#include "control-plane/views/object_query.hpp"
#include "control-plane/views/page.hpp"

// Helpers by which resolvers of views read the arguments of a call.
namespace gitops::control_plane_server {

// Returns the page that the argument `pagination` selects.
inline Result<PageWindow> window_of(const graphql::Call& call, std::size_t key_numbers) {
  const auto pagination = call["pagination"];
  SliceArguments arguments{.after = std::string(pagination["after"].text()),
                           .before = std::string(pagination["before"].text())};
  if (pagination["first"].exists()) arguments.first = pagination["first"].integer();
  if (pagination["last"].exists()) arguments.last = pagination["last"].integer();
  return page_window(arguments, key_numbers);
}

inline ViewContext view_context(const Caller& caller) {
  return {.account = caller.account->id, .now = micros_at(wall_now())};
}

// Adds a text unless it is empty; clients send an empty text for "any".
inline void add_given(std::vector<std::string>& to, graphql::InputView value) {
  if (!value.text().empty()) to.emplace_back(value.text());
}
// Adds the texts of a list, without empty ones and nulls.
inline void add_all(std::vector<std::string>& to, graphql::InputView list) {
  for (const auto& item : list.items()) add_given(to, item);
}

// Returns whether one of these fields is selected at any depth.
inline bool selects_any(const graphql::Call& call, std::initializer_list<std::string_view> fields) {
  return std::ranges::any_of(fields,
                             [&call](std::string_view field) { return call.selects_below(field); });
}

}  // namespace gitops::control_plane_server
