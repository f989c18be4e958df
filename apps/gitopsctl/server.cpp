#include "gitopsctl/server.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/process.hpp"
#include "common/core/small_file.hpp"
#include "common/core/trace.hpp"
#include "common/http/proxy_settings.hpp"
#include "gitopsctl/documents.hpp"
#include "gitopsctl/failure.hpp"

namespace gitops::ctl {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxAnswer = 16 * 1024 * 1024;
constexpr std::size_t kMaxEvent = 1024 * 1024;
constexpr auto kSilence = std::chrono::seconds(60);  // of a stream, which sends comments more often

std::unexpected<Error> usage(std::string message) {
  return std::unexpected(
      Error{.code = ErrorCode::invalid_argument, .message = std::move(message), .subcode = kUsage});
}

http::ClientOptions client_options(const Context& context, const cli::Environment& environment) {
  http::ClientOptions options;
  options.tls.ca_file = context.ca_file;
  options.tls.insecure_skip_verify = context.insecure;
  options.proxy = http::proxy_settings(environment);
  options.user_agent = "gitopsctl/" + std::string(version());
  return options;
}

// The address of a runtime is not known, so nothing was sent to it.
std::unexpected<Error> not_sent(Error error) {
  error.subcode = kNotSent;
  return std::unexpected(std::move(error));
}

bool is_loopback(const std::string& host) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  return host == "localhost" || (!error && address.is_loopback());
}

Result<Context> with_token(Context context) {
  if (context.token_file.empty()) return context;
  auto text = read_small_file(context.token_file);
  if (!text) return usage(context.token_file + " " + text.error().message);
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  context.token = Secret(std::move(*text));
  return context;
}

}  // namespace

void ServerSettings::add_to(ConfigReader& reader) {
  reader.group("Control plane");
  reader.add({.flag = "context", .help = "Context to use instead of the current one"}, "CONTEXT",
             context, [this](const std::string& text) {
               context = text;
               return std::string();
             });
  direct.add_to(reader);
}

Result<Context> find_context(const ServerSettings& settings, const cli::Environment& environment) {
  const ControlPlaneSettings& direct = settings.direct;
  if (settings.context.empty() && !direct.url.empty()) {
    return Context{.url = direct.url,
                   .token = direct.token,
                   .ca_file = direct.ca_file,
                   .insecure = direct.insecure};
  }
  const auto path = contexts_path(environment);
  const auto contexts = read_contexts(path);
  if (!contexts) return usage(contexts.error().message);
  const std::string& name = settings.context.empty() ? contexts->current : settings.context;
  if (name.empty()) {
    return usage("no control plane is known; log in first: gitopsctl login URL");
  }
  const Context* found = contexts->find(name);
  if (found == nullptr) {
    return usage("there is no context " + name +
                 "; gitopsctl context list shows those that there are");
  }
  if (const auto url = http::parse_url(found->url); !url) {
    return usage("context " + name + ": " + url.error().message);
  }
  return with_token(*found);
}

Server::Server(const cli::LoopContext& loop, const cli::Environment& environment, Context context,
               std::chrono::milliseconds request_timeout)
    : loop_(loop),
      context_(std::move(context)),
      url_(http::parse_url(context_.url).value()),
      trace_(SpanContext::unsampled().traceparent()),
      request_timeout_(request_timeout),
      resolver_(loop.metrics),
      client_(loop.executor, resolver_, client_options(context_, environment)) {}

Deadline Server::request_deadline() const {
  return std::min(loop_.deadline, deadline_after(request_timeout_));
}

http::Request Server::request(std::string method, std::string target) const {
  http::Request request{.method = std::move(method), .target = std::move(target)};
  // The raw key, as the public command line sends it.
  if (!context_.token.empty()) {
    request.headers.set("Authorization", std::string(context_.token.reveal()));
  }
  request.headers.set("traceparent", trace_);
  return request;
}

Task<Result<Json>> Server::ask_at(const http::Url& url, std::string_view path,
                                  std::string_view document, Json variables) {
  http::Request post = request("POST", http::join_target(url, path));
  post.headers.set("Content-Type", "application/json");
  post.body = to_text(Json{{"query", document}, {"variables", std::move(variables)}});
  const auto response = co_await client_.send(url, std::move(post), request_deadline(), kMaxAnswer);
  if (!response) co_return std::unexpected(response.error());
  co_return graphql_data(*response);
}

Task<Result<Json>> Server::ask(std::string_view document, Json variables) {
  co_return co_await ask_at(url_, "/2.0/api/graphql", document, std::move(variables));
}

Task<Result<http::Response>> Server::send(const http::Url& url, std::string method,
                                          std::string_view path, std::string body) {
  http::Request sent = request(std::move(method), http::join_target(url, path));
  if (!body.empty()) sent.headers.set("Content-Type", "application/json");
  sent.body = std::move(body);
  co_return co_await client_.send(url, std::move(sent), request_deadline(), kMaxAnswer);
}

Task<Result<Json>> Server::call(std::string method, std::string_view path, std::string body) {
  const auto response = co_await send(url_, std::move(method), path, std::move(body));
  if (!response) co_return std::unexpected(response.error());
  co_return rest_value(*response);
}

Task<Result<std::string>> Server::call_for_text(std::string method, std::string_view path,
                                                std::string body) {
  auto response = co_await send(url_, std::move(method), path, std::move(body));
  if (!response) co_return std::unexpected(response.error());
  if (response->status == 200 && media_type(response->headers) == "text/plain") {
    co_return std::move(response->body);
  }
  const auto value = rest_value(*response);
  if (!value) co_return std::unexpected(value.error());
  co_return fail(ErrorCode::protocol, "the answer is not a text");
}

Task<Result<http::Url>> Server::runtime_url(const std::string& runtime) {
  const auto data = co_await ask(kRuntimeAddress.text, Json{{"name", runtime}});
  if (!data) co_return std::unexpected(data.error());
  if (!value_at(*data, {"runtime"}).is_object()) {
    co_return fail(ErrorCode::not_found, "runtime \"" + runtime + "\" not found");
  }
  auto host = string_at(*data, {"runtime", "internalIngressHost"});
  if (host.empty()) host = string_at(*data, {"runtime", "ingressHost"});
  if (host.empty()) {
    co_return fail(ErrorCode::unsupported,
                   "runtime " + runtime +
                       " has no ingress host, so its app-proxy cannot be reached; "
                       "docs/guides/access-modes.md gives it one");
  }
  auto url = http::parse_url(host);
  if (!url) co_return fail("the ingress host of runtime " + runtime, url.error());
  if (url_.is_tls() && !url->is_tls() && !is_loopback(url->host)) {
    co_return fail(ErrorCode::unsupported,
                   "runtime " + runtime + " has the address " + url->to_string() +
                       " without TLS, where others could read your key; nothing was sent there");
  }
  co_return url;
}

Task<Result<Json>> Server::ask_runtime(const std::string& runtime, std::string_view document,
                                       Json variables) {
  const auto url = co_await runtime_url(runtime);
  if (!url) co_return not_sent(url.error());
  co_return co_await ask_at(*url, "/app-proxy/api/graphql", document, std::move(variables));
}

Task<Result<Json>> Server::call_runtime(const std::string& runtime, std::string method,
                                        std::string_view path, std::string body) {
  const auto url = co_await runtime_url(runtime);
  if (!url) co_return not_sent(url.error());
  const auto target = "/app-proxy" + std::string(path);
  const auto response = co_await send(*url, std::move(method), target, std::move(body));
  if (!response) co_return std::unexpected(response.error());
  co_return rest_value(*response);
}

Task<Result<void>> Server::follow_at(http::Url url, std::string target, OnEvent on_event,
                                     std::string last_id) {
  http::Request get = request("GET", std::move(target));
  get.headers.set("Accept", "text/event-stream");
  if (!last_id.empty()) get.headers.set("Last-Event-ID", std::move(last_id));
  auto exchange = co_await client_.open(url, std::move(get), request_deadline());
  if (!exchange) co_return std::unexpected(exchange.error());
  auto head = co_await exchange->read_head();
  if (!head) co_return std::unexpected(head.error());
  if (head->status != 200) {
    while (head->body.size() < kMaxEvent) {
      const auto bytes = co_await exchange->read_some();
      if (!bytes || bytes->empty()) break;
      head->body += *bytes;
    }
    const auto value = rest_value(*head);
    if (!value) co_return std::unexpected(value.error());
  }
  if (head->status != 200 || media_type(head->headers) != "text/event-stream") {
    co_return fail(ErrorCode::protocol, "the answer is no stream of events");
  }
  http::ServerSentEventParser parser(kMaxEvent);
  while (true) {
    exchange->set_deadline(std::min(loop_.deadline, deadline_after(kSilence)));
    const auto bytes = co_await exchange->read_some();
    if (!bytes) co_return std::unexpected(bytes.error());
    if (bytes->empty()) co_return Result<void>();
    const auto events = parser.feed(*bytes);
    if (!events) co_return std::unexpected(events.error());
    for (const auto& event : *events) {
      if (!on_event(event)) co_return Result<void>();
    }
  }
}

Task<Result<void>> Server::follow(std::string_view path, OnEvent on_event, std::string last_id) {
  co_return co_await follow_at(url_, http::join_target(url_, path), std::move(on_event),
                               std::move(last_id));
}

Task<Result<void>> Server::follow_runtime(const std::string& runtime, std::string_view path,
                                          OnEvent on_event) {
  const auto url = co_await runtime_url(runtime);
  if (!url) co_return std::unexpected(url.error());
  co_return co_await follow_at(*url, http::join_target(*url, "/app-proxy" + std::string(path)),
                               std::move(on_event));
}

}  // namespace gitops::ctl
