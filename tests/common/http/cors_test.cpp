#include "common/http/cors.hpp"

#include <gtest/gtest.h>

namespace gitops::http {
namespace {

TEST(Cors, NamesOneListedOrigin) {
  const Cors cors({"https://a.example/", "", "https://b.example"});
  const auto allowed = [&cors](std::optional<std::string_view> origin) {
    Response response;
    cors.allow(response, origin);
    EXPECT_EQ(response.headers.find("Vary"), "Origin");
    return std::string(response.headers.find("Access-Control-Allow-Origin").value_or("none"));
  };
  EXPECT_EQ(allowed("https://a.example"), "https://a.example");
  EXPECT_EQ(allowed("https://b.example"), "https://b.example");
  EXPECT_EQ(allowed("https://c.example"), "none");
  EXPECT_EQ(allowed("https://a.example.evil"), "none");
  EXPECT_EQ(allowed("null"), "none");
  EXPECT_EQ(allowed(std::nullopt), "none");
  EXPECT_EQ(cors.preflight("https://a.example").status, 204);
}

TEST(Cors, NamesOriginsThatMaySendCredentials) {
  const Cors cors({"*", "https://a.example/ "});
  EXPECT_TRUE(cors.names("https://A.example"));
  EXPECT_FALSE(cors.names("https://a.example:444"));
  EXPECT_FALSE(cors.names("null"));
  EXPECT_FALSE(cors.names(""));
}

TEST(Cors, AnyOriginGetsNoCredentials) {
  const Cors cors({"*", "https://a.example"});
  Response listed;
  cors.allow(listed, "https://a.example");
  EXPECT_EQ(listed.headers.find("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(listed.headers.find("Access-Control-Allow-Credentials"), "true");
  Response other;
  cors.allow(other, "https://evil.example");
  EXPECT_EQ(other.headers.find("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(other.headers.find("Access-Control-Allow-Credentials"), std::nullopt);
}

}  // namespace
}  // namespace gitops::http
