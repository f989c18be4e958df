#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::k8s {

// The fields of an object that a part asked for, as dotted paths ("status.sync.status"). A path may
// end at any value. The four identity fields are always kept.
class FieldSet {
 public:
  explicit FieldSet(std::vector<std::string> paths);

  [[nodiscard]] std::size_t size() const { return paths_.size(); }
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

 private:
  friend class ObjectDecoder;
  struct Node {
    std::string key;
    int field = -1;           // index of the path that ends here
    std::vector<Node> below;
  };
  std::vector<std::string> paths_;
  Node root_;
};

// What is kept of one object: identity and the asked-for fields, packed into one allocation.
// Strings are unescaped; numbers, booleans, objects and arrays are their JSON text; null counts as
// absent.
class Record {
 public:
  Record() = default;

  [[nodiscard]] std::string_view ns() const { return part(0); }
  [[nodiscard]] std::string_view name() const { return part(1); }
  [[nodiscard]] std::string_view uid() const { return part(2); }
  [[nodiscard]] std::string_view resource_version() const { return part(3); }
  [[nodiscard]] ObjectKey key() const { return {std::string(ns()), std::string(name())}; }

  // The value of FieldSet path `index`; nothing when the object does not have it.
  [[nodiscard]] std::optional<std::string_view> field(std::size_t index) const;

 private:
  friend class ObjectDecoder;
  [[nodiscard]] std::string_view part(std::size_t index) const;
  // count × uint32 end offsets (high bit: absent), then the texts.
  std::unique_ptr<char[]> packed_;
  std::uint32_t count_ = 0;
};

// An object that could not be used, and why. Never the object itself.
struct Quarantined {
  ObjectKey key;          // as far as it could be read
  std::string reason;     // "truncated JSON", "metadata.name is not a string", …
  std::size_t bytes = 0;
};

// Limits on one object (AC-24, AC-25).
struct ObjectLimits {
  std::size_t max_bytes = 8 * 1024 * 1024;
  std::size_t max_depth = 256;
};

// Decodes objects into Records with simdjson, on demand: only the asked-for values are looked at,
// objects that `keep` refuses are left as soon as their name is known. A malformed object never
// throws and never ends the list it stands in. Holds scratch buffers: one per watch, not thread-safe.
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
    Record record;          // object
    Quarantined quarantined;  // bad
  };
  // One object's JSON text.
  Decoded decode(std::string_view json);

  // A list answer: calls `on_object` for each kept item, with its own JSON text (valid during the
  // call), and `on_bad` for each quarantined one. The result is what pages need; an error when the
  // list's own frame is unusable (then nothing was called).
  struct ListMeta {
    std::string resource_version;
    std::string continue_token;
  };
  // `json` must be followed by 64 readable bytes (simdjson padding); PaddedText gives such a buffer.
  Result<ListMeta> decode_list(std::string_view json,
                               const std::function<void(Record&&, std::string_view text)>& on_object,
                               const std::function<void(Quarantined&&)>& on_bad);

 private:
  friend class WatchDecoder;
  struct Scratch;
  FieldSet fields_;
  Keep keep_;
  ObjectLimits limits_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace gitops::k8s
