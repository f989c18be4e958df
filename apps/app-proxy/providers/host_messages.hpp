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

// The requests to Git hosts, and the meaning of their responses. Pure: GitHostClient sends the requests
// and keeps the responses.
namespace gitops::app_proxy {

// How a host wants the token.
enum class AuthStyle {
  bearer,          // Authorization: Bearer TOKEN
  token,           // Authorization: token TOKEN
  basic_or_bearer  // Basic USER:TOKEN; without a user name, Bearer
};

// One request to a host, below its API root. Made by the pure parts of the providers.
struct ApiRequest {
  std::string method = "GET";
  std::string path;       // with its query
  std::string body = {};  // JSON; empty: none
  std::string what;       // names the request in errors: "repository acme/shop"
  std::string accept = "application/json";
  std::string resource = "core";  // which of the host's rate limits counts it
  // Statuses besides 2xx that the caller reads: answers to probes. They are never cached.
  std::vector<int> also = {};
  std::size_t max_body = 8UL * 1024 * 1024;
  // Instead of the API root's path, for an interface of the host that lies beside it.
  std::optional<std::string> other_root = {};
};

// Reads a page of repositories from an answer. Pure.
using ReadPage = std::function<Result<HostPage>(std::string_view body, const http::Headers&)>;

// A request with its host and its token. What it refers to outlives it.
struct HostCall {
  const ApiRoot& root;
  AuthStyle style;
  const GitAccess& access;
  ApiRequest request;
  ReadPage read = {};  // of a page of repositories; empty: the caller reads the body

  [[nodiscard]] GitErrorPlace place() const { return {root, request.what}; }
};

// The error of a token or a user name that cannot stand in a header; nothing when they can.
std::optional<Error> unusable_access(const HostCall& call);

// The request as it is sent. `etag`: of the response that is kept; empty without one.
http::Request request_of(const HostCall& call, std::string_view etag);

// The error of a request that got no response, because of `cause`.
Error no_response(const HostCall& call, Error cause);

// What follows from the status of a response, and from its Location.
struct Redirect {
  enum class Kind : std::uint8_t {
    none,    // the response is no redirect, or the caller reads it
    follow,  // to `target`, with the same method and body
    refuse,  // to another origin, of a change that must not be repeated, or one too many
  };
  Kind kind = Kind::none;
  std::string target = {};
};
// `followed`: the redirects of the request so far.
Redirect redirect_of(const HostCall& call, const http::Response& response, int followed);

// What a response means that is no redirect.
struct HostOutcome {
  enum class Kind : std::uint8_t {
    usable,        // for the caller
    not_modified,  // the kept response holds
    throttled,     // a rate limit prevented the request
    unreadable,    // `error`: the response is not what the host sends
    refused,       // `error`: the host does not do it
  };
  enum class CacheChange : std::uint8_t {
    none,
    keep,          // the response, for its path
    renew,         // the kept response of the path
    expire,        // all of the token: it changed something
    forget_path,   // the user must not see any more what the host does not show any more
    forget_token,  // the same for all that the token was shown
  };
  Kind kind = Kind::refused;
  CacheChange cache = CacheChange::none;
  Error error = {};
  std::shared_ptr<const HostPage> page = {};  // as it was read, of a usable response
};
// `is_throttled`: what RateBudget::note() says of the response. `has_kept`: there is a kept response
// that a 304 can stand for.
HostOutcome outcome_of(const HostCall& call, const http::Response& response, bool is_throttled,
                       bool has_kept);

// What is kept of a response; its body only without a page.
AnswerCache::Entry entry_of(const http::Response& response, std::shared_ptr<const HostPage> page,
                            Clock::time_point now);

}  // namespace gitops::app_proxy
