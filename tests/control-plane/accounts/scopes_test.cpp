#include "control-plane/accounts/scopes.hpp"

#include <gmock/gmock.h>

namespace gitops::control_plane_server {
namespace {

using testing::HasSubstr;

Caller caller_with(std::vector<std::string> scopes) {
  Caller caller;
  caller.user_id = "u";
  caller.scopes = std::move(scopes);
  return caller;
}

TEST(Scopes, AKeyWithoutScopesDoesAllThatItsUserMay) {
  EXPECT_FALSE(scope_refusal(caller_with({}), Scopes{kScopeWrite}));
  EXPECT_FALSE(key_change_refusal(caller_with({})));
}

TEST(Scopes, OneOfTheScopesIsEnough) {
  const Scopes either{kScopeImages, kScopeWrite};
  EXPECT_FALSE(scope_refusal(caller_with({"images"}), either));
  EXPECT_FALSE(scope_refusal(caller_with({"read", "write"}), either));
  EXPECT_FALSE(scope_refusal(caller_with({"anything"}), {}));
}

TEST(Scopes, TheErrorNamesWhatIsMissing) {
  const auto refused =
      scope_refusal(caller_with({"read", "pipeline"}), Scopes{kScopeImages, kScopeWrite});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->http_status, 403);
  EXPECT_EQ(refused->message, "the API key lacks the scope images or write; it has read, pipeline");
}

TEST(Scopes, AKeyWithScopesManagesNoKeys) {
  for (const auto scope : kScopes) {
    const auto refused = key_change_refusal(caller_with({std::string(scope)}));
    ASSERT_TRUE(refused) << scope;
    EXPECT_EQ(refused->http_status, 403);
  }
}

TEST(Scopes, AnUnknownScopeIsAMistake) {
  EXPECT_EQ(scopes_mistake({}), "");
  EXPECT_EQ(scopes_mistake({"read", "app-proxy"}), "");
  // Terraform's.
  EXPECT_EQ(scopes_mistake({"agent", "environments-v2", "pipeline", "pipeline:run"}), "");
  EXPECT_THAT(scopes_mistake({"read", "wirte"}),
              testing::AllOf(HasSubstr("there is no scope wirte; there are read, write"),
                             HasSubstr("app-proxy"), HasSubstr("pipeline")));
  for (const char* scope : {"", "Read", "read ", ":run", "read:run", "pipelines"}) {
    EXPECT_NE(scopes_mistake({scope}), "") << scope;
  }
}

}  // namespace
}  // namespace gitops::control_plane_server
