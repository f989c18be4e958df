#include "app-proxy/sealing/tool_integration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../entities/branch_files.hpp"
#include "app-proxy/git/manifest_edit.hpp"
#include "common/core/encoding.hpp"
#include "support/test_certs.hpp"
#include "unseal.hpp"

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Operation = IntegrationChange::Operation;

const test::RsaCertificate& key() {
  static const auto made = test::make_rsa_certificate();
  return made;
}

ConfigRepository repository() {
  return {.at = parse_specifier("https://git.example.test/acme/config.git/team").value(),
          .runtime = "prod",
          .runtime_namespace = "gitops"};
}

SentIntegration jira() {
  return {.name = "my-jira",
          .type = "issue.jira",
          .provider_info = R"({"host_url":"https://jira.example.test","email":"ann@example.test"})",
          .secure_data = Secret(R"({"api_token":"s3cret"})"),
          .consumers = {"JIRA_WRITE_BACK"},
          .runtimes = {"prod"}};
}

// The files of a branch below "resources", changed as a commit would.
struct Branch {
  BranchFiles files;

  // The error's reason, or its message when it has none; empty when all went well.
  std::string apply(Operation operation, const SentIntegration& sent) {
    auto integration = read_tool_integration(sent);
    if (!integration) return integration.error().message;
    IntegrationChange change{.operation = operation,
                             .integration = std::move(*integration),
                             .places = {},
                             .present = {},
                             .digest_key = Secret("digest-key")};
    for (const auto& runtime : change.integration.runtimes) {
      change.places.push_back({runtime, "ns-" + runtime, key().certificate});
    }
    if (change.places.empty()) change.places.push_back({"", "", key().certificate});
    const std::string below = repository().resources_folder() + "/";
    for (const auto& [path, content] : files) {
      if (!path.starts_with(below)) continue;
      if (auto file = integration_file_of(std::string_view(path).substr(below.size()), sent.name)) {
        change.present.push_back(std::move(*file));
      }
    }
    const auto changes = changes_to_apply(repository(), change);
    if (!changes) return why(changes.error());
    auto after = files;
    if (const auto applied = apply_changes(after, *changes); !applied) return why(applied.error());
    files = std::move(after);
    return {};
  }
  static std::string why(const Error& error) {
    return error.subcode.empty() ? error.message : std::string(error.subcode);
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& [name, content] : files) {
      if (name.contains("/integrations/")) found.push_back(name);
    }
    return found;
  }
  [[nodiscard]] std::string token(const std::string& folder, std::string_view label) {
    const auto sealed = read_manifest(files[folder + "/my-jira/sealed-secret.yaml"],
                                      {"spec", "encryptedData", "api_token"});
    const auto bytes = base64_decode(sealed.value_or("?"));
    return bytes ? test::unseal_value(key().private_key, *bytes, label).value_or("") : "";
  }
};

constexpr const char* kProd = "team/resources/runtimes/prod/integrations";
constexpr const char* kStaging = "team/resources/runtimes/staging/integrations";
constexpr const char* kEverywhere = "team/resources/all-runtimes-all-clusters/integrations";

TEST(ToolIntegration, IsAConfigMapAndASealedSecret) {
  Branch branch;
  ASSERT_EQ(branch.apply(Operation::create, jira()), "");
  EXPECT_EQ(branch.files[std::string(kProd) + "/my-jira/config.yaml"],
            "apiVersion: v1\ndata:\n  email: ann@example.test\n"
            "  host_url: https://jira.example.test\nkind: ConfigMap\nmetadata:\n"
            "  annotations:\n    codefresh.io/integration-consumers: JIRA_WRITE_BACK\n"
            "    codefresh.io/integration-secret: codefresh-integration-my-jira\n"
            "  labels:\n    io.codefresh.integration-name: my-jira\n"
            "    io.codefresh.integration-type: issue.jira\n"
            "  name: codefresh-integration-my-jira\n");
  EXPECT_EQ(branch.token(kProd, "ns-prod/codefresh-integration-my-jira"), "s3cret");
  for (const auto& [path, content] : branch.files) EXPECT_THAT(content, Not(HasSubstr("s3cret")));
  // The runtime applies them.
  EXPECT_THAT(branch.files["team/runtimes/prod/in-cluster.yaml"], HasSubstr("runtimes/prod/**"));
}

TEST(ToolIntegration, RepeatedChangesNothing) {
  Branch branch;
  ASSERT_EQ(branch.apply(Operation::create, jira()), "");
  const auto once = branch.files;
  EXPECT_EQ(branch.apply(Operation::create, jira()), "");
  EXPECT_EQ(branch.apply(Operation::update, jira()), "");
  EXPECT_EQ(branch.files, once);

  auto other = jira();
  other.secure_data = Secret(R"({"api_token":"n3w"})");
  EXPECT_EQ(branch.apply(Operation::create, other), "INTEGRATION_EXISTS");
  EXPECT_EQ(branch.files, once);
  EXPECT_EQ(branch.apply(Operation::update, other), "");
  EXPECT_EQ(branch.token(kProd, "ns-prod/codefresh-integration-my-jira"), "n3w");

  other = jira();
  other.provider_info = "{}";
  EXPECT_EQ(branch.apply(Operation::create, other), "INTEGRATION_EXISTS");
  other = jira();
  other.runtimes = {"staging"};
  EXPECT_EQ(branch.apply(Operation::create, other), "INTEGRATION_EXISTS");
}

TEST(ToolIntegration, AnUpdateWithoutCredentialsKeepsThem) {
  Branch branch;
  auto sent = jira();
  sent.secure_data.reset();
  EXPECT_EQ(branch.apply(Operation::update, sent), "INTEGRATION_NOT_FOUND");
  ASSERT_EQ(branch.apply(Operation::create, jira()), "");
  sent.provider_info = R"({"host_url":"https://other.example.test"})";
  EXPECT_EQ(branch.apply(Operation::update, sent), "");
  const auto& config = branch.files[std::string(kProd) + "/my-jira/config.yaml"];
  EXPECT_THAT(config, HasSubstr("host_url: https://other.example.test\n"));
  EXPECT_THAT(config, HasSubstr("codefresh.io/integration-secret"));
  EXPECT_EQ(branch.token(kProd, "ns-prod/codefresh-integration-my-jira"), "s3cret");
  // They were sealed for one place.
  sent.runtimes = {"staging"};
  EXPECT_THAT(branch.apply(Operation::update, sent), HasSubstr("secureData: needed"));
  // An empty object takes them away.
  sent = jira();
  sent.secure_data = Secret("{}");
  EXPECT_EQ(branch.apply(Operation::update, sent), "");
  EXPECT_THAT(branch.names(), ElementsAre(std::string(kProd) + "/my-jira/config.yaml"));
}

TEST(ToolIntegration, MovesBetweenRuntimesAndGoes) {
  Branch branch;
  auto sent = jira();
  sent.runtimes = {"staging", "prod", "prod"};
  ASSERT_EQ(branch.apply(Operation::create, sent), "");
  EXPECT_EQ(branch.token(kStaging, "ns-staging/codefresh-integration-my-jira"), "s3cret");
  EXPECT_EQ(branch.token(kProd, "ns-prod/codefresh-integration-my-jira"), "s3cret");
  sent.runtimes = {};
  EXPECT_EQ(branch.apply(Operation::update, sent), "");
  EXPECT_THAT(branch.names(),
              ElementsAre(std::string(kEverywhere) + "/my-jira/config.yaml",
                          std::string(kEverywhere) + "/my-jira/sealed-secret.yaml"));
  EXPECT_EQ(branch.token(kEverywhere, ""), "s3cret");
  EXPECT_EQ(branch.apply(Operation::remove, sent), "");
  EXPECT_THAT(branch.names(), IsEmpty());
  EXPECT_EQ(branch.apply(Operation::remove, sent), "");
}

TEST(ToolIntegration, MistakesAreTold) {
  const auto refused = [](auto change) {
    auto sent = jira();
    change(sent);
    const auto read = read_tool_integration(sent);
    if (read) return std::string();
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(read.error().message, Not(HasSubstr("s3cret")));
    return read.error().message;
  };
  EXPECT_EQ(refused([](SentIntegration&) {}), "");
  for (const char* name : {"", "../x", "A", "in-cluster", "a/b", "-a"}) {
    EXPECT_THAT(refused([&](auto& sent) { sent.name = name; }), HasSubstr("metadata.name")) << name;
  }
  // "git" is the kind of those with Git hosts, whose Secrets others read.
  for (const char* type : {"", "git", ".jira", "issue.", "issue..jira", "Issue.Jira", "a b.c"}) {
    EXPECT_THAT(refused([&](auto& sent) { sent.type = type; }), HasSubstr("metadata.type")) << type;
  }
  for (const char* text : {"", "[]", "7", "{", R"({"a/b":"s3cret"})", R"({"a":{"b":"s3cret"}})"}) {
    EXPECT_THAT(refused([&](auto& sent) { sent.provider_info = text; }), HasSubstr("providerInfo"))
        << text;
    EXPECT_THAT(refused([&](auto& sent) { sent.secure_data = Secret(text); }),
                HasSubstr("secureData"))
        << text;
  }
  EXPECT_THAT(refused([](auto& sent) { sent.runtimes = {"../../x"}; }),
              HasSubstr("metadata.runtimes"));
  EXPECT_THAT(refused([](auto& sent) { sent.runtimes.assign(101, "x"); }), HasSubstr("100"));
}

TEST(ToolIntegration, FilesAreFoundWhereverTheyAre) {
  EXPECT_EQ(integration_file_of("runtimes/prod/integrations/a/config.yaml", "a"),
            (IntegrationFile{"prod", false}));
  EXPECT_EQ(integration_file_of("all-runtimes-all-clusters/integrations/a/sealed-secret.yaml", "a"),
            (IntegrationFile{"", true}));
  for (const char* path :
       {"runtimes/integrations/a/config.yaml", "runtimes//integrations/a/config.yaml",
        "runtimes/prod/integrations/b/config.yaml", "runtimes/prod/integrations/a/other.yaml",
        "runtimes/prod/x/integrations/a/config.yaml", "integrations/a/config.yaml",
        "all-runtimes-all-clusters/integrations/sealing-key.yaml", "runtimes/", ""}) {
    EXPECT_EQ(integration_file_of(path, "a"), std::nullopt) << path;
  }
}

TEST(SealingKeyFile, IsAConfigMapWithoutThePrivateKey) {
  const SealingKeyFile file{.id = "68161a545a284d2ec56e9d1a", .certificate = key().certificate};
  const auto manifest = sealing_key_manifest(file);
  EXPECT_THAT(manifest, HasSubstr("kind: ConfigMap\n"));
  EXPECT_THAT(manifest, HasSubstr("    codefresh.io/sealing-key: \"true\"\n"));
  EXPECT_EQ(read_sealing_key(manifest), file);
  for (const char* wrong : {"", "a: [", "data: {id: ''}", "data: {id: x}",
                            "data: {id: '../x', tls.crt: c}", "data: {tls.crt: c}"}) {
    EXPECT_FALSE(read_sealing_key(wrong)) << wrong;
  }
  // The first one stays.
  const auto changes = changes_to_share_key(repository(), file);
  EXPECT_EQ(changes.back().path, std::string(kEverywhere) + "/sealing-key.yaml");
  EXPECT_EQ(*changes.back().edit(std::nullopt), manifest);
  EXPECT_EQ(*changes.back().edit("of another runtime"), "of another runtime");
}

}  // namespace
}  // namespace gitops::app_proxy
