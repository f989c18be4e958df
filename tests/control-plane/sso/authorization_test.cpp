#include "control-plane/sso/authorization.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "control-plane/sso/discovery.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using Json = nlohmann::json;

constexpr const char* kIssuer = "https://idp.example/realm";

Json good_document() {
  return {{"issuer", kIssuer},
          {"authorization_endpoint", "https://idp.example/auth?tenant=1"},
          {"token_endpoint", "https://idp.example/token"},
          {"jwks_uri", "https://idp.example/keys"}};
}

Result<Discovery> read(const Json& document, int status = 200,
                       const char* type = "application/json; charset=utf-8") {
  return read_discovery(
      {.status = status, .headers = {{"Content-Type", type}}, .body = document.dump()}, kIssuer);
}

Result<Discovery> changed(const char* name, const Json& value) {
  auto document = good_document();
  document[name] = value;
  if (value.is_null()) document.erase(name);
  return read(document);
}

TEST(Authorization, SendsEverythingThatALoginNeeds) {
  const Secret browser("browser");
  const auto secrets = login_secrets(browser, "state");
  const auto address = authorization_url(
      *read(good_document()), {.client_id = "gitops",
                               .redirect_uri = "https://cp.example/api/auth/corp/callback",
                               .scopes = "openid email",
                               .state = "state",
                               .secrets = secrets});
  const auto url = http::parse_url(address);
  ASSERT_TRUE(url);
  const auto value = [&](const char* name) { return http::query_parameter(url->query, name); };
  EXPECT_EQ(url->path, "/auth");
  EXPECT_EQ(value("tenant"), "1");
  EXPECT_EQ(value("response_type"), "code");
  EXPECT_EQ(value("client_id"), "gitops");
  EXPECT_EQ(value("redirect_uri"), "https://cp.example/api/auth/corp/callback");
  EXPECT_EQ(value("scope"), "openid email");
  EXPECT_EQ(value("state"), "state");
  EXPECT_EQ(value("nonce"), secrets.nonce);
  EXPECT_EQ(value("code_challenge"), base64url_encode(bytes_of(sha256(secrets.verifier))));
  EXPECT_EQ(value("code_challenge_method"), "S256");
  EXPECT_FALSE(address.contains(secrets.verifier));
}

TEST(Authorization, DerivesOtherSecretsForEachLogin) {
  const auto one = login_secrets(Secret("browser"), "state");
  EXPECT_EQ(one.nonce, login_secrets(Secret("browser"), "state").nonce);
  EXPECT_NE(one.nonce, one.verifier);
  EXPECT_EQ(one.verifier.size(), 43);  // RFC 7636, section 4.1
  EXPECT_NE(one.nonce, login_secrets(Secret("browser"), "state2").nonce);
  EXPECT_NE(one.verifier, login_secrets(Secret("other"), "state").verifier);
}

TEST(Authorization, ReturnsOnlyToPathsOfThisServer) {
  for (const auto* path : {"/", "/applications", "/a?b=c&d=%20#e", "/a//b"}) {
    EXPECT_EQ(return_path(path), path);
  }
  for (const auto* path :
       {"", "applications", "//evil.example", "/\\evil.example", "/a\\b", "https://evil.example/",
        "javascript:alert(1)", "/a b", "/a\r\nX: y", "/\t/evil.example", "/\"", "/<"}) {
    EXPECT_EQ(return_path(path), "/") << path;
  }
  EXPECT_EQ(return_path("/" + std::string(2'000, 'a')), "/");
}

TEST(Authorization, ReadsACallback) {
  const auto good = read_callback("state=s&code=c%2B1&iss=https%3A%2F%2Fidp.example%2Frealm");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->state, "s");
  EXPECT_EQ(good->code, "c+1");
  EXPECT_EQ(good->issuer, kIssuer);
  EXPECT_FALSE(good->is_refusal);
  EXPECT_TRUE(read_callback("state=s&error=access_denied")->is_refusal);
  for (const auto& query :
       {std::string(), std::string("code=c"), std::string("state=s"), std::string("state=&code=c"),
        "state=s&code=" + std::string(5'000, 'c')}) {
    EXPECT_FALSE(read_callback(query)) << query;
  }
}

TEST(Authorization, NoticesAnotherSender) {
  auto discovery = *read(good_document());
  const Callback silent{.state = "s", .code = "c", .issuer = ""};
  const Callback own{.state = "s", .code = "c", .issuer = kIssuer};
  const Callback other{.state = "s", .code = "c", .issuer = "https://evil.example"};
  EXPECT_TRUE(check_sender(silent, discovery));
  EXPECT_TRUE(check_sender(own, discovery));
  EXPECT_FALSE(check_sender(other, discovery));
  discovery.names_itself = true;
  EXPECT_FALSE(check_sender(silent, discovery));
  EXPECT_TRUE(check_sender(own, discovery));
}

TEST(Discovery, ReadsWhatALoginNeeds) {
  auto document = good_document();
  document["authorization_response_iss_parameter_supported"] = true;
  document["end_session_endpoint"] = "https://idp.example/out";
  const auto found = read(document);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->names_itself);
  EXPECT_EQ(found->authentication, ClientAuthentication::basic);
  EXPECT_EQ(end_session_url(*found, "gitops", "https://cp.example/sign-in"),
            "https://idp.example/out?client_id=gitops&post_logout_redirect_uri="
            "https%3A%2F%2Fcp.example%2Fsign-in");
  EXPECT_EQ(end_session_url(*read(good_document()), "gitops", "x"), "");
  for (const Json& none : {Json(), Json("")}) {
    document["end_session_endpoint"] = none;
    const auto without = read(document);
    ASSERT_TRUE(without) << none;
    EXPECT_EQ(end_session_url(*without, "gitops", "x"), "");
  }
}

TEST(Discovery, IsOfTheIssuerExactly) {
  for (const Json& value : {Json(), Json(""), Json("https://idp.example/realm/"),
                            Json("https://evil.example"), Json(7)}) {
    const auto found = changed("issuer", value);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::invalid_data);
  }
}

TEST(Discovery, RefusesWhatItCannotTrust) {
  for (const auto* name : {"authorization_endpoint", "token_endpoint", "jwks_uri"}) {
    for (const Json& value : {Json(), Json(""), Json("/relative"), Json("http://idp.example/x"),
                              Json("https://user@idp.example/x"), Json("javascript:x"), Json(7)}) {
      EXPECT_FALSE(changed(name, value)) << name << value;
    }
  }
  EXPECT_FALSE(changed("end_session_endpoint", "http://idp.example/x"));
  EXPECT_FALSE(read(good_document(), 404));
  EXPECT_FALSE(read(good_document(), 302));
  EXPECT_FALSE(read(good_document(), 200, "text/html"));
  EXPECT_FALSE(read(Json::array()));
}

TEST(Discovery, ChoosesHowTheClientIsAuthenticated) {
  const auto of = [](const Json& methods) {
    return changed("token_endpoint_auth_methods_supported", methods);
  };
  EXPECT_EQ(of({"client_secret_post", "client_secret_basic"})->authentication,
            ClientAuthentication::basic);
  EXPECT_EQ(of(Json::array({"client_secret_post"}))->authentication, ClientAuthentication::post);
  EXPECT_FALSE(of(Json::array({"private_key_jwt"})));
}

TEST(Discovery, AcceptsHttpOnlyOnThisMachine) {
  for (const auto* issuer : {"https://idp.example", "https://idp.example:8443/a",
                             "http://localhost:1", "http://127.0.0.1:9998/"}) {
    EXPECT_EQ(issuer_mistake(issuer), "") << issuer;
  }
  for (const auto* issuer :
       {"", "idp.example", "http://idp.example", "https://u:p@idp.example",
        "https://idp.example?a=b", "ftp://idp.example", "http://localhost.evil.example"}) {
    EXPECT_NE(issuer_mistake(issuer), "") << issuer;
  }
  EXPECT_EQ(discovery_url("https://idp.example/realm/")->to_string(),
            "https://idp.example/realm/.well-known/openid-configuration");
}

TEST(TokenRequest, EncodesTheClientBeforeBasic) {
  const Client client{.id = "git ops", .secret = Secret("p:+%")};
  const auto request = token_request(*read(good_document()), client, "c/1", "https://cp/cb", "v");
  EXPECT_EQ(request.headers.find("Authorization"),
            "Basic " + base64_encode("git%20ops:p%3A%2B%25"));
  EXPECT_EQ(request.body,
            "grant_type=authorization_code&code=c%2F1&redirect_uri=https%3A%2F%2Fcp%2Fcb&"
            "code_verifier=v");
  auto discovery = *read(good_document());
  discovery.authentication = ClientAuthentication::post;
  const auto post = token_request(discovery, client, "c", "https://cp/cb", "v");
  EXPECT_FALSE(post.headers.find("Authorization"));
  EXPECT_TRUE(post.body.ends_with("&client_id=git%20ops&client_secret=p%3A%2B%25"));
}

TEST(TokenResponse, NamesEachFailure) {
  const auto read_it = [](int status, const char* body, const char* type = "application/json") {
    return read_token_response(
        {.status = status, .headers = {{"Content-Type", type}}, .body = body});
  };
  EXPECT_EQ(read_it(200, R"({"id_token":"t"})")->reveal(), "t");
  const auto code = [&](int status, const char* body, const char* type = "application/json") {
    const auto result = read_it(status, body, type);
    return result ? ErrorCode::internal : result.error().code;
  };
  EXPECT_EQ(code(400, R"({"error":"invalid_grant"})"), ErrorCode::forbidden);
  EXPECT_EQ(code(401, R"({"error":"invalid_client"})"), ErrorCode::unauthenticated);
  EXPECT_EQ(code(503, ""), ErrorCode::unavailable);
  EXPECT_EQ(code(429, ""), ErrorCode::unavailable);
  EXPECT_EQ(code(302, ""), ErrorCode::protocol);
  EXPECT_EQ(code(200, "<html>", "text/html"), ErrorCode::protocol);
  EXPECT_EQ(code(200, "{"), ErrorCode::protocol);
  EXPECT_EQ(code(200, R"({"access_token":"a"})"), ErrorCode::protocol);
  EXPECT_EQ(code(200, R"({"id_token":"a","id_token":"b"})"), ErrorCode::protocol);
  // No text of the provider reaches the message.
  const auto error = read_it(400, R"({"error":"<b>","error_description":"evil"})").error().message;
  EXPECT_FALSE(error.contains("evil") || error.contains("<b>"));
}

}  // namespace
}  // namespace gitops::control_plane_server::sso
