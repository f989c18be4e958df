#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/graphql/resolvers.hpp"

namespace gitops::app_proxy {

// A feature that a runtime may lack. Settings at its start decide it.
enum class Feature {
  git_integrations,  // needs access to the runtime's cluster, where they are stored
  commits,           // needs a folder for clones
  clusters,          // needs access to the runtime's cluster
  rollouts,          // needs the same
  applications,      // needs Argo CD
  workflows,         // needs Argo Workflows
  logs,
};

// Error of a field that needs a feature which the runtime lacks. Pure.
Error not_available(Feature feature);

// A pointer to an object of a feature; null when the runtime lacks the feature.
template <Feature kFeature, class T>
class FeaturePart {
 public:
  FeaturePart() = default;
  FeaturePart(T* part) : part_(part) {}  // null: the runtime lacks the feature

  [[nodiscard]] explicit operator bool() const { return part_ != nullptr; }
  [[nodiscard]] T& operator*() const { return *part_; }
  [[nodiscard]] T* operator->() const { return part_; }

 private:
  T* part_ = nullptr;
};

// Marks a part as optional for a resolver, which then gets the FeaturePart itself.
template <class Part>
struct IfThere {
  Part part;
};
template <class Part>
IfThere<Part> if_there(Part part) {
  return {std::move(part)};
}

// A resolver with its parts, and the features that they need.
template <class Function>
struct Bound {
  Function function;
  std::vector<Feature> needs;
  std::optional<Error> missing;  // of the first missing feature
};

namespace detail {

template <Feature feature, class T>
T& argument(const FeaturePart<feature, T>& part) {
  return *part;
}
template <class Part>
Part argument(const IfThere<Part>& given) {
  return given.part;
}
template <class T>
T& argument(const std::reference_wrapper<T>& value) {
  return value.get();
}

template <class Function, Feature feature, class T>
void note(Bound<Function>& bound, const FeaturePart<feature, T>& part) {
  bound.needs.push_back(feature);
  if (!part && !bound.missing) bound.missing = not_available(feature);
}
template <class Function, class Other>
void note(Bound<Function>&, const Other&) {}

}  // namespace detail

// Binds a resolver to its first arguments: a FeaturePart, which the resolver takes by reference and
// which its row requires; if_there() of one; std::cref() of another object. The row's guard rejects
// calls while a part is missing.
template <class Resolver, class... Args>
auto bound(Resolver resolver, Args... parts) {
  auto function = [resolver, parts...](graphql::Call& call) {
    return resolver(detail::argument(parts)..., call);
  };
  Bound<decltype(function)> made{.function = std::move(function), .needs = {}, .missing = {}};
  (detail::note(made, parts), ...);
  return made;
}

}  // namespace gitops::app_proxy
