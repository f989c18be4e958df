#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/crypto.hpp"

namespace gitops::reporter {

// Identifies a content: the first half of a SHA-256.
using Digest = std::array<std::uint8_t, 16>;

// "8f1b…": lower-case hex of the first `bytes` bytes.
std::string to_hex(const Digest& digest, std::size_t bytes = 16);

// Digests a sequence of texts; ("ab", "c") differs from ("a", "bc").
class Hasher {
 public:
  void add(std::string_view text);
  [[nodiscard]] Digest finish();

 private:
  Sha256 hash_;
};

// The digest of everything in an Application that counts as a change. Left out: what Argo CD
// rewrites at each refresh (status.reconciledAt, status.observedAt, the refresh and hydrate
// annotations, the times of conditions) and bookkeeping of the API server (resourceVersion,
// generation, generateName, managedFields, the last-applied-configuration annotation).
Digest change_digest(std::string_view application);

// The digest of everything in an object of another kind that counts as a change. Left out: its
// apiVersion and kind, which items of lists may lack, what the API server keeps for itself (as
// above), status.observedGeneration and the times of conditions.
Digest object_digest(std::string_view object);

// The digest of what a resource-tree answer says about its nodes, in whatever order it lists them.
// The answer is JSON.
Digest tree_digest(std::string_view tree);

}  // namespace gitops::reporter
