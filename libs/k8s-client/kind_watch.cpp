#include "k8s-client/kind_watch.hpp"

#include <stdexcept>
#include <utility>

#include "common/core/backoff.hpp"

namespace gitops::k8s {
namespace {

constexpr auto kLookTimeout = std::chrono::seconds(10);
// The interval of discovery while it fails.
constexpr Backoff::Options kLookBackoff{.initial = std::chrono::seconds(1),
                                        .max = std::chrono::seconds(30)};

}  // namespace

KindWatch::KindWatch(const Executor& executor, Client& client, WatchedKind what, Options options,
                     Callbacks callbacks, Metrics& metrics, std::string program,
                     std::string cluster)
    : executor_(executor),
      client_(client),
      what_(std::move(what)),
      options_(options),
      callbacks_(std::move(callbacks)),
      metrics_(metrics),
      program_(std::move(program)),
      cluster_(std::move(cluster)) {}

Task<> KindWatch::run() {
  Backoff backoff(kLookBackoff, random_seed());
  while (true) {
    while (!co_await look()) {
      co_await sleep_for(last_error_.empty() ? options_.discovery : backoff.next());
    }
    backoff.reset();
    co_await watch();
  }
}

// Returns whether the kind is served; false also when discovery failed.
Task<bool> KindWatch::look() {
  const auto& resource = what_.resource;
  const auto served = co_await client_.exists(resource, deadline_after(kLookTimeout));
  last_error_ = served ? std::string{} : served.error().message;
  if (!served) {
    if (const auto verdict = repeats_.check(resource.plural, Clock::now()); verdict.pass) {
      log_.warning("discovery of the cluster failed", {{"cluster", cluster_},
                                                       {"resource", resource.full_name()},
                                                       {"code", to_string(served.error().code)},
                                                       {"reason", last_error_},
                                                       {"suppressed", verdict.suppressed}});
    }
    co_return false;
  }
  const auto now = *served ? State::served : State::missing;
  if (std::exchange(state_, now) != now) {
    log_.info(*served ? "the kind is served" : "the kind is not served; waiting for it",
              {{"cluster", cluster_}, {"resource", resource.full_name()}});
  }
  co_return *served;
}

// Watches the kind; returns when it is no longer served.
Task<> KindWatch::watch() {
  std::string failure;
  TaskGroup tasks(executor_, [&failure, &tasks](const std::string& task, const std::string& what) {
    failure = task + ": " + what;
    tasks.cancel();
  });
  informer_.emplace(executor_, client_, informer_options(), metrics_, program_);
  const auto subscription =
      informer_->subscribe([this, epoch = std::uint64_t{0}](const Change& change) mutable {
        if (epoch != informer_->epoch()) {
          epoch = informer_->epoch();
          if (callbacks_.restored) callbacks_.restored();
        }
        callbacks_.changed(change);
      });
  informer_->start(tasks);
  tasks.spawn("first list", [this]() -> Task<> {
    co_await informer_->wait_synced(kNever);
    co_await callbacks_.listed(*this);
  });
  tasks.spawn("end of a kind", [this, &tasks] { return watch_for_end(tasks); });
  co_await tasks.join();
  informer_.reset();
  if (!failure.empty()) throw std::runtime_error(failure);
}

Task<> KindWatch::watch_for_end(TaskGroup& tasks) {
  while (true) {
    co_await sleep_for(options_.discovery);
    if (informer_->last_error().empty()) continue;
    co_await look();
    if (state_ == State::missing) break;
  }
  tasks.cancel();
}

InformerOptions KindWatch::informer_options() const {
  InformerOptions options{.resource = what_.resource,
                          .ns = what_.ns,
                          .label_selector = {},
                          .fields = what_.fields,
                          .keep = {},
                          .metric_labels = {{"cluster", cluster_}},
                          .reflector = options_.reflector};
  if (what_.keep_namespace) {
    options.keep = [this](std::string_view ns, std::string_view) {
      return what_.keep_namespace(ns);
    };
  }
  return options;
}

const Record* KindWatch::find(const ObjectKey& key) const {
  return informer_ ? informer_->find(key) : nullptr;
}

std::string KindWatch::last_error() const {
  if (!informer_) {
    if (!last_error_.empty()) return last_error_;
    return state_ == State::unknown ? "not looked for yet" : "";
  }
  if (!informer_->last_error().empty()) return informer_->last_error();
  return informer_->has_synced() ? std::string{} : std::string("not listed yet");
}

StatusEntry KindWatch::status() const {
  StatusEntry entry{.name = what_.name + (what_.ns.empty() ? "" : " in " + what_.ns)};
  if (is_missing()) {
    entry.state = StatusState::unavailable;
    entry.message = "not served" + (last_error_.empty() ? "" : ", " + last_error_);
    return entry;
  }
  entry.message = last_error();
  if (!entry.message.empty()) {
    const bool has_failed = informer_ ? !informer_->last_error().empty() : !last_error_.empty();
    entry.state = has_failed ? StatusState::failed : StatusState::pending;
  }
  if (informer_) entry.add_count("objects", informer_->size());
  return entry;
}

}  // namespace gitops::k8s
