#include "app-proxy/users/directory.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/backoff.hpp"

namespace gitops::app_proxy {
namespace {

std::unexpected<Error> invalid_token() {
  return std::unexpected(Error{.code = ErrorCode::unauthenticated,
                               .message = "Unauthorized: Invalid token.",
                               .http_status = 401});
}

std::unexpected<Error> cannot_ask(std::string why) {
  return std::unexpected(Error{.code = ErrorCode::unavailable,
                               .message = std::move(why),
                               .retry_after = std::chrono::seconds(5),
                               .http_status = 503});
}

Counter& outcome(Metrics& metrics, const char* result) {
  return metrics.counter("gitops_app_proxy_user_checks_total",
                         "Questions to the control plane who a credential belongs to",
                         {{"result", result}});
}

}  // namespace

std::size_t UserDirectory::SumHash::operator()(const Sha256Sum& sum) const {
  std::size_t value = 0;
  std::memcpy(&value, sum.data(), sizeof value);
  return value;
}

UserDirectory::UserDirectory(const Executor& executor, control_plane::GraphqlClient& control_plane,
                             RuntimeIdentity& runtime, Metrics& metrics, Options options)
    : executor_(executor),
      control_plane_(control_plane),
      runtime_(runtime),
      options_(options),
      attempts_(options.attempts),
      own_changed_(executor),
      accepted_(outcome(metrics, "accepted")),
      refused_(outcome(metrics, "refused")),
      unknown_(outcome(metrics, "unknown")),
      tasks_(executor) {}

void UserDirectory::start() {
  tasks_.spawn("own account", [this] { return follow_own_account(); });
}

Task<> UserDirectory::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

Task<> UserDirectory::follow_own_account() {
  Backoff backoff({.initial = std::chrono::seconds(1)}, random_seed());
  while (true) {
    bool is_told = false;
    if (!runtime_.token().empty()) {
      auto told = co_await control_plane_.own_identity(deadline_after(options_.timeout));
      is_told = told.has_value();
      if (is_told) {
        take_own_account(std::move(*told));
      } else if (const auto verdict = repeated_.check("own", Clock::now()); verdict.pass) {
        // The last known account is kept.
        log_.warning("the control plane does not tell the runtime's account",
                     {{"error", told.error().message}, {"suppressed", verdict.suppressed}});
      }
    }
    if (!is_told) {
      (void)co_await runtime_.changed().wait(deadline_after(backoff.next()));
      continue;
    }
    backoff.reset();
    const bool is_complete = !own_.git_provider.empty() && !own_.shared_config_repo.empty();
    co_await sleep_for(backoff.next(is_complete ? options_.own_refresh : options_.own_incomplete));
    backoff.reset();
  }
}

void UserDirectory::take_own_account(control_plane::Identity told) {
  const auto parts = [](const control_plane::Identity& own) {
    return std::tie(own.account_id, own.runtime_name, own.git_provider, own.git_api_url,
                    own.shared_config_repo);
  };
  const bool is_first = own_.account_id.empty();
  if (!is_first && parts(told) == parts(own_)) return;
  if (told.account_id != own_.account_id || told.runtime_name != own_.runtime_name) {
    // Cached users were compared with the old account.
    entries_.clear();
    order_.clear();
  }
  own_ = std::move(told);
  own_changed_.notify_all();
  log_.info(is_first ? "the account is known" : "the account has changed",
            {{"account", own_.account_id},
             {"runtime", own_.runtime_name},
             {"git_provider", own_.git_provider},
             {"has_config_repository", !own_.shared_config_repo.empty()}});
}

std::shared_ptr<UserDirectory::Entry> UserDirectory::entry_of(const Sha256Sum& sum) {
  if (const auto found = entries_.find(sum); found != entries_.end()) {
    order_.splice(order_.end(), order_, found->second->place);
    return found->second;
  }
  if (entries_.size() >= options_.max_known) {
    entries_.erase(order_.front());
    order_.pop_front();
  }
  auto entry = std::make_shared<Entry>(executor_);
  entry->place = order_.insert(order_.end(), sum);
  entries_.emplace(sum, entry);
  return entry;
}

Result<std::shared_ptr<const User>> UserDirectory::user_of(
    const control_plane::Identity& identity) const {
  if (identity.account_id != own_.account_id) return invalid_token();
  const bool is_runtime = identity.user_id.empty();
  // Neither the token of another runtime is accepted here, nor a page token for one: it may have kept a copy.
  const bool is_for_one = is_runtime || !identity.runtime_name.empty();
  if (is_for_one && identity.runtime_name != own_.runtime_name) return invalid_token();
  return std::make_shared<const User>(
      User{.id = identity.user_id,
           .name = is_runtime ? identity.runtime_name : identity.name,
           .email = identity.email,
           .account_id = identity.account_id,
           .is_admin = identity.is_account_admin,
           .is_runtime = is_runtime});
}

// Runs independently of requests: the response is for all callers that wait for it, also when the
// first of them leaves.
Task<> UserDirectory::ask(std::shared_ptr<Entry> entry, SentCredential credential,
                          std::string peer) {
  ++questions_;
  const auto identity = co_await control_plane_.me(credential, deadline_after(options_.timeout));
  --questions_;
  const auto now = Clock::now();
  Result<std::shared_ptr<const User>> user = invalid_token();
  if (identity) {
    user = user_of(*identity);
  } else if (identity.error().code != ErrorCode::unauthenticated &&
             identity.error().code != ErrorCode::forbidden) {
    user = cannot_ask("the control plane cannot be asked who the token belongs to");
  }
  if (user) {
    accepted_.Increment();
    entry->user = *user;
    entry->asked_at = now;
    entry->outcome = {};
  } else if (user.error().code == ErrorCode::unauthenticated) {
    refused_.Increment();
    attempts_.spend(peer, now);
    entry->user = nullptr;
    entry->asked_at = now;
    entry->outcome = std::unexpected(user.error());
  } else {
    // The last good response is kept, for at most the time `outage`.
    unknown_.Increment();
    entry->outcome = std::unexpected(user.error());
    entry->ask_again_at = now + options_.retry;
    if (const auto verdict = repeated_.check("ask", now); verdict.pass) {
      log_.warning("the control plane does not tell who a token belongs to",
                   {{"error", identity.error().message}, {"suppressed", verdict.suppressed}});
    }
  }
  entry->is_asking = false;
  entry->answered.notify_all();
}

Task<Result<std::shared_ptr<const User>>> UserDirectory::find(const SentCredential& credential,
                                                              const std::string& peer,
                                                              Deadline deadline) {
  const auto sum = hash_.of(credential);
  const auto known = entries_.find(sum);
  const bool is_new = known == entries_.end();
  if (!is_new) {
    const Entry& entry = *known->second;
    const auto age = Clock::now() - entry.asked_at;
    if (entry.user && age < options_.ttl) {
      order_.splice(order_.end(), order_, entry.place);
      co_return entry.user;
    }
    const bool is_refused = !entry.user && !entry.is_asking && !entry.outcome &&
                            entry.outcome.error().code == ErrorCode::unauthenticated;
    if (is_refused && age < options_.refused_ttl) {
      attempts_.spend(peer, Clock::now());
      co_return std::unexpected(entry.outcome.error());
    }
  }
  // A known user may ask again, no matter which other requests come from the same address, and does
  // not wait for a slow or unreachable control plane.
  const bool was_known = !is_new && known->second->user != nullptr &&
                         Clock::now() - known->second->asked_at < options_.outage;
  if (was_known && Clock::now() < known->second->ask_again_at) co_return known->second->user;
  if (!was_known) {
    if (const auto wait = attempts_.wait_of(peer, Clock::now()); wait > Clock::duration::zero()) {
      co_return std::unexpected(Error{.code = ErrorCode::too_many_requests,
                                      .message = "Too many invalid tokens from this address.",
                                      .retry_after = std::chrono::ceil<std::chrono::seconds>(wait),
                                      .http_status = 429});
    }
    if (own_.account_id.empty()) {
      co_return cannot_ask(
          "the runtime's account is not known yet: the control plane has not answered");
    }
    if (questions_ >= options_.max_questions && (is_new || !known->second->is_asking)) {
      co_return cannot_ask("too many users are being checked");
    }
  }
  const auto entry = entry_of(sum);
  if (!entry->is_asking) {
    entry->is_asking = true;
    tasks_.spawn("user check",
                 [this, entry, credential, peer] { return ask(entry, credential, peer); });
  }
  const auto limit =
      was_known ? std::min<Deadline>(deadline, deadline_after(options_.known_timeout)) : deadline;
  while (entry->is_asking) {
    if (!co_await entry->answered.wait(limit)) {
      if (was_known && entry->user) co_return entry->user;
      co_return std::unexpected(Error{.code = ErrorCode::timeout,
                                      .message = "the control plane did not tell in time who the "
                                                 "token belongs to",
                                      .http_status = 504});
    }
  }
  if (entry->outcome) co_return entry->user;
  if (entry->user && Clock::now() - entry->asked_at < options_.outage) co_return entry->user;
  co_return std::unexpected(entry->outcome.error());
}

}  // namespace gitops::app_proxy
