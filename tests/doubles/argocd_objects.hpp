#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// What both halves of the Argo CD double know of the objects it manages.
namespace gitops::test {

// The value at a pointer, also when there is no object at all.
template <class T>
T value_at(const nlohmann::json& object, const char* pointer, T otherwise) {
  return object.is_object() ? object.value(nlohmann::json::json_pointer(pointer), otherwise)
                            : otherwise;
}

// Of a Deployment: as specified, else 1; and the images of its containers.
int replicas_of(const nlohmann::json& object);
nlohmann::json images_of(const nlohmann::json& object);

// Eight hex digits that stand for a text.
std::string hex8(std::string_view text);

inline constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

}  // namespace gitops::test
