#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "app-proxy/providers/answer_cache.hpp"
#include "app-proxy/providers/api_root.hpp"
#include "app-proxy/providers/git_types.hpp"
#include "app-proxy/providers/host_messages.hpp"
#include "app-proxy/providers/rate_budget.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/wait_line.hpp"
#include "common/http/client.hpp"

namespace gitops::app_proxy {

struct ApiAnswer {
  int status = 0;
  http::Headers headers;
  std::string body;
  bool is_last_known = false;
};

// REST client for Git hosts, for all providers and all users. It implements limits, caches and
// redirects.
//
// - A token has a budget (RateBudget), at most `max_parallel_of_token` requests in flight and a
//   short queue. A request that passes these limits then counts in a limit of all tokens.
// - GET responses are cached with their ETag. A 304 returns the cached response, and so does a host
//   that throttles the token: the response then has is_last_known.
// - Pages of repositories are cached in parsed form. While the host declares a page fresh
//   (fresh_for()), it is returned without a request, until the token changes something at the host.
//   Concurrent callers that request the same page with one token share one request.
// - A redirect is followed, at most three times, only within scheme, host and port of the API root.
//   A request that changes something is repeated there only after a 307 or 308.
// - Errors are those of git_error.hpp. No error, log line or metric contains a token.
//
// Loop thread only; outlives its requests.
class GitHostClient {
 public:
  struct Options {
    AnswerCache::Limits cache = {};
    std::size_t max_parallel = 64;
    std::size_t max_parallel_of_token = 8;
    std::size_t max_waiting_of_token = 64;
    std::size_t max_tokens = 4'096;  // with a budget in memory
  };
  // `http` has the TLS and proxy settings for Git hosts.
  GitHostClient(const Executor& executor, http::Client& http, Metrics& metrics, Options options);
  GitHostClient(const Executor& executor, http::Client& http, Metrics& metrics)
      : GitHostClient(executor, http, metrics, Options()) {}
  ~GitHostClient();
  GitHostClient(const GitHostClient&) = delete;
  GitHostClient& operator=(const GitHostClient&) = delete;

  // Sends a request. Returns a response whose status is 2xx or one of request.also; `status` is
  // set.
  Task<Result<ApiAnswer>> send(const ApiRoot& root, AuthStyle style, const GitAccess& access,
                               ApiRequest request, Deadline deadline);

  // Returns a page of repositories for people, which may be as old as the host permits. `request`
  // is a GET.
  Task<Result<Answer<std::shared_ptr<const HostPage>>>> page(const ApiRoot& root, AuthStyle style,
                                                             const GitAccess& access,
                                                             ApiRequest request, ReadPage read,
                                                             Deadline deadline);

  // Evicts the cached responses of a token that was removed.
  void forget(const ApiRoot& root, const GitAccess& access);
  [[nodiscard]] std::size_t cached_bytes() const { return cache_.bytes(); }

 private:
  struct TokenState;
  class Permit;
  struct Flight;
  // A response, and the page that was parsed from it.
  struct Reply {
    ApiAnswer answer;
    std::shared_ptr<const HostPage> page = {};
  };
  // Sends a request. `owner` is owner_of().
  Task<Result<Reply>> ask(const HostCall& call, const std::string& owner, Deadline deadline);
  // Waits until the request may be sent. Returns the time until then if a limit forbids it.
  static Task<Result<std::optional<Clock::duration>>> admit(const HostCall& call,
                                                            const TokenState& token, Permit& permit,
                                                            Deadline deadline);
  Task<Result<http::Response>> exchange(const HostCall& call, http::Request request,
                                        Deadline deadline);
  // Carries out the result of outcome_of().
  Result<Reply> take(const HostCall& call, const std::string& owner, TokenState& token,
                     http::Response response);
  void change_cache(const HostCall& call, const std::string& owner, const HostOutcome& outcome,
                    const http::Response& response, Clock::time_point now);
  // Returns the cached response, for a host that throttles; an error when there is none.
  Result<Reply> last_known(const HostCall& call, const std::string& owner, Clock::duration wait);
  // Returns the cached response in the requested form; null when there is none.
  const AnswerCache::Entry* find_kept(const HostCall& call, const std::string& owner);

  [[nodiscard]] std::string owner_of(const ApiRoot& root, const GitAccess& access) const;
  std::shared_ptr<TokenState> state_of(const std::string& owner);

  Executor executor_;
  http::Client& http_;
  Options options_;
  std::string key_;  // key of owner_of(); random for each process
  AnswerCache cache_;
  std::map<std::string, std::shared_ptr<TokenState>> tokens_;
  std::map<std::string, std::shared_ptr<Flight>> flights_;  // by owner and path
  std::size_t in_flight_ = 0;
  WaitLine waiting_;
  Counter& asked_;
  Counter& unchanged_;
  Counter& fresh_;
  Counter& throttled_;
  Counter& last_known_;
  Counter& failed_;
};

}  // namespace gitops::app_proxy
