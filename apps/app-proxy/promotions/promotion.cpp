#include "app-proxy/promotions/promotion.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

std::unexpected<Error> mistake(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

// A token of a glob without braces.
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

// Matcher that tracks all possible next tokens at once, so that a glob takes at most its length for
// each character.
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
  // Skips tokens that may match nothing.
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

// The first "{…}" that is not nested.
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

// Matches a glob with braces. `left` is the number of alternatives that may still be tried.
bool matches(std::string_view glob, std::string_view path, int& left) {
  const auto braces = braces_in(glob);
  if (!braces) return --left >= 0 && matches_plain(glob, path);
  return std::ranges::any_of(braces->choices, [&](std::string_view choice) {
    std::string plain(glob.substr(0, braces->open));
    plain.append(choice).append(glob.substr(braces->close + 1));
    return left > 0 && matches(plain, path, left);
  });
}

// Limits of a glob.
constexpr int kMaxChoices = 100;
constexpr std::size_t kMaxGlob = 1'024;

// Returns the number of alternatives of a glob, as far as `most` and one more.
int choices_in(std::string_view glob, int most) {
  const auto braces = braces_in(glob);
  if (!braces) return 1;
  int count = 0;
  for (const auto choice : braces->choices) {
    std::string plain(glob.substr(0, braces->open));
    plain.append(choice).append(glob.substr(braces->close + 1));
    count += choices_in(plain, most - count);
    if (count > most) break;
  }
  return count;
}

// Checks the limits beyond which matches_glob() matches nothing.
Result<void> check_glob(std::string_view glob) {
  constexpr std::size_t kShown = 100;
  if (glob.size() <= kMaxGlob && choices_in(glob, kMaxChoices) <= kMaxChoices) return {};
  return mistake("the glob " + shortened(glob, kShown) +
                 " of the promotion template has more than 100 alternatives or 1,024 bytes");
}

// The data at a JSON path of a file.
struct PromotedValue {
  ManifestPath path;
  ManifestData data;
};

Result<std::string> with_data(std::string text, const ManifestPath& path, const ManifestData& data);

ManifestPath below(ManifestPath path, ManifestPath::value_type step) {
  path.push_back(std::move(step));
  return path;
}

Result<std::string> removed(std::string_view text, ManifestPath path) {
  return edit_manifest(text, {.action = ManifestEdit::Action::remove, .path = std::move(path)});
}

// Sets the entries of a map. Additions come before removals, so that no map or list is empty
// meanwhile.
Result<std::string> with_map(std::string text, const ManifestPath& path,
                             const ManifestData& present, const ManifestData& wanted) {
  Result<std::string> edited = std::move(text);
  for (std::size_t i = 0; i < wanted.keys.size() && edited; ++i) {
    edited = with_data(std::move(*edited), below(path, wanted.keys[i].text), wanted.children[i]);
  }
  for (std::size_t i = present.keys.size(); i-- > 0 && edited;) {
    if (wanted.find(present.keys[i].text) == nullptr) {
      edited = removed(*edited, below(path, present.keys[i].text));
    }
  }
  return edited;
}

Result<std::string> with_list(std::string text, const ManifestPath& path,
                              const ManifestData& present, const ManifestData& wanted) {
  Result<std::string> edited = std::move(text);
  for (std::size_t i = 0; i < wanted.children.size() && edited; ++i) {
    edited = with_data(std::move(*edited), below(path, i), wanted.children[i]);
  }
  for (std::size_t i = present.children.size(); i-- > wanted.children.size() && edited;) {
    edited = removed(*edited, below(path, i));
  }
  return edited;
}

// Returns `text` with this data at a path. Equal data keeps its spelling. Collections are changed
// entry by entry where their form permits it, and rewritten otherwise.
Result<std::string> with_data(std::string text, const ManifestPath& path,
                              const ManifestData& data) {
  using Kind = ManifestData::Kind;
  const auto present = read_data(text, path);
  if (!present) return std::unexpected(present.error());
  const bool is_there = present->has_value();
  if (is_there && **present == data) return text;
  const bool is_same_kind = is_there && (*present)->kind == data.kind && data.kind != Kind::scalar;
  if (is_same_kind && !(*present)->children.empty() && !data.children.empty()) {
    auto edited = data.kind == Kind::map ? with_map(text, path, **present, data)
                                         : with_list(text, path, **present, data);
    if (edited || path.empty() || edited.error().code != ErrorCode::unsupported) return edited;
  }
  return edit_manifest(text, {.action = ManifestEdit::Action::replace, .path = path, .data = data});
}

Result<std::string> with_value(std::string text, const PromotedValue& value) {
  if (value.path.empty() && value.data.kind == ManifestData::Kind::scalar) {
    return fail(ErrorCode::unsupported, "the source file is a single value");
  }
  auto edited = with_data(std::move(text), value.path, value.data);
  if (!edited) return edited;
  const auto after = read_data(*edited, value.path);
  if (!after || *after != value.data) {
    return fail(ErrorCode::unsupported, "the value cannot be promoted in place");
  }
  return edited;
}

FileChange value_change(std::string path, std::vector<PromotedValue> values) {
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
              auto edited = with_value(std::move(text), each);
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
  int left = kMaxChoices;
  if (glob.size() > kMaxGlob) return false;
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
  for (const auto& rule : rules) {
    if (auto checked = check_glob(rule.glob); !checked) return std::unexpected(checked.error());
  }
  std::vector<FileChange> changes;
  for (const auto& file : source) {
    bool is_whole = rules.empty();
    std::vector<PromotedValue> values;
    for (const auto& rule : rules) {
      if (!matches_glob(rule.glob, file.path)) continue;
      is_whole = is_whole || rule.json_paths.empty();
      for (const auto& text : rule.json_paths) {
        auto path = parse_json_path(text);
        if (!path) return std::unexpected(std::move(path.error()));
        auto data = read_data(file.content, *path);
        if (!data) return mistake(file.path + " of the source: " + data.error().message);
        if (!*data) continue;
        values.push_back({.path = std::move(*path), .data = std::move(**data)});
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
