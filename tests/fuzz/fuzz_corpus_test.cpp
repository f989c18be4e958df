// Every fuzz target on the seeds that lie in corpus/<target>/, and on the empty input, as a case for each target.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#define TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "targets.inc"
#undef TARGET

namespace {

void replay(const char* name, int (*target)(const std::uint8_t*, std::size_t)) {
  const auto folder = std::filesystem::path(GITOPS_SOURCE_DIR) / "tests/fuzz/corpus" / name;
  const std::uint8_t nothing = 0;
  EXPECT_EQ(target(&nothing, 0), 0);
  std::size_t seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    // A copy of its exact size, so that a read behind its end is seen.
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    EXPECT_EQ(target(bytes.data(), bytes.size()), 0);
    ++seeds;
  }
  EXPECT_GT(seeds, 0U) << folder << " has no seed";
}

#define TARGET(name)            \
  TEST(FuzzCorpus, name) {      \
    replay(#name, fuzz_##name); \
  }
#include "targets.inc"

}  // namespace
