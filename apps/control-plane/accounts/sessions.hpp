#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/http/message.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// Sessions of browsers: an opaque cookie of 256 random bits, whose hash is stored, and the rules for requests that carry
// it. Errors and threads as in account_store.hpp.
namespace gitops::control_plane_server {

inline constexpr Micros kSessionIdle = 12LL * 3600 * 1'000'000;      // then it ends
inline constexpr Micros kSessionMax = 7LL * 24 * 3600 * 1'000'000;   // then it ends in any case
inline constexpr Micros kSessionSeenPeriod = 10LL * 60 * 1'000'000;  // between writes of seen_at

struct Session {
  std::string hash;  // of the token, 32 bytes
  std::string user_id;
  Micros created_at = 0;
  Micros seen_at = 0;
  Micros expires_at = 0;
  std::string provider = {};  // name of the identity provider at which it began; empty: none
};

// The form of the cookie: `__Host-session` for browsers that speak TLS, `session` where they speak plain HTTP.
enum class CookieForm { secure, plain };

std::string_view cookie_name(CookieForm form);
// The value of Set-Cookie that begins a session, and the one that ends it.
std::string session_cookie(CookieForm form, const Secret& token);
std::string ended_session_cookie(CookieForm form);
// The value of one cookie in a Cookie header. Nothing when it is absent, and when two of them differ.
std::optional<std::string_view> cookie_value(std::string_view header, std::string_view name);

bool is_alive(const Session& session, Micros now);
// The id by which logs and Authenticator::forget() name a session; it tells nothing of the token.
std::string session_id(std::string_view hash);
std::string session_hash(const Secret& token);

// Whether a browser sent this request from a page of another site, by Sec-Fetch-Site, or by Origin where that is absent.
// Pages of `own_origins` ("https://console.example") are no other site. A request without both fields comes from no
// browser, or from one that asks for a page.
bool is_from_other_site(const http::Headers& headers, const std::vector<std::string>& own_origins);

// The credential in a request: Authorization with or without "Bearer", else x-access-token, else the session
// cookie.
struct SentToken {
  enum class Kind {
    none,
    malformed,  // an empty token, two of them, control characters, more than 8 KiB
    header,
    cookie,  // a browser adds it by itself, also to requests of other sites' pages
  };
  Kind kind = Kind::none;
  Secret token;
};
SentToken sent_token(const http::Headers& headers, CookieForm form);

// Begins a session and returns its token. `provider` is as in Session.
Result<Secret> create_session(store::Connection& connection, std::string_view user_id, Micros now,
                              std::string_view provider = "");
Result<std::optional<Session>> find_session(store::Connection& connection, std::string_view hash);
// Lets a session continue under a new token, which it returns. The session still ends when it would have ended. Nothing:
// it has ended already, also when this process has not heard of that.
Result<std::optional<Secret>> renew_session(store::Connection& connection, std::string_view hash,
                                            Micros now);
Result<void> set_session_seen(store::Connection& connection, std::string_view hash, Micros now);
Result<void> end_session(store::Connection& connection, std::string_view hash);
Result<void> end_sessions_of(store::Connection& connection, std::string_view user_id);

std::span<const store::Statement> session_statements();

}  // namespace gitops::control_plane_server
