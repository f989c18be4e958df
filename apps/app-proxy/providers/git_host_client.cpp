#include "app-proxy/providers/git_host_client.hpp"

#include <utility>

#include <prometheus/counter.h>

#include "app-proxy/errors/client_codes.hpp"
#include "common/core/crypto.hpp"

namespace gitops::app_proxy {

// State of one token at one host.
struct GitHostClient::TokenState {
  explicit TokenState(const Executor& executor) : line(executor) {}
  RateBudget budget;
  std::size_t in_flight = 0;
  std::size_t waiting = 0;
  WaitLine line;
};

// A request for a page that all concurrent callers share.
struct GitHostClient::Flight {
  explicit Flight(const Executor& executor) : landed(executor) {}
  Event landed;
  bool has_landed = false;
  // Unset when the first caller left before the response.
  std::optional<Result<Answer<std::shared_ptr<const HostPage>>>> result;
};

// A slot for a request in flight: first among those of the token, then among all.
class GitHostClient::Permit {
 public:
  Permit(GitHostClient& client, std::shared_ptr<TokenState> token)
      : client_(client), token_(std::move(token)) {}
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;
  ~Permit() {
    if (has_all_) {
      --client_.in_flight_;
      client_.waiting_.wake_first();
    }
    if (has_token_) {
      --token_->in_flight;
      token_->line.wake_first();
    }
  }

  enum class Outcome { taken, too_many_wait, deadline };
  Task<Outcome> take(Deadline deadline) {
    if (token_->waiting >= client_.options_.max_waiting_of_token) {
      co_return Outcome::too_many_wait;
    }
    const struct Waiting {
      explicit Waiting(std::size_t& c) : count(c) { ++count; }
      ~Waiting() { --count; }
      std::size_t& count;
    } waiting(token_->waiting);
    if (!co_await wait_for(token_->line, token_->in_flight, client_.options_.max_parallel_of_token,
                           deadline)) {
      co_return Outcome::deadline;
    }
    has_token_ = true;
    if (!co_await wait_for(client_.waiting_, client_.in_flight_, client_.options_.max_parallel,
                           deadline)) {
      co_return Outcome::deadline;
    }
    has_all_ = true;
    co_return Outcome::taken;
  }

 private:
  static Task<bool> wait_for(WaitLine& line, std::size_t& in_flight, std::size_t most,
                             Deadline deadline) {
    WaitLine::Ticket place(line);
    while (!place.is_first() || in_flight >= most) {
      if (!co_await place.wait(deadline)) co_return false;
    }
    ++in_flight;
    co_return true;
  }

  GitHostClient& client_;
  std::shared_ptr<TokenState> token_;
  bool has_token_ = false;
  bool has_all_ = false;
};

GitHostClient::GitHostClient(const Executor& executor, http::Client& http, Metrics& metrics,
                             Options options)
    : executor_(executor),
      http_(http),
      options_(options),
      key_(random_bytes(32)),
      cache_(options.cache),
      waiting_(executor),
      asked_(metrics.counter("gitops_app_proxy_git_host_requests_total",
                             "Requests that were sent to Git hosts.")),
      unchanged_(metrics.counter("gitops_app_proxy_git_host_unchanged_total",
                                 "Answers of Git hosts that said: not modified.")),
      fresh_(metrics.counter("gitops_app_proxy_git_host_fresh_total",
                             "Pages of repositories that were given without a question, while the "
                             "Git host calls them fresh.")),
      throttled_(metrics.counter("gitops_app_proxy_git_host_throttled_total",
                                 "Requests to Git hosts that a rate limit prevented.")),
      last_known_(metrics.counter("gitops_app_proxy_git_host_last_known_total",
                                  "Requests that were answered with a host's last known answer.")),
      failed_(metrics.counter("gitops_app_proxy_git_host_failures_total",
                              "Requests to Git hosts without a usable answer.")) {}

GitHostClient::~GitHostClient() = default;

std::string GitHostClient::owner_of(const ApiRoot& root, const GitAccess& access) const {
  HmacSha256 hmac(key_);
  hmac.add(root.text());
  hmac.add(std::string_view("\0", 1));
  hmac.add(access.username);
  hmac.add(std::string_view("\0", 1));
  hmac.add(access.token.reveal());
  return std::string(bytes_of(hmac.finish()));
}

std::shared_ptr<GitHostClient::TokenState> GitHostClient::state_of(const std::string& owner) {
  if (const auto found = tokens_.find(owner); found != tokens_.end()) return found->second;
  if (tokens_.size() >= options_.max_tokens) {
    std::erase_if(tokens_, [](const auto& entry) { return entry.second.use_count() == 1; });
  }
  return tokens_.emplace(owner, std::make_shared<TokenState>(executor_)).first->second;
}

void GitHostClient::forget(const ApiRoot& root, const GitAccess& access) {
  const auto owner = owner_of(root, access);
  cache_.forget(owner);
}

Task<Result<ApiAnswer>> GitHostClient::send(const ApiRoot& root, AuthStyle style,
                                            const GitAccess& access, ApiRequest request,
                                            Deadline deadline) {
  const HostCall call{root, style, access, std::move(request)};
  const auto owner = owner_of(root, access);
  auto got = co_await ask(call, owner, deadline);
  if (!got) co_return std::unexpected(std::move(got.error()));
  co_return std::move(got->answer);
}

Task<Result<Answer<std::shared_ptr<const HostPage>>>> GitHostClient::page(
    const ApiRoot& root, AuthStyle style, const GitAccess& access, ApiRequest request,
    ReadPage read, Deadline deadline) {
  using Page = Answer<std::shared_ptr<const HostPage>>;
  const auto owner = owner_of(root, access);
  // People do not wait for background work, which has a smaller share of a host's budget.
  const auto key =
      owner + (access.urgency == Urgency::background ? "background " : "person ") + request.path;
  while (true) {
    const auto* kept = cache_.find(owner, request.path);
    if (kept && kept->page && kept->fresh_until > Clock::now()) {
      fresh_.Increment();
      co_return Page{kept->page, false};
    }
    const auto found = flights_.find(key);
    if (found == flights_.end()) break;
    const auto flight = found->second;
    while (!flight->has_landed) {
      if (!co_await flight->landed.wait(deadline)) {
        co_return std::unexpected(host_unreachable(
            {root, request.what},
            {.code = ErrorCode::timeout, .message = "deadline passed while others asked"}));
      }
    }
    // The deadline of another caller does not apply to this one.
    const bool is_late =
        flight->result && !*flight->result && flight->result->error().code == ErrorCode::timeout;
    if (flight->result && !is_late) co_return *flight->result;
  }
  const auto flight = std::make_shared<Flight>(executor_);
  flights_.emplace(key, flight);
  struct Landing {
    GitHostClient& client;
    const std::string& key;
    Flight& flight;
    ~Landing() {
      client.flights_.erase(key);
      flight.has_landed = true;
      flight.landed.notify_all();
    }
  };
  const Landing landing{*this, key, *flight};
  const HostCall call{root, style, access, std::move(request), std::move(read)};
  auto got = co_await ask(call, owner, deadline);
  if (got) {
    flight->result = Page{std::move(got->page), got->answer.is_last_known};
  } else {
    flight->result = std::unexpected(std::move(got.error()));
  }
  co_return *flight->result;
}

Task<Result<GitHostClient::Reply>> GitHostClient::ask(const HostCall& call,
                                                      const std::string& owner, Deadline deadline) {
  if (auto unusable = unusable_access(call)) co_return std::unexpected(std::move(*unusable));
  const auto token = state_of(owner);
  Permit permit(*this, token);
  auto forbidden = co_await admit(call, *token, permit, deadline);
  if (!forbidden) co_return std::unexpected(std::move(forbidden.error()));
  if (*forbidden) co_return last_known(call, owner, **forbidden);
  const auto* kept = find_kept(call, owner);
  auto request = request_of(call, kept != nullptr ? std::string_view(kept->etag) : "");
  token->budget.spend(call.request.resource);
  asked_.Increment();
  auto response = co_await exchange(call, std::move(request), deadline);
  if (!response) {
    failed_.Increment();
    co_return std::unexpected(std::move(response.error()));
  }
  co_return take(call, owner, *token, std::move(*response));
}

Task<Result<std::optional<Clock::duration>>> GitHostClient::admit(const HostCall& call,
                                                                  const TokenState& token,
                                                                  Permit& permit,
                                                                  Deadline deadline) {
  const auto wait = [&] {
    return token.budget.wait(call.request.resource, call.access.urgency, Clock::now());
  };
  if (const auto limited = wait()) co_return limited;
  switch (co_await permit.take(deadline)) {
    case Permit::Outcome::taken:
      break;
    case Permit::Outcome::too_many_wait: {
      Error error{
          .code = ErrorCode::too_many_requests,
          .message = call.request.what + ": too many requests of this Git token wait already",
          .subcode = git_errors::kThrottled};
      co_return std::unexpected(std::move(error));
    }
    case Permit::Outcome::deadline:
      co_return std::unexpected(host_unreachable(
          call.place(),
          {.code = ErrorCode::timeout, .message = "deadline passed while others asked"}));
  }
  // Other requests may have used up the budget meanwhile.
  co_return wait();
}

Task<Result<http::Response>> GitHostClient::exchange(const HostCall& call, http::Request request,
                                                     Deadline deadline) {
  for (int followed = 0;; ++followed) {
    auto response = co_await http_.send(call.root.url, request, deadline, call.request.max_body);
    if (!response) co_return std::unexpected(no_response(call, std::move(response.error())));
    auto redirect = redirect_of(call, *response, followed);
    switch (redirect.kind) {
      case Redirect::Kind::none:
        co_return response;
      case Redirect::Kind::refuse:
        co_return std::unexpected(redirected_away(call.place()));
      case Redirect::Kind::follow:
        request.target = std::move(redirect.target);
    }
  }
}

Result<GitHostClient::Reply> GitHostClient::take(const HostCall& call, const std::string& owner,
                                                 TokenState& token, http::Response response) {
  const auto& resource = call.request.resource;
  const auto now = Clock::now();
  const bool is_throttled = token.budget.note(resource, response, now, wall_now());
  const bool has_kept = response.status == 304 && find_kept(call, owner) != nullptr;
  auto outcome = outcome_of(call, response, is_throttled, has_kept);
  change_cache(call, owner, outcome, response, now);
  switch (outcome.kind) {
    case HostOutcome::Kind::usable:
      return Reply{{response.status, std::move(response.headers), std::move(response.body), false},
                   std::move(outcome.page)};
    case HostOutcome::Kind::not_modified: {
      unchanged_.Increment();
      const auto* kept = find_kept(call, owner);
      return Reply{{200, kept->headers, kept->body, false}, kept->page};
    }
    case HostOutcome::Kind::throttled: {
      const auto wait = token.budget.wait(resource, call.access.urgency, now);
      return last_known(call, owner, wait.value_or(std::chrono::seconds(1)));
    }
    case HostOutcome::Kind::refused:
      failed_.Increment();
      break;
    case HostOutcome::Kind::unreadable:
      break;
  }
  return std::unexpected(std::move(outcome.error));
}

void GitHostClient::change_cache(const HostCall& call, const std::string& owner,
                                 const HostOutcome& outcome, const http::Response& response,
                                 Clock::time_point now) {
  using CacheChange = HostOutcome::CacheChange;
  const auto& path = call.request.path;
  switch (outcome.cache) {
    case CacheChange::none:
      return;
    case CacheChange::keep:
      return cache_.put(owner, path, entry_of(response, outcome.page, now));
    case CacheChange::renew:
      return cache_.renew(owner, path, now + fresh_for(response.headers));
    case CacheChange::expire:
      return cache_.expire(owner);
    case CacheChange::forget_path:
      return cache_.forget(owner, path);
    case CacheChange::forget_token:
      return cache_.forget(owner);
  }
}

Result<GitHostClient::Reply> GitHostClient::last_known(const HostCall& call,
                                                       const std::string& owner,
                                                       Clock::duration wait) {
  throttled_.Increment();
  if (const auto* kept = find_kept(call, owner)) {
    last_known_.Increment();
    return Reply{{200, kept->headers, kept->body, true}, kept->page};
  }
  return std::unexpected(
      host_throttles(call.place(), std::chrono::ceil<std::chrono::milliseconds>(wait)));
}

const AnswerCache::Entry* GitHostClient::find_kept(const HostCall& call, const std::string& owner) {
  if (call.request.method != "GET") return nullptr;
  const auto* kept = cache_.find(owner, call.request.path);
  const bool wants_page = static_cast<bool>(call.read);
  return kept != nullptr && (kept->page != nullptr) == wants_page ? kept : nullptr;
}

}  // namespace gitops::app_proxy
