#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "app-proxy/identity/runtime_identity.hpp"
#include "app-proxy/users/caller.hpp"
#include "app-proxy/users/credential.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/async.hpp"
#include "common/core/attempts.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"

namespace gitops::app_proxy {

// Finds the user of a credential. Asks the control plane with that credential and caches the
// response for a short time under a keyed hash, so that no credential is stored. Concurrent
// requests with the same credential share one question. Loop thread only; call stop() before
// destruction.
class UserDirectory {
 public:
  struct Options {
    std::chrono::milliseconds ttl{
        30'000};  // of a response: how long a revoked credential still works
    // Total lifetime of a successful response while the control plane cannot be reached.
    std::chrono::milliseconds outage{300'000};
    std::chrono::milliseconds known_timeout{2'000};  // then the cached successful response is used
    std::chrono::milliseconds retry{5'000};          // between failed questions, for one user
    std::chrono::milliseconds refused_ttl{10'000};
    std::chrono::milliseconds timeout{10'000};  // per question
    // Interval of questions for the own account: when it is complete, and while it lacks a Git
    // provider or a shared configuration repository.
    std::chrono::milliseconds own_refresh{60'000};
    std::chrono::milliseconds own_incomplete{5'000};
    std::size_t max_known = 10'000;  // credentials; the least recently used one is evicted
    std::size_t max_questions = 64;  // concurrent
    Attempts::Options attempts = {};
  };
  // `control_plane` sends the token of `runtime`. Both outlive this object.
  UserDirectory(const Executor& executor, control_plane::GraphqlClient& control_plane,
                RuntimeIdentity& runtime, Metrics& metrics, Options options);

  // Fetches the own account and follows its changes, in the background.
  void start();
  Task<> stop();

  // Returns the owner of a credential that came from `peer`. Errors: unauthenticated, equally for a
  // credential that the control plane refuses and for one of another account; too_many_requests
  // after too many wrong ones; unavailable or timeout when the control plane cannot be asked.
  Task<Result<std::shared_ptr<const User>>> find(const SentCredential& credential,
                                                 const std::string& peer, Deadline deadline);

  // The own account from the last response; empty until then. Copy it before a co_await.
  [[nodiscard]] const control_plane::Identity& own() const { return own_; }
  // Notified when own() changes.
  [[nodiscard]] Event& own_changed() { return own_changed_; }
  [[nodiscard]] std::size_t known() const { return entries_.size(); }

 private:
  struct Entry {
    explicit Entry(const Executor& executor) : answered(executor) {}
    std::shared_ptr<const User> user;  // null: refused, or not asked yet
    Clock::time_point asked_at{};      // time of the response; epoch: never
    Clock::time_point ask_again_at{};  // earliest time after a failed question
    bool is_asking = false;
    Result<void> outcome = {};  // of the last question
    Event answered;
    std::list<Sha256Sum>::iterator place;
  };
  struct SumHash {
    std::size_t operator()(const Sha256Sum& sum) const;
  };

  Task<> follow_own_account();
  void take_own_account(control_plane::Identity told);
  Task<> ask(std::shared_ptr<Entry> entry, SentCredential credential, std::string peer);
  std::shared_ptr<Entry> entry_of(const Sha256Sum& sum);
  Result<std::shared_ptr<const User>> user_of(const control_plane::Identity& identity) const;

  Executor executor_;
  control_plane::GraphqlClient& control_plane_;
  RuntimeIdentity& runtime_;
  Options options_;
  CredentialHash hash_;
  Attempts attempts_;
  control_plane::Identity own_;
  Event own_changed_;
  std::unordered_map<Sha256Sum, std::shared_ptr<Entry>, SumHash> entries_;
  std::list<Sha256Sum> order_;  // most recently used at the end
  std::size_t questions_ = 0;
  Log log_{"users"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& accepted_;
  Counter& refused_;
  Counter& unknown_;
  TaskGroup tasks_;
};

}  // namespace gitops::app_proxy
