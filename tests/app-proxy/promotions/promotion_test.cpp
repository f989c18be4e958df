#include "app-proxy/promotions/promotion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// The destination's file afterwards, or the error's message.
std::string promoted(const std::vector<std::string>& paths, const std::string& source,
                     std::optional<std::string> destination) {
  const auto changes =
      promotion_changes({{"**", paths}}, {{.path = "values.yaml", .content = source}}, "prod");
  if (!changes) return changes.error().message;
  if (changes->empty()) return "(nothing)";
  EXPECT_EQ(changes->front().path, "prod/values.yaml");
  const auto& change = changes->front();
  if (change.kind == FileChange::Kind::write) return change.content;
  const auto edited = change.edit(destination ? std::optional<std::string_view>(*destination)
                                              : std::optional<std::string_view>());
  return edited ? *edited : edited.error().message;
}

TEST(Promotion, SetsTheNamedValuesAndLeavesTheRest) {
  const std::string source = "image:\n  tag: \"1.10\"\n  pull: Always\nreplicas: 1\n";
  const std::string destination =
      "# of production\nimage:\n  tag: '1.9'  # promoted\n  pull: Never\nreplicas: 5\n";
  EXPECT_EQ(promoted({"$.image.tag"}, source, destination),
            "# of production\nimage:\n  tag: '1.10'  # promoted\n  pull: Never\nreplicas: 5\n");
  EXPECT_EQ(promoted({"replicas", "image['pull']"}, source, destination),
            "# of production\nimage:\n  tag: '1.9'  # promoted\n  pull: Always\nreplicas: 1\n");
  EXPECT_EQ(promoted({"$.none"}, source, destination), "(nothing)");
  EXPECT_EQ(promoted({"$.image.tag"}, source, "image: {}\n"), "image: {tag: \"1.10\"}\n");
  EXPECT_EQ(promoted({"$.image.tag"}, source, "image:\n  tag: '1.10'\n"), "image:\n  tag: '1.10'\n")
      << "the same value in other quotes";
  // A number stays a number.
  EXPECT_EQ(promoted({"$.a"}, "a: 2.0\nb: 1\n", "a: 1.0\n"), "a: 2.0\n");
}

TEST(Promotion, CopiesWhatIsBelowAPath) {
  EXPECT_EQ(promoted({"$.image"}, "image:\n  tag: b\n  new: 1\n", "image:\n  tag: a\n  old: 2\n"),
            "image:\n  tag: b\n  new: 1\n");
  EXPECT_EQ(promoted({"$.images[1].tag"}, "images:\n- tag: a\n- tag: b\n",
                     "images:\n- tag: x\n- tag: y\n"),
            "images:\n- tag: x\n- tag: b\n");
  EXPECT_EQ(promoted({"$.names"}, "names: \n- a\n- b\n- c\n", "names:\n- a\n- x\n"),
            "names:\n- a\n- b\n- c\n");
  EXPECT_EQ(promoted({"$.names"}, "names: \n- a\n", "names:\n- a\n- x\n"), "names:\n- a\n");
  EXPECT_EQ(promoted({"$"}, R"({"version": "2"})", R"({"version": "1"})"), R"({"version": "2"})");
  EXPECT_EQ(promoted({"$.x"}, "x:\n- a: 1\n- a: 2\n  b: [c]\n", "x:\n- a: 1 # one\n"),
            "x:\n- a: 1 # one\n- a: 2\n  b:\n    - c\n");
  EXPECT_EQ(promoted({"$.x"}, "x:\n- a: 1\n", "x:\n- a: 1\n- a: 2\n"), "x:\n- a: 1\n");
}

// An empty list or map is a value, too.
TEST(Promotion, EmptyCollections) {
  EXPECT_EQ(promoted({"$.t"}, "t: []\n", "t:\n- a\n- b\nz: 1\n"), "t: []\nz: 1\n");
  EXPECT_EQ(promoted({"$.t", "$.z"}, "t: []\nz: 2\n", "t: [a, b] # of production\nz: 1\n"),
            "t: [] # of production\nz: 2\n");
  EXPECT_EQ(promoted({"$.t"}, "t: {}\n", "t:\n  a: 1\n"), "t: {}\n");
  EXPECT_EQ(promoted({"$.t"}, "t: {}\n", "t: 1\n"), "t: {}\n");
  EXPECT_EQ(promoted({"$.t"}, "t: []\n", "z: 1\n"), "z: 1\nt: []\n");
  EXPECT_EQ(promoted({"$.t"}, "t: []\n", "t: {}\n"), "t: []\n");
  EXPECT_EQ(promoted({"$.i.t"}, "i: {t: []}\n", "i:\n  t: [x]\n"), "i:\n  t: []\n");
  EXPECT_EQ(promoted({"$.t"}, "t: []\n", "t: []\n"), "t: []\n");
  EXPECT_EQ(promoted({"$.t"}, "t: null\n", "t: [a]\n"), "t: null\n");
}

// The destination may lack the collection, and what is above it.
TEST(Promotion, CollectionsThatTheDestinationLacks) {
  const std::string source = "i:\n  t: 2\n  l:\n  - a\n  - k: b\n    m: \"1\"\n  e: {}\n";
  const std::string block = "i:\n  t: 2\n  l:\n    - a\n    - k: b\n      m: \"1\"\n  e: {}\n";
  EXPECT_EQ(promoted({"$.i"}, source, "a: 1 # one\n# end\n"), "a: 1 # one\n" + block + "# end\n");
  EXPECT_EQ(promoted({"$.i"}, source, "a: 1"), "a: 1\n" + block.substr(0, block.size() - 1));
  EXPECT_EQ(promoted({"$.i"}, source, ""), block);
  EXPECT_EQ(promoted({"$.i"}, source, "# nothing yet"), "# nothing yet\n" + block);
  EXPECT_EQ(promoted({"$.i"}, source, "i:\nz: 1\n"), block + "z: 1\n");
  EXPECT_EQ(promoted({"$.i"}, source, "i: text # why\nz: 1\n"), block + "z: 1\n");
  EXPECT_EQ(promoted({"$.i.l[0]"}, source, "z: 1\n"), "z: 1\ni:\n  l:\n    - a\n");
  EXPECT_EQ(promoted({"$.i.l[1].k"}, source, "i:\n  l:\n  - x\n"), "i:\n  l:\n  - x\n  - k: b\n");
  EXPECT_THAT(promoted({"$.i.l[1].k"}, source, "z: 1\n"), HasSubstr("there is no entry 1"));
  EXPECT_THAT(promoted({"$.i.t"}, source, "i: text\n"), HasSubstr("not in a map"));
  // In the destination's own form.
  EXPECT_EQ(promoted({"$.i"}, "i: {t: 2}\n", "{\n  \"a\": \"x\"\n}\n"),
            "{\"i\": {\"t\": 2}, \n  \"a\": \"x\"\n}\n");
  EXPECT_EQ(promoted({"$.i.l"}, source, "i: {l: [x, 'y, z'], k: \"]\"} # c\n"),
            "i: {l: [a, {k: b, m: \"1\"}], k: \"]\"} # c\n");
  EXPECT_EQ(promoted({"$.i"}, "i: {a: 1, b: x}\n", "i: {b: 'x', c: 3} # c\n"),
            "i: {a: 1, b: x} # c\n");
  EXPECT_EQ(promoted({"$.i"}, "i: {t: 2}\r\n", "a: 1\r\n"), "a: 1\r\ni:\r\n  t: 2\r\n");
}

// Maps have no order.
TEST(Promotion, KeysInAnotherOrderAreTheSame) {
  const std::string destination = "i:\n  b: 1 # b\n  a: x\n";
  EXPECT_EQ(promoted({"$.i"}, "i:\n  a: x\n  b: 1\n", destination), destination);
  EXPECT_EQ(promoted({"$.i"}, "i:\n  a: z\n  b: 1\n", destination), "i:\n  b: 1 # b\n  a: z\n");
}

// Editors of Windows put a byte order mark in front.
TEST(Promotion, AByteOrderMarkStays) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(promoted({"$.a"}, mark + "a: 2\n", mark + "a: 1\n"), mark + "a: 2\n");
  EXPECT_EQ(promoted({"$.a"}, "a: 2\n", mark + "b: 1\n"), mark + "b: 1\na: 2\n");
}

// What an anchor or a merge key gives to several places is not changed for one of them.
TEST(Promotion, AnchorsAndMergeKeysAreRefusedWithTheReason) {
  for (const char* destination :
       {"i: &x\n  t: 1\nj: *x\n", "j: &x {t: 1}\ni: *x\n", "j: &x {t: 1}\ni:\n  <<: *x\n"}) {
    EXPECT_THAT(promoted({"$.i.t"}, "i: {t: 2}\n", destination),
                testing::AnyOf(HasSubstr("anchor"), HasSubstr("alias"), HasSubstr("merge key")))
        << destination;
  }
  // Beside them values are set.
  EXPECT_EQ(promoted({"$.z"}, "z: 2\n", "i: &x\n  t: 1\nj: *x\nz: 1\n"),
            "i: &x\n  t: 1\nj: *x\nz: 2\n");
}

TEST(Promotion, SaysWhatItCannotDo) {
  EXPECT_THAT(promoted({"$.a"}, "a: 1\n", std::nullopt), HasSubstr("has no file prod/values.yaml"));
  EXPECT_THAT(promoted({"$.a"}, "a: &x 1\n", "a: 1\n"), HasSubstr("values.yaml of the source: "));
  EXPECT_THAT(promoted({"$.a"}, "a: [\n", "a: 1\n"), HasSubstr("of the source: "));
  EXPECT_THAT(promoted({"$.a"}, "a: 1\n", "[\n"), HasSubstr("prod/values.yaml: "));
  EXPECT_THAT(promoted({"$"}, "v", "w"), HasSubstr("a single value"));
  EXPECT_THAT(promoted({"$..a"}, "a: 1\n", "a: 1\n"), HasSubstr("JSON path $..a"));
}

TEST(Promotion, WholeFiles) {
  const std::vector<PromotedFile> source = {{"a.yaml", "a"}, {"sub/b.json", "b"}};
  const auto paths = [&](const std::vector<PromotionRule>& rules, std::string_view to) {
    std::vector<std::string> found;
    const auto changes = promotion_changes(rules, source, to);
    if (!changes) return found;
    for (const auto& change : *changes) {
      EXPECT_EQ(change.kind, FileChange::Kind::write);
      found.push_back(change.path);
    }
    return found;
  };
  EXPECT_THAT(paths({}, ""), testing::ElementsAre("a.yaml", "sub/b.json"));
  EXPECT_THAT(paths({{"**/*.json", {}}}, "x/y"), testing::ElementsAre("x/y/sub/b.json"));
  EXPECT_THAT(paths({{"*.txt", {}}}, "x"), IsEmpty());
}

// Files that such a glob is for would be left out without a word.
TEST(Promotion, AGlobBeyondTheLimitsIsRefused) {
  const auto refusal = [](const std::string& glob) {
    const auto changes =
        promotion_changes({{"*.yaml", {}}, {glob, {}}}, {{.path = "a.yaml", .content = "a"}}, "");
    return changes ? std::string() : changes.error().message;
  };
  std::string hundred = "{0";
  for (int i = 1; i < 100; ++i) hundred += "," + std::to_string(i);
  EXPECT_EQ(refusal(hundred + "}.yaml"), "");
  EXPECT_TRUE(matches_glob(hundred + "}.yaml", "99.yaml"));
  EXPECT_THAT(refusal(hundred + ",100}.yaml"), HasSubstr("more than 100 alternatives"));
  EXPECT_THAT(refusal("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}.yaml"), HasSubstr("the glob {a,b}{a"));
  EXPECT_EQ(refusal(std::string(1'024, 'a')), "");
  EXPECT_THAT(refusal(std::string(1'025, 'a')), HasSubstr("1,024 bytes"));
}

TEST(Promotion, ReadsJsonPaths) {
  const auto path = [](std::string_view text) {
    const auto read = parse_json_path(text);
    return read ? *read : ManifestPath{"(refused)"};
  };
  using P = ManifestPath;
  EXPECT_EQ(path("$"), P{});
  EXPECT_EQ(path("$.a.b"), (P{"a", "b"}));
  EXPECT_EQ(path("a.b"), (P{"a", "b"}));
  EXPECT_EQ(path("$.a[0].new-tag"), (P{"a", std::size_t{0}, "new-tag"}));
  EXPECT_EQ(path("$['a.b'][\"c\"]"), (P{"a.b", "c"}));
  for (const auto* wrong : {"", ".", "$.", "$..a", "$.*", "$.a[*]", "$.a[?(@.b)]", "$.a[0:1]",
                            "$.a[", "$.a[-1]", "$a", "$.a[99999999999999999999]", "a b", "['']"}) {
    EXPECT_EQ(path(wrong), P{"(refused)"}) << wrong;
  }
}

TEST(Promotion, MatchesGlobs) {
  const auto matches = [](const char* glob, const char* path) { return matches_glob(glob, path); };
  EXPECT_TRUE(matches("values.yaml", "values.yaml"));
  EXPECT_TRUE(matches("./values.yaml", "values.yaml"));
  EXPECT_TRUE(matches("*.yaml", "a.yaml"));
  EXPECT_FALSE(matches("*.yaml", "x/a.yaml"));
  EXPECT_TRUE(matches("**/*.yaml", "a.yaml"));
  EXPECT_TRUE(matches("**/*.yaml", "x/y/a.yaml"));
  EXPECT_FALSE(matches("**/a.yaml", "xa.yaml"));
  EXPECT_TRUE(matches("x/**", "x/y/z"));
  EXPECT_TRUE(matches("x/**/z", "x/z"));
  EXPECT_FALSE(matches("x/**/z", "x/yz"));
  EXPECT_TRUE(matches("{a,b/*}.yaml", "b/c.yaml"));
  EXPECT_TRUE(matches("{a,{b,c}}.y?ml", "c.yaml"));
  EXPECT_FALSE(matches("{a,b}", "{a,b}"));
  EXPECT_TRUE(matches("{a", "{a"));
  EXPECT_FALSE(matches("", "a"));
  // Not for ever.
  const std::string stars = [] {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "*a";
    return text;
  }();
  EXPECT_FALSE(matches_glob(stars, std::string(3000, 'a') + "b"));
  EXPECT_FALSE(matches_glob("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}x", "y"));
}

}  // namespace
}  // namespace gitops::app_proxy
