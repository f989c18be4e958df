#include "common/graphql/parser.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "common/core/encoding.hpp"

namespace gitops::graphql {

std::string_view to_string(OperationKind kind) {
  switch (kind) {
    case OperationKind::query:
      return "query";
    case OperationKind::mutation:
      return "mutation";
    case OperationKind::subscription:
      return "subscription";
  }
  return "query";
}

Document::Document(std::string source)
    : source_(std::move(source)), arena_(source_.size() * 4 + 512) {}

namespace {

constexpr std::size_t kCheckpointBytes = 512;

// Advances over one character, or the two of a line end.
void step(std::string_view text, std::size_t& at, Location& location) {
  if (text[at] == '\n' || text[at] == '\r') {
    at += text.substr(at).starts_with("\r\n") ? 2 : 1;
    ++location.line;
    location.column = 1;
    return;
  }
  const std::size_t length = std::max<std::size_t>(utf8_length(text.substr(at)), 1);
  location.column += length == 4 ? 2 : 1;
  at += length;
}

}  // namespace

// Indexes the source, so that locating many places in a long document does not scan it each time.
void Document::make_checkpoints() const {
  Location location;
  std::size_t next = 0;
  for (std::size_t at = 0; at < source_.size();) {
    if (at >= next) {
      checkpoints_.push_back({static_cast<std::uint32_t>(at), location});
      next = at + kCheckpointBytes;
    }
    step(source_, at, location);
  }
}

Location Document::locate(std::uint32_t at) const {
  if (checkpoints_.empty()) make_checkpoints();
  const auto after = std::ranges::upper_bound(checkpoints_, at, {}, &Checkpoint::at);
  if (after == checkpoints_.begin()) return {};
  Location found = std::prev(after)->location;
  const std::size_t end = std::min<std::size_t>(at, source_.size());
  for (std::size_t i = std::prev(after)->at; i < end;) step(source_, i, found);
  return found;
}

const Fragment* Document::fragment(std::string_view name) const {
  const Fragment* found = nullptr;
  for (const Definition& definition : definitions_) {
    if (definition.fragment && definition.fragment->name.text == name) found = definition.fragment;
  }
  return found;
}

// Recursive descent parser with one token of lookahead. After the first error the current token
// remains `end`, so every loop terminates and partial results are dropped.
class Parser {
 public:
  Parser(Document& document, const ParseOptions& options)
      : document_(document),
        arena_(document.arena()),
        options_(options),
        lexer_(document.source(), arena_) {}

  std::optional<SyntaxError> run() {
    advance();
    std::pmr::vector<Definition> definitions(arena_.resource());
    do {
      definitions.push_back(definition());
    } while (!failed() && token_.kind != TokenKind::end);
    document_.definitions_ = kept(definitions);
    return error_;
  }

 private:
  enum class Constness { constant, variable };

  [[nodiscard]] bool failed() const { return error_.has_value(); }
  void fail(std::uint32_t at, std::string message) {
    if (!error_) error_ = SyntaxError{std::move(message), at};
    token_ = {.kind = TokenKind::end, .at = at, .end = at};
  }
  void advance() {
    if (failed()) return;
    token_ = lexer_.next();
    if (lexer_.error()) return fail(lexer_.error()->at, lexer_.error()->message);
    if (token_.kind == TokenKind::end || options_.max_tokens == 0) return;
    if (++tokens_ > options_.max_tokens) {
      fail(token_.at, "Document contains more that " + std::to_string(options_.max_tokens) +
                          " tokens. Parsing aborted.");
    }
  }

  static std::string described(const Token& token) {
    std::string text(describe(token.kind));
    switch (token.kind) {
      case TokenKind::name:
      case TokenKind::integer:
      case TokenKind::floating:
      case TokenKind::string:
      case TokenKind::block_string:
        text += " \"";
        text += token.value;
        text += '"';
        break;
      default:
        break;
    }
    return text;
  }
  void unexpected(const Token& token) {
    if (!failed()) fail(token.at, "Unexpected " + described(token) + ".");
  }

  [[nodiscard]] bool peek(TokenKind kind) const { return token_.kind == kind && !failed(); }
  [[nodiscard]] bool peek_keyword(std::string_view word) const {
    return peek(TokenKind::name) && token_.value == word;
  }
  void expect(TokenKind kind) {
    if (failed()) return;
    if (token_.kind == kind) return advance();
    fail(token_.at,
         "Expected " + std::string(describe(kind)) + ", found " + described(token_) + ".");
  }
  bool take(TokenKind kind) {
    if (!peek(kind)) return false;
    advance();
    return true;
  }
  void expect_keyword(std::string_view word) {
    if (failed()) return;
    if (peek_keyword(word)) return advance();
    fail(token_.at, "Expected \"" + std::string(word) + "\", found " + described(token_) + ".");
  }
  bool take_keyword(std::string_view word) {
    if (!peek_keyword(word)) return false;
    advance();
    return true;
  }

  // Copies a vector's elements into the arena and consumes the vector.
  template <class T>
  static List<T> kept(const std::pmr::vector<T>& items) {
    return {items.data(), static_cast<std::uint32_t>(items.size())};
  }
  template <class T>
  using Build = std::pmr::vector<T>;
  template <class T>
  Build<T> build() {
    return Build<T>(arena_.resource());
  }

  // open item+ close
  template <class Item>
  auto many(TokenKind open, TokenKind close, Item item) {
    auto items = build<decltype(item())>();
    expect(open);
    if (failed()) return kept(items);
    do {
      items.push_back(item());
    } while (!failed() && !take(close));
    return kept(items);
  }
  template <class Item>
  auto optional_many(TokenKind open, TokenKind close, Item item) {
    if (peek(open)) return many(open, close, item);
    return List<decltype(item())>{};
  }
  // open item* close
  template <class Item>
  auto any(TokenKind open, TokenKind close, Item item) {
    auto items = build<decltype(item())>();
    expect(open);
    while (!failed() && !take(close)) items.push_back(item());
    return kept(items);
  }
  template <class Item>
  auto delimited(TokenKind delimiter, Item item) {
    auto items = build<decltype(item())>();
    take(delimiter);
    do {
      items.push_back(item());
    } while (!failed() && take(delimiter));
    return kept(items);
  }

  // Limits the depth of recursive productions.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser.nesting_ > parser.options_.max_nesting && !parser.failed()) {
        parser.fail(parser.token_.at, "Document is nested more than " +
                                          std::to_string(parser.options_.max_nesting) +
                                          " levels deep.");
      }
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  Name name() {
    const Name made{.text = token_.value, .at = token_.at};
    expect(TokenKind::name);
    return made;
  }

  Definition definition() {
    if (peek(TokenKind::open_brace)) return operation();
    const bool has_description = peek_description();
    Token keyword = token_;
    if (has_description) {
      Lexer ahead = lexer_;
      keyword = ahead.next();
      if (ahead.error()) {
        fail(ahead.error()->at, ahead.error()->message);
        return {};
      }
      if (keyword.kind == TokenKind::open_brace) {
        fail(token_.at,
             "Unexpected description, descriptions are not supported on shorthand queries.");
        return {};
      }
    }
    if (keyword.kind == TokenKind::name) {
      const std::string_view word = keyword.value;
      if (is_type_system(word)) return type_system(token_.at, false);
      if (word == "query" || word == "mutation" || word == "subscription") {
        return operation();
      }
      if (word == "fragment") return fragment();
      if (has_description) {
        fail(token_.at, "Unexpected description, only GraphQL definitions support descriptions.");
        return {};
      }
      if (word == "extend") return extension();
    }
    unexpected(keyword);
    return {};
  }

  [[nodiscard]] bool peek_description() const {
    return peek(TokenKind::string) || peek(TokenKind::block_string);
  }
  std::optional<std::string_view> description() {
    if (!peek_description()) return std::nullopt;
    const std::string_view text = token_.value;
    advance();
    return text;
  }

  Definition operation() {
    Definition made;
    made.kind = Definition::Kind::operation;
    made.at = token_.at;
    Operation operation;
    operation.at = token_.at;
    if (!peek(TokenKind::open_brace)) {
      description();
      operation.kind = operation_kind();
      if (peek(TokenKind::name)) operation.name = name();
      operation.variables = optional_many(TokenKind::open_paren, TokenKind::close_paren,
                                          [this] { return variable_definition(); });
      operation.directives = directives(Constness::variable);
    }
    operation.selection_set = selection_set();
    made.operation = arena_.make(operation);
    return made;
  }

  OperationKind operation_kind() {
    const Token token = token_;
    expect(TokenKind::name);
    if (failed() || token.value == "query") return OperationKind::query;
    if (token.value == "mutation") return OperationKind::mutation;
    if (token.value == "subscription") return OperationKind::subscription;
    unexpected(token);
    return OperationKind::query;
  }

  VariableDefinition variable_definition() {
    VariableDefinition made;
    made.at = token_.at;
    description();
    expect(TokenKind::dollar);
    made.name = name();
    expect(TokenKind::colon);
    made.type = type();
    if (take(TokenKind::equals)) made.default_value = arena_.make(literal(Constness::constant));
    made.directives = directives(Constness::constant);
    return made;
  }

  const SelectionSet* selection_set() {
    const Nesting nesting(*this);
    SelectionSet made;
    made.at = token_.at;
    made.selections = many(TokenKind::open_brace, TokenKind::close_brace,
                           [this] { return peek(TokenKind::spread) ? spread() : field(); });
    return arena_.make(made);
  }

  Selection field() {
    Selection made;
    made.at = token_.at;
    made.name = name();
    if (take(TokenKind::colon)) {
      made.alias = made.name;
      made.name = name();
    }
    made.arguments = arguments(Constness::variable);
    made.directives = directives(Constness::variable);
    if (peek(TokenKind::open_brace)) made.selection_set = selection_set();
    return made;
  }

  Selection spread() {
    Selection made;
    made.at = token_.at;
    expect(TokenKind::spread);
    const bool has_condition = take_keyword("on");
    if (!has_condition && peek(TokenKind::name)) {
      made.kind = Selection::Kind::spread;
      made.name = fragment_name();
      made.directives = directives(Constness::variable);
      return made;
    }
    made.kind = Selection::Kind::inline_fragment;
    if (has_condition) made.type_condition = name();
    made.directives = directives(Constness::variable);
    made.selection_set = selection_set();
    return made;
  }

  Name fragment_name() {
    if (peek_keyword("on")) {
      unexpected(token_);
      return {};
    }
    return name();
  }

  Definition fragment() {
    Definition made;
    made.kind = Definition::Kind::fragment;
    made.at = token_.at;
    Fragment fragment;
    fragment.at = token_.at;
    description();
    expect_keyword("fragment");
    fragment.name = fragment_name();
    expect_keyword("on");
    fragment.type_condition = name();
    fragment.directives = directives(Constness::variable);
    fragment.selection_set = selection_set();
    made.fragment = arena_.make(fragment);
    return made;
  }

  List<Argument> arguments(Constness constness) {
    return optional_many(TokenKind::open_paren, TokenKind::close_paren, [this, constness] {
      Argument made;
      made.name = name();
      expect(TokenKind::colon);
      made.value = literal(constness);
      return made;
    });
  }

  List<Directive> directives(Constness constness) {
    auto made = build<Directive>();
    while (peek(TokenKind::at)) {
      Directive directive;
      directive.at = token_.at;
      expect(TokenKind::at);
      directive.name = name();
      directive.arguments = arguments(constness);
      made.push_back(directive);
    }
    return kept(made);
  }

  Literal literal(Constness constness) {
    const Nesting nesting(*this);
    const Token token = token_;
    Literal made;
    made.at = token.at;
    made.text = token.value;
    switch (token.kind) {
      case TokenKind::open_bracket:
        made.kind = LiteralKind::list;
        made.items = any(TokenKind::open_bracket, TokenKind::close_bracket,
                         [this, constness] { return literal(constness); });
        return made;
      case TokenKind::open_brace:
        made.kind = LiteralKind::object;
        made.fields = any(TokenKind::open_brace, TokenKind::close_brace, [this, constness] {
          LiteralField field;
          field.name = name();
          expect(TokenKind::colon);
          field.value = literal(constness);
          return field;
        });
        return made;
      case TokenKind::integer:
        made.kind = LiteralKind::integer;
        break;
      case TokenKind::floating:
        made.kind = LiteralKind::floating;
        break;
      case TokenKind::string:
      case TokenKind::block_string:
        made.kind = LiteralKind::string;
        made.is_block = token.kind == TokenKind::block_string;
        break;
      case TokenKind::name:
        made.truth = token.value == "true";
        made.kind = token.value == "true" || token.value == "false" ? LiteralKind::boolean
                    : token.value == "null"                         ? LiteralKind::null
                                                                    : LiteralKind::enumeration;
        break;
      case TokenKind::dollar:
        advance();
        if (constness == Constness::constant) {
          if (failed()) return made;
          if (peek(TokenKind::name)) {
            fail(token.at,
                 "Unexpected variable \"$" + std::string(token_.value) + "\" in constant value.");
          } else {
            unexpected(token);
          }
          return made;
        }
        made.kind = LiteralKind::variable;
        made.text = name().text;
        return made;
      default:
        unexpected(token);
        return made;
    }
    advance();
    return made;
  }

  const TypeNode* type() {
    const Nesting nesting(*this);
    TypeNode made;
    made.at = token_.at;
    if (take(TokenKind::open_bracket)) {
      made.form = TypeNode::Form::list;
      made.of = type();
      expect(TokenKind::close_bracket);
    } else {
      made.name = name().text;
    }
    const TypeNode* kept_type = arena_.make(made);
    if (!take(TokenKind::bang)) return kept_type;
    return arena_.make(
        TypeNode{.form = TypeNode::Form::non_null, .at = made.at, .name = {}, .of = kept_type});
  }

  static bool is_type_system(std::string_view word) {
    static constexpr std::array<std::string_view, 8> kWords{
        "schema", "scalar", "type", "interface", "union", "enum", "input", "directive"};
    return std::ranges::find(kWords, word) != kWords.end();
  }

  Definition extension() {
    const std::uint32_t at = token_.at;
    // The word after "extend" selects the production.
    Lexer ahead = lexer_;
    const Token word = ahead.next();
    if (ahead.error()) {
      fail(ahead.error()->at, ahead.error()->message);
      return {};
    }
    if (word.kind != TokenKind::name || !is_type_system(word.value) || word.value == "directive") {
      unexpected(word);
      return {};
    }
    advance();
    return type_system(at, true);
  }

  Definition type_system(std::uint32_t at, bool is_extension) {
    Definition made;
    made.kind = Definition::Kind::type;
    made.at = at;
    made.is_extension = is_extension;
    if (!is_extension) made.description = description();
    const std::string_view word = token_.value;
    advance();
    if (word == "schema") {
      made.kind = Definition::Kind::schema;
      made.directives = directives(Constness::constant);
      const auto item = [this] { return operation_type(); };
      made.operation_types =
          is_extension ? optional_many(TokenKind::open_brace, TokenKind::close_brace, item)
                       : many(TokenKind::open_brace, TokenKind::close_brace, item);
      refuse_empty_extension(made);
      return made;
    }
    if (word == "directive") {
      made.kind = Definition::Kind::directive;
      expect(TokenKind::at);
      made.name = name();
      made.inputs = input_values(TokenKind::open_paren, TokenKind::close_paren);
      made.is_repeatable = take_keyword("repeatable");
      expect_keyword("on");
      made.names = delimited(TokenKind::pipe, [this] { return directive_location(); });
      return made;
    }
    made.name = name();
    if (word == "scalar") {
      made.type_kind = TypeKind::scalar;
      made.directives = directives(Constness::constant);
    } else if (word == "type" || word == "interface") {
      made.type_kind = word == "type" ? TypeKind::object : TypeKind::interface_type;
      if (take_keyword("implements")) {
        made.interfaces = delimited(TokenKind::ampersand, [this] { return name(); });
      }
      made.directives = directives(Constness::constant);
      made.fields = optional_many(TokenKind::open_brace, TokenKind::close_brace,
                                  [this] { return field_definition(); });
    } else if (word == "union") {
      made.type_kind = TypeKind::union_type;
      made.directives = directives(Constness::constant);
      if (take(TokenKind::equals)) {
        made.names = delimited(TokenKind::pipe, [this] { return name(); });
      }
    } else if (word == "enum") {
      made.type_kind = TypeKind::enumeration;
      made.directives = directives(Constness::constant);
      made.values = optional_many(TokenKind::open_brace, TokenKind::close_brace,
                                  [this] { return enum_value(); });
    } else {
      made.type_kind = TypeKind::input_object;
      made.directives = directives(Constness::constant);
      made.inputs = input_values(TokenKind::open_brace, TokenKind::close_brace);
    }
    refuse_empty_extension(made);
    return made;
  }

  void refuse_empty_extension(const Definition& made) {
    const bool is_empty = made.directives.empty() && made.interfaces.empty() &&
                          made.fields.empty() && made.inputs.empty() && made.values.empty() &&
                          made.names.empty() && made.operation_types.empty();
    if (made.is_extension && is_empty) unexpected(token_);
  }

  OperationTypeNode operation_type() {
    OperationTypeNode made;
    made.operation = operation_kind();
    expect(TokenKind::colon);
    made.type = name();
    return made;
  }

  FieldNode field_definition() {
    FieldNode made;
    made.description = description();
    made.name = name();
    made.arguments = input_values(TokenKind::open_paren, TokenKind::close_paren);
    expect(TokenKind::colon);
    made.type = type();
    made.directives = directives(Constness::constant);
    return made;
  }

  List<InputValueNode> input_values(TokenKind open, TokenKind close) {
    return optional_many(open, close, [this] {
      InputValueNode made;
      made.description = description();
      made.name = name();
      expect(TokenKind::colon);
      made.type = type();
      if (take(TokenKind::equals)) made.default_value = arena_.make(literal(Constness::constant));
      made.directives = directives(Constness::constant);
      return made;
    });
  }

  EnumValueNode enum_value() {
    EnumValueNode made;
    made.description = description();
    if (peek_keyword("true") || peek_keyword("false") || peek_keyword("null")) {
      fail(token_.at, "Name \"" + std::string(token_.value) +
                          "\" is reserved and cannot be used for an enum value.");
    }
    made.name = name();
    made.directives = directives(Constness::constant);
    return made;
  }

  Name directive_location() {
    static constexpr std::array<std::string_view, 19> kLocations{"QUERY",
                                                                 "MUTATION",
                                                                 "SUBSCRIPTION",
                                                                 "FIELD",
                                                                 "FRAGMENT_DEFINITION",
                                                                 "FRAGMENT_SPREAD",
                                                                 "INLINE_FRAGMENT",
                                                                 "VARIABLE_DEFINITION",
                                                                 "SCHEMA",
                                                                 "SCALAR",
                                                                 "OBJECT",
                                                                 "FIELD_DEFINITION",
                                                                 "ARGUMENT_DEFINITION",
                                                                 "INTERFACE",
                                                                 "UNION",
                                                                 "ENUM",
                                                                 "ENUM_VALUE",
                                                                 "INPUT_OBJECT",
                                                                 "INPUT_FIELD_DEFINITION"};
    const Token token = token_;
    const Name made = name();
    if (!failed() && std::ranges::find(kLocations, made.text) == kLocations.end()) {
      unexpected(token);
    }
    return made;
  }

  Document& document_;
  Arena& arena_;
  ParseOptions options_;
  Lexer lexer_;
  Token token_;
  std::optional<SyntaxError> error_;
  std::size_t tokens_ = 0;
  std::size_t nesting_ = 0;
};

std::expected<std::unique_ptr<Document>, SyntaxError> parse(std::string source,
                                                            const ParseOptions& options) {
  auto document = std::make_unique<Document>(std::move(source));
  if (auto error = Parser(*document, options).run()) return std::unexpected(std::move(*error));
  return document;
}

}  // namespace gitops::graphql
