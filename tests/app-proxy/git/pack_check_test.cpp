#include "app-proxy/git/pack_check.hpp"

#include <gtest/gtest.h>

#include "app-proxy/git/packs.hpp"
#include "support/process.hpp"

namespace gitops::app_proxy {
namespace {

using test::growing_delta;
using test::pack_distance;
using test::pack_object;
using test::pack_of;
using test::PackType;

// The verdict, alike in every way of cutting the pack: nullopt when it passes whole.
std::optional<ErrorCode> verdict(std::string_view pack, PackLimits limits = {}) {
  std::optional<ErrorCode> first;
  for (const std::size_t piece : {pack.size(), std::size_t{1}, std::size_t{7}}) {
    PackCheck check(limits);
    std::optional<ErrorCode> found;
    for (std::size_t at = 0; !found && at < pack.size(); at += piece) {
      if (const auto fed = check.feed(pack.substr(at, piece)); !fed) found = fed.error().code;
    }
    if (!found && !check.complete()) found = ErrorCode::unavailable;  // it waits for more
    if (piece == pack.size()) {
      first = found;
    } else {
      EXPECT_EQ(found, first) << "in pieces of " << piece;
    }
  }
  return first;
}

const std::string kText = "hello, world; hello, world\n";

TEST(PackCheck, TakesObjectsAndDeltasByOffset) {
  const auto blob = pack_object(PackType::blob, kText);
  const auto first =
      pack_object(PackType::ofs_delta, growing_delta(kText.size(), 20), pack_distance(blob.size()));
  const auto second =
      pack_object(PackType::ofs_delta, growing_delta(20, 10), pack_distance(first.size()));
  EXPECT_EQ(verdict(pack_of({blob})), std::nullopt);
  EXPECT_EQ(verdict(pack_of({blob, first, second})), std::nullopt);
  EXPECT_EQ(verdict(pack_of({})), std::nullopt);
  EXPECT_EQ(verdict(pack_of({pack_object(PackType::blob, "")})), std::nullopt);
}

// A pack as Git makes it, with chains of deltas.
TEST(PackCheck, TakesAPackOfGit) {
  const test::TempDir folder;
  const auto script = "cd " + folder.path().string() +
                      " && git init -q . && git config user.email a@b && git config user.name a &&"
                      " for i in $(seq 20); do seq $i 2000 >f; git add f; git commit -q -m $i; done"
                      " && git repack -q -a -d -f --depth=50 && cat .git/objects/pack/*.pack >p";
  test::run_or_throw({"sh", "-c", script});
  const auto pack = test::read_file(folder / "p");
  ASSERT_GT(pack.size(), 1'000U);
  EXPECT_EQ(verdict(pack), std::nullopt);
  EXPECT_EQ(verdict(pack.substr(0, pack.size() - 1)), ErrorCode::unavailable);
  EXPECT_EQ(verdict(pack + "x"), ErrorCode::invalid_data);
}

// [AC-40]
TEST(PackCheck, AC40_RefusesWhatClaimsTooMuch) {
  EXPECT_EQ(verdict(pack_of({}, 0xffff'ffff)), ErrorCode::too_large);
  EXPECT_EQ(verdict(pack_of({pack_object(PackType::blob, "x", {}, std::uint64_t{1} << 40U)})),
            ErrorCode::too_large);
  const auto blob = pack_object(PackType::blob, kText);
  const auto back = pack_distance(blob.size());
  const auto delta = [&](std::string_view content, std::string_view base) {
    return verdict(pack_of({blob, pack_object(PackType::ofs_delta, content, base)}));
  };
  // 8 GiB by a delta of a few bytes.
  EXPECT_EQ(
      delta(test::pack_number(kText.size()) + test::pack_number(std::uint64_t{8} << 30U), back),
      ErrorCode::too_large);
  EXPECT_EQ(delta("", back), ErrorCode::invalid_data);
  EXPECT_EQ(delta(std::string(30, '\xff'), back), ErrorCode::invalid_data);
  // Bases that are no object before it: within the blob, itself, before the pack, after it.
  for (const std::uint64_t distance : {blob.size() - 1, std::size_t{0}, std::size_t{1'000'000}}) {
    EXPECT_EQ(delta(growing_delta(kText.size(), 5), pack_distance(distance)),
              ErrorCode::invalid_data)
        << distance;
  }
  EXPECT_EQ(verdict(pack_of(
                {pack_object(PackType::ref_delta, growing_delta(5, 5), std::string(20, 'i'))})),
            ErrorCode::invalid_data);
  // Sizes that are not true.
  EXPECT_EQ(verdict(pack_of({pack_object(PackType::blob, kText, {}, kText.size() + 1)})),
            ErrorCode::invalid_data);
  EXPECT_EQ(verdict(pack_of({pack_object(PackType::blob, kText, {}, kText.size() - 1)})),
            ErrorCode::invalid_data);
  EXPECT_EQ(verdict("PACK" + std::string("\0\0\0\x04\0\0\0\0", 8)), ErrorCode::invalid_data);
  EXPECT_EQ(verdict(std::string(40, 'x')), ErrorCode::invalid_data);
  std::string broken = pack_of({blob});
  broken[14] ^= 0x55;
  EXPECT_EQ(verdict(broken), ErrorCode::invalid_data);
}

// [AC-40]: each object is small enough, but a long chain costs all of them for the last.
TEST(PackCheck, AC40_RefusesChainsThatCostTooMuch) {
  const PackLimits limits{.object = 1'000, .chain = 20'000};
  const auto with_chain = [&](int deltas) {
    std::vector<std::string> objects{pack_object(PackType::blob, std::string(1'000, 'a'))};
    for (int i = 0; i < deltas; ++i) {
      objects.push_back(pack_object(PackType::ofs_delta, growing_delta(1'000, 1'000),
                                    pack_distance(objects.back().size())));
    }
    return verdict(pack_of(objects), limits);
  };
  EXPECT_EQ(with_chain(15), std::nullopt);
  EXPECT_EQ(with_chain(25), ErrorCode::too_large);
}

// [AC-40]: the object ends the check where its size ends, not where its bomb does.
TEST(PackCheck, AC40_StopsInflatingABomb) {
  const std::string bomb = pack_object(PackType::blob, std::string(50'000'000, '\0'), {}, 100);
  PackCheck check;
  const auto head = pack_of({}, 1).substr(0, 12);
  ASSERT_TRUE(check.feed(head));
  std::size_t taken = 0;
  while (taken < bomb.size() && check.feed(std::string_view(bomb).substr(taken, 1))) ++taken;
  EXPECT_LT(taken, 100U);
}

}  // namespace
}  // namespace gitops::app_proxy
