#include "app-proxy/providers/host_messages.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "app-proxy/errors/client_codes.hpp"
#include "common/core/encoding.hpp"
#include "common/http/json_answer.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

constexpr int kMaxRedirects = 3;
// Fields of a response that providers read.
constexpr std::array<std::string_view, 4> kKeptFields = {"Link", "X-Total-Count", "X-AUSERNAME",
                                                         "X-OAuth-Scopes"};

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

// Returns the target of a redirect within the origin of `from`; nullopt when it is elsewhere.
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

// Checks whether a web page came in place of JSON, or of a file that is none itself: from a proxy
// or a login.
bool is_page_instead(const ApiRequest& request, const http::Headers& headers) {
  if (!http::is_page(headers)) return false;
  if (request.accept != "*/*") return true;
  const std::string_view path = std::string_view(request.path).substr(0, request.path.find('?'));
  return std::ranges::none_of(std::array<std::string_view, 3>{".html", ".htm", ".xhtml"},
                              [&](std::string_view end) { return path.ends_with(end); });
}

// Checks for an error page, which no host sends for its interface. Bitbucket Cloud has refusals of
// that media type without a body.
bool is_error_page(const http::Response& response) {
  const auto first = response.body.find_first_not_of(" \t\r\n");
  return response.status >= 400 && response.status < 500 && http::is_page(response.headers) &&
         first != std::string::npos && response.body[first] == '<';
}

HostOutcome outcome_of_success(const HostCall& call, const http::Response& response) {
  using Kind = HostOutcome::Kind;
  using CacheChange = HostOutcome::CacheChange;
  if (is_page_instead(call.request, response.headers)) {
    return {.kind = Kind::unreadable, .error = bad_answer(call.place(), "a web page")};
  }
  HostOutcome outcome{.kind = Kind::usable};
  if (call.read) {
    auto page = call.read(response.body, response.headers);
    if (!page) return {.kind = Kind::unreadable, .error = std::move(page.error())};
    outcome.page = std::make_shared<const HostPage>(std::move(*page));
  }
  if (call.request.method == "GET") {
    outcome.cache = CacheChange::keep;
  } else if (call.request.method != "HEAD") {
    outcome.cache = CacheChange::expire;
  }
  return outcome;
}

}  // namespace

std::optional<Error> unusable_access(const HostCall& call) {
  const auto& access = call.access;
  if (!access.token.empty() && http::is_field_value(access.token.reveal()) &&
      !access.username.contains(':')) {
    return std::nullopt;
  }
  return Error{.code = ErrorCode::unauthenticated,
               .message = call.request.what +
                          ": the Git token or its user name cannot be sent; register "
                          "a new token with the Git integration",
               .subcode = git_errors::kTokenRejected};
}

http::Request request_of(const HostCall& call, std::string_view etag) {
  const ApiRequest& asked = call.request;
  http::Request request{.method = asked.method,
                        .target = asked.other_root ? *asked.other_root + asked.path
                                                   : http::join_target(call.root.url, asked.path),
                        .headers = {},
                        .body = asked.body};
  request.headers.set("Authorization", authorization(call.style, call.access));
  request.headers.set("Accept", asked.accept);
  if (!asked.body.empty()) request.headers.set("Content-Type", "application/json");
  if (!etag.empty()) request.headers.set("If-None-Match", std::string(etag));
  return request;
}

Error no_response(const HostCall& call, Error cause) {
  if (cause.code != ErrorCode::too_large) return host_unreachable(call.place(), std::move(cause));
  cause.message = call.request.what + ": the answer of " +
                  std::string(display_name(call.root.kind)) + " is too large";
  cause.subcode = git_errors::kBadAnswer;
  return cause;
}

Redirect redirect_of(const HostCall& call, const http::Response& response, int followed) {
  using Kind = Redirect::Kind;
  const int status = response.status;
  if (!is_redirect(status) || is_listed(call.request.also, status)) return {};
  const bool is_read = call.request.method == "GET" || call.request.method == "HEAD";
  const bool keeps_method = status == 307 || status == 308;
  auto target = target_within(call.root.url, response.headers.find("Location").value_or(""));
  if (!target || followed == kMaxRedirects || (!is_read && !keeps_method)) {
    return {.kind = Kind::refuse};
  }
  return {.kind = Kind::follow, .target = std::move(*target)};
}

HostOutcome outcome_of(const HostCall& call, const http::Response& response, bool is_throttled,
                       bool has_kept) {
  using Kind = HostOutcome::Kind;
  using CacheChange = HostOutcome::CacheChange;
  const int status = response.status;
  if (is_throttled) return {.kind = Kind::throttled};
  if (status == 304 && has_kept) {
    return {.kind = Kind::not_modified, .cache = CacheChange::renew};
  }
  if (status == 304) {
    return {.kind = Kind::unreadable,
            .cache = CacheChange::renew,
            .error = bad_answer(call.place(), "not modified, but nothing is known")};
  }
  if (status >= 200 && status < 300) return outcome_of_success(call, response);
  if (is_error_page(response)) {
    // A proxy or a login in between knows neither the token nor what the host has.
    return {.kind = Kind::refused,
            .error = host_unreachable(call.place(),
                                      {.code = ErrorCode::unavailable,
                                       .message = std::to_string(status) + " with a web page"})};
  }
  if (is_listed(call.request.also, status)) return {.kind = Kind::usable};
  HostOutcome refused{.kind = Kind::refused};
  if (status == 401) refused.cache = CacheChange::forget_token;
  if (status == 403 || status == 404) refused.cache = CacheChange::forget_path;
  refused.error = refused_by_host(call.place(), response, call.access.token.reveal());
  return refused;
}

AnswerCache::Entry entry_of(const http::Response& response, std::shared_ptr<const HostPage> page,
                            Clock::time_point now) {
  AnswerCache::Entry entry{.etag = std::string(response.headers.find("ETag").value_or("")),
                           .headers = {},
                           .body = page ? std::string() : response.body,
                           .page = std::move(page),
                           .fresh_until = now + fresh_for(response.headers)};
  for (const auto name : kKeptFields) {
    if (const auto value = response.headers.find(name)) {
      entry.headers.add(std::string(name), std::string(*value));
    }
  }
  return entry;
}

}  // namespace gitops::app_proxy
