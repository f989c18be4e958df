#include "common/tunnel/control_coder.hpp"

#include <utility>

#include "common/core/crypto.hpp"

namespace gitops::tunnel {

ControlCoder::ControlCoder(const Secret& token, std::string_view iv)
    : of_wire_(V1{.encryptor = ControlEncryptor(control_key(token), iv),
                  .decryptor = ControlDecryptor(control_key(token))}) {}

ControlCoder::ControlCoder(const ControlKeys& keys, Side side, std::string_view nonce)
    : of_wire_(
          V2{.sealer = RecordSealer(side == Side::client ? keys.to_server : keys.to_client, nonce),
             .opener = RecordOpener(side == Side::client ? keys.to_client : keys.to_server)}) {}

void ControlCoder::encrypt(std::string& out, std::size_t start) {
  if (auto* v1 = std::get_if<V1>(&of_wire_)) return v1->encryptor.encrypt(out, start);
  std::get<V2>(of_wire_).sealer.seal(out, start);
}

Result<std::string_view> ControlCoder::decrypt(std::span<char> bytes) {
  if (auto* v1 = std::get_if<V1>(&of_wire_)) {
    const auto plain = v1->decryptor.decrypt(bytes);
    return std::string_view(plain.data(), plain.size());
  }
  auto& v2 = std::get<V2>(of_wire_);
  auto plain = v2.opener.open({bytes.data(), bytes.size()});
  if (!plain) return std::unexpected(plain.error());
  wipe(v2.plain.data(), v2.plain.size());
  v2.plain = std::move(*plain);
  return std::string_view(v2.plain);
}

}  // namespace gitops::tunnel
