#include "common/tunnel/message.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::tunnel {
namespace {

constexpr std::size_t kHeadSize = 9;       // type and length
constexpr std::size_t kFrameHeadSize = 8;  // of v2: type, flags and length
constexpr std::size_t kNumberSize = 2;     // of v2: the message's number

// -- writing --

// Writes the members of a JSON object except those with a zero value.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) { out_ += '{'; }
  void finish() { out_ += '}'; }

  void operator()(std::string_view key, std::string_view value) {
    if (!value.empty()) append_json_string(begin(key), value);
  }
  void operator()(std::string_view key, const std::string& value) {
    (*this)(key, std::string_view(value));
  }
  void operator()(std::string_view key, const Secret& value) { (*this)(key, value.reveal()); }
  void operator()(std::string_view key, std::int64_t value) {
    if (value != 0) begin(key) += std::to_string(value);
  }
  void operator()(std::string_view key, bool value) {
    if (value) begin(key) += "true";
  }
  void operator()(std::string_view key, const std::vector<std::string>& list) {
    if (list.empty()) return;
    begin(key) += '[';
    for (const auto& item : list) {
      if (&item != &list.front()) out_ += ',';
      append_json_string(out_, item);
    }
    out_ += ']';
  }
  template <class Value>
  void operator()(std::string_view key, const std::map<std::string, Value>& map) {
    if (map.empty()) return;
    Writer object(begin(key));
    for (const auto& [name, value] : map) append_json_string(object.begin(name), text_of(value));
    object.finish();
  }

 private:
  static std::string_view text_of(std::string_view text) { return text; }
  static std::string_view text_of(const Secret& secret) { return secret.reveal(); }

  std::string& begin(std::string_view key) {
    if (out_.back() != '{') out_ += ',';
    append_json_string(out_, key);
    return out_ += ':';
  }

  std::string& out_;
};

// -- reading --

// Reads the members of a JSON object. A missing or null member keeps its zero value. A member of
// the wrong type is an error, as in Go's decoder.
class Reader {
 public:
  explicit Reader(const nlohmann::json& json) : json_(json) {}
  [[nodiscard]] bool failed() const { return failed_; }

  template <class Value>
  void operator()(std::string_view key, Value& value) {
    const auto found = json_.find(key);
    if (found != json_.end() && !found->is_null()) read(*found, value);
  }

 private:
  void read(const nlohmann::json& json, std::string& value) {
    if (expect(json.is_string())) value = json.get_ref<const std::string&>();
  }
  void read(const nlohmann::json& json, Secret& value) {
    if (expect(json.is_string())) value = Secret(json.get<std::string>());
  }
  void read(const nlohmann::json& json, std::int64_t& value) {
    const auto number = integer_at(json, {});
    if (expect(number.has_value())) value = *number;
  }
  void read(const nlohmann::json& json, bool& value) {
    if (expect(json.is_boolean())) value = json.get<bool>();
  }
  void read(const nlohmann::json& json, std::vector<std::string>& list) {
    if (!expect(json.is_array())) return;
    for (const auto& item : json) read(item, list.emplace_back());
  }
  template <class Value>
  void read(const nlohmann::json& json, std::map<std::string, Value>& map) {
    if (!expect(json.is_object())) return;
    for (const auto& [name, value] : json.items()) read(value, map[name]);
  }

  bool expect(bool holds) {
    failed_ = failed_ || !holds;
    return holds;
  }

  const nlohmann::json& json_;
  bool failed_ = false;
};

// -- the members of each message, in frp's order --

template <class Visitor>
void visit_members(Visitor& visit, auto& message) {
  using M = std::remove_cvref_t<decltype(message)>;
  if constexpr (std::is_same_v<M, Login>) {
    visit("version", message.version);
    visit("hostname", message.hostname);
    visit("os", message.os);
    visit("arch", message.arch);
    visit("user", message.user);
    visit("privilege_key", message.privilege_key);
    visit("timestamp", message.timestamp);
    visit("run_id", message.run_id);
    visit("metas", message.metas);
    visit("pool_count", message.pool_count);
    visit("max_work_conns", message.max_work_conns);
  } else if constexpr (std::is_same_v<M, LoginResp>) {
    visit("version", message.version);
    visit("run_id", message.run_id);
    visit("error", message.error);
    visit("links", message.links);
    visit("servers", message.servers);
    visit("max_links", message.max_links);
    visit("max_work_conns", message.max_work_conns);
  } else if constexpr (std::is_same_v<M, NewProxy>) {
    visit("proxy_name", message.proxy_name);
    visit("proxy_type", message.proxy_type);
    visit("use_encryption", message.use_encryption);
    visit("use_compression", message.use_compression);
    visit("group", message.group);
    visit("group_key", message.group_key);
    visit("metas", message.metas);
    visit("remote_port", message.remote_port);
    visit("custom_domains", message.custom_domains);
    visit("subdomain", message.subdomain);
    visit("locations", message.locations);
    visit("http_user", message.http_user);
    visit("http_pwd", message.http_pwd);
    visit("host_header_rewrite", message.host_header_rewrite);
    visit("headers", message.headers);
    visit("response_headers", message.response_headers);
    visit("route_by_http_user", message.route_by_http_user);
    visit("ips_allow_list", message.ips_allow_list);
  } else if constexpr (std::is_same_v<M, NewProxyResp>) {
    visit("proxy_name", message.proxy_name);
    visit("remote_addr", message.remote_addr);
    visit("error", message.error);
  } else if constexpr (std::is_same_v<M, CloseProxy>) {
    visit("proxy_name", message.proxy_name);
  } else if constexpr (std::is_same_v<M, NewWorkConn>) {
    visit("run_id", message.run_id);
    visit("privilege_key", message.privilege_key);
    visit("timestamp", message.timestamp);
  } else if constexpr (std::is_same_v<M, StartWorkConn>) {
    visit("proxy_name", message.proxy_name);
    visit("src_addr", message.src_addr);
    visit("dst_addr", message.dst_addr);
    visit("src_port", message.src_port);
    visit("dst_port", message.dst_port);
    visit("error", message.error);
  } else if constexpr (std::is_same_v<M, Ping>) {
    visit("privilege_key", message.privilege_key);
    visit("timestamp", message.timestamp);
  } else if constexpr (std::is_same_v<M, Pong>) {
    visit("error", message.error);
  } else {
    static_assert(std::is_same_v<M, ReqWorkConn>);
  }
}

// -- types --

// Returns a message of that type of v1, or of that number of v2, with zero members; nothing for an
// unknown one.
template <std::size_t index = 0>
std::optional<Message> empty_message(Wire wire, unsigned type) {
  if constexpr (index == std::variant_size_v<Message>) {
    return std::nullopt;
  } else {
    using M = std::variant_alternative_t<index, Message>;
    const unsigned own =
        wire == Wire::v1 ? static_cast<unsigned char>(M::kType) : unsigned{M::kNumber};
    if (own == type) return Message(M{});
    return empty_message<index + 1>(wire, type);
  }
}

Result<Message> read_body(Message message, std::string_view body) {
  auto json = parse_json_object(body);
  bool failed = json.is_null();
  if (!failed) {
    Reader reader(json);
    std::visit([&](auto& of_type) { visit_members(reader, of_type); }, message);
    failed = reader.failed();
  }
  if (failed) {
    const char type = std::visit([](const auto& of_type) { return of_type.kType; }, message);
    return fail(ErrorCode::protocol,
                std::string("malformed body of a tunnel message of type '") + type + "'");
  }
  return message;
}

void write_number(char* place, std::uint64_t value, std::size_t size) {
  for (std::size_t i = size; i-- > 0; value >>= 8U) place[i] = static_cast<char>(value & 0xffU);
}

std::uint64_t read_length(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace

Result<void> append_message(std::string& out, const Message& message, Wire wire) {
  const auto start = out.size();
  const auto head = wire == Wire::v1 ? kHeadSize : kFrameHeadSize + kNumberSize;
  out.append(head, '\0');
  unsigned type = 0;
  std::visit(
      [&](const auto& of_type) {
        type = wire == Wire::v1 ? static_cast<unsigned char>(of_type.kType) : of_type.kNumber;
        Writer writer(out);
        visit_members(writer, of_type);
        writer.finish();
      },
      message);
  const auto size = out.size() - start - head;
  if (size > kMaxBody) {
    wipe(out.data() + start, out.size() - start);
    out.resize(start);
    return fail(ErrorCode::too_large, "a tunnel message exceeds " + std::to_string(kMaxBody) +
                                          " bytes, more than any peer accepts");
  }
  char* place = out.data() + start;
  if (wire == Wire::v1) {
    place[0] = static_cast<char>(type);
    write_number(place + 1, size, kHeadSize - 1);
  } else {
    write_number(place, std::to_underlying(FrameType::message), 2);
    write_number(place + 4, kNumberSize + size, 4);
    write_number(place + kFrameHeadSize, type, kNumberSize);
  }
  return {};
}

// -- frames of v2 --

void append_frame(std::string& out, FrameType type, std::string_view payload) {
  const auto start = out.size();
  out.append(kFrameHeadSize, '\0');
  write_number(out.data() + start, std::to_underlying(type), 2);
  write_number(out.data() + start + 4, payload.size(), 4);
  out += payload;
}

Result<Message> read_message(const Frame& frame) {
  if (frame.type != FrameType::message || frame.payload.size() < kNumberSize) {
    return fail(ErrorCode::protocol, "a tunnel frame that is no message");
  }
  const std::string_view payload = frame.payload;
  const auto number = static_cast<unsigned>(read_length(payload.substr(0, kNumberSize)));
  auto message = empty_message(Wire::v2, number);
  if (!message) {
    return fail(ErrorCode::protocol,
                "unknown number of a tunnel message: " + std::to_string(number));
  }
  return read_body(std::move(*message), payload.substr(kNumberSize));
}

namespace {

// Moves bytes into `held` until its size is `size`. Returns whether it is complete.
bool hold(std::string& held, std::string_view& input, std::size_t size) {
  const auto part = input.substr(0, size - std::min(size, held.size()));
  held += part;
  input.remove_prefix(part.size());
  return held.size() >= size;
}

void forget(std::string& held) {
  wipe(held.data(), held.size());
  held.clear();
}

}  // namespace

Result<std::optional<Frame>> FrameReader::next(std::string_view& input) {
  if (!hold(held_, input, kFrameHeadSize)) return std::optional<Frame>();
  const std::string_view head = held_;
  const auto type = static_cast<std::uint16_t>(read_length(head.substr(0, 2)));
  const bool is_known = type == std::to_underlying(FrameType::client_hello) ||
                        type == std::to_underlying(FrameType::server_hello) ||
                        type == std::to_underlying(FrameType::message);
  if (!is_known || read_length(head.substr(2, 2)) != 0) {
    return fail(ErrorCode::protocol, "a tunnel frame of an unknown type or with unknown flags");
  }
  const auto size = static_cast<std::size_t>(read_length(head.substr(4, 4)));
  if (size > kMaxFrame) return fail(ErrorCode::too_large, "a tunnel frame is too long");
  if (!hold(held_, input, kFrameHeadSize + size)) return std::optional<Frame>();
  Frame frame{.type = FrameType{type}, .payload = held_.substr(kFrameHeadSize)};
  forget(held_);
  return std::optional<Frame>(std::move(frame));
}

Result<std::optional<Message>> MessageReader::next(std::string_view& input) {
  if (wire_ == Wire::v2) {
    auto frame = frames_.next(input);
    if (!frame) return std::unexpected(frame.error());
    if (!*frame) return std::optional<Message>();
    auto message = read_message(**frame);
    wipe((*frame)->payload.data(), (*frame)->payload.size());
    if (!message) return std::unexpected(message.error());
    return std::optional<Message>(std::move(*message));
  }
  if (!hold(held_, input, kHeadSize)) return std::optional<Message>();
  auto empty = empty_message(Wire::v1, static_cast<unsigned char>(held_[0]));
  if (!empty) {
    return fail(ErrorCode::protocol, "unknown type of tunnel message: " +
                                         hex_encode(std::string_view(held_).substr(0, 1)));
  }
  const auto size = read_length(std::string_view(held_).substr(1, kHeadSize - 1));
  if (size > kMaxBody) return fail(ErrorCode::too_large, "a tunnel message is too long");
  if (!hold(held_, input, kHeadSize + static_cast<std::size_t>(size))) {
    return std::optional<Message>();
  }
  auto message = read_body(std::move(*empty), std::string_view(held_).substr(kHeadSize));
  forget(held_);
  if (!message) return std::unexpected(message.error());
  return std::optional<Message>(std::move(*message));
}

}  // namespace gitops::tunnel
