#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/core/secret.hpp"

namespace gitops::control_plane_server {

inline constexpr std::size_t kTokenBytes = 32;       // random bytes of a secret: 256 bits
inline constexpr std::size_t kTokenCharacters = 43;  // of their text
inline constexpr std::size_t kIdBytes = 12;          // random bytes of an id
inline constexpr std::size_t kIdCharacters = 24;     // of its text

// Returns 32 random bytes as 43 characters of base64url, without padding.
Secret token_text(std::string_view random);
// Returns whether the text has the form of token_text().
bool is_token_text(std::string_view text);

// Returns a new id of an account, a user, a team, a rule or a key: 24 lower-case hexadecimal digits.
std::string new_id();
// Returns whether the text has the form of new_id().
bool is_id(std::string_view text);

}  // namespace gitops::control_plane_server
