#include "event-reporter/event/digest.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

bool is_ignored_annotation(std::string_view key) {
  return key == "kubectl.kubernetes.io/last-applied-configuration" ||
         key == "argocd.argoproj.io/refresh" || key == "argocd.argoproj.io/hydrate";
}

void add_metadata(Hasher& hasher, std::string_view metadata) {
  for_each_member(metadata, [&hasher](std::string_view key, std::string_view value) {
    if (key == "resourceVersion" || key == "generation" || key == "generateName" ||
        key == "managedFields") {
      return true;
    }
    if (key == "annotations") {
      for_each_member(value, [&hasher](std::string_view name, std::string_view text) {
        if (!is_ignored_annotation(name)) {
          hasher.add(name);
          hasher.add(text);
        }
        return true;
      });
      return true;
    }
    hasher.add(key);
    hasher.add(value);
    return true;
  });
}

// Adds the text of conditions without the values of these members.
void add_conditions(Hasher& hasher, std::string_view conditions,
                    std::initializer_list<std::string_view> times) {
  while (true) {
    auto first = std::string_view::npos;
    std::size_t size = 0;
    for (const auto time : times) {
      const auto at = conditions.find(time);
      if (at >= first) continue;
      first = at;
      size = time.size();
    }
    if (first == std::string_view::npos) break;
    hasher.add(conditions.substr(0, first));
    const auto end = conditions.find('"', first + size);
    if (end == std::string_view::npos) break;
    conditions.remove_prefix(end + 1);
  }
  hasher.add(conditions);
}

void add_status(Hasher& hasher, std::string_view status,
                std::initializer_list<std::string_view> ignored,
                std::initializer_list<std::string_view> times) {
  for_each_member(status, [&](std::string_view key, std::string_view value) {
    if (std::ranges::find(ignored, key) != ignored.end()) return true;
    hasher.add(key);
    if (key == "conditions") {
      add_conditions(hasher, value, times);
    } else {
      hasher.add(value);
    }
    return true;
  });
}

}  // namespace

Digest change_digest(std::string_view application) {
  Hasher hasher;
  for_each_member(application, [&hasher](std::string_view key, std::string_view value) {
    hasher.add(key);
    if (key == "metadata") {
      add_metadata(hasher, value);
    } else if (key == "status") {
      add_status(hasher, value, {"reconciledAt", "observedAt"}, {R"("lastTransitionTime":")"});
    } else {
      hasher.add(value);
    }
    return true;
  });
  return hasher.finish();
}

Digest object_digest(std::string_view object) {
  Hasher hasher;
  for_each_member(object, [&hasher](std::string_view key, std::string_view value) {
    if (key == "apiVersion" || key == "kind") return true;
    hasher.add(key);
    if (key == "metadata") {
      add_metadata(hasher, value);
    } else if (key == "status") {
      add_status(hasher, value, {"observedGeneration"},
                 {R"("lastTransitionTime":")", R"("lastUpdateTime":")", R"("lastProbeTime":")"});
    } else {
      hasher.add(value);
    }
    return true;
  });
  return hasher.finish();
}

Digest tree_digest(std::string_view tree) {
  std::vector<std::string_view> nodes;
  for_each_member(tree, [&nodes](std::string_view key, std::string_view value) {
    if (key == "nodes") {
      for_each_item(value, [&nodes](std::string_view node) { nodes.push_back(node); });
    }
    return true;
  });
  std::ranges::sort(nodes);
  Hasher hasher;
  for (const auto node : nodes) hasher.add(node);
  return hasher.finish();
}

}  // namespace gitops::reporter
