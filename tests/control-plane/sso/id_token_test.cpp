#include "control-plane/sso/id_token.hpp"

#include <gmock/gmock.h>

#include "common/core/crypto.hpp"
#include "control-plane/sso/test_signer.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kAt = 1'790'000'000;
const TokenRules kRules{.issuer = "https://idp.example/realm",
                        .client_id = "gitops",
                        .nonce = "n-1",
                        .groups_claim = "groups"};

WallTime at(std::int64_t seconds) {
  return WallTime(std::chrono::seconds(seconds));
}

Json good_claims() {
  return {{"iss", kRules.issuer}, {"aud", "gitops"}, {"sub", "u-1"}, {"exp", kAt + 300},
          {"iat", kAt},           {"nonce", "n-1"},  {"name", "Ann"}};
}

Result<Claims> checked_text(const std::string& text, const TestSigner& signer = rsa_signer(),
                            std::int64_t now = kAt) {
  const auto token = parse_id_token(text);
  if (!token) return std::unexpected(token.error());
  const auto keys = JwkSet::parse(Json{{"keys", {signer.jwk("k")}}}.dump());
  const auto* key = keys->find(token->key_id, token->scheme);
  if (key == nullptr) return fail(ErrorCode::not_found, "no key");
  return check_id_token(*token, *key, kRules, at(now));
}

Result<Claims> checked(const Json& claims, std::int64_t now = kAt) {
  return checked_text(rsa_signer().token({{"alg", "RS256"}, {"kid", "k"}}, claims), rsa_signer(),
                      now);
}

// Checks the good claims with one changed; null removes it.
Result<Claims> changed(const char* name, const Json& value) {
  auto claims = good_claims();
  claims[name] = value;
  if (value.is_null()) claims.erase(name);
  return checked(claims);
}

void expect_refused(const Result<Claims>& claims, const char* why) {
  ASSERT_FALSE(claims) << why;
  EXPECT_EQ(claims.error().code, ErrorCode::unauthenticated) << claims.error().message;
  EXPECT_THAT(claims.error().message, HasSubstr(why));
}

TEST(IdToken, TellsWhoTheUserIs) {
  auto json = good_claims();
  json.update({{"email", "ann@acme.example"},
               {"email_verified", true},
               {"preferred_username", "ann"},
               {"groups", {"dev", "ops=eu"}}});
  const auto claims = checked(json);
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(claims->subject, "u-1");
  EXPECT_EQ(claims->email, "ann@acme.example");
  EXPECT_TRUE(claims->is_email_verified);
  EXPECT_EQ(claims->name, "Ann");
  EXPECT_EQ(claims->user_name, "ann");
  EXPECT_THAT(claims->groups, ElementsAre("dev", "ops=eu"));
  EXPECT_FALSE(claims->has_groups_elsewhere);
}

TEST(IdToken, AcceptsEachAlgorithmWithItsKey) {
  const TestSigner ec("EC");
  const TestSigner edwards("ED25519");
  for (const auto& [name, signer] :
       {std::pair("RS256", &rsa_signer()), std::pair("PS256", &rsa_signer()),
        std::pair("ES256", &ec), std::pair("EdDSA", &edwards)}) {
    const auto claims =
        checked_text(signer->token({{"alg", name}, {"kid", "k"}}, good_claims()), *signer);
    EXPECT_TRUE(claims) << name << ": " << claims.error().message;
    EXPECT_TRUE(
        checked_text(signer->token({{"alg", name}, {"typ", "JWT"}}, good_claims()), *signer))
        << name;
  }
}

TEST(IdToken, RefusesOtherSignatures) {
  const Json header{{"alg", "RS256"}, {"kid", "k"}};
  const auto good = rsa_signer().token(header, good_claims());
  expect_refused(checked_text(other_rsa_signer().token(header, good_claims())), "signature");
  auto other_claims = good_claims();
  other_claims["sub"] = "admin";
  const auto forged = rsa_signer().token(header, other_claims);
  expect_refused(checked_text(forged.substr(0, forged.rfind('.')) + good.substr(good.rfind('.'))),
                 "signature");
  // PKCS #1 where PSS was announced, and the other way round.
  const auto text =
      base64url_encode(R"({"alg":"PS256"})") + "." + base64url_encode(good_claims().dump());
  expect_refused(checked_text(text + "." + base64url_encode(rsa_signer().sign(text))), "signature");
  expect_refused(checked_text(rsa_signer().token_of(header.dump(), good_claims().dump(), true)),
                 "signature");
}

TEST(IdToken, RefusesKeyConfusion) {
  const auto body = base64url_encode(good_claims().dump());
  for (const auto* name : {"none", "None", "HS256", "HS512", "RS512", ""}) {
    const auto text = base64url_encode(Json{{"alg", name}, {"kid", "k"}}.dump()) + "." + body;
    // HMAC with the public key as the secret.
    const auto code = hmac_sha256(rsa_signer().jwk("k").dump(), text);
    const auto token = parse_id_token(text + "." + base64url_encode(bytes_of(code)));
    ASSERT_FALSE(token) << name;
    EXPECT_EQ(token.error().code, ErrorCode::unsupported);
  }
  const auto unsigned_text = base64url_encode(R"({"alg":"RS256"})") + "." + body + ".";
  EXPECT_FALSE(parse_id_token(unsigned_text));
  // A key that the token brings along is never used.
  const Json header{{"alg", "RS256"}, {"kid", "k"}, {"jwk", other_rsa_signer().jwk("k")}};
  expect_refused(checked_text(other_rsa_signer().token(header, good_claims())), "signature");
  // An EC key does not serve an RSA algorithm.
  const TestSigner ec("EC");
  const auto mixed = checked_text(ec.token({{"alg", "RS256"}, {"kid", "k"}}, good_claims()), ec);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::not_found);
}

TEST(IdToken, RefusesWhatIsMalformed) {
  const Json header{{"alg", "RS256"}, {"kid", "k"}};
  const auto good = rsa_signer().token(header, good_claims());
  ASSERT_TRUE(parse_id_token(good));
  for (std::size_t size = 0; size < good.size(); size += 7) {
    EXPECT_FALSE(checked_text(good.substr(0, size))) << size;
  }
  for (const auto& text :
       {good + ".", good + ".a", "." + good, " " + good, good + "=", good + "\n", std::string(".."),
        std::string("a.b.c"), std::string(kMaxIdToken + 1, 'a')}) {
    const auto token = parse_id_token(text);
    ASSERT_FALSE(token) << text.substr(0, 20);
    EXPECT_EQ(token.error().code, ErrorCode::invalid_data);
  }
}

TEST(IdToken, RefusesNamesThatStandTwice) {
  const auto claims = good_claims().dump();
  const auto twice = claims.substr(0, claims.size() - 1) + R"(,"sub":"admin"})";
  EXPECT_FALSE(parse_id_token(rsa_signer().token_of(R"({"alg":"RS256"})", twice)));
  EXPECT_FALSE(parse_id_token(rsa_signer().token_of(R"({"alg":"RS256","alg":"RS256"})", claims)));
  // The same name, written in two ways.
  EXPECT_FALSE(
      parse_id_token(rsa_signer().token_of(R"({"alg":"RS256"})", R"({"sub":"a","su\u0062":"b"})")));
  // Other objects may have it, too.
  EXPECT_TRUE(parse_id_token(
      rsa_signer().token_of(R"({"alg":"RS256"})", R"({"sub":"a","x":{"sub":"b"}})")));
}

TEST(IdToken, RefusesHeadersOfOtherTokens) {
  for (const Json& more : {Json{{"crit", {"b64"}}}, Json{{"typ", "at+jwt"}},
                           Json{{"typ", "logout+jwt"}}, Json{{"kid", 7}}, Json{{"kid", ""}}}) {
    Json header{{"alg", "RS256"}};
    header.update(more);
    EXPECT_FALSE(parse_id_token(rsa_signer().token(header, good_claims()))) << header;
  }
  const auto nested =
      "{\"alg\":\"RS256\",\"x\":" + std::string(40, '[') + std::string(40, ']') + "}";
  EXPECT_FALSE(parse_id_token(rsa_signer().token_of(nested, good_claims().dump())));
}

TEST(IdToken, RefusesOtherIssuersAndAudiences) {
  for (const Json& value : {Json(), Json(""), Json("https://idp.example/realm/"),
                            Json("https://IDP.example/realm"), Json(7)}) {
    expect_refused(changed("iss", value), "issuer");
  }
  for (const Json& value : {Json(), Json(""), Json("other"), Json("gitops2"), Json::array(),
                            Json{"other"}, Json{{"gitops", 1}}}) {
    expect_refused(changed("aud", value), "another client");
  }
  EXPECT_TRUE(changed("aud", Json::array({"gitops"})));
  expect_refused(changed("aud", Json::array({"gitops", "other"})), "another client");
  for (const Json& value : {Json("other"), Json(""), Json(7)}) {
    expect_refused(changed("azp", value), "another client");
  }
  auto claims = good_claims();
  claims.update({{"aud", {"gitops", "other"}}, {"azp", "gitops"}});
  EXPECT_TRUE(checked(claims));
  claims["azp"] = "other";
  expect_refused(checked(claims), "another client");
}

TEST(IdToken, ChecksTimesWithAMinuteOfSkew) {
  EXPECT_TRUE(checked(good_claims(), kAt + 300 + 59));
  expect_refused(checked(good_claims(), kAt + 300 + 60), "expired");
  EXPECT_TRUE(checked(good_claims(), kAt - 60));
  expect_refused(checked(good_claims(), kAt - 61), "future");
  EXPECT_TRUE(changed("nbf", kAt + 60));
  expect_refused(changed("nbf", kAt + 61), "not valid yet");
  expect_refused(changed("nbf", "soon"), "not valid yet");
  EXPECT_TRUE(changed("exp", static_cast<double>(kAt) + 300.5));
  for (const Json& value : {Json(), Json("never"), Json(-1), Json(1e300), Json(true)}) {
    expect_refused(changed("exp", value), "time");
    expect_refused(changed("iat", value), "time");
  }
}

TEST(IdToken, IsOfThisLogin) {
  for (const Json& value : {Json(), Json(""), Json("n-2"), Json("n-1 "), Json(1)}) {
    expect_refused(changed("nonce", value), "login");
  }
}

TEST(IdToken, RefusesEmptyClaims) {
  for (const Json& value : {Json(), Json(""), Json(" "), Json(" u-1"), Json(7), Json("a\nb"),
                            Json(std::string("a\0b", 3)), Json(std::string(256, 'a'))}) {
    expect_refused(changed("sub", value), "names no user");
  }
  for (const auto* name : {"email", "name", "preferred_username"}) {
    EXPECT_TRUE(changed(name, Json())) << name;
    for (const Json& value : {Json(""), Json("  "), Json(7), Json::array({"a"}), Json("a\nb"),
                              Json(std::string(513, 'a'))}) {
      expect_refused(changed(name, value), name);
    }
  }
  for (const Json& value :
       {Json(""), Json::array({""}), Json::array({"a", " "}), Json(7), Json::array({7}),
        Json{{"a", 1}}, Json(std::vector<std::string>(2'001, "g"))}) {
    expect_refused(changed("groups", value), "group");
  }
}

TEST(IdToken, ReadsGroupsInEachForm) {
  EXPECT_THAT(changed("groups", "dev")->groups, ElementsAre("dev"));
  EXPECT_THAT(changed("groups", Json::array())->groups, ElementsAre());
  EXPECT_THAT(changed("groups", Json())->groups, ElementsAre());
  EXPECT_TRUE(changed("_claim_names", {{"groups", "src1"}})->has_groups_elsewhere);
  EXPECT_TRUE(changed("hasgroups", true)->has_groups_elsewhere);
}

TEST(IdToken, BelievesOnlyVerifiedMail) {
  const auto is_verified = [](const Json& value) {
    auto claims = good_claims();
    claims.update({{"email", "ann@acme.example"}, {"email_verified", value}});
    return checked(claims)->is_email_verified;
  };
  EXPECT_TRUE(is_verified(true));
  EXPECT_TRUE(is_verified("true"));
  for (const Json& value : {Json(false), Json("false"), Json(), Json(1), Json("yes")}) {
    EXPECT_FALSE(is_verified(value));
  }
  EXPECT_FALSE(changed("email_verified", true)->is_email_verified);
}

}  // namespace
}  // namespace gitops::control_plane_server::sso
