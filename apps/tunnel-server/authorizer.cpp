#include "tunnel-server/authorizer.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/small_file.hpp"
#include "common/core/text.hpp"
#include "common/tunnel/authentication.hpp"

namespace gitops::tunnel_server {
namespace {

using tunnel::Login;
using tunnel::Message;
using tunnel::NewProxy;

constexpr std::size_t kMaxAnswer = 64 * 1024;
constexpr std::size_t kMaxRuntimesFile = 8 * 1024 * 1024;
constexpr auto kFileLook = std::chrono::seconds(1);
constexpr std::string_view kSumPrefix = "sha256:";
constexpr std::size_t kMessageHead = 9;  // type and length, before the JSON

const Log& log() {
  static const Log kLog("authority");
  return kLog;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

std::string json_of(const Message& message) {
  std::string out;
  if (!append_message(out, message)) return "{}";
  return out.substr(kMessageHead);
}

// Parses a message from JSON by encoding it in its wire format first.
template <class M>
Result<M> message_of(std::string_view json) {
  std::string framed(1, M::kType);
  for (int shift = 56; shift >= 0; shift -= 8) {
    framed += static_cast<char>(json.size() >> static_cast<unsigned>(shift) & 0xffU);
  }
  framed += json;
  tunnel::MessageReader reader;
  std::string_view input = framed;
  auto message = reader.next(input);
  if (!message) return std::unexpected(message.error());
  if (!*message) return fail(ErrorCode::protocol, "the plugin's content is incomplete");
  return std::move(std::get<M>(**message));
}

// Returns the object with another member in front.
std::string with_member(std::string_view object, std::string_view name, std::string_view value) {
  std::string out = "{" + json_string(name) + ":" + std::string(value);
  if (object != "{}") out += ",";
  return out.append(object.substr(1));
}

std::string user_json(const Authorizer::Subject& subject) {
  std::string metas = "null";
  if (!subject.metas.empty()) {
    metas = "{";
    for (const auto& [name, value] : subject.metas) {
      if (metas.size() > 1) metas += ",";
      metas += json_string(name) + ":" + json_string(value.reveal());
    }
    metas += "}";
  }
  return "{\"user\":" + json_string(subject.user) + ",\"metas\":" + metas +
         ",\"run_id\":" + json_string(subject.run_id) + "}";
}

std::string sum_of(const Secret& token) {
  return std::string(bytes_of(sha256(token.reveal())));
}

// The error for an unauthenticated client when the plugin cannot be reached.
Error unavailable_now() {
  return {.code = ErrorCode::unavailable,
          .message = "the server cannot check this now, try again later"};
}

}  // namespace

// -- the list of runtimes --

Result<RuntimeList> RuntimeList::parse(std::string_view text) {
  RuntimeList list;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    const auto mistake = [number](const char* what) {
      return fail(ErrorCode::invalid_data, "line " + std::to_string(number) + ": " + what);
    };
    const auto gap = line.find_first_of(" \t");
    if (gap == std::string_view::npos) return mistake("not of the form PREFIX[,DOMAIN...] TOKEN");
    const auto token = trimmed(line.substr(gap));
    if (token.find_first_of(" \t") != std::string_view::npos)
      return mistake("the token has blanks");
    Runtime runtime;
    auto names = line.substr(0, gap);
    while (true) {
      const auto comma = names.find(',');
      const auto name = names.substr(0, comma);
      if (name.empty()) return mistake("an empty name");
      runtime.names.push_back(lower(name));
      if (comma == std::string_view::npos) break;
      names.remove_prefix(comma + 1);
    }
    if (token.starts_with(kSumPrefix)) {
      const auto hex = token.substr(kSumPrefix.size());
      if (hex.size() != 2 * sizeof(Sha256Sum)) return mistake("not a SHA-256 in hex");
      for (std::size_t i = 0; i < hex.size(); i += 2) {
        const int high = hex_value(hex[i]);
        const int low = hex_value(hex[i + 1]);
        if (high < 0 || low < 0) return mistake("not a SHA-256 in hex");
        runtime.token_sum += static_cast<char>(high * 16 + low);
      }
    } else {
      runtime.token_sum = sum_of(Secret(std::string(token)));
    }
    list.runtimes_.push_back(std::move(runtime));
  }
  return list;
}

Result<void> RuntimeList::admit(const NewProxy& proxy) const {
  const auto meta = proxy.metas.find("Authorization");
  if (meta == proxy.metas.end() || meta->second.empty()) {
    return fail(ErrorCode::unauthenticated, "metas.Authorization is missing");
  }
  const auto sum = sum_of(meta->second);
  bool is_known = false;
  for (const auto& runtime : runtimes_) {
    if (!equal_in_constant_time(runtime.token_sum, sum)) continue;
    is_known = true;
    const auto owns = [&runtime](std::string_view name) {
      return std::ranges::find(runtime.names, lower(name)) != runtime.names.end();
    };
    if ((proxy.subdomain.empty() || owns(proxy.subdomain)) &&
        std::ranges::all_of(proxy.custom_domains, owns)) {
      return {};
    }
  }
  if (is_known) return fail(ErrorCode::forbidden, "the token is not for this host");
  return fail(ErrorCode::unauthenticated, "invalid token");
}

// -- the plugin --

Result<PluginAnswer> read_plugin_answer(std::string_view body) {
  const auto json = parse_json_object(body);
  if (json.is_null()) return fail(ErrorCode::protocol, "the plugin's answer is not a JSON object");
  const auto& reject = value_at(json, {"reject"});
  if (!reject.is_null() && !reject.is_boolean()) {
    return fail(ErrorCode::protocol, "the plugin's answer has a malformed \"reject\"");
  }
  if (reject.is_boolean() && reject.get<bool>()) {
    auto reason = string_at(json, {"reject_reason"});
    return fail(ErrorCode::forbidden, reason.empty() ? "refused" : std::move(reason));
  }
  const auto& unchanged = value_at(json, {"unchange"});
  if (unchanged.is_boolean() && unchanged.get<bool>()) return PluginAnswer{};
  const auto& content = value_at(json, {"content"});
  if (!content.is_object() || content.empty()) {
    return fail(ErrorCode::protocol, "the plugin's answer has neither \"unchange\" nor a content");
  }
  return PluginAnswer{.content = to_text(content)};
}

Authorizer::Authorizer(const Executor& executor, net::Resolver& resolver, Options options)
    : options_(std::move(options)),
      token_(options_.token_file.empty() ? Credential::fixed(options_.token)
                                         : Credential::file(options_.token_file)),
      client_(executor, resolver,
              {.tls = options_.plugin_tls, .connect_timeout = options_.plugin_timeout}) {}

bool Authorizer::confirms_owners() const {
  return !options_.runtimes_file.empty() || asks_about("NewProxy");
}

bool Authorizer::asks_about(std::string_view operation) const {
  return options_.plugin_url && std::ranges::find(options_.plugin_operations, operation) !=
                                    options_.plugin_operations.end();
}

Result<void> Authorizer::check() {
  (void)token_.current();
  if (!token_.last_error().empty()) return fail(ErrorCode::unavailable, token_.last_error());
  if (options_.runtimes_file.empty()) return {};
  return read_runtimes();
}

Result<void> Authorizer::read_runtimes() {
  const auto now = Clock::now();
  if (runtimes_ && now < next_look_) return {};
  next_look_ = now + kFileLook;
  auto fingerprint = file_fingerprint(options_.runtimes_file);
  if (runtimes_ && !fingerprint.empty() && fingerprint == runtimes_fingerprint_) return {};
  const auto text = read_small_file(options_.runtimes_file, kMaxRuntimesFile);
  if (!text) return fail(options_.runtimes_file, text.error());
  // A file that is being written is empty for a moment, and one may be emptied by mistake.
  if (runtimes_ && runtimes_->size() > 0 && trimmed(*text).empty()) {
    return fail(ErrorCode::invalid_data,
                options_.runtimes_file + ": is empty; a line with a comment admits nobody");
  }
  auto list = RuntimeList::parse(*text);
  if (!list) return fail(options_.runtimes_file, list.error());
  if (runtimes_) log().info("took over the list of runtimes", {{"lines", list->size()}});
  runtimes_ = std::move(*list);
  runtimes_fingerprint_ = std::move(fingerprint);
  ++lists_;
  return {};
}

void Authorizer::refresh() {
  if (options_.runtimes_file.empty()) return;
  if (auto read = read_runtimes(); !read) {
    if (const auto verdict = repeated_.check(read.error().message, Clock::now()); verdict.pass) {
      log().error("the list of runtimes has mistakes; the one in force stays",
                  {{"error", read.error().message}});
    }
  }
}

Result<void> Authorizer::still_admits(const NewProxy& proxy) const {
  if (options_.runtimes_file.empty()) return {};
  if (!runtimes_) return std::unexpected(unavailable_now());
  return runtimes_->admit(proxy);
}

Task<Result<std::string>> Authorizer::ask_plugin(std::string_view operation, const Subject& subject,
                                                 std::string content) {
  std::string extended = operation == "Login"
                             ? with_member(content, "client_address", json_string(subject.address))
                             : with_member(content, "user", user_json(subject));
  http::Request request{.method = "POST",
                        .headers = {{"Content-Type", "application/json"},
                                    {"X-Frp-Reqid", hex_encode(random_bytes(8))}}};
  const auto& plugin = *options_.plugin_url;
  // As it is configured: a token at its end may end with a slash.
  request.target = plugin.path.empty() ? "/" : plugin.path;
  request.target += plugin.query.empty() ? "?" : "?" + plugin.query + "&";
  request.target += "version=0.1.0&op=" + std::string(operation);
  request.body =
      R"({"version":"0.1.0","op":)" + json_string(operation) + ",\"content\":" + extended + "}";
  const auto response = co_await client_.send(plugin, std::move(request),
                                              deadline_after(options_.plugin_timeout), kMaxAnswer);
  Result<PluginAnswer> answer;
  if (!response) {
    answer = std::unexpected(response.error());
  } else if (response->status != 200) {
    answer = fail(ErrorCode::unavailable,
                  "the plugin answers with status " + std::to_string(response->status));
  } else {
    answer = read_plugin_answer(response->body);
  }
  if (answer) co_return answer->content.empty() ? std::move(content) : std::move(answer->content);
  if (answer.error().code == ErrorCode::forbidden) co_return std::unexpected(answer.error());
  if (const auto verdict = repeated_.check(answer.error().message, Clock::now()); verdict.pass) {
    log().error("the plugin cannot be asked", {{"operation", operation},
                                               {"error", answer.error().message},
                                               {"suppressed", verdict.suppressed}});
  }
  co_return std::unexpected(unavailable_now());
}

Task<Result<Login>> Authorizer::admit_login(Subject subject, Login login) {
  if (!tunnel::is_privilege_key(login.privilege_key, token(), login.timestamp)) {
    co_return fail(ErrorCode::unauthenticated,
                   "token in login doesn't match token from configuration");
  }
  if (!asks_about("Login")) co_return login;
  auto content = co_await ask_plugin("Login", subject, json_of(login));
  if (!content) co_return std::unexpected(content.error());
  co_return message_of<Login>(*content);
}

Task<Result<NewProxy>> Authorizer::admit_proxy(Subject subject, NewProxy proxy) {
  refresh();
  if (auto admitted = still_admits(proxy); !admitted) co_return std::unexpected(admitted.error());
  if (!asks_about("NewProxy")) co_return proxy;
  auto content = co_await ask_plugin("NewProxy", subject, json_of(proxy));
  if (!content) co_return std::unexpected(content.error());
  // The list may have changed since.
  if (auto admitted = still_admits(proxy); !admitted) co_return std::unexpected(admitted.error());
  co_return message_of<NewProxy>(*content);
}

Task<Result<void>> Authorizer::admit_ping(Subject subject, tunnel::Ping ping) {
  auto content = co_await ask_plugin("Ping", subject, json_of(ping));
  if (!content) co_return std::unexpected(content.error());
  co_return Result<void>{};
}

Task<Result<void>> Authorizer::admit_work(Subject subject, tunnel::NewWorkConn work) {
  auto content = co_await ask_plugin("NewWorkConn", subject, json_of(work));
  if (!content) co_return std::unexpected(content.error());
  co_return Result<void>{};
}

Task<> Authorizer::report_closed(Subject subject, std::string proxy) {
  if (!asks_about("CloseProxy")) co_return;
  (void)co_await ask_plugin("CloseProxy", subject,
                            json_of(tunnel::CloseProxy{.proxy_name = proxy}));
}

}  // namespace gitops::tunnel_server
