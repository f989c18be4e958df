#include "common/core/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/core/log.hpp"

namespace gitops {
namespace {

constexpr auto kGrace = std::chrono::seconds(2);
constexpr auto kMaxGrace = std::chrono::hours(24);
constexpr std::size_t kMaxThreadName = 15;  // pthread_setname_np(3)

std::atomic<std::size_t> jobs_left_behind = 0;

const Log& log() {
  static const Log kLog("worker_pool");
  return kLog;
}

}  // namespace

class WorkerPool::State {
 public:
  State(Options options, Metrics& metrics);

  static void start(const std::shared_ptr<State>& self);
  Result<void> submit(std::string key, std::stop_source stop, Job job);
  void drop_stopped();
  std::size_t stop(Clock::duration grace);
  [[nodiscard]] const std::string& name() const { return options_.name; }

 private:
  struct Item {
    std::stop_source stop;
    Job job;
  };
  // The jobs of one key, or one job without a key.
  struct Lane {
    std::string key;
    std::deque<Item> waiting = {};
    bool running = false;
  };
  struct Worker {
    std::thread thread;
    std::optional<std::stop_source> job;  // of the running job
    bool left_behind = false;
  };

  static void drop(std::vector<Item> items);
  void work(Worker& worker);
  std::shared_ptr<Lane> lane_of(const std::string& key);
  void forget_empty_lanes();
  void update_gauges();

  const Options options_;
  std::mutex mutex_;
  std::condition_variable work_;   // notified when a lane is ready or the pool stops
  std::condition_variable ended_;  // notified when a job has ended while the pool stops
  std::vector<std::shared_ptr<Worker>> workers_;
  std::map<std::string, std::shared_ptr<Lane>> keyed_;
  // Lanes that have a waiting job and no running one; the first has waited longest.
  std::deque<std::shared_ptr<Lane>> ready_;
  std::size_t queued_ = 0;  // waiting jobs of all lanes
  std::size_t idle_;        // idle threads
  bool stopping_ = false;
  // True until stop(): a detached thread, or a waiter, may outlive the metrics.
  bool counting_ = true;
  Gauge& busy_gauge_;
  Gauge& queued_gauge_;
  Counter& rejected_;
  double reported_busy_ = 0;
  double reported_queued_ = 0;
};

WorkerPool::State::State(Options options, Metrics& metrics)
    : options_(std::move(options)),
      idle_(options_.threads),
      busy_gauge_(metrics.gauge("gitops_worker_pool_busy_threads",
                                "Threads of a worker pool that run a job",
                                {{"pool", options_.name}})),
      queued_gauge_(metrics.gauge("gitops_worker_pool_queued_jobs",
                                  "Jobs that wait in the queue of a worker pool",
                                  {{"pool", options_.name}})),
      rejected_(metrics.counter("gitops_worker_pool_rejected_jobs_total",
                                "Jobs that a worker pool refused because its queue was full",
                                {{"pool", options_.name}})) {}

void WorkerPool::State::start(const std::shared_ptr<State>& self) {
  for (std::size_t i = 0; i < self->options_.threads; ++i) {
    const auto worker = self->workers_.emplace_back(std::make_shared<Worker>());
    worker->thread = std::thread([self, worker] { self->work(*worker); });
    ::pthread_setname_np(worker->thread.native_handle(),
                         self->options_.name.substr(0, kMaxThreadName).c_str());
  }
}

// Adds to the gauges, since several pools may have one name.
void WorkerPool::State::update_gauges() {
  if (!counting_) return;
  const auto busy = static_cast<double>(options_.threads - idle_);
  const auto queued = static_cast<double>(queued_);
  busy_gauge_.Increment(busy - std::exchange(reported_busy_, busy));
  queued_gauge_.Increment(queued - std::exchange(reported_queued_, queued));
}

std::shared_ptr<WorkerPool::State::Lane> WorkerPool::State::lane_of(const std::string& key) {
  if (key.empty()) return std::make_shared<Lane>();
  const auto found = keyed_.find(key);
  return found == keyed_.end() ? std::make_shared<Lane>(Lane{.key = key}) : found->second;
}

Result<void> WorkerPool::State::submit(std::string key, std::stop_source stop, Job job) {
  std::unique_lock lock(mutex_);
  if (stopping_) {
    return fail(ErrorCode::unavailable, "worker pool " + options_.name + " is stopping");
  }
  const auto lane = lane_of(key);
  const bool becomes_ready = !lane->running && lane->waiting.empty();
  // Idle threads are about to take as many jobs out of the queue.
  const auto about_to_run = std::min(idle_, ready_.size() + (becomes_ready ? 1 : 0));
  if (queued_ + 1 > options_.max_queued + about_to_run) {
    rejected_.Increment();
    return fail(ErrorCode::too_many_requests, "worker pool " + options_.name + " is full");
  }
  // The first one runs, or is the next to run.
  if (lane->waiting.size() >= options_.max_per_key + (lane->running ? 0 : 1)) {
    rejected_.Increment();
    return fail(ErrorCode::too_many_requests,
                "worker pool " + options_.name + " has too many jobs for " + key);
  }
  lane->waiting.push_back({.stop = std::move(stop), .job = std::move(job)});
  if (!key.empty()) keyed_.emplace(std::move(key), lane);
  ++queued_;
  if (becomes_ready) ready_.push_back(lane);
  update_gauges();
  // A thread that wakes under the lock would at once wait for it.
  lock.unlock();
  if (becomes_ready) work_.notify_one();
  return {};
}

void WorkerPool::State::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stopping_ || !ready_.empty(); });
    if (stopping_) break;
    const auto lane = std::move(ready_.front());
    ready_.pop_front();
    {
      Item item = std::move(lane->waiting.front());
      lane->waiting.pop_front();
      lane->running = true;
      --queued_;
      --idle_;
      worker.job = item.stop;
      update_gauges();
      lock.unlock();
      item.job(item.stop.get_token());
    }
    lock.lock();
    worker.job.reset();
    if (stopping_) ended_.notify_all();
    if (!worker.left_behind) ++idle_;
    lane->running = false;
    if (!lane->waiting.empty()) {
      ready_.push_back(lane);
    } else if (!lane->key.empty()) {
      keyed_.erase(lane->key);
    }
    update_gauges();
  }
  if (worker.left_behind) --jobs_left_behind;
}

void WorkerPool::State::drop(std::vector<Item> items) {
  for (auto& item : items) {
    item.stop.request_stop();
    item.job(item.stop.get_token());
  }
}

void WorkerPool::State::forget_empty_lanes() {
  std::erase_if(ready_, [](const auto& lane) { return lane->waiting.empty(); });
  std::erase_if(keyed_, [](const auto& entry) {
    return entry.second->waiting.empty() && !entry.second->running;
  });
}

void WorkerPool::State::drop_stopped() {
  std::vector<Item> dropped;
  {
    const std::lock_guard lock(mutex_);
    const auto take_from = [&](Lane& lane) {
      std::deque<Item> kept;
      for (auto& item : lane.waiting) {
        if (item.stop.stop_requested()) {
          dropped.push_back(std::move(item));
          --queued_;
        } else {
          kept.push_back(std::move(item));
        }
      }
      lane.waiting.swap(kept);
    };
    for (const auto& lane : ready_) take_from(*lane);
    for (const auto& [key, lane] : keyed_) take_from(*lane);
    forget_empty_lanes();
    update_gauges();
  }
  drop(std::move(dropped));
}

std::size_t WorkerPool::State::stop(Clock::duration grace) {
  // The deadline is in real time: no test clock advances a blocked thread.
  const auto deadline =
      std::chrono::steady_clock::now() + std::min<Clock::duration>(grace, kMaxGrace);
  std::vector<Item> dropped;
  std::vector<std::stop_source> running;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    const auto take_from = [&](Lane& lane) {
      std::ranges::move(lane.waiting, std::back_inserter(dropped));
      lane.waiting.clear();
    };
    for (const auto& lane : ready_) take_from(*lane);
    for (const auto& [key, lane] : keyed_) take_from(*lane);
    forget_empty_lanes();
    queued_ = 0;
    for (const auto& worker : workers_) {
      if (worker->job) running.push_back(*worker->job);
    }
    update_gauges();
  }
  work_.notify_all();
  drop(std::move(dropped));
  for (auto& job : running) job.request_stop();

  std::unique_lock lock(mutex_);
  const auto is_busy = [](const auto& worker) { return worker->job.has_value(); };
  while (std::ranges::any_of(workers_, is_busy) &&
         ended_.wait_until(lock, deadline) != std::cv_status::timeout) {
  }
  auto workers = std::exchange(workers_, {});
  std::size_t left = 0;
  for (const auto& worker : workers) {
    if (!is_busy(worker)) continue;
    worker->left_behind = true;
    worker->thread.detach();
    ++left;
  }
  jobs_left_behind += left;
  idle_ = options_.threads;
  update_gauges();
  counting_ = false;
  lock.unlock();
  // These threads have no more work and end.
  for (const auto& worker : workers) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  if (left > 0) log().error("jobs did not end in time", {{"pool", options_.name}, {"jobs", left}});
  return left;
}

WorkerPool::WorkerPool(Options options, Metrics& metrics)
    : state_(std::make_shared<State>(std::move(options), metrics)) {
  State::start(state_);
}

WorkerPool::~WorkerPool() {
  state_->stop(kGrace);
}

Result<void> WorkerPool::submit(std::stop_source stop, Job job, std::string key) {
  return state_->submit(std::move(key), std::move(stop), std::move(job));
}

void WorkerPool::drop_stopped() {
  state_->drop_stopped();
}

std::size_t WorkerPool::stop(Clock::duration grace) {
  return state_->stop(grace);
}

std::size_t WorkerPool::left_behind() {
  return jobs_left_behind;
}

Result<void> WorkerPool::submit_to(State& state, std::string key, std::stop_source stop, Job job) {
  return state.submit(std::move(key), std::move(stop), std::move(job));
}

void WorkerPool::drop_stopped_of(State& state) {
  state.drop_stopped();
}

std::unexpected<Error> WorkerPool::too_late(const State& state) {
  return fail(ErrorCode::timeout, "worker pool " + state.name() + ": the deadline passed");
}

void WorkerPool::log_lost(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    log().error("a job failed after its caller had left", {{"error", error.what()}});
  } catch (...) {
    log().error("a job failed after its caller had left", {{"error", "an unknown exception"}});
  }
}

}  // namespace gitops
