#include "common/tunnel/message.hpp"

#include <algorithm>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::tunnel {
namespace {

constexpr std::size_t kHeadSize = 9;  // type and length

// -- writing --

// Writes the members of a JSON object and leaves out those with a zero value.
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

// Reads the members of a JSON object. A member that is missing or null keeps its zero value; one of
// the wrong type is a failure, as it is for Go's decoder.
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

// -- the members of each message, in the order in which frp writes them --

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
  } else if constexpr (std::is_same_v<M, LoginResp>) {
    visit("version", message.version);
    visit("run_id", message.run_id);
    visit("error", message.error);
    visit("links", message.links);
    visit("servers", message.servers);
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

// A message of that type with zero members; nothing for an unknown type.
template <std::size_t index = 0>
std::optional<Message> empty_message(char type) {
  if constexpr (index == std::variant_size_v<Message>) {
    return std::nullopt;
  } else {
    using M = std::variant_alternative_t<index, Message>;
    if (M::kType == type) return Message(M{});
    return empty_message<index + 1>(type);
  }
}

Result<Message> read_message(char type, std::string_view body) {
  auto json = parse_json_object(body);
  auto message = empty_message(type);
  bool failed = json.is_null();
  if (!failed) {
    Reader reader(json);
    std::visit([&](auto& of_type) { visit_members(reader, of_type); }, *message);
    failed = reader.failed();
  }
  if (failed) {
    return fail(ErrorCode::protocol,
                std::string("malformed body of a tunnel message of type '") + type + "'");
  }
  return std::move(*message);
}

std::uint64_t read_length(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace

Result<void> append_message(std::string& out, const Message& message) {
  const auto start = out.size();
  out.append(kHeadSize, '\0');
  std::visit(
      [&](const auto& of_type) {
        out[start] = of_type.kType;
        Writer writer(out);
        visit_members(writer, of_type);
        writer.finish();
      },
      message);
  const auto size = out.size() - start - kHeadSize;
  if (size > kMaxBody) {
    wipe(out.data() + start, out.size() - start);
    out.resize(start);
    return fail(ErrorCode::too_large, "a tunnel message exceeds " + std::to_string(kMaxBody) +
                                          " bytes, more than any peer accepts");
  }
  out[start + kHeadSize - 2] = static_cast<char>(size >> 8U);
  out[start + kHeadSize - 1] = static_cast<char>(size & 0xffU);
  return {};
}

Result<std::optional<Message>> MessageReader::next(std::string_view& input) {
  // Takes bytes until `size` of them are held.
  const auto hold = [&](std::size_t size) {
    const auto part = input.substr(0, size - std::min(size, held_.size()));
    held_ += part;
    input.remove_prefix(part.size());
    return held_.size() >= size;
  };
  if (!hold(kHeadSize)) return std::optional<Message>();
  if (!empty_message(held_[0])) {
    return fail(ErrorCode::protocol, "unknown type of tunnel message: " +
                                         hex_encode(std::string_view(held_).substr(0, 1)));
  }
  const auto size = read_length(std::string_view(held_).substr(1, kHeadSize - 1));
  if (size > kMaxBody) return fail(ErrorCode::too_large, "a tunnel message is too long");
  if (!hold(kHeadSize + static_cast<std::size_t>(size))) return std::optional<Message>();
  auto message = read_message(held_[0], std::string_view(held_).substr(kHeadSize));
  wipe(held_.data(), held_.size());
  held_.clear();
  if (!message) return std::unexpected(message.error());
  return std::optional<Message>(std::move(*message));
}

}  // namespace gitops::tunnel
