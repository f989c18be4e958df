#pragma once

#include <array>
#include <string>

#include "common/core/metrics.hpp"
#include "common/proxy/server.hpp"

namespace gitops::router {

// Counts requests by route.
class Traffic {
 public:
  explicit Traffic(Metrics& metrics);
  void count(const proxy::TransactionRecord& record);

 private:
  static constexpr std::size_t kRoutes = 4;   // as RouteId, then requests without a route
  static constexpr std::size_t kClasses = 5;  // 1xx to 5xx

  struct Route {
    std::array<Counter*, kClasses> requests{};
    Histogram* seconds = nullptr;
    Counter* bytes_in = nullptr;
    Counter* bytes_out = nullptr;
  };
  Metrics& metrics_;
  std::array<Route, kRoutes> routes_;
};

}  // namespace gitops::router
