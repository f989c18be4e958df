#include "app-proxy/git/committer.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/wait_line.hpp"

namespace gitops::app_proxy {
namespace {

const Log& log() {
  static const Log kLog("git_committer");
  return kLog;
}

Error cancelled_error() {
  return {.code = ErrorCode::unavailable, .message = "app-proxy is stopping", .subcode = kStopping};
}

std::string message_of(const CommitRequest& request) {
  if (request.description.empty()) return request.message;
  return request.message + "\n\n" + request.description;
}

// Number of rounds between measurements of a clone's size, with a packing of its files.
constexpr std::uint64_t kRoundsBetweenChecks = 16;

// Number of lists for a push in an attempt that differ from the list for the fetch after them.
constexpr int kMaxListsOfAttempt = 3;

std::chrono::milliseconds in_ms(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

// Returns the default branch: from the Git server, which reports it for an empty repository too,
// else from the host.
Result<std::string> default_branch_of(const BareRepository::Session& session, Wire& wire,
                                      const CommitRequest& request) {
  std::string branch = session.default_branch();
  if (branch.empty()) branch = wire.branch_of_head();
  if (branch.empty()) {
    if (auto told = parse_branch(request.default_branch)) branch = std::move(*told);
  }
  if (!branch.empty()) return branch;
  if (!session.has_branches() && request.needs_default_branch) {
    return std::unexpected(Error{.code = ErrorCode::not_found,
                                 .message = "the default branch of " + request.repository.name +
                                            ", which has no branches, is not known",
                                 .subcode = kDefaultBranchUnknown});
  }
  if (!session.has_branches()) return std::string("main");
  return fail(ErrorCode::not_found, "the Git server does not tell the default branch of " +
                                        request.repository.name + "; name the branch");
}

// Result of building a commit of a batch: its id, or the error.
using CommitOutcome = Result<std::string>;

}  // namespace

// A request in a queue.
struct Committer::Item {
  Item(const Executor& executor, CommitRequest r, std::shared_ptr<const CommitSigner> s, Deadline d)
      : request(std::move(r)), signer(std::move(s)), deadline(d), completed(executor) {}

  const CommitRequest request;
  const std::shared_ptr<const CommitSigner> signer;  // none: not signed
  const Deadline deadline;
  bool abandoned = false;  // no caller waits for it
  bool pushing = false;
  std::optional<Result<CommitResult>> result;
  Event completed;
};

// Queue of a branch. One coroutine works it off.
struct Committer::BranchQueue {
  RepositoryUrl repository;
  std::string branch;  // empty: the default branch
  std::deque<std::shared_ptr<Item>> waiting;
};

// Limit for the jobs of a host on the pool.
struct Committer::HostSlots {
  HostSlots(const Executor& executor, std::size_t free_slots) : line(executor), free(free_slots) {}
  WaitLine line;
  std::size_t free;
};

// Commits that are pushed together, with the state of their push. Copied to the pool.
struct Committer::Batch {
  RepositoryUrl repository;
  std::string branch;
  std::vector<std::shared_ptr<const Item>> items;
  Deadline deadline = Deadline::min();
  SpanContext trace;  // of the first commit
  PushPlan plan;

  // State of the last attempt that built commits.
  std::string base;  // base of the commits; empty: the branch is new
  std::string head;  // the last commit
  std::vector<CommitOutcome> made;
  WallTime time;
};

// Result of one round.
struct Committer::PushAttempt {
  PushStep step = PushStep::build;
  PushAnswer answer;
  std::string branch;
  std::string base;  // base of new commits
  std::string head;
  std::vector<CommitOutcome> made;
  WallTime time;
  std::size_t commits = 0;  // built without an error
};

// Returns the result of request `index` of a batch that has ended.
Result<CommitResult> Committer::result_of(const Batch& batch, std::size_t index,
                                          const PushEnd& end) {
  const CommitOutcome* made = index < batch.made.size() ? &batch.made[index] : nullptr;
  // An error of the request itself has precedence over that of the batch.
  if (made != nullptr && !*made) return std::unexpected(made->error());
  if (end.outcome != PushOutcome::pushed) return std::unexpected(end.error);
  return CommitResult{.sha = **made,
                      .branch = batch.branch,
                      .message = message_of(batch.items[index]->request),
                      .time = batch.time};
}

Committer::Committer(const Executor& executor, WorkerPool& pool, CloneCache& clones,
                     http::Client& client, Metrics& metrics, Options options)
    : executor_(executor),
      pool_(pool),
      clones_(clones),
      client_(client),
      options_(std::move(options)),
      tasks_(executor),
      pushed_(metrics.counter("gitops_app_proxy_git_commits_total", "Commits asked for",
                              {{"result", "pushed"}})),
      failed_(metrics.counter("gitops_app_proxy_git_commits_total", "Commits asked for",
                              {{"result", "failed"}})),
      conflicts_(metrics.counter("gitops_app_proxy_git_conflicts_total",
                                 "Pushes that came after somebody else's")),
      lost_answers_(metrics.counter("gitops_app_proxy_git_lost_answers_total",
                                    "Pushes whose outcome was looked up in the branch")),
      batch_size_(metrics.histogram("gitops_app_proxy_git_push_commits", "Commits in a push",
                                    {1, 2, 5, 10, 20, 50, 100})) {}

Committer::~Committer() = default;

Task<> Committer::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  for (auto& [key, queue] : queues_) {
    for (auto& item : queue->waiting) complete(*item, std::unexpected(cancelled_error()));
  }
}

void Committer::complete(Item& item, Result<CommitResult> result) {
  if (item.result) return;
  item.result = std::move(result);
  item.completed.notify_all();
}

Task<Result<CommitResult>> Committer::commit(CommitRequest request, Deadline deadline) {
  auto span = request.trace.start("commit");
  span.set("git.repository", request.repository.name);
  span.set("git.branch", request.branch);
  request.trace = span.context();
  auto made = co_await enqueue(std::move(request), deadline);
  if (!made) span.fail(made.error().message);
  co_return made;
}

Task<Result<CommitResult>> Committer::enqueue(CommitRequest request, Deadline deadline) {
  if (request.branch == "HEAD") request.branch.clear();
  for (std::string* branch : {&request.branch, &request.new_branch_from}) {
    if (branch->empty()) continue;
    auto name = parse_branch(*branch);
    if (!name) co_return std::unexpected(std::move(name.error()));
    *branch = std::move(*name);
  }
  if (auto checked = check_changes(request.changes); !checked) {
    co_return std::unexpected(std::move(checked.error()));
  }
  std::shared_ptr<const CommitSigner> signer;
  if (options_.signer) {
    auto given = options_.signer();
    if (!given) co_return std::unexpected(std::move(given.error()));
    signer = std::move(*given);
  }
  if (waiting_ >= options_.max_waiting) {
    co_return fail(ErrorCode::too_many_requests, "too many commits are waiting");
  }
  auto& queue = queues_[request.repository.key() + "#" + request.branch];
  const bool is_new = !queue;
  if (is_new) {
    queue = std::make_shared<BranchQueue>();
    queue->repository = request.repository;
    queue->branch = request.branch;
  } else if (queue->waiting.size() >= options_.max_waiting_per_branch) {
    co_return fail(ErrorCode::too_many_requests, "too many commits are waiting for this branch");
  }
  const auto item =
      std::make_shared<Item>(executor_, std::move(request), std::move(signer), deadline);
  queue->waiting.push_back(item);
  ++waiting_;
  if (is_new) {
    tasks_.spawn("commits to " + queue->repository.name,
                 [this, queue = queue]() -> Task<> { return work(queue); });
  }
  struct Leaving {
    ~Leaving() { item.abandoned = true; }
    Item& item;
  };
  const Leaving leaving{*item};
  while (!item->result) {
    if (co_await item->completed.wait(deadline)) continue;
    if (!item->pushing) {
      co_return fail(ErrorCode::timeout, "the deadline passed before the commit was begun");
    }
    co_return std::unexpected(
        Error{.code = ErrorCode::timeout,
              .message = "the deadline passed; the commit may still be pushed",
              .subcode = kOutcomeUnknown});
  }
  (*item->result ? pushed_ : failed_).Increment();
  co_return std::move(*item->result);
}

// Takes the requests with the credential that has waited longest, and with the same origin of a new
// branch: one push begins at one commit. So it is with what is known of the default branch.
std::vector<std::shared_ptr<Committer::Item>> Committer::take_batch(BranchQueue& queue) {
  std::vector<std::shared_ptr<Item>> batch;
  std::deque<std::shared_ptr<Item>> rest;
  const auto now = Clock::now();
  const auto are_alike = [](const CommitRequest& a, const CommitRequest& b) {
    return a.credential == b.credential && a.new_branch_from == b.new_branch_from &&
           a.default_branch == b.default_branch && a.needs_default_branch == b.needs_default_branch;
  };
  for (auto& item : queue.waiting) {
    if (item->abandoned || item->deadline <= now) {
      --waiting_;
      complete(*item, fail(ErrorCode::timeout, "the deadline passed before the commit was begun"));
    } else if (batch.empty() || (batch.size() < options_.max_batch &&
                                 are_alike(item->request, batch.front()->request))) {
      --waiting_;
      batch.push_back(std::move(item));
    } else {
      rest.push_back(std::move(item));
    }
  }
  queue.waiting.swap(rest);
  return batch;
}

Task<> Committer::work(std::shared_ptr<BranchQueue> queue) {
  while (true) {
    auto items = take_batch(*queue);
    if (items.empty()) break;
    co_await push_batch(*queue, std::move(items));
  }
  // There was no co_await since the queue was found empty.
  queues_.erase(queue->repository.key() + "#" + queue->branch);
}

Task<> Committer::push_batch(BranchQueue& queue, std::vector<std::shared_ptr<Item>> items) {
  struct Ending {  // also when this task is cancelled
    ~Ending() {
      for (auto& item : items) complete(*item, std::unexpected(cancelled_error()));
    }
    std::vector<std::shared_ptr<Item>>& items;
  };
  const Ending ending{items};
  Batch batch;
  batch.repository = queue.repository;
  batch.branch = queue.branch;
  batch.plan = PushPlan(items.size());
  batch.trace = items.front()->request.trace;
  for (auto& item : items) {
    item->pushing = true;
    batch.items.push_back(item);
    batch.deadline = std::max(batch.deadline, item->deadline);
  }
  auto end = co_await push_items(queue, batch);
  if (end.outcome != PushOutcome::split) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      complete(*items[i], result_of(batch, i, end));
    }
    co_return;
  }
  const auto middle = items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2);
  co_await push_batch(queue, {items.begin(), middle});
  co_await push_batch(queue, {middle, items.end()});
}

// Makes attempts until the commits are in the branch or have failed. Afterwards `batch` has the
// commits.
Task<PushEnd> Committer::push_items(BranchQueue& queue, Batch& batch) {
  Backoff pause({.initial = in_ms(options_.first_pause), .max = in_ms(options_.longest_pause)},
                random_seed());
  while (true) {
    auto round = co_await run_attempt(queue, batch);
    auto next = round ? note_round(batch, std::move(*round))
                      : batch.plan.after_failure(std::move(round.error()));
    if (next.end) co_return std::move(*next.end);
    auto wait = std::chrono::milliseconds(0);
    if (next.pause != PushPlan::Pause::none) wait = pause.next(next.retry_after);
    if (next.pause == PushPlan::Pause::refused) wait = in_ms(options_.refused_pause);
    if (deadline_after(wait) >= batch.deadline) co_return batch.plan.end_at_deadline();
    if (wait.count() > 0) co_await sleep_for(wait);
  }
}

// Stores the commits of an attempt for the next one, and counts the attempt.
PushPlan::Next Committer::note_round(Batch& batch, PushAttempt round) {
  batch.branch = std::move(round.branch);
  if (round.step == PushStep::build) {
    if (batch.plan.last_answer()) conflicts_.Increment();
    if (round.commits > 0) batch_size_.Observe(static_cast<double>(round.commits));
    batch.base = std::move(round.base);
    batch.head = std::move(round.head);
    batch.made = std::move(round.made);
    batch.time = round.time;
  }
  if (round.answer.kind == PushAnswer::Kind::lost) lost_answers_.Increment();
  return batch.plan.after_attempt(
      {.step = round.step, .answer = std::move(round.answer), .commits = round.commits});
}

Task<Result<Committer::PushAttempt>> Committer::run_attempt(BranchQueue& queue, Batch& batch) {
  // The lease comes before the slot: commits to other repositories of the host continue during a
  // clone.
  auto lease = co_await clones_.get(queue.repository, batch.items.front()->request.credential,
                                    client_, batch.deadline);
  if (!lease) co_return std::unexpected(std::move(lease.error()));
  auto& slots = hosts_[queue.repository.http.host_header()];
  if (!slots) slots = std::make_shared<HostSlots>(executor_, options_.jobs_per_host);
  const auto mine = slots;
  {
    WaitLine::Ticket place(mine->line);
    while (!place.is_first() || mine->free == 0) {
      if (!co_await place.wait(batch.deadline)) {
        co_return fail(ErrorCode::timeout, "the deadline passed while others used the Git server");
      }
    }
    --mine->free;
  }
  struct Slot {
    ~Slot() {
      ++slots.free;
      slots.line.wake_first();
    }
    HostSlots& slots;
  };
  const Slot slot{*mine};
  auto round = co_await run_with_http(pool_, lease->key(), client_, batch.deadline, options_.stall,
                                      [batch, folder = lease->folder(), limits = options_.limits](
                                          HttpBridge& bridge, const std::stop_token& stop) {
                                        return attempt_on_pool(bridge, stop, batch, folder, limits);
                                      });
  if (!round && round.error().subcode == kBrokenClone) {
    log().warning("a clone is broken and will be recreated",
                  {{"folder", lease->key()}, {"error", round.error().message}});
    lease->discard();
  } else if (!round && round.error().subcode == kDiskFull) {
    const auto removed = co_await clones_.make_room();
    log().warning("the disk of the clones is full", {{"clones_removed", removed}});
    if (removed == 0) lease->discard();
  } else if (round && rounds_++ % kRoundsBetweenChecks == 0) {
    tasks_.spawn("settle a clone",
                 [this, lease = *lease]() -> Task<> { return clones_.settle(lease); });
  }
  co_return round;
}

// One attempt, on a thread of the pool: finds the base, compares the branch, builds the commits and
// pushes them. Makes at most two connections. The list for a push suffices when nobody else has
// pushed since.
class Committer::PushWorker {
 public:
  // All arguments outlive this object.
  PushWorker(BareRepository& repository, HttpBridge& bridge, const std::stop_token& stop,
             const Batch& batch, const WireLimits& limits)
      : repository_(repository),
        stop_(stop),
        batch_(batch),
        first_(batch.items.front()->request),
        fetch_wire_(batch.repository, first_.credential, WireCalls::over(bridge), stop, limits),
        push_wire_(batch.repository, first_.credential, WireCalls::over(bridge), stop, limits) {
    round_.branch = batch.branch;
  }

  Result<PushAttempt> run() {
    if (auto found = find_base(); !found) return std::unexpected(std::move(found.error()));
    const auto state = judge_branch();
    if (!state) return std::unexpected(state.error());
    round_.step = step_of(batch_.plan.last_answer(), *state);
    if (auto built = build(); !built) return std::unexpected(std::move(built.error()));
    if (auto pushed = push(); !pushed) return std::unexpected(std::move(pushed.error()));
    return std::move(round_);
  }

 private:
  using Direction = BareRepository::Direction;

  Result<void> find_base();
  Result<void> find_default_branch();
  Result<bool> fetch(const BasePlan& plan);
  Result<BranchState> judge_branch();
  Result<void> build();
  Result<void> push();

  BareRepository& repository_;
  const std::stop_token& stop_;
  const Batch& batch_;
  const CommitRequest& first_;
  Wire fetch_wire_;
  Wire push_wire_;
  std::optional<BareRepository::Session> session_;  // for the push
  PushAttempt round_;
};

// Reads the state of the branch, and fetches the base of new commits.
Result<void> Committer::PushWorker::find_base() {
  if (round_.branch.empty()) {
    if (auto found = find_default_branch(); !found) return found;
  }
  const std::string& origin = first_.new_branch_from;
  std::vector<std::string> shown{round_.branch};
  if (!origin.empty()) shown.push_back(origin);
  for (int lists = 1;; ++lists) {
    auto connected = repository_.connect(push_wire_, Direction::push, shown);
    if (!connected) return std::unexpected(std::move(connected.error()));
    session_.emplace(std::move(*connected));
    auto plan = plan_base({.name = round_.branch,
                           .tip = session_->tip(round_.branch),
                           .origin = origin,
                           .origin_tip = origin.empty() ? std::string() : session_->tip(origin),
                           .repository_has_branches = session_->has_branches()});
    if (!plan.missing.empty()) {
      return fail(ErrorCode::not_found, batch_.repository.name + " has no branch " + plan.missing);
    }
    auto is_here = plan.commit.empty() || repository_.has_commit(plan.commit) ? Result<bool>(true)
                                                                              : fetch(plan);
    if (!is_here) return std::unexpected(std::move(is_here.error()));
    if (*is_here) {
      round_.base = std::move(plan.commit);
      return {};
    }
    // Others push all the time, or the server reads from a copy that is behind. The next attempt
    // comes after a pause.
    if (lists == kMaxListsOfAttempt) {
      return fail(ErrorCode::unavailable, batch_.repository.http.host_header() +
                                              " shows another commit of branch " + plan.branch +
                                              " for a push than for a fetch");
    }
  }
}

Result<void> Committer::PushWorker::find_default_branch() {
  auto session = repository_.connect(fetch_wire_, Direction::fetch);
  if (!session) return std::unexpected(std::move(session.error()));
  auto branch = default_branch_of(*session, fetch_wire_, first_);
  if (!branch) return std::unexpected(std::move(branch.error()));
  round_.branch = std::move(*branch);
  return {};
}

// Fetches the base. Returns false when the branch moved between the lists for the push and for the
// fetch.
Result<bool> Committer::PushWorker::fetch(const BasePlan& plan) {
  auto session = repository_.connect(fetch_wire_, Direction::fetch, {plan.branch});
  if (!session) return std::unexpected(std::move(session.error()));
  if (auto fetched = session->fetch(plan.branch); !fetched) {
    return std::unexpected(std::move(fetched.error()));
  }
  if (stop_.stop_requested()) return fail(ErrorCode::unavailable, "cancelled");
  return session->tip(plan.branch) == plan.commit;
}

// Compares the branch with the last push of these commits.
Result<BranchState> Committer::PushWorker::judge_branch() {
  BranchFacts facts{.tip = session_->tip(round_.branch), .base = round_.base};
  if (batch_.plan.last_answer()) {
    facts.pushed_head = batch_.head;
    facts.pushed_base = batch_.base;
    facts.has_pushed_head = !batch_.head.empty() && repository_.has_commit(batch_.head);
  }
  if (needs_history(facts)) {
    const auto inside = repository_.contains(facts.tip, facts.pushed_head);
    if (!inside) return std::unexpected(inside.error());
    facts.tip_contains_pushed = *inside;
  }
  return state_of(facts);
}

// Builds the commits on top of the base, unless those of an earlier round are pushed again.
Result<void> Committer::PushWorker::build() {
  if (round_.step != PushStep::build) {
    round_.head = batch_.head;
    round_.commits = static_cast<std::size_t>(std::ranges::count_if(
        batch_.made, [](const CommitOutcome& made) { return made.has_value(); }));
    return {};
  }
  round_.head = round_.base;
  round_.time = wall_now();
  for (const auto& item : batch_.items) {
    if (stop_.stop_requested()) return fail(ErrorCode::unavailable, "cancelled");
    const auto& request = item->request;
    auto made = repository_.commit(round_.head, {.changes = request.changes,
                                                 .message = message_of(request),
                                                 .author = request.author,
                                                 .time = round_.time,
                                                 .allow_empty = request.allow_empty,
                                                 .force = request.force,
                                                 .signer = item->signer});
    if (made) {
      round_.head = *made;
      ++round_.commits;
    } else if (is_clone_failure(made.error())) {
      return std::unexpected(std::move(made.error()));  // the clone's failure, not the request's
    }
    round_.made.push_back(std::move(made));
  }
  return {};
}

Result<void> Committer::PushWorker::push() {
  if (round_.commits == 0) return {};
  if (round_.step == PushStep::build || round_.step == PushStep::push_again) {
    round_.answer = session_->push(round_.branch, round_.head);
    if (round_.answer.kind == PushAnswer::Kind::not_sent && is_clone_failure(round_.answer.error)) {
      return std::unexpected(std::move(round_.answer.error));
    }
  }
  if (round_.step == PushStep::landed || round_.answer.kind == PushAnswer::Kind::accepted) {
    // A failure is ignored: the commits are in the branch, and this only saves a fetch.
    (void)repository_.remember(round_.branch, round_.head);
  }
  return {};
}

Result<Committer::PushAttempt> Committer::attempt_on_pool(HttpBridge& bridge,
                                                          const std::stop_token& stop,
                                                          const Batch& batch,
                                                          const std::filesystem::path& folder,
                                                          const WireLimits& limits) {
  bridge.belong_to(batch.trace);
  auto repository = BareRepository::open(folder);
  if (!repository) return std::unexpected(std::move(repository.error()));
  return PushWorker(*repository, bridge, stop, batch, limits).run();
}

}  // namespace gitops::app_proxy
