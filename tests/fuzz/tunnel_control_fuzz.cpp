// Both sides of a control stream that receive bytes from anywhere, behind the login and the cipher.
// What happens must not depend on how the bytes are split, what is sent stays in proportion to what
// was received, and a session that failed sends nothing.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/tunnel/client_control.hpp"
#include "common/tunnel/server_control.hpp"

namespace {

using namespace gitops;
using namespace gitops::tunnel;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::string_view kIv = "0123456789abcdef";

// What a side did: events and output, as one text.
using Record = std::string;

// Calls `take` with `bytes` in pieces whose sizes come from `sizes`; at once when that is empty.
template <class Take>
void in_pieces(std::string_view bytes, std::string_view sizes, const Take& take) {
  for (std::size_t turn = 0; !bytes.empty(); ++turn) {
    const std::size_t size =
        sizes.empty() ? bytes.size() : 1U + static_cast<unsigned char>(sizes[turn % sizes.size()]);
    std::string part(bytes.substr(0, size));
    bytes.remove_prefix(part.size());
    take(part);
  }
}

Record play_client(std::string_view bytes, std::string_view sizes) {
  ClientControl client({.proxies = {{.proxy_name = "a"}, {.proxy_name = "b"}}},
                       {.iv = std::string(kIv), .seed = 1}, WallTime{}, Clock::time_point{});
  std::vector<ClientControl::Event> events;
  in_pieces(bytes, sizes, [&](std::string& part) { client.receive(part, {}, events); });
  Record record = client.output();
  require(record.size() <= 2048);
  for (const auto& event : events) {
    require(event.text.size() <= kMaxBody);
    record += static_cast<char>(event.what);
    record += event.proxy + event.text;
  }
  if (client.failure()) require(client.output().empty() && client.due() == kNever);
  client.tick(Clock::time_point(std::chrono::seconds(100)));
  require(client.failure().has_value());
  return record;
}

Record play_server(std::string_view bytes, std::string_view sizes) {
  ServerControl server({}, Login{}, "run", kIv);
  std::vector<ServerControl::Event> events;
  in_pieces(bytes, sizes, [&](std::string& part) { server.receive(part, events); });
  require(server.output().size() <= 200 + 8 * bytes.size());
  Record record;
  for (const auto& event : events) {
    record += static_cast<char>(event.what) + event.proxy.proxy_name;
    server.accept_proxy(event.proxy.proxy_name, "here");
  }
  if (server.failure()) require(server.output().empty());
  return record + server.output();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first bytes choose the split.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (all.size() < 4) return 0;
  const auto sizes = all.substr(0, 3);
  const auto bytes = all.substr(3);

  static const Secret key = control_key(Secret());
  std::string encrypted(bytes);
  ControlEncryptor(key, kIv).encrypt(encrypted, 0);
  require(play_server(encrypted, {}) == play_server(encrypted, sizes));

  require(play_client(bytes, {}) == play_client(bytes, sizes));
  std::string logged_in;
  if (!append_message(logged_in, LoginResp{.run_id = "run"})) return 0;
  logged_in += encrypted;
  require(play_client(logged_in, {}) == play_client(logged_in, sizes));
  return 0;
}
