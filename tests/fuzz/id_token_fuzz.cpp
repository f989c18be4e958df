#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "control-plane/sso/id_token.hpp"
#include "control-plane/sso/jwks.hpp"

// What an identity provider, or whoever claims to be one, might send: as a token, as a key set, and as the header and the
// content of a token with a right signature. An accepted token names its user, its issuer and this login.
namespace {

using namespace gitops;
using namespace gitops::control_plane_server::sso;

constexpr std::string_view kGoodHeader = R"({"alg":"EdDSA"})";
constexpr std::string_view kGoodClaims =
    R"({"iss":"https://idp.example","aud":"gitops","sub":"u","exp":2000000000,"iat":1790000000,"nonce":"n"})";
const TokenRules kRules{
    .issuer = "https://idp.example", .client_id = "gitops", .nonce = "n", .groups_claim = "groups"};

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_plain(std::string_view text) {
  return !text.empty() && is_utf8(text) &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

void check_claims(const UncheckedToken& token, const Claims& claims) {
  require(token.claims.at("iss") == kRules.issuer && token.claims.at("nonce") == kRules.nonce);
  require(token.claims.at("sub") == claims.subject);
  require(is_plain(claims.subject) && claims.subject.size() <= 255);
  for (const auto* text : {&claims.email, &claims.name, &claims.user_name}) {
    require(text->empty() || is_plain(*text));
  }
  require(std::ranges::all_of(claims.groups, is_plain));
  require(!claims.is_email_verified || !claims.email.empty());
}

void check_signed(std::string_view header, std::string_view content) {
  static const Secret seed(std::string(kEd25519KeySize, '\1'));
  static const auto key = VerificationKey::ed25519(ed25519_public_key(seed));
  const auto text = base64url_encode(header) + "." + base64url_encode(content);
  const auto token = parse_id_token(text + "." + base64url_encode(ed25519_sign(seed, text)));
  if (!token) return;
  const auto claims =
      check_id_token(*token, *key, kRules, WallTime(std::chrono::seconds(1'790'000'000)));
  if (!claims) return;
  require(token->scheme == SignatureScheme::ed25519);
  check_claims(*token, *claims);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto token = parse_id_token(input)) {
    require(token->claims.is_object() && !token->signature.empty());
    require(input.starts_with(token->signed_text + "."));
  }
  if (const auto keys = JwkSet::parse(input)) {
    require(keys->size() <= 100);
    for (const auto scheme : {SignatureScheme::rsa_pkcs1_sha256, SignatureScheme::rsa_pss_sha256,
                              SignatureScheme::ecdsa_p256_sha256, SignatureScheme::ed25519}) {
      const auto* key = keys->find("", scheme);
      require(key == nullptr || !key->verifies(scheme, input, input));
    }
  }
  check_signed(input, kGoodClaims);
  check_signed(kGoodHeader, input);
  return 0;
}
