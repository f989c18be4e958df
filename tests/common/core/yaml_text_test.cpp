#include "common/core/yaml_text.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

namespace gitops::reporter {
namespace {

std::string yaml_of(const std::string& json) {
  return json_to_yaml(json).value();
}

// What a YAML reader sees, compared with the JSON it came from. yaml-cpp tells quoted scalars by
// the tag "!"; plain ones are resolved here by the JSON value's type.
void expect_same(const YAML::Node& node, const nlohmann::json& json, const std::string& path) {
  if (json.is_object()) {
    ASSERT_TRUE(node.IsMap()) << path;
    EXPECT_EQ(node.size(), json.size()) << path;
    for (const auto& [key, value] : json.items()) {
      ASSERT_TRUE(node[key]) << path << "/" << key;
      expect_same(node[key], value, path + "/" + key);
    }
  } else if (json.is_array()) {
    ASSERT_TRUE(node.IsSequence()) << path;
    ASSERT_EQ(node.size(), json.size()) << path;
    for (std::size_t i = 0; i < json.size(); ++i) {
      expect_same(node[i], json[i], path + "/" + std::to_string(i));
    }
  } else if (json.is_string()) {
    ASSERT_TRUE(node.IsScalar()) << path;
    EXPECT_EQ(node.Scalar(), json.get<std::string>()) << path;
    if (node.Tag() == "?") {  // plain: must not resolve to another type
      bool boolean = false;
      double number = 0;
      EXPECT_FALSE(YAML::convert<bool>::decode(node, boolean)) << path << ": " << node.Scalar();
      EXPECT_FALSE(YAML::convert<double>::decode(node, number)) << path << ": " << node.Scalar();
    }
  } else if (json.is_null()) {
    EXPECT_TRUE(node.IsNull()) << path;
  } else if (json.is_boolean()) {
    EXPECT_EQ(node.as<bool>(), json.get<bool>()) << path;
    EXPECT_EQ(node.Tag(), "?") << path;
  } else {
    EXPECT_DOUBLE_EQ(node.as<double>(), json.get<double>()) << path;
    EXPECT_EQ(node.Tag(), "?") << path;
  }
}

void expect_round_trip(const nlohmann::json& json) {
  const auto yaml = yaml_of(json.dump());
  SCOPED_TRACE(yaml);
  expect_same(YAML::Load(yaml), json, "");
}

TEST(YamlText, LooksLikeWhatKubernetesToolsPrint) {
  EXPECT_EQ(yaml_of(R"({"kind":"Deployment","apiVersion":"apps/v1","spec":{"replicas":3,
    "template":{"spec":{"containers":[{"name":"web","args":["--a=b","-x"],"ports":[]},{"name":"b"}]}},
    "empty":{}, "ratio":0.5,"on":true,"nothing":null}})"),
            R"(apiVersion: apps/v1
kind: Deployment
spec:
  empty: {}
  nothing: null
  "on": true
  ratio: 0.5
  replicas: 3
  template:
    spec:
      containers:
      - args:
        - --a=b
        - -x
        name: web
        ports: []
      - name: b
)");
}

TEST(YamlText, QuotesOnlyWhatWouldBeReadOtherwise) {
  EXPECT_EQ(yaml_of(R"(["", "true", "No", "1", "1.5e3", "0x1f", "2026-03-04", "~", "10.0.0.1x",
    "a: b", "a #b", "*x", "- x", "-x", "it's", "@at", "key:", " lead", "trail ", "plain text",
    "12:30:45", "<<", ".5", "+", "-", "1_000"])"),
            R"(- ""
- "true"
- "No"
- "1"
- "1.5e3"
- "0x1f"
- "2026-03-04"
- "~"
- 10.0.0.1x
- 'a: b'
- 'a #b'
- '*x'
- '- x'
- -x
- it's
- '@at'
- 'key:'
- ' lead'
- 'trail '
- plain text
- "12:30:45"
- "<<"
- ".5"
- +
- '-'
- "1_000"
)");
}

TEST(YamlText, WritesSeveralLinesAsALiteralBlock) {
  EXPECT_EQ(
      yaml_of(R"({"a":"x\ny\n","b":{"c":"x\n\n  y"},"d":["x\ny\n\n"],"e":" x\ny","f":"x \ny"})"),
      "a: |\n  x\n  y\nb:\n  c: |-\n    x\n\n      y\nd:\n- |+\n  x\n  y\n\n"
      "e: \" x\\ny\"\nf: \"x \\ny\"\n");
}

TEST(YamlText, NumbersOfAnySizeStayAsTheyAre) {
  EXPECT_EQ(
      yaml_of(R"({"size":32000000000000000000,"list":[1e400,-9223372036854775809,1],"s":"1e400"})"),
      "list:\n- 1e400\n- -9223372036854775809\n- 1\ns: \"1e400\"\nsize: 32000000000000000000\n");
}

TEST(YamlText, ParsesBackToTheSameData) {
  expect_round_trip(nlohmann::json::parse(R"({
    "strings": ["", " ", "\n", "\n\n", "a\n", "a\nb", "a\n\n", "\ta", "a\tb", "a\u0001b", "\u007f",
      "\u0085", "\u00a0", "\u2028", "\ufeff", "é", "日本", "😀", "null", "Null", "~", "yes", "off",
      "0", "-1", "+1.5", ".inf", "-.INF", ".nan", "0b101", "0o17", "017", "1e5", "1_0", "1:20",
      "2001-12-14t21:59:43.10-05:00", "=", "<<", "---", "...", "--- a", "%d", "`x`", "|", ">", "a:",
      ":a", "a:b", "? a", "?", "!tag", "&x", "'", "\"", "a'b", "a\"b", "\\", "#", "a#b", "a #", "[",
      "]", "{", "}", ",", "a, b", "x\r\ny", "trailing\n \n", "a\n b\n", "{{ .Values.x }}"],
    "numbers": [0, -1, 9223372036854775807, 18446744073709551615, 0.1, 1e300, -2.5e-10],
    "nested": [[], {}, [[1, [2]], []], [{"a": [{"b": {}}]}], {"": "empty key", "a b": 1, "1": 2}],
    "key: with colon": 1, "- dash": 2, "line\nbreak": 3, "true": 4, "#": 5, "'": {"\"": [null]}
  })"));
  expect_round_trip(nlohmann::json{{std::string(1500, 'k'), {{"below", 1}}}, {"z", 1}});
}

}  // namespace
}  // namespace gitops::reporter
