#include "tunnel-server/vhost_proxy.hpp"

#include <algorithm>
#include <limits>
#include <ranges>
#include <tuple>
#include <utility>
#include <vector>

#include "common/core/encoding.hpp"
#include "common/proxy/forward.hpp"
#include "common/proxy/upstream.hpp"

namespace gitops::tunnel_server {
namespace {

// Time limit for a session to take a user while another session is available.
constexpr auto kFailoverTimeout = std::chrono::milliseconds(1'500);
// Generation of a host that has been removed.
constexpr unsigned kNoGeneration = std::numeric_limits<unsigned>::max();
// Maximum number of idle connections pooled for each session of a host. Each occupies a stream, and
// a connection at the client.
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

http::Response too_many(std::string_view text) {
  auto answer = page(503, "Service Unavailable", text);
  answer.headers.add("Retry-After", "1");
  return answer;
}

http::Response not_found() {
  return page(404, "Not Found",
              "The page you requested was not found: no tunnel serves this host at the moment.");
}

bool is_authorized(const http::RequestHead& head, const Offer& offer) {
  if (offer.user.empty() && offer.password.empty()) return true;
  constexpr std::string_view kScheme = "basic ";
  const auto field = head.find(http::FieldId::authorization);
  if (!field || field->size() < kScheme.size() ||
      !http::equal_ignoring_case(field->substr(0, kScheme.size()), kScheme)) {
    return false;
  }
  auto given = base64_decode(field->substr(kScheme.size()));
  if (!given) return false;
  return Secret(std::move(*given)) ==
         Secret(offer.user + ":" + std::string(offer.password.reveal()));
}

// Counts a request for its host and its session while it lasts.
std::shared_ptr<void> count(std::shared_ptr<Way> way, std::shared_ptr<SessionWay> session) {
  ++way->requests;
  ++session->requests;
  auto* raw = way.get();
  return {raw, [way = std::move(way), session = std::move(session)](void*) {
            --way->requests;
            --session->requests;
          }};
}

// Prevents reuse of the pooled connections through this session.
void release(SessionWay& way) {
  ++way.generation;
  way.upstream->close_idle();
}

}  // namespace

VhostProxy::VhostProxy(HostTable& table, Traffic& traffic, Options options)
    : table_(table), traffic_(traffic), options_(std::move(options)) {}

proxy::Policy VhostProxy::policy() {
  return {.decide = [this](const auto& head, const auto& peer) { return decide(head, peer); },
          .failed = [this](const auto* head, const auto*, auto failure, int status,
                           auto detail) { return failed(head, failure, status, detail); },
          .done = [this](const auto& record) { traffic_.count(record); }};
}

std::shared_ptr<SessionWay> VhostProxy::make_way(const std::shared_ptr<Way>& of_host,
                                                 SessionId session, std::string proxy) {
  auto way = std::make_shared<SessionWay>();
  way->session = session;
  way->proxy = std::move(proxy);
  way->upstream = std::make_shared<proxy::Upstream>(
      proxy::Dialer{.dial = [this, of_host = std::weak_ptr(of_host), way = std::weak_ptr(way)](
                                Deadline deadline,
                                const net::LookupClient&) { return dial(of_host, way, deadline); },
                    .generation =
                        [way = std::weak_ptr(way)](Clock::time_point) {
                          const auto alive = way.lock();
                          if (!alive || std::exchange(alive->is_borrowed, false)) {
                            return kNoGeneration;
                          }
                          return alive->generation;
                        }},
      proxy::UpstreamOptions{.connect_timeout = options_.connect_timeout, .max_idle = kMaxIdle});
  return way;
}

void VhostProxy::update(HostTable::Host& host) {
  if (!host.way) {
    host.way = std::make_shared<Way>();
    std::erase_if(ways_, [](const auto& way) { return way.expired(); });
    ways_.push_back(host.way);
  }
  auto& way = *host.way;
  const auto before = std::exchange(way.sessions, {});
  for (const auto& entry : host.entries | std::views::reverse) {
    const auto is_same = [&entry](const auto& known) {
      return known->session == entry.owner.session && known->proxy == entry.offer->proxy;
    };
    const auto known = std::ranges::find_if(before, is_same);
    auto session = known == before.end()
                       ? make_way(host.way, entry.owner.session, entry.offer->proxy)
                       : *known;
    const bool serves = HostTable::is_serving(host, entry);
    // Sends the next request to the newest client.
    if (!serves && session->serves) release(*session);
    session->serves = serves;
    way.sessions.push_back(std::move(session));
  }
  for (const auto& session : before) {
    if (std::ranges::find(way.sessions, session) == way.sessions.end()) release(*session);
  }
  if (host.entries.empty()) {
    // Requests in flight keep the objects that they need.
    host.way.reset();
    return;
  }
  way.offer = host.entries.back().offer;
  for (const auto& session : way.sessions) {
    auto route = std::make_shared<proxy::Route>();
    route->name = traffic_.label_of(host.domain);
    route->upstream = session->upstream;
    route->limits = options_.limits;
    route->host = way.offer->host_rewrite;
    session->route = std::move(route);
  }
}

void VhostProxy::sweep() {
  const auto now = Clock::now();
  for (const auto& way : ways_) {
    const auto alive = way.lock();
    if (!alive) continue;
    for (const auto& session : alive->sessions) session->upstream->sweep(now);
  }
}

void VhostProxy::release_clients() {
  for (const auto& way : ways_) {
    const auto alive = way.lock();
    if (!alive) continue;
    for (const auto& session : alive->sessions) release(*session);
  }
}

VhostProxy::Choice VhostProxy::choose(const Way& way, const std::vector<SessionId>& tried,
                                      const SessionWay* wanted) const {
  using Rank = std::tuple<bool, bool, bool, bool, int, std::size_t, std::uint64_t>;
  Choice best;
  Rank best_rank;
  for (const auto& candidate : way.sessions) {
    if (std::ranges::find(tried, candidate->session) != tried.end()) continue;
    auto session = options_.session(candidate->session);
    if (!session || !session->takes_users()) continue;
    const auto doubt = session->doubt();
    const bool serves = candidate->serves;
    // Sorts older clients after the sessions of the newest one, in their order.
    const Rank rank{session->is_full(),
                    candidate.get() != wanted,
                    doubt > 1,
                    !serves,
                    serves ? doubt : 0,
                    serves ? candidate->requests : 0,
                    serves ? candidate->turn : 0};
    if (best.way) best.has_others = true;
    if (best.way && rank >= best_rank) continue;
    best.way = candidate;
    best.session = std::move(session);
    best_rank = rank;
  }
  return best;
}

Task<Result<std::unique_ptr<net::Channel>>> VhostProxy::dial(std::weak_ptr<Way> way,
                                                             std::weak_ptr<SessionWay> first,
                                                             Deadline deadline) {
  Error error{.code = ErrorCode::unavailable, .message = "no client of this host is connected"};
  std::vector<SessionId> tried;
  while (true) {
    const auto alive = way.lock();
    if (!alive) break;
    const auto wanted = first.lock();
    const auto choice = choose(*alive, tried, wanted.get());
    if (!choice.session) break;
    tried.push_back(choice.session->id());
    const auto until =
        choice.has_others ? std::min(deadline, deadline_after(kFailoverTimeout)) : deadline;
    auto channel = co_await choice.session->connect(
        choice.way->proxy, until, choice.has_others ? Session::Check::alive : Session::Check::none);
    if (channel && wanted && choice.way != wanted) wanted->is_borrowed = true;
    if (channel || Clock::now() >= deadline) co_return channel;
    error = std::move(channel.error());
  }
  co_return std::unexpected(std::move(error));
}

asio::ip::address VhostProxy::client_of(const http::RequestHead& head,
                                        const proxy::PeerInfo& peer) const {
  const auto& trusted = options_.trusted_proxies;
  if (!trusted.contains(peer.address)) return peer.address;
  const auto hops = proxy::forwarded_hops(head);
  const auto hop = net::client_hop(peer.address, hops, trusted);
  return hop ? net::plain_address(asio::ip::make_address(std::string(hops[*hop]))) : peer.address;
}

proxy::Decision VhostProxy::decide(const http::RequestHead& head, const proxy::PeerInfo& peer) {
  if (head.form == http::TargetForm::authority) {
    return page(501, "Not Implemented", "CONNECT is not supported.");
  }
  const auto* host = table_.find(head.host, head.path);
  if (host == nullptr || !host->way || host->way->sessions.empty()) return not_found();
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
    return too_many("Too many requests of this host at a time.");
  }
  const auto choice = choose(*way, {}, nullptr);
  // When no session accepts users, the request fails in the same way as after the loss of a
  // session.
  const auto& session = choice.way ? choice.way : way->sessions.front();
  session->turn = ++way->turns;
  // Avoids a pooled connection of a client that may be dead.
  if (choice.session && choice.session->probe_if_silent() && choice.has_others) {
    session->upstream->close_idle();
  }
  proxy::Forward forward;
  forward.route = session->route;
  if (head.form == http::TargetForm::origin) {
    forward.target = head.target;
  } else {
    forward.rewritten = std::string(head.path);
    if (head.has_query) forward.rewritten.append("?").append(head.query);
  }
  forward.trusted_peer = options_.trusted_proxies.contains(peer.address);
  forward.admission = count(way, session);
  return forward;
}

http::Response VhostProxy::failed(const http::RequestHead*, proxy::Failure failure, int status,
                                  std::string_view) const {
  using proxy::Failure;
  switch (failure) {
    case Failure::connect_failed:
      if (status == 503) return too_many("The tunnel of this host carries as much as it can.");
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
