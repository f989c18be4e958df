#include "control-plane/accounts/tokens.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "control-plane/accounts/api_keys.hpp"

namespace gitops::control_plane_server {
namespace {

const std::string kId = "0123456789abcdef01234567";

TEST(Tokens, ATokenHas43CharactersOfBase64Url) {
  const Secret token = token_text(std::string(32, '\xff'));
  EXPECT_EQ(token.reveal(), std::string(42, '_') + "8");
  EXPECT_TRUE(is_token_text(token.reveal()));
  EXPECT_FALSE(is_token_text(std::string(42, 'a')));
  EXPECT_FALSE(is_token_text(std::string(42, 'a') + "+"));
  EXPECT_FALSE(is_token_text(std::string(42, 'a') + "="));
}

TEST(Tokens, AnIdHas24LowerCaseHexDigits) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const auto id = new_id();
    EXPECT_TRUE(is_id(id)) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_FALSE(is_id("0123456789ABCDEF01234567"));
  EXPECT_FALSE(is_id("0123456789abcdef0123456"));
}

TEST(ApiKeys, AKeyIsReadAsItWasMade) {
  const auto issued = make_key(kId, std::string(32, '\x01'));
  const auto text = std::string(issued.text.reveal());
  EXPECT_TRUE(text.starts_with(kId + "."));
  EXPECT_EQ(text.size(), 24U + 1 + 43);
  EXPECT_EQ(issued.key.prefix, text.substr(25, 6));
  EXPECT_EQ(issued.key.hash.size(), 32U);
  const auto parsed = parse_api_key(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, kId);
  EXPECT_TRUE(is_valid_key(&issued.key, parsed->secret, 1));
}

TEST(ApiKeys, OtherFormsAreNoKeys) {
  const auto issued = make_key(kId, std::string(32, '\x01'));
  const auto text = std::string(issued.text.reveal());
  for (const auto& other :
       {std::string(), std::string("nobody.0000"), text + "a", text.substr(1), text + "\n",
        "X" + text.substr(1), kId + ":" + text.substr(25), kId + "." + std::string(43, '/')}) {
    EXPECT_FALSE(parse_api_key(other)) << other;
  }
}

TEST(ApiKeys, AC_33_AWrongSecretAnExpiredKeyAndAnUnknownOneAreRefused) {
  auto issued = make_key(kId, std::string(32, '\x01'));
  const auto right = parse_api_key(issued.text.reveal())->secret;
  const auto wrong = token_text(std::string(32, '\x02'));
  EXPECT_TRUE(is_valid_key(&issued.key, right, 100));
  EXPECT_FALSE(is_valid_key(&issued.key, wrong, 100));
  EXPECT_FALSE(is_valid_key(nullptr, right, 100));
  issued.key.expires_at = 101;
  EXPECT_TRUE(is_valid_key(&issued.key, right, 100));
  EXPECT_FALSE(is_valid_key(&issued.key, right, 101));
}

}  // namespace
}  // namespace gitops::control_plane_server
