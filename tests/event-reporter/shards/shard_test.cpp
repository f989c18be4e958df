#include "event-reporter/shards/shard.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "common/core/encoding.hpp"

namespace gitops::reporter {
namespace {

struct Vector {
  std::string_view name;
  std::uint32_t hash;
  std::uint32_t of_three;
  std::uint32_t of_five;
  std::uint32_t of_seven;
};

// The published vectors of the documented shard function.
constexpr Vector kVectors[] = {
    {"app-0", 0xe1204e99, 2, 3, 5},
    {"app-1", 0xe0204d06, 0, 4, 0},
    {"app-2", 0xdf204b73, 1, 0, 2},
    {"app-3", 0xde2049e0, 2, 1, 4},
    {"app-4", 0xe52054e5, 1, 4, 4},
    {"app-5", 0xe4205352, 2, 0, 6},
    {"app-6", 0xe32051bf, 0, 1, 1},
    {"app-7", 0xe220502c, 1, 2, 3},
    {"app-8", 0xe9205b31, 0, 0, 3},
    {"app-9", 0xe820599e, 1, 1, 5},
    {"app-10", 0x08d98c02, 1, 2, 3},
    {"app-11", 0x09d98d95, 0, 1, 1},
    {"app-12", 0x06d988dc, 0, 4, 0},
    {"app-13", 0x07d98a6f, 2, 3, 5},
    {"app-14", 0x04d985b6, 2, 1, 4},
    {"app-15", 0x05d98749, 1, 0, 2},
    {"app-16", 0x02d98290, 1, 3, 1},
    {"app-17", 0x03d98423, 0, 2, 6},
    {"app-18", 0x10d9989a, 2, 4, 1},
    {"app-19", 0x11d99a2d, 1, 3, 6},
    {"in-cluster", 0xae0bd6c9, 0, 0, 0},
    {"cf-gitops-runtime", 0x80a051d6, 1, 3, 6},
    {"default-git-source", 0x2ceb3a63, 1, 1, 5},
    {"guestbook", 0x5727742e, 0, 3, 3},
    {"payments-prod", 0x488d2df0, 0, 3, 4},
    {"payments-staging", 0xb712ef7a, 1, 2, 2},
    {"a", 0xe40c292c, 1, 0, 5},
    {"app_0", 0xee3b03bb, 1, 2, 2},
    {"приложение", 0x0e25618f, 0, 1, 3},
};

TEST(Shard, OwnersMatchThePublishedVectors) {
  for (const auto& vector : kVectors) {
    EXPECT_EQ(fnv1a_32(vector.name), vector.hash) << vector.name;
    EXPECT_EQ(shard_of(vector.name, 1), 0U) << vector.name;
    EXPECT_EQ(shard_of(vector.name, 3), vector.of_three) << vector.name;
    EXPECT_EQ(shard_of(vector.name, 5), vector.of_five) << vector.name;
    EXPECT_EQ(shard_of(vector.name, 7), vector.of_seven) << vector.name;
  }
  EXPECT_EQ(shard_of("", 3), 0U);
}

TEST(Shard, SpreadsAThousandNamesAsPublished) {
  std::vector<int> of_three(3);
  std::vector<int> of_seven(7);
  for (int i = 0; i < 1000; ++i) {
    const auto name = "app-" + std::to_string(i);
    ++of_three[shard_of(name, 3)];
    ++of_seven[shard_of(name, 7)];
  }
  EXPECT_EQ(of_three, (std::vector<int>{326, 333, 341}));
  EXPECT_EQ(of_seven, (std::vector<int>{151, 139, 147, 142, 142, 141, 138}));
}

TEST(Shard, OneReplicaOwnsEverything) {
  for (const std::int64_t replicas : {0, 1}) {
    const auto shard = own_shard(replicas, -1, "no ordinal here");
    ASSERT_TRUE(shard);
    EXPECT_TRUE(shard->owns("app-0"));
    EXPECT_TRUE(shard->owns("app-1"));
  }
}

TEST(Shard, OrdinalComesFromTheHostName) {
  const auto shard = own_shard(3, -1, "event-reporter-2");
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->ordinal, 2U);
  EXPECT_TRUE(shard->owns("app-0"));
  EXPECT_FALSE(shard->owns("app-1"));
}

TEST(Shard, ConfiguredOrdinalWinsOverTheHostName) {
  const auto shard = own_shard(3, 1, "event-reporter-2");
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->ordinal, 1U);
}

TEST(Shard, AnOrdinalThatCannotBeKnownIsAMistakeNotSilence) {
  for (const auto* host : {"laptop", "event-reporter-", "event-reporter-2x", "", "a--1-x"}) {
    const auto shard = own_shard(3, -1, host);
    ASSERT_FALSE(shard) << host;
    EXPECT_NE(shard.error().message.find("EVENT_REPORTER_SHARD"), std::string::npos);
  }
  EXPECT_FALSE(own_shard(3, 3, "event-reporter-0"));
  EXPECT_FALSE(own_shard(3, -1, "event-reporter-3"));
}

}  // namespace
}  // namespace gitops::reporter
