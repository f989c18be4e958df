#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "doubles/kube_types.hpp"

namespace gitops::test {

// labelSelector: "a=b,c!=d,e in (x,y),f notin (z),g,!h".
class LabelSelector {
 public:
  static std::expected<LabelSelector, std::string> parse(std::string_view text);
  [[nodiscard]] bool matches(const nlohmann::json& object) const;

 private:
  struct Term {
    std::string key;
    std::vector<std::string> values;  // empty: existence
    bool wanted = true;
  };
  std::vector<Term> terms_;
};

// fieldSelector: metadata.name and metadata.namespace of any type; also spec.nodeName and
// status.phase of pods, status.phase of namespaces, type of secrets and involvedObject's kind and name of events.
class FieldSelector {
 public:
  static std::expected<FieldSelector, std::string> parse(std::string_view text,
                                                         const KubeType& type);
  [[nodiscard]] bool matches(const nlohmann::json& object) const;

 private:
  struct Term {
    std::string path;
    std::string value;
    bool wanted = true;
  };
  std::vector<Term> terms_;
};

// The string at a dotted path of an object; empty when there is none.
std::string text_at(const nlohmann::json& object, std::string_view path);

}  // namespace gitops::test
