#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// Messages of frp's wire protocol, as structs and as bytes. In v1, supported by every version of
// frp since 0.18, a message is a type byte, the length of its body as a 64-bit big-endian number,
// and a JSON object. In v2, supported since 0.69, it is a frame (type, flags and length) with the
// number of the message and the same JSON. Members with a zero value are omitted, as Go's encoder
// does. docs/reference/tunnel/protocol.md lists the sender and the time of each message.
namespace gitops::tunnel {

enum class Wire : std::uint8_t { v1, v2 };

// Magic before the first frame of each stream that a client opens in v2.
inline constexpr std::string_view kWireMagic{"FRP\0\2\r\n", 7};

// Maximum size of a body, in bytes. Readers of all versions refuse a longer one and close the
// connection.
inline constexpr std::size_t kMaxBody = 10'240;

// Metadata by name. The values are secrets: tokens travel in them.
using Metadata = std::map<std::string, Secret>;
using Headers = std::map<std::string, std::string>;

// Key in Login's metadata for the client's instance id. It lets our server distinguish the links of
// one client from those of another client of the same runtime. frp's server ignores it.
inline constexpr const char* kInstanceMeta = "gitops-instance";

// Client → server: the first message on a control stream.
struct Login {
  static constexpr char kType = 'o';
  static constexpr unsigned kNumber = 1;  // in v2
  std::string version = {};               // "a.b.c"; servers before 0.52 refuse less than 0.18.0
  std::string hostname = {};
  std::string os = {};
  std::string arch = {};
  std::string user = {};
  Secret privilege_key = {};   // see authentication.hpp
  std::int64_t timestamp = 0;  // seconds since 1970; part of privilege_key
  std::string run_id = {};     // of the session that this one replaces; empty for a new one
  Metadata metas = {};
  std::int64_t pool_count = 0;  // work connections that the server may keep waiting
  // Maximum number of work connections of the client at a time. Sent by our client only.
  std::int64_t max_work_conns = 0;

  bool operator==(const Login&) const = default;
};

// Server → client: the response to Login, and the last unencrypted message.
struct LoginResp {
  static constexpr char kType = '1';
  static constexpr unsigned kNumber = 2;
  std::string version = {};
  std::string run_id = {};
  std::string error = {};  // not empty: refused
  // Sent by our server only: the number of sessions of one client that may offer the same proxies
  // at a time, and the other servers ("host:port") that the client should connect to.
  std::int64_t links = 0;
  std::vector<std::string> servers = {};
  // Sent by our server only: the maximum number of sessions of a client while its links are nearly
  // full, and of work connections with users in a session.
  std::int64_t max_links = 0;
  std::int64_t max_work_conns = 0;

  bool operator==(const LoginResp&) const = default;
};

// Client → server: requests the server to offer a proxy.
struct NewProxy {
  static constexpr char kType = 'p';
  static constexpr unsigned kNumber = 3;
  std::string proxy_name = {};
  std::string proxy_type = {};  // empty means "tcp"
  bool use_encryption = false;
  bool use_compression = false;
  std::string group = {};
  Secret group_key = {};
  Metadata metas = {};  // the control plane's clients send their token as "Authorization"
  std::int64_t remote_port = 0;
  std::vector<std::string> custom_domains = {};
  std::string subdomain = {};
  std::vector<std::string> locations = {};
  std::string http_user = {};
  Secret http_pwd = {};
  std::string host_header_rewrite = {};
  Headers headers = {};           // set on requests
  Headers response_headers = {};  // set on responses
  std::string route_by_http_user = {};
  std::vector<std::string> ips_allow_list = {};  // in the control plane's own version of frp

  bool operator==(const NewProxy&) const = default;
};

// Server → client: the response to NewProxy.
struct NewProxyResp {
  static constexpr char kType = '2';
  static constexpr unsigned kNumber = 4;
  std::string proxy_name = {};
  std::string remote_addr = {};
  std::string error = {};  // not empty: refused

  bool operator==(const NewProxyResp&) const = default;
};

// Client → server: closes the proxy. It has no response.
struct CloseProxy {
  static constexpr char kType = 'c';
  static constexpr unsigned kNumber = 5;
  std::string proxy_name = {};

  bool operator==(const CloseProxy&) const = default;
};

// Server → client: requests one more work connection.
struct ReqWorkConn {
  static constexpr char kType = 'r';
  static constexpr unsigned kNumber = 7;

  bool operator==(const ReqWorkConn&) const = default;
};

// Client → server: the first message on a work stream.
struct NewWorkConn {
  static constexpr char kType = 'w';
  static constexpr unsigned kNumber = 6;
  std::string run_id = {};
  Secret privilege_key = {};  // only when both sides require it; see authentication.hpp
  std::int64_t timestamp = 0;

  bool operator==(const NewWorkConn&) const = default;
};

// Server → client: the work stream now carries a connection to this proxy. Raw bytes follow.
struct StartWorkConn {
  static constexpr char kType = 's';
  static constexpr unsigned kNumber = 8;
  std::string proxy_name = {};
  std::string src_addr = {};
  std::string dst_addr = {};
  std::int64_t src_port = 0;
  std::int64_t dst_port = 0;
  std::string error = {};  // not empty: refused

  bool operator==(const StartWorkConn&) const = default;
};

// Client → server, on the control stream: asks for a Pong.
struct Ping {
  static constexpr char kType = 'h';
  static constexpr unsigned kNumber = 11;
  Secret privilege_key = {};
  std::int64_t timestamp = 0;

  bool operator==(const Ping&) const = default;
};

// Server → client: the response to Ping.
struct Pong {
  static constexpr char kType = '4';
  static constexpr unsigned kNumber = 12;
  std::string error = {};  // not empty: the server ends the session

  bool operator==(const Pong&) const = default;
};

using Message = std::variant<Login, LoginResp, NewProxy, NewProxyResp, CloseProxy, ReqWorkConn,
                             NewWorkConn, StartWorkConn, Ping, Pong>;

// Appends the bytes of a message. Error: too_large, when its body exceeds kMaxBody; nothing is
// appended then.
Result<void> append_message(std::string& out, const Message& message, Wire wire = Wire::v1);

// Frame of v2.
enum class FrameType : std::uint16_t { client_hello = 1, server_hello = 2, message = 16 };
inline constexpr std::size_t kMaxFrame = 65'536;  // of its payload, in bytes
struct Frame {
  FrameType type = FrameType::message;
  std::string payload;
};
// `payload`: at most kMaxFrame bytes.
void append_frame(std::string& out, FrameType type, std::string_view payload);
// Parses the payload of a frame of type message. Errors: protocol.
Result<Message> read_message(const Frame& frame);

// Reads frames from a stream of bytes. Buffers at most one; its memory is proportional to the bytes
// received.
class FrameReader {
 public:
  // Works as MessageReader::next.
  Result<std::optional<Frame>> next(std::string_view& input);
  // Returns whether a frame is incomplete.
  [[nodiscard]] bool in_frame() const { return !held_.empty(); }

 private:
  std::string held_;  // received part of a frame
};

// Reads messages from a stream of bytes. Buffers at most one message; its memory is proportional to
// the bytes received, whatever length a peer announces.
class MessageReader {
 public:
  explicit MessageReader(Wire wire = Wire::v1) : wire_(wire) {}
  // Consumes bytes from the front of `input`, at most up to the end of the next message. Returns
  // nothing when all input was consumed and more is needed. Errors: protocol (unknown type, a body
  // that is not a JSON object or has a member of the wrong type), too_large; the reader is unusable
  // after an error.
  Result<std::optional<Message>> next(std::string_view& input);
  // Returns whether a message is incomplete.
  [[nodiscard]] bool in_message() const { return !held_.empty() || frames_.in_frame(); }

 private:
  Wire wire_;
  FrameReader frames_;  // v2
  std::string held_;    // v1: received part of a message
};

}  // namespace gitops::tunnel
