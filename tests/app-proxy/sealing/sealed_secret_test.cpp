#include "app-proxy/sealing/sealed_secret.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app-proxy/git/manifest_edit.hpp"
#include "common/core/encoding.hpp"
#include "support/test_certs.hpp"
#include "unseal.hpp"

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;
using testing::Not;

const test::RsaCertificate& key() {
  static const auto made = test::make_rsa_certificate();
  return made;
}

TEST(SealedSecret, IsUnsealedByWhoHasTheKey) {
  for (const std::string& plain : {std::string(), std::string("s3cret"), std::string("\0\xff", 2),
                                   std::string(100'000, 'x')}) {
    const auto sealed = seal_value(key().certificate, Secret(plain), "runtime/jira");
    ASSERT_TRUE(sealed);
    // The controller reads the length of the RSA part from the first two bytes.
    EXPECT_EQ(sealed->substr(0, 2), std::string("\1\0", 2));
    EXPECT_EQ(sealed->size(), 2U + 256U + plain.size() + 16U);
    EXPECT_EQ(test::unseal_value(key().private_key, *sealed, "runtime/jira"), plain);
  }
}

TEST(SealedSecret, IsBoundToItsPlace) {
  const auto sealed = seal_value(key().certificate, Secret("s3cret"), "runtime/jira");
  ASSERT_TRUE(sealed);
  for (const char* label : {"", "runtime/other", "other/jira", "runtime"}) {
    EXPECT_EQ(test::unseal_value(key().private_key, *sealed, label), std::nullopt) << label;
  }
  const auto other = test::make_rsa_certificate();
  EXPECT_EQ(test::unseal_value(other.private_key, *sealed, "runtime/jira"), std::nullopt);
  for (const std::size_t at : {std::size_t{2}, std::size_t{100}, sealed->size() - 1}) {
    auto changed = *sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_EQ(test::unseal_value(key().private_key, changed, "runtime/jira"), std::nullopt) << at;
  }
  // Each has a key of its own: the nonce is always the same.
  EXPECT_NE(seal_value(key().certificate, Secret("s3cret"), "runtime/jira").value(), *sealed);
}

PlainSecret jira(SealScope scope) {
  return {.name = "jira",
          .secret_namespace = "runtime",
          .scope = scope,
          .labels = {{"a", "b"}},
          .annotations = {{"c", "d"}},
          .values = {{"api_token", Secret("s3cret")}, {"user", Secret("ann")}}};
}

std::string unsealed(const std::string& manifest, const char* name, std::string_view label) {
  const auto sealed = read_manifest(manifest, {"spec", "encryptedData", name});
  const auto bytes = base64_decode(sealed.value_or("?"));
  if (!bytes) return "no base64";
  return test::unseal_value(key().private_key, *bytes, label).value_or("not unsealed");
}

TEST(SealedSecret, HasTheFormOfKubeseal) {
  const auto manifest = sealed_secret_manifest(key().certificate, jira(SealScope::strict));
  ASSERT_TRUE(manifest);
  EXPECT_THAT(*manifest, HasSubstr("apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\n"
                                   "metadata:\n  annotations:\n    c: d\n  labels:\n    a: b\n"
                                   "  name: jira\n  namespace: runtime\nspec:\n"));
  EXPECT_THAT(*manifest, HasSubstr("  template:\n    metadata:\n      labels:\n        a: b\n"
                                   "      name: jira\n      namespace: runtime\n"
                                   "    type: Opaque\n"));
  EXPECT_THAT(*manifest, Not(HasSubstr("s3cret")));
  EXPECT_EQ(unsealed(*manifest, "api_token", "runtime/jira"), "s3cret");
  EXPECT_EQ(unsealed(*manifest, "user", "runtime/jira"), "ann");
}

TEST(SealedSecret, ForAllClustersHasNoNamespace) {
  const auto manifest = sealed_secret_manifest(key().certificate, jira(SealScope::cluster_wide));
  ASSERT_TRUE(manifest);
  EXPECT_THAT(*manifest, Not(HasSubstr("namespace:")));
  EXPECT_EQ(*read_manifest(*manifest,
                           {"metadata", "annotations", "sealedsecrets.bitnami.com/cluster-wide"}),
            "true");
  EXPECT_EQ(unsealed(*manifest, "api_token", ""), "s3cret");
}

TEST(SealedSecret, NeedsACertificate) {
  for (const std::string& wrong : {std::string(), std::string("none"), key().private_key}) {
    const auto refused = seal_value(wrong, Secret("s3cret"), "");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_data);
  }
}

}  // namespace
}  // namespace gitops::app_proxy
