#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/graphql/resolvers.hpp"

namespace gitops::app_proxy {

// An ability that a runtime may lack. Its settings decide about it at its start.
enum class Feature {
  git_integrations,  // access to the runtime's cluster, where they are stored
  commits,           // a folder for clones
  clusters,          // access to the runtime's cluster
  rollouts,          // the same
  applications,      // an Argo CD
  workflows,         // Argo Workflows
  logs,
};

// What a field says that needs a feature which the runtime lacks. Pure.
Error not_available(Feature feature);

// An object that a feature consists of, or nothing when the runtime lacks the feature.
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

// A part that a resolver does without when the runtime lacks it: it gets the FeaturePart.
template <class Part>
struct IfThere {
  Part part;
};
template <class Part>
IfThere<Part> if_there(Part part) {
  return {std::move(part)};
}

// A resolver with its parts, and the features that these need.
template <class Function>
struct Bound {
  Function function;
  std::vector<Feature> needs;
  std::optional<Error> missing;  // of the first feature that the runtime lacks
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

// Binds a resolver to its first arguments: a FeaturePart, which the resolver takes by reference and which its
// row needs; if_there() of one; std::cref() of another object. The row's guard lets no call through while a part is
// missing.
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
