#include "doubles/argocd_objects.hpp"

#include "common/core/encoding.hpp"

namespace gitops::test {

int replicas_of(const nlohmann::json& object) {
  return value_at(object, "/spec/replicas", 1);
}

nlohmann::json images_of(const nlohmann::json& object) {
  nlohmann::json images = nlohmann::json::array();
  for (const auto& container :
       value_at(object, "/spec/template/spec/containers", nlohmann::json::array())) {
    if (container.contains("image")) images.push_back(container["image"]);
  }
  return images;
}

std::string hex8(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (auto hash = fnv1a_32(text); out.size() < 8; hash >>= 4) out += kHex[hash & 15];
  return out;
}

}  // namespace gitops::test
