#include "doubles/kube_selectors.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/core/text.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;

std::string word(std::string_view text) {
  return std::string(trimmed(text));
}

// Splits at commas that are not inside parentheses.
std::vector<std::string> split_terms(std::string_view text) {
  std::vector<std::string> terms;
  std::string term;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) {
      terms.push_back(word(term));
      term.clear();
    } else {
      term += c;
    }
  }
  terms.push_back(word(term));
  std::erase(terms, std::string());
  return terms;
}

}  // namespace

std::expected<LabelSelector, std::string> LabelSelector::parse(std::string_view text) {
  LabelSelector selector;
  for (const auto& term : split_terms(text)) {
    Term parsed;
    if (const auto open = term.find('('); open != std::string::npos) {
      const auto words = word(term.substr(0, open));
      const auto space = words.rfind(' ');
      if (space == std::string::npos || !term.ends_with(')')) {
        return std::unexpected("unable to parse requirement: " + term);
      }
      const auto op = words.substr(space + 1);
      if (op != "in" && op != "notin") {
        return std::unexpected("unable to parse requirement: found '" + op +
                               "', expected: in, notin, =, ==, !=, gt, lt");
      }
      parsed.key = word(words.substr(0, space));
      parsed.wanted = op == "in";
      parsed.values = split_terms(std::string_view(term).substr(open + 1, term.size() - open - 2));
    } else if (const auto differs = term.find("!="); differs != std::string::npos) {
      parsed = {word(term.substr(0, differs)), {word(term.substr(differs + 2))}, false};
    } else if (const auto equals = term.find('='); equals != std::string::npos) {
      const auto value = term.find_first_not_of('=', equals);
      parsed = {word(term.substr(0, equals)),
                {value == std::string::npos ? std::string() : word(term.substr(value))},
                true};
    } else {
      parsed.wanted = !term.starts_with('!');
      parsed.key = word(std::string_view(term).substr(parsed.wanted ? 0 : 1));
    }
    if (parsed.key.empty() || parsed.key.contains(' ')) {
      return std::unexpected("unable to parse requirement: " + term);
    }
    selector.terms_.push_back(std::move(parsed));
  }
  return selector;
}

bool LabelSelector::matches(const Json& object) const {
  if (terms_.empty()) return true;
  const auto labels = object["metadata"].value("labels", Json::object());
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const bool present = labels.contains(term.key);
    if (term.values.empty()) return present == term.wanted;
    const auto value = present ? labels[term.key].get<std::string>() : std::string();
    const bool equal = present && std::ranges::find(term.values, value) != term.values.end();
    return equal == term.wanted;
  });
}

std::expected<FieldSelector, std::string> FieldSelector::parse(std::string_view text,
                                                               const KubeType& type) {
  FieldSelector selector;
  for (const auto& term : split_terms(text)) {
    const auto equals = term.find('=');
    if (equals == std::string::npos || equals == 0) {
      return std::unexpected("invalid selector: '" + term + "'; can't understand '" + term + "'");
    }
    const bool wanted = term[equals - 1] != '!';
    auto path = term.substr(0, wanted ? equals : equals - 1);
    const auto value = term.find_first_not_of('=', equals);
    const auto& kind = type.resource.kind;
    const bool known =
        path == "metadata.name" || path == "metadata.namespace" ||
        (kind == "Pod" && (path == "spec.nodeName" || path == "status.phase")) ||
        (kind == "Namespace" && path == "status.phase") || (kind == "Secret" && path == "type") ||
        (kind == "Event" && (path == "involvedObject.kind" || path == "involvedObject.name"));
    if (!known) return std::unexpected("field label not supported: " + path);
    selector.terms_.push_back(
        {std::move(path), value == std::string::npos ? std::string() : term.substr(value), wanted});
  }
  return selector;
}

bool FieldSelector::matches(const Json& object) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    return (text_at(object, term.path) == term.value) == term.wanted;
  });
}

std::string text_at(const nlohmann::json& object, std::string_view path) {
  const nlohmann::json* at = &object;
  while (!path.empty()) {
    const auto dot = std::min(path.find('.'), path.size());
    const auto key = std::string(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
    if (!at->is_object() || !at->contains(key)) return {};
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : std::string();
}

}  // namespace gitops::test
