#include "common/graphql/limits.hpp"

#include <algorithm>
#include <unordered_map>

namespace gitops::graphql {
namespace {

ResponseError exceeded(std::string_view what, std::string_view code, std::size_t limit) {
  return coded_error("The document has " + std::string(what) + " than " + std::to_string(limit) +
                         ", the limit of this server.",
                     code, 400);
}

// Counts of a document's elements, fragments counted once.
struct Counts {
  std::size_t aliases = 0;
  std::size_t fragments = 0;
  std::size_t directives = 0;
  std::size_t breadth = 0;

  void add(const SelectionSet& set) {
    breadth = std::max(breadth, set.selections.size());
    for (const Selection& selection : set.selections) {
      directives += selection.directives.size();
      if (!selection.alias.text.empty()) ++aliases;
      if (selection.kind == Selection::Kind::spread) ++fragments;
      if (selection.selection_set) add(*selection.selection_set);
    }
  }
};

// Size of an operation with its fragments expanded. Each fragment is measured once.
class Expansion {
 public:
  explicit Expansion(const Document& document) {
    for (const Definition& definition : document.definitions()) {
      if (definition.fragment)
        fragments_[definition.fragment->name.text].fragment = definition.fragment;
    }
  }

  struct Size {
    std::size_t depth = 0;
    std::size_t fields = 0;
  };

  Size measure(const SelectionSet& set) {
    Size size;
    for (const Selection& selection : set.selections) {
      Size part;
      if (selection.kind == Selection::Kind::spread) {
        part = measure_fragment(selection.name.text);
      } else if (selection.selection_set) {
        part = measure(*selection.selection_set);
      }
      if (selection.kind == Selection::Kind::field) {
        ++part.depth;
        ++part.fields;
      }
      size.depth = std::max(size.depth, part.depth);
      size.fields = std::min(size.fields + part.fields, kMany);
    }
    return size;
  }

 private:
  static constexpr std::size_t kMany = 1'000'000'000;
  struct Known {
    const Fragment* fragment = nullptr;
    bool is_measured = false;
    bool is_open = false;  // in a cycle, which the validator refuses
    Size size;
  };

  Size measure_fragment(std::string_view name) {
    const auto found = fragments_.find(name);
    if (found == fragments_.end() || found->second.is_open) return {};
    Known& known = found->second;
    if (!known.is_measured) {
      known.is_open = true;
      known.size = measure(*known.fragment->selection_set);
      known.is_open = false;
      known.is_measured = true;
    }
    return known.size;
  }

  std::unordered_map<std::string_view, Known> fragments_;
};

}  // namespace

std::optional<ResponseError> check_limits(const Document& document, const Limits& limits) {
  Counts counts;
  for (const Definition& definition : document.definitions()) {
    if (const Operation* operation = definition.operation) {
      counts.directives += operation->directives.size();
      for (const VariableDefinition& variable : operation->variables) {
        counts.directives += variable.directives.size();
      }
      counts.add(*operation->selection_set);
    }
    if (const Fragment* fragment = definition.fragment) {
      ++counts.fragments;
      counts.directives += fragment->directives.size();
      counts.add(*fragment->selection_set);
    }
  }
  if (counts.aliases > limits.max_aliases) {
    return exceeded("more aliases", "TOO_MANY_ALIASES", limits.max_aliases);
  }
  if (counts.fragments > limits.max_fragments) {
    return exceeded("more fragments and spreads", "TOO_MANY_FRAGMENTS", limits.max_fragments);
  }
  if (counts.directives > limits.max_directives) {
    return exceeded("more directives", "TOO_MANY_DIRECTIVES", limits.max_directives);
  }
  if (counts.breadth > limits.max_breadth) {
    return exceeded("more selections next to each other", "QUERY_TOO_BROAD", limits.max_breadth);
  }
  Expansion expansion(document);
  for (const Definition& definition : document.definitions()) {
    if (!definition.operation) continue;
    const auto size = expansion.measure(*definition.operation->selection_set);
    if (size.depth > limits.max_depth) {
      return exceeded("more fields within each other", "QUERY_TOO_DEEP", limits.max_depth);
    }
    if (size.fields > limits.max_fields) {
      return exceeded("more fields, with its fragments put in,", "QUERY_TOO_COMPLEX",
                      limits.max_fields);
    }
  }
  return std::nullopt;
}

}  // namespace gitops::graphql
