#include "common/graphql/rules/context.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/graphql/print.hpp"
#include "common/graphql/rules/typed_walk.hpp"

namespace gitops::graphql::rules {
namespace {

constexpr long kFragmentWork = 50'000;  // limit of spreads and variables followed

// Records each use of a variable.
class UsageCollector : public NoVisits {
 public:
  explicit UsageCollector(std::vector<VariableUsage>& usages) : usages_(usages) {}

  void variable(const Literal& literal, const Type* type, bool has_default) {
    usages_.push_back({&literal, type, has_default});
  }

 private:
  std::vector<VariableUsage>& usages_;
};

}  // namespace

ValidationContext::ValidationContext(const Schema& schema, const Document& document,
                                     const ValidationOptions& options)
    : schema_(schema), document_(document), options_(options), budget_(kFragmentWork) {
  for (const Definition& definition : document.definitions()) {
    if (definition.fragment) fragments_[definition.fragment->name.text] = definition.fragment;
    if (definition.operation) ++operations_;
  }
}

void ValidationContext::report(std::string message, std::initializer_list<std::uint32_t> places) {
  report(std::move(message), std::vector<std::uint32_t>(places));
}

void ValidationContext::report(std::string message, const std::vector<std::uint32_t>& places) {
  if (aborted_) return;
  if (errors_.size() >= options_.max_errors) {
    return abort("Too many validation errors, error limit reached. Validation aborted.");
  }
  if (options_.max_message != 0 && message.size() > options_.max_message) {
    std::size_t end = 0;
    while (end < options_.max_message) {
      end += std::max<std::size_t>(utf8_length(std::string_view(message).substr(end)), 1);
    }
    message.resize(end);
    message += "...";
  }
  ResponseError& error = errors_.emplace_back();
  error.message = std::move(message);
  for (const std::uint32_t at : places) error.locations.push_back(document_.locate(at));
}

void ValidationContext::abort(std::string message) {
  if (aborted_) return;
  aborted_ = true;
  errors_.push_back({std::move(message)});
}

void ValidationContext::spend(std::size_t cost) {
  budget_ -= static_cast<long>(cost);
  if (budget_ < 0) abort("Validation aborted.");
}

std::string ValidationContext::suggestion(std::string_view name,
                                          const std::vector<std::string_view>& known) const {
  return options_.hides_names ? "" : did_you_mean(suggestions(name, known));
}

const Fragment* ValidationContext::fragment(std::string_view name) const {
  const auto found = fragments_.find(name);
  return found == fragments_.end() ? nullptr : found->second;
}

const std::vector<const Selection*>& ValidationContext::spreads(const SelectionSet& set) {
  const auto [place, is_new] = spreads_.try_emplace(&set);
  if (!is_new) return place->second;
  std::vector<const SelectionSet*> open{&set};
  while (!open.empty()) {
    const SelectionSet* next = open.back();
    open.pop_back();
    for (const Selection& selection : next->selections) {
      if (selection.kind == Selection::Kind::spread) {
        place->second.push_back(&selection);
      } else if (selection.selection_set) {
        open.push_back(selection.selection_set);
      }
    }
  }
  return place->second;
}

std::vector<const Fragment*> ValidationContext::reached(
    const std::vector<const SelectionSet*>& sets) {
  std::vector<std::string_view> names;
  std::unordered_set<std::string_view> known;
  const auto add = [&](const SelectionSet& set) {
    for (const Selection* spread : spreads(set)) {
      if (known.insert(spread->name.text).second) names.push_back(spread->name.text);
    }
  };
  for (const SelectionSet* set : sets) add(*set);
  spend(names.size());
  std::vector<const Fragment*> fragments;
  for (std::size_t i = 0; i < names.size() && !aborted_; ++i) {
    const Fragment* found = fragment(names[i]);
    if (!found) continue;
    fragments.push_back(found);
    spend(spreads(*found->selection_set).size());
    add(*found->selection_set);
  }
  return fragments;
}

OperationVariables ValidationContext::variables_of(const Operation& operation) {
  OperationVariables made;
  const auto add = [&](const std::vector<VariableUsage>& own) {
    spend(own.size());
    for (const VariableUsage& usage : own) made.usages.push_back(&usage);
  };
  add(usages(operation));
  for (const Fragment* one : reached({operation.selection_set})) {
    if (!aborted_) add(usages(*one));
  }
  for (const VariableDefinition& variable : operation.variables) {
    made.defined[variable.name.text] = &variable;
  }
  return made;
}

const std::vector<VariableUsage>& ValidationContext::usages(const Operation& operation) {
  const auto [place, is_new] = usages_.try_emplace(&operation);
  if (is_new) {
    UsageCollector collector(place->second);
    TypedWalk(schema_, arena_, collector).body(operation);
  }
  return place->second;
}

const std::vector<VariableUsage>& ValidationContext::usages(const Fragment& fragment) {
  const auto [place, is_new] = usages_.try_emplace(&fragment);
  if (is_new) {
    UsageCollector collector(place->second);
    TypedWalk(schema_, arena_, collector).body(fragment);
  }
  return place->second;
}

}  // namespace gitops::graphql::rules
