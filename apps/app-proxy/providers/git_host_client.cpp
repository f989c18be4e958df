#include "app-proxy/providers/git_host_client.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr int kMaxRedirects = 3;
// The fields of an answer that providers read.
constexpr std::array<std::string_view, 4> kKeptFields = {"Link", "X-Total-Count", "X-AUSERNAME",
                                                         "X-OAuth-Scopes"};

http::Headers kept_fields(const http::Headers& headers) {
  http::Headers out;
  for (const auto name : kKeptFields) {
    if (const auto value = headers.find(name)) out.add(std::string(name), std::string(*value));
  }
  return out;
}

std::string authorization(AuthStyle style, const GitAccess& access) {
  const std::string token(access.token.reveal());
  if (style == AuthStyle::token) return "token " + token;
  if (style == AuthStyle::basic_or_bearer && !access.username.empty()) {
    return "Basic " + base64_encode(access.username + ":" + token);
  }
  return "Bearer " + token;
}

bool is_listed(const std::vector<int>& statuses, int status) {
  return std::ranges::find(statuses, status) != statuses.end();
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// The target of a redirect within the origin of `from`; nothing when it leads elsewhere.
std::optional<std::string> target_within(const http::Url& from, std::string_view location) {
  std::string target;
  if (location.starts_with('/') && !location.starts_with("//")) {
    target = location;
  } else {
    const auto to = http::parse_url(location);
    if (!to || to->scheme != from.scheme || to->host != from.host || to->port != from.port ||
        !to->userinfo.empty()) {
      return std::nullopt;
    }
    target = to->path.empty() ? "/" : to->path;
    if (!to->query.empty()) target += "?" + to->query;
  }
  const bool is_plain = std::ranges::all_of(
      target, [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '#' && c != '\\'; });
  if (!is_plain) return std::nullopt;
  return target;
}

}  // namespace

// What is known of one token at one host.
struct GitHostClient::TokenState {
  explicit TokenState(const Executor& executor) : line(executor) {}
  RateBudget budget;
  std::size_t in_flight = 0;
  std::size_t waiting = 0;
  WaitLine line;
};

// One request for a page for all who ask for it meanwhile.
struct GitHostClient::Flight {
  explicit Flight(const Executor& executor) : landed(executor) {}
  Event landed;
  bool has_landed = false;
  // Nothing when the one who asked left before the answer.
  std::optional<Result<Answer<std::shared_ptr<const HostPage>>>> result;
};

// The right to have a request in flight: first among those of the token, then among all.
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
  auto got =
      co_await ask(root, style, access, owner_of(root, access), std::move(request), {}, deadline);
  if (!got) co_return std::unexpected(std::move(got.error()));
  co_return std::move(got->answer);
}

Task<Result<Answer<std::shared_ptr<const HostPage>>>> GitHostClient::page(
    const ApiRoot& root, AuthStyle style, const GitAccess& access, ApiRequest request,
    ReadPage read, Deadline deadline) {
  using Page = Answer<std::shared_ptr<const HostPage>>;
  const auto owner = owner_of(root, access);
  // People do not wait for background work, which a host's budget stops earlier.
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
    // The deadline of another says nothing about this one.
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
  auto got =
      co_await ask(root, style, access, owner, std::move(request), std::move(read), deadline);
  if (got) {
    flight->result = Page{std::move(got->page), got->answer.is_last_known};
  } else {
    flight->result = std::unexpected(std::move(got.error()));
  }
  co_return *flight->result;
}

Task<Result<GitHostClient::Reply>> GitHostClient::ask(const ApiRoot& root, AuthStyle style,
                                                      const GitAccess& access,
                                                      const std::string& owner, ApiRequest asked,
                                                      ReadPage read, Deadline deadline) {
  const auto urgency = access.urgency;
  const GitErrorPlace place{root, asked.what};
  if (access.token.empty() || !http::is_field_value(access.token.reveal()) ||
      access.username.contains(':')) {
    Error error{.code = ErrorCode::unauthenticated,
                .message = asked.what +
                           ": the Git token or its user name cannot be sent; register "
                           "a new token with the Git integration",
                .subcode = git_errors::kTokenRejected};
    co_return std::unexpected(std::move(error));
  }
  const auto state = state_of(owner);
  const bool is_cached = asked.method == "GET";
  // What is kept, in the form that is wanted.
  const auto find_kept = [&]() -> const AnswerCache::Entry* {
    const auto* kept = is_cached ? cache_.find(owner, asked.path) : nullptr;
    return kept && (kept->page != nullptr) == static_cast<bool>(read) ? kept : nullptr;
  };
  // An answer from the cache, for a host that throttles; an error when there is none.
  const auto throttled = [&](Clock::duration wait) -> Result<Reply> {
    throttled_.Increment();
    if (const auto* kept = find_kept()) {
      last_known_.Increment();
      return Reply{{200, kept->headers, kept->body, true}, kept->page};
    }
    return std::unexpected(
        host_throttles(place, std::chrono::ceil<std::chrono::milliseconds>(wait)));
  };
  if (const auto wait = state->budget.wait(asked.resource, urgency, Clock::now())) {
    co_return throttled(*wait);
  }
  Permit permit(*this, state);
  switch (co_await permit.take(deadline)) {
    case Permit::Outcome::taken:
      break;
    case Permit::Outcome::too_many_wait: {
      Error error{.code = ErrorCode::too_many_requests,
                  .message = asked.what + ": too many requests of this Git token wait already",
                  .subcode = git_errors::kThrottled};
      co_return std::unexpected(std::move(error));
    }
    case Permit::Outcome::deadline:
      co_return std::unexpected(host_unreachable(
          place, {.code = ErrorCode::timeout, .message = "deadline passed while others asked"}));
  }
  // Others may have used up the budget meanwhile.
  if (const auto wait = state->budget.wait(asked.resource, urgency, Clock::now())) {
    co_return throttled(*wait);
  }
  http::Request request{.method = asked.method,
                        .target = asked.other_root ? *asked.other_root + asked.path
                                                   : http::join_target(root.url, asked.path),
                        .headers = {},
                        .body = asked.body};
  request.headers.set("Authorization", authorization(style, access));
  request.headers.set("Accept", asked.accept);
  if (!asked.body.empty()) request.headers.set("Content-Type", "application/json");
  if (const auto* kept = find_kept(); kept && !kept->etag.empty()) {
    request.headers.set("If-None-Match", kept->etag);
  }
  state->budget.spend(asked.resource);
  asked_.Increment();
  auto response = co_await exchange(root, request, asked, deadline);
  if (!response) {
    failed_.Increment();
    co_return std::unexpected(std::move(response.error()));
  }
  const auto now = Clock::now();
  if (state->budget.note(asked.resource, *response, now, wall_now())) {
    co_return throttled(
        state->budget.wait(asked.resource, urgency, now).value_or(std::chrono::seconds(1)));
  }
  if (response->status == 304) {
    cache_.renew(owner, asked.path, now + fresh_for(response->headers));
    if (const auto* kept = find_kept()) {
      unchanged_.Increment();
      co_return Reply{{200, kept->headers, kept->body, false}, kept->page};
    }
    co_return std::unexpected(bad_answer(place, "not modified, but nothing is known"));
  }
  const bool is_success = response->status >= 200 && response->status < 300;
  std::shared_ptr<const HostPage> page;
  if (is_success && read) {
    auto told = read(response->body, response->headers);
    if (!told) co_return std::unexpected(std::move(told.error()));
    page = std::make_shared<const HostPage>(std::move(*told));
  }
  if (is_success && is_cached) {
    cache_.put(owner, asked.path,
               {.etag = std::string(response->headers.find("ETag").value_or("")),
                .headers = kept_fields(response->headers),
                .body = page ? std::string() : response->body,
                .page = page,
                .fresh_until = now + fresh_for(response->headers)});
  } else if (is_success && asked.method != "HEAD") {
    cache_.expire(owner);
  }
  if (is_success || is_listed(asked.also, response->status)) {
    co_return Reply{
        {response->status, std::move(response->headers), std::move(response->body), false},
        std::move(page)};
  }
  failed_.Increment();
  // The user must not see any more what the host does not show any more.
  if (response->status == 401) cache_.forget(owner);
  if (response->status == 403 || response->status == 404) cache_.forget(owner, asked.path);
  co_return std::unexpected(refused_by_host(place, *response, access.token.reveal()));
}

Task<Result<http::Response>> GitHostClient::exchange(const ApiRoot& root,
                                                     const http::Request& request,
                                                     const ApiRequest& asked, Deadline deadline) {
  const GitErrorPlace place{root, asked.what};
  http::Request next = request;
  for (int redirects = 0;; ++redirects) {
    auto response = co_await http_.send(root.url, next, deadline, asked.max_body);
    if (!response) {
      auto& error = response.error();
      if (error.code == ErrorCode::too_large) {
        error.message = asked.what + ": the answer of " + std::string(display_name(root.kind)) +
                        " is too large";
        error.subcode = git_errors::kBadAnswer;
        co_return std::unexpected(std::move(error));
      }
      co_return std::unexpected(host_unreachable(place, std::move(error)));
    }
    if (!is_redirect(response->status) || is_listed(asked.also, response->status)) {
      co_return response;
    }
    const bool is_read = request.method == "GET" || request.method == "HEAD";
    const bool keeps_method = response->status == 307 || response->status == 308;
    const auto target = target_within(root.url, response->headers.find("Location").value_or(""));
    if (!target || redirects == kMaxRedirects || (!is_read && !keeps_method)) {
      co_return std::unexpected(redirected_away(place));
    }
    next.target = *target;
  }
}

}  // namespace gitops::app_proxy
