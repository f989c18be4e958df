#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "k8s-client/json_tokens.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::k8s {

// The fields to keep of an object, as dotted paths ("status.sync.status"); a dot within a key is
// written "\.". A path may end at any value, and one path may be the prefix of another; the empty
// path is the whole object. The four identity fields are always kept and may be listed as well.
class FieldSet {
 public:
  // Throws std::invalid_argument when two paths are equal or a path has an empty part.
  explicit FieldSet(std::vector<std::string> paths);

  [[nodiscard]] std::size_t size() const { return paths_.size(); }
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

 private:
  friend class ObjectDecoder;
  struct Node {
    std::string key;
    std::string path;         // for messages
    std::size_t id = 0;       // dense over all nodes
    int identity = -1;        // index of the identity field that ends here
    int field = -1;           // index of the path that ends here
    std::vector<Node> below;  // empty: the value itself is not entered
  };
  Node& make_node(const std::string& path);

  std::vector<std::string> paths_;
  Node root_;
  std::size_t nodes_ = 1;
};

// The kept part of one object: its identity and the fields of a FieldSet, in one allocation of 4
// bytes for each field plus the texts. A whole object takes as much as its text: about 30 KB for an
// Application that syncs 100 resources, up to 1 MiB for a ConfigMap. In lists of built-in kinds the
// items have no apiVersion and kind; texts kept of them lack these, too.
//
// Strings are unescaped; numbers, booleans, objects and arrays are their JSON text; null counts as
// absent. Numbers are never converted, so no number is too large.
class Record {
 public:
  Record() = default;

  [[nodiscard]] std::string_view ns() const { return part(0); }
  [[nodiscard]] std::string_view name() const { return part(1); }
  [[nodiscard]] std::string_view uid() const { return part(2); }
  [[nodiscard]] std::string_view resource_version() const { return part(3); }
  [[nodiscard]] ObjectKey key() const { return {std::string(ns()), std::string(name())}; }

  // Returns the value of path `index` of the FieldSet; nullopt when the object does not have it.
  [[nodiscard]] std::optional<std::string_view> field(std::size_t index) const;

 private:
  friend class ObjectDecoder;
  [[nodiscard]] std::uint32_t end_word(std::size_t index) const;
  [[nodiscard]] std::string_view part(std::size_t index) const;
  // count × uint32 end offsets (high bit: absent), then the texts.
  std::unique_ptr<char[]> packed_;
  std::uint32_t count_ = 0;
};

// The name of an object that could not be used, and the reason. Never its content.
struct Quarantined {
  ObjectKey key;       // as far as it could be read
  std::string reason;  // "truncated JSON", "metadata.name is not a string", …
  std::size_t bytes = 0;
};

// Limits on one object (AC-24, AC-25).
struct ObjectLimits {
  std::size_t max_bytes = 8 * 1024 * 1024;
  std::size_t max_depth = 256;
};

// Decodes objects into Records: simdjson finds the tokens of the whole text at once, the decoder
// follows the FieldSet through them and skips everything else bracket by bracket. Decoding of an
// object that `keep` refuses stops after its metadata. A malformed object does not throw and does
// not affect the other items of its list.
//
// An object is bad when it is cut short or unbalanced, contains invalid UTF-8 or a raw control
// character, exceeds a limit, repeats a key on the path of a kept field, or when its identity is
// missing or not made of plain strings. A kept field of an unexpected type is not bad: its JSON
// text is kept. Other values are skipped, so errors in their grammar (`tru`, `1..2`, a missing
// comma, ']' for '}') are not noticed.
//
// Holds scratch buffers: one per watch, not thread-safe.
class ObjectDecoder {
 public:
  using Keep = std::function<bool(std::string_view ns, std::string_view name)>;

  explicit ObjectDecoder(FieldSet fields, Keep keep = {}, ObjectLimits limits = {});
  ~ObjectDecoder();
  ObjectDecoder(ObjectDecoder&&) noexcept;
  ObjectDecoder& operator=(ObjectDecoder&&) noexcept;

  enum class Kind { object, dropped, bad };
  struct Decoded {
    Kind kind = Kind::bad;
    Record record;                 // object
    Quarantined quarantined;       // bad
    std::string resource_version;  // dropped; bad, when it could be read
  };
  // Decodes one object's JSON text.
  Decoded decode(std::string_view json);

  // Decodes a list: calls `on_object` for each kept item, with its JSON text (valid during the
  // call), and `on_bad` for each quarantined one, in order. Returns the metadata of the list, or an
  // error when the list itself cannot be read; then no function was called.
  struct ListMeta {
    std::string resource_version;
    std::string continue_token;
  };
  Result<ListMeta> decode_list(
      std::string_view json, const std::function<void(Record&&, std::string_view text)>& on_object,
      const std::function<void(Quarantined&&)>& on_bad);

  // Frees the buffers that large texts have left.
  void release_scratch();

  [[nodiscard]] const FieldSet& fields() const { return fields_; }

 private:
  friend class WatchDecoder;
  struct Scratch;
  struct Item {
    Decoded decoded;
    std::string_view text;
  };

  // Returns a walk from the first token of `json`, valid until the next call, or the reason for a
  // failure.
  std::expected<json::Walk, std::string_view> tokenize(std::string_view json);
  // Decodes the object at the walk's position and moves behind it; nullopt when it does not end.
  std::optional<Item> decode_at(json::Walk& walk);
  bool walk_members(json::Walk& walk, const FieldSet::Node& node);
  bool take(const FieldSet::Node& node, std::string_view value);
  bool check_metadata();
  Record pack() const;
  // Returns the name of an object whose text has no tokens, as far as it can be found.
  Decoded decode_broken(std::string_view text, std::string_view reason) const;
  Result<ListMeta> read_list(json::Walk walk, std::vector<Item>& items);
  Result<ListMeta> read_broken_list(std::string_view json, std::string_view reason,
                                    std::vector<Item>& items);

  FieldSet fields_;
  Keep keep_;
  ObjectLimits limits_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace gitops::k8s
