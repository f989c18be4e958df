#include "tunnel-server/edge.hpp"

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>
#include <vector>

#include "common/core/encoding.hpp"
#include "common/proxy/upstream.hpp"

namespace gitops::tunnel_server {
namespace {

// How long the newest client of a host may keep a user waiting while there is another one.
constexpr auto kImpatience = std::chrono::milliseconds(1'500);
// Of a host that is gone.
constexpr unsigned kNoGeneration = std::numeric_limits<unsigned>::max();
// Kept for the next request, for each host. Each occupies a stream and a connection at the client.
constexpr std::size_t kMaxIdle = 32;

http::Response page(int status, std::string_view title, std::string_view text) {
  http::Response response{
      .status = status,
      .headers = {{"Content-Type", "text/html; charset=utf-8"}, {"Cache-Control", "no-store"}}};
  response.body.append("<!doctype html><title>")
      .append(title)
      .append("</title><h1>")
      .append(title)
      .append("</h1><p>")
      .append(text)
      .append("</p>\n");
  return response;
}

http::Response not_found() {
  return page(404, "Not Found",
              "The page you requested was not found: no tunnel serves this host at the moment.");
}

bool is_authorized(const proxy::RequestHead& head, const Offer& offer) {
  if (offer.user.empty() && offer.password.empty()) return true;
  constexpr std::string_view kScheme = "basic ";
  const auto field = head.find(proxy::FieldId::authorization);
  if (!field || field->size() < kScheme.size() ||
      !http::equal_ignoring_case(field->substr(0, kScheme.size()), kScheme)) {
    return false;
  }
  auto given = base64_decode(field->substr(kScheme.size()));
  if (!given) return false;
  return Secret(std::move(*given)) ==
         Secret(offer.user + ":" + std::string(offer.password.reveal()));
}

// A request that counts to its host while it lasts.
std::shared_ptr<void> count(std::shared_ptr<Way> way) {
  ++way->requests;
  auto* raw = way.get();
  return {raw, [way = std::move(way)](void*) { --way->requests; }};
}

}  // namespace

Edge::Edge(HostTable& table, Traffic& traffic, Options options)
    : table_(table), traffic_(traffic), options_(std::move(options)) {}

proxy::Policy Edge::policy() {
  return {.decide = [this](const auto& head, const auto& peer) { return decide(head, peer); },
          .failed = [this](const auto* head, const auto*, auto failure, int status,
                           auto detail) { return failed(head, failure, status, detail); },
          .done = [this](const auto& record) { traffic_.count(record); }};
}

void Edge::update(HostTable::Host& host) {
  if (host.entries.empty()) {
    // Requests under way keep what they need of it.
    if (host.way) host.way->upstream->close_idle();
    host.way.reset();
    return;
  }
  if (!host.way) {
    host.way = std::make_shared<Way>();
    host.way->upstream = std::make_shared<proxy::Upstream>(
        proxy::Dialer{.dial = [this, way = std::weak_ptr(host.way)](
                                  Deadline deadline) { return dial(way, deadline); },
                      .generation =
                          [way = std::weak_ptr(host.way)](Clock::time_point) {
                            const auto alive = way.lock();
                            return alive ? alive->generation : kNoGeneration;
                          }},
        proxy::UpstreamOptions{.connect_timeout = options_.connect_timeout, .max_idle = kMaxIdle});
    std::erase_if(ways_, [](const auto& way) { return way.expired(); });
    ways_.push_back(host.way);
  }
  auto& way = *host.way;
  way.offer = host.entries.back().offer;
  way.clients.clear();
  for (const auto& entry : host.entries | std::views::reverse) {
    way.clients.emplace_back(entry.owner.session, entry.offer->proxy);
  }
  auto route = std::make_shared<proxy::Route>();
  route->name = traffic_.label_of(host.domain);
  route->upstream = way.upstream;
  route->limits = options_.limits;
  route->host = way.offer->host_rewrite;
  way.route = std::move(route);
  // The next request goes to the newest client.
  ++way.generation;
  way.upstream->close_idle();
}

void Edge::sweep() {
  const auto now = Clock::now();
  for (const auto& way : ways_) {
    if (const auto alive = way.lock()) alive->upstream->sweep(now);
  }
}

void Edge::release_clients() {
  for (const auto& way : ways_) {
    const auto alive = way.lock();
    if (!alive) continue;
    ++alive->generation;
    alive->upstream->close_idle();
  }
}

Task<Result<std::unique_ptr<net::Channel>>> Edge::dial(std::weak_ptr<Way> way, Deadline deadline) {
  Error error{.code = ErrorCode::unavailable, .message = "no client of this host is connected"};
  std::vector<SessionId> tried;
  while (true) {
    const auto alive = way.lock();
    if (!alive) break;
    std::shared_ptr<Session> session;
    std::string proxy;
    std::size_t others = 0;
    for (const auto& [id, name] : alive->clients) {
      if (std::ranges::find(tried, id) != tried.end()) continue;
      auto candidate = options_.session(id);
      if (!candidate || !candidate->takes_users()) continue;
      if (session) {
        ++others;
      } else {
        session = std::move(candidate);
        proxy = name;
      }
    }
    if (!session) break;
    tried.push_back(session->id());
    const auto until = others > 0 ? std::min(deadline, deadline_after(kImpatience)) : deadline;
    auto channel = co_await session->connect(proxy, until);
    if (channel || Clock::now() >= deadline) co_return channel;
    error = std::move(channel.error());
  }
  co_return std::unexpected(std::move(error));
}

asio::ip::address Edge::client_of(const proxy::RequestHead& head,
                                  const proxy::PeerInfo& peer) const {
  auto client = peer.address;
  if (!options_.trusted_proxies.contains(client)) return client;
  std::vector<std::string_view> hops;
  for (const auto& field : head.fields) {
    if (!http::equal_ignoring_case(field.name, "X-Forwarded-For")) continue;
    proxy::for_each_element(field.value, [&hops](std::string_view hop) { hops.push_back(hop); });
  }
  // The last address that is not a trusted proxy's; everything before it can be forged.
  for (const auto hop : hops | std::views::reverse) {
    boost::system::error_code ec;
    const auto address = asio::ip::make_address(std::string(hop), ec);
    if (ec) break;
    client = net::plain_address(address);
    if (!options_.trusted_proxies.contains(client)) break;
  }
  return client;
}

proxy::Decision Edge::decide(const proxy::RequestHead& head, const proxy::PeerInfo& peer) {
  if (head.form == proxy::TargetForm::authority) {
    return page(501, "Not Implemented", "CONNECT is not supported.");
  }
  const auto* host = table_.find(head.host, head.path);
  if (host == nullptr || !host->way) return not_found();
  const auto& way = host->way;
  if (options_.ban && !options_.ban(host->domain).empty()) return not_found();
  const auto& offer = *way->offer;
  if (!offer.allowed.empty() && !offer.allowed.contains(client_of(head, peer))) {
    return page(403, "Forbidden", "This host is not open to your address.");
  }
  if (!is_authorized(head, offer)) {
    auto answer = page(401, "Unauthorized", "This host asks for a user and a password.");
    answer.headers.add("WWW-Authenticate", "Basic realm=\"Restricted\"");
    return answer;
  }
  if (options_.max_requests_per_host > 0 && way->requests >= options_.max_requests_per_host) {
    auto answer = page(503, "Service Unavailable", "Too many requests of this host at a time.");
    answer.headers.add("Retry-After", "1");
    return answer;
  }
  proxy::Forward forward;
  forward.route = way->route;
  if (head.form == proxy::TargetForm::origin) {
    forward.target = head.target;
  } else {
    forward.rewritten = std::string(head.path);
    if (head.has_query) forward.rewritten.append("?").append(head.query);
  }
  forward.trusted_peer = options_.trusted_proxies.contains(peer.address);
  forward.admission = count(way);
  return forward;
}

http::Response Edge::failed(const proxy::RequestHead*, proxy::Failure failure, int status,
                            std::string_view) const {
  using proxy::Failure;
  switch (failure) {
    case Failure::connect_failed:
      return page(503, "Service Unavailable", "The tunnel of this host has just been lost.");
    case Failure::connect_timeout:
      return page(504, "Gateway Timeout", "The tunnel's client did not take the request in time.");
    case Failure::upstream_lost:
    case Failure::malformed_answer:
      return page(502, "Bad Gateway",
                  "The service behind the tunnel closed the connection without an answer.");
    case Failure::answer_timeout:
      return page(504, "Gateway Timeout", "The service behind the tunnel did not answer in time.");
    default:
      return page(status, http::reason_phrase(status), "The request cannot be served.");
  }
}

}  // namespace gitops::tunnel_server
