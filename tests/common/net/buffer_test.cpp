#include "common/net/buffer.hpp"

#include <string>

#include <gmock/gmock.h>

namespace gitops::net {
namespace {

TEST(Buffer, TakesItsBlockOnlyWhenItIsNeeded) {
  BlockPool pool;
  Buffer buffer(pool);
  EXPECT_TRUE(buffer.empty());
  auto room = buffer.room();
  EXPECT_EQ(room.size(), BlockPool::kLarge);
  room[0] = 'a';
  room[1] = 'b';
  buffer.commit(2);
  buffer.consume(1);
  buffer.release();  // not empty: stays
  EXPECT_EQ(buffer.bytes(), "b");
  buffer.compact();
  EXPECT_EQ(buffer.bytes(), "b");
  EXPECT_EQ(buffer.room().size(), BlockPool::kLarge - 1);
  Buffer other(pool);
  other.swap(buffer);
  EXPECT_EQ(other.bytes(), "b");
  other.consume(1);
  other.release();
  EXPECT_EQ(other.room().size(), BlockPool::kLarge);
}

TEST(Buffer, ABlockForResponsesHasRoomForABodyOf64KiBWithItsHead) {
  BlockPool pool;
  const char* first = nullptr;
  for (int use = 0; use < 2; ++use) {
    Buffer buffer(pool, BlockPool::kResponse);
    EXPECT_GE(buffer.room().size(), 64 * 1024 + BlockPool::kSmall);
    if (first == nullptr) first = buffer.room().data();
    EXPECT_EQ(buffer.room().data(), first) << "the block is used again";
    buffer.commit(buffer.room().size());
    EXPECT_FALSE(buffer.grow());
    Buffer large(pool);
    EXPECT_EQ(large.room().size(), BlockPool::kLarge);
  }
}

TEST(Buffer, GrowsOnceWhenASmallBlockIsFull) {
  BlockPool pool;
  Buffer buffer(pool, BlockPool::kSmall);
  buffer.room()[0] = 'a';
  buffer.room()[1] = 'b';
  buffer.commit(BlockPool::kSmall - 1);
  EXPECT_FALSE(buffer.grow());
  buffer.commit(1);
  buffer.consume(1);
  EXPECT_TRUE(buffer.room().empty());
  EXPECT_TRUE(buffer.grow());
  EXPECT_EQ(buffer.bytes().size(), BlockPool::kSmall - 1);
  EXPECT_EQ(buffer.bytes().front(), 'b');
  EXPECT_EQ(buffer.room().size(), BlockPool::kLarge - BlockPool::kSmall + 1);
  buffer.commit(buffer.room().size());
  EXPECT_FALSE(buffer.grow());
}

}  // namespace
}  // namespace gitops::net
