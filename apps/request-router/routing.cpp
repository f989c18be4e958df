#include "request-router/routing.hpp"

#include <algorithm>
#include <utility>

#include "common/http/wire_text.hpp"
#include "common/proxy/forward.hpp"
#include "request-router/error_answer.hpp"
#include "request-router/webhooks.hpp"

namespace gitops::router {
namespace {

constexpr std::size_t kMaxEventSources = 1'000;  // routes kept
constexpr std::size_t kMaxRequestId = 128;
constexpr std::int64_t kMaxWorkflowsBody = 100 * 1024 * 1024;  // bytes of a request
// Time limit for a webhook that cannot be stored and waits for the gate.
constexpr auto kGateTimeLimit = std::chrono::seconds(5);
constexpr auto kGateLook = std::chrono::milliseconds(50);

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxRequestId && http::is_token(text);
}

std::optional<std::string_view> accept_of(const http::RequestHead* head) {
  return head == nullptr ? std::nullopt : head->find(http::FieldId::accept);
}

http::Response redirect_to(std::string_view target) {
  std::string location;
  http::append_target(location, target);
  return {.status = 301, .headers = {{"Location", std::move(location)}}, .body = {}};
}

// Allows an address that is configured as the host.
bool is_address(const std::string& host) {
  boost::system::error_code ec;
  boost::asio::ip::make_address(host, ec);
  return !ec;
}

std::function<bool(const boost::asio::ip::address&)> only_allowed(
    std::shared_ptr<const net::AddressList> allowed) {
  return [allowed = std::move(allowed)](const boost::asio::ip::address& address) {
    return !net::is_special_address(address) || allowed->contains(address);
  };
}

http::Response unsigned_webhook(const http::RequestHead& head) {
  return error_answer(401, "the signature of the webhook is missing or wrong",
                      head.find(http::FieldId::accept));
}

// Returns the response to a test of the webhook. The event source is not contacted, since the
// sender is not authenticated.
http::Response answer_to_ping() {
  return {.status = 200,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = "the ping was not signed, so the event source did not receive it\n"};
}

using proxy::Verdict;

Verdict refused(http::Response answer) {
  co_return answer;
}

// Permit of a webhook in a gate, while it is in flight.
struct Inside {
  Inside(std::shared_ptr<Gate> g, Gate::Permit p) : gate(std::move(g)), permit(std::move(p)) {}
  std::shared_ptr<Gate> gate;
  Gate::Permit permit;
};

// Returns whether the addresses of the host may have been found although it was not connected to.
// After a timeout they are in the cache of the resolver.
bool is_of_found_host(const Error& error) {
  return error.code == ErrorCode::unavailable || error.code == ErrorCode::timeout;
}

// Marks the event source as known after a connection, or after its address was found.
proxy::Dialer marks_known(proxy::Dialer dialer, net::Resolver& names, std::string host,
                          std::shared_ptr<Gate> gate) {
  dialer.dial = [dial = std::move(dialer.dial), &names, host = std::move(host),
                 gate = std::move(gate)](
                    Deadline deadline,
                    net::LookupClient client) -> Task<Result<std::unique_ptr<net::Channel>>> {
    auto channel = co_await dial(deadline, client);
    if (channel) {
      gate->mark_known();
    } else if (!gate->is_known() && is_of_found_host(channel.error())) {
      if (co_await names.resolve(host, 1, deadline, client)) gate->mark_known();
    }
    co_return channel;
  };
  return dialer;
}

// Returns whether an admitted webhook may be stored: a Git host may send it only once. Responses to
// other methods are of no use later. A verified signature proves that the event source exists, even
// before its name can be looked up.
bool may_be_kept(const WebhookRoute& route, const proxy::WholeRequest& request) {
  return request.head.method == "POST" && (route.gate->is_known() || route.secrets);
}

// Takes a permit of the gate, if it has one. A webhook that may be stored gets none while others of
// its event source are stored, or while senders wait for memory that stored webhooks release.
bool passes_gate(const WebhookRoute& route, const Webhooks& kept, const proxy::Totals& totals,
                 const proxy::WholeRequest& request, std::shared_ptr<void>& admission) {
  if ((totals.is_short_of_room() || kept.must_wait(route.source)) && may_be_kept(route, request)) {
    return false;
  }
  auto permit = route.gate->acquire(Clock::now());
  if (!permit) return false;
  admission = std::make_shared<Inside>(route.gate, std::move(permit));
  return true;
}

// Stores a webhook that did not pass its gate, so that it is safe in the meantime. One that cannot
// be stored waits here.
Verdict wait_at_gate(const WebhookRoute& route, Webhooks& kept, const proxy::Totals& totals,
                     const proxy::WholeRequest& request, std::shared_ptr<void>& admission) {
  const auto deadline = deadline_after(kGateTimeLimit);
  std::optional<Gate::Waiting> waiting;
  do {
    if (may_be_kept(route, request)) co_return co_await kept.keep(route.source, request, {});
    if (!waiting) waiting.emplace(*route.gate);
    if (!*waiting || Clock::now() >= deadline) {
      co_return error_answer(429, "too many webhooks for this event source",
                             request.head.find(http::FieldId::accept));
    }
    co_await sleep_for(kGateLook);
  } while (!passes_gate(route, kept, totals, request, admission));
  co_return std::nullopt;
}

Verdict store_undelivered(const WebhookRoute& route, Webhooks& kept,
                          const proxy::WholeRequest& request, const proxy::Problem& problem) {
  switch (problem.failure) {
    case proxy::Failure::connect_failed:
    case proxy::Failure::connect_timeout:
    case proxy::Failure::answer_timeout:
    case proxy::Failure::upstream_lost:
    case proxy::Failure::upstream_unavailable:
    case proxy::Failure::malformed_answer:
      break;
    default:
      co_return std::nullopt;
  }
  if (!may_be_kept(route, request)) co_return std::nullopt;
  const bool is_reachable = problem.failure == proxy::Failure::upstream_unavailable;
  co_return co_await kept.keep(route.source, request, is_reachable ? "" : problem.detail);
}

// Returns whether both settings connect in the same way to the same destination.
bool connect_alike(const RouteSettings& a, const RouteSettings& b) {
  return a.connect_timeout == b.connect_timeout &&
         a.upstream_idle_timeout == b.upstream_idle_timeout &&
         a.allowed_addresses == b.allowed_addresses;
}

std::string_view message_for(proxy::Failure failure, int status) {
  switch (failure) {
    case proxy::Failure::connect_failed:
    case proxy::Failure::connect_timeout:
      return "the service behind this path cannot be reached";
    case proxy::Failure::upstream_lost:
    case proxy::Failure::malformed_answer:
      return "the service behind this path gave no valid answer";
    case proxy::Failure::answer_timeout:
      return "the service behind this path did not answer in time";
    case proxy::Failure::address_refused:
      return "the service behind this path has no address that may be used";
    case proxy::Failure::no_such_host:
      return status == 404 ? "no such event source" : "the service behind this path is not there";
    default:
      return {};
  }
}

}  // namespace

Routing::Routing(net::Resolver& names, net::Resolver& event_source_names,
                 const RouteSettings& settings, std::shared_ptr<Gates> gates, Webhooks& webhooks,
                 std::shared_ptr<proxy::Totals> totals, std::function<std::string()> app_proxy_down,
                 const Routing* before)
    : names_(names),
      event_source_names_(event_source_names),
      settings_(settings),
      gates_(std::move(gates)),
      kept_(webhooks),
      totals_(std::move(totals)),
      app_proxy_down_(std::move(app_proxy_down)),
      allowed_(std::make_shared<net::AddressList>(settings.allowed_addresses)),
      cors_(settings.cors_origins) {
  webhooks_.namespaces = settings.webhook_namespaces;
  if (webhooks_.namespaces.empty() && !settings.own_namespace.empty()) {
    webhooks_.namespaces.push_back(settings.own_namespace);
  }
  webhooks_.cluster_domain = settings.cluster_domain;

  std::shared_ptr<proxy::Upstream> app_proxy;
  std::shared_ptr<proxy::Upstream> workflows;
  if (before != nullptr && connect_alike(settings, before->settings_)) {
    const auto& old = before->settings_;
    if (settings.app_proxy == old.app_proxy &&
        settings.app_proxy_ca_file == old.app_proxy_ca_file) {
      app_proxy = before->app_proxy_->upstream;
    }
    if (before->workflows_ && settings.workflows == old.workflows &&
        settings.workflows_ca_file == old.workflows_ca_file &&
        settings.workflows_insecure == old.workflows_insecure) {
      workflows = before->workflows_->upstream;
    }
  }
  auto app_limits = limits(settings.app_proxy_max_body);
  app_limits.websocket = true;
  app_proxy_ =
      fixed_route(RouteId::app_proxy, "app-proxy", settings.app_proxy,
                  {.ca_file = settings.app_proxy_ca_file}, app_limits, std::move(app_proxy));
  if (settings.workflows) {
    workflows_ = fixed_route(RouteId::workflows, "workflows", *settings.workflows,
                             {.ca_file = settings.workflows_ca_file,
                              .insecure_skip_verify = settings.workflows_insecure},
                             limits(kMaxWorkflowsBody), std::move(workflows));
  }
  if (before != nullptr) take_over(*before);
}

// Keeps the event sources that were in use, with their gates and secrets, and with their
// connections if new ones would be the same.
void Routing::take_over(const Routing& before) {
  const bool alike = connect_alike(settings_, before.settings_) &&
                     settings_.webhook_port == before.settings_.webhook_port;
  for (const auto& [old_host, route] : before.events_) {
    const auto& [ns, event_source] = route->source;
    const auto host = webhook_host(ns, event_source, webhooks_);
    if (!host) continue;
    auto upstream = alike && *host == old_host ? route->upstream : nullptr;
    events_.emplace(*host,
                    new_event_route(ns, event_source, *host, std::move(upstream), route.get()));
  }
}

proxy::RouteLimits Routing::limits(std::int64_t max_body) const {
  proxy::RouteLimits limits;
  limits.max_body = static_cast<std::uint64_t>(max_body);
  limits.answer_timeout = settings_.answer_timeout;
  limits.body_timeout = settings_.body_timeout;
  limits.stream_timeout = settings_.stream_timeout;
  limits.body_deadline = settings_.body_deadline;
  limits.gzip = settings_.gzip;
  return limits;
}

Routing::Route Routing::fixed_route(RouteId id, const std::string& name, const http::Url& url,
                                    net::TlsOptions tls, proxy::RouteLimits limits,
                                    std::shared_ptr<proxy::Upstream> upstream) const {
  auto route = std::make_shared<proxy::Route>();
  route->name = name;
  route->id = std::to_underlying(id);
  route->limits = limits;
  route->upstream = std::move(upstream);
  if (!route->upstream) {
    proxy::TcpDialerOptions place{.host = url.host, .port = url.port};
    if (url.is_tls()) place.tls = std::move(tls);
    if (!is_address(url.host)) place.allowed = only_allowed(allowed_);
    route->upstream = std::make_shared<proxy::Upstream>(
        proxy::tcp_dialer(names_, std::move(place)),
        proxy::UpstreamOptions{.connect_timeout = settings_.connect_timeout,
                               .idle_timeout = settings_.upstream_idle_timeout});
  }
  route->host = url.host_header();
  route->own_origin = url.scheme + "://" + url.host_header();
  if (id == RouteId::workflows) route->location_prefix = "/workflows";
  return route;
}

Result<Routing::EventRoute> Routing::webhook_route(std::string_view ns,
                                                   std::string_view event_source) {
  const auto host = webhook_host(ns, event_source, webhooks_);
  if (!host) return std::unexpected(host.error());
  if (const auto known = events_.find(*host); known != events_.end()) return known->second;
  if (events_.size() >= kMaxEventSources) forget_event_sources();
  auto route = new_event_route(ns, event_source, *host, nullptr, nullptr);
  events_.emplace(*host, route);
  return route;
}

Routing::EventRoute Routing::new_event_route(std::string_view ns, std::string_view event_source,
                                             const std::string& host,
                                             std::shared_ptr<proxy::Upstream> upstream,
                                             const WebhookRoute* before) const {
  auto route = std::make_shared<WebhookRoute>();
  route->source = {.ns = std::string(ns), .event_source = std::string(event_source)};
  route->gate = gates_->of(host);
  if (const auto* rule = signature_rule(ns, event_source)) {
    route->signature = rule->kind;
    const bool is_known =
        before != nullptr && before->secrets && before->secrets->file() == rule->secret_file;
    // A new reader of the file would have no secrets while it cannot be read.
    route->secrets =
        is_known ? before->secrets : std::make_shared<SignatureSecrets>(rule->secret_file);
  }
  route->name = "webhooks";
  route->id = std::to_underlying(RouteId::webhooks);
  route->limits = limits(settings_.webhook_max_body);
  route->host = host;
  if (settings_.webhook_port != 80) route->host += ":" + std::to_string(settings_.webhook_port);
  route->own_origin = "http://" + route->host;
  route->upstream = std::move(upstream);
  if (!route->upstream) {
    // The trailing dot makes the name absolute: no search list of the pod or its node applies.
    auto dialer = proxy::tcp_dialer(event_source_names_,
                                    {.host = host + ".",
                                     .port = static_cast<std::uint16_t>(settings_.webhook_port),
                                     .allowed = only_allowed(allowed_)});
    route->upstream = std::make_shared<proxy::Upstream>(
        marks_known(std::move(dialer), event_source_names_, host + ".", route->gate),
        proxy::UpstreamOptions{.connect_timeout = settings_.connect_timeout,
                               .idle_timeout = settings_.upstream_idle_timeout,
                               .max_idle = 64});
  }
  return route;
}

// Removes routes, first those with unused gates.
void Routing::forget_event_sources() {
  std::erase_if(events_,
                [now = Clock::now()](const auto& item) { return item.second->gate->unused(now); });
  if (events_.size() >= kMaxEventSources) events_.clear();
}

proxy::Decision Routing::decide(const http::RequestHead& head, const proxy::PeerInfo& peer) {
  auto match = match_route(head);
  const auto accept = head.find(http::FieldId::accept);
  if (match.status != 0) {
    auto refusal = error_answer(match.status, match.reason, accept);
    if (match.status == 405) refusal.headers.add("Allow", "GET, HEAD");
    return refusal;
  }
  Route route;
  EventRoute event_route;
  switch (match.kind) {
    case RouteKind::none:
      return error_answer(404, match.reason, accept);
    case RouteKind::health:
    case RouteKind::ready:
      return answer_health(match);
    case RouteKind::workflows_redirect:
      if (!workflows_) return error_answer(404, "no such route", accept);
      return redirect_to(match.rewritten);
    case RouteKind::app_proxy:
      route = app_proxy_;
      break;
    case RouteKind::workflows:
      if (!workflows_) return error_answer(404, "no such route", accept);
      route = workflows_;
      break;
    case RouteKind::webhook: {
      auto found = webhook_route(match.ns, match.event_source);
      if (!found) {
        const int status = found.error().code == ErrorCode::forbidden ? 403 : 404;
        return error_answer(status, found.error().message, accept);
      }
      event_route = std::move(*found);
      route = event_route;
      break;
    }
  }
  proxy::Forward forward{.route = std::move(route), .target = match.target};
  if (!match.rewritten.empty()) forward.rewritten = std::move(match.rewritten);
  forward.trusted_peer = settings_.trusted_proxies.contains(peer.address);
  if (forward.trusted_peer) {
    const auto id = head.find(http::FieldId::x_request_id);
    if (id && is_request_id(*id)) forward.request_id = *id;
  }
  if (event_route) {
    if (auto refusal = screen(event_route, head, peer, forward)) return std::move(*refusal);
  }
  return forward;
}

const SignatureRule* Routing::signature_rule(std::string_view ns,
                                             std::string_view event_source) const {
  const auto found =
      std::ranges::find_if(settings_.webhook_signatures, [&](const SignatureRule& rule) {
        return rule.ns == ns && rule.event_source == event_source;
      });
  return found == settings_.webhook_signatures.end() ? nullptr : &*found;
}

// Checks a webhook before it takes a permit of the gate: its whole body must be there and its
// signature valid. Slow or unauthenticated senders thus take no permits from others.
std::optional<http::Response> Routing::screen(const EventRoute& route,
                                              const http::RequestHead& head,
                                              const proxy::PeerInfo& peer,
                                              proxy::Forward& forward) const {
  forward.inspection = std::make_unique<proxy::RequestInspection>();
  std::shared_ptr<SignatureCheck> signature;
  if (route->secrets) {
    if (is_unsigned_ping(route->signature, head)) return answer_to_ping();
    // The check holds slices of the head, which lives until the end of the request.
    auto check = SignatureCheck::begin(route->signature, head,
                                       route->secrets->current(Clock::now()), wall_now());
    if (!check) return unsigned_webhook(head);
    signature = std::make_shared<SignatureCheck>(std::move(*check));
    forward.inspection->inspect = [signature](std::string_view part) { signature->add(part); };
  }
  forward.inspection->admit = [route, signature, kept = &kept_, totals = totals_](
                                  const proxy::WholeRequest& request,
                                  std::shared_ptr<void>& admission) -> std::optional<Verdict> {
    if (signature && !signature->passes()) return refused(unsigned_webhook(request.head));
    if (passes_gate(*route, *kept, *totals, request, admission)) return std::nullopt;
    return wait_at_gate(*route, *kept, *totals, request, admission);
  };
  forward.inspection->undelivered = [route, kept = &kept_](const proxy::WholeRequest& request,
                                                           const proxy::Problem& problem) {
    return store_undelivered(*route, *kept, request, problem);
  };
  // Charges held bytes to the client that a trusted proxy names.
  if (forward.trusted_peer) {
    boost::system::error_code ec;
    const auto client = boost::asio::ip::make_address(std::string(client_of(head, peer)), ec);
    if (!ec) forward.inspection->holder = totals_->of(client);
  }
  return std::nullopt;
}

http::Response Routing::answer_health(const RouteMatch& match) const {
  http::Response response{
      .status = 200, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = "ok"};
  response.headers.add("Cache-Control", "no-store");
  if (match.kind == RouteKind::ready) {
    // The reason contains hosts and addresses, so it appears only on the admin port and in the log.
    if (!app_proxy_down_().empty()) {
      response.status = 503;
      response.body = "app-proxy cannot be reached\n";
    }
  }
  return response;
}

http::Response Routing::failed(const http::RequestHead* head, const proxy::Route* route,
                               proxy::Failure failure, int status, std::string_view detail) const {
  const bool is_app_proxy = route != nullptr && route->id == std::to_underlying(RouteId::app_proxy);
  const bool is_webhook = route != nullptr && route->id == std::to_underlying(RouteId::webhooks);
  if (failure == proxy::Failure::no_such_host && is_webhook) status = 404;
  if (failure == proxy::Failure::connect_timeout && is_webhook) status = 502;
  const auto origin =
      head == nullptr ? std::optional<std::string_view>{} : head->find(http::FieldId::origin);
  const bool unreachable = status == 502 || status == 504;
  if (is_app_proxy && unreachable && head != nullptr && head->method == "OPTIONS") {
    return cors_.preflight(origin);
  }
  const auto message = message_for(failure, status);
  auto response = error_answer(status, message.empty() ? detail : message, accept_of(head));
  if (is_app_proxy) cors_.allow(response, origin);
  return response;
}

std::string_view Routing::client_of(const http::RequestHead& head,
                                    const proxy::PeerInfo& peer) const {
  if (!settings_.trusted_proxies.contains(peer.address)) return peer.text;
  const auto hops = proxy::forwarded_hops(head);
  const auto hop = net::client_hop(peer.address, hops, settings_.trusted_proxies);
  return hop ? hops[*hop] : peer.text;
}

void Routing::sweep() {
  const auto now = Clock::now();
  app_proxy_->upstream->sweep(now);
  if (workflows_) workflows_->upstream->sweep(now);
  for (const auto& [host, route] : events_) route->upstream->sweep(now);
}

}  // namespace gitops::router
