#pragma once

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "control-plane/accounts/visibility.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {

// Applications and VIEW rules with attributes of a few values each, so that many of them meet.
class RandomRules {
 public:
  explicit RandomRules(unsigned seed) : random_(seed) {}

  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  std::string one_of(std::string_view kind, int count) {
    return std::string(kind) + std::to_string(below(count));
  }

  nlohmann::json application(int number) {
    auto application = application_of("app" + std::to_string(number));
    auto& metadata = application["metadata"];
    metadata["namespace"] = one_of("ns", 3);
    auto& destination = application["spec"]["destination"];
    destination = {{"namespace", "x"}};
    destination[below(4) == 0 ? "name" : "server"] = one_of("c", 3);
    for (int label = 0; label < 3; ++label) {
      if (below(2) == 0) metadata["labels"][one_of("key", 3)] = one_of("v", 3);
    }
    if (below(2) == 0) {
      metadata["annotations"]["argocd.argoproj.io/tracking-id"] =
          one_of("gs", 2) + ":argoproj.io/Application:argocd/x";
    }
    if (below(3) == 0) metadata["annotations"]["codefresh.io/product"] = one_of("p", 2);
    if (below(3) == 0) metadata["labels"]["codefresh.io/product"] = one_of("p", 2);
    return application;
  }

  AbacRule::Attribute attribute() {
    switch (below(7)) {
      case 0:
        return {.name = "RUNTIME", .key = {}, .value = one_of("rt", 3)};
      case 1:
        return {.name = "NAMESPACE", .key = {}, .value = one_of("ns", 4)};
      case 2:
        return {.name = "CLUSTER", .key = {}, .value = one_of("c", 4)};
      case 3:
        return {.name = "GIT_SOURCE", .key = {}, .value = one_of("gs", 3)};
      case 4:
        return {.name = "PRODUCT_NAME", .key = {}, .value = one_of("p", 3)};
      case 5:
        return {.name = "LABEL", .key = one_of("key", 3), .value = one_of("v", 3)};
      default:
        break;
    }
    const auto text = one_of("key", 4);
    return {
        .name = "LABEL", .key = {}, .value = below(2) == 0 ? text : text + "=" + one_of("v", 3)};
  }
  std::vector<AbacRule> rules() {
    std::vector<AbacRule> rules;
    for (int count = 1 + below(3); count > 0; --count) {
      AbacRule rule{.id = "r",
                    .entity_type = std::string(kApplicationEntity),
                    .teams = {one_of("team", 2)},
                    .tags = {},
                    .actions = {"VIEW"},
                    .attributes = {}};
      for (int attributes = 1 + below(4); attributes > 0; --attributes) {
        rule.attributes.push_back(attribute());
      }
      rules.push_back(std::move(rule));
    }
    return rules;
  }

 private:
  std::mt19937 random_;
};

}  // namespace gitops::control_plane_server
