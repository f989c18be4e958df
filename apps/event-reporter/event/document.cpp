#include "event-reporter/event/document.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <simdjson.h>

namespace gitops::reporter {
namespace {

// Size of a text above which the memory of its parser is not kept for the next one.
constexpr std::size_t kKeptRoom = std::size_t{256} << 10;

// simdjson's tape (its doc/tape.md): words with a type in the highest byte and a payload in the
// others. The payload of the first word is the number of words. That of a string is its offset in
// the buffer of strings, where it has its length before it and a zero behind it; a number beyond 64
// bits is stored in the same way. The other kinds of numbers have their value in the word that
// follows.
constexpr std::uint64_t payload_of(std::uint64_t word) {
  return word & 0x00ff'ffff'ffff'ffff;
}

std::size_t string_bytes(const simdjson::dom::document& document, std::size_t words) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < words; ++i) {
    const auto word = document.tape[i];
    const auto type = static_cast<char>(word >> 56U);
    if (type == 'l' || type == 'u' || type == 'd') ++i;
    if (type != '"' && type != kNumberText) continue;
    std::uint32_t length = 0;
    std::memcpy(&length, document.string_buf.get() + payload_of(word), sizeof length);
    end = std::max<std::size_t>(end, payload_of(word) + sizeof length + length + 1);
  }
  return end;
}

void copy_used(const simdjson::dom::document& from, simdjson::dom::document& to) {
  const auto words = static_cast<std::size_t>(payload_of(from.tape[0]));
  const auto bytes = string_bytes(from, words);
  to.tape = std::make_unique_for_overwrite<std::uint64_t[]>(words);
  std::copy_n(from.tape.get(), words, to.tape.get());
  to.string_buf = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  std::copy_n(from.string_buf.get(), bytes, to.string_buf.get());
}

}  // namespace

Document::Document() : kept_(std::make_unique<simdjson::dom::document>()) {}
Document::~Document() = default;
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;

Result<JsonView> Document::parse(std::string_view text, std::string_view what) {
  thread_local simdjson::dom::parser parser;
  const auto parsed = parse_object(parser, text, what);
  if (parsed) copy_used(parser.doc, *kept_);
  if (text.size() > kKeptRoom) parser = simdjson::dom::parser();
  if (!parsed) return std::unexpected(parsed.error());
  return JsonView(kept_->root());
}

}  // namespace gitops::reporter
