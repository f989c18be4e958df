// Rows about clocks, certificates and proxies.
#include "gitopsctl/surroundings.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::ctl {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const WallTime kNow = parse_rfc3339("2026-03-04T09:15:27Z").value();

TEST(Surroundings, ClocksAreComparedWithinTheSecondsOfARequest) {
  const auto row = [](seconds ahead) {
    return clock_row("p", kNow + ahead, kNow, kNow + seconds(2));
  };
  EXPECT_EQ(row(seconds(0)).status, Status::ok);
  EXPECT_EQ(row(seconds(7)).status, Status::ok);
  EXPECT_THAT(row(seconds(62)).message, StartsWith("60 s ahead of ours"));
  EXPECT_THAT(row(seconds(-61)).message, StartsWith("60 s behind ours"));
  EXPECT_EQ(row(seconds(62)).status, Status::failed);
  EXPECT_EQ(clock_row("p", parse_http_date("soon"), kNow, kNow).status, Status::not_known);
}

TEST(Surroundings, DatesAreThoseOfHttp) {
  EXPECT_EQ(parse_http_date("Wed, 04 Mar 2026 09:15:27 GMT"), kNow);
  for (const char* text : {"", "Wed, 04 Mar 2026 09:15:27", "2026-03-04T09:15:27Z", " GMT",
                           "Wed, 04 Mar 2026 09:15:27 GMT GMT"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

TEST(Surroundings, CertificatesAreJudgedByTheirTimes) {
  const net::PeerCertificate certificate{.subject = "CN=a",
                                         .issuer = "CN=ca",
                                         .not_before = kNow - seconds(10),
                                         .not_after = kNow + std::chrono::hours(72)};
  const auto good = certificate_row("p", certificate, kNow);
  EXPECT_EQ(good.status, Status::ok);
  EXPECT_EQ(good.message, "valid until 2026-03-07T09:15:27Z, for 3 days: CN=a, issued by CN=ca");
  EXPECT_THAT(certificate_row("p", certificate, kNow + std::chrono::hours(72)).message,
              StartsWith("expired 2026-03-07"));
  EXPECT_THAT(certificate_row("p", certificate, kNow - seconds(11)).message,
              StartsWith("not valid before 2026-03-04"));
}

TEST(Surroundings, ProxiesAreShownWithoutTheirPasswords) {
  const auto rows = proxy_rows({{"HTTPS_PROXY", "http://ann:Canary@proxy:3128"},
                                {"http_proxy", "Canary wrong://"},
                                {"NO_PROXY", ".svc"}});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].message, "http://proxy:3128, with a user name");
  EXPECT_EQ(rows[1].status, Status::failed);
  EXPECT_THAT(rows[1].message + rows[1].hint, Not(HasSubstr("Canary")));
  EXPECT_EQ(rows[2].message, ".svc");
  EXPECT_EQ(proxy_rows({}).size(), 1U);
}

}  // namespace
}  // namespace gitops::ctl
