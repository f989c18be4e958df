#include "tunnel-server/client_registry.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>

#include "common/net/address_list.hpp"

namespace gitops::tunnel_server {
namespace {

const Log& log() {
  static const Log kLog("clients");
  return kLog;
}

// Returns the client's instance id within its runtime; empty for frp's clients, of which each
// session is a client.
std::string instance_of(const tunnel::Login& login) {
  const auto found = login.metas.find(tunnel::kInstanceMeta);
  return found == login.metas.end() ? std::string() : std::string(found->second.reveal());
}

}  // namespace

std::string_view to_string(ClientState state) {
  switch (state) {
    case ClientState::logging_in:
      return "logging in";
    case ClientState::without_host:
      return "without a host";
    case ClientState::standing_by:
      return "standing by";
    case ClientState::serving:
      return "serving";
    case ClientState::leaving:
      return "leaving";
  }
  return "unknown";
}

ClientState state_of(const Session& session, const std::vector<HostTable::Domain>& domains) {
  if (!session.is_logged_in()) return ClientState::logging_in;
  if (!session.takes_users()) return ClientState::leaving;
  if (domains.empty()) return ClientState::without_host;
  return std::ranges::any_of(domains, &HostTable::Domain::is_serving) ? ClientState::serving
                                                                      : ClientState::standing_by;
}

ClientRegistry::ClientRegistry(const Executor& executor, Authorizer& authorizer, HostTable& table,
                               Metrics& metrics, Options options)
    : executor_(executor),
      authorizer_(authorizer),
      table_(table),
      options_(std::move(options)),
      handshake_(options_.handshake),
      listener_(executor),
      connections_(metrics.counter("gitops_tunnel_server_client_connections_total",
                                   "Connections that clients of the tunnel made")),
      refused_connections_(
          metrics.counter("gitops_tunnel_server_refused_client_connections_total",
                          "Those that ended before a login: limits, errors, refused logins")),
      tasks_(executor) {}

// -- connections --

Result<void> ClientRegistry::listen() {
  if (auto checked = handshake_.check(); !checked) return checked;
  const auto port = listener_.listen(options_.listen);
  if (!port) return std::unexpected(port.error());
  port_ = *port;
  tasks_.spawn("accept", [this] {
    return listener_.run(
        [this](std::unique_ptr<net::Channel> channel, const asio::ip::address& address) {
          adopt(std::move(channel), address);
        });
  });
  return {};
}

void ClientRegistry::adopt(std::unique_ptr<net::Channel> channel,
                           const asio::ip::address& address) {
  connections_.Increment();
  const auto plain = net::plain_address(address);
  const auto client = plain.to_string();
  auto peer = peers_.of(plain);
  const bool is_full = !make_room_to_log_in(*peer) || !make_room();
  if (is_full) {
    refused_connections_.Increment();
    if (const auto verdict = repeated_.check("limit", Clock::now()); verdict.pass) {
      log().warning("too many clients; new ones are closed",
                    {{"clients", sessions_.size()},
                     {"not_logged_in", unauthenticated_.size()},
                     {"suppressed", verdict.suppressed}});
    }
    return;
  }
  tunnel::hold_little(*channel);
  const auto id = ++last_id_;
  ++peer->connections;
  unauthenticated_[id] = {.peer = std::move(peer), .channel = channel.get(), .since = Clock::now()};
  auto shared = std::make_shared<std::unique_ptr<net::Channel>>(std::move(channel));
  tasks_.spawn("client", [this, id, shared, client] { return serve(id, shared, client); });
}

bool ClientRegistry::make_room_to_log_in(const proxy::PeerUse& peer) {
  const bool is_peer_full = peer.connections >= options_.max_unauthenticated_per_address;
  if (!is_peer_full && unauthenticated_.size() < options_.max_unauthenticated) return true;
  const auto is_before = [](const Unauthenticated& a, const Unauthenticated& b) {
    const auto of_a = a.peer->connections.load();
    const auto of_b = b.peer->connections.load();
    return of_a != of_b ? of_a > of_b : a.since < b.since;
  };
  // The oldest of the peer with the most connections.
  const auto slow_since = Clock::now() - options_.login_timeout / 4;
  auto slowest = unauthenticated_.end();
  for (auto it = unauthenticated_.begin(); it != unauthenticated_.end(); ++it) {
    const auto& item = it->second;
    if (item.has_sent_login || item.since > slow_since) continue;
    if (is_peer_full && item.peer.get() != &peer) continue;
    if (slowest == unauthenticated_.end() || is_before(item, slowest->second)) slowest = it;
  }
  if (slowest == unauthenticated_.end()) return false;
  const auto id = slowest->first;
  auto* const channel = slowest->second.channel;
  forget_unauthenticated(id);
  if (const auto slow = session(id)) {
    slow->end({.code = ErrorCode::too_many_requests,
               .message = "too many connections, and this one has sent no login"});
  } else {
    channel->close();
  }
  return true;
}

bool ClientRegistry::make_room() {
  if (sessions_.size() < options_.max_clients) return true;
  const auto is_old = [&, now = Clock::now()](const auto& item) {
    return now - item.second >= options_.login_timeout;
  };
  const auto oldest = std::ranges::find_if(without_host_, is_old);
  if (oldest == without_host_.end()) return false;
  const auto session = this->session(oldest->first);
  without_host_.erase(oldest);
  if (!session) return false;
  session->end({.code = ErrorCode::too_many_requests,
                .message = "too many clients, and this one has offered no host"});
  return true;
}

void ClientRegistry::forget_unauthenticated(SessionId id) {
  const auto found = unauthenticated_.find(id);
  if (found == unauthenticated_.end()) return;
  --found->second.peer->connections;
  unauthenticated_.erase(found);
}

Task<> ClientRegistry::serve(SessionId id, std::shared_ptr<std::unique_ptr<net::Channel>> channel,
                             std::string client) {
  // Removes the client on every exit.
  struct Ended {
    ClientRegistry& clients;
    SessionId id;
    ~Ended() {
      clients.table_.remove(id);
      clients.sessions_.erase(id);
      clients.without_host_.erase(id);
      std::erase_if(clients.without_mux_, [this](const auto& item) { return item.second == id; });
      std::erase_if(clients.admitted_, [this](const auto& item) { return item.first.first == id; });
      clients.forget_unauthenticated(id);
    }
  } ended{*this, id};
  const auto deadline = deadline_after(options_.login_timeout);
  Result<std::shared_ptr<Session>> begun;
  if (auto entered = co_await handshake_.perform(std::move(*channel), deadline); !entered) {
    begun = std::unexpected(entered.error());
  } else if (entered->has_mux) {
    begun = std::make_shared<Session>(executor_, id, std::move(entered->channel), client,
                                      session_options(deadline), owner());
  } else {
    begun = co_await begin_without_mux(id, std::move(entered->channel), client, deadline);
  }
  if (!begun) {
    refused_connections_.Increment();
    if (const auto verdict = repeated_.check(begun.error().message, Clock::now()); verdict.pass) {
      log().info("a connection was refused", {{"client", client},
                                              {"error", begun.error().message},
                                              {"suppressed", verdict.suppressed}});
    }
    co_return;
  }
  const auto session = std::move(*begun);
  if (!session) co_return;
  sessions_[id] = session;
  const auto error = co_await session->run();
  if (!session->is_logged_in()) {
    refused_connections_.Increment();
    // Limits log lines, whose number unauthenticated clients control.
    const auto verdict = repeated_.check(error.message, Clock::now());
    if (!verdict.pass) co_return;
  }
  log().info("session ended", {{"client", client},
                               {"run_id", session->printable_run_id()},
                               {"logged_in", session->is_logged_in()},
                               {"reason", error.message}});
}

Session::Options ClientRegistry::session_options(Deadline login_deadline) {
  auto options = options_.session;
  options.login_deadline = login_deadline;
  options.control.token = authorizer_.token();
  options.control.asks_for_pings =
      options.auth_scopes.heart_beats || authorizer_.asks_about("Ping");
  if (authorizer_.confirms_owners()) {
    options.control.links = options_.links;
    // Half of a host's entries, so that the next client of a rolling update can have as many.
    options.control.max_links = static_cast<std::int64_t>(HostTable::kMaxEntries) / 2;
  }
  return options;
}

Task<Result<std::shared_ptr<Session>>> ClientRegistry::begin_without_mux(
    SessionId id, std::unique_ptr<net::Channel> channel, std::string client, Deadline deadline) {
  channel->set_deadline(deadline);
  auto opening = co_await read_opening(*channel);
  if (!opening) co_return std::unexpected(opening.error());
  if (std::holds_alternative<tunnel::Login>(opening->message)) {
    co_return std::make_shared<Session>(executor_, id, std::move(channel), std::move(*opening),
                                        client, session_options(deadline), owner());
  }
  const auto* work = std::get_if<tunnel::NewWorkConn>(&opening->message);
  if (work == nullptr) {
    co_return fail(ErrorCode::protocol, "a connection that begins with something else");
  }
  const auto found = without_mux_.find(work->run_id);
  const auto owner = found == without_mux_.end() ? nullptr : this->session(found->second);
  if (!owner) {
    co_return fail(ErrorCode::forbidden, "a work connection of a session that does not exist");
  }
  owner->attach(std::move(channel), std::move(*opening));
  co_return nullptr;
}

void ClientRegistry::drain() {
  listener_.close();
}

void ClientRegistry::drain_sessions() {
  for (const auto& session : sessions()) session->retire("the server stops");
}

Task<> ClientRegistry::stop() {
  drain();
  for (const auto& session : sessions()) {
    session->end({.code = ErrorCode::unavailable, .message = "the server stops"});
  }
  tasks_.cancel();
  co_await tasks_.join();
}

std::shared_ptr<Session> ClientRegistry::session(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Session>> ClientRegistry::sessions() const {
  std::vector<std::shared_ptr<Session>> all;
  for (const auto& [id, session] : sessions_) all.push_back(session);
  return all;
}

// -- requests of clients --

Authorizer::Subject ClientRegistry::subject_of(const Session& session) const {
  return {.address = session.client(),
          .user = session.login().user,
          .metas = session.login().metas,
          .run_id = std::string(session.run_id())};
}

Task<Result<tunnel::Login>> ClientRegistry::admit_login(Session& session, tunnel::Login login) {
  if (const auto known = unauthenticated_.find(session.id()); known != unauthenticated_.end()) {
    known->second.has_sent_login = true;
  }
  // The key of a work connection is a public constant when there is no token.
  if (!session.has_mux() && session.token().empty() && !authorizer_.asks_about("NewWorkConn")) {
    co_return fail(
        ErrorCode::forbidden,
        "tcpMux = false needs a token of the server, by which work connections are known");
  }
  auto admitted = co_await authorizer_.admit_login(subject_of(session), std::move(login));
  if (admitted) forget_unauthenticated(session.id());
  co_return admitted;
}

void ClientRegistry::on_logged_in(Session& session) {
  if (!session.has_mux()) without_mux_.emplace(session.run_id(), session.id());
  without_host_.emplace(session.id(), Clock::now());
}

Task<Result<tunnel::NewProxy>> ClientRegistry::admit_proxy(Session& session,
                                                           tunnel::NewProxy proxy) {
  auto asked = proxy;
  auto admitted = co_await authorizer_.admit_proxy(subject_of(session), std::move(proxy));
  if (admitted) {
    auto name = asked.proxy_name;
    admitted_.insert_or_assign({session.id(), std::move(name)}, std::move(asked));
  }
  co_return admitted;
}

Task<Result<void>> ClientRegistry::admit_ping(Session& session, const tunnel::Ping& ping) {
  if (!authorizer_.asks_about("Ping")) co_return Result<void>{};
  co_return co_await authorizer_.admit_ping(subject_of(session), ping);
}

Task<Result<void>> ClientRegistry::admit_work(Session& session, const tunnel::NewWorkConn& work) {
  if (!authorizer_.asks_about("NewWorkConn")) co_return Result<void>{};
  co_return co_await authorizer_.admit_work(subject_of(session), work);
}

Result<std::string> ClientRegistry::offer(Session& session, const std::string& name,
                                          const tunnel::NewProxy& proxy) {
  auto offer = read_offer(proxy, options_.subdomain_host);
  if (!offer) return std::unexpected(offer.error());
  offer->proxy = name;  // the client's name for it
  for (const auto& domain : offer->domains) {
    if (auto reason = ban_of(domain); !reason.empty()) {
      return fail(ErrorCode::forbidden, "this host is banned: " + reason);
    }
  }
  std::string addresses;
  for (const auto& domain : offer->domains) {
    if (!addresses.empty()) addresses += ",";
    addresses += domain;
    if (options_.vhost_port != 80 && options_.vhost_port != 443) {
      addresses += ":" + std::to_string(options_.vhost_port);
    }
  }
  const auto superfluous = table_.add({.session = session.id(),
                                       .run_id = std::string(session.run_id()),
                                       .replaces = session.login().run_id,
                                       .client = instance_of(session.login()),
                                       .is_confirmed = authorizer_.confirms_owners()},
                                      std::make_shared<const Offer>(std::move(*offer)));
  if (!superfluous) return std::unexpected(superfluous.error());
  without_host_.erase(session.id());
  for (const auto id : *superfluous) {
    table_.remove(id);
    if (const auto old = this->session(id)) old->retire("replaced by a newer session");
  }
  return addresses;
}

void ClientRegistry::withdraw(Session& session, const std::string& name) {
  table_.remove(session.id(), name);
  admitted_.erase({session.id(), name});
  if (!authorizer_.asks_about("CloseProxy")) return;
  tasks_.spawn("closed", [this, subject = subject_of(session), name] {
    return authorizer_.report_closed(subject, name);
  });
}

void ClientRegistry::check_again() {
  authorizer_.refresh();
  if (std::exchange(checked_list_, authorizer_.lists()) == authorizer_.lists()) return;
  for (const auto& [key, proxy] : admitted_) {
    const auto session = this->session(key.first);
    if (!session || authorizer_.still_admits(proxy)) continue;
    log().warning("a client lost its right to a host",
                  {{"client", session->client()}, {"proxy", key.second}});
    table_.remove(key.first);
    session->end({.code = ErrorCode::forbidden, .message = "no longer in the list of runtimes"});
  }
}

// -- bans --

void ClientRegistry::ban(const std::string& domain, Ban ban) {
  bans_[domain] = std::move(ban);
  for (const auto& session : sessions()) {
    for (const auto& offered : table_.domains_of(session->id())) {
      if (offered.name != domain) continue;
      session->end({.code = ErrorCode::forbidden, .message = "banned"});
      break;
    }
  }
}

bool ClientRegistry::unban(const std::string& domain) {
  return bans_.erase(domain) > 0;
}

std::map<std::string, ClientRegistry::Ban> ClientRegistry::bans() {
  std::erase_if(bans_, [now = wall_now()](const auto& item) { return item.second.until <= now; });
  return bans_;
}

std::string ClientRegistry::ban_of(const std::string& domain) {
  const auto found = bans_.find(domain);
  if (found == bans_.end()) return {};
  if (found->second.until <= wall_now()) {
    bans_.erase(found);
    return {};
  }
  return found->second.reason.empty() ? "by the operator" : found->second.reason;
}

}  // namespace gitops::tunnel_server
