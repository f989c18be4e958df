#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/graphql/ast.hpp"
#include "common/graphql/rules/context.hpp"
#include "common/graphql/schema.hpp"

namespace gitops::graphql::rules {

// Section 5.3.2, "Field Selection Merging": fields with the same response key must be the same
// field with the same arguments, unless their parents can never be the same object, and their types
// must be compatible. Compares fragments as wholes and each pair once. A budget limits the
// comparisons; when it is used up, the validation ends.
class FieldSelectionMerging {
 public:
  struct Conflict {
    std::string key;
    std::string reason;
    std::vector<std::uint32_t> first;  // offsets of the fields on each side
    std::vector<std::uint32_t> second;

    [[nodiscard]] std::string message() const;
  };

  FieldSelectionMerging(const Schema& schema, const Document& document)
      : schema_(schema), document_(document) {}

  // Reports the conflicts within one selection set, including nested sets that merge with a field
  // of this one.
  void check(ValidationContext& context, const SelectionSet& set, const NamedType* parent);

 private:
  struct FieldUse {
    const NamedType* parent = nullptr;
    const Selection* node = nullptr;
    const Field* field = nullptr;
  };
  // Fields of a selection set by response key, in order, and the fragments that it spreads.
  struct Collection {
    std::vector<std::pair<std::string_view, std::vector<FieldUse>>> groups;
    std::unordered_map<std::string_view, std::size_t> by_key;
    std::vector<std::string_view> fragments;
    std::unordered_map<std::string_view, bool> compared;  // fragments, by exclusive or not
  };

  std::vector<Conflict> conflicts(const SelectionSet& set, const NamedType* parent);
  Collection& collect(const SelectionSet& set, const NamedType* parent);
  void collect_into(Collection& into, const SelectionSet& set, const NamedType* parent);
  Collection* collect_fragment(std::string_view name);

  void between(std::vector<Conflict>& found, bool exclusive, Collection& a, Collection& b);
  void fields_and_fragment(std::vector<Conflict>& found, bool exclusive, Collection& fields,
                           std::string_view fragment);
  void fragments(std::vector<Conflict>& found, bool exclusive, std::string_view a,
                 std::string_view b);
  std::optional<Conflict> compare(bool exclusive, std::string_view key, const FieldUse& a,
                                  const FieldUse& b);
  bool same_arguments(const Selection& a, const Selection& b);
  const std::string& canonical(const Literal& literal);
  bool types_conflict(const Type& a, const Type& b);
  [[nodiscard]] bool aborted() const { return budget_ < 0; }
  bool spend(long cost) { return (budget_ -= cost) >= 0; }

  const Schema& schema_;
  const Document& document_;
  long budget_ = 500'000;
  std::map<std::pair<const NamedType*, const SelectionSet*>, std::unique_ptr<Collection>>
      collected_;
  std::map<std::pair<std::string_view, std::string_view>, bool> compared_;
  std::unordered_map<const Literal*, std::string> canonical_;
};

}  // namespace gitops::graphql::rules
