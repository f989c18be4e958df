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

// Asks Git hosts over REST, for all providers and all users: the one place that knows limits, caches
// and redirects.
//
// - A token has a budget (RateBudget), at most `max_parallel_of_token` requests in flight and a
//   short queue; only then a limit of all tokens counts.
// - GET answers are kept with their ETag. A 304 gives the kept answer, and so does a host that
//   throttles the token: the answer then says is_last_known.
// - Pages of repositories are kept as they were read. While the host calls one fresh (fresh_for()) it
//   is given without a question, until the token changes something at the host; those who ask for the
//   same page of one token at the same time share one request.
// - A redirect is followed, at most three times, only within scheme, host and port of the API root.
//   What changes something is repeated there only after a 307 or 308.
// - Errors are those of git_error.hpp. Tokens stand in no error, log line or metric.
//
// Loop thread only; outlives its requests.
class GitHostClient {
 public:
  struct Options {
    AnswerCache::Limits cache = {};
    std::size_t max_parallel = 64;
    std::size_t max_parallel_of_token = 8;
    std::size_t max_waiting_of_token = 64;
    std::size_t max_tokens = 4'096;  // whose budgets are remembered
  };
  // `http` has the TLS and proxy settings for Git hosts.
  GitHostClient(const Executor& executor, http::Client& http, Metrics& metrics, Options options);
  GitHostClient(const Executor& executor, http::Client& http, Metrics& metrics)
      : GitHostClient(executor, http, metrics, Options()) {}
  ~GitHostClient();
  GitHostClient(const GitHostClient&) = delete;
  GitHostClient& operator=(const GitHostClient&) = delete;

  // The answer when its status is 2xx or one of request.also; `status` is then set.
  Task<Result<ApiAnswer>> send(const ApiRoot& root, AuthStyle style, const GitAccess& access,
                               ApiRequest request, Deadline deadline);

  // A page for people to choose from, which may be as old as the host allows. `request` is a GET.
  Task<Result<Answer<std::shared_ptr<const HostPage>>>> page(const ApiRoot& root, AuthStyle style,
                                                             const GitAccess& access,
                                                             ApiRequest request, ReadPage read,
                                                             Deadline deadline);

  // Drops the kept answers of a token, for one that was removed.
  void forget(const ApiRoot& root, const GitAccess& access);
  [[nodiscard]] std::size_t cached_bytes() const { return cache_.bytes(); }

 private:
  struct TokenState;
  class Permit;
  struct Flight;
  // An answer, and the page that was read from it.
  struct Reply {
    ApiAnswer answer;
    std::shared_ptr<const HostPage> page = {};
  };
  // `owner` is owner_of().
  Task<Result<Reply>> ask(const HostCall& call, const std::string& owner, Deadline deadline);
  // Waits until the request may be sent. The time until a limit lets it through, if one forbids it.
  static Task<Result<std::optional<Clock::duration>>> admit(const HostCall& call,
                                                            const TokenState& token, Permit& permit,
                                                            Deadline deadline);
  Task<Result<http::Response>> exchange(const HostCall& call, http::Request request,
                                        Deadline deadline);
  // Does what outcome_of() says.
  Result<Reply> take(const HostCall& call, const std::string& owner, TokenState& token,
                     http::Response response);
  void change_cache(const HostCall& call, const std::string& owner, const HostOutcome& outcome,
                    const http::Response& response, Clock::time_point now);
  // The kept response, for a host that throttles; an error without one.
  Result<Reply> last_known(const HostCall& call, const std::string& owner, Clock::duration wait);
  // The kept response in the form that is wanted; null without one.
  const AnswerCache::Entry* find_kept(const HostCall& call, const std::string& owner);

  [[nodiscard]] std::string owner_of(const ApiRoot& root, const GitAccess& access) const;
  std::shared_ptr<TokenState> state_of(const std::string& owner);

  Executor executor_;
  http::Client& http_;
  Options options_;
  std::string key_;  // of owner_of(); random for each process
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
