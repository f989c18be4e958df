#include "app-proxy/git/manifest_edit.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxText = 1024 * 1024;
constexpr std::size_t kMaxDepth = 64;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Refusal of an edit. Thrown and caught in this file.
struct Refused {
  ErrorCode code;
  std::string why;
};

[[noreturn]] void refuse(std::string why, ErrorCode code = ErrorCode::unsupported) {
  throw Refused{.code = code, .why = std::move(why)};
}

// A node with its position in the text. The children of a map are key, value, key, value.
struct Node {
  enum class Kind : std::uint8_t { null, scalar, alias, list, map } kind = Kind::null;
  bool is_text = false;  // a scalar that YAML reads as text
  bool flow = false;
  std::size_t at = 0;      // bytes from the text's beginning
  std::size_t column = 0;  // column of `at`, bytes
  YAML::anchor_t anchor = 0;
  std::string tag = {};  // explicit tag
  std::string value = {};
  std::vector<Node> children = {};

  // Compares the data.
  bool operator==(const Node& other) const {
    return kind == other.kind && is_text == other.is_text && anchor == other.anchor &&
           tag == other.tag && value == other.value && children == other.children;
  }
};

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Checks whether YAML 1.1 or 1.2 may read a plain scalar as something other than text. Errs on the
// side of true.
bool reads_as_other(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (is_any_of(lower, {"", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "=",
                        "<<", ".inf", "+.inf", "-.inf", ".nan"})) {
    return true;
  }
  if (!std::string_view("0123456789.+-").contains(lower.front())) return false;
  if (lower.find_first_of("0123456789") == std::string::npos) return false;
  if (lower.find_first_not_of("0123456789.") == std::string::npos &&
      std::ranges::count(lower, '.') >= 2) {
    return false;  // 1.2.3
  }
  return lower.find_first_not_of("0123456789abcdefox_.:+-tz ") == std::string::npos;
}

// Builds the nodes of one document.
class Builder : public YAML::EventHandler {
 public:
  Node root;
  int start = 0;  // start of the document

  void OnDocumentStart(const YAML::Mark& mark) override { start = mark.pos; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Node::Kind::null, mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Node::Kind::alias, mark, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node& node = add(Node::Kind::scalar, mark, anchor, tag);
    node.value = value;
    node.is_text = tag != "?" || !reads_as_other(value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(add(Node::Kind::list, mark, anchor, tag), style);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(add(Node::Kind::map, mark, anchor, tag), style);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  Node& add(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor,
            const std::string& tag = {}) {
    Node* node = &root;
    if (!open_.empty()) node = &open_.back()->children.emplace_back();
    node->kind = kind;
    node->at = static_cast<std::size_t>(std::max(mark.pos, 0));
    node->column = static_cast<std::size_t>(std::max(mark.column, 0));
    node->anchor = anchor;
    if (tag != "?" && tag != "!") node->tag = tag;
    return *node;
  }
  // An open node is the last child of its parent, so its address holds until it is closed.
  void open(Node& node, YAML::EmitterStyle::value style) {
    node.flow = style == YAML::EmitterStyle::Flow;
    if (open_.size() >= kMaxDepth) refuse("is nested too deeply", ErrorCode::too_large);
    open_.push_back(&node);
  }
  std::vector<Node*> open_;
};

std::vector<Node> documents_of(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  std::vector<Node> documents;
  int before = -1;
  while (true) {
    Builder builder;
    if (!parser.HandleNextDocument(builder)) return documents;
    // yaml-cpp 0.7 finds documents without end in some invalid texts, as in ",,".
    if (builder.start <= before) refuse("it is not YAML", ErrorCode::invalid_data);
    before = builder.start;
    documents.push_back(std::move(builder.root));
  }
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\x" + hex_encode(std::string_view(&c, 1));
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool plain_is_safe(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (reads_as_other(text) || text.ends_with(' ') || text.ends_with(':')) return false;
  if (!is_word(text.front()) && !std::string_view("_./").contains(text.front())) return false;
  if (text.starts_with("...") || text.contains(": ") || text.contains(" #")) return false;
  return std::ranges::all_of(
      text, [&](char c) { return is_word(c) || std::string_view("_./@+=~- :*#$()").contains(c); });
}

// Returns a value as written. `quote` is that of the old value, to keep the style.
std::string written(const ManifestValue& value, char quote = 0) {
  if (!value.is_text) return value.text;
  const bool control = std::ranges::any_of(
      value.text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (quote == '\'' && !control) {
    std::string out = "'";
    for (const char c : value.text) out += c == '\'' ? "''" : std::string(1, c);
    return out + "'";
  }
  if (quote == '"' || !plain_is_safe(value.text)) return double_quoted(value.text);
  return value.text;
}

Node node_of(const ManifestValue& value) {
  Node node;
  const bool null = !value.is_text && is_any_of(value.text, {"~", "null", "Null", "NULL"});
  node.kind = null ? Node::Kind::null : Node::Kind::scalar;
  node.is_text = value.is_text;
  if (!null) node.value = value.text;
  return node;
}

Node node_of(const ManifestData& data) {
  if (data.kind == ManifestData::Kind::scalar) return node_of(data.value);
  Node node;
  const bool is_map = data.kind == ManifestData::Kind::map;
  node.kind = is_map ? Node::Kind::map : Node::Kind::list;
  for (std::size_t i = 0; i < data.children.size(); ++i) {
    if (is_map) node.children.push_back(node_of(data.keys[i]));
    node.children.push_back(node_of(data.children[i]));
  }
  return node;
}

// Returns `data` nested below the keys and entries of these steps.
ManifestData wrapped(ManifestData data, std::span<const ManifestPath::value_type> steps) {
  for (; !steps.empty(); steps = steps.first(steps.size() - 1)) {
    ManifestData outer;
    if (const auto* key = std::get_if<std::string>(&steps.back())) {
      outer.kind = ManifestData::Kind::map;
      outer.keys.push_back({.text = *key});
    } else {
      const auto index = std::get<std::size_t>(steps.back());
      if (index != 0) {
        refuse("there is no entry " + std::to_string(index), ErrorCode::not_found);
      }
      outer.kind = ManifestData::Kind::list;
    }
    outer.children.push_back(std::move(data));
    data = std::move(outer);
  }
  return data;
}

// Writes data. `quote` is used for all texts and keys, if set.
class Writer {
 public:
  Writer(char quote, std::string line_ending)
      : quote_(quote), line_ending_(std::move(line_ending)) {}

  [[nodiscard]] std::string scalar(const ManifestValue& value) const {
    return written(value, quote_);
  }
  [[nodiscard]] std::string flow(const ManifestData& data) const {
    if (data.kind == ManifestData::Kind::scalar) return scalar(data.value);
    const bool is_map = data.kind == ManifestData::Kind::map;
    std::string out(1, is_map ? '{' : '[');
    for (std::size_t i = 0; i < data.children.size(); ++i) {
      if (i > 0) out += ", ";
      if (is_map) out += scalar(data.keys[i]) + ": ";
      out += flow(data.children[i]);
    }
    return out + (is_map ? '}' : ']');
  }
  enum class After : std::uint8_t { key, dash };
  // Appends the text after the colon of a key or the dash of an entry. `indent` is that of the
  // lines below it.
  void block(const ManifestData& data, std::size_t indent, After after, std::string& out) const {
    if (data.kind == ManifestData::Kind::scalar || data.children.empty()) {
      out += " " + flow(data);
      return;
    }
    for (std::size_t i = 0; i < data.children.size(); ++i) {
      out += i == 0 && after == After::dash ? " " : line_ending_ + std::string(indent, ' ');
      const bool is_map = data.kind == ManifestData::Kind::map;
      out += is_map ? scalar(data.keys[i]) + ":" : "-";
      block(data.children[i], indent + 2, is_map ? After::key : After::dash, out);
    }
  }

 private:
  char quote_;
  std::string line_ending_;
};

void check_plain_place(const Node& node, std::string_view what) {
  if (node.kind == Node::Kind::alias) refuse(std::string(what) + " is an alias");
  if (node.anchor != 0) refuse(std::string(what) + " has an anchor");
  if (!node.tag.empty()) refuse(std::string(what) + " has a tag");
}

void check_all_plain(const Node& node) {
  check_plain_place(node, "what is removed");
  for (const Node& child : node.children) check_all_plain(child);
}

// Returns the index of a key's value among the children of a map.
std::optional<std::size_t> find_key(const Node& map, const std::string& key) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i + 1 < map.children.size(); i += 2) {
    const Node& each = map.children[i];
    if (each.kind == Node::Kind::scalar && each.value == "<<") refuse("a map has a merge key");
    if (each.kind != Node::Kind::scalar || each.value != key) continue;
    if (found) refuse("a map has the key \"" + key + "\" twice");
    check_plain_place(each, "a key");
    found = i + 1;
  }
  return found;
}

// Makes one change of the text, and the same change in the data.
class Editor {
 public:
  Editor(std::string text, Node& root)
      : text_(std::move(text)),
        root_(root),
        quote_(root.flow ? '"' : '\0'),
        writer_(quote_, line_ending()) {}

  std::string apply(const ManifestEdit& edit) {
    const bool replaces = edit.action == ManifestEdit::Action::replace;
    if (edit.action != ManifestEdit::Action::append && edit.path.empty()) {
      refuse("the path is empty", ErrorCode::invalid_argument);
    }
    Node* parent = nullptr;
    Node* node = &root_;
    std::size_t index = 0;  // of `node` among the children of `parent`
    for (std::size_t i = 0; i < edit.path.size(); ++i) {
      check_plain_place(*node, "a node on the way");
      const std::span<const ManifestPath::value_type> rest(
          edit.path.begin() + static_cast<std::ptrdiff_t>(i), edit.path.end());
      if (replaces && node->kind == Node::Kind::null && parent != nullptr) {
        replace(*parent, index, wrapped(edit.data, rest));
        return text_;
      }
      const auto* entry = std::get_if<std::size_t>(&edit.path[i]);
      if (replaces && entry != nullptr && node->kind == Node::Kind::list &&
          *entry == node->children.size()) {
        append(*node, wrapped(edit.data, rest.subspan(1)));
        return text_;
      }
      parent = node;
      const auto next = step(*node, edit.path[i]);
      if (!next) {
        const bool last = i + 1 == edit.path.size();
        const auto& key = std::get<std::string>(edit.path[i]);
        if (replaces) {
          add_key(*node, key, wrapped(edit.data, rest.subspan(1)));
        } else if (last && edit.action == ManifestEdit::Action::set) {
          add_key(*node, key, {.value = edit.value});
        } else {
          refuse("there is no such entry", ErrorCode::not_found);
        }
        return text_;
      }
      above_ = {parent_of_, index};
      parent_of_ = parent;
      index = *next;
      node = &parent->children[index];
    }
    switch (edit.action) {
      case ManifestEdit::Action::set:
        set(*parent, index, edit.value);
        break;
      case ManifestEdit::Action::append:
        append(*node, {.value = edit.value});
        break;
      case ManifestEdit::Action::replace:
        replace(*parent, index, edit.data);
        break;
      case ManifestEdit::Action::remove:
        remove(*parent, index);
        break;
    }
    return text_;
  }

 private:
  static std::optional<std::size_t> step(const Node& node,
                                         const std::variant<std::string, std::size_t>& next) {
    if (const auto* key = std::get_if<std::string>(&next)) {
      if (node.kind != Node::Kind::map) {
        refuse("\"" + *key + "\" is not in a map", ErrorCode::not_found);
      }
      return find_key(node, *key);
    }
    const auto at = std::get<std::size_t>(next);
    if (node.kind != Node::Kind::list || at >= node.children.size()) {
      refuse("there is no entry " + std::to_string(at), ErrorCode::not_found);
    }
    return at;
  }

  [[nodiscard]] char char_at(std::size_t at) const { return at < text_.size() ? text_[at] : '\n'; }
  [[nodiscard]] std::size_t skip_blanks(std::size_t at) const {
    while (at < text_.size() && is_blank(text_[at])) ++at;
    return at;
  }
  [[nodiscard]] std::size_t line_begin(std::size_t at) const {
    const auto before = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
    return before == std::string::npos ? 0 : before + 1;
  }
  [[nodiscard]] std::size_t line_end(std::size_t at) const {  // after the line end
    const auto end = text_.find('\n', at);
    return end == std::string::npos ? text_.size() : end + 1;
  }
  [[nodiscard]] std::string line_ending() const {
    const auto first = text_.find('\n');
    return first != std::string::npos && first > 0 && text_[first - 1] == '\r' ? "\r\n" : "\n";
  }
  [[nodiscard]] bool ends_line(std::size_t at) const {
    return at >= text_.size() || text_[at] == '\n' || text_[at] == '\r';
  }

  // Returns the end of a scalar that is written in one line.
  [[nodiscard]] std::size_t scalar_end(const Node& node, bool key) const {
    const char first = char_at(node.at);
    std::size_t at = node.at;
    if (first == '"' || first == '\'') {
      for (++at; !ends_line(at); ++at) {
        if (first == '"' && text_[at] == '\\') {
          ++at;
        } else if (text_[at] == first) {
          if (first == '"' || char_at(at + 1) != '\'') return at + 1;
          ++at;
        }
      }
      refuse("a quoted scalar has several lines");
    }
    if (first == '|' || first == '>') refuse("a key is a block scalar");
    const std::string& value = node.value;
    if (node.kind == Node::Kind::scalar) {
      if (text_.compare(node.at, value.size(), value) != 0) refuse("a scalar has several lines");
      return node.at + value.size();
    }
    while (!ends_line(at) && !is_blank(text_[at]) && !std::string_view(",]}").contains(text_[at]) &&
           !(key && text_[at] == ':')) {
      ++at;
    }
    if (!is_any_of(std::string_view(text_).substr(node.at, at - node.at),
                   {"~", "null", "Null", "NULL"})) {
      refuse("an empty value is not recognised");
    }
    return at;
  }

  // Replaces a block scalar by a value. Refuses one with a comment in its header, which would be
  // lost.
  void set_block(const Node& parent, std::size_t index, const ManifestValue& value) {
    const std::size_t at = parent.children[index].at;
    const std::size_t header_end = line_end(at);
    const std::size_t end = entry_end(parent, index);
    if (text_.substr(at, header_end - at).contains('#') || end < header_end) {
      refuse("the form of a block scalar is not recognised");
    }
    const bool has_line_end = end > at && text_[end - 1] == '\n';
    text_.replace(at, end - at, written(value, '\'') + (has_line_end ? line_ending() : ""));
  }

  // Returns the position after the bracket that closes the flow collection at `at`.
  [[nodiscard]] std::size_t flow_end(std::size_t at) const {
    std::size_t depth = 0;
    char before = '[';  // the last character that is not blank
    for (; at < text_.size(); ++at) {
      const char c = text_[at];
      const bool begins = std::string_view("[{,:").contains(before);
      if (begins && (c == '"' || c == '\'')) {
        at = quoted_end(at) - 1;
      } else if (c == '#' && (is_blank(text_[at - 1]) || text_[at - 1] == '\n')) {
        at = line_end(at) - 1;
        continue;
      } else if (c == '[' || c == '{') {
        ++depth;
      } else if ((c == ']' || c == '}') && --depth == 0) {
        return at + 1;
      }
      if (!is_blank(c) && c != '\n' && c != '\r') before = c;
    }
    refuse("the end of a flow collection is not recognised");
  }

  // Returns the position after the quote that closes the quoted scalar at `at`, of one line or
  // several.
  [[nodiscard]] std::size_t quoted_end(std::size_t at) const {
    const char quote = text_[at];
    for (++at; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '"' || char_at(at + 1) != '\'') return at + 1;
        ++at;
      }
    }
    refuse("a quoted scalar has no end");
  }

  // Replaces an entry, of any form, by data.
  void replace(Node& parent, std::size_t index, const ManifestData& data) {
    Node& node = parent.children[index];
    check_all_plain(node);
    const bool is_collection = node.kind == Node::Kind::list || node.kind == Node::Kind::map;
    if (data.kind == ManifestData::Kind::scalar && !is_collection) {
      set(parent, index, data.value);
      return;
    }
    if (is_collection && node.flow) {
      text_.replace(node.at, flow_end(node.at) - node.at, writer_.flow(data));
    } else if (parent.flow) {
      const std::size_t end = scalar_end(node, false);
      text_.replace(node.at, end - node.at, writer_.flow(data));
    } else {
      const bool is_map = parent.kind == Node::Kind::map;
      const std::size_t entry = entry_at(parent, index);
      const std::size_t begin = is_map ? colon_end(parent.children[index - 1]) : entry + 1;
      const std::size_t end = entry_end(parent, index);
      if (end < begin) refuse("the form of the entry is not recognised");
      std::string text;
      writer_.block(data, entry - line_begin(entry) + 2,
                    is_map ? Writer::After::key : Writer::After::dash, text);
      if (text_[end - 1] == '\n') text += line_ending();
      text_.replace(begin, end - begin, text);
    }
    node = node_of(data);
  }

  // Returns the position after the colon of a key.
  [[nodiscard]] std::size_t colon_end(const Node& key) const {
    if (key.kind != Node::Kind::scalar) refuse("a key is not a scalar");
    const std::size_t at = skip_blanks(scalar_end(key, true));
    if (char_at(at) != ':') refuse("a key is not followed by a colon");
    return at + 1;
  }

  void set(Node& parent, std::size_t index, const ManifestValue& value) {
    Node& node = parent.children[index];
    check_plain_place(node, "the value");
    if (node.kind == Node::Kind::list || node.kind == Node::Kind::map) {
      refuse("the value is not a scalar", ErrorCode::invalid_argument);
    }
    const bool null = node.kind == Node::Kind::null;
    if (null && parent.kind == Node::Kind::map) {
      const std::size_t colon = colon_end(parent.children[index - 1]);
      const std::size_t next = skip_blanks(colon);
      if (ends_line(next) || text_[next] == '#' || text_[next] == ',' || text_[next] == '}') {
        text_.insert(colon, " " + written(value));
        node = node_of(value);
        return;
      }
    }
    const char first = char_at(node.at);
    if (first == '|' || first == '>') {
      set_block(parent, index, value);
      node = node_of(value);
      return;
    }
    const std::size_t end = scalar_end(node, false);
    const char quote = first == '"' || first == '\'' ? first : quote_;
    text_.replace(node.at, end - node.at, written(value, quote));
    node = node_of(value);
  }

  // Returns the position of an entry of a block collection: its dash or its key.
  [[nodiscard]] std::size_t entry_at(const Node& parent, std::size_t index) const {
    if (parent.kind == Node::Kind::map) return parent.children[index - 1].at;
    std::size_t at = parent.children[index].at;
    while (at > 0 && text_[at - 1] == ' ') --at;
    if (at == 0 || text_[at - 1] != '-' || at - 1 - line_begin(at - 1) != parent.column) {
      refuse("the dash of a list's entry is not recognised");
    }
    return at - 1;
  }

  // Returns the position after the last line of an entry. Comments that are not deeper than the
  // entry belong to the next one.
  [[nodiscard]] std::size_t entry_end(const Node& parent, std::size_t index) const {
    const std::size_t begin = entry_at(parent, index);
    const std::size_t column = begin - line_begin(begin);
    const bool dashes =
        parent.kind == Node::Kind::map && parent.children[index].kind == Node::Kind::list;
    std::size_t end = line_end(begin);
    for (std::size_t at = end; at < text_.size(); at = line_end(at)) {
      std::size_t first = at;
      while (char_at(first) == ' ') ++first;
      if (ends_line(first)) continue;  // part of the entry only if more of it follows
      const std::size_t indent = first - at;
      if (text_[first] == '#' && indent <= column) continue;
      const bool dash = dashes && indent == column && text_[first] == '-' &&
                        (is_blank(char_at(first + 1)) || ends_line(first + 1));
      if (indent <= column && !dash) break;
      end = line_end(at);
    }
    return end;
  }

  [[nodiscard]] std::size_t column_of_last(const Node& parent) const {
    const std::size_t begin = entry_at(parent, parent.children.size() - 1);
    return begin - line_begin(begin);
  }

  // Adds a line after the last entry of a block collection.
  void add_line(const Node& parent, const std::string& line) {
    const std::size_t at = entry_end(parent, parent.children.size() - 1);
    std::string added = std::string(column_of_last(parent), ' ') + line;
    const bool open_end = at == text_.size() && !text_.ends_with('\n');
    added = open_end ? line_ending() + added : added + line_ending();
    text_.insert(at, added);
  }

  // Writes the first entry into "[]" or "{}".
  void add_to_empty(const Node& node, std::string_view brackets, const std::string& entry) {
    if (text_.compare(node.at, 2, brackets) != 0) refuse("a flow collection is not edited");
    text_.insert(node.at + 1, entry);
  }

  void append(Node& list, const ManifestData& data) {
    check_plain_place(list, "the list");
    if (list.kind != Node::Kind::list) refuse("is not a list", ErrorCode::invalid_argument);
    if (list.flow || list.children.empty()) {
      add_to_empty(list, "[]", writer_.flow(data));
    } else {
      std::string line = "-";
      writer_.block(data, column_of_last(list) + 2, Writer::After::dash, line);
      add_line(list, line);
    }
    list.children.push_back(node_of(data));
  }

  void add_key(Node& map, const std::string& key, const ManifestData& data) {
    const ManifestValue name{.text = key};
    const std::string entry = writer_.scalar(name) + ":";
    const bool is_first = map.flow && !map.children.empty();
    if (is_first) {
      if (char_at(map.at) != '{') refuse("a flow collection is not recognised");
      text_.insert(map.at + 1, entry + " " + writer_.flow(data) + ", ");
    } else if (map.flow || map.children.empty()) {
      add_to_empty(map, "{}", entry + " " + writer_.flow(data));
    } else {
      std::string line = entry;
      writer_.block(data, column_of_last(map) + 2, Writer::After::key, line);
      add_line(map, line);
    }
    Node added[] = {node_of(name), node_of(data)};
    map.children.insert(is_first ? map.children.begin() : map.children.end(),
                        std::make_move_iterator(std::begin(added)),
                        std::make_move_iterator(std::end(added)));
  }

  void remove(Node& parent, std::size_t index) {
    const bool map = parent.kind == Node::Kind::map;
    const auto first = static_cast<std::ptrdiff_t>(map ? index - 1 : index);
    const std::ptrdiff_t width = map ? 2 : 1;
    if (parent.flow) refuse("a flow collection is not edited");
    check_all_plain(parent.children[index]);
    std::size_t begin = entry_at(parent, index);
    const std::size_t end = entry_end(parent, index);
    const std::size_t line = line_begin(begin);
    const bool starts_line = text_.find_first_not_of(' ', line) == begin;
    if (std::cmp_equal(parent.children.size(), width)) {
      // Removing the last entry leaves an empty collection instead of null.
      const auto& [grandparent, at] = above_;
      if (grandparent == nullptr || grandparent->kind != Node::Kind::map || !starts_line) {
        refuse("it is the only entry of its collection");
      }
      const std::size_t colon = colon_end(grandparent->children[at - 1]);
      if (colon > line) refuse("the form of the collection is not recognised");
      text_.erase(line, end - line);
      text_.insert(colon, map ? " {}" : " []");
    } else if (starts_line) {
      text_.erase(line, end - line);
    } else {
      // The entry is after a dash: the next key takes its place.
      const std::size_t next = index + static_cast<std::size_t>(width);
      if (next >= parent.children.size()) refuse("the entry does not begin its line");
      const std::size_t follower = entry_at(parent, next);
      if (line_begin(follower) != end) refuse("comments follow the entry");
      text_.erase(begin, follower - begin);
    }
    parent.children.erase(parent.children.begin() + first, parent.children.begin() + first + width);
  }

  std::string text_;
  Node& root_;
  const char quote_;  // for all texts in a file that is a flow collection, as JSON
  const Writer writer_;
  Node* parent_of_ = nullptr;
  std::pair<Node*, std::size_t> above_ = {nullptr, 0};  // position of the parent
};

void check_value(const ManifestValue& value) {
  if (!is_utf8(value.text)) refuse("the value is not UTF-8", ErrorCode::invalid_argument);
  const bool other = reads_as_other(value.text) && !value.text.empty() && value.text != "<<" &&
                     value.text != "=" && !value.text.contains(": ") &&
                     !value.text.ends_with(':') && !value.text.ends_with(' ');
  if (!value.is_text && !other) {
    refuse("the value is no number, boolean or null", ErrorCode::invalid_argument);
  }
}

void check_data(const ManifestData& data, std::size_t depth = 0) {
  if (depth > kMaxDepth) refuse("the value is nested too deeply", ErrorCode::too_large);
  if (data.kind == ManifestData::Kind::scalar) check_value(data.value);
  for (const auto& key : data.keys) check_value(key);
  for (const auto& child : data.children) check_data(child, depth + 1);
}

}  // namespace

namespace {

// Calls `use` with the documents of a text. `use` may throw Refused.
Result<std::string> with_documents(
    std::string_view text, const std::function<Result<std::string>(std::vector<Node>&)>& use) {
  if (text.size() > kMaxText) return fail(ErrorCode::too_large, "the YAML file is over 1 MiB");
  const auto is_strange = [](unsigned char c) {
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  };
  if (std::ranges::any_of(text, is_strange) || !is_utf8(text)) {
    return fail(ErrorCode::invalid_data, "the YAML file holds control characters or is not UTF-8");
  }
  try {
    auto documents = documents_of(std::string(text));
    return use(documents);
  } catch (const Refused& refused) {
    return fail(refused.code, "the YAML file cannot be edited: " + refused.why);
  } catch (const YAML::Exception& error) {
    // what() may quote the input; the reason does not.
    return fail(ErrorCode::invalid_data,
                "is not YAML, line " + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
}

// Returns a file without data, which may have comments, with `data` appended.
Result<std::string> first_document(std::string text, const ManifestData& data) {
  if (data.kind != ManifestData::Kind::map) {
    return fail(ErrorCode::unsupported, "the YAML file has no data, and what is set is no map");
  }
  const Writer writer('\0', "\n");
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  std::string block;
  writer.block(data, 0, Writer::After::key, block);
  text += block.substr(1) + "\n";  // without the line end before the first key
  const auto documents = documents_of(text);
  if (documents.size() != 1 || documents.front() != node_of(data)) {
    return fail(ErrorCode::unsupported, "the YAML file has a form that cannot be edited");
  }
  return text;
}

Result<Node*> document_at(std::vector<Node>& documents, std::size_t document) {
  if (document < documents.size()) return &documents[document];
  return fail(ErrorCode::not_found, "the YAML file has no such document");
}

// Returns the node at a path; null when there is none.
const Node* find(const Node* node, const ManifestPath& path) {
  for (const auto& step : path) {
    const auto* const key = std::get_if<std::string>(&step);
    if (node->kind != (key != nullptr ? Node::Kind::map : Node::Kind::list)) return nullptr;
    const auto& children = node->children;
    const Node* next = nullptr;
    if (key == nullptr) {
      const auto index = std::get<std::size_t>(step);
      if (index < children.size()) next = &children[index];
    }
    for (std::size_t i = 0; key != nullptr && i + 1 < children.size(); i += 2) {
      if (children[i].kind == Node::Kind::scalar && children[i].value == *key) {
        next = &children[i + 1];
      }
    }
    if (next == nullptr) return nullptr;
    node = next;
  }
  return node;
}

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

ManifestValue value_of(const Node& node) {
  if (node.kind == Node::Kind::null) return {.text = "null", .is_text = false};
  return {.text = node.value, .is_text = node.is_text};
}

ManifestData data_of(const Node& node) {
  check_plain_place(node, "a value");
  if (node.kind == Node::Kind::null || node.kind == Node::Kind::scalar) {
    return {.value = value_of(node)};
  }
  const bool is_map = node.kind == Node::Kind::map;
  ManifestData data{.kind = is_map ? ManifestData::Kind::map : ManifestData::Kind::list};
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (is_map) {
      const Node& key = node.children[i++];
      check_plain_place(key, "a key");
      if (key.kind != Node::Kind::scalar) refuse("a key is not a scalar");
      if (key.value == "<<") refuse("a map has a merge key");
      const auto name = value_of(key);
      if (data.find(name.text) != nullptr) refuse("a map has the key \"" + name.text + "\" twice");
      data.keys.push_back(name);
    }
    data.children.push_back(data_of(node.children[i]));
  }
  return data;
}

void collect_leaves(const Node& node, ManifestPath& path, std::vector<ManifestLeaf>& leaves) {
  check_plain_place(node, "a value");
  switch (node.kind) {
    case Node::Kind::null:
      leaves.push_back({.path = path, .value = {.text = "null", .is_text = false}});
      return;
    case Node::Kind::scalar:
      leaves.push_back({.path = path, .value = {.text = node.value, .is_text = node.is_text}});
      return;
    case Node::Kind::alias:
      return;  // refused above
    case Node::Kind::list:
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        path.emplace_back(i);
        collect_leaves(node.children[i], path, leaves);
        path.pop_back();
      }
      return;
    case Node::Kind::map:
      for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
        const Node& key = node.children[i];
        check_plain_place(key, "a key");
        if (key.kind != Node::Kind::scalar) refuse("a key is not a scalar");
        if (key.value == "<<") refuse("a map has a merge key");
        path.emplace_back(key.value);
        collect_leaves(node.children[i + 1], path, leaves);
        path.pop_back();
      }
      return;
  }
}

}  // namespace

const ManifestData* ManifestData::find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key, &ManifestValue::text);
  return found == keys.end() ? nullptr : &children[static_cast<std::size_t>(found - keys.begin())];
}

bool ManifestData::operator==(const ManifestData& other) const {
  if (kind != other.kind || children.size() != other.children.size()) return false;
  if (kind == Kind::scalar) return value == other.value;
  if (kind == Kind::list) return children == other.children;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto* const same = other.find(keys[i].text);
    if (same == nullptr || *same != children[i]) return false;
  }
  return true;
}

Result<std::string> edit_manifest(std::string_view text, const ManifestEdit& edit) {
  if (text.starts_with(kByteOrderMark)) {
    auto edited = edit_manifest(text.substr(kByteOrderMark.size()), edit);
    if (edited) edited->insert(0, kByteOrderMark);
    return edited;
  }
  return with_documents(text, [&](std::vector<Node>& documents) -> Result<std::string> {
    const bool replaces = edit.action == ManifestEdit::Action::replace;
    if (replaces) {
      check_data(edit.data);
    } else if (edit.action != ManifestEdit::Action::remove) {
      check_value(edit.value);
    }
    if (replaces && documents.empty() && edit.document == 0) {
      return first_document(std::string(text), wrapped(edit.data, edit.path));
    }
    const auto document = document_at(documents, edit.document);
    if (!document) return std::unexpected(document.error());
    std::string edited = Editor(std::string(text), **document).apply(edit);
    bool same = false;
    try {
      same = documents_of(edited) == documents;
    } catch (const YAML::Exception&) {
      same = false;
    }
    if (!same) {
      return fail(ErrorCode::unsupported,
                  "the YAML file has a form in which this place cannot be edited");
    }
    return edited;
  });
}

Result<std::optional<ManifestData>> read_data(std::string_view text, const ManifestPath& path) {
  std::optional<ManifestData> data;
  const auto read =
      with_documents(without_mark(text), [&](std::vector<Node>& documents) -> Result<std::string> {
        const Node* const node = documents.empty() ? nullptr : find(&documents.front(), path);
        if (node != nullptr) data = data_of(*node);
        return std::string();
      });
  if (!read) return std::unexpected(read.error());
  return data;
}

Result<std::string> read_manifest(std::string_view text, const ManifestPath& path,
                                  std::size_t document) {
  text = without_mark(text);
  return with_documents(text, [&](std::vector<Node>& documents) -> Result<std::string> {
    const auto root = document_at(documents, document);
    if (!root) return std::unexpected(root.error());
    const Node* const node = find(*root, path);
    if (node == nullptr || node->kind != Node::Kind::scalar) {
      return fail(ErrorCode::not_found, "the YAML file has no such value");
    }
    return node->value;
  });
}

Result<std::vector<ManifestLeaf>> read_leaves(std::string_view text, const ManifestPath& path) {
  text = without_mark(text);
  std::vector<ManifestLeaf> leaves;
  const auto read = with_documents(text, [&](std::vector<Node>& documents) -> Result<std::string> {
    const auto root = document_at(documents, 0);
    if (!root) return std::unexpected(root.error());
    const Node* const node = find(*root, path);
    if (node == nullptr) return fail(ErrorCode::not_found, "the YAML file has no such value");
    ManifestPath at = path;
    collect_leaves(*node, at, leaves);
    return std::string();
  });
  if (!read) return std::unexpected(read.error());
  return leaves;
}

}  // namespace gitops::app_proxy
