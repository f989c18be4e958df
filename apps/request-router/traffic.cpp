#include "request-router/traffic.hpp"

#include <algorithm>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

namespace gitops::router {

Traffic::Traffic(Metrics& metrics) : metrics_(metrics) {
  constexpr std::array kNames{"app-proxy", "workflows", "webhooks", "none"};
  constexpr std::array kCodes{"1xx", "2xx", "3xx", "4xx", "5xx"};
  for (std::size_t i = 0; i < kRoutes; ++i) {
    const std::string name = kNames.at(i);
    auto& route = routes_.at(i);
    for (std::size_t code = 0; code < kClasses; ++code) {
      route.requests.at(code) =
          &metrics.counter("gitops_router_requests_total", "Requests by route and kind of answer",
                           {{"route", name}, {"code", kCodes.at(code)}});
    }
    route.seconds =
        &metrics.histogram("gitops_router_request_seconds",
                           "From the end of a request's head to the end of its answer",
                           {0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60}, {{"route", name}});
    route.bytes_in = &metrics.counter("gitops_router_request_body_bytes_total",
                                      "Bytes of request bodies", {{"route", name}});
    route.bytes_out = &metrics.counter("gitops_router_answer_body_bytes_total", "Bytes of answers",
                                       {{"route", name}});
  }
}

void Traffic::count(const proxy::TransactionRecord& record) {
  const auto index = record.route == nullptr ? kRoutes - 1 : record.route->id;
  auto& route = routes_.at(std::min(index, kRoutes - 1));
  const auto code = static_cast<std::size_t>(std::clamp(record.status / 100, 1, 5)) - 1;
  route.requests.at(code)->Increment();
  route.seconds->Observe(std::chrono::duration<double>(record.took).count());
  if (record.bytes_in > 0) route.bytes_in->Increment(static_cast<double>(record.bytes_in));
  route.bytes_out->Increment(static_cast<double>(record.bytes_out));
  if (record.failure != proxy::Failure::none) {
    metrics_
        .counter("gitops_router_failures_total",
                 "Requests that were not, or not completely, answered",
                 {{"route", record.route == nullptr ? "none" : record.route->name},
                  {"reason", std::string(to_string(record.failure))}})
        .Increment();
  }
}

}  // namespace gitops::router
