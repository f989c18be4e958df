#include "app-proxy/integrations/token_seal.hpp"

#include <gmock/gmock.h>

namespace gitops::app_proxy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const TokenOwner kOwner{"user-1", "default", "account", "https://api.github.com"};

TokenSeal seal_with(std::string token) {
  TokenSeal seal;
  seal.use(Secret(std::move(token)), Secret("iv"));
  return seal;
}

TEST(TokenSeal, OpensWhatItSealed) {
  const auto seal = seal_with("runtime-token");
  const auto sealed = seal.seal(kOwner, Secret("ghp_canary"));
  ASSERT_TRUE(sealed);
  EXPECT_THAT(sealed->text, Not(HasSubstr("canary")));
  EXPECT_FALSE(sealed->key_id.empty());
  const auto opened = seal.open(kOwner, *sealed);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->reveal(), "ghp_canary");
  EXPECT_NE(seal.seal(kOwner, Secret("ghp_canary"))->nonce, sealed->nonce);
}

TEST(TokenSeal, NobodyElseCanUseIt) {
  const auto seal = seal_with("runtime-token");
  const auto sealed = *seal.seal(kOwner, Secret("t"));
  for (const auto& other :
       {TokenOwner{"user-2", "default", "account", "https://api.github.com"},
        TokenOwner{"user-1", "other", "account", "https://api.github.com"},
        TokenOwner{"user-1", "default", "another", "https://api.github.com"},
        TokenOwner{"user-1", "default", "account", "https://evil.example.test/api/v3"},
        TokenOwner{"user-1\n7:default", "", "account", "https://api.github.com"}}) {
    const auto opened = seal.open(other, sealed);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::invalid_data);
  }
}

TEST(TokenSeal, AChangedTextDoesNotOpen) {
  const auto seal = seal_with("runtime-token");
  const auto sealed = *seal.seal(kOwner, Secret("t"));
  for (std::size_t i = 0; i < sealed.text.size(); ++i) {
    auto changed = sealed;
    changed.text[i] = static_cast<char>(changed.text[i] ^ 1);
    EXPECT_FALSE(seal.open(kOwner, changed));
  }
  EXPECT_FALSE(seal.open(kOwner, {sealed.key_id, "short", sealed.text}));
  EXPECT_FALSE(seal.open(kOwner, {sealed.key_id, sealed.nonce, ""}));
}

TEST(TokenSeal, AfterAReinstallTheKeyIsAnother) {
  const auto sealed = *seal_with("runtime-token").seal(kOwner, Secret("t"));
  const auto opened = seal_with("new-runtime-token").open(kOwner, sealed);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("key that is not known"));
}

TEST(TokenSeal, AfterARotationOlderTokensStillOpen) {
  auto seal = seal_with("runtime-token");
  const auto old = *seal.seal(kOwner, Secret("t"));
  EXPECT_TRUE(seal.is_current(old));
  seal.use(Secret("rotated"), Secret("iv"));
  EXPECT_FALSE(seal.is_current(old));
  EXPECT_TRUE(seal.open(kOwner, old));
  EXPECT_TRUE(seal.is_current(*seal.seal(kOwner, Secret("t"))));
}

TEST(TokenSeal, WithoutARuntimeTokenNothingIsStored) {
  TokenSeal seal;
  seal.use(Secret(), Secret("iv"));
  EXPECT_FALSE(seal.has_key());
  EXPECT_EQ(seal.seal(kOwner, Secret("t")).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace gitops::app_proxy
