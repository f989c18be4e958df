#include "app-proxy/git/committer.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/wait_line.hpp"
#include "common/net/socket_channel.hpp"

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

// After so many races lost, a batch is pushed in halves.
constexpr unsigned kRoundsOfWholeBatch = 2;
// How often a clone's size is measured and its files are packed.
constexpr std::uint64_t kRoundsBetweenChecks = 16;

std::chrono::milliseconds in_ms(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

// The default branch: of the Git server, which names it in a repository without commits too, else
// of the host.
Result<std::string> default_branch_of(const BareRepository::Session& session, Wire& wire,
                                      const CommitRequest& request) {
  std::string branch = session.default_branch();
  if (branch.empty()) branch = wire.branch_of_head();
  if (branch.empty()) {
    if (auto told = parse_branch(request.default_branch)) branch = std::move(*told);
  }
  if (!branch.empty()) return branch;
  if (!session.has_branches()) return std::string("main");
  return fail(ErrorCode::not_found, "the Git server does not tell the default branch of " +
                                        request.repository.name + "; name the branch");
}

// A commit of a batch: its id, or why it cannot be made.
using CommitOutcome = Result<std::string>;

}  // namespace

// A request in a queue.
struct Committer::Item {
  Item(const Executor& executor, CommitRequest r, std::shared_ptr<const CommitSigner> s, Deadline d)
      : request(std::move(r)), signer(std::move(s)), deadline(d), completed(executor) {}

  const CommitRequest request;
  const std::shared_ptr<const CommitSigner> signer;  // none: not signed
  const Deadline deadline;
  bool abandoned = false;  // nobody waits for it
  bool pushing = false;
  std::optional<Result<CommitResult>> result;
  Event completed;
};

// The queue of a branch, worked off by one coroutine.
struct Committer::BranchQueue {
  RepositoryUrl repository;
  std::string branch;  // empty: the default branch
  std::deque<std::shared_ptr<Item>> waiting;
};

// The jobs that a host may have on the pool.
struct Committer::HostSlots {
  HostSlots(const Executor& executor, std::size_t free_slots) : line(executor), free(free_slots) {}
  WaitLine line;
  std::size_t free;
};

// Commits that are pushed together, and what is known about them. Copied to the pool.
struct Committer::Batch {
  RepositoryUrl repository;
  std::string branch;
  std::vector<std::shared_ptr<const Item>> items;
  Deadline deadline = Deadline::min();

  // Of the last attempt that built commits.
  std::optional<PushAnswer> last;
  std::string base;  // what they were built on; empty: nothing, the branch is new
  std::string head;  // the last of them
  std::vector<CommitOutcome> made;
  WallTime time;
  bool unknown = false;  // a push of them was sent, and the branch has not been seen since
};

struct Committer::PushAttempt {
  PushStep step = PushStep::build;
  PushAnswer answer;
  std::string branch;
  std::string base;
  std::string head;
  std::vector<CommitOutcome> made;
  WallTime time;
  std::size_t commits = 0;  // made without an error
};

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
    co_return fail(ErrorCode::timeout, item->pushing
                                           ? "the deadline passed; the commit may still be pushed"
                                           : "the deadline passed before the commit was begun");
  }
  (*item->result ? pushed_ : failed_).Increment();
  co_return std::move(*item->result);
}

// The commits of the request that has waited longest and of all that wait with its credential.
std::vector<std::shared_ptr<Committer::Item>> Committer::take_batch(BranchQueue& queue) {
  std::vector<std::shared_ptr<Item>> batch;
  std::deque<std::shared_ptr<Item>> rest;
  const auto now = Clock::now();
  for (auto& item : queue.waiting) {
    if (item->abandoned || item->deadline <= now) {
      --waiting_;
      complete(*item, fail(ErrorCode::timeout, "the deadline passed before the commit was begun"));
    } else if (batch.empty() || (batch.size() < options_.max_batch &&
                                 item->request.credential == batch.front()->request.credential)) {
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
  // Nothing was awaited since the queue was found empty.
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
  for (auto& item : items) {
    item->pushing = true;
    batch.items.push_back(item);
    batch.deadline = std::max(batch.deadline, item->deadline);
  }
  auto pushed = co_await push_items(queue, batch);
  if (pushed) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      auto& made = batch.made[i];
      if (made) {
        complete(*items[i], CommitResult{.sha = *made,
                                         .branch = batch.branch,
                                         .message = message_of(items[i]->request),
                                         .time = batch.time});
      } else {
        complete(*items[i], std::unexpected(std::move(made.error())));
      }
    }
    co_return;
  }
  if (pushed.error().subcode != "Split") {
    for (std::size_t i = 0; i < items.size(); ++i) {
      // What is wrong with a request itself says more than what happened to the others.
      const bool own = i < batch.made.size() && !batch.made[i];
      complete(*items[i], std::unexpected(own ? batch.made[i].error() : pushed.error()));
    }
    co_return;
  }
  const auto middle = items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2);
  co_await push_batch(queue, {items.begin(), middle});
  co_await push_batch(queue, {middle, items.end()});
}

// Attempts until the commits are in the branch or cannot be. Afterwards `batch` has the commits.
Task<Result<void>> Committer::push_items(BranchQueue& queue, Batch& batch) {
  Backoff pause({.initial = in_ms(options_.first_pause), .max = in_ms(options_.longest_pause)},
                random_seed());
  unsigned remakes = 0;
  unsigned refused = 0;  // connections, in a row
  unsigned not_now = 0;  // answers, in a row
  for (unsigned rounds = 1;; ++rounds) {
    auto round = co_await run_attempt(queue, batch);
    Attempt attempt;
    attempt.rounds = rounds;
    if (round) {
      refused = 0;
      batch.branch = round->branch;
      if (round->step == PushStep::build) {
        if (batch.last) conflicts_.Increment();
        batch.base = std::move(round->base);
        batch.head = std::move(round->head);
        batch.made = std::move(round->made);
        batch.time = round->time;
      }
      // The branch was seen: an earlier push with an unknown outcome has none now.
      if (round->step != PushStep::push_again) batch.unknown = false;
      if (batch.head.empty() || round->commits == 0) co_return Result<void>();  // nothing to push
      attempt.answer = std::move(round->answer);
      not_now = attempt.answer.kind == PushAnswer::Kind::not_now ? not_now + 1 : 0;
      attempt.not_now = not_now;
      attempt.step = round->step;
      attempt.commits = round->commits;
      if (attempt.answer.kind == PushAnswer::Kind::lost) {
        batch.unknown = true;
        lost_answers_.Increment();
      }
      // A refusal that a look confirmed keeps its reason.
      if (attempt.step == PushStep::build || attempt.step == PushStep::push_again) {
        batch.last = attempt.answer;
      } else if (attempt.step == PushStep::refused) {
        attempt.answer = *batch.last;
      }
      if (attempt.step == PushStep::build) {
        batch_size_.Observe(static_cast<double>(attempt.commits));
      }
    } else {
      Error error = std::move(round.error());
      const bool broken = error.subcode == kBrokenClone || error.subcode == kDiskFull;
      if (broken && ++remakes > 2) {
        co_return std::unexpected(final_error({.error = std::move(error)}, batch.unknown));
      }
      refused = error.subcode == net::kConnectionRefused && !batch.unknown ? refused + 1 : 0;
      attempt.refused_connections = refused;
      attempt.answer = {.kind = PushAnswer::Kind::not_sent, .error = std::move(error)};
    }
    switch (next_of(attempt)) {
      case NextStep::done:
        co_return Result<void>();
      case NextStep::split:
        co_return std::unexpected(Error{.message = {}, .subcode = "Split"});
      case NextStep::fail: {
        Error error = final_error(attempt.answer, batch.unknown);
        const bool is_race =
            attempt.answer.kind == PushAnswer::Kind::refused && attempt.step == PushStep::build;
        if (rounds >= kMaxRounds && is_race && !batch.unknown) {
          error.code = ErrorCode::conflict;
          error.message = "others changed the branch again and again: " + error.message;
        }
        co_return std::unexpected(std::move(error));
      }
      case NextStep::again:
        // Fewer commits are ready sooner, where others push all the time.
        if (rounds >= kRoundsOfWholeBatch && batch.items.size() > 1 && !batch.unknown &&
            attempt.answer.kind == PushAnswer::Kind::refused) {
          co_return std::unexpected(Error{.message = {}, .subcode = "Split"});
        }
        break;
    }
    // A confirmation of what happened needs no pause; a race needs a short one.
    const bool look_only = attempt.answer.kind == PushAnswer::Kind::lost && rounds == 1;
    auto wait =
        look_only ? std::chrono::milliseconds(0) : pause.next(attempt.answer.error.retry_after);
    if (refused > 0) wait = in_ms(options_.refused_pause);
    if (deadline_after(wait) >= batch.deadline) {
      Error error = final_error(attempt.answer, batch.unknown);
      if (attempt.answer.kind == PushAnswer::Kind::refused) error.code = ErrorCode::conflict;
      co_return std::unexpected(std::move(error));
    }
    if (wait.count() > 0) co_await sleep_for(wait);
  }
}

Task<Result<Committer::PushAttempt>> Committer::run_attempt(BranchQueue& queue, Batch& batch) {
  // Before a place is taken: commits to other repositories of the host go on while one is cloned.
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

// One attempt, on a thread of the pool: sees where the branch is, then does what step_of() says.
Result<Committer::PushAttempt> Committer::attempt_on_pool(HttpBridge& bridge,
                                                          const std::stop_token& stop,
                                                          const Batch& batch,
                                                          const std::filesystem::path& folder,
                                                          const WireLimits& limits) {
  using Direction = BareRepository::Direction;
  const auto& first = batch.items.front()->request;
  auto repository = BareRepository::open(folder);
  if (!repository) return std::unexpected(std::move(repository.error()));
  PushAttempt round;
  round.branch = batch.branch;
  // Two connections at most: the list for a push says all when nobody else has pushed since.
  Wire fetch_wire(batch.repository, first.credential, WireCalls::over(bridge), stop, limits);
  Wire push_wire(batch.repository, first.credential, WireCalls::over(bridge), stop, limits);
  if (round.branch.empty()) {
    auto session = repository->connect(fetch_wire, Direction::fetch);
    if (!session) return std::unexpected(std::move(session.error()));
    auto branch = default_branch_of(*session, fetch_wire, first);
    if (!branch) return std::unexpected(std::move(branch.error()));
    round.branch = std::move(*branch);
  }
  std::vector<std::string> shown{round.branch};
  if (!first.new_branch_from.empty()) shown.push_back(first.new_branch_from);
  std::optional<BareRepository::Session> session;
  std::string base;
  while (true) {
    auto connected = repository->connect(push_wire, Direction::push, shown);
    if (!connected) return std::unexpected(std::move(connected.error()));
    session.emplace(std::move(*connected));
    base = session->tip(round.branch);
    const bool is_new = base.empty();
    std::string needed = round.branch;
    if (is_new) {
      if (!session->has_branches()) break;
      if (first.new_branch_from.empty()) {
        return fail(ErrorCode::not_found, batch.repository.name + " has no branch " + round.branch);
      }
      needed = first.new_branch_from;
    }
    const std::string wanted = session->tip(needed);
    if (wanted.empty()) {
      return fail(ErrorCode::not_found, batch.repository.name + " has no branch " + needed);
    }
    if (repository->has_commit(wanted)) {
      if (is_new) base = wanted;
      break;
    }
    auto for_fetch = repository->connect(fetch_wire, Direction::fetch, {needed});
    if (!for_fetch) return std::unexpected(std::move(for_fetch.error()));
    if (auto fetched = for_fetch->fetch(needed); !fetched) {
      return std::unexpected(std::move(fetched.error()));
    }
    if (stop.stop_requested()) return fail(ErrorCode::unavailable, "cancelled");
    if (for_fetch->tip(needed) == wanted) {
      if (is_new) base = wanted;
      break;
    }
    // It moved between the two lists.
  }

  BranchState state = BranchState::moved;
  if (batch.last && !batch.head.empty()) {
    const std::string& tip = session->tip(round.branch);
    if (tip == batch.head) {
      state = BranchState::has_ours;
    } else if (tip == batch.base || (tip.empty() && base == batch.base)) {
      state = BranchState::same;
    } else if (!tip.empty()) {
      auto inside = repository->has_commit(batch.head) ? repository->contains(tip, batch.head)
                                                       : Result<bool>(false);
      if (!inside) return std::unexpected(std::move(inside.error()));
      if (*inside) state = BranchState::has_ours;
    }
  }
  // A clone that was recreated lacks the commits of a push that did not arrive.
  if (state == BranchState::same && !repository->has_commit(batch.head)) state = BranchState::moved;
  round.step = step_of(batch.last, state);
  if (round.step == PushStep::build) {
    round.base = base;
    std::string tip = base;
    round.time = wall_now();
    for (const auto& item : batch.items) {
      if (stop.stop_requested()) return fail(ErrorCode::unavailable, "cancelled");
      const auto& request = item->request;
      auto made = repository->commit(tip, {.changes = request.changes,
                                           .message = message_of(request),
                                           .author = request.author,
                                           .time = round.time,
                                           .allow_empty = request.allow_empty,
                                           .force = request.force,
                                           .signer = item->signer});
      if (made) {
        tip = *made;
        ++round.commits;
      } else if (made.error().subcode == kBrokenClone || made.error().subcode == kDiskFull) {
        return std::unexpected(std::move(made.error()));  // the clone's failure, not the request's
      }
      round.made.push_back(std::move(made));
    }
    round.head = tip;
    if (round.commits == 0) return round;
  } else {
    round.head = batch.head;
    round.commits = static_cast<std::size_t>(std::ranges::count_if(
        batch.made, [](const CommitOutcome& made) { return made.has_value(); }));
  }
  if (round.step == PushStep::build || round.step == PushStep::push_again) {
    round.answer = session->push(round.branch, round.head);
    const auto& reason = round.answer.error.subcode;
    if (round.answer.kind == PushAnswer::Kind::not_sent &&
        (reason == kBrokenClone || reason == kDiskFull)) {
      return std::unexpected(std::move(round.answer.error));
    }
  }
  if (round.step == PushStep::landed || round.answer.kind == PushAnswer::Kind::accepted) {
    // Only spares a fetch: the commits are in the branch already.
    (void)repository->remember(round.branch, round.head);
  }
  return round;
}

}  // namespace gitops::app_proxy
