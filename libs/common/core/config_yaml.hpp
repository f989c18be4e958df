#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gitops {

// One key of a settings file and its value.
struct YamlSetting {
  std::string key;  // dots where it nests
  int line = 0;
  enum class Kind { null, text, texts, other } kind = Kind::other;
  std::string text{};
  std::vector<std::string> texts{};
};

// Whom the reader of a settings file tells what it finds, in the order of the file.
struct YamlVisitor {
  std::function<void(const YamlSetting& setting)> setting;
  // The file as a whole when there is no line, a line as a whole when the key is empty.
  std::function<void(std::optional<int> line, const std::string& key, const std::string& text)>
      mistake;
  // Whether a map under this key nests settings, rather than being the key's value.
  std::function<bool(const std::string& key)> is_prefix;
};

// Reads one YAML document of at most 1 MiB. Mistakes never quote values: somebody may have put a
// secret there.
void read_yaml_settings(const std::string& path, const YamlVisitor& visitor);

}  // namespace gitops
