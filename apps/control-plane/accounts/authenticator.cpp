#include "control-plane/accounts/authenticator.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/attempts.hpp"
#include "common/core/crypto.hpp"
#include "common/core/log.hpp"
#include "common/core/lru_cache.hpp"
#include "common/net/address_list.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/identification.hpp"
#include "control-plane/accounts/page_tokens.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kEntryBytes = 256;  // size of an entry with its key in LruCache
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kValueBytes = 32;
constexpr std::size_t kMaxRefused = 1'000;
constexpr std::size_t kMaxForgotten = 10'000;
constexpr std::chrono::seconds kRefusedTtl{10};
constexpr std::chrono::seconds kQuestionLimit{5};
constexpr std::chrono::seconds kTimesLimit{1};
constexpr std::chrono::seconds kRetryAfter{5};

std::unexpected<Error> invalid_token() {
  return std::unexpected(Error{.code = ErrorCode::unauthenticated,
                               .message = "Unauthorized: Invalid token.",
                               .http_status = 401});
}

std::unexpected<Error> not_known() {
  return std::unexpected(Error{.code = ErrorCode::unavailable,
                               .message = "It cannot be found out now who the token belongs to.",
                               .retry_after = kRetryAfter,
                               .http_status = 503});
}

Counter& checks(Metrics& metrics, const char* result) {
  return metrics.counter("gitops_control_plane_credential_checks_total",
                         "Questions to the database who a credential belongs to",
                         {{"result", result}});
}

Attempts::Options attempts_of(std::size_t per_minute) {
  const std::chrono::milliseconds minute = std::chrono::minutes(1);
  return {.burst = std::max<std::size_t>(per_minute, 1),
          .period = minute / static_cast<long>(std::max<std::size_t>(per_minute, 1))};
}

}  // namespace

struct Authenticator::State {
  State(store::Database& db, Metrics& metrics, Options o)
      : database(db),
        options(std::move(o)),
        attempts(attempts_of(options.max_attempts_per_address)),
        known(options.max_known * kEntryBytes),
        accepted_total(checks(metrics, "accepted")),
        refused_total(checks(metrics, "refused")),
        unknown_total(checks(metrics, "unknown")) {}

  struct Known {
    CallerPtr caller;  // null: refused
    Clock::time_point asked_at;
    std::uint64_t asked_in = 0;  // the era in which the query began
  };
  struct Question {
    explicit Question(const Executor& executor) : over(executor) {}
    Event over;
    bool is_over = false;
    bool has_outcome = false;  // false: the request that ran the query was cancelled
    Result<CallerPtr> outcome = CallerPtr();
  };
  // Ends a query when its coroutine ends, on every path.
  struct Asking {
    Asking(State& s, std::string k, std::shared_ptr<Question> q)
        : state(s), key(std::move(k)), question(std::move(q)) {
      state.questions.emplace(key, question);
    }
    ~Asking() {
      state.questions.erase(key);
      question->is_over = true;
      question->over.notify_all();
    }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    State& state;
    std::string key;
    std::shared_ptr<Question> question;
  };

  // Returns whether a query that began in this era may have read data from before a forget() of its ids.
  [[nodiscard]] bool is_outdated(const Caller& caller, std::uint64_t asked_in) const {
    if (asked_in < forgotten_all) return true;
    for (const auto* id : {&caller.account->id, &caller.user_id, &caller.credential_id}) {
      const auto found = forgotten.find(*id);
      if (found != forgotten.end() && asked_in < found->second) return true;
    }
    return false;
  }

  // Returns whether the result may still be used: it is young enough, and the credential has not expired since.
  [[nodiscard]] bool is_fresh(const Known& entry) const {
    const auto until = entry.caller->valid_until;
    return Clock::now() - entry.asked_at < options.ttl &&
           (until == 0 || micros_at(wall_now()) < until);
  }

  Task<Result<CallerPtr>> find(Secret token, std::string peer, Deadline deadline);
  Task<Result<CallerPtr>> ask(std::shared_ptr<Question> question, std::string key, Secret token,
                              DueTimes& due);
  Task<> write_due(DueTimes due, Deadline deadline);

  store::Database& database;
  Options options;
  const Secret hash_key{random_bytes(kKeyBytes)};
  Attempts attempts;
  LruCache<Known> known;
  LruCache<Known> refused{kMaxRefused * kEntryBytes};
  std::unordered_map<std::string, std::shared_ptr<Question>> questions;
  // Each forget() begins an era. A result is valid when its query began in the era of the last forget() of its ids, or
  // later.
  std::uint64_t era = 0;
  std::uint64_t forgotten_all = 0;
  std::unordered_map<std::string, std::uint64_t> forgotten;
  std::function<void(const std::string&)> on_forget;
  Log log{"accounts"};
  RepeatFilter repeated{std::chrono::minutes(1)};
  Counter& accepted_total;
  Counter& refused_total;
  Counter& unknown_total;
};

Authenticator::Authenticator(store::Database& database, Metrics& metrics, Options options)
    : state_(std::make_shared<State>(database, metrics, std::move(options))) {}

CookieForm Authenticator::cookie() const {
  return state_->options.cookie;
}

void Authenticator::forget(const std::string& id) {
  State& state = *state_;
  ++state.era;
  if (id.empty() || state.forgotten.size() >= kMaxForgotten) {
    state.forgotten.clear();
    state.forgotten_all = state.era;
  } else {
    state.forgotten.insert_or_assign(id, state.era);
  }
  if (state.on_forget) state.on_forget(id);
}

void Authenticator::on_forget(std::function<void(const std::string& id)> forgotten) {
  state_->on_forget = std::move(forgotten);
}

Task<Result<CallerPtr>> Authenticator::authenticate(const http::Headers& headers,
                                                    const std::string& peer, Deadline deadline,
                                                    PageTokens page_tokens) {
  const auto state = state_;
  auto sent = sent_token(headers, state->options.cookie);
  if (sent.kind == SentToken::Kind::none || sent.kind == SentToken::Kind::malformed) {
    co_return invalid_token();
  }
  if (sent.kind == SentToken::Kind::cookie &&
      is_from_other_site(headers, state->options.own_origins)) {
    co_return invalid_token();
  }
  if (page_tokens == PageTokens::refused && is_page_token_text(sent.token.reveal())) {
    co_return invalid_token();
  }
  co_return co_await state->find(std::move(sent.token), peer, deadline);
}

Task<Result<CallerPtr>> Authenticator::State::find(Secret token, std::string peer,
                                                   Deadline deadline) {
  const auto sum = hmac_sha256(hash_key.reveal(), token.reveal());
  const std::string key(bytes_of(sum));
  peer = net::client_network(peer);
  bool was_known = false;
  if (const Known* entry = known.find(key)) {
    if (!is_outdated(*entry->caller, entry->asked_in)) {
      if (is_fresh(*entry)) co_return entry->caller;
      was_known = true;
    }
  }
  // A program goes on with its token after it was revoked. The same token again is no guess, and leaves the attempts to
  // the other callers behind this address.
  const auto now = Clock::now();
  const Known* before = refused.find(key);
  const bool is_repeated = before != nullptr;
  if (is_repeated && before->asked_in == era && now - before->asked_at < kRefusedTtl) {
    co_return invalid_token();
  }
  if (!was_known && !is_repeated) {
    if (const auto wait = attempts.wait_of(peer, now); wait > Clock::duration::zero()) {
      co_return std::unexpected(Error{.code = ErrorCode::too_many_requests,
                                      .message = "Too many invalid tokens from this address.",
                                      .retry_after = std::chrono::ceil<std::chrono::seconds>(wait),
                                      .http_status = 429});
    }
  }
  const auto executor = co_await asio::this_coro::executor;
  while (true) {
    if (const auto found = questions.find(key); found != questions.end()) {
      const auto question = found->second;
      while (!question->is_over) {
        if (!co_await question->over.wait(deadline)) co_return not_known();
      }
      if (!question->has_outcome) {
        // Another request may have asked again, and got the answer, before this one resumed.
        const Known* entry = known.find(key);
        if (entry != nullptr && !is_outdated(*entry->caller, entry->asked_in) && is_fresh(*entry)) {
          co_return entry->caller;
        }
        continue;
      }
      if (!question->outcome && question->outcome.error().code == ErrorCode::unauthenticated &&
          !is_repeated) {
        attempts.spend(peer, Clock::now());
      }
      co_return question->outcome;
    }
    const auto question = std::make_shared<Question>(executor);
    DueTimes due;
    auto outcome = co_await ask(question, key, token, due);
    if (!outcome && outcome.error().code == ErrorCode::unauthenticated && !is_repeated) {
      attempts.spend(peer, Clock::now());
    }
    if (!due.empty()) co_await write_due(std::move(due), deadline);
    co_return outcome;
  }
}

// Queries the database. The requests that wait for the result resume when this coroutine ends.
Task<Result<CallerPtr>> Authenticator::State::ask(std::shared_ptr<Question> question,
                                                  std::string key, Secret token, DueTimes& due) {
  const Asking asking(*this, key, question);
  while (true) {
    const auto asked_in = era;
    auto answer =
        co_await database.read(deadline_after(kQuestionLimit),
                               [token, now = micros_at(wall_now())](store::Connection& connection) {
                                 return identify(connection, token, now);
                               });
    const auto now = Clock::now();
    if (!answer) {
      unknown_total.Increment();
      if (const auto verdict = repeated.check("ask", now); verdict.pass) {
        log.warning("the owner of a token is not known: the database cannot be asked",
                    {{"error", answer.error().message}, {"suppressed", verdict.suppressed}});
      }
      question->outcome = not_known();
    } else if (!answer->caller) {
      refused_total.Increment();
      known.erase(key);
      refused.put(key, {.caller = nullptr, .asked_at = now, .asked_in = asked_in}, kValueBytes);
      question->outcome = invalid_token();
    } else {
      // The credential was revoked during the query.
      if (is_outdated(*answer->caller, asked_in)) continue;
      accepted_total.Increment();
      known.put(key, {.caller = answer->caller, .asked_at = now, .asked_in = asked_in},
                kValueBytes);
      due = std::move(answer->due);
      question->outcome = std::move(answer->caller);
    }
    question->has_outcome = true;
    co_return question->outcome;
  }
}

// Writes the times of last use. A failure delays them until the next query.
Task<> Authenticator::State::write_due(DueTimes due, Deadline deadline) {
  const auto written = co_await database.write(
      std::min<Deadline>(deadline, deadline_after(kTimesLimit)),
      [due = std::move(due), now = micros_at(wall_now())](store::Connection& connection) {
        return write_times(connection, due, now);
      });
  if (written) co_return;
  if (const auto verdict = repeated.check("times", Clock::now()); verdict.pass) {
    log.warning("the last use of a credential was not recorded",
                {{"error", written.error().message}, {"suppressed", verdict.suppressed}});
  }
}

}  // namespace gitops::control_plane_server
