#include "app-proxy/git/tree_path.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

TEST(TreePath, AcceptsOrdinaryPaths) {
  for (const char* path :
       {"a", "a/b.yaml", ".github/workflows/x.yml", ".gitignore", "a/.gitattributes", "git",
        "git~2", "a b/c", "ä/ö", "...a", ".gitx", "gitmodules"}) {
    EXPECT_TRUE(check_tree_path(path)) << path;
  }
}

TEST(TreePath, AC39_RefusesPathsThatLeadElsewhere) {
  for (const std::string path : {"",
                                 "/a",
                                 "a/",
                                 "a//b",
                                 ".",
                                 "..",
                                 "a/../b",
                                 "./a",
                                 ". .",
                                 ".. ",
                                 "...",
                                 "a/ /b",
                                 "a\\b",
                                 "a\nb",
                                 "a\x7f",
                                 ".git",
                                 ".git/config",
                                 "a/.git/x",
                                 ".GIT",
                                 ".Git/hooks",
                                 ".git.",
                                 ".git ",
                                 ".git . .",
                                 "git~1",
                                 "GIT~1/x",
                                 ".git::$INDEX_ALLOCATION/x",
                                 ".git:x",
                                 ".g\u200cit",
                                 "\u200d.git/config",
                                 ".gi\ufefft",
                                 ".git\u206a",
                                 ".gitmodules",
                                 ".GitModules",
                                 ".gitmodules.",
                                 "GITMOD~1",
                                 "gi7eba~1",
                                 "a/.gitmodules",
                                 "\xff",
                                 "\xc0\xaf"}) {
    EXPECT_FALSE(check_tree_path(path)) << path;
  }
  EXPECT_FALSE(check_tree_path(std::string("a\0b", 3)));
  EXPECT_FALSE(check_tree_path(std::string(256, 'a')));
  std::string deep = "a";
  for (int i = 0; i < 64; ++i) deep += "/a";
  EXPECT_FALSE(check_tree_path(deep));
}

TEST(TreePath, ChangesMustNotContradictEachOther) {
  using Changes = std::vector<FileChange>;
  EXPECT_TRUE(check_changes(Changes{{.path = "a"}, {.path = "a-b"}, {.path = "ab/c"}}));
  EXPECT_FALSE(check_changes(Changes{{.path = "a"}, {.path = "b"}, {.path = "a"}}));
  EXPECT_FALSE(check_changes(Changes{{.path = "a/b"}, {.path = "a-b"}, {.path = "a"}}));
  EXPECT_FALSE(check_changes(Changes{{.path = "a", .revision = "main"}}));
  EXPECT_FALSE(check_changes(Changes{{.path = "a", .content = "12345"}}, 10, 4));
  EXPECT_FALSE(check_changes(Changes{{.path = "a"}, {.path = "b"}}, 1));
}

}  // namespace
}  // namespace gitops::app_proxy
