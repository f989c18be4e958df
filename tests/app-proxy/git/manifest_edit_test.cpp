#include "app-proxy/git/manifest_edit.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

using Action = ManifestEdit::Action;

std::string edited(std::string_view text, ManifestEdit edit) {
  auto result = edit_manifest(text, edit);
  return result ? *result : "error: " + result.error().message;
}

std::string set(std::string_view text, ManifestPath path, std::string value, bool is_text = true) {
  return edited(text,
                {.path = std::move(path), .value = {.text = std::move(value), .is_text = is_text}});
}

std::string append(std::string_view text, ManifestPath path, std::string value) {
  return edited(
      text,
      {.action = Action::append, .path = std::move(path), .value = {.text = std::move(value)}});
}

std::string removed(std::string_view text, ManifestPath path) {
  return edited(text, {.action = Action::remove, .path = std::move(path)});
}

ErrorCode refused(std::string_view text, const ManifestEdit& edit) {
  const auto result = edit_manifest(text, edit);
  EXPECT_FALSE(result) << *result;
  return result ? ErrorCode::internal : result.error().code;
}

TEST(ManifestEdit, SetsAScalarAndLeavesTheRest) {
  const std::string text =
      "# top\nkind: Application   # what\nspec:\n    source: {path: a, n: 1}\n"
      "    version: \"2.0\"\n    name: 'it''s'  # quoted\n    empty:   # none\n\n    last: x";
  EXPECT_EQ(set(text, {"spec", "source", "path"}, "b"),
            std::string(text).replace(text.find("path: a"), 7, "path: b"));
  EXPECT_EQ(set(text, {"spec", "version"}, "2.1"),
            std::string(text).replace(text.find("2.0"), 3, "2.1"));
  EXPECT_EQ(set(text, {"spec", "name"}, "o'er"),
            std::string(text).replace(text.find("it''s"), 5, "o''er"));
  EXPECT_EQ(set(text, {"spec", "empty"}, "full"),
            std::string(text).replace(text.find("empty:"), 6, "empty: full"));
  EXPECT_EQ(set(text, {"spec", "new"}, "y"), text + "\n    new: \"y\"");
  EXPECT_EQ(set(text, {"spec", "source", "n"}, "2", false),
            std::string(text).replace(text.find("n: 1"), 4, "n: 2"));
}

TEST(ManifestEdit, QuotesWhatYamlWouldReadAsSomethingElse) {
  for (const std::string value :
       {"2.0", "yes",  "No",   "null", "~",  "",   "2026-11-23", "0x1F", "1e3",
        "- a", "# a",  "a: b", "a #b", "@a", "*a", "&a",         "!a",   "%a",
        "{a",  "a, b", " a",   "a ",   "?",  "<<", "a:",         "---"}) {
    EXPECT_EQ(set("a: b\n", {"a"}, value), "a: \"" + value + "\"\n");
  }
  for (const std::string value : {"1.2.3", "v2", "a b", "https://host/x.git", "apps/*.yaml"}) {
    EXPECT_EQ(set("a: b\n", {"a"}, value), "a: " + value + "\n");
  }
  EXPECT_EQ(set("a: b\n", {"a"}, "x\n\"y\"\t\x01"), "a: \"x\\n\\\"y\\\"\\t\\x01\"\n");
  EXPECT_EQ(set("a: b\n", {"a"}, "true", false), "a: true\n");
}

TEST(ManifestEdit, Lists) {
  const std::string text = "a:\r\n- x # one\r\n# two\r\n- k: 1\r\n  l: 2\r\n\r\nb: []\r\n";
  EXPECT_EQ(append(text, {"a"}, "y"),
            "a:\r\n- x # one\r\n# two\r\n- k: 1\r\n  l: 2\r\n- \"y\"\r\n\r\nb: []\r\n");
  EXPECT_EQ(append(text, {"b"}, "z"),
            "a:\r\n- x # one\r\n# two\r\n- k: 1\r\n  l: 2\r\n\r\nb: [z]\r\n");
  EXPECT_EQ(removed(text, {"a", std::size_t{0}}),
            "a:\r\n# two\r\n- k: 1\r\n  l: 2\r\n\r\nb: []\r\n");
  EXPECT_EQ(removed(text, {"a", std::size_t{1}}), "a:\r\n- x # one\r\n# two\r\n\r\nb: []\r\n");
  EXPECT_EQ(removed(text, {"a", std::size_t{1}, "k"}),
            "a:\r\n- x # one\r\n# two\r\n- l: 2\r\n\r\nb: []\r\n");
  EXPECT_EQ(removed(text, {"a"}), "\r\nb: []\r\n");
  EXPECT_EQ(removed("a:\n  - x\nb: 1\n", {"a", std::size_t{0}}), "a: []\nb: 1\n");
}

TEST(ManifestEdit, OneOfSeveralDocuments) {
  const std::string text = "a: 1\n---\n# second\na: x\n---\na: 3\n";
  EXPECT_EQ(edited(text, {.path = {"a"}, .value = {.text = "w"}, .document = 1}),
            "a: 1\n---\n# second\na: w\n---\na: 3\n");
  EXPECT_EQ(refused(text, {.path = {"a"}, .document = 3}), ErrorCode::not_found);
}

// Other tools fold long values, as the list of globs of an in-cluster Application.
TEST(ManifestEdit, ABlockScalarBecomesAQuotedOne) {
  const auto set = [](std::string_view text, ManifestPath path) {
    const auto edited = edit_manifest(text, {.path = std::move(path), .value = {.text = "{c,d}"}});
    return edited ? *edited : edited.error().message;
  };
  EXPECT_EQ(set("x:\n  a: >-\n    {a,\n    b}\n  # kept\n  z: 1\n", {"x", "a"}),
            "x:\n  a: '{c,d}'\n  # kept\n  z: 1\n");
  EXPECT_EQ(set("a: |\n  # no comment\n\n  b\n\n", {"a"}), "a: '{c,d}'\n\n");
  EXPECT_EQ(set("a: |2-\r\n    b\r\nz: 1\r\n", {"a"}), "a: '{c,d}'\r\nz: 1\r\n");
  EXPECT_EQ(set("a: >-\n  b", {"a"}), "a: '{c,d}'");
  EXPECT_EQ(set("a:\n- >\n  b\n- e\n", {"a", std::size_t{0}}), "a:\n- '{c,d}'\n- e\n");
  EXPECT_EQ(set("a: |\n", {"a"}), "a: '{c,d}'\n");
}

TEST(ManifestEdit, AByteOrderMarkIsNoMistake) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(set(mark + "a: 1\r\nb: x\r\n", {"b"}, "z"), mark + "a: 1\r\nb: z\r\n");
  EXPECT_EQ(append(mark + "a: []\n", {"a"}, "z"), mark + "a: [z]\n");
  EXPECT_EQ(read_manifest(mark + "a: x\n", {"a"}), "x");
  EXPECT_EQ(read_leaves(mark + "a: x\n", {})->size(), 1U);
}

TEST(ManifestEdit, RefusesWhatItCannotEdit) {
  for (const char* text : {"a: &x 1\nb: *x\n", "a: !!str 1\n", "a: | # why\n  b\n", "a: b\n  c\n",
                           "a: 1\na: 2\n", "<<: {a: 1}\na: 2\n", "a: 'b\n  c'\n"}) {
    EXPECT_EQ(refused(text, {.path = {"a"}, .value = {.text = "z"}}), ErrorCode::unsupported)
        << text;
  }
  EXPECT_EQ(refused("a: [b]\n", {.action = Action::append, .path = {"a"}, .value = {.text = "c"}}),
            ErrorCode::unsupported);
  EXPECT_EQ(refused("a: [b]\n", {.action = Action::remove, .path = {"a", std::size_t{0}}}),
            ErrorCode::unsupported);
  EXPECT_EQ(refused("a: 1\n", {.path = {"b", "c"}}), ErrorCode::not_found);
  EXPECT_EQ(refused(",,,", {.path = {"a"}}), ErrorCode::invalid_data);
  EXPECT_EQ(refused("a: [\n", {.path = {"a"}}), ErrorCode::invalid_data);
  EXPECT_EQ(refused("a: 1\n", {.path = {"a"}, .value = {.text = "x", .is_text = false}}),
            ErrorCode::invalid_argument);
}

TEST(ManifestEdit, ReadsAScalar) {
  const std::string text = "a:\n  - x: 'it''s'\n  - {y: 2}\nb: &n z\nc: *n\n---\na: second\n";
  EXPECT_EQ(read_manifest(text, {"a", std::size_t{0}, "x"}), "it's");
  EXPECT_EQ(read_manifest(text, {"a", std::size_t{1}, "y"}), "2");
  EXPECT_EQ(read_manifest(text, {"b"}), "z");
  EXPECT_EQ(read_manifest(text, {"a"}, 1), "second");
  for (const ManifestPath& path : {ManifestPath{"a"},
                                   {"c"},
                                   {"d"},
                                   {"a", "x"},
                                   {"a", std::size_t{2}},
                                   {"b", "z"},
                                   {"b", std::size_t{0}}}) {
    const auto read = read_manifest(text, path);
    ASSERT_FALSE(read) << *read;
    EXPECT_EQ(read.error().code, ErrorCode::not_found);
  }
  EXPECT_EQ(read_manifest(text, {"a"}, 2).error().code, ErrorCode::not_found);
  EXPECT_EQ(read_manifest("{", {"a"}).error().code, ErrorCode::invalid_data);
}

}  // namespace
}  // namespace gitops::app_proxy
