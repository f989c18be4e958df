#include "app-proxy/users/credential.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

using Kind = RequestCredential::Kind;

RequestCredential of(http::Headers headers) {
  return credential_of(headers);
}

void expect(const RequestCredential& credential, Kind kind, std::string_view header,
            std::string_view value) {
  EXPECT_EQ(credential.kind, kind);
  EXPECT_EQ(credential.sent.header, header);
  EXPECT_EQ(credential.sent.value.reveal(), value);
}

TEST(Credential, EachFormKeepsItsHeader) {
  expect(of({{"Authorization", "abc.def"}}), Kind::token, "Authorization", "abc.def");
  expect(of({{"AUTHORIZATION", "Bearer abc.def"}}), Kind::token, "Authorization", "abc.def");
  expect(of({{"authorization", "bearer   abc.def "}}), Kind::token, "Authorization", "abc.def");
  expect(of({{"x-access-token", "ey.J.x"}}), Kind::token, "x-access-token", "ey.J.x");
  expect(of({{"Cookie", "a=b; session=x"}}), Kind::cookie, "Cookie", "a=b; session=x");
  EXPECT_EQ(of({}).kind, Kind::none);
}

TEST(Credential, AuthorizationCountsFirst) {
  expect(of({{"Cookie", "a=b"}, {"x-access-token", "t"}, {"Authorization", "k"}}), Kind::token,
         "Authorization", "k");
  expect(of({{"Cookie", "a=b"}, {"x-access-token", "t"}}), Kind::token, "x-access-token", "t");
  // Also when it is worth nothing: nobody is let in by a cookie who sent something else.
  EXPECT_EQ(of({{"Cookie", "a=b"}, {"Authorization", ""}}).kind, Kind::malformed);
}

TEST(Credential, MalformedOnesAreNotShownToAnybody) {
  for (const std::string& value : {std::string(), std::string("Bearer"), std::string("Bearer "),
                                   std::string("a b"), std::string("a\tb"), std::string("\x7f"),
                                   std::string("caf\xc3\xa9"), std::string(9000, 'a')}) {
    const auto credential = of({{"Authorization", value}});
    EXPECT_EQ(credential.kind, Kind::malformed) << value.substr(0, 40);
  }
  EXPECT_EQ(of({{"Authorization", "a"}, {"authorization", "a"}}).kind, Kind::malformed);
  EXPECT_EQ(of({{"Cookie", "a=1"}, {"Cookie", "b=2"}}).kind, Kind::malformed);
}

TEST(Credential, IsReadFromThePayloadOfAWebSocket) {
  expect(credential_of_payload(R"({"Authorization":"k"})"), Kind::token, "Authorization", "k");
  expect(credential_of_payload(R"({"authorization":"Bearer k","x":1})"), Kind::token,
         "Authorization", "k");
  expect(credential_of_payload(R"({"headers":{"X-Access-Token":"t"}})"), Kind::token,
         "x-access-token", "t");
  for (const char* none : {"", "{}", "[]", "null", "nonsense", R"({"Cookie":"a=b"})",
                           R"({"Authorization":7})", R"({"headers":"x"})"}) {
    EXPECT_EQ(credential_of_payload(none).kind, Kind::none) << none;
  }
  EXPECT_EQ(credential_of_payload(R"({"Authorization":"a","headers":{"authorization":"b"}})").kind,
            Kind::malformed);
}

TEST(CredentialHash, TellsCredentialsAndHeadersApart) {
  const CredentialHash hash;
  const auto sum = [&hash](const char* header, const char* value) {
    return hash.of({.header = header, .value = Secret(value)});
  };
  EXPECT_EQ(sum("Authorization", "a"), sum("Authorization", "a"));
  EXPECT_NE(sum("Authorization", "a"), sum("Authorization", "b"));
  EXPECT_NE(sum("Authorization", "a"), sum("Cookie", "a"));
  EXPECT_NE(sum("Authorization", "a"), CredentialHash().of({"Authorization", Secret("a")}));
}

}  // namespace
}  // namespace gitops::app_proxy
