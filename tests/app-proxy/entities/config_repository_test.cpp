#include "app-proxy/entities/config_repository.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

TEST(ConfigRepository, TellsThatTheRuntimeWasRemoved) {
  const RuntimeFiles files{.runtime = "prod", .config_repository = [] {
                             return std::string("https://git.example.test/acme/config.git");
                           }};
  const RuntimeFiles copy = files;
  EXPECT_FALSE(copy.repository()->is_removed);
  *files.is_removed = true;
  EXPECT_TRUE(copy.repository()->is_removed);
  EXPECT_FALSE(copy.repository()->is_being_removed);
  ++*files.removals;
  EXPECT_TRUE(copy.repository()->is_being_removed);
}

TEST(ConfigRepository, SaysHowAnAccountGetsOne) {
  const RuntimeFiles files{};
  const auto repository = files.repository();
  ASSERT_FALSE(repository);
  EXPECT_TRUE(repository.error().message.contains("updateCsdpSettings"));
}

TEST(ConfigRepository, NamesAreDnsLabels) {
  EXPECT_TRUE(check_entity_name("shop-2"));
  for (const std::string name :
       {"", "Shop", "a/b", "../x", "-a", "a-", "a.b", "in-cluster", "a b"}) {
    EXPECT_FALSE(check_entity_name(name)) << name;
  }
  EXPECT_FALSE(check_entity_name(std::string(64, 'a')));
}

}  // namespace
}  // namespace gitops::app_proxy
