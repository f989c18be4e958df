#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/providers/answer_cache.hpp"
#include "app-proxy/providers/api_root.hpp"
#include "app-proxy/providers/git_error.hpp"
#include "app-proxy/providers/git_types.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "common/http/message.hpp"

// Requests to Git hosts and the meaning of their responses. Pure: GitHostClient sends the requests
// and caches the responses.
namespace gitops::app_proxy {

// Form in which a host expects the token.
enum class AuthStyle {
  bearer,          // Authorization: Bearer TOKEN
  token,           // Authorization: token TOKEN
  basic_or_bearer  // Basic USER:TOKEN; Bearer when there is no user name
};

// A request to a host, below its API root. The pure parts of the providers build it.
struct ApiRequest {
  std::string method = "GET";
  std::string path;       // including the query
  std::string body = {};  // JSON; empty: none
  std::string what;       // names the request in errors: "repository acme/shop"
  std::string accept = "application/json";
  std::string resource = "core";  // rate limit of the host that counts it
  // Statuses besides 2xx that the caller handles, for probes. They are never cached.
  std::vector<int> also = {};
  std::size_t max_body = 8UL * 1024 * 1024;
  // Replaces the API root's path, for an interface of the host outside of it.
  std::optional<std::string> other_root = {};
};

// Parses a page of repositories from a response. Pure.
using ReadPage = std::function<Result<HostPage>(std::string_view body, const http::Headers&)>;

// A request with its host and its token. The referenced objects outlive it.
struct HostCall {
  const ApiRoot& root;
  AuthStyle style;
  const GitAccess& access;
  ApiRequest request;
  ReadPage read = {};  // parses a page of repositories; empty: the caller reads the body

  [[nodiscard]] GitErrorPlace place() const { return {root, request.what}; }
};

// Returns the error of a token or a user name that is not valid in a header; nullopt when both are
// valid.
std::optional<Error> unusable_access(const HostCall& call);

// Builds the HTTP request. `etag` is that of the cached response; empty without one.
http::Request request_of(const HostCall& call, std::string_view etag);

// Returns the error of a request that got no response, because of `cause`.
Error no_response(const HostCall& call, Error cause);

// Decision from the status of a response and its Location.
struct Redirect {
  enum class Kind : std::uint8_t {
    none,    // not a redirect, or the caller handles it
    follow,  // to `target`, with the same method and body
    refuse,  // to another origin, of a change that must not be repeated, or one too many
  };
  Kind kind = Kind::none;
  std::string target = {};
};
// Decides about a redirect. `followed` is the number of redirects of the request so far.
Redirect redirect_of(const HostCall& call, const http::Response& response, int followed);

// Meaning of a response that is not a redirect.
struct HostOutcome {
  enum class Kind : std::uint8_t {
    usable,        // for the caller
    not_modified,  // the cached response is valid
    throttled,     // a rate limit prevented the request
    unreadable,    // `error`: the response is malformed
    refused,       // `error`: the host refuses the request
  };
  enum class CacheChange : std::uint8_t {
    none,
    keep,          // cache the response, for its path
    renew,         // renew the cached response of the path
    expire,        // end the freshness of all responses of the token: it changed something
    forget_path,   // evict the path: the host no longer shows it to the user
    forget_token,  // evict all responses of the token, for the same reason
  };
  Kind kind = Kind::refused;
  CacheChange cache = CacheChange::none;
  Error error = {};
  std::shared_ptr<const HostPage> page = {};  // parsed, of a usable response
};
// Decides about a response. `is_throttled` is the result of RateBudget::note(). `has_kept`: there
// is a cached response that a 304 confirms.
HostOutcome outcome_of(const HostCall& call, const http::Response& response, bool is_throttled,
                       bool has_kept);

// Returns the cache entry of a response; it has the body only without a page.
AnswerCache::Entry entry_of(const http::Response& response, std::shared_ptr<const HostPage> page,
                            Clock::time_point now);

}  // namespace gitops::app_proxy
