#include "common/core/idle_memory.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/core/small_file.hpp"
#include "support/process.hpp"

namespace gitops {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kSmaps =
    "1000-3000 r--p 00000000 08:01 7 /usr/bin/program\nRss: 8 kB\nAnonymous:             0 kB\n"
    "3000-5000 r-xp 00002000 08:01 7 /usr/bin/program\nAnonymous:             4 kB\n"
    "5000-6000 r--p 00004000 08:01 7 /usr/bin/program\nAnonymous:             0 kB\nVmFlags: rd\n"
    "6000-7000 rw-p 00005000 08:01 7 /usr/bin/program\nAnonymous:             0 kB\n"
    "7000-8000 r--s 00000000 08:01 8 /var/clock\nAnonymous:             0 kB\n"
    "8000-9000 r--p 00000000 00:00 0 \nAnonymous:             0 kB\n"
    "9000-a000 r-xp 00000000 00:00 0 [vdso]\nAnonymous:             0 kB\n"
    "a000-b000 r-xp 00000000 08:01 9 /usr/lib/lib x.so\nAnonymous:             0 kB\n";

TEST(IdleMemory, OnlyUnchangedPagesOfFilesAreGivenBack) {
  EXPECT_THAT(unchanged_mappings(kSmaps),
              ElementsAre(Pair(0x1000, 0x3000), Pair(0x5000, 0x6000), Pair(0xa000, 0xb000)));
}

TEST(IdleMemory, WhatIsMalformedIsLeftOut) {
  for (const char* text :
       {"", "\n\n", "Anonymous: 0 kB", "1000-3000 r--p 0 08:01 7 /x\nAnonymous:",
        "1000-3000 r--p 0 08:01 7 /x", "3000-1000 r--p 0 08:01 7 /x\nAnonymous: 0 kB",
        "1000-zz r--p 0 08:01 7 /x\nAnonymous: 0 kB", "1000-3000\nAnonymous: 0 kB",
        "fffffffffffffffff-3000 r--p 0 08:01 7 /x\nAnonymous: 0 kB"}) {
    EXPECT_THAT(unchanged_mappings(text), IsEmpty()) << text;
  }
}

// Resident memory of a mapping, in kB.
int resident(const void* at) {
  char head[32];
  std::snprintf(head, sizeof(head), "%lx-", reinterpret_cast<unsigned long>(at));
  const auto smaps = read_small_file("/proc/self/smaps", 16 * 1024 * 1024).value();
  const auto place = smaps.find(head);
  if (place == std::string::npos) return -1;
  return std::atoi(smaps.c_str() + smaps.find("Rss:", place) + 4);
}

TEST(IdleMemory, IsGivenBackAndReadAgainWhenItIsNeeded) {
  constexpr std::size_t kSize = 1024 * 1024;
  test::TempDir folder;
  std::string content(kSize, 'x');
  content[5'000] = 'y';
  test::write_file(folder / "library", content);
  const int file = ::open((folder / "library").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  auto* clean = static_cast<char*>(::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE, file, 0));
  auto* changed =
      static_cast<char*>(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
  ::close(file);
  ASSERT_NE(clean, MAP_FAILED);
  ASSERT_NE(changed, MAP_FAILED);
  changed[7] = 'z';  // as a debugger that sets a breakpoint
  ASSERT_EQ(::mprotect(changed, kSize, PROT_READ), 0);
  EXPECT_EQ(std::memcmp(clean, content.data(), kSize), 0);
  ASSERT_EQ(resident(clean), 1024);

  release_idle_memory();
  EXPECT_EQ(resident(clean), 0);
  EXPECT_EQ(changed[7], 'z');
  EXPECT_EQ(std::memcmp(clean, content.data(), kSize), 0);
  ::munmap(clean, kSize);
  ::munmap(changed, kSize);
}

TEST(QuietWatch, TellsOnceAfterEachBusyTime) {
  QuietWatch watch;
  std::vector<bool> told;
  milliseconds used{0};
  for (const int busy : {50, 5, 5, 0, 25, 30, 20, 0}) {
    used += milliseconds(busy);
    told.push_back(watch.is_quiet(used));
  }
  EXPECT_THAT(told, ElementsAre(false, true, false, false, false, false, true, false));
}

}  // namespace
}  // namespace gitops
