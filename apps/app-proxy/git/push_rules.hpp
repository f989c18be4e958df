#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/core/error.hpp"

// What follows from a push. Pure: the committer does what is decided here. The rules:
//
//  - Our commits are built once for each state of the branch. While the branch is where it was, the
//    same commits are pushed again, so that a push whose answer was lost cannot count twice.
//  - An answer that is missing or a refusal is never believed alone; the branch decides. It holds our
//    commit: done. It has moved on without it: build again on top. It has not moved: a refused push
//    was refused for a reason of its own.
//  - A refused push of several commits is tried commit by commit, so that nobody pays for another's.
namespace gitops::app_proxy {

// What the server said to a push.
struct PushAnswer {
  enum class Kind : std::uint8_t {
    accepted,
    refused,   // by the server, with a reason: a race, a hook, a protected branch
    lost,      // sent, in whole or in part, and no answer
    not_sent,  // nothing that could change the branch left us
  };
  Kind kind = Kind::not_sent;
  Error error = {};  // unless accepted
};

// Where the branch is, compared with the last push of these commits.
enum class BranchState : std::uint8_t {
  has_ours,  // our last commit is the tip or behind it
  same,      // the tip is still the commit that ours were built on
  moved,     // any other tip
};

// What a round does once it knows the branch. `last` is nullopt in the first one.
enum class RoundStep : std::uint8_t {
  build,       // make the commits on the tip, push them
  push_again,  // push the commits made before
  landed,      // nothing: they are in the branch
  refused,     // nothing: the server does not want them
};
RoundStep step_of(const std::optional<PushAnswer>& last, BranchState state);

// What the committer does after a round.
enum class NextStep : std::uint8_t {
  done,
  again,  // another round, after a pause
  split,  // a round for each commit by itself
  fail,
};
struct Attempt {
  PushAnswer answer;
  RoundStep step = RoundStep::build;
  std::size_t commits = 1;           // that the push had
  unsigned rounds = 1;               // so far, this one included
  unsigned refused_connections = 0;  // in a row, this round included
};
NextStep next_of(const Attempt& attempt);

// The error for the caller after NextStep::fail. `maybe_pushed`: a push of these commits was sent
// and its outcome is not known.
Error final_error(const PushAnswer& answer, bool maybe_pushed);

// A branch on which somebody else is always faster is given up after this many rounds.
inline constexpr unsigned kMaxRounds = 30;
// A server to which nobody listens is given up after as many tries, unless a push has been sent.
inline constexpr unsigned kMaxRefusedConnections = 3;

}  // namespace gitops::app_proxy
