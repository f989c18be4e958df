#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "app-proxy/git/push_rules.hpp"
#include "common/core/error.hpp"

// Decisions on the way of a batch of requests into the branch, over plain data. Pure: the committer
// asks the server, builds the commits, pushes them and waits.
namespace gitops::app_proxy {

// A branch and its possible origin, as the server's list shows them.
struct ListedBranch {
  std::string name = {};
  std::string tip = {};         // empty: the branch does not exist
  std::string origin = {};      // start of a new branch; empty: a new branch is an error
  std::string origin_tip = {};  // empty: the origin does not exist
  bool repository_has_branches = false;
};

// Base of new commits.
struct BasePlan {
  std::string commit = {};   // empty: the repository gets its first commit
  std::string branch = {};   // the branch to fetch when the clone lacks the commit
  std::string missing = {};  // a required branch that does not exist; empty: the plan is valid
};
BasePlan plan_base(const ListedBranch& listed);

// State of the branch, and the commits that were pushed to it before.
struct BranchFacts {
  std::string tip = {};              // empty: the branch does not exist
  std::string base = {};             // BasePlan::commit
  std::string pushed_head = {};      // the last of the pushed commits; empty: none were pushed
  std::string pushed_base = {};      // the commit that they were built on
  bool has_pushed_head = false;      // the clone has it
  bool tip_contains_pushed = false;  // the tip is pushed_head or after it; see needs_history()
};
// True when only the history of the branch shows whether it has the pushed commits.
bool needs_history(const BranchFacts& facts);
BranchState state_of(const BranchFacts& facts);

// End of a batch.
enum class PushOutcome : std::uint8_t {
  pushed,  // its commits are in the branch, or there were none to push
  split,   // each half becomes a batch of its own
  failed,
};
struct PushEnd {
  PushOutcome outcome = PushOutcome::failed;
  Error error = {};  // of `failed`
};

// Course of a batch from attempt to attempt. Counts them, and decides by push_rules.hpp.
class PushPlan {
 public:
  // `requests` is their number in the batch.
  explicit PushPlan(std::size_t requests = 1) : requests_(requests) {}

  // Result of an attempt that saw the branch.
  struct Report {
    PushStep step = PushStep::build;
    PushAnswer answer = {};   // to the push, if there was one
    std::size_t commits = 0;  // built without an error
  };
  enum class Pause : std::uint8_t {
    none,     // the next attempt only checks the outcome of a push
    growing,  // grows with each attempt
    refused,  // the server refuses connections
  };
  struct Next {
    std::optional<PushEnd> end = {};  // unset: another attempt, after the pause
    Pause pause = Pause::growing;
    std::chrono::milliseconds retry_after{0};  // as the server requested
  };
  Next after_attempt(Report report);
  // Decides after an attempt that failed before it saw the branch, or before anything was sent.
  Next after_failure(Error error);
  // Returns the end of a batch that has no time for another attempt.
  [[nodiscard]] PushEnd end_at_deadline() const;

  // The server's last response to a push of the present commits; unset before the first push.
  [[nodiscard]] const std::optional<PushAnswer>& last_answer() const { return last_answer_; }

 private:
  Next next(const Attempt& attempt);
  [[nodiscard]] PushEnd failed(const Attempt& attempt) const;

  std::size_t requests_;
  unsigned attempts_ = 0;
  unsigned clone_failures_ = 0;
  unsigned refused_connections_ = 0;  // in a row
  unsigned not_now_ = 0;              // such responses, in a row
  // A push was sent, and the branch has not been read since.
  bool outcome_unknown_ = false;
  std::optional<PushAnswer> last_answer_;
  PushAnswer reported_;  // by the last attempt
};

// Number of attempts, lost to other pushes, after which a batch is pushed in halves.
inline constexpr unsigned kMaxAttemptsOfWholeBatch = 2;
// Number of failures of the clone (a broken one or a full disk) that end the batch.
inline constexpr unsigned kMaxCloneFailures = 2;

}  // namespace gitops::app_proxy
