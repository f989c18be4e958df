#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gitops::store {

enum class Engine { sqlite, postgres };

// A statement of a program's table. Parameters are written $1, $2, … for both engines, and strpos(TEXT, PART) finds a
// part of a text on both. Each text has one statement.
struct Statement {
  std::string_view name;  // unique in the program: the name of the prepared statement
  std::string_view sql;
  std::string_view postgres = {};  // empty: `sql` serves both engines
  // PostgreSQL plans it for the values of each call: with conditions that an empty parameter turns off, a plan for any
  // values evaluates all of them for each row.
  bool is_planned_by_values = false;

  [[nodiscard]] constexpr std::string_view text(Engine engine) const {
    return engine == Engine::postgres && !postgres.empty() ? postgres : sql;
  }
};

// A parameter of a statement. Texts and bytes are borrowed until the call has returned.
class Param {
 public:
  struct Null {};
  struct Bytes {
    std::string_view bytes;
  };
  using Content = std::variant<Null, std::int64_t, std::string_view, Bytes>;

  Param() = default;  // NULL
  Param(std::integral auto number) : content_(static_cast<std::int64_t>(number)) {}
  Param(std::string_view text) : content_(text) {}
  Param(const std::string& text) : content_(std::string_view(text)) {}
  Param(const char* text) : content_(std::string_view(text)) {}
  static Param bytes(std::string_view bytes) { return Param(Content(Bytes{bytes})); }

  [[nodiscard]] const Content& content() const { return content_; }

 private:
  explicit Param(Content content) : content_(content) {}
  Content content_ = Null{};
};
using Params = std::vector<Param>;

namespace detail {
template <const std::string_view&... parts>
struct Joined {
  static constexpr std::size_t kSize = (parts.size() + ... + 0);
  static constexpr std::array<char, kSize> kText = [] {
    std::array<char, kSize> text{};
    auto at = text.begin();
    ((at = std::ranges::copy(parts, at).out), ...);
    return text;
  }();
};
}  // namespace detail

// Joins texts that statements share at compile time: joined<kSelect, kColumns, kFrom>. The parts are constants at
// namespace scope.
template <const std::string_view&... parts>
inline constexpr std::string_view joined{detail::Joined<parts...>::kText.data(),
                                         detail::Joined<parts...>::kSize};

}  // namespace gitops::store
