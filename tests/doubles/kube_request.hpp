#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doubles/double_server.hpp"
#include "doubles/fake_kube_store.hpp"
#include "doubles/kube_selectors.hpp"
#include "k8s-client/resource.hpp"

// What a request to the Kubernetes API asks for.
namespace gitops::test {

// What its path and method name.
struct KubeTarget {
  const KubeType* type = nullptr;
  k8s::ObjectKey key;  // name empty: the collection
  std::string subresource;
  std::string verb;  // as in rules of RBAC; empty for a method without one
};
// Nothing when the server has no such path. `path` names at least a type.
std::optional<KubeTarget> find_target(const FakeKubeStore& store, const http::Request& request,
                                      const std::vector<std::string>& path, const Query& query);

struct Selectors {
  LabelSelector labels;
  FieldSelector fields;
  [[nodiscard]] bool matches(const nlohmann::json& object) const {
    return labels.matches(object) && fields.matches(object);
  }
};
std::expected<Selectors, KubeFailure> parse_selectors(const Query& query, const KubeType& type);

// A resourceVersion; nothing when it is no number.
std::optional<std::uint64_t> parse_version(std::string_view text);
// A limit or a number of seconds; 0 when it is no number.
std::size_t parse_size(const std::string& text);

}  // namespace gitops::test
