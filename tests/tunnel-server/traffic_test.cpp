#include "tunnel-server/traffic.hpp"

#include <gmock/gmock.h>

namespace gitops::tunnel_server {
namespace {

using testing::HasSubstr;

TEST(TunnelServerTraffic, HasABoundedNumberOfHosts) {
  Metrics metrics;
  Traffic traffic(metrics);
  for (std::size_t i = 0; i < Traffic::kMaxHosts; ++i) {
    const auto domain = "h" + std::to_string(i) + ".test";
    EXPECT_EQ(traffic.label_of(domain), domain);
  }
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_EQ(traffic.label_of("late" + std::to_string(i) + ".test"), "other");
  }
  EXPECT_EQ(traffic.label_of("h7.test"), "h7.test");
  proxy::Route route;
  route.name = "other";
  proxy::TransactionRecord record;
  record.status = 404;
  traffic.count(record);
  record.route = &route;
  record.status = 200;
  record.bytes_out = 5;
  traffic.count(record);
  const auto text = metrics.expose();
  EXPECT_THAT(text, HasSubstr(R"(gitops_tunnel_server_requests_total{code="2xx",host="other"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(gitops_tunnel_server_requests_total{code="4xx",host="none"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(gitops_tunnel_server_answer_body_bytes_total{host="other"} 5)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("late1.test")));
}

}  // namespace
}  // namespace gitops::tunnel_server
