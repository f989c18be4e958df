#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.5.2.2, "Fragment Spreads Must Not Form Cycles": a fragment does not spread itself, not
// even through others.
namespace gitops::graphql::rules {

void FragmentSpreadsMustNotFormCycles::check(ValidationContext& context, const Fragment& fragment) {
  const std::string_view name = fragment.name.text;
  if (!searched_.insert(name).second) return;
  const auto& inside = context.spreads(*fragment.selection_set);
  if (inside.empty()) return;
  path_index_[name] = path_.size();
  for (const Selection* spread : inside) {
    if (context.aborted()) break;
    path_.push_back(spread);
    const auto open = path_index_.find(spread->name.text);
    if (open != path_index_.end()) {
      report(context, open->second);
    } else if (const Fragment* next = context.fragment(spread->name.text)) {
      check(context, *next);
    }
    path_.pop_back();
  }
  path_index_.erase(name);
}

// Reports a cycle that begins with that spread of the path.
void FragmentSpreadsMustNotFormCycles::report(ValidationContext& context, std::size_t first) {
  std::string via;
  std::vector<std::uint32_t> places;
  for (std::size_t i = first; i < path_.size(); ++i) {
    places.push_back(path_[i]->at);
    if (i + 1 == path_.size()) continue;
    via += (via.empty() ? "" : ", ") + quote(path_[i]->name.text);
  }
  context.report("Cannot spread fragment " + quote(path_.back()->name.text) + " within itself" +
                     (via.empty() ? "." : " via " + via + "."),
                 places);
}

}  // namespace gitops::graphql::rules
