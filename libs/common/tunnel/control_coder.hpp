#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/tunnel/control_cipher.hpp"
#include "common/tunnel/hello.hpp"
#include "common/tunnel/record_cipher.hpp"

namespace gitops::tunnel {

// Encryption of one side of a control stream after its login, in either wire version.
class ControlCoder {
 public:
  // Coder for v1. `iv`: Aes128Cfb::kIvSize unpredictable bytes.
  ControlCoder(const Secret& token, std::string_view iv);
  // Coder for v2. `nonce`: kSealNonceSize unpredictable bytes.
  enum class Side : std::uint8_t { client, server };
  ControlCoder(const ControlKeys& keys, Side side, std::string_view nonce);

  // Encrypts in place the next bytes of the stream: those in `out` from `start` on.
  void encrypt(std::string& out, std::size_t start);
  // Decrypts the next bytes of the stream; in v1 in place. The result is valid until the next call.
  // Errors, in v2 only: protocol, too_large.
  Result<std::string_view> decrypt(std::span<char> bytes);

 private:
  struct V1 {
    ControlEncryptor encryptor;
    ControlDecryptor decryptor;
  };
  struct V2 {
    RecordSealer sealer;
    RecordOpener opener;
    std::string plain = {};
  };
  std::variant<V1, V2> of_wire_;
};

}  // namespace gitops::tunnel
