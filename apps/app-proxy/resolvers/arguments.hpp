#pragma once

#include <chrono>
#include <string>

#include "app-proxy/users/caller.hpp"
#include "common/graphql/resolvers.hpp"

// Arguments and context of a call, for resolvers.
namespace gitops::app_proxy {

inline std::string text_of(graphql::InputView value) {
  return std::string(value.text());
}

// Returns the caller of an operation that passed its permission check. The reference is valid until
// the resolver has returned.
inline const User& user_of(graphql::Call& call) {
  return *call.context<Caller>().user;
}

// Returns a sentence for the description of a commit.
inline std::string requested_by(const User& user, const std::string& runtime) {
  return "Requested by " + (user.name.empty() ? user.id : user.name) + " through runtime " +
         runtime + ".";
}

// Deadline of a commit. It leaves some of the operation's time for the response, so that the caller
// learns whether a commit may have been pushed, and not only of a timeout.
inline Deadline commit_deadline(const graphql::Call& call) {
  return call.deadline() - std::chrono::seconds(2);
}

}  // namespace gitops::app_proxy
