#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/secret.hpp"
#include "common/core/worker_pool.hpp"

namespace gitops::control_plane_server {

// The cost of an argon2id hash.
struct PasswordCost {
  std::uint32_t memory_kib = 19 * 1024;
  std::uint32_t passes = 2;
  std::uint32_t lanes = 1;
  bool operator==(const PasswordCost&) const = default;
};

inline constexpr std::size_t kMinPassword = 8;     // characters, counted as bytes
inline constexpr std::size_t kMaxPassword = 1024;  // bytes
inline constexpr std::size_t kSaltBytes = 16;

// Returns why a new password is refused, or an empty text.
std::string password_mistake(const Secret& password);
// Returns a random password: 26 characters of base32, 130 random bits.
Secret generated_password();

// Returns the PHC string of a password: "$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>". Takes tens of milliseconds.
std::string hash_password(const Secret& password, std::string_view salt,
                          const PasswordCost& cost = {});
// Returns whether the password matches a PHC string. False for a malformed string, and for one that costs more than 256
// MiB or 16 passes.
bool is_password_of(const std::string& phc, const Secret& password);
// Returns whether the PHC string was made at a lower cost.
bool needs_rehash(std::string_view phc, const PasswordCost& cost = {});
// Returns a PHC string of the present cost that no password matches. Checking it makes an unknown user as expensive as
// a known one.
std::string dummy_hash(const PasswordCost& cost = {});

// Hashes passwords on a thread of its own with a queue of 8; further calls get too_many_requests at once. For any loop.
class Passwords {
 public:
  // `metrics` outlives this object.
  explicit Passwords(Metrics& metrics, PasswordCost cost = {});

  Task<Result<std::string>> hash(Secret password, Deadline deadline);
  struct Verdict {
    bool is_right = false;
    bool needs_rehash = false;
  };
  // Checks a password. An empty PHC string means an unknown user; it costs the same.
  Task<Result<Verdict>> verify(std::string phc, Secret password, Deadline deadline);

 private:
  PasswordCost cost_;
  std::string dummy_;
  WorkerPool pool_;
};

}  // namespace gitops::control_plane_server
