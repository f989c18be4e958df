#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/time.hpp"
#include "common/http/proxy_settings.hpp"
#include "common/http/url.hpp"
#include "common/net/resolve.hpp"
#include "common/net/tls_certificate.hpp"
#include "common/net/tls_options.hpp"
#include "gitopsctl/report.hpp"

// Checks of what is around the peers of a runtime: clocks, names, proxies, certificates.
namespace gitops::ctl {

// A server that answers a GET of `path` without a credential, by whatever status.
struct Peer {
  std::string name;  // "Kubernetes"
  http::Url url;
  std::string path;
  net::TlsOptions tls = {};
  http::ProxySettings proxy = {};
};

// Asks all peers side by side, each for at most `time` and none beyond `deadline`. No request carries a credential.
Task<Report> look_around(const std::vector<Peer>& peers,
                         const std::map<std::string, std::string>& environment,
                         net::Resolver& resolver, std::chrono::milliseconds time,
                         Deadline deadline);

// Pure parts.

// Reads the Date of a response, in the form of RFC 9110 section 5.6.7.
Result<WallTime> parse_http_date(std::string_view text);
// Row for the clock of a peer, which has sent `date` between these two times of ours.
Row clock_row(const std::string& peer, const Result<WallTime>& date, WallTime before,
              WallTime after);
Row certificate_row(const std::string& peer, const Result<net::PeerCertificate>& certificate,
                    WallTime now);
// Rows for the six variables of proxies that are set, without user names and passwords.
std::vector<Row> proxy_rows(const std::map<std::string, std::string>& environment);

}  // namespace gitops::ctl
