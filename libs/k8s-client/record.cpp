#include "k8s-client/record.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace gitops::k8s {

namespace {

enum Identity : std::size_t { kNamespace, kName, kUid, kResourceVersion, kIdentityFields };

constexpr std::array<std::string_view, kIdentityFields> kIdentityPaths{
    "metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion"};
constexpr std::string_view kMetadata = "metadata";

constexpr std::uint32_t kAbsent = 0x8000'0000;

bool is_string(std::string_view value) {
  return value.size() >= 2 && value.front() == '"';
}

std::string_view inside_quotes(std::string_view value) {
  return value.substr(1, value.size() - 2);
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

// Splits a path at its dots, except escaped ones.
std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '.') {
      parts.emplace_back();
    } else {
      if (path[i] == '\\' && i + 1 < path.size()) ++i;
      parts.back().push_back(path[i]);
    }
  }
  return parts;
}

std::string message(std::string_view subject, std::string_view rest) {
  std::string text(subject);
  text += rest;
  return text;
}

}  // namespace

// ---- FieldSet ----

FieldSet::FieldSet(std::vector<std::string> paths) : paths_(std::move(paths)) {
  for (std::size_t i = 0; i < kIdentityFields; ++i) {
    make_node(std::string(kIdentityPaths[i])).identity = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    auto& node = make_node(paths_[i]);
    if (node.field >= 0) throw std::invalid_argument("field path given twice: " + paths_[i]);
    node.field = static_cast<int>(i);
  }
}

FieldSet::Node& FieldSet::make_node(const std::string& path) {
  Node* node = &root_;
  if (path.empty()) return *node;
  for (auto& part : split_path(path)) {
    if (part.empty()) throw std::invalid_argument("field path with an empty part: " + path);
    const auto found = std::ranges::find(node->below, part, &Node::key);
    if (found != node->below.end()) {
      node = &*found;
      continue;
    }
    Node next;
    next.path = node == &root_ ? part : node->path + "." + part;
    next.key = std::move(part);
    next.id = nodes_++;
    node = &node->below.emplace_back(std::move(next));
  }
  return *node;
}

// ---- Record ----

std::uint32_t Record::end_word(std::size_t index) const {
  std::uint32_t word = 0;
  std::memcpy(&word, packed_.get() + index * sizeof(word), sizeof(word));
  return word;
}

std::string_view Record::part(std::size_t index) const {
  if (index >= count_) return {};
  const std::size_t begin = index == 0 ? 0 : end_word(index - 1) & ~kAbsent;
  const std::size_t end = end_word(index) & ~kAbsent;
  return {packed_.get() + count_ * sizeof(std::uint32_t) + begin, end - begin};
}

std::optional<std::string_view> Record::field(std::size_t index) const {
  index += kIdentityFields;
  if (index >= count_ || (end_word(index) & kAbsent) != 0) return std::nullopt;
  return part(index);
}

// ---- ObjectDecoder ----

struct ObjectDecoder::Scratch {
  json::TokenIndex index;

  // The object being decoded. A value is part of its text or, unescaped, of `unescaped`.
  struct Value {
    const char* text = nullptr;
    std::size_t offset = 0;
    std::size_t size = 0;
    bool present = false;
  };
  std::vector<Value> values;  // identity, then the fields
  std::string unescaped;
  std::vector<std::uint64_t> seen;  // by node: the last object that contained it
  std::uint64_t object = 0;
  bool refused = false;  // refused by keep
  std::string reason;    // the reason why it is bad

  [[nodiscard]] std::string_view view(std::size_t index_of_value) const {
    const auto& value = values[index_of_value];
    return {value.text != nullptr ? value.text : unescaped.data() + value.offset, value.size};
  }
  void begin_object() {
    std::ranges::fill(values, Value{});
    unescaped.clear();
    ++object;
    refused = false;
    reason.clear();
  }
};

ObjectDecoder::ObjectDecoder(FieldSet fields, Keep keep, ObjectLimits limits)
    : fields_(std::move(fields)),
      keep_(std::move(keep)),
      limits_(limits),
      scratch_(std::make_unique<Scratch>()) {
  limits_.max_bytes = std::min<std::size_t>(limits_.max_bytes, kAbsent - 1);
  scratch_->values.resize(kIdentityFields + fields_.size());
  scratch_->seen.resize(fields_.nodes_);
}
ObjectDecoder::~ObjectDecoder() = default;
ObjectDecoder::ObjectDecoder(ObjectDecoder&&) noexcept = default;
ObjectDecoder& ObjectDecoder::operator=(ObjectDecoder&&) noexcept = default;

void ObjectDecoder::release_scratch() {
  scratch_->index.release();
  std::string().swap(scratch_->unescaped);
}

std::expected<json::Walk, std::string_view> ObjectDecoder::tokenize(std::string_view json) {
  const auto unreadable = scratch_->index.build(json);
  if (!unreadable.empty()) return std::unexpected(unreadable);
  return json::Walk(json, scratch_->index.tokens());
}

ObjectDecoder::Decoded ObjectDecoder::decode(std::string_view json) {
  auto walk = tokenize(json);
  if (!walk) return decode_broken(json, walk.error());
  auto item = decode_at(*walk);
  if (!item) return decode_broken(json, "truncated JSON");
  if (!walk->at_end()) return decode_broken(json, "text behind the object");
  return std::move(item->decoded);
}

std::optional<ObjectDecoder::Item> ObjectDecoder::decode_at(json::Walk& walk) {
  auto& scratch = *scratch_;
  scratch.begin_object();
  walk.measure_depth();
  const auto begin = walk.mark();
  const auto start = walk.offset();
  const bool complete = walk_members(walk, fields_.root_);

  std::string_view text;
  if (complete) {
    text = walk.since(start);
  } else if (scratch.refused) {
    if (!walk.leave(begin.depth)) return std::nullopt;
    return Item{{.kind = Kind::dropped,
                 .record = {},
                 .quarantined = {},
                 .resource_version = std::string(scratch.view(kResourceVersion))},
                walk.since(start)};
  } else {
    walk.reset(begin);
    text = walk.skip();
    if (text.empty()) return std::nullopt;
  }

  if (complete && fields_.root_.field >= 0) take(fields_.root_, text);
  auto& reason = scratch.reason;
  if (!complete && reason.empty()) {
    reason = text.front() == '{' ? "malformed JSON" : "not an object";
  } else if (reason.empty() && !scratch.values[kName].present) {
    reason = "metadata.name is missing";
  } else if (reason.empty() && text.size() > limits_.max_bytes) {
    reason = "larger than " + std::to_string(limits_.max_bytes) + " bytes";
  } else if (reason.empty() && walk.deepest() - begin.depth > limits_.max_depth) {
    reason = "nested deeper than " + std::to_string(limits_.max_depth);
  }
  if (!reason.empty()) return Item{decode_broken(text, reason), text};

  Item item{{.kind = Kind::object, .record = pack(), .quarantined = {}, .resource_version = {}},
            text};
  return item;
}

// Follows `node` through the object here. Returns false when decoding must stop: `refused` or
// `reason` is then set, or neither when the object is malformed.
bool ObjectDecoder::walk_members(json::Walk& walk, const FieldSet::Node& node) {
  auto& scratch = *scratch_;
  const auto child_named = [&](std::string_view key) -> const FieldSet::Node* {
    for (const auto& child : node.below) {
      if (child.key == key) return &child;
    }
    return nullptr;
  };
  return walk.members([&](std::string_view key) {
    const auto* child = child_named(key);
    if (child == nullptr && key.find('\\') != std::string_view::npos) {
      std::string plain;
      if (json::append_unescaped(plain, key)) child = child_named(plain);
    }
    if (child == nullptr) return !walk.skip().empty();

    if (std::exchange(scratch.seen[child->id], scratch.object) == scratch.object) {
      scratch.reason = message(child->path, " appears twice");
      return false;
    }
    std::string_view value;
    if (!child->below.empty() && walk.peek() == '{') {
      const auto start = walk.offset();
      if (!walk_members(walk, *child)) return false;
      value = walk.since(start);
    } else {
      value = walk.skip();
      if (value.empty()) return false;
    }
    if ((child->identity >= 0 || child->field >= 0) && !take(*child, value)) return false;
    return &node != &fields_.root_ || child->key != kMetadata || check_metadata();
  });
}

bool ObjectDecoder::take(const FieldSet::Node& node, std::string_view value) {
  auto& scratch = *scratch_;
  if (value == "null") return true;
  Scratch::Value taken{.text = value.data(), .offset = 0, .size = value.size(), .present = true};
  if (is_string(value)) {
    const auto inner = inside_quotes(value);
    taken.text = inner.data();
    taken.size = inner.size();
    if (inner.find('\\') != std::string_view::npos) {
      taken.text = nullptr;
      taken.offset = scratch.unescaped.size();
      if (!json::append_unescaped(scratch.unescaped, inner)) {
        scratch.reason = message(node.path, " holds an unknown escape");
        return false;
      }
      taken.size = scratch.unescaped.size() - taken.offset;
    }
  } else if (node.identity >= 0) {
    scratch.reason = message(node.path, " is not a string");
    return false;
  } else if (value.front() != '{' && value.front() != '[' && !json::is_number_or_literal(value)) {
    scratch.reason = message(node.path, " is not JSON");
    return false;
  }
  if (node.identity >= 0) {
    const auto index = static_cast<std::size_t>(node.identity);
    scratch.values[index] = taken;
    if (has_control_character(scratch.view(index))) {
      scratch.values[index] = {};
      scratch.reason = message(node.path, " holds a control character");
      return false;
    }
  }
  if (node.field >= 0)
    scratch.values[kIdentityFields + static_cast<std::size_t>(node.field)] = taken;
  return true;
}

// Called after the metadata; returns whether the object is usable and kept.
bool ObjectDecoder::check_metadata() {
  auto& scratch = *scratch_;
  if (scratch.view(kName).empty()) {
    scratch.reason = "metadata.name is missing";
    return false;
  }
  scratch.refused = keep_ && !keep_(scratch.view(kNamespace), scratch.view(kName));
  return !scratch.refused;
}

Record ObjectDecoder::pack() const {
  const auto count = scratch_->values.size();
  const std::size_t heads = count * sizeof(std::uint32_t);
  std::size_t bytes = 0;
  for (const auto& value : scratch_->values) bytes += value.size;

  Record record;
  record.count_ = static_cast<std::uint32_t>(count);
  record.packed_ = std::make_unique_for_overwrite<char[]>(heads + bytes);
  std::size_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto view = scratch_->view(i);
    if (!view.empty()) std::memcpy(record.packed_.get() + heads + end, view.data(), view.size());
    end += view.size();
    auto word = static_cast<std::uint32_t>(end);
    if (!scratch_->values[i].present) word |= kAbsent;
    std::memcpy(record.packed_.get() + i * sizeof(word), &word, sizeof(word));
  }
  return record;
}

ObjectDecoder::Decoded ObjectDecoder::decode_broken(std::string_view text,
                                                    std::string_view reason) const {
  const auto metadata = json::find_member(text, kMetadata);
  const auto member = [&](std::string_view key) {
    auto value = json::loose_string(json::find_member(metadata, key));
    return has_control_character(value) ? std::string() : value;
  };
  Decoded decoded;
  decoded.quarantined.key = {member("namespace"), member("name")};
  decoded.quarantined.bytes = text.size();
  decoded.resource_version = member("resourceVersion");
  const auto& key = decoded.quarantined.key;
  if (!key.name.empty() && keep_ && !keep_(key.ns, key.name)) {
    decoded.kind = Kind::dropped;
  } else {
    decoded.quarantined.reason = reason;
  }
  return decoded;
}

Result<ObjectDecoder::ListMeta> ObjectDecoder::decode_list(
    std::string_view json, const std::function<void(Record&&, std::string_view text)>& on_object,
    const std::function<void(Quarantined&&)>& on_bad) {
  const auto walk = tokenize(json);
  std::vector<Item> items;
  auto meta = walk ? read_list(*walk, items) : read_broken_list(json, walk.error(), items);
  if (!meta) return meta;
  for (auto& [decoded, text] : items) {
    if (decoded.kind == Kind::object) {
      on_object(std::move(decoded.record), text);
    } else {
      on_bad(std::move(decoded.quarantined));
    }
  }
  return meta;
}

Result<ObjectDecoder::ListMeta> ObjectDecoder::read_list(json::Walk walk,
                                                         std::vector<Item>& items) {
  ListMeta meta;
  bool has_items = false;
  const auto read_string = [&](std::string& target) {
    const auto value = walk.skip();
    return value == "null" ||
           (is_string(value) && json::append_unescaped(target, inside_quotes(value)));
  };
  const bool complete = walk.members([&](std::string_view key) {
    if (key == kMetadata && walk.peek() == '{') {
      return walk.members([&](std::string_view field) {
        if (field == "resourceVersion") return read_string(meta.resource_version);
        if (field == "continue") return read_string(meta.continue_token);
        return !walk.skip().empty();
      });
    }
    if (key != "items") return !walk.skip().empty();
    if (std::exchange(has_items, true)) return false;
    if (walk.peek() != '[') return walk.skip() == "null";
    return walk.elements([&] {
      auto item = decode_at(walk);
      if (!item) return false;
      if (item->decoded.kind != Kind::dropped) items.push_back(std::move(*item));
      return true;
    });
  });
  if (!complete || !walk.at_end()) return fail(ErrorCode::invalid_data, "list: malformed JSON");
  if (!has_items) return fail(ErrorCode::invalid_data, "list: no items in the answer");
  return meta;
}

Result<ObjectDecoder::ListMeta> ObjectDecoder::read_broken_list(std::string_view json,
                                                                std::string_view reason,
                                                                std::vector<Item>& items) {
  std::vector<std::string_view> texts;
  const auto metadata = json::find_member(json, kMetadata);
  if (!metadata.ends_with('}') || !json::split_array(json::find_member(json, "items"), texts)) {
    return fail(ErrorCode::invalid_data, message("list: ", reason));
  }
  for (const auto text : texts) {
    auto decoded = decode(text);
    if (decoded.kind != Kind::dropped) items.push_back({std::move(decoded), text});
  }
  return ListMeta{json::loose_string(json::find_member(metadata, "resourceVersion")),
                  json::loose_string(json::find_member(metadata, "continue"))};
}

}  // namespace gitops::k8s
