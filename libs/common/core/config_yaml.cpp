#include "common/core/config_yaml.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "common/core/small_file.hpp"

namespace gitops {

namespace {

constexpr std::size_t kMaxConfigFile = 1024 * 1024;
constexpr std::size_t kMaxKeys = 10'000;
constexpr std::size_t kMaxDepth = 16;

class IgnoreEvents : public YAML::EventHandler {
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

YamlSetting setting_of(const std::string& key, const YAML::Node& value, int line) {
  using Kind = YamlSetting::Kind;
  YamlSetting setting{.key = key, .line = line};
  if (value.IsNull()) {
    setting.kind = Kind::null;
  } else if (value.IsScalar()) {
    setting.kind = Kind::text;
    setting.text = value.Scalar();
  } else if (value.IsSequence() &&
             std::ranges::all_of(value, [](const auto& item) { return item.IsScalar(); })) {
    setting.kind = Kind::texts;
    for (const auto& item : value) setting.texts.push_back(item.Scalar());
  }
  return setting;
}

// Walks a YAML tree and reports each key, except those that only group other keys.
class Walk {
 public:
  explicit Walk(const YamlVisitor& visitor) : visitor_(visitor) {}

  void walk(const YAML::Node& map, const std::string& prefix, std::size_t depth = 0) {
    for (const auto& pair : map) {
      const int line = pair.first.Mark().line + 1;
      if (++keys_ > kMaxKeys) {
        if (keys_ == kMaxKeys + 1) visitor_.mistake(line, "", "too many keys");
        return;
      }
      if (!pair.first.IsScalar()) {
        visitor_.mistake(line, "", "a key is not a plain word");
        continue;
      }
      const std::string key = prefix + pair.first.Scalar();
      if (visitor_.is_prefix(key) && pair.second.IsMap() && depth < kMaxDepth) {
        walk(pair.second, key + '.', depth + 1);
      } else if (const auto [first, added] = seen_.emplace(key, line); !added) {
        visitor_.mistake(line, key,
                         "stands here again, first in line " + std::to_string(first->second));
      } else {
        visitor_.setting(setting_of(key, pair.second, line));
      }
    }
  }

 private:
  const YamlVisitor& visitor_;
  std::map<std::string, int> seen_;
  std::size_t keys_ = 0;
};

void read_document(const std::string& text, const YamlVisitor& visitor) {
  const auto whole_file = [&](const std::string& mistake) {
    visitor.mistake(std::nullopt, "", mistake);
  };
  // LoadAll is not used: it does not terminate on some invalid input (yaml-cpp 0.7).
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  IgnoreEvents ignore;
  if (!parser.HandleNextDocument(ignore)) return;
  if (parser.HandleNextDocument(ignore)) return whole_file("holds more than one YAML document");
  const YAML::Node document = YAML::Load(text);
  if (document.IsNull()) return;
  if (!document.IsMap()) {
    return whole_file("must hold settings as in \"name: value\", one a line");
  }
  Walk(visitor).walk(document, "");
}

}  // namespace

void read_yaml_settings(const std::string& path, const YamlVisitor& visitor) {
  const auto text = read_small_file(path, kMaxConfigFile);
  if (!text) return visitor.mistake(std::nullopt, "", text.error().message);
  const auto is_control = [](unsigned char c) {
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  };
  if (const auto at = std::ranges::find_if(*text, is_control); at != text->end()) {
    const auto line = static_cast<int>(std::count(text->begin(), at, '\n')) + 1;
    return visitor.mistake(line, "", "is not YAML: a control character");
  }
  try {
    read_document(*text, visitor);
  } catch (const YAML::Exception& error) {
    // what() may quote the input; the reason alone does not.
    std::optional<int> line;
    if (!error.mark.is_null()) line = error.mark.line + 1;
    visitor.mistake(line, "", "is not YAML: " + error.msg);
  }
}

}  // namespace gitops
