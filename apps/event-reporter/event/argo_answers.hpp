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

// resource-tree: the live objects and their parents.
class TreeView {
 public:
  // Fails when the answer is no JSON object.
  Result<void> read(std::string_view answer);

  // The node of the object; absent when the tree has none.
  [[nodiscard]] JsonView find(const std::string& identity) const;
  // The nodes below the object in breadth-first order, each once.
  [[nodiscard]] std::vector<JsonView> descendants(const std::string& identity) const;

 private:
  std::unique_ptr<simdjson::dom::parser> parser_ = std::make_unique<simdjson::dom::parser>();
  std::vector<JsonView> nodes_;
  std::unordered_map<std::string, std::size_t> by_identity_;
  std::unordered_map<std::string, std::vector<std::size_t>> children_;  // by the parent's identity
};

// managed-resources: desired and live manifests.
class ManagedView {
 public:
  // Fails when the answer is no JSON object.
  Result<void> read(std::string_view answer);

  // JSON text with Secret values masked; empty when there is no such manifest.
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
