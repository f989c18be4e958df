// What app-proxy seals is unsealed by kubeseal, with the code of the controller of Sealed Secrets.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app-proxy/sealing/sealed_secret.hpp"
#include "app-proxy/sealing/sealing_keys.hpp"
#include "common/core/encoding.hpp"
#include "peers/peer_programs.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {
namespace {

using app_proxy::PlainSecret;
using app_proxy::SealScope;
using Json = nlohmann::json;

struct Kubeseal {
  static std::optional<std::string> missing() {
    if (std::filesystem::exists(peer_program("kubeseal"))) return std::nullopt;
    return "sealed-secrets is not built (./dev peers sealed-secrets)";
  }
  // The Secret of a SealedSecret, as JSON.
  static CommandResult unseal(const std::string& manifest, const std::string& key) {
    const TempDir folder;
    write_file(folder / "sealed.yaml", manifest);
    write_file(folder / "key", key);
    return run_command(
        {peer_program("kubeseal").string(), "--recovery-unseal", "--recovery-private-key",
         (folder / "key").string(), "--secret-file", (folder / "sealed.yaml").string()},
        {{"HOME", folder.path().string()}});
  }
};

PlainSecret jira(SealScope scope) {
  return {.name = "codefresh-integration-jira",
          .secret_namespace = "runtime",
          .scope = scope,
          .labels = {{"io.codefresh.integration-type", "issue.jira"}},
          .annotations = {{"codefresh.io/integration-digest", "0123"}},
          .values = {{"api_token", Secret("s3cret")},
                     {"bytes", Secret(std::string("\0\xff", 2))},
                     {"empty", Secret("")}}};
}

TEST(SealedSecrets, KubesealUnsealsOurs) {
  GITOPS_REQUIRE_PEER(Kubeseal);
  const auto key = make_rsa_certificate(4096);
  for (const auto scope : {SealScope::strict, SealScope::cluster_wide}) {
    const auto manifest = app_proxy::sealed_secret_manifest(key.certificate, jira(scope));
    ASSERT_TRUE(manifest);
    const auto result = Kubeseal::unseal(*manifest, key.private_key);
    ASSERT_EQ(result.exit_code, 0) << result.err << *manifest;
    const auto secret = Json::parse(result.out, nullptr, false);
    ASSERT_TRUE(secret.is_object()) << result.out;
    // It writes an empty value as null.
    EXPECT_EQ(secret["data"], (Json{{"api_token", base64_encode("s3cret")},
                                    {"bytes", base64_encode(std::string_view("\0\xff", 2))},
                                    {"empty", nullptr}}));
    EXPECT_EQ(secret["type"], "Opaque");
    EXPECT_EQ(secret["metadata"]["labels"]["io.codefresh.integration-type"], "issue.jira");
    EXPECT_EQ(secret["metadata"].value("namespace", ""),
              scope == SealScope::strict ? "runtime" : "");
    // A strict one is of no use under another name.
    auto moved = *manifest;
    for (auto at = moved.find("codefresh-integration-jira"); at != std::string::npos;
         at = moved.find("codefresh-integration-jira", at + 1)) {
      moved.replace(at, std::string_view("codefresh-integration-jira").size(), "other");
    }
    EXPECT_EQ(Kubeseal::unseal(moved, key.private_key).exit_code == 0,
              scope == SealScope::cluster_wide);
    EXPECT_NE(Kubeseal::unseal(*manifest, make_rsa_certificate().private_key).exit_code, 0);
  }
}

// The Secret that a runtime makes of the account's key.
TEST(SealedSecrets, ReadsTheKeyThatWeStore) {
  GITOPS_REQUIRE_PEER(Kubeseal);
  const auto key = make_rsa_certificate();
  const auto manifest = app_proxy::sealed_secret_manifest(key.certificate, jira(SealScope::strict));
  ASSERT_TRUE(manifest);
  const auto object = app_proxy::sealing_key_object(
      "runtime", {.id = "key-1", .certificate = key.certificate}, Secret(key.private_key));
  const auto result = Kubeseal::unseal(*manifest, object);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace gitops::test
