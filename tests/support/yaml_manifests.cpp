#include "support/yaml_manifests.hpp"

#include <cstdint>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

namespace gitops::test {

namespace {

using Json = nlohmann::json;

Json scalar(const YAML::Node& node) {
  const auto& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  const bool number = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  std::int64_t whole = 0;
  if (number && YAML::convert<std::int64_t>::decode(node, whole)) return whole;
  double real = 0;
  if (number && YAML::convert<double>::decode(node, real)) return real;
  return text;
}

Json to_json(const YAML::Node& node) {
  if (node.IsScalar()) return scalar(node);
  if (node.IsSequence()) {
    Json array = Json::array();
    for (const auto& item : node) array.push_back(to_json(item));
    return array;
  }
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) {
      const auto& key = entry.first.Scalar();
      if (object.contains(key)) {
        throw YAML::Exception(entry.first.Mark(), "the key " + key + " stands there twice");
      }
      object[key] = to_json(entry.second);
    }
    return object;
  }
  return nullptr;
}

}  // namespace

Result<std::vector<Json>> parse_manifests(const std::string& yaml) {
  std::vector<Json> documents;
  try {
    for (const auto& document : YAML::LoadAll(yaml)) {
      auto json = to_json(document);
      if (!json.is_null()) documents.push_back(std::move(json));
    }
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::invalid_data, error.what());
  }
  return documents;
}

}  // namespace gitops::test
