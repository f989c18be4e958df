#pragma once

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/http/hostile_heads.hpp"
#include "daemons/router_harness.hpp"
#include "e2e/router_cases.hpp"
#include "support/wait.hpp"

// Another proxy in place of the router, and the outcome of a request on either.
namespace gitops::test {

inline std::string program(std::string_view name) {
  const auto found = find_program(name);
  if (!found) throw std::runtime_error(std::string(name) + " is not installed");
  return found->string();
}

// Another proxy in front of three upstreams of its own.
class OtherProxy {
 public:
  explicit OtherProxy(const std::string& name, const RecordingUpstream::Answer& answer = {})
      : app_proxy("app-proxy", answer), port_(free_port()) {
    if (name == "nginx")
      start_nginx();
    else
      start_haproxy();
    require_until(
        [this] {
          try {
            RawSocket probe(static_cast<std::uint16_t>(port_));
            return true;
          } catch (const std::runtime_error&) {
            if (!process_->running()) throw std::runtime_error(read_file(folder_ / "log"));
            return false;
          }
        },
        std::chrono::seconds(10), name + " to listen");
  }

  [[nodiscard]] std::uint16_t port() const { return static_cast<std::uint16_t>(port_); }
  RecordingUpstream app_proxy;
  RecordingUpstream workflows{"workflows"};
  RecordingUpstream events{"events"};
  NameServer names{{{"github-eventsource-svc.argo.svc.cluster.local", "127.0.0.1"},
                    {"github-eventsource-svc.my-runtime.svc.cluster.local", "127.0.0.1"},
                    {"victim-eventsource-svc.kube-system.svc.cluster.local", "127.0.0.1"}}};

 private:
  void start_nginx() {
    const auto path = folder_.path().string();
    const auto text = [](std::uint16_t port) { return std::to_string(port); };
    std::string config =
        "daemon off; master_process off; worker_processes 1; pid " + path + "/pid;\n" +
        "error_log " + path + "/error.log error;\nevents { worker_connections 512; }\nhttp {\n" +
        "access_log off; client_body_temp_path " + path + "/a; proxy_temp_path " + path + "/b;\n" +
        "fastcgi_temp_path " + path + "/c; uwsgi_temp_path " + path + "/d; scgi_temp_path " + path +
        "/e;\nserver {\nlisten 127.0.0.1:" + std::to_string(port_) + ";\n" +
        "resolver 127.0.0.1:" + text(names.port()) + " valid=10s; resolver_timeout 2s;\n" +
        "location /healthz { return 200 ok; } location /readyz { return 200 ok; }\n" +
        "location /app-proxy { proxy_pass http://127.0.0.1:" + text(app_proxy.port()) +
        "; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; " +
        "proxy_set_header Connection upgrade; chunked_transfer_encoding off; }\n" +
        "location /workflows/ { proxy_pass http://127.0.0.1:" + text(workflows.port()) +
        "/; proxy_http_version 1.1; proxy_set_header Connection ''; " +
        "chunked_transfer_encoding off; }\n" +
        "location ~ /webhooks/(?<ns>[^/]+)/(?<es>[^/]+) { proxy_http_version 1.1; " +
        "proxy_pass http://$es-eventsource-svc.$ns.svc.cluster.local:" + text(events.port()) +
        "; }\nlocation / { return 404; }\n}\n}\n";
    write_file(folder_ / "nginx.conf", config);
    start({program("nginx"), "-p", path, "-c", path + "/nginx.conf"});
  }

  void start_haproxy() {
    const auto path = folder_.path().string();
    write_file(
        folder_ / "haproxy.cfg",
        "defaults\n mode http\n timeout connect 2s\n timeout client 10s\n timeout server "
        "10s\nfrontend in\n bind 127.0.0.1:" +
            std::to_string(port_) +
            "\n acl app path /app-proxy\n acl app path_beg /app-proxy/\n use_backend app if app\n"
            " http-request return status 404 unless app\nbackend app\n server a 127.0.0.1:" +
            std::to_string(app_proxy.port()) + "\n");
    start({program("haproxy"), "-db", "-f", path + "/haproxy.cfg"});
  }

  void start(std::vector<std::string> argv) {
    process_ = std::make_unique<Process>(ProcessOptions{
        .argv = std::move(argv), .env = {}, .working_dir = {}, .log_file = folder_ / "log"});
  }

  TempDir folder_;
  int port_;
  std::unique_ptr<Process> process_;
};

// The outcome of an input: the statuses of all answers, and each complete request that an upstream
// received, with the fields that every proxy passes on.
struct Outcome {
  int status = 0;
  std::vector<int> further = {};  // of the answers behind the first
  std::vector<std::string> requests = {};
  bool operator==(const Outcome&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  out << outcome.status;
  for (const int status : outcome.further) out << " " << status;
  for (const auto& request : outcome.requests) out << " | " << request;
  return out;
}

// The fields of a request without those that each proxy writes for itself.
inline std::string fields_of(const RecordedRequest& request) {
  std::set<std::string> fields;
  for (auto at = request.head.find("\r\n"); at != std::string::npos;) {
    const auto next = request.head.find("\r\n", at + 2);
    auto line = request.head.substr(at + 2, next - at - 2);
    const auto colon = line.find(':');
    auto name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    static const std::set<std::string> kOwn{
        "host",       "connection", "content-length", "upgrade", "transfer-encoding",
        "keep-alive", "te",         "trailer",        "expect",  "x-request-id"};
    auto value = colon == std::string::npos ? "" : line.substr(colon + 1);
    value.erase(0, value.find_first_not_of(" \t"));
    if (!name.empty() && !kOwn.contains(name) && !name.starts_with("x-forwarded-")) {
      fields.insert(name + "=" + value);
    }
    at = next;
  }
  std::string all;
  for (const auto& field : fields) all += " " + field;
  return all;
}

inline RecordingUpstream& bed_part(RouterHarness& bed, int which) {
  return which == 0 ? bed.app_proxy() : which == 1 ? bed.workflows() : bed.events();
}

inline RecordingUpstream& bed_part(OtherProxy& bed, int which) {
  return which == 0 ? bed.app_proxy : which == 1 ? bed.workflows : bed.events;
}

// A second request on the same connection, which closes it.
inline constexpr std::string_view kLast =
    "GET /app-proxy/last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

template <class Harness>
Outcome outcome_of(Harness& bed, std::uint16_t port, const std::string& bytes,
                   bool pipelined = false) {
  for (auto* upstream : {&bed_part(bed, 0), &bed_part(bed, 1), &bed_part(bed, 2)})
    upstream->forget();
  Outcome outcome;
  RawSocket socket(port, std::chrono::seconds(2));
  socket.send(bytes);
  if (pipelined) socket.send(kLast);
  outcome.status = socket.read_response(bytes.starts_with("HEAD ")).status;
  while (pipelined) {
    const int status = socket.read_response().status;
    if (status == 0) break;
    outcome.further.push_back(status);
  }
  for (auto* upstream : {&bed_part(bed, 0), &bed_part(bed, 1), &bed_part(bed, 2)}) {
    for (const auto& request : upstream->requests()) {
      if (!request.complete || request.target() == "/app-proxy/last") continue;
      outcome.requests.push_back(upstream->name() + " " + request.method() + " " +
                                 request.target() + " " + request.body + fields_of(request));
    }
  }
  return outcome;
}

}  // namespace gitops::test
