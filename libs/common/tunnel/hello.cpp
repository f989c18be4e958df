#include "common/tunnel/hello.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::tunnel {
namespace {

constexpr std::string_view kCodec = "json";
constexpr std::string_view kAlgorithm = "aes-256-gcm";
constexpr std::size_t kMaxError = 512;

bool is_random(const std::string& text) {
  const auto random = base64_decode(text);
  return random && random->size() == ClientHello::kRandomSize;
}

bool has(const nlohmann::json& list, std::string_view text) {
  return list.is_array() && std::ranges::any_of(list, [text](const auto& item) {
           return item.is_string() && item.template get_ref<const std::string&>() == text;
         });
}

void add_to(Sha256& transcript, std::string_view name, std::string_view payload) {
  transcript.add(std::string_view("\0", 1));
  transcript.add(name);
  std::string length(1, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) {
    length += static_cast<char>(payload.size() >> static_cast<unsigned>(shift) & 0xffU);
  }
  transcript.add(length);
  transcript.add(payload);
}

}  // namespace

// -- messages --

ClientHello ClientHello::make(std::string_view transport, bool tls, bool tcp_mux,
                              std::string_view random) {
  const auto boolean = [](bool value) { return value ? "true" : "false"; };
  std::string payload = R"({"bootstrap":{"transport":)" + json_string(transport) +
                        ",\"tls\":" + boolean(tls) + ",\"tcpMux\":" + boolean(tcp_mux) + "},";
  payload += R"("capabilities":{"message":{"codecs":[)" + json_string(kCodec) +
             R"(]},"crypto":{"algorithms":[)" + json_string(kAlgorithm) + R"(],"clientRandom":)" +
             json_string(base64_encode(random)) + "}}}";
  return {.payload = std::move(payload), .is_supported = true};
}

Result<ClientHello> ClientHello::read(std::string payload) {
  const auto json = parse_json_object(payload);
  if (json.is_null() || !is_random(string_at(json, {"capabilities", "crypto", "clientRandom"}))) {
    return fail(ErrorCode::protocol, "the client's hello is malformed");
  }
  const bool is_supported =
      has(value_at(json, {"capabilities", "message", "codecs"}), kCodec) &&
      has(value_at(json, {"capabilities", "crypto", "algorithms"}), kAlgorithm);
  return ClientHello{.payload = std::move(payload), .is_supported = is_supported};
}

ServerHello ServerHello::make(std::string_view random) {
  return {.payload = R"({"selected":{"message":{"codec":)" + json_string(kCodec) +
                     R"(},"crypto":{"algorithm":)" + json_string(kAlgorithm) +
                     R"(,"serverRandom":)" + json_string(base64_encode(random)) + "}}}",
          .error = {}};
}

ServerHello ServerHello::refusal(std::string_view error) {
  return {.payload = "{\"error\":" + json_string(error) + "}", .error = std::string(error)};
}

Result<ServerHello> ServerHello::read(std::string payload) {
  const auto json = parse_json_object(payload);
  if (json.is_null()) return fail(ErrorCode::protocol, "the server's hello is malformed");
  auto error = string_at(json, {"error"});
  if (error.size() > kMaxError) error.resize(kMaxError);
  const bool is_good = string_at(json, {"selected", "message", "codec"}) == kCodec &&
                       string_at(json, {"selected", "crypto", "algorithm"}) == kAlgorithm &&
                       is_random(string_at(json, {"selected", "crypto", "serverRandom"}));
  if (error.empty() && !is_good) {
    return fail(ErrorCode::protocol, "the server's hello chooses what was not offered");
  }
  return ServerHello{.payload = std::move(payload), .error = std::move(error)};
}

ControlKeys control_keys(const Secret& token, const ClientHello& client,
                         const ServerHello& server) {
  Sha256 transcript;
  transcript.add("frp wire v2 crypto transcript");
  add_to(transcript, "client hello", client.payload);
  add_to(transcript, "server hello", server.payload);
  const auto sum = transcript.finish();
  const auto key = [&](std::string_view direction) {
    const auto info =
        "frp wire v2 control aead " + std::string(kAlgorithm) + " " + std::string(direction);
    return hkdf_sha256(token.reveal(), bytes_of(sum), info, kSealKeySize);
  };
  return {.to_server = key("client-to-server"), .to_client = key("server-to-client")};
}

// -- on the wire --

void append_hello(std::string& out, const ClientHello& hello) {
  out += kWireMagic;
  append_frame(out, FrameType::client_hello, hello.payload);
}

void append_hello(std::string& out, const ServerHello& hello) {
  append_frame(out, FrameType::server_hello, hello.payload);
}

Result<std::optional<OpeningReader::Opening>> OpeningReader::next(std::string_view& input) {
  if (!wire_ && !input.empty()) {
    // No message of v1 begins with this byte.
    wire_ = input.front() == kWireMagic.front() ? Wire::v2 : Wire::v1;
  }
  if (!wire_) return std::optional<Opening>();
  if (*wire_ == Wire::v1) {
    auto message = v1_.next(input);
    if (!message) return std::unexpected(message.error());
    if (!*message) return std::optional<Opening>();
    return Opening{.message = std::move(**message)};
  }
  if (magic_.size() < kWireMagic.size()) {
    const auto part = input.substr(0, kWireMagic.size() - magic_.size());
    magic_ += part;
    input.remove_prefix(part.size());
    if (!kWireMagic.starts_with(magic_)) return fail(ErrorCode::protocol, "no magic of frp");
    if (magic_.size() < kWireMagic.size()) return std::optional<Opening>();
  }
  while (true) {
    auto frame = frames_.next(input);
    if (!frame) return std::unexpected(frame.error());
    if (!*frame) return std::optional<Opening>();
    if ((*frame)->type == FrameType::client_hello && !hello_) {
      auto hello = ClientHello::read(std::move((*frame)->payload));
      if (!hello) return std::unexpected(hello.error());
      hello_ = std::move(*hello);
      continue;
    }
    auto message = read_message(**frame);
    if (!message) return std::unexpected(message.error());
    return Opening{.wire = Wire::v2, .hello = std::move(hello_), .message = std::move(*message)};
  }
}

}  // namespace gitops::tunnel
