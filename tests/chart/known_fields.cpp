#include "chart/known_fields.hpp"

#include <map>
#include <stdexcept>

#include "peers/peer_programs.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {

namespace {

using nlohmann::json;

// The API groups that Kubernetes itself has, as its Go client names them.
std::string group_of(const json& object) {
  static const std::map<std::string, std::string> kGroups{{"", "core"},
                                                          {"apps", "apps"},
                                                          {"autoscaling", "autoscaling"},
                                                          {"batch", "batch"},
                                                          {"coordination.k8s.io", "coordination"},
                                                          {"networking.k8s.io", "networking"},
                                                          {"policy", "policy"},
                                                          {"rbac.authorization.k8s.io", "rbac"}};
  const std::string version = object.at("apiVersion");
  const auto slash = version.find('/');
  const auto found =
      kGroups.find(slash == std::string::npos ? std::string() : version.substr(0, slash));
  return found == kGroups.end() ? std::string() : found->second;
}

std::filesystem::path source(std::string_view peer) {
  return peers_folder() / "share" / peer / "internal.go";
}

// A field of these types may have any value.
bool is_free(const std::string& scalar) {
  return scalar == "untyped";
}

bool has_scalar_type(const json& value, const std::string& scalar) {
  if (is_free(scalar)) return !value.is_structured();
  if (scalar == "string") return value.is_string();
  if (scalar == "numeric") return value.is_number();
  return scalar == "boolean" && value.is_boolean();
}

}  // namespace

std::optional<std::string> KnownFields::missing(std::string_view peer) {
  if (std::filesystem::exists(source(peer))) return std::nullopt;
  return std::string(peer) + " is not there; ./dev peers brings it";
}

KnownFields::KnownFields(std::string_view peer) {
  const auto text = read_file(source(peer));
  const auto begin = text.find("`types:");
  const auto end = text.find('`', begin + 1);
  if (begin == std::string::npos || end == std::string::npos) {
    throw std::runtime_error("no types in " + source(peer).string());
  }
  const auto documents = parse_manifests(text.substr(begin + 1, end - begin - 1));
  if (!documents || documents->size() != 1) throw std::runtime_error("types that are no YAML");
  for (const auto& type : documents->front().at("types")) {
    const std::string name = type.at("name");
    types_[name] = type;
    types_[name].erase("name");
    if (!types_[name].contains("map")) continue;
    json fields = json::object();
    for (const auto& field : types_[name]["map"].value("fields", json::array())) {
      fields[field.at("name").get<std::string>()] = field.at("type");
    }
    types_[name]["map"]["fields"] = std::move(fields);
  }
}

bool KnownFields::covers(const json& object) {
  return !group_of(object).empty();
}

std::vector<std::string> KnownFields::mistakes(const json& object) const {
  const std::string version = object.at("apiVersion");
  const std::string kind = object.at("kind");
  const auto name =
      "io.k8s.api." + group_of(object) + "." + version.substr(version.find('/') + 1) + "." + kind;
  if (!types_.contains(name)) return {"no kind " + kind + " in " + version};
  std::vector<std::string> found;
  check(object, types_.at(name), kind, found);
  return found;
}

void KnownFields::check(const json& value, const json& type, const std::string& path,
                        std::vector<std::string>& found) const {
  if (value.is_null()) return;  // as if it were not there
  if (type.contains("namedType")) {
    const std::string name = type.at("namedType");
    // What the API server stores without looking into it.
    if (name.starts_with("__untyped")) return;
    return check(value, types_.at(name), path, found);
  }
  if (type.contains("scalar")) {
    const std::string scalar = type.at("scalar");
    if (!has_scalar_type(value, scalar)) {
      found.push_back(path + " is no " + scalar + ": " + value.dump());
    }
    return;
  }
  if (type.contains("list")) {
    if (!value.is_array()) return found.push_back(path + " is no list");
    for (std::size_t i = 0; i < value.size(); ++i) {
      check(value[i], type.at("list").at("elementType"), path + "[" + std::to_string(i) + "]",
            found);
    }
    return;
  }
  check_map(value, type.at("map"), path, found);
}

void KnownFields::check_map(const json& value, const json& map, const std::string& path,
                            std::vector<std::string>& found) const {
  if (!value.is_object()) return found.push_back(path + " is no map");
  const auto fields = map.find("fields");
  for (const auto& [key, child] : value.items()) {
    const auto here = path + "." + key;
    if (fields != map.end() && fields->contains(key)) {
      check(child, fields->at(key), here, found);
    } else if (map.contains("elementType")) {
      check(child, map.at("elementType"), here, found);
    } else {
      found.push_back(here + " is not known");
    }
  }
}

}  // namespace gitops::test
