#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// Properties of managed objects that both parts of the Argo CD double use.
namespace gitops::test {

// The value at a JSON pointer; `otherwise` when it or the object is missing.
template <class T>
T value_at(const nlohmann::json& object, const char* pointer, T otherwise) {
  return object.is_object() ? object.value(nlohmann::json::json_pointer(pointer), otherwise)
                            : otherwise;
}

// Replicas of a Deployment (1 when unset), and the images of its containers.
int replicas_of(const nlohmann::json& object);
nlohmann::json images_of(const nlohmann::json& object);

// A hash of the text as eight hex digits.
std::string hex8(std::string_view text);

inline constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

}  // namespace gitops::test
