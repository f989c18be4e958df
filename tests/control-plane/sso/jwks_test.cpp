#include "control-plane/sso/jwks.hpp"

#include <gtest/gtest.h>

#include "control-plane/sso/test_signer.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using Json = nlohmann::json;

Result<JwkSet> parsed(const Json& keys) {
  return JwkSet::parse(Json{{"keys", keys}}.dump());
}

TEST(Jwks, ReadsEveryKindOfKey) {
  const auto set =
      parsed({rsa_signer().jwk("r"), TestSigner("EC").jwk("e"), TestSigner("ED25519").jwk("d")});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->size(), 3);
  EXPECT_NE(set->find("r", SignatureScheme::rsa_pkcs1_sha256), nullptr);
  EXPECT_NE(set->find("r", SignatureScheme::rsa_pss_sha256), nullptr);
  EXPECT_NE(set->find("e", SignatureScheme::ecdsa_p256_sha256), nullptr);
  EXPECT_NE(set->find("d", SignatureScheme::ed25519), nullptr);
}

TEST(Jwks, FindsAKeyOnlyForItsKind) {
  const auto set = parsed({rsa_signer().jwk("r"), TestSigner("EC").jwk("e")});
  ASSERT_TRUE(set);
  EXPECT_EQ(set->find("r", SignatureScheme::ecdsa_p256_sha256), nullptr);
  EXPECT_EQ(set->find("e", SignatureScheme::rsa_pkcs1_sha256), nullptr);
  EXPECT_EQ(set->find("x", SignatureScheme::rsa_pkcs1_sha256), nullptr);
}

TEST(Jwks, AKeyWithAnAlgorithmServesOnlyThatOne) {
  auto key = rsa_signer().jwk("r");
  key["alg"] = "PS256";
  const auto set = parsed(Json::array({key}));
  ASSERT_TRUE(set);
  EXPECT_NE(set->find("r", SignatureScheme::rsa_pss_sha256), nullptr);
  EXPECT_EQ(set->find("r", SignatureScheme::rsa_pkcs1_sha256), nullptr);
}

TEST(Jwks, WithoutAnIdThereMustBeOneKey) {
  const auto one = parsed({rsa_signer().jwk("a"), TestSigner("EC").jwk("b")});
  EXPECT_NE(one->find("", SignatureScheme::rsa_pkcs1_sha256), nullptr);
  const auto two = parsed({rsa_signer().jwk("a"), other_rsa_signer().jwk("b")});
  EXPECT_EQ(two->find("", SignatureScheme::rsa_pkcs1_sha256), nullptr);
  const auto same = parsed({rsa_signer().jwk("a"), other_rsa_signer().jwk("a")});
  EXPECT_EQ(same->find("a", SignatureScheme::rsa_pkcs1_sha256), nullptr);
}

TEST(Jwks, LeavesOutKeysThatItDoesNotAccept) {
  auto weak = TestSigner("RSA", 1'024).jwk("weak");
  auto encryption = rsa_signer().jwk("enc");
  encryption["use"] = "enc";
  auto wraps = rsa_signer().jwk("wraps");
  wraps["key_ops"] = {"wrapKey"};
  auto is_private = rsa_signer().jwk("private");
  is_private["d"] = "AQAB";
  auto off_curve = TestSigner("EC").jwk("off");
  off_curve["x"] = off_curve["y"];
  auto even = rsa_signer().jwk("even");
  even["e"] = "AQAC";
  auto hmac = rsa_signer().jwk("hmac");
  hmac["alg"] = "HS256";
  auto mixed = rsa_signer().jwk("mixed");
  mixed["alg"] = "ES256";
  const auto set = parsed({weak,
                           encryption,
                           wraps,
                           is_private,
                           off_curve,
                           even,
                           hmac,
                           mixed,
                           {{"kty", "oct"}, {"kid", "k"}, {"k", "c2VjcmV0"}},
                           {{"kty", "EC"}, {"crv", "P-384"}, {"x", "AA"}, {"y", "AA"}},
                           {{"kty", "OKP"}, {"crv", "Ed25519"}, {"x", "c2hvcnQ"}},
                           {{"kty", "RSA"}},
                           "text",
                           nullptr});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->size(), 0);
}

TEST(Jwks, RefusesWhatIsNoSet) {
  for (const auto* text :
       {"", "[]", "null", "{}", R"({"keys":{}})", R"({"keys":[])", R"({"keys":[],"keys":[]})"}) {
    const auto set = JwkSet::parse(text);
    ASSERT_FALSE(set) << text;
    EXPECT_EQ(set.error().code, ErrorCode::invalid_data);
  }
  EXPECT_FALSE(parsed(Json(101, Json::object())));
  EXPECT_TRUE(parsed(Json(100, Json::object())));
}

TEST(Jwks, AcceptsNoOtherAlgorithm) {
  for (const auto* name : {"RS256", "PS256", "ES256", "EdDSA"}) EXPECT_TRUE(scheme_of(name));
  for (const auto* name : {"", "none", "None", "HS256", "HS384", "HS512", "RS384", "ES384",
                           "ES256K", "rs256", "RS256 "}) {
    EXPECT_FALSE(scheme_of(name)) << name;
  }
}

}  // namespace
}  // namespace gitops::control_plane_server::sso
