#include "control-plane/accounts/tokens.hpp"

#include <algorithm>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::control_plane_server {

Secret token_text(std::string_view random) {
  std::string text = base64_encode(random);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return Secret(std::move(text));
}

bool is_token_text(std::string_view text) {
  return text.size() == kTokenCharacters && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_';
         });
}

std::string new_id() {
  return hex_encode(random_bytes(kIdBytes));
}

bool is_id(std::string_view text) {
  return text.size() == kIdCharacters && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace gitops::control_plane_server
