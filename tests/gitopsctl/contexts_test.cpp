#include "gitopsctl/contexts.hpp"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.hpp"

namespace gitops::ctl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

Contexts sample() {
  Contexts contexts{.current = "prod"};
  contexts.put({.name = "prod", .url = "https://a.example.com", .token = Secret("canary.key")});
  contexts.put({.name = "lab: \"1\"",
                .url = "https://b.example.com",
                .token_file = "/home/ann/key",
                .ca_file = "/ca.pem",
                .insecure = true});
  return contexts;
}

TEST(Contexts, WhatIsWrittenIsRead) {
  const auto read = parse_contexts(contexts_text(sample()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->current, "prod");
  ASSERT_EQ(read->all.size(), 2U);
  const Context* prod = read->find("prod");
  ASSERT_NE(prod, nullptr);
  EXPECT_EQ(prod->token.reveal(), "canary.key");
  const Context* lab = read->find("lab: \"1\"");
  ASSERT_NE(lab, nullptr);
  EXPECT_EQ(lab->token_file, "/home/ann/key");
  EXPECT_EQ(lab->ca_file, "/ca.pem");
  EXPECT_TRUE(lab->insecure);
}

TEST(Contexts, TheCurrentOneThatIsRemovedIsCurrentNoMore) {
  auto contexts = sample();
  EXPECT_TRUE(contexts.remove("prod"));
  EXPECT_EQ(contexts.current, "");
  EXPECT_FALSE(contexts.remove("prod"));
}

TEST(Contexts, AWrongFileIsNamedWithoutItsText) {
  for (const char* text :
       {R"({"contexts":{"a":"canary"}})", R"({"contexts":{"a":{"token":"canary"}}})",
        R"(["canary"])", R"({"contexts":{"a":{"url":"canary")",
        R"({"contexts":{"a":{"url":"u","token":["canary"]}}})", "",
        R"({"contexts":{"a":{"url":"canary","insecure":"true"}}})"}) {
    const auto read = parse_contexts(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, Not(HasSubstr("canary")));
  }
}

TEST(Contexts, TheFileIsForItsOwnerAlone) {
  const test::TempDir folder;
  const auto path = (folder / "new/contexts.json").string();
  EXPECT_TRUE(read_contexts(path)) << "no file, no contexts";
  ASSERT_TRUE(write_contexts(path, sample()));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(folder / "new").permissions(), fs::perms::owner_all);
  ASSERT_TRUE(read_contexts(path));
  fs::permissions(path, fs::perms::group_read, fs::perm_options::add);
  const auto read = read_contexts(path);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("chmod 600"));
  ASSERT_TRUE(write_contexts(path, sample()));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Contexts, ALinkInPlaceOfTheNewFileIsNotFollowed) {
  const test::TempDir folder;
  const auto path = (folder / "contexts.json").string();
  test::write_file(folder / "target", "mine");
  fs::create_symlink(folder / "target", path + ".new");
  ASSERT_TRUE(write_contexts(path, sample()));
  EXPECT_EQ(test::read_file(folder / "target"), "mine");
}

TEST(Contexts, AFileThatCannotBeReadIsNotOneThatIsMissing) {
  const test::TempDir folder;
  const auto path = (folder / "contexts.json").string();
  fs::create_symlink("contexts.json", path);  // a link to itself
  const auto read = read_contexts(path);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("cannot be read"));
}

TEST(Contexts, ThoseWhoChangeTheFileAtTheSameTimeLoseNothing) {
  const test::TempDir folder;
  const auto path = (folder / "new/contexts.json").string();
  constexpr int kWriters = 8;
  constexpr int kEach = 10;
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&, writer] {
        for (int i = 0; i < kEach; ++i) {
          const auto name = std::to_string(writer) + "-" + std::to_string(i);
          const auto updated = update_contexts(path, [&](Contexts& contexts) -> Result<void> {
            contexts.put({.name = name, .url = "https://" + name});
            return {};
          });
          failures += updated ? 0 : 1;
        }
      });
    }
  }
  EXPECT_EQ(failures, 0);
  const auto read = read_contexts(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->all.size(), kWriters * kEach);
}

TEST(Contexts, AChangeThatIsRefusedWritesNothing) {
  const test::TempDir folder;
  const auto path = (folder / "contexts.json").string();
  ASSERT_TRUE(write_contexts(path, sample()));
  const auto before = test::read_file(path);
  EXPECT_FALSE(update_contexts(path, [](Contexts& contexts) -> Result<void> {
    contexts.all.clear();
    return fail(ErrorCode::not_found, "no");
  }));
  EXPECT_EQ(test::read_file(path), before);
}

TEST(Contexts, ThePathIsThatOfTheEnvironment) {
  EXPECT_EQ(contexts_path({{"HOME", "/home/ann"}}), "/home/ann/.config/gitopsctl/contexts.json");
  EXPECT_EQ(contexts_path({{"HOME", "/home/ann"}, {"XDG_CONFIG_HOME", "/x"}}),
            "/x/gitopsctl/contexts.json");
  EXPECT_EQ(contexts_path({{"GITOPSCTL_CONTEXTS", "/y"}}), "/y");
  EXPECT_EQ(contexts_path({}), "");
}

}  // namespace
}  // namespace gitops::ctl
