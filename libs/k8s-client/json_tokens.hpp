#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Reads JSON text in place, token by token, without building a document. Used by record.cpp and
// watch.cpp; internal to this library.
namespace gitops::k8s::json {

// Offsets of the tokens of a text: brackets, colons, commas, and the first byte of each string,
// number and literal. Found by the first stage of simdjson, with the best kernel for this CPU.
class TokenIndex {
 public:
  TokenIndex();
  ~TokenIndex();
  TokenIndex(TokenIndex&&) noexcept;
  TokenIndex& operator=(TokenIndex&&) noexcept;

  // Returns empty, or the reason for a failure: invalid UTF-8, a control character in a string, an
  // unclosed string, empty text. The text is borrowed and needs no padding.
  std::string_view build(std::string_view text);
  // Returns the offsets of the last text built, ascending; valid until the next build().
  [[nodiscard]] std::span<const std::uint32_t> tokens() const;
  // Drops the tokens, and frees the memory after a large text.
  void release();

 private:
  struct Stage1;
  std::unique_ptr<Stage1> stage1_;
};

// A position among the tokens of a text. Functions return false (or empty text) when the tokens at
// the position are not the expected ones; the position is then somewhere within the value, and only
// reset() to an earlier mark makes it valid again.
class Walk {
 public:
  Walk(std::string_view text, std::span<const std::uint32_t> tokens)
      : text_(text), at_(tokens.data()), end_(tokens.data() + tokens.size()) {}

  struct Mark {
    const std::uint32_t* at;
    unsigned depth;
  };
  [[nodiscard]] Mark mark() const { return {at_, depth_}; }
  void reset(Mark mark) {
    at_ = mark.at;
    depth_ = mark.depth;
  }

  [[nodiscard]] bool at_end() const { return at_ == end_; }
  // Returns the first byte of the token here; NUL at the end.
  [[nodiscard]] char peek() const { return at_ == end_ ? '\0' : text_[*at_]; }
  // Returns the offset of the token here; the size of the text at the end.
  [[nodiscard]] std::size_t offset() const { return at_ == end_ ? text_.size() : *at_; }
  // Returns the text from `start` to the end of the bracket that was passed last.
  [[nodiscard]] std::string_view since(std::size_t start) const {
    return text_.substr(start, at_[-1] + 1 - start);
  }

  // Moves behind the value here and returns its text, without surrounding white space.
  std::string_view skip();
  // Moves behind the bracket that reduces the depth to `depth`.
  bool leave(unsigned depth);

  // Calls on_member(key) for each member of the object here: the key as written, without quotes;
  // the position is on the value, which on_member must move behind. Stops when it returns false.
  template <class OnMember>
  bool members(OnMember&& on_member) {
    if (peek() != '{') return false;
    enter();
    if (peek() == '}') return pass_close();
    for (;;) {
      std::string_view key;
      if (!pass_key(key)) return false;
      if (!on_member(key)) return false;
      const char next = peek();
      if (next == '}') return pass_close();
      if (next != ',') return false;
      ++at_;
    }
  }

  // Calls on_element() for each element of the array here, as members() does.
  template <class OnElement>
  bool elements(OnElement&& on_element) {
    if (peek() != '[') return false;
    enter();
    if (peek() == ']') return pass_close();
    for (;;) {
      if (!on_element()) return false;
      const char next = peek();
      if (next == ']') return pass_close();
      if (next != ',') return false;
      ++at_;
    }
  }

  // Number of open brackets here, and its maximum since measure_depth().
  [[nodiscard]] unsigned depth() const { return depth_; }
  [[nodiscard]] unsigned deepest() const { return deepest_; }
  void measure_depth() { deepest_ = depth_; }

 private:
  void enter() {
    ++at_;
    if (++depth_ > deepest_) deepest_ = depth_;
  }
  bool pass_close() {
    ++at_;
    --depth_;
    return true;
  }
  bool pass_key(std::string_view& key);

  std::string_view text_;
  const std::uint32_t* at_;
  const std::uint32_t* end_;
  unsigned depth_ = 0;
  unsigned deepest_ = 0;
};

// Appends the value of a JSON string; `inner` is the text between its quotes. Lone surrogates
// become U+FFFD. Returns false for an escape that JSON does not define.
bool append_unescaped(std::string& out, std::string_view inner);

// Returns true for a whole number, `true`, `false` or `null`, by JSON's grammar.
bool is_number_or_literal(std::string_view text);

// Finds a value in text that has no tokens, by quotes and brackets alone, also in text that is cut
// short. Returns the value of the first member of that name (to the end of the text when it is cut
// short), or empty.
std::string_view find_member(std::string_view object, std::string_view key);
// Returns the string whose JSON text is `value`; empty when it is not one.
std::string loose_string(std::string_view value);
// Splits an array; returns false when it does not end.
bool split_array(std::string_view array, std::vector<std::string_view>& elements);

}  // namespace gitops::k8s::json
