#include "tunnel-server/traffic.hpp"

#include <algorithm>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

namespace gitops::tunnel_server {
namespace {

constexpr const char* kOther = "other";
constexpr const char* kNone = "none";  // label of requests for unknown hosts

}  // namespace

std::string Traffic::label_of(const std::string& domain) {
  const auto found = hosts_.find(domain);
  if (found == hosts_.end() && hosts_.size() >= kMaxHosts) return kOther;
  host(domain);
  return domain;
}

Traffic::Host& Traffic::host(const std::string& label) {
  const auto [place, is_new] = hosts_.try_emplace(label);
  auto& host = place->second;
  if (is_new) {
    const Metrics::Labels labels{{"host", label}};
    host.seconds = &metrics_.histogram("gitops_tunnel_server_request_seconds",
                                       "From the end of a request's head to the end of its answer",
                                       {0.005, 0.02, 0.1, 0.5, 2, 10, 60}, labels);
    host.bytes_in =
        &metrics_.counter("gitops_tunnel_server_request_body_bytes_total",
                          "Bytes of request bodies, and of upgraded connections", labels);
    host.bytes_out = &metrics_.counter("gitops_tunnel_server_answer_body_bytes_total",
                                       "Bytes of answers, and of upgraded connections", labels);
  }
  return host;
}

void Traffic::count(const proxy::TransactionRecord& record) {
  const std::string label = record.route == nullptr ? kNone : record.route->name;
  auto& of = host(label);
  const int kind = std::clamp(record.status / 100, 1, 5);
  auto& requests = of.requests[kind];
  if (requests == nullptr) {
    requests = &metrics_.counter("gitops_tunnel_server_requests_total",
                                 "Requests by host and kind of answer",
                                 {{"host", label}, {"code", std::to_string(kind) + "xx"}});
  }
  requests->Increment();
  of.seconds->Observe(std::chrono::duration<double>(record.took).count());
  of.bytes_in->Increment(static_cast<double>(record.bytes_in));
  of.bytes_out->Increment(static_cast<double>(record.bytes_out));
  if (record.failure != proxy::Failure::none) {
    metrics_
        .counter("gitops_tunnel_server_failures_total",
                 "Requests that were not, or not completely, answered",
                 {{"host", label}, {"reason", std::string(to_string(record.failure))}})
        .Increment();
  }
}

}  // namespace gitops::tunnel_server
