#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <simdjson.h>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"

// Argo CD's two answers about an application, indexed by ResourceId::identity(). Views into an
// answer stay valid when the object that read it moves.
namespace gitops::reporter {

// The resource tree: what lives in the cluster, and what belongs to what.
class TreeView {
 public:
  // Fails when the answer is no JSON object.
  Result<void> read(std::string_view answer);

  // The node; absent when the tree has none.
  [[nodiscard]] JsonView find(const std::string& identity) const;
  // Every node below it, in breadth-first order, each once.
  [[nodiscard]] std::vector<JsonView> descendants(const std::string& identity) const;

 private:
  std::unique_ptr<simdjson::dom::parser> parser_ = std::make_unique<simdjson::dom::parser>();
  std::vector<JsonView> nodes_;
  std::unordered_map<std::string, std::size_t> by_identity_;
  std::unordered_map<std::string, std::vector<std::size_t>> children_;  // by the parent's identity
};

// managed-resources: the manifests, as they should be and as they are.
class ManagedView {
 public:
  // Fails when the answer is no JSON object.
  Result<void> read(std::string_view answer);

  // JSON text, Secret values masked; empty when there is no such state.
  struct States {
    std::string desired;
    std::string live;
  };
  [[nodiscard]] std::optional<States> find(const std::string& identity) const;

 private:
  std::unique_ptr<simdjson::dom::parser> parser_ = std::make_unique<simdjson::dom::parser>();
  std::unordered_map<std::string, JsonView> by_identity_;
};

}  // namespace gitops::reporter
