#pragma once

#include <string_view>

#include "common/core/error.hpp"

// Values of Error::subcode that this folder sets. They are internal: resolvers/commits maps them to
// those of errors/client_codes.hpp.
namespace gitops::app_proxy {

// Failures of the local clone, not of the server.
inline constexpr std::string_view kBrokenClone = "BrokenClone";  // a new clone is needed
inline constexpr std::string_view kDiskFull = "DiskFull";
inline bool is_clone_failure(const Error& error) {
  return error.subcode == kBrokenClone || error.subcode == kDiskFull;
}

// The branch has the contents of the commit already.
inline constexpr std::string_view kNothingToCommit = "NothingToCommit";
// Commits must be signed, and there is no usable key.
inline constexpr std::string_view kNoSigningKey = "NoSigningKey";
// A refusal with a known cause_of_refusal().
inline constexpr std::string_view kServerLimit = "ServerLimit";
// A success in another media type than Git's: another server responded in place of the Git server.
inline constexpr std::string_view kNotGit = "NotGit";
// A push was sent, and it is not known whether it has changed the branch. Its message has nothing
// of the local clone.
inline constexpr std::string_view kOutcomeUnknown = "OutcomeUnknown";
// See CommitRequest::needs_default_branch.
inline constexpr std::string_view kDefaultBranchUnknown = "DefaultBranchUnknown";
// Committer::stop() ended the request.
inline constexpr std::string_view kStopping = "Stopping";

}  // namespace gitops::app_proxy
