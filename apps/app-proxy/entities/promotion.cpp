#include "app-proxy/entities/promotion.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace gitops::app_proxy {
namespace {

std::unexpected<Error> mistake(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

// A part of a glob without braces.
struct Token {
  enum class Kind { literal, one, name, any, folders };
  Kind kind = Kind::literal;
  char literal = 0;
};

std::vector<Token> tokens_of(std::string_view glob) {
  std::vector<Token> tokens;
  while (!glob.empty()) {
    Token next{.kind = Token::Kind::literal, .literal = glob.front()};
    std::size_t length = 1;
    if (glob.starts_with("**/")) {
      next.kind = Token::Kind::folders;
      length = 3;
    } else if (glob.starts_with("**")) {
      next.kind = Token::Kind::any;
      length = 2;
    } else if (glob.front() == '*') {
      next.kind = Token::Kind::name;
    } else if (glob.front() == '?') {
      next.kind = Token::Kind::one;
    }
    tokens.push_back(next);
    glob.remove_prefix(length);
  }
  return tokens;
}

// Which tokens may come next, all at once, so that no glob takes more than its length for each
// character.
class Matcher {
 public:
  explicit Matcher(std::vector<Token> tokens)
      : tokens_(std::move(tokens)), at_(tokens_.size() + 1), in_folders_(tokens_.size() + 1) {
    enter(at_, 0);
  }
  void take(char c) {
    using enum Token::Kind;
    std::vector<bool> at(tokens_.size() + 1);
    std::vector<bool> in_folders(tokens_.size() + 1);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (token.kind == folders) {
        if (!at_[i] && !in_folders_[i]) continue;
        in_folders[i] = true;
        if (c == '/') enter(at, i + 1);
        continue;
      }
      if (!at_[i]) continue;
      if (token.kind == any || (token.kind == name && c != '/')) enter(at, i);
      if ((token.kind == literal && token.literal == c) || (token.kind == one && c != '/')) {
        enter(at, i + 1);
      }
    }
    at_.swap(at);
    in_folders_.swap(in_folders);
  }
  [[nodiscard]] bool is_done() const { return at_[tokens_.size()]; }

 private:
  // What may stand for nothing is passed.
  void enter(std::vector<bool>& at, std::size_t i) const {
    while (true) {
      at[i] = true;
      if (i == tokens_.size()) return;
      const auto kind = tokens_[i].kind;
      if (kind == Token::Kind::literal || kind == Token::Kind::one) return;
      ++i;
    }
  }

  std::vector<Token> tokens_;
  std::vector<bool> at_;
  std::vector<bool> in_folders_;
};

bool matches_plain(std::string_view glob, std::string_view path) {
  Matcher matcher(tokens_of(glob));
  for (const char c : path) matcher.take(c);
  return matcher.is_done();
}

// The first "{…}" that is not in another one.
struct Braces {
  std::size_t open = 0;
  std::size_t close = 0;
  std::vector<std::string_view> choices = {};
};
std::optional<Braces> braces_in(std::string_view glob) {
  const auto open = glob.find('{');
  if (open == std::string_view::npos) return std::nullopt;
  Braces found{.open = open};
  std::size_t depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = open; i < glob.size(); ++i) {
    if (glob[i] == '{') ++depth;
    const bool ends = glob[i] == '}' && --depth == 0;
    if (!ends && (glob[i] != ',' || depth != 1)) continue;
    found.choices.push_back(glob.substr(begin, i - begin));
    begin = i + 1;
    if (!ends) continue;
    found.close = i;
    return found;
  }
  return std::nullopt;
}

// `left`: how many alternatives may still be tried.
bool matches(std::string_view glob, std::string_view path, int& left) {
  const auto braces = braces_in(glob);
  if (!braces) return --left >= 0 && matches_plain(glob, path);
  return std::ranges::any_of(braces->choices, [&](std::string_view choice) {
    std::string plain(glob.substr(0, braces->open));
    plain.append(choice).append(glob.substr(braces->close + 1));
    return left > 0 && matches(plain, path, left);
  });
}

// The values below one JSON path of a file.
struct PromotedValues {
  ManifestPath root;
  std::vector<ManifestLeaf> leaves;
};

bool same_value(const ManifestValue& a, const ManifestValue& b) {
  return a.text == b.text && a.is_text == b.is_text;
}

const ManifestLeaf* find_leaf(const std::vector<ManifestLeaf>& leaves, const ManifestPath& path) {
  const auto found = std::ranges::find(leaves, path, &ManifestLeaf::path);
  return found == leaves.end() ? nullptr : &*found;
}

// The leaves at a path; none when there is no such path.
Result<std::vector<ManifestLeaf>> leaves_at(std::string_view text, const ManifestPath& path) {
  auto leaves = read_leaves(text, path);
  if (!leaves && leaves.error().code == ErrorCode::not_found) return std::vector<ManifestLeaf>();
  return leaves;
}

Result<std::string> with_values(std::string text, const PromotedValues& values) {
  const auto before = leaves_at(text, values.root);
  if (!before) return std::unexpected(before.error());
  // From the end, so that the indices of lists hold.
  for (auto leaf = before->rbegin(); leaf != before->rend(); ++leaf) {
    if (find_leaf(values.leaves, leaf->path) != nullptr) continue;
    auto edited = edit_manifest(text, {.action = ManifestEdit::Action::remove, .path = leaf->path});
    if (!edited) return edited;
    text = std::move(*edited);
  }
  for (const auto& leaf : values.leaves) {
    if (leaf.path.empty()) return fail(ErrorCode::unsupported, "the source file is a single value");
    const auto* const present = find_leaf(*before, leaf.path);
    if (present != nullptr && same_value(present->value, leaf.value)) continue;
    ManifestEdit edit{.path = leaf.path, .value = leaf.value};
    const bool is_entry = std::holds_alternative<std::size_t>(leaf.path.back());
    if (present == nullptr && is_entry) {
      edit.action = ManifestEdit::Action::append;
      edit.path.pop_back();
    }
    auto edited = edit_manifest(text, edit);
    if (!edited) return edited;
    text = std::move(*edited);
  }
  const auto after = leaves_at(text, values.root);
  const bool is_right = after && std::ranges::equal(*after, values.leaves, same_value,
                                                    &ManifestLeaf::value, &ManifestLeaf::value);
  if (!is_right) {
    return fail(ErrorCode::unsupported, "lists of different lengths cannot be promoted in place");
  }
  return text;
}

FileChange value_change(std::string path, std::vector<PromotedValues> values) {
  return {.path = path,
          .kind = FileChange::Kind::edit,
          .edit = [path, values = std::move(values)](
                      std::optional<std::string_view> content) -> Result<std::string> {
            if (!content) {
              return mistake("the destination application has no file " + path +
                             " whose values could be set");
            }
            std::string text(*content);
            for (const auto& each : values) {
              auto edited = with_values(std::move(text), each);
              if (!edited) {
                return fail(ErrorCode::invalid_argument, path + ": " + edited.error().message);
              }
              text = std::move(*edited);
            }
            return text;
          }};
}

}  // namespace

Result<ManifestPath> parse_json_path(std::string_view text) {
  const auto refuse = [whole = std::string(text)] {
    return mistake("the JSON path " + whole +
                   " is not supported; expected keys and indices, as $.images[0].tag");
  };
  ManifestPath path;
  if (text.starts_with('$')) {
    text.remove_prefix(1);
  } else if (!text.empty() && !text.starts_with('.') && !text.starts_with('[')) {
    const auto end = std::min(text.find_first_of(".["), text.size());
    path.emplace_back(std::string(text.substr(0, end)));
    text.remove_prefix(end);
  } else {
    return refuse();
  }
  if (!path.empty() &&
      std::get<std::string>(path.front()).find_first_of("*?()@ ]") != std::string::npos) {
    return refuse();
  }
  while (!text.empty()) {
    if (text.front() == '.') {
      text.remove_prefix(1);
      const auto end = std::min(text.find_first_of(".["), text.size());
      const auto key = text.substr(0, end);
      if (key.empty() || key.find_first_of("*?()@ ]") != std::string_view::npos) return refuse();
      path.emplace_back(std::string(key));
      text.remove_prefix(end);
      continue;
    }
    if (text.front() != '[' || text.size() < 3) return refuse();
    text.remove_prefix(1);
    const char quote = text.front();
    if (quote == '\'' || quote == '"') {
      const auto end = text.find(quote, 1);
      if (end == std::string_view::npos || end == 1 || text.substr(end + 1, 1) != "]") {
        return refuse();
      }
      path.emplace_back(std::string(text.substr(1, end - 1)));
      text.remove_prefix(end + 2);
      continue;
    }
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || text.substr(length, 1) != "]") return refuse();
    path.emplace_back(index);
    text.remove_prefix(length + 1);
  }
  return path;
}

bool matches_glob(std::string_view glob, std::string_view path) {
  constexpr int kMostChoices = 100;
  constexpr std::size_t kLongest = 1024;
  int left = kMostChoices;
  if (glob.size() > kLongest) return false;
  if (glob.starts_with("./")) glob.remove_prefix(2);
  return matches(glob, path, left);
}

bool is_promoted(const std::vector<PromotionRule>& rules, std::string_view path) {
  return rules.empty() || std::ranges::any_of(rules, [&](const PromotionRule& rule) {
           return matches_glob(rule.glob, path);
         });
}

Result<std::vector<FileChange>> promotion_changes(const std::vector<PromotionRule>& rules,
                                                  const std::vector<PromotedFile>& source,
                                                  std::string_view destination) {
  std::vector<FileChange> changes;
  for (const auto& file : source) {
    bool is_whole = rules.empty();
    std::vector<PromotedValues> values;
    for (const auto& rule : rules) {
      if (!matches_glob(rule.glob, file.path)) continue;
      is_whole = is_whole || rule.json_paths.empty();
      for (const auto& text : rule.json_paths) {
        auto path = parse_json_path(text);
        if (!path) return std::unexpected(std::move(path.error()));
        auto leaves = leaves_at(file.content, *path);
        if (!leaves) return mistake(file.path + " of the source: " + leaves.error().message);
        if (leaves->empty()) continue;
        values.push_back({.root = std::move(*path), .leaves = std::move(*leaves)});
      }
    }
    std::string path = destination.empty() ? file.path : std::string(destination) + "/" + file.path;
    if (is_whole) {
      changes.push_back({.path = std::move(path), .content = file.content});
    } else if (!values.empty()) {
      changes.push_back(value_change(std::move(path), std::move(values)));
    }
  }
  return changes;
}

}  // namespace gitops::app_proxy
