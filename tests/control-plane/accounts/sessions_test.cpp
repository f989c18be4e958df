#include "control-plane/accounts/sessions.hpp"

#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

using Kind = SentToken::Kind;

const std::vector<std::string> kOwn{"https://console.example"};

TEST(Sessions, TheCookieIsForThisHostAndNoScript) {
  const Secret token{std::string("secret")};
  EXPECT_EQ(session_cookie(CookieForm::secure, token),
            "__Host-session=secret; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure");
  EXPECT_EQ(session_cookie(CookieForm::plain, token),
            "session=secret; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax");
  EXPECT_TRUE(
      ended_session_cookie(CookieForm::secure).starts_with("__Host-session=; Path=/; Max-Age=0;"));
}

TEST(Sessions, ACookieIsFoundAmongOthers) {
  EXPECT_EQ(cookie_value("theme=dark; session=abc", "session"), "abc");
  EXPECT_EQ(cookie_value("session=abc;theme=dark", "session"), "abc");
  EXPECT_EQ(cookie_value(" session = \"abc\" ", "session"), "abc");
  EXPECT_EQ(cookie_value("session=", "session"), "");
  EXPECT_EQ(cookie_value("xsession=abc; Session=abc; session", "session"), std::nullopt);
  EXPECT_EQ(cookie_value("session=abc; session=abc", "session"), "abc");
  // The second cookie may come from a page of a sibling host.
  EXPECT_EQ(cookie_value("session=abc; session=def", "session"), std::nullopt);
}

TEST(Sessions, ASessionEndsWhenItIsIdleAndAfterAWeek) {
  const Session session{.hash = {},
                        .user_id = "u",
                        .created_at = 1'000,
                        .seen_at = 1'000,
                        .expires_at = 1'000 + kSessionMax};
  EXPECT_TRUE(is_alive(session, 1'000 + kSessionIdle - 1));
  EXPECT_FALSE(is_alive(session, 1'000 + kSessionIdle));
  auto busy = session;
  busy.seen_at = 1'000 + kSessionMax - 1;
  EXPECT_TRUE(is_alive(busy, 1'000 + kSessionMax - 1));
  EXPECT_FALSE(is_alive(busy, 1'000 + kSessionMax));
}

TEST(Sessions, EachFormOfACredentialIsTaken) {
  const auto token = [](const http::Headers& headers) {
    const auto sent = sent_token(headers, CookieForm::plain);
    return std::pair(sent.kind, std::string(sent.token.reveal()));
  };
  EXPECT_EQ(token({{"Authorization", "a.b"}}), std::pair(Kind::header, std::string("a.b")));
  EXPECT_EQ(token({{"authorization", "Bearer a.b"}}), std::pair(Kind::header, std::string("a.b")));
  EXPECT_EQ(token({{"Authorization", "bearer  a.b "}}),
            std::pair(Kind::header, std::string("a.b")));
  EXPECT_EQ(token({{"X-Access-Token", "a.b"}}), std::pair(Kind::header, std::string("a.b")));
  EXPECT_EQ(token({{"Cookie", "theme=dark; session=a.b"}}),
            std::pair(Kind::cookie, std::string("a.b")));
  EXPECT_EQ(token({{"x-access-token", "x"}, {"Authorization", "a.b"}, {"Cookie", "session=c"}}),
            std::pair(Kind::header, std::string("a.b")));
  EXPECT_EQ(token({}).first, Kind::none);
  EXPECT_EQ(token({{"Cookie", "theme=dark"}}).first, Kind::none);
  EXPECT_EQ(sent_token({{"Cookie", "session=a.b"}}, CookieForm::secure).kind, Kind::none);
}

TEST(Sessions, AC_33_MalformedCredentialsAreNoCredentials) {
  for (const auto& headers :
       std::vector<http::Headers>{{{"Authorization", ""}},
                                  {{"Authorization", "Bearer"}},
                                  {{"Authorization", "Bearer "}},
                                  {{"Authorization", "Basic YTpi"}},
                                  {{"Authorization", "a.b"}, {"Authorization", "c.d"}},
                                  {{"x-access-token", "a b"}},
                                  {{"x-access-token", std::string(9'000, 'a')}},
                                  {{"Cookie", "session="}},
                                  {{"Cookie", "session=a"}, {"Cookie", "session=b"}}}) {
    EXPECT_EQ(sent_token(headers, CookieForm::plain).kind, Kind::malformed)
        << headers.begin()->second;
  }
}

TEST(Sessions, AC_32_RequestsOfOtherSitesPagesAreTold) {
  const auto foreign = [](const http::Headers& headers) {
    return is_from_other_site(headers, kOwn);
  };
  EXPECT_FALSE(foreign({{"Host", "cp.example"}}));
  EXPECT_FALSE(foreign({{"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_FALSE(foreign({{"Sec-Fetch-Site", "none"}}));
  EXPECT_TRUE(foreign({{"Sec-Fetch-Site", "same-site"}}));
  EXPECT_TRUE(foreign({{"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_TRUE(foreign({{"Sec-Fetch-Site", "something new"}}));
  EXPECT_FALSE(foreign({{"Host", "cp.example:8080"}, {"Origin", "http://cp.example:8080"}}));
  EXPECT_TRUE(foreign({{"Host", "cp.example:8080"}, {"Origin", "http://cp.example"}}));
  EXPECT_TRUE(foreign({{"Host", "cp.example"}, {"Origin", "https://cp.example.evil.example"}}));
  EXPECT_TRUE(foreign({{"Host", "cp.example"}, {"Origin", "null"}}));
  EXPECT_TRUE(foreign({{"Origin", "https://cp.example"}}));
  EXPECT_FALSE(foreign({{"Sec-Fetch-Site", "same-site"}, {"Origin", "https://console.example"}}));
}

TEST(Sessions, TheIdOfASessionIsNotItsToken) {
  const Secret token{std::string(43, 'a')};
  const auto hash = session_hash(token);
  EXPECT_EQ(hash.size(), 32U);
  EXPECT_TRUE(session_id(hash).starts_with("session-"));
  EXPECT_EQ(session_id(hash).size(), 8U + 24);
}

}  // namespace
}  // namespace gitops::control_plane_server
