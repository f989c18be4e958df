#pragma once

#include <chrono>
#include <string>

#include "app-proxy/users/caller.hpp"
#include "common/graphql/resolvers.hpp"

// What resolvers read of a call.
namespace gitops::app_proxy {

inline std::string text_of(graphql::InputView value) {
  return std::string(value.text());
}

// The caller of an operation that passed the check of its permission. The reference holds until the
// resolver has returned.
inline const User& user_of(graphql::Call& call) {
  return *call.context<Caller>().user;
}

// For the description of a commit.
inline std::string requested_by(const User& user, const std::string& runtime) {
  return "Requested by " + (user.name.empty() ? user.id : user.name) + " through runtime " +
         runtime + ".";
}

// When a commit must have ended: some of the operation's time is left for the answer, so the caller
// learns whether a commit may have been pushed, and not only that the time is over.
inline Deadline commit_deadline(const graphql::Call& call) {
  return call.deadline() - std::chrono::seconds(2);
}

}  // namespace gitops::app_proxy
