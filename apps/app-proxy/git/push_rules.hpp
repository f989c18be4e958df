#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

// Decisions after a push. Pure: the committer carries them out. The rules:
//
//  - Our commits are built once for each state of the branch. While the branch is where it was, the
//    same commits are pushed again, so that a push whose response was lost cannot count twice.
//  - A missing response or a refusal is never trusted alone; the branch decides. If it has our
//    commit, the request is done. If it has moved on without our commit, the commits are built again
//    on top. If it has not moved, a refused push was refused for its own reason.
//  - A temporary refusal, as for a lock that another push holds, is retried for some seconds. A
//    refusal is never reported as an unknown outcome.
//  - A refused push of several commits is retried commit by commit, so that one does not fail the
//    others.
namespace gitops::app_proxy {

// Result of a push.
struct PushAnswer {
  enum class Kind : std::uint8_t {
    accepted,
    refused,   // by the server, with a reason: a race, a hook, a protected branch, a full disk
    not_now,   // by the server, for a temporary reason
    lost,      // sent, in whole or in part, without a response
    not_sent,  // nothing was sent that could change the branch
  };
  Kind kind = Kind::not_sent;
  Error error = {};  // set unless accepted
};

// Checks whether a refusal is temporary. `refusal` is its reason as the server reports it; `words`
// are other texts of the server.
bool is_passing(std::string_view refusal, std::string_view words);
// Cause of a refusal, for people: a full disk, a quota, the size, a check of objects. Empty when
// the cause is unknown or another one.
std::string_view cause_of_refusal(std::string_view refusal, std::string_view words);

// State of the branch, compared with the last push of these commits.
enum class BranchState : std::uint8_t {
  has_ours,  // our last commit is the tip or behind it
  same,      // the tip is still the commit that ours were built on
  moved,     // any other tip
};

// Work of an attempt once it knows the branch. `last` is nullopt in the first attempt.
enum class PushStep : std::uint8_t {
  build,       // build the commits on the tip, push them
  push_again,  // push the existing commits
  landed,      // nothing: they are in the branch
  refused,     // nothing: the server refuses them
};
PushStep step_of(const std::optional<PushAnswer>& last, BranchState state);

// Decision of the committer after an attempt.
enum class NextStep : std::uint8_t {
  done,
  again,  // another attempt, after a pause
  split,  // one attempt for each commit
  fail,
};
struct Attempt {
  PushAnswer answer;
  PushStep step = PushStep::build;
  std::size_t commits = 1;           // in the push
  unsigned rounds = 1;               // so far, this one included
  unsigned refused_connections = 0;  // in a row, this attempt included
  unsigned not_now = 0;              // in a row, this attempt included
};
NextStep next_of(const Attempt& attempt);

// Error for the caller after NextStep::fail. `maybe_pushed`: a push of these commits was sent and
// its outcome is unknown.
Error final_error(const PushAnswer& answer, bool maybe_pushed);

// Number of attempts after which a branch that others change all the time is given up.
inline constexpr unsigned kMaxRounds = 30;
// Number of refused connections in a row after which a server is given up, unless a push has been
// sent.
inline constexpr unsigned kMaxRefusedConnections = 3;
// Number of temporary refusals in a row that are retried: about ten seconds with the committer's
// pauses.
inline constexpr unsigned kMaxNotNow = 12;

}  // namespace gitops::app_proxy
