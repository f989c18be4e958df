#include "common/graphql/rules/field_selection_merging.hpp"

#include <algorithm>

#include "common/core/text.hpp"
#include "common/graphql/print.hpp"

namespace gitops::graphql::rules {
namespace {

constexpr std::size_t kMaxText = 1000;  // of one detail in a message
constexpr std::size_t kMaxPlaces = 20;

// Appends a canonical form of a literal: equal values have equal forms.
void append_canonical(std::string& out, const Literal& literal) {
  switch (literal.kind) {
    case LiteralKind::list:
      out += '[';
      for (const Literal& item : literal.items) {
        append_canonical(out, item);
        out += ',';
      }
      out += ']';
      return;
    case LiteralKind::object: {
      std::vector<const LiteralField*> fields;
      for (const LiteralField& field : literal.fields) fields.push_back(&field);
      std::ranges::sort(fields, [](const LiteralField* a, const LiteralField* b) {
        return a->name.text != b->name.text ? a->name.text < b->name.text : a < b;
      });
      out += '{';
      for (const LiteralField* field : fields) {
        (out += field->name.text) += ':';
        append_canonical(out, field->value);
        out += ',';
      }
      out += '}';
      return;
    }
    case LiteralKind::string:
      out += literal.is_block ? 'b' : 's';
      append_quoted(out, literal.text);
      return;
    case LiteralKind::variable:
      out += '$';
      break;
    case LiteralKind::integer:
      out += '#';
      break;
    case LiteralKind::floating:
      out += '~';
      break;
    default:
      break;
  }
  out += literal.text;
}

std::vector<std::uint32_t> places(
    const Selection& node, const std::vector<FieldSelectionMerging::Conflict>& below,
    std::vector<std::uint32_t> FieldSelectionMerging::Conflict::* side) {
  std::vector<std::uint32_t> all{node.at};
  for (const auto& conflict : below) {
    const auto& more = conflict.*side;
    // Truncates the front: the deeper fields come last and are the most specific.
    const std::size_t count = std::min(more.size(), kMaxPlaces - all.size());
    all.insert(all.end(), more.end() - static_cast<std::ptrdiff_t>(count), more.end());
    if (all.size() == kMaxPlaces) break;
  }
  return all;
}

}  // namespace

std::string FieldSelectionMerging::Conflict::message() const {
  return "Fields \"" + shortened(key, kMaxText) + "\" conflict because " + reason +
         ". Use different aliases on the fields to fetch both if this was intentional.";
}

void FieldSelectionMerging::check(ValidationContext& context, const SelectionSet& set,
                                  const NamedType* parent) {
  for (const Conflict& conflict : conflicts(set, parent)) {
    std::vector<std::uint32_t> all = conflict.first;
    all.insert(all.end(), conflict.second.begin(), conflict.second.end());
    context.report(conflict.message(), all);
  }
  if (aborted()) context.abort("Validation aborted.");
}

std::vector<FieldSelectionMerging::Conflict> FieldSelectionMerging::conflicts(
    const SelectionSet& set, const NamedType* parent) {
  std::vector<Conflict> found;
  if (set.selections.size() == 1 && set.selections[0].kind != Selection::Kind::inline_fragment) {
    return found;
  }
  Collection& own = collect(set, parent);
  for (const auto& [key, uses] : own.groups) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for (std::size_t j = i + 1; j < uses.size() && !aborted(); ++j) {
        if (auto conflict = compare(false, key, uses[i], uses[j])) {
          found.push_back(std::move(*conflict));
        }
      }
    }
  }
  if (own.fragments.empty() || (own.groups.empty() && own.fragments.size() == 1)) return found;
  for (std::size_t i = 0; i < own.fragments.size() && !aborted(); ++i) {
    fields_and_fragment(found, false, own, own.fragments[i]);
    for (std::size_t j = i + 1; j < own.fragments.size(); ++j) {
      fragments(found, false, own.fragments[i], own.fragments[j]);
    }
  }
  return found;
}

FieldSelectionMerging::Collection& FieldSelectionMerging::collect(const SelectionSet& set,
                                                                  const NamedType* parent) {
  auto& place = collected_[{parent, &set}];
  if (!place) {
    place = std::make_unique<Collection>();
    collect_into(*place, set, parent);
  }
  return *place;
}

void FieldSelectionMerging::collect_into(Collection& into, const SelectionSet& set,
                                         const NamedType* parent) {
  for (const Selection& selection : set.selections) {
    switch (selection.kind) {
      case Selection::Kind::field: {
        const bool has_fields = parent && parent->kind != TypeKind::union_type;
        const auto [place, is_new] =
            into.by_key.emplace(selection.response_key(), into.groups.size());
        if (is_new) into.groups.emplace_back(selection.response_key(), std::vector<FieldUse>());
        into.groups[place->second].second.push_back(
            {parent, &selection, has_fields ? parent->field(selection.name.text) : nullptr});
        break;
      }
      case Selection::Kind::spread:
        if (std::ranges::find(into.fragments, selection.name.text) == into.fragments.end()) {
          into.fragments.push_back(selection.name.text);
        }
        break;
      case Selection::Kind::inline_fragment: {
        const std::string_view condition = selection.type_condition.text;
        collect_into(into, *selection.selection_set,
                     condition.empty() ? parent : schema_.find(condition));
        break;
      }
    }
  }
}

FieldSelectionMerging::Collection* FieldSelectionMerging::collect_fragment(std::string_view name) {
  const Fragment* fragment = document_.fragment(name);
  if (!fragment) return nullptr;
  return &collect(*fragment->selection_set, schema_.find(fragment->type_condition.text));
}

void FieldSelectionMerging::between(std::vector<Conflict>& found, bool exclusive, Collection& a,
                                    Collection& b) {
  for (const auto& [key, uses] : a.groups) {
    if (!spend(1)) return;
    const auto other = b.by_key.find(key);
    if (other == b.by_key.end()) continue;
    for (const FieldUse& one : uses) {
      for (const FieldUse& two : b.groups[other->second].second) {
        if (aborted()) return;
        if (auto conflict = compare(exclusive, key, one, two))
          found.push_back(std::move(*conflict));
      }
    }
  }
}

// Compares fields with those that a fragment contributes, directly or through others.
void FieldSelectionMerging::fields_and_fragment(std::vector<Conflict>& found, bool exclusive,
                                                Collection& fields, std::string_view fragment) {
  if (!spend(1) || fields.groups.empty()) return;
  const auto known = fields.compared.find(fragment);
  if (known != fields.compared.end() && (!known->second || exclusive)) return;
  fields.compared[fragment] = exclusive;
  Collection* other = collect_fragment(fragment);
  if (!other || other == &fields) return;
  between(found, exclusive, fields, *other);
  for (const std::string_view nested : other->fragments) {
    fields_and_fragment(found, exclusive, fields, nested);
  }
}

void FieldSelectionMerging::fragments(std::vector<Conflict>& found, bool exclusive,
                                      std::string_view a, std::string_view b) {
  if (!spend(2) || a == b) return;
  const auto pair = std::minmax(a, b);
  const auto known = compared_.find(pair);
  if (known != compared_.end() && (!known->second || exclusive)) return;
  compared_[pair] = exclusive;
  Collection* one = collect_fragment(a);
  Collection* two = collect_fragment(b);
  if (!one || !two) return;
  between(found, exclusive, *one, *two);
  for (const std::string_view nested : two->fragments) fragments(found, exclusive, a, nested);
  for (const std::string_view nested : one->fragments) fragments(found, exclusive, nested, b);
}

std::optional<FieldSelectionMerging::Conflict> FieldSelectionMerging::compare(bool exclusive,
                                                                              std::string_view key,
                                                                              const FieldUse& a,
                                                                              const FieldUse& b) {
  // Parents of different object types are never the same object.
  const auto is_object = [](const NamedType* type) {
    return type && type->kind == TypeKind::object;
  };
  exclusive = exclusive || (a.parent != b.parent && is_object(a.parent) && is_object(b.parent));
  if (!spend(2)) return std::nullopt;
  const auto conflict = [&](std::string reason) {
    return Conflict{std::string(key), std::move(reason), {a.node->at}, {b.node->at}};
  };
  if (!exclusive) {
    if (a.node->name.text != b.node->name.text) {
      return conflict("\"" + shortened(a.node->name.text, kMaxText) + "\" and \"" +
                      shortened(b.node->name.text, kMaxText) + "\" are different fields");
    }
    if (!same_arguments(*a.node, *b.node)) return conflict("they have differing arguments");
  }
  const Type* one = a.field ? a.field->type : nullptr;
  const Type* two = b.field ? b.field->type : nullptr;
  if (one && two && types_conflict(*one, *two)) {
    return conflict("they return conflicting types \"" + std::string(one->text) + "\" and \"" +
                    std::string(two->text) + "\"");
  }
  if (!a.node->selection_set || !b.node->selection_set) return std::nullopt;

  std::vector<Conflict> below;
  Collection& left = collect(*a.node->selection_set, one ? one->named : nullptr);
  Collection& right = collect(*b.node->selection_set, two ? two->named : nullptr);
  between(below, exclusive, left, right);
  for (const std::string_view name : right.fragments) {
    fields_and_fragment(below, exclusive, left, name);
  }
  for (const std::string_view name : left.fragments) {
    fields_and_fragment(below, exclusive, right, name);
  }
  for (const std::string_view first : left.fragments) {
    for (const std::string_view second : right.fragments) {
      fragments(below, exclusive, first, second);
    }
  }
  if (below.empty()) return std::nullopt;
  std::string reason;
  for (const Conflict& one_below : below) {
    if (!reason.empty()) reason += " and ";
    reason += "subfields \"" + shortened(one_below.key, kMaxText) + "\" conflict because " +
              one_below.reason;
    if (reason.size() > kMaxText) break;
  }
  return Conflict{std::string(key), shortened(reason, kMaxText),
                  places(*a.node, below, &Conflict::first),
                  places(*b.node, below, &Conflict::second)};
}

bool FieldSelectionMerging::same_arguments(const Selection& a, const Selection& b) {
  if (a.arguments.size() != b.arguments.size()) return false;
  for (const Argument& one : a.arguments) {
    if (!spend(1)) return true;
    // Compares the last argument of that name on both sides.
    const Argument* other = nullptr;
    for (const Argument& two : b.arguments) {
      if (two.name.text == one.name.text) other = &two;
    }
    if (!other || canonical(one.value) != canonical(other->value)) return false;
  }
  return true;
}

const std::string& FieldSelectionMerging::canonical(const Literal& literal) {
  const auto [place, is_new] = canonical_.try_emplace(&literal);
  if (is_new) append_canonical(place->second, literal);
  return place->second;
}

bool FieldSelectionMerging::types_conflict(const Type& a, const Type& b) {
  if (same_type(a, b)) return false;
  if (!spend(1)) return false;
  if (a.is_list() || b.is_list()) {
    return !(a.is_list() && b.is_list()) || types_conflict(*a.of, *b.of);
  }
  if (a.is_non_null() || b.is_non_null()) {
    return !(a.is_non_null() && b.is_non_null()) || types_conflict(*a.of, *b.of);
  }
  return a.named->is_leaf() || b.named->is_leaf();
}

}  // namespace gitops::graphql::rules
