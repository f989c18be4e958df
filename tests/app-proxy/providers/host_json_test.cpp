#include "app-proxy/providers/host_json.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

// The member "v" of an object, read by `read`.
template <class Read>
std::string read_as(const std::string& value, Read read) {
  const auto json = HostJson::parse("{\"v\":" + value + "}", HostJson::Expect::object);
  return json ? read((*json)["v"]) : "no JSON";
}

TEST(HostJson, IdsAreTextsOrNumbers) {
  EXPECT_EQ(read_as("42", host_id), "42");
  EXPECT_EQ(read_as("\"{a-b}\"", host_id), "{a-b}");
  EXPECT_EQ(read_as("null", host_id), "");
  EXPECT_EQ(read_as("[1]", host_id), "");
}

// [AC-38]
TEST(HostJson, AC38_UrlsAreOnlyThoseThatAPageMayLinkTo) {
  EXPECT_EQ(read_as("\"https://h.test/a?b=c\"", host_url), "https://h.test/a?b=c");
  EXPECT_EQ(read_as("\"https://user:pass@h.test/a.git\"", host_url), "https://h.test/a.git");
  for (const auto* bad : {"\"javascript:alert(1)\"", "\"data:text/html,x\"", "\"//h.test\"",
                          "\"https://h.test/\\u003cscript\\u003e \"", "\"ftp://h.test\"", "7"}) {
    EXPECT_EQ(read_as(bad, host_url), "") << bad;
  }
  EXPECT_EQ(read_as("\"git@h.test:acme/shop.git\"", host_ssh_url), "git@h.test:acme/shop.git");
  EXPECT_EQ(read_as("\"ssh://git@h.test:22/acme/shop.git\"", host_ssh_url),
            "ssh://git@h.test:22/acme/shop.git");
  EXPECT_EQ(read_as("\"-oProxyCommand=x@h.test:y\"", host_ssh_url), "");
  EXPECT_EQ(read_as("\"https://h.test/x\"", host_ssh_url), "");
}

TEST(HostJson, TimesAreRfc3339) {
  EXPECT_EQ(read_as("\"2026-03-04T09:15:27Z\"", host_time), "2026-03-04T09:15:27Z");
  EXPECT_EQ(read_as("1700000000000", host_time), "2023-11-14T22:13:20Z");
  EXPECT_EQ(read_as("\"yesterday\"", host_time), "");
  EXPECT_EQ(read_as("-1", host_time), "");
}

TEST(HostJson, MailAddressesCanStandInACommit) {
  EXPECT_EQ(read_as("\"dana@example.test\"", host_mail), "dana@example.test");
  for (const auto* bad : {"null", "\"\"", "\"dana\"", "\"a@b>\"", "\"a b@c\"", "\"a\\n@c\""}) {
    EXPECT_EQ(read_as(bad, host_mail), "") << bad;
  }
  EXPECT_EQ(no_reply_mail("7", "dana", "github.com"), "7+dana@users.noreply.github.com");
  EXPECT_EQ(no_reply_mail("", "<>", "h.test"), "user@users.noreply.h.test");
}

TEST(HostJson, DeepNestingAndOtherTypesAreRefused) {
  EXPECT_FALSE(HostJson::parse(std::string(100, '['), HostJson::Expect::array));
  EXPECT_FALSE(
      HostJson::parse(std::string(100, '[') + std::string(100, ']'), HostJson::Expect::array));
  EXPECT_FALSE(HostJson::parse("[]", HostJson::Expect::object));
  EXPECT_FALSE(HostJson::parse("", HostJson::Expect::object));
  EXPECT_TRUE(HostJson::parse("[]", HostJson::Expect::array));
}

TEST(HostJson, BlobIdsAreThoseOfGit) {
  // git hash-object: of an empty file, and of "hello\n".
  EXPECT_EQ(blob_id(""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(blob_id("hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(HostJson, PathsAreEncodedBySegments) {
  EXPECT_EQ(encode_path("a b/c#d/e?f"), "a%20b/c%23d/e%3Ff");
  EXPECT_EQ(encode_path("a"), "a");
}

}  // namespace
}  // namespace gitops::app_proxy
