#include "common/tunnel/authentication.hpp"

#include <string>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::tunnel {

Secret privilege_key(const Secret& token, std::int64_t timestamp) {
  std::string text(token.reveal());
  text += std::to_string(timestamp);
  const auto sum = md5(text);
  wipe(text.data(), text.size());
  return Secret(hex_encode(bytes_of(sum)));
}

bool is_privilege_key(const Secret& key, const Secret& token, std::int64_t timestamp) {
  return key == privilege_key(token, timestamp);
}

Result<AuthScopes> parse_auth_scopes(const std::vector<std::string>& names) {
  AuthScopes scopes;
  for (const auto& name : names) {
    if (name == "HeartBeats") {
      scopes.heart_beats = true;
    } else if (name == "NewWorkConns") {
      scopes.new_work_conns = true;
    } else {
      return fail(ErrorCode::invalid_argument,
                  "\"" + name + "\" is none of HeartBeats and NewWorkConns");
    }
  }
  return scopes;
}

}  // namespace gitops::tunnel
