#include "gitopsctl/surroundings.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "common/core/process.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/net/connector.hpp"

namespace gitops::ctl {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kMaxClockError = seconds(5);
constexpr std::size_t kMaxAnswer = std::size_t{1024} * 1024;

std::string_view trimmed_zone(std::string_view text) {
  return text.ends_with(" GMT") ? text.substr(0, text.size() - 4) : std::string_view();
}

// The rows about one peer.
struct PeerRows {
  Row clock;
  Row names;
  Row certificate;
  bool has_certificate = false;
};

Task<Row> ask_clock(const Executor& executor, net::Resolver& resolver, const Peer& peer,
                    Deadline deadline) {
  http::Client client(
      executor, resolver,
      {.tls = peer.tls, .proxy = peer.proxy, .user_agent = "gitopsctl/" + std::string(version())});
  const auto before = wall_now();
  const auto response = co_await client.send(
      peer.url, {.target = http::join_target(peer.url, peer.path)}, deadline, kMaxAnswer);
  const auto after = wall_now();
  if (!response) co_return not_known(peer.name, response.error(), {});
  const auto date = response->headers.find("Date");
  co_return clock_row(peer.name, parse_http_date(date.value_or("")), before, after);
}

Task<Row> ask_names(net::Resolver& resolver, const Peer& peer, Deadline deadline) {
  const auto found = co_await resolver.resolve(peer.url.host, peer.url.port, deadline);
  if (!found) {
    const bool is_missing = found.error().code == ErrorCode::not_found;
    const auto hint = "check the address, and the name servers of this machine";
    co_return is_missing ? failed(peer.name, found.error(), hint)
                         : not_known(peer.name, found.error(), hint);
  }
  std::string addresses;
  for (const auto& endpoint : *found) {
    addresses += (addresses.empty() ? "" : ", ") + endpoint.address().to_string();
  }
  co_return ok(peer.name, peer.url.host + " is " + addresses);
}

Task<Row> ask_certificate(net::Resolver& resolver, const Peer& peer, Deadline deadline) {
  const auto proxy = peer.proxy.proxy_for(peer.url);
  if (!proxy) co_return not_known(peer.name, proxy.error(), {});
  if (*proxy != nullptr) {
    co_return skipped(peer.name, "not read, since a proxy stands between");
  }
  auto channel = co_await net::connect_host(resolver, peer.url.host, peer.url.port, {}, deadline);
  if (!channel) co_return not_known(peer.name, channel.error(), {});
  const auto& name = peer.tls.server_name.empty() ? peer.url.host : peer.tls.server_name;
  co_return certificate_row(
      peer.name, co_await net::read_certificate(std::move(*channel), name, deadline), wall_now());
}

// Returns a duration for people: "12d", "3h".
std::string rough(milliseconds time) {
  using std::chrono::duration_cast;
  const auto hours = duration_cast<std::chrono::hours>(time).count();
  return hours >= 48 ? std::to_string(hours / 24) + " days" : std::to_string(hours) + " hours";
}

}  // namespace

Result<WallTime> parse_http_date(std::string_view text) {
  const std::string date(trimmed_zone(text));
  std::tm parts{};
  const char* const end = ::strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S", &parts);
  if (date.empty() || end == nullptr || *end != '\0') {
    return fail(ErrorCode::protocol, "the response has no Date");
  }
  return WallTime(seconds(::timegm(&parts)));
}

Row clock_row(const std::string& peer, const Result<WallTime>& date, WallTime before,
              WallTime after) {
  if (!date) return not_known(peer, date.error(), {});
  // A date is cut to the second.
  const auto ahead = *date - after;
  const auto behind = before - (*date + seconds(1));
  const auto error = std::max({ahead, behind, milliseconds(0)});
  if (error <= kMaxClockError) return ok(peer, "agrees with ours within 5 s");
  const auto by = std::to_string(std::chrono::round<seconds>(error).count()) + " s ";
  return denied(peer, by + (ahead > behind ? "ahead of ours" : "behind ours"),
                "tokens and certificates are valid by the clock; synchronise both with NTP");
}

Row certificate_row(const std::string& peer, const Result<net::PeerCertificate>& certificate,
                    WallTime now) {
  if (!certificate) return not_known(peer, certificate.error(), {});
  const std::string about = certificate->subject + ", issued by " + certificate->issuer;
  const std::string until = format_rfc3339(certificate->not_after);
  if (now >= certificate->not_after) {
    return denied(peer, "expired " + until + ": " + about, "renew the certificate of the server");
  }
  if (now < certificate->not_before) {
    return denied(peer,
                  "not valid before " + format_rfc3339(certificate->not_before) + ": " + about,
                  "compare the clocks");
  }
  return ok(peer,
            "valid until " + until + ", for " + rough(certificate->not_after - now) + ": " + about);
}

std::vector<Row> proxy_rows(const std::map<std::string, std::string>& environment) {
  std::vector<Row> rows;
  for (const char* name :
       {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"}) {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) continue;
    if (std::string_view(name) == "NO_PROXY" || std::string_view(name) == "no_proxy") {
      rows.push_back(ok(name, found->second));
      continue;
    }
    const auto url = http::parse_proxy_url(found->second);
    // The value of a mistake may hold a password.
    rows.push_back(
        url ? ok(name, url->to_string() + (url->userinfo.empty() ? "" : ", with a user name"))
            : failed(name, url.error(), "write it as http://HOST:PORT"));
  }
  if (rows.empty()) rows.push_back(ok("proxies", "none in the environment"));
  return rows;
}

Task<Report> look_around(const std::vector<Peer>& peers,
                         const std::map<std::string, std::string>& environment,
                         net::Resolver& resolver, milliseconds time, Deadline deadline) {
  const auto executor = co_await asio::this_coro::executor;
  const auto until = [&] { return std::min(deadline, deadline_after(time)); };
  std::vector<PeerRows> rows(peers.size());
  TaskGroup questions(executor);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    questions.spawn("clock", [&, &peer = peers[i], &into = rows[i]]() -> Task<> {
      into.clock = co_await ask_clock(executor, resolver, peer, until());
    });
    questions.spawn("names", [&, &peer = peers[i], &into = rows[i]]() -> Task<> {
      into.names = co_await ask_names(resolver, peer, until());
    });
    rows[i].has_certificate = peers[i].url.is_tls();
    if (!rows[i].has_certificate) continue;
    questions.spawn("certificate", [&, &peer = peers[i], &into = rows[i]]() -> Task<> {
      into.certificate = co_await ask_certificate(resolver, peer, until());
    });
  }
  co_await questions.join();
  Group clocks{.id = "clocks", .title = "Clocks", .about = {}, .rows = {}};
  Group names{.id = "dns", .title = "Names", .about = {}, .rows = {}};
  Group proxies{.id = "proxies", .title = "Proxies", .about = {}, .rows = proxy_rows(environment)};
  Group certificates{.id = "certificates", .title = "Certificates", .about = {}, .rows = {}};
  for (auto& peer : rows) {
    clocks.rows.push_back(std::move(peer.clock));
    names.rows.push_back(std::move(peer.names));
    if (peer.has_certificate) certificates.rows.push_back(std::move(peer.certificate));
  }
  co_return Report{std::move(clocks), std::move(names), std::move(proxies),
                   std::move(certificates)};
}

}  // namespace gitops::ctl
