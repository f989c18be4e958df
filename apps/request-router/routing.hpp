#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/http/cors.hpp"
#include "common/net/address_list.hpp"
#include "common/net/resolve.hpp"
#include "common/proxy/policy.hpp"
#include "common/proxy/upstream.hpp"
#include "request-router/config.hpp"
#include "request-router/gate.hpp"
#include "request-router/route.hpp"
#include "request-router/signature.hpp"
#include "request-router/webhook_store.hpp"
#include "request-router/webhook_target.hpp"

namespace gitops::router {

// Ids of routes for proxy::Route::id and metrics.
enum class RouteId : std::size_t { app_proxy, workflows, webhooks };

// Route to one event source.
struct WebhookRoute : proxy::Route {
  SourceName source;
  std::shared_ptr<Gate> gate;
  SignatureKind signature = SignatureKind::github;
  std::shared_ptr<SignatureSecrets> secrets;  // null: webhooks need not be signed
};

class Webhooks;

// Routes in force: decides on each request and responds to those that cannot be forwarded. Rebuilt
// when the settings change, with the upstreams and gates that remain the same; requests in flight
// keep their routes. Each loop has its own routes; all loops share the gates. Loop thread only.
class Routing {
 public:
  // `names` looks up the configured upstreams, `event_source_names` the hosts of event sources,
  // which senders of webhooks choose; both, and `webhooks`, must outlive it. `app_proxy_down`
  // returns the reason why app-proxy is down, or an empty text. `before`: the previous routes, if
  // any.
  Routing(net::Resolver& names, net::Resolver& event_source_names, const RouteSettings& settings,
          std::shared_ptr<Gates> gates, Webhooks& webhooks, std::shared_ptr<proxy::Totals> totals,
          std::function<std::string()> app_proxy_down, const Routing* before = nullptr);

  proxy::Decision decide(const http::RequestHead& head, const proxy::PeerInfo& peer);
  http::Response failed(const http::RequestHead* head, const proxy::Route* route,
                        proxy::Failure failure, int status, std::string_view detail) const;
  // Returns the client of the request: the peer, or the client that a trusted peer names.
  [[nodiscard]] std::string_view client_of(const http::RequestHead& head,
                                           const proxy::PeerInfo& peer) const;

  // Returns the route to an event source. Errors: forbidden, not_found (see webhook_host()).
  Result<std::shared_ptr<const WebhookRoute>> webhook_route(std::string_view ns,
                                                            std::string_view event_source);
  [[nodiscard]] proxy::Upstream& app_proxy() const { return *app_proxy_->upstream; }
  // Closes pooled connections that have exceeded their idle timeout.
  void sweep();

 private:
  using Route = std::shared_ptr<const proxy::Route>;
  using EventRoute = std::shared_ptr<const WebhookRoute>;

  // `upstream`: reused if it is not null.
  [[nodiscard]] Route fixed_route(RouteId id, const std::string& name, const http::Url& url,
                                  net::TlsOptions tls, proxy::RouteLimits limits,
                                  std::shared_ptr<proxy::Upstream> upstream) const;
  // `before`: the previous route to the event source, whose secrets stay in use; may be null.
  [[nodiscard]] EventRoute new_event_route(std::string_view ns, std::string_view event_source,
                                           const std::string& host,
                                           std::shared_ptr<proxy::Upstream> upstream,
                                           const WebhookRoute* before) const;
  void take_over(const Routing& before);
  void forget_event_sources();
  [[nodiscard]] const SignatureRule* signature_rule(std::string_view ns,
                                                    std::string_view event_source) const;
  // Returns the response to a webhook that is refused by its head. Otherwise sets the checks of the
  // body in `forward` and returns nothing.
  std::optional<http::Response> screen(const EventRoute& route, const http::RequestHead& head,
                                       const proxy::PeerInfo& peer, proxy::Forward& forward) const;
  [[nodiscard]] http::Response answer_health(const RouteMatch& match) const;
  [[nodiscard]] proxy::RouteLimits limits(std::int64_t max_body) const;

  net::Resolver& names_;
  net::Resolver& event_source_names_;
  RouteSettings settings_;
  std::shared_ptr<Gates> gates_;
  Webhooks& kept_;
  std::shared_ptr<proxy::Totals> totals_;
  std::function<std::string()> app_proxy_down_;
  std::shared_ptr<const net::AddressList> allowed_;
  http::Cors cors_;
  WebhookRules webhooks_;
  Route app_proxy_;
  Route workflows_;                                     // null if disabled
  std::unordered_map<std::string, EventRoute> events_;  // recently used, by host
};

}  // namespace gitops::router
