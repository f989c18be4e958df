#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/passwords.hpp"
#include "control-plane/accounts/tokens.hpp"

// Credentials as anybody may send them, and password strings as a database may hold them. A key that is read is the
// text that was sent; a damaged password string matches no password and costs nothing.
namespace {

using namespace gitops;
using namespace gitops::control_plane_server;

void check_key(std::string_view text) {
  const auto key = parse_api_key(text);
  if (is_token_text(text) && key) std::abort();
  if (!key) return;
  if (!is_id(key->id) || !is_token_text(key->secret.reveal())) std::abort();
  if (key->id + "." + std::string(key->secret.reveal()) != text) std::abort();
  if (is_valid_key(nullptr, key->secret, 1)) std::abort();
}

void check_password(const std::string& phc) {
  // Only strings of small costs go on to the library, since real ones would be slow.
  const bool is_cheap = needs_rehash(phc, {.memory_kib = 65, .passes = 0, .lanes = 0}) &&
                        needs_rehash(phc, {.memory_kib = 0, .passes = 3, .lanes = 0}) &&
                        needs_rehash(phc, {.memory_kib = 0, .passes = 0, .lanes = 3});
  if (!is_cheap) return;
  if (is_password_of(phc, Secret(std::string("no such password")))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_key(text);
  check_password(text);
  check_password("$argon2id$v=19$m=8,t=1,p=1$" + text);
  return 0;
}
