#include "common/core/secret.hpp"

#include <ostream>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

namespace gitops {
namespace {

template <class T>
concept Printable = requires(std::ostream& out, const T& value) { out << value; };
static_assert(!Printable<Secret>);
static_assert(!std::is_convertible_v<Secret, std::string>);
static_assert(!std::is_convertible_v<Secret, std::string_view>);
static_assert(!std::is_convertible_v<std::string, Secret>);
static_assert(std::is_nothrow_move_constructible_v<Secret>);

TEST(Secret, RevealsItsTextToWhomAsks) {
  const Secret secret("canary");
  EXPECT_EQ(secret.reveal(), "canary");
  EXPECT_FALSE(secret.empty());
  EXPECT_TRUE(Secret().empty());
  EXPECT_EQ(Secret().reveal(), "");
}

TEST(Secret, ComparesWholeTexts) {
  EXPECT_TRUE(Secret("abc") == Secret("abc"));
  EXPECT_FALSE(Secret("abc") == Secret("abd"));
  EXPECT_FALSE(Secret("abc") == Secret("ab"));
  EXPECT_TRUE(Secret() == Secret(""));
  EXPECT_FALSE(Secret() == Secret("a"));
}

TEST(Secret, CopiesAndMoves) {
  Secret one("first");
  Secret copy = one;
  EXPECT_EQ(copy.reveal(), "first");
  Secret moved = std::move(one);
  EXPECT_EQ(moved.reveal(), "first");
  EXPECT_TRUE(one.empty());  // NOLINT(bugprone-use-after-move)
  copy = Secret("second");
  EXPECT_EQ(copy.reveal(), "second");
  moved = copy;
  EXPECT_EQ(moved.reveal(), "second");
  EXPECT_EQ(copy.reveal(), "second");
}

// Freed memory may not be read, so the text is looked at while another object owns the buffer: a
// move must not leave it behind in the old one.
TEST(AC28_Secret, AMoveLeavesNothingBehindInTheOldObject) {
  alignas(Secret) unsigned char storage[sizeof(Secret)];
  auto* original = new (storage) Secret("kanarie");
  const Secret moved = std::move(*original);
  original->~Secret();
  const std::string_view bytes(reinterpret_cast<const char*>(storage), sizeof(storage));
  EXPECT_FALSE(bytes.contains("kanarie"));
  EXPECT_EQ(moved.reveal(), "kanarie");
}

}  // namespace
}  // namespace gitops
