#include "control-plane/accounts/passwords.hpp"

#include <argon2.h>
#include <charconv>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kMaxQueued = 8;
constexpr std::size_t kGeneratedCharacters = 26;  // of 5 bits each
constexpr PasswordCost kMaxCost{.memory_kib = 256 * 1024, .passes = 16, .lanes = 16};
constexpr std::string_view kPhcStart = "$argon2id$v=19$m=";
// Crockford's base32 in lower case: no i, l, o and u.
constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";

// Takes a number and the text after it from the front of `rest`.
std::optional<std::uint32_t> take_number(std::string_view& rest, std::string_view behind) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return {};
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (!rest.starts_with(behind)) return {};
  rest.remove_prefix(behind.size());
  return number;
}

std::optional<PasswordCost> cost_of(std::string_view phc) {
  if (!phc.starts_with(kPhcStart)) return {};
  phc.remove_prefix(kPhcStart.size());
  const auto memory = take_number(phc, ",t=");
  const auto passes = memory ? take_number(phc, ",p=") : std::nullopt;
  const auto lanes = passes ? take_number(phc, "$") : std::nullopt;
  if (!lanes) return {};
  return PasswordCost{.memory_kib = *memory, .passes = *passes, .lanes = *lanes};
}

// Returns base64 without padding, as PHC strings have it.
std::string bare_base64(std::string_view bytes) {
  auto text = base64_encode(bytes);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

}  // namespace

std::string password_mistake(const Secret& password) {
  const auto text = password.reveal();
  if (text.size() < kMinPassword || text.size() > kMaxPassword) {
    return "a password has 8 to 1024 bytes";
  }
  return {};
}

Secret generated_password() {
  std::string text;
  for (const char byte : random_bytes(kGeneratedCharacters)) {
    text += kAlphabet[static_cast<unsigned char>(byte) % kAlphabet.size()];
  }
  return Secret(std::move(text));
}

std::string hash_password(const Secret& password, std::string_view salt, const PasswordCost& cost) {
  std::string phc(argon2_encodedlen(cost.passes, cost.memory_kib, cost.lanes,
                                    static_cast<std::uint32_t>(salt.size()), kHashBytes, Argon2_id),
                  '\0');
  const auto text = password.reveal();
  const int failed =
      argon2id_hash_encoded(cost.passes, cost.memory_kib, cost.lanes, text.data(), text.size(),
                            salt.data(), salt.size(), kHashBytes, phc.data(), phc.size());
  if (failed == ARGON2_MEMORY_ALLOCATION_ERROR) throw std::bad_alloc();
  if (failed != ARGON2_OK) {
    throw std::runtime_error(std::string("argon2id: ") + argon2_error_message(failed));
  }
  phc.resize(phc.find('\0'));
  return phc;
}

bool is_password_of(const std::string& phc, const Secret& password) {
  const auto cost = cost_of(phc);
  if (!cost || cost->memory_kib > kMaxCost.memory_kib || cost->passes > kMaxCost.passes ||
      cost->lanes > kMaxCost.lanes) {
    return false;
  }
  const auto text = password.reveal();
  const int outcome = argon2id_verify(phc.c_str(), text.data(), text.size());
  if (outcome == ARGON2_MEMORY_ALLOCATION_ERROR) throw std::bad_alloc();
  return outcome == ARGON2_OK;
}

bool needs_rehash(std::string_view phc, const PasswordCost& cost) {
  const auto made = cost_of(phc);
  return !made || made->memory_kib < cost.memory_kib || made->passes < cost.passes ||
         made->lanes < cost.lanes;
}

std::string dummy_hash(const PasswordCost& cost) {
  return std::string(kPhcStart) + std::to_string(cost.memory_kib) +
         ",t=" + std::to_string(cost.passes) + ",p=" + std::to_string(cost.lanes) + "$" +
         bare_base64(random_bytes(kSaltBytes)) + "$" + bare_base64(random_bytes(kHashBytes));
}

Passwords::Passwords(Metrics& metrics, PasswordCost cost)
    : cost_(cost),
      dummy_(dummy_hash(cost)),
      pool_(
          {.name = "passwords", .threads = 1, .max_queued = kMaxQueued, .max_per_key = kMaxQueued},
          metrics) {}

Task<Result<std::string>> Passwords::hash(Secret password, Deadline deadline) {
  co_return co_await pool_.run(
      deadline, [password = std::move(password), cost = cost_](const std::stop_token&) {
        return hash_password(password, random_bytes(kSaltBytes), cost);
      });
}

Task<Result<Passwords::Verdict>> Passwords::verify(std::string phc, Secret password,
                                                   Deadline deadline) {
  const bool is_known = !phc.empty();
  if (!is_known) phc = dummy_;
  co_return co_await pool_.run(deadline, [phc = std::move(phc), password = std::move(password),
                                          is_known, cost = cost_](const std::stop_token&) {
    const bool is_right = is_password_of(phc, password) && is_known;
    return Verdict{.is_right = is_right,
                   .needs_rehash = is_right && control_plane_server::needs_rehash(phc, cost)};
  });
}

}  // namespace gitops::control_plane_server
