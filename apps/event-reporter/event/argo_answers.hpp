#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"
#include "event-reporter/event/document.hpp"

// Argo CD's two responses about an application, indexed by ResourceId::identity(). Views into a
// response stay valid when the object that read it moves.
namespace gitops::reporter {

// The response of resource-tree: the live objects and their parents.
class TreeView {
 public:
  // Reads a response. Fails when it is no JSON object. Returns false when it is not one of
  // resource-tree.
  Result<bool> read(std::string_view answer);

  // Returns the node of the object; absent when the tree has none.
  [[nodiscard]] JsonView find(const std::string& identity) const;
  // Returns the nodes below the object in breadth-first order, each once.
  [[nodiscard]] std::vector<JsonView> descendants(const std::string& identity) const;

 private:
  Document document_;
  std::vector<JsonView> nodes_;
  std::unordered_map<std::string, std::size_t> by_identity_;
  std::unordered_map<std::string, std::vector<std::size_t>> children_;  // by the parent's identity
};

// The response of managed-resources: desired and live manifests.
class ManagedView {
 public:
  // Reads a response. Fails when it is no JSON object. Returns false when it is not one of
  // managed-resources.
  Result<bool> read(std::string_view answer);

  // JSON texts with Secret values masked; empty when there is no such manifest.
  struct States {
    std::string_view desired;
    std::string_view live;
  };
  [[nodiscard]] std::optional<States> find(const std::string& identity) const;

 private:
  std::string_view masked(std::string_view manifest);

  Document document_;
  std::unordered_map<std::string, States> by_identity_;
  std::deque<std::string> masked_;  // the manifests of Secrets
};

}  // namespace gitops::reporter
