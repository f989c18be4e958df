// Messages of frp's protocol v1 from anywhere, as they come and behind the control cipher. What comes
// out must not depend on how the bytes are split, no more than one message is held, and what is
// written from a message is read as the same message.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/tunnel/control_cipher.hpp"
#include "common/tunnel/message.hpp"

namespace {

using namespace gitops;
using namespace gitops::tunnel;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Outcome {
  std::vector<Message> messages;
  bool failed = false;

  bool operator==(const Outcome&) const = default;
};

// Reads `bytes` in pieces whose sizes come from `sizes`; everything at once when that is empty.
// Decrypts them first when there is a key.
Outcome read(std::string_view bytes, std::string_view sizes, const Secret& key) {
  MessageReader reader;
  ControlDecryptor decryptor(key);
  Outcome outcome;
  std::size_t turn = 0;
  while (!bytes.empty()) {
    const std::size_t size =
        sizes.empty() ? bytes.size() : 1 + static_cast<unsigned char>(sizes[turn++ % sizes.size()]);
    std::string part(bytes.substr(0, size));
    bytes.remove_prefix(part.size());
    std::string_view plain = part;
    if (!key.empty()) {
      const auto decrypted = decryptor.decrypt(part);
      plain = {decrypted.data(), decrypted.size()};
    }
    while (true) {
      auto next = reader.next(plain);
      if (!next) {
        outcome.failed = true;
        return outcome;
      }
      if (!*next) break;
      outcome.messages.push_back(std::move(**next));
    }
    require(plain.empty());
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first bytes choose the split.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (all.size() < 4) return 0;
  const auto sizes = all.substr(0, 3);
  const auto bytes = all.substr(3);
  static const Secret key = control_key(Secret("token"));

  const auto outcome = read(bytes, {}, Secret());
  require(read(bytes, sizes, Secret()) == outcome);
  require(read(bytes, sizes, key) == read(bytes, {}, key));

  std::string written;
  for (const auto& message : outcome.messages) {
    // Escapes can make a message longer than it came.
    if (!append_message(written, message)) return 0;
  }
  const auto again = read(written, {}, Secret());
  require(!again.failed && again.messages == outcome.messages);

  ControlEncryptor encryptor(key, "0123456789abcdef");
  encryptor.encrypt(written, 0);
  require(read(written, sizes, key) == again);
  return 0;
}
