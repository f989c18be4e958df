#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

  bool operator==(const ManifestValue&) const = default;
};

// Data as it shall be read: a scalar, or a collection.
struct ManifestData {
  enum class Kind : std::uint8_t { scalar, list, map };
  Kind kind = Kind::scalar;
  ManifestValue value = {};              // of a scalar
  std::vector<ManifestValue> keys = {};  // of a map, one for each child
  std::vector<ManifestData> children = {};

  // The child of a map, by the text of its key; null when there is none.
  [[nodiscard]] const ManifestData* find(std::string_view key) const;
  // The entries of maps have no order, and of their keys the text alone counts.
  bool operator==(const ManifestData& other) const;
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
    // Whatever is at `path`, with its comments, becomes `data`. What is missing on the way is made:
    // keys at the ends of their maps, an entry behind the last one of its list.
    replace,
  };
  Action action = Action::set;
  ManifestPath path = {};
  ManifestValue value = {};
  ManifestData data = {};    // of `replace`
  std::size_t document = 0;  // of a file with several
};

// Returns `text` with one change; nothing else is emitted, so comments, order, quotes and line
// endings of the rest stay as they are. Afterwards the data is the old data with just that change:
// the result is parsed and compared, and anything else is an error. A byte order mark stays where
// it is; data in a block is written in blocks, and data in the place of a flow collection, or in
// one, as a flow collection. In a file that is one, as JSON, texts and keys get double quotes.
// Errors: invalid_data (not YAML, or not UTF-8), not_found (the path), invalid_argument (the value
// or the path makes no sense), too_large (over 1 MiB or 64 levels), unsupported with the reason:
// anchors, aliases, merge keys and tags on the way or in what is removed; flow collections, except
// for scalars in them, empty ones and `replace`; plain and quoted scalars of several lines; forms
// that are not recognised. A block scalar that is set becomes a quoted one.
Result<std::string> edit_manifest(std::string_view text, const ManifestEdit& edit);

// The scalar at `path`, as YAML reads it; aliases are not followed. Errors: invalid_data and too_large
// as above, not_found when there is no scalar.
Result<std::string> read_manifest(std::string_view text, const ManifestPath& path,
                                  std::size_t document = 0);

// What is at a path; nullopt when there is nothing. Errors: invalid_data and too_large as above;
// unsupported for anchors, aliases, merge keys and tags.
Result<std::optional<ManifestData>> read_data(std::string_view text, const ManifestPath& path);

// All scalars at a path and below it, in their order. Errors: invalid_data and too_large as above;
// not_found when there is nothing; unsupported for anchors, aliases, merge keys and tags.
Result<std::vector<ManifestLeaf>> read_leaves(std::string_view text, const ManifestPath& path);

}  // namespace gitops::app_proxy
