#include "common/tunnel/work_channel.hpp"

#include <utility>

#include "common/core/crypto.hpp"
#include "common/net/replay_channel.hpp"
#include "common/tunnel/cipher_channel.hpp"
#include "common/tunnel/control_cipher.hpp"
#include "common/tunnel/snappy_channel.hpp"

namespace gitops::tunnel {

std::unique_ptr<net::Channel> work_channel(std::unique_ptr<net::Channel> connection,
                                           WorkCoding coding, const Secret& token,
                                           std::string received) {
  if (coding.encryption) {
    connection = std::make_unique<CipherChannel>(std::move(connection), control_key(token),
                                                 random_bytes(Aes128Cfb::kIvSize),
                                                 std::exchange(received, {}));
  }
  if (coding.compression) {
    connection =
        std::make_unique<SnappyChannel>(std::move(connection), std::exchange(received, {}));
  }
  if (received.empty()) return connection;
  return std::make_unique<net::ReplayChannel>(std::move(connection), std::move(received));
}

}  // namespace gitops::tunnel
