#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

// What follows from a push. Pure: the committer does what is decided here. The rules:
//
//  - Our commits are built once for each state of the branch. While the branch is where it was, the
//    same commits are pushed again, so that a push whose answer was lost cannot count twice.
//  - An answer that is missing or a refusal is never believed alone; the branch decides. It holds our
//    commit: done. It has moved on without it: build again on top. It has not moved: a refused push
//    was refused for a reason of its own.
//  - A refusal that passes by itself, as a lock that another push holds, is tried again for some
//    seconds. No refusal is ever reported as an unknown outcome.
//  - A refused push of several commits is tried commit by commit, so that nobody pays for another's.
namespace gitops::app_proxy {

// What the server said to a push.
struct PushAnswer {
  enum class Kind : std::uint8_t {
    accepted,
    refused,   // by the server, with a reason: a race, a hook, a protected branch, a full disk
    not_now,   // by the server, for a reason that passes by itself
    lost,      // sent, in whole or in part, and no answer
    not_sent,  // nothing that could change the branch left us
  };
  Kind kind = Kind::not_sent;
  Error error = {};  // unless accepted
};

// Whether a refusal passes by itself. `refusal`: its reason as the server reports it; `words`: what
// the server says beside it.
bool is_passing(std::string_view refusal, std::string_view words);
// What is behind a refusal, for people: a full disk, a quota, the size, a check of objects. Empty
// when the server does not tell, or it is something else.
std::string_view cause_of_refusal(std::string_view refusal, std::string_view words);

// Where the branch is, compared with the last push of these commits.
enum class BranchState : std::uint8_t {
  has_ours,  // our last commit is the tip or behind it
  same,      // the tip is still the commit that ours were built on
  moved,     // any other tip
};

// What An attempt does once it knows the branch. `last` is nullopt in the first one.
enum class PushStep : std::uint8_t {
  build,       // make the commits on the tip, push them
  push_again,  // push the commits made before
  landed,      // nothing: they are in the branch
  refused,     // nothing: the server does not want them
};
PushStep step_of(const std::optional<PushAnswer>& last, BranchState state);

// What the committer does after an attempt.
enum class NextStep : std::uint8_t {
  done,
  again,  // another attempt, after a pause
  split,  // an attempt for each commit by itself
  fail,
};
struct Attempt {
  PushAnswer answer;
  PushStep step = PushStep::build;
  std::size_t commits = 1;           // that the push had
  unsigned rounds = 1;               // so far, this one included
  unsigned refused_connections = 0;  // in a row, this attempt included
  unsigned not_now = 0;              // likewise
};
NextStep next_of(const Attempt& attempt);

// The error for the caller after NextStep::fail. `maybe_pushed`: a push of these commits was sent
// and its outcome is not known.
Error final_error(const PushAnswer& answer, bool maybe_pushed);

// A branch on which somebody else is always faster is given up after this many attempts.
inline constexpr unsigned kMaxRounds = 30;
// A server to which nobody listens is given up after as many tries, unless a push has been sent.
inline constexpr unsigned kMaxRefusedConnections = 3;
// Refusals that should pass, in a row: with the committer's pauses some ten seconds.
inline constexpr unsigned kMaxNotNow = 12;

}  // namespace gitops::app_proxy
