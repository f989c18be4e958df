#include "app-proxy/entities/plain_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kCommit = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

std::string request(const std::string& path) {
  return R"({"repoURL":"https://git.example.test/acme/shop.git","revision":")" +
         std::string(kCommit) + R"(","targetRevision":"HEAD","path":")" + path +
         R"(","recurse":true,"include":"*.yaml","exclude":""})";
}

TEST(PlainFolder, ARequestNamesAFolderAtACommit) {
  const auto folder = read_plain_folder(request("./apps/shop/"));
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(*folder, (PlainFolder{.repository = "https://git.example.test/acme/shop.git",
                                  .commit = kCommit,
                                  .branch = "",
                                  .folder = "apps/shop",
                                  .is_recursive = true,
                                  .include = "*.yaml",
                                  .exclude = ""}));
  EXPECT_EQ(read_plain_folder(request("."))->folder, "");
  EXPECT_EQ(read_plain_folder(request(""))->folder, "");
}

// [AC-39]
TEST(PlainFolder, AC39_ARequestDoesNotLeaveTheRepository) {
  for (const char* path : {"..", "a/../../b", "/etc", "a/.git/config", "a//b", ".git"}) {
    EXPECT_FALSE(read_plain_folder(request(path))) << path;
  }
  for (const char* body : {"", "[]", "{}", "null", R"({"revision":"main"})"}) {
    EXPECT_FALSE(read_plain_folder(body)) << body;
  }
}

TEST(PlainFolder, PatternsAreThoseOfArgoCd) {
  EXPECT_TRUE(matches_pattern("*.yaml", "a.yaml"));
  EXPECT_TRUE(matches_pattern("*.yaml", "deep/a.yaml")) << "a star stands for '/', too";
  EXPECT_TRUE(matches_pattern("{a.yaml,**/b.yaml}", "x/b.yaml"));
  EXPECT_FALSE(matches_pattern("{a.yaml,**/b.yaml}", "x/c.yaml"));
  EXPECT_TRUE(matches_pattern("{a,b}-{c,d}.yaml", "b-c.yaml"));
  EXPECT_TRUE(matches_pattern("?.yaml", "a.yaml"));
  EXPECT_FALSE(matches_pattern("?.yaml", "ab.yaml"));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_FALSE(matches_pattern("", "a"));
  EXPECT_TRUE(matches_pattern("**/*/**", "a/b/c"));
  EXPECT_FALSE(matches_pattern("**/*/**", "a/b"));
  for (const char* unknown : {"[ab].yaml", "{a", "a}", "{a,{b,c}}", "\\*"}) {
    EXPECT_FALSE(matches_pattern(unknown, "a.yaml")) << unknown;
  }
  EXPECT_FALSE(matches_pattern(std::string(2'000, '*'), "a"));
}

TEST(PlainFolder, ArgoCdReadsTheFilesThatTheSourceSelects) {
  const PlainFolder flat{};
  EXPECT_TRUE(is_manifest_file(flat, "a.yaml"));
  EXPECT_TRUE(is_manifest_file(flat, "a.yml"));
  EXPECT_TRUE(is_manifest_file(flat, "a.json"));
  EXPECT_FALSE(is_manifest_file(flat, "README.md"));
  EXPECT_FALSE(is_manifest_file(flat, "deep/a.yaml"));
  PlainFolder deep;
  deep.is_recursive = true;
  deep.exclude = "test/*";
  EXPECT_TRUE(is_manifest_file(deep, "deep/a.yaml"));
  EXPECT_FALSE(is_manifest_file(deep, "test/a.yaml"));
  EXPECT_TRUE(is_other_source("kustomization.yaml"));
  EXPECT_TRUE(is_other_source("Chart.yaml"));
  EXPECT_FALSE(is_other_source("deep/Chart.yaml"));
}

TEST(PlainFolder, NamesTheObjectsOfAFile) {
  const auto names = names_in(R"(# a comment
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {name: not-this, list: [kind, other]}
  name: "shop"
  namespace: prod
spec:
  template:
    metadata: {name: nor-this}
    kind: Pod
---
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}
---
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Service, metadata: {name: inside}}
---
? {apiVersion: v1}
: kind
kind: Odd
metadata: &m {name: anchored}
apiVersion: v1
)");
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_THAT(*names, ElementsAre(ManifestName{"apps", "Deployment", "prod", "shop"},
                                  ManifestName{"", "ConfigMap", "", "settings"},
                                  ManifestName{"", "Odd", "", "anchored"}));
  EXPECT_THAT(*names_in(""), IsEmpty());
  EXPECT_THAT(*names_in("just text"), IsEmpty());
  EXPECT_FALSE(names_in("a: [").has_value());
  EXPECT_FALSE(names_in(std::string(10'000, '[')).has_value());
}

TEST(PlainFolder, TheAnswerHasNoTextOfASecret) {
  const auto answer = plain_folder_answer(
      {{.path = "a.yaml", .text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"},
       {.path = "b.yaml",
        .text = "apiVersion: v1\nkind: Service\nmetadata: {name: b}\n---\napiVersion: v1\nkind: "
                "Secret\nmetadata: {name: s}\nstringData: {key: canary-value}\n"},
       {.path = "broken.yaml", .text = "a: ["},
       {.path = "none.yaml", .text = "replicas: 1\n"},
       {.path = "latin.yaml", .text = "kind: \xE9\n"}});
  EXPECT_EQ(
      answer,
      R"({"files":[{"path":"a.yaml","text":"apiVersion: v1\nkind: Service\nmetadata: {name: a}\n",)"
      R"("objects":[{"group":"","kind":"Service","namespace":"","name":"a"}]},)"
      R"({"path":"b.yaml","objects":[{"group":"","kind":"Service","namespace":"","name":"b"},)"
      R"({"group":"","kind":"Secret","namespace":"","name":"s"}]}]})");
  EXPECT_THAT(answer, Not(HasSubstr("canary")));
  EXPECT_EQ(plain_folder_answer({}), R"({"files":[]})");
}

}  // namespace
}  // namespace gitops::app_proxy
