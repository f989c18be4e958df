#include "control-plane/accounts/tokens.hpp"

#include <algorithm>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::control_plane_server {

Secret token_text(std::string_view random) {
  return Secret(base64url_encode(random));
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
