#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/core/error.hpp"

// Values in YAML files that users keep in Git, and changes of them. Pure.
namespace gitops::app_proxy {

// The keys of maps and the indices of lists from the document's root.
using ManifestPath = std::vector<std::variant<std::string, std::size_t>>;

// A scalar as it shall be read.
struct ManifestValue {
  std::string text = {};
  // Text, quoted where YAML would read something else ("2.0", "yes"); otherwise a number, a boolean
  // or null, written as given.
  bool is_text = true;
};

// A scalar and where it stands.
struct ManifestLeaf {
  ManifestPath path = {};
  ManifestValue value = {};
};

struct ManifestEdit {
  enum class Action : std::uint8_t {
    set,     // the scalar at `path`; a key that its map does not have is added at the map's end
    append,  // an entry at the end of the list at `path`
    remove,  // the entry of a list or the key of a map, with all that is in it
  };
  Action action = Action::set;
  ManifestPath path = {};
  ManifestValue value = {};
  std::size_t document = 0;  // of a file with several
};

// Returns `text` with one change; nothing is emitted anew, so comments, order, quotes and line
// endings of the rest stay as they are. Afterwards the data is the old data with just that change:
// the result is parsed and compared, and anything else is an error.
// Errors: invalid_data (not YAML, or not UTF-8), not_found (the path), invalid_argument (the value
// or the path makes no sense), too_large (over 1 MiB or 64 levels), unsupported with the reason:
// anchors, aliases, merge keys and tags on the way or in what is removed; flow collections, except
// scalars in them and empty ones; plain and quoted scalars of several lines; forms that are not
// recognised. A block scalar that is set becomes a quoted one.
Result<std::string> edit_manifest(std::string_view text, const ManifestEdit& edit);

// The scalar at `path`, as YAML reads it; aliases are not followed. Errors: invalid_data and too_large
// as above, not_found when there is no scalar.
Result<std::string> read_manifest(std::string_view text, const ManifestPath& path,
                                  std::size_t document = 0);

// All scalars at a path and below it, in their order. Errors: invalid_data and too_large as above;
// not_found when there is nothing; unsupported for anchors, aliases, merge keys and tags.
Result<std::vector<ManifestLeaf>> read_leaves(std::string_view text, const ManifestPath& path);

}  // namespace gitops::app_proxy
