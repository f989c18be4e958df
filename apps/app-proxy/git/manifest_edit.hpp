#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/core/error.hpp"

// Reads and edits values in YAML files that users keep in Git. Pure.
namespace gitops::app_proxy {

// Path from the document's root: keys of maps and indices of lists.
using ManifestPath = std::vector<std::variant<std::string, std::size_t>>;

// A scalar, by the value that YAML reads.
struct ManifestValue {
  std::string text = {};
  // Text, quoted where YAML would read something else ("2.0", "yes"). Otherwise a number, a boolean
  // or null, written as given.
  bool is_text = true;

  bool operator==(const ManifestValue&) const = default;
};

// Data, by the value that YAML reads: a scalar, or a collection.
struct ManifestData {
  enum class Kind : std::uint8_t { scalar, list, map };
  Kind kind = Kind::scalar;
  ManifestValue value = {};              // of a scalar
  std::vector<ManifestValue> keys = {};  // of a map, one for each child
  std::vector<ManifestData> children = {};

  // Returns the child of a map with this key; null when there is none.
  [[nodiscard]] const ManifestData* find(std::string_view key) const;
  // Compares data. Entries of maps have no order, and keys compare by their text.
  bool operator==(const ManifestData& other) const;
};

// A scalar and its path.
struct ManifestLeaf {
  ManifestPath path = {};
  ManifestValue value = {};
};

struct ManifestEdit {
  enum class Action : std::uint8_t {
    set,     // the scalar at `path`; a key that its map does not have is added at the map's end
    append,  // an entry at the end of the list at `path`
    remove,  // the entry of a list or the key of a map, with all that is in it
    // Replaces the value at `path`, with its comments, by `data`. Missing parts of the path are
    // created: keys at the ends of their maps, an entry after the last one of its list.
    replace,
  };
  Action action = Action::set;
  ManifestPath path = {};
  ManifestValue value = {};
  ManifestData data = {};    // of `replace`
  std::size_t document = 0;  // index, in a file with several
};

// Returns `text` with one change. The rest is copied, so its comments, order, quotes and line
// endings are kept. The result is parsed and compared: it must be the old data with just that
// change, and anything else is an error. A byte order mark is kept. Data in a block is written in
// blocks; data that replaces a flow collection, or is in one, is written as a flow collection. In a
// file that is a flow collection, as JSON, texts and keys get double quotes. Errors: invalid_data
// (not YAML, or not UTF-8), not_found (the path), invalid_argument (the value or the path makes no
// sense), too_large (over 1 MiB or 64 levels), unsupported with the reason: anchors, aliases, merge
// keys and tags on the path or in what is removed; flow collections, except for scalars in them,
// empty ones and `replace`; plain and quoted scalars of several lines; forms that are not
// recognised. A block scalar that is set becomes a quoted one.
Result<std::string> edit_manifest(std::string_view text, const ManifestEdit& edit);

// Returns the scalar at `path`, as YAML reads it; aliases are not followed. Errors: invalid_data
// and too_large as above, not_found when there is no scalar.
Result<std::string> read_manifest(std::string_view text, const ManifestPath& path,
                                  std::size_t document = 0);

// Returns the data at a path; nullopt when there is none. Errors: invalid_data and too_large as
// above; unsupported for anchors, aliases, merge keys and tags.
Result<std::optional<ManifestData>> read_data(std::string_view text, const ManifestPath& path);

// Returns all scalars at a path and below it, in order. Errors: invalid_data and too_large as
// above; not_found when there is nothing; unsupported for anchors, aliases, merge keys and tags.
Result<std::vector<ManifestLeaf>> read_leaves(std::string_view text, const ManifestPath& path);

}  // namespace gitops::app_proxy
