#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gitops {

// One key of a settings file and its value.
struct YamlSetting {
  std::string key;  // nested keys joined by dots
  int line = 0;
  enum class Kind { null, text, texts, other } kind = Kind::other;
  std::string text{};
  std::vector<std::string> texts{};
};

// Receives the entries and the mistakes of a settings file, in the order of the file.
struct YamlVisitor {
  std::function<void(const YamlSetting& setting)> setting;
  // Called with a mistake. A mistake without a line number concerns the whole file; one with an
  // empty key concerns the line.
  std::function<void(std::optional<int> line, const std::string& key, const std::string& text)>
      mistake;
  // Returns true when a map under this key contains settings; false when the map is the key's
  // value.
  std::function<bool(const std::string& key)> is_prefix;
};

// Reads one YAML document of at most 1 MiB. Mistakes never quote values, since a value may be a
// secret.
void read_yaml_settings(const std::string& path, const YamlVisitor& visitor);

}  // namespace gitops
