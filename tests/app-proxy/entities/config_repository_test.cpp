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

TEST(ConfigRepository, LabelsAreThoseOfKubernetes) {
  for (const std::string key : {"a", "Team-1", "a.b_c", "example.com/team", "a-b.c/X"}) {
    EXPECT_TRUE(is_label_key(key)) << key;
  }
  for (const std::string key : {"", "a b", "-a", "a-", "/a", "a/", "a/b/c", "A.com/a", ".a/b"}) {
    EXPECT_FALSE(is_label_key(key)) << key;
  }
  for (const std::string value : {"", "a", "7", "Platform_Team", "v1.2"}) {
    EXPECT_TRUE(is_label_value(value)) << value;
  }
  for (const std::string value : {"Platform Team", "a/b", "a:b", "-a", "a.", "\xc3\xa4"}) {
    EXPECT_FALSE(is_label_value(value)) << value;
  }
  EXPECT_TRUE(is_label_value(std::string(63, 'a')));
  EXPECT_FALSE(is_label_value(std::string(64, 'a')));
  EXPECT_TRUE(is_label_key(std::string(253, 'a') + "/" + std::string(63, 'b')));
  EXPECT_FALSE(is_label_key(std::string(254, 'a') + "/b"));
}

}  // namespace
}  // namespace gitops::app_proxy
