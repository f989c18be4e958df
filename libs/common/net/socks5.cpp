#include "common/net/socks5.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/ip/address.hpp>

namespace gitops::net {
namespace {

namespace ip = boost::asio::ip;

constexpr char kVersion = 5;
constexpr char kAuthenticationVersion = 1;
constexpr unsigned char kNoAuthentication = 0;
constexpr unsigned char kUserAndPassword = 2;
constexpr unsigned char kNoneAcceptable = 0xff;
constexpr char kConnect = 1;
constexpr char kIpv4 = 1;
constexpr char kName = 3;
constexpr char kIpv6 = 4;
constexpr std::size_t kMaxField = 255;

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool fits(std::string_view text) {
  return !text.empty() && text.size() <= kMaxField;
}

void append_field(std::string& out, std::string_view text) {
  out += static_cast<char>(text.size());
  out += text;
}

std::string connect_request(const Socks5Request& request) {
  std::string out{kVersion, kConnect, 0};
  boost::system::error_code not_an_address;
  const auto address = ip::make_address(request.host, not_an_address);
  if (not_an_address) {
    out += kName;
    append_field(out, request.host);
  } else if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    out += kIpv4;
    out.append(bytes.begin(), bytes.end());
  } else {
    const auto bytes = address.to_v6().to_bytes();
    out += kIpv6;
    out.append(bytes.begin(), bytes.end());
  }
  out += static_cast<char>(request.port >> 8);
  out += static_cast<char>(request.port & 0xff);
  return out;
}

// Returns the error of a reply (RFC 1928, section 6).
std::unexpected<Error> refused(unsigned char reply) {
  switch (reply) {
    case 2:
      return fail(ErrorCode::forbidden, "the rules of the SOCKS proxy do not allow the connection");
    case 3:
      return fail(ErrorCode::unavailable, "the SOCKS proxy cannot reach the network");
    case 4:
      return fail(ErrorCode::unavailable, "the SOCKS proxy cannot reach the host");
    case 5:
      return fail(ErrorCode::unavailable, "the connection was refused behind the SOCKS proxy");
    case 6:
      return fail(ErrorCode::unavailable, "the connection timed out behind the SOCKS proxy");
    case 7:
      return fail(ErrorCode::unsupported, "the SOCKS proxy does not support the CONNECT command");
    case 8:
      return fail(ErrorCode::unsupported, "the SOCKS proxy does not support this type of address");
    default:
      return fail(ErrorCode::unavailable,
                  "the SOCKS proxy failed with code " + std::to_string(reply));
  }
}

}  // namespace

Result<Socks5Handshake> Socks5Handshake::start(const Socks5Request& request) {
  if (!fits(request.host) || request.port == 0) {
    return fail(ErrorCode::invalid_argument,
                "the destination of a SOCKS proxy needs a port and a name of 1 to 255 bytes");
  }
  const bool with_user = !request.user.empty();
  if (with_user && (!fits(request.user) || !fits(request.password.reveal()))) {
    return fail(ErrorCode::invalid_argument,
                "user name and password of a SOCKS proxy have 1 to 255 bytes each");
  }
  Socks5Handshake handshake;
  std::string methods{kVersion, 1, kNoAuthentication};
  if (with_user) {
    methods = {kVersion, 2, kNoAuthentication, kUserAndPassword};
    std::string text{kAuthenticationVersion};
    append_field(text, request.user);
    append_field(text, request.password.reveal());
    handshake.authentication_ = Secret(std::move(text));
  }
  handshake.output_ = Secret(std::move(methods));
  handshake.connect_ = connect_request(request);
  return handshake;
}

Secret Socks5Handshake::output() {
  return std::exchange(output_, Secret());
}

std::size_t Socks5Handshake::answer_size() const {
  if (phase_ != Phase::reply) return 2;
  // A refusal ends with its code: some proxies send nothing after it.
  if (answer_.size() >= 2 && answer_[1] != 0) return answer_.size();
  // Version, reply, reserved, type of address, address, port. The first byte of a name is its size.
  if (answer_.size() < 5) return 5;
  switch (answer_[3]) {
    case kIpv4:
      return 4 + 4 + 2;
    case kIpv6:
      return 4 + 16 + 2;
    default:
      return 4 + 1 + std::size_t{byte_at(answer_, 4)} + 2;
  }
}

std::size_t Socks5Handshake::expects() const {
  return done() ? 0 : answer_size() - answer_.size();
}

Result<std::size_t> Socks5Handshake::feed(std::string_view bytes) {
  std::size_t used = 0;
  while (!done() && used < bytes.size()) {
    const auto part = bytes.substr(used, expects());
    answer_ += part;
    used += part.size();
    if (answer_.size() < answer_size()) continue;
    if (auto taken = take_answer(); !taken) return std::unexpected(std::move(taken.error()));
    answer_.clear();
  }
  return used;
}

Result<void> Socks5Handshake::take_answer() {
  const char version = phase_ == Phase::authentication ? kAuthenticationVersion : kVersion;
  if (answer_[0] != version) {
    return fail(ErrorCode::protocol, "the peer is not a SOCKS 5 proxy");
  }
  const unsigned char code = byte_at(answer_, 1);
  switch (phase_) {
    case Phase::method:
      if (code == kUserAndPassword && !authentication_.empty()) {
        output_ = std::exchange(authentication_, Secret());
        phase_ = Phase::authentication;
        return {};
      }
      if (code == kNoneAcceptable) {
        return fail(ErrorCode::unauthenticated,
                    authentication_.empty()
                        ? "the SOCKS proxy requires a user name and a password"
                        : "the SOCKS proxy supports no password authentication");
      }
      if (code != kNoAuthentication) {
        return fail(ErrorCode::protocol, "the SOCKS proxy chose a method that was not offered");
      }
      break;
    case Phase::authentication:
      if (code != 0) {
        return fail(ErrorCode::unauthenticated,
                    "the SOCKS proxy refused the user name and the password");
      }
      break;
    case Phase::reply:
      if (code != 0) return refused(code);
      phase_ = Phase::done;
      return {};
    case Phase::done:
      break;
  }
  output_ = Secret(connect_);
  phase_ = Phase::reply;
  return {};
}

}  // namespace gitops::net
