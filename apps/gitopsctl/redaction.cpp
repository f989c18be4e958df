#include "gitopsctl/redaction.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/log.hpp"
#include "common/core/text.hpp"

namespace gitops::ctl {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMinHidden = 8;
constexpr std::size_t kMinCredential = 8;
constexpr std::size_t kMinTokenTail = 10;

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_name(char c) {
  return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
}
bool is_base64(char c) {
  return is_letter_or_digit(c) || c == '+' || c == '/' || c == '=' || c == '-' || c == '_';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}
// Ends a value that no quote encloses.
bool ends_word(char c) {
  return std::string_view(" \t\r\n,;&\"'<>()[]{}\\").contains(c);
}

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (is_letter_or_digit(c))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Takes the secrets out of one text, from its beginning to its end.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { out_.reserve(text.size()); }

  std::string run() {
    while (at_ < text_.size()) {
      if (!skip_pem() && !skip_url() && !skip_word()) out_ += text_[at_++];
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] bool begins_word() const { return at_ == 0 || !is_name(text_[at_ - 1]); }

  template <class Condition>
  [[nodiscard]] std::size_t end_of(std::size_t from, Condition is_part) const {
    while (from < text_.size() && is_part(text_[from])) ++from;
    return from;
  }
  bool redact_to(std::size_t end) {
    out_ += kRedacted;
    at_ = end;
    return true;
  }

  // Private keys, also those of which a part is missing.
  bool skip_pem() {
    if (text_[at_] != '-') return false;
    const auto header = rest().substr(0, 64);
    const bool is_begin = header.starts_with("-----BEGIN ");
    if (!is_begin && !header.starts_with("-----END ")) return false;
    const auto label = header.substr(0, header.find("-----", 10));
    if (!label.contains("PRIVATE KEY") && !label.contains("OPENSSH")) return false;
    if (!is_begin) {
      // Its beginning was cut off.
      const auto begin = out_.rfind('"');
      out_.erase(begin == std::string::npos ? 0 : begin + 1);
      return redact_to(at_ + std::min(label.size() + 5, rest().size()));
    }
    const auto end = text_.find("-----END ", at_);
    if (end == std::string_view::npos)
      return redact_to(std::min(text_.find('"', at_), text_.size()));
    const auto line = text_.find("-----", end + 9);
    return redact_to(line == std::string_view::npos ? text_.size() : line + 5);
  }

  // "://user:password@host"
  bool skip_url() {
    if (!rest().starts_with("://")) return false;
    const auto begin = at_ + 3;
    const auto end =
        end_of(begin, [](char c) { return !std::string_view(" \t\r\n\"'<>`\\").contains(c); });
    const auto last = text_.substr(begin, end - begin).rfind('@');
    out_ += "://";
    at_ = begin;
    return last == std::string_view::npos || redact_to(begin + last);
  }

  // A word that is a secret itself, or the name of one.
  bool skip_word() {
    if (!is_name(text_[at_]) || !begins_word()) return false;
    if (skip_token()) return true;
    const auto end = end_of(at_, is_name);
    const auto word = text_.substr(at_, end - at_);
    const bool is_line_begin = begins_line();
    out_ += word;
    at_ = end;
    if ((word.size() == 6 || word.size() == 5) && is_scheme(word)) return skip_credential();
    if (!may_have_value(word) || !names_secret(word)) return true;
    return skip_value(word, is_line_begin);
  }

  // Whether a separator, or the blank behind a flag, follows the word. Most words end here.
  [[nodiscard]] bool may_have_value(std::string_view word) const {
    auto at = end_of(at_, [](char c) { return c == '\\'; });
    if (at < text_.size() && (text_[at] == '"' || text_[at] == '\'')) ++at;
    at = end_of(at, is_blank);
    return at < text_.size() && (text_[at] == ':' || text_[at] == '=' || word.starts_with("--"));
  }

  bool skip_token() {
    const auto from = rest();
    if (from.starts_with("LS0tLS1CRUdJTi")) return redact_to(end_of(at_, is_base64));
    if (from.starts_with("eyJ")) {
      const auto end = end_of(at_, is_name);
      if (text_.substr(at_, end - at_).contains('.') && end - at_ > 20) return redact_to(end);
    }
    // Bitbucket's are ATATT, ATBB, ATCTT and BBDC-.
    constexpr std::array<std::string_view, 25> kPrefixes = {
        "ghp_",  "gho_",   "ghu_",  "ghs_", "ghr_",  "github_pat_", "glpat-", "glptt-", "gldt-",
        "glrt-", "glcbt-", "ATATT", "ATBB", "ATCTT", "BBDC-",       "xoxb-",  "xoxp-",  "xoxa-",
        "xapp-", "hvs.",   "npm_",  "AKIA", "ASIA",  "AIza",        "ya29."};
    for (const auto prefix : kPrefixes) {
      if (!from.starts_with(prefix)) continue;
      const auto end = end_of(at_, [](char c) { return is_name(c) || is_base64(c); });
      if (end - at_ >= prefix.size() + kMinTokenTail) return redact_to(end);
    }
    // An API key of a control plane: an id in hex, a dot, and base64url.
    const auto dot = end_of(at_, is_hex);
    if (dot - at_ >= 20 && dot < text_.size() && text_[dot] == '.') {
      const auto end = end_of(dot + 1, is_name);
      if (end - dot > 20) return redact_to(end);
    }
    return false;
  }

  static bool is_scheme(std::string_view word) {
    const auto name = folded(word);
    return name == "bearer" || name == "basic";
  }
  // Behind "Bearer": a credential has a digit or is long; "Basic authentication" has none.
  bool skip_credential() {
    const auto begin = end_of(at_, is_blank);
    const auto end = end_of(begin, [](char c) { return is_base64(c) || c == '.' || c == '~'; });
    const auto word = text_.substr(begin, end - begin);
    const bool has_mark =
        std::ranges::any_of(word, [](char c) { return (c >= '0' && c <= '9') || c == '='; });
    if (begin == at_ || word.size() < kMinCredential || (!has_mark && word.size() < 24))
      return true;
    out_ += ' ';
    return redact_to(end);
  }

  // Whether only indentation and list marks precede the word, on its line or its line in a JSON text.
  [[nodiscard]] bool begins_line() const {
    auto at = at_;
    while (at > 0 && (is_blank(text_[at - 1]) || text_[at - 1] == '-')) --at;
    if (at == 0 || text_[at - 1] == '\n' || text_[at - 1] == '"') return true;
    return at >= 2 && text_[at - 1] == 'n' && text_[at - 2] == '\\';
  }

  // The value behind the name of a secret, which is written already.
  bool skip_value(std::string_view name, bool is_line_begin) {
    auto at = end_of(at_, [](char c) { return c == '\\'; });
    if (at < text_.size() && (text_[at] == '"' || text_[at] == '\'')) ++at;
    key_mark_ = text_.substr(at_, at - at_);
    const auto blanks = end_of(at, is_blank);
    const bool is_flag = name.starts_with("--") && key_mark_.empty() && blanks > at;
    const bool has_separator =
        blanks < text_.size() && (text_[blanks] == ':' || text_[blanks] == '=');
    if (!has_separator && !is_flag) return true;
    const bool is_colon = has_separator && text_[blanks] == ':';
    auto begin = has_separator ? blanks + 1 : blanks;
    if (begin < text_.size() && (text_[begin] == '>' || text_[begin] == '=')) ++begin;
    begin = end_of(begin, is_blank);
    out_ += text_.substr(at_, begin - at_);
    at_ = begin;
    if (begin == text_.size()) return true;
    const auto key = folded(name);
    const bool is_header = key.contains("authorization") || key.contains("cookie");
    return skip_value_at(is_header || (is_colon && is_line_begin && key_mark_.empty()));
  }

  bool skip_value_at(bool is_whole_line) {
    const auto escapes = end_of(at_, [](char c) { return c == '\\'; }) - at_;
    const char first = at_ + escapes < text_.size() ? text_[at_ + escapes] : '\0';
    if (first == '"' || first == '\'') return skip_quoted(escapes, first);
    if (escapes > 0) return true;  // the end of a line in a JSON text: an empty value
    if (first == '{' || first == '\n' || first == '\r') return true;
    if (first == '[') return skip_list();
    if (first == '|' || first == '>') return skip_block();
    for (const std::string_view plain : {"true", "false", "null"}) {
      if (rest().starts_with(plain) && ends_value(at_ + plain.size())) return true;
    }
    const auto end =
        is_whole_line ? end_of_line(at_) : end_of(at_, [](char c) { return !ends_word(c); });
    return end == at_ || redact_value(end);
  }
  // Redacts a value without quotes. What stands behind a name in quotes is JSON, and remains it.
  bool redact_value(std::size_t end) {
    out_ += key_mark_;
    redact_to(end);
    out_ += key_mark_;
    return true;
  }
  // A list of texts is redacted as a whole; the objects of a list are looked at.
  bool skip_list() {
    const auto item = end_of(at_ + 1, [](char c) { return is_blank(c) || c == '\n'; });
    if (item < text_.size() && text_[item] == '{') return true;
    const auto end = end_of(at_, [](char c) { return c != ']'; });
    return redact_value(std::min(end + 1, text_.size()));
  }
  [[nodiscard]] bool ends_value(std::size_t at) const {
    return at >= text_.size() || ends_word(text_[at]);
  }
  // The end of a line, or of one in a JSON text.
  [[nodiscard]] std::size_t end_of_line(std::size_t at) const {
    return end_of(at, [](char c) { return c != '\n' && c != '\r' && c != '"' && c != '\\'; });
  }

  // A value in quotes, which are themselves escaped in a text within a text.
  bool skip_quoted(std::size_t escapes, char quote) {
    const std::string mark = std::string(escapes, '\\') + quote;
    out_ += mark;
    auto end = at_ + mark.size();
    while (end < text_.size()) {
      if (text_[end] == '\n') break;
      const auto slashes = end_of(end, [](char c) { return c == '\\'; }) - end;
      const bool is_quote = end + slashes < text_.size() && text_[end + slashes] == quote;
      // A quote with more escapes is part of the value, unless they are backslashes of the value. One with less
      // ends the text around it.
      if (is_quote && slashes < escapes) break;
      if (is_quote && (slashes - escapes) % (2 * (escapes + 1)) == 0) {
        end += slashes - escapes;
        break;
      }
      end += slashes + 1;
    }
    return redact_to(std::min(end, text_.size()));
  }

  // A block of YAML: the lines below that are indented.
  bool skip_block() {
    out_ += text_[at_++];
    const bool is_escaped = text_.substr(0, end_of_line(at_) + 2).ends_with("\\n");
    const std::string_view newline = is_escaped ? "\\n" : "\n";
    auto end = text_.find(newline, at_);
    while (end != std::string_view::npos) {
      const auto next = end + newline.size();
      if (next >= text_.size() || !is_blank(text_[next])) break;
      const auto after = text_.find(newline, next);
      const auto quote = is_escaped ? text_.find('"', next) : std::string_view::npos;
      if (after == std::string_view::npos || quote < after) {
        return redact_to(std::min(quote, text_.size()));
      }
      end = after;
    }
    return redact_to(end == std::string_view::npos ? end_of_line(at_) : end);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
  std::string_view key_mark_;  // the end quote of the name that was read last, with its escapes
};

void replace_all(std::string& text, std::string_view value) {
  std::size_t from = text.find(value);
  if (from == std::string::npos) return;
  std::string out;
  std::size_t begin = 0;
  for (; from != std::string::npos; from = text.find(value, begin)) {
    out.append(text, begin, from - begin);
    out += kRedacted;
    begin = from + value.size();
  }
  out.append(text, begin);
  text = std::move(out);
}

}  // namespace

bool names_secret(std::string_view name) {
  if (is_sensitive_key(name)) return true;
  const auto key = folded(name);
  for (const std::string_view end : {"name", "namespace", "file", "path"}) {
    if (key.ends_with(end)) return false;
  }
  for (const std::string_view part : {"passphrase", "pwd", "accesskey", "secretkey", "signature",
                                      "sessionid", "dsn", "connectionstring", "jwt"}) {
    if (key.contains(part)) return true;
  }
  return key == "pass" || key == "auth" || key == "bearer";
}

void Redactor::hide(std::string_view value) {
  const auto text = trimmed(value);
  if (text.size() < kMinHidden) return;
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_structured()) {
    for (const auto& [path, leaf] : json.flatten().items()) {
      if (leaf.is_string()) hide(leaf.get_ref<const std::string&>());
    }
  }
  hide_forms(value);
  hide_forms(text);
  for (std::size_t begin = 0; text.contains('\n') && begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    hide_forms(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

void Redactor::hide_forms(std::string_view value) {
  if (value.size() < kMinHidden) return;
  auto escaped = json_string(value);
  escaped = escaped.substr(1, escaped.size() - 2);
  auto base64 = base64_encode(value);
  while (base64.ends_with('=')) base64.pop_back();
  for (auto& form :
       {std::string(value), base64, base64url_encode(value), escaped, percent_encode(value)}) {
    const auto at = std::ranges::lower_bound(hidden_, form.size(), std::ranges::greater{},
                                             [](const std::string& one) { return one.size(); });
    if (std::ranges::find(hidden_, form) == hidden_.end()) hidden_.insert(at, form);
  }
}

std::string Redactor::redacted(std::string_view text) const {
  std::string out(text);
  for (const auto& value : hidden_) replace_all(out, value);
  return Scanner(out).run();
}

}  // namespace gitops::ctl
