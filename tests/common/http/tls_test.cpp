#include <filesystem>
#include <fstream>
#include <iterator>

#include <boost/asio/ssl/context.hpp>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "common/http/loopback.hpp"
#include "common/net/socket_channel.hpp"
#include "common/net/tls_channel.hpp"
#include "common/net/tls_context.hpp"
#include "support/log_capture.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

namespace gitops::http {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A copy of the certificate that expired a minute ago, signed with the CA's key.
net::TlsOptions expired_copy(const test::Certificate& certificate, const fs::path& ca_key) {
  const std::string pem = read_file(certificate.cert_file);
  const std::string key_pem = read_file(ca_key);
  BIO* in = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* copy = PEM_read_bio_X509(in, nullptr, nullptr, nullptr);
  BIO_free(in);
  in = BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(in, nullptr, nullptr, nullptr);
  BIO_free(in);
  X509_gmtime_adj(X509_getm_notAfter(copy), -60);
  X509_sign(copy, key, EVP_sha256());
  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(out, copy);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out, &text);
  net::TlsOptions options{.certificate_pem = std::string(text, static_cast<std::size_t>(size)),
                          .key_file = certificate.key_file};
  BIO_free(out);
  EVP_PKEY_free(key);
  X509_free(copy);
  return options;
}

// The CA and certificates of all tests in this file, since making them takes longer than the tests.
struct Certificates {
  test::CertificateAuthority authority;
  test::CertificateAuthority other_authority{"Other CA"};
  test::Certificate server =
      authority.issue({.common_name = "server",
                       .organization = {},
                       .alt_names = {"localhost", "*.wild.example", "127.0.0.1"}});
  net::TlsOptions expired = expired_copy(server, authority.folder() / "ca.key");
  test::Certificate client =
      authority.issue({.common_name = "client", .organization = {}, .alt_names = {}});
  test::Certificate foreign_client =
      other_authority.issue({.common_name = "client", .organization = {}, .alt_names = {}});
};

const Certificates& certificates() {
  static const Certificates all;
  return all;
}

net::TlsOptions identity(const test::Certificate& certificate) {
  return {.certificate_file = certificate.cert_file, .key_file = certificate.key_file};
}

net::TlsOptions trust(const test::CertificateAuthority& authority) {
  return {.ca_file = authority.ca_file()};
}

Task<> ok(Exchange& exchange) {
  co_await answer(exchange, std::string(exchange.path()));
}

// Sends one request with these client options to a server with this identity and returns the
// outcome. `host` is the host of the URL.
Result<Response> request(net::TlsOptions server_tls, net::TlsOptions client_tls,
                         const std::string& host = "localhost") {
  Result<Response> outcome;
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TestServer server(executor, ok, {.address = "0.0.0.0", .tls = server_tls});
    {
      TestClient client(executor, {.tls = client_tls});
      outcome = co_await client.get(server.url(host), "/tls");
      if (outcome) {
        const auto again = co_await client.get(server.url(host), "/again");
        CO_ASSERT_OK(again);
        EXPECT_EQ(again->body, "/again");
        EXPECT_EQ(server.server.connections(), 1u);  // reused
      }
    }
    co_await server.stop();
  });
  return outcome;
}

std::string refusal(net::TlsOptions server_tls, net::TlsOptions client_tls,
                    const std::string& host = "localhost") {
  const auto outcome = request(std::move(server_tls), std::move(client_tls), host);
  if (outcome) return "accepted";
  EXPECT_EQ(outcome.error().code, ErrorCode::tls) << outcome.error().message;
  EXPECT_THAT(outcome.error().message, StartsWith(host + ":"));
  return outcome.error().message.substr(outcome.error().message.find(": ") + 2);
}

TEST(Tls, VerifiesNamesAndAddresses) {
  const auto& c = certificates();
  for (const char* host : {"localhost", "127.0.0.1"}) {
    const auto response = request(identity(c.server), trust(c.authority), host);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "/tls");
  }
  EXPECT_EQ(refusal(identity(c.server), trust(c.authority), "127.0.0.2"),
            "certificate verify failed: IP address mismatch");
  net::TlsOptions named = trust(c.authority);
  named.server_name = "a.wild.example";
  EXPECT_TRUE(request(identity(c.server), named, "127.0.0.2"));
  for (const char* name : {"a.b.wild.example", "wild.example", "other.example"}) {
    named.server_name = name;
    EXPECT_EQ(refusal(identity(c.server), named), "certificate verify failed: hostname mismatch")
        << name;
  }
}

TEST(Tls, RefusesWhatItCannotTrust) {
  const auto& c = certificates();
  EXPECT_EQ(refusal(identity(c.server), trust(c.other_authority)),
            "certificate verify failed: unable to get local issuer certificate");
  EXPECT_EQ(refusal(identity(c.server), {}),
            "certificate verify failed: unable to get local issuer certificate");
  EXPECT_EQ(refusal(c.expired, trust(c.authority)),
            "certificate verify failed: certificate has expired");
}

TEST(Tls, ExtraAuthoritiesAreTrustedBesideTheOthers) {
  const auto& c = certificates();
  EXPECT_TRUE(request(identity(c.server), {.extra_ca_file = c.authority.ca_file()}));
  EXPECT_TRUE(request(identity(c.server), {.ca_file = c.authority.ca_file(),
                                           .extra_ca_file = c.other_authority.ca_file()}));
  EXPECT_TRUE(request(identity(c.server), {.ca_file = c.other_authority.ca_file(),
                                           .extra_ca_file = c.authority.ca_file()}));
  const test::TempDir folder;
  const auto empty = folder / "all.cer";
  test::write_file(empty, "\n");
  EXPECT_TRUE(
      request(identity(c.server), {.ca_file = c.authority.ca_file(), .extra_ca_file = empty}));
  EXPECT_FALSE(request(identity(c.server),
                       {.ca_file = c.authority.ca_file(), .extra_ca_file = folder / "missing"}));
}

TEST(Tls, ExtraAuthoritiesMayBeTheFilesOfAFolder) {
  const auto& c = certificates();
  const test::TempDir folder;
  const net::TlsOptions options{.ca_file = c.other_authority.ca_file(),
                                .extra_ca_file = folder.path()};
  EXPECT_FALSE(request(identity(c.server), options)) << "an empty folder";
  test::write_file(folder / ".hidden", read_file(c.authority.ca_file()));
  EXPECT_FALSE(request(identity(c.server), options)) << "hidden";
  test::write_file(folder / "git.example.com", read_file(c.other_authority.ca_file()));
  test::write_file(folder / "own.pem", read_file(c.authority.ca_file()));
  EXPECT_TRUE(request(identity(c.server), options));
  test::write_file(folder / "zzz.pem", "no certificate");
  const auto refused = request(identity(c.server), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("zzz.pem"), std::string::npos) << refused.error().message;
}

// Plain requests go to the proxy inside of TLS, and TLS with the origin inside of that.
TEST(Tls, AProxyMayBeReachedByTls) {
  test::run_in_test_time([]() -> Task<> {
    const auto& c = certificates();
    const auto executor = co_await asio::this_coro::executor;
    TestServer server(executor, ok, {.tls = identity(c.server)});
    const auto port = server.port();
    test::HttpScript proxy(
        executor,
        {test::HttpScript::answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
         [port](test::RawConnection& connection) -> Task<> {
           co_await connection.read_head();
           co_await connection.send("HTTP/1.1 200 Connection established\r\n\r\n");
           co_await test::join(connection, co_await test::raw_connect(port));
         },
         test::HttpScript::answer("")},
        identity(c.server));
    const ProxySettings settings{
        .http = proxy.url(), .https = proxy.url(), .proxies_loopback = true};
    {
      TestClient client(executor, {.tls = trust(c.authority), .proxy = settings});
      const auto plain = co_await client.get(*parse_url("http://a.example"), "/x");
      CO_ASSERT_OK(plain);
      EXPECT_EQ(plain->body, "ok");
      EXPECT_THAT(proxy.received().at(0), StartsWith("GET http://a.example/x HTTP/1.1\r\n"));
      const auto tunneled = co_await client.get(server.url("localhost"), "/tls");
      CO_ASSERT_OK(tunneled);
      EXPECT_EQ(tunneled->body, "/tls");
      EXPECT_THAT(proxy.received().at(1),
                  StartsWith("CONNECT localhost:" + std::to_string(port) + " HTTP/1.1\r\n"));
      TestClient distrustful(executor, {.tls = trust(c.other_authority), .proxy = settings});
      const auto refused = co_await distrustful.get(*parse_url("http://a.example"), "/x");
      CO_ASSERT_TRUE(!refused);
      EXPECT_EQ(refused.error().code, ErrorCode::tls);
      EXPECT_THAT(refused.error().message,
                  StartsWith("proxy 127.0.0.1:" + std::to_string(proxy.port()) +
                             ": certificate verify failed: "));
    }
    co_await proxy.stop();
    co_await server.stop();
  });
}

TEST(Tls, InsecureIsAnExplicitSwitch) {
  const auto& c = certificates();
  EXPECT_TRUE(request(identity(c.server), {.insecure_skip_verify = true}, "127.0.0.2"));
}

TEST(Tls, InlinePemWorksLikeFiles) {
  const auto& c = certificates();
  const net::TlsOptions server{.certificate_pem = read_file(c.server.cert_file),
                               .key_pem = Secret(read_file(c.server.key_file))};
  EXPECT_TRUE(request(server, {.ca_pem = read_file(c.authority.ca_file())}));
}

TEST(Tls, ServersWithACaDemandClientCertificates) {
  const auto& c = certificates();
  net::TlsOptions server = identity(c.server);
  server.ca_file = c.authority.ca_file();
  net::TlsOptions client = identity(c.client);
  client.ca_file = c.authority.ca_file();
  EXPECT_TRUE(request(server, client));
  client = identity(c.foreign_client);
  client.ca_file = c.authority.ca_file();
  EXPECT_FALSE(request(server, client));
  EXPECT_FALSE(request(server, trust(c.authority)));
}

// One request over each version the client is limited to.
TEST(Tls, SpeaksVersions12And13Only) {
  const auto& c = certificates();
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TestServer server(executor, ok, {.tls = identity(c.server)});
    for (const int version : {TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION}) {
      auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
      SSL_CTX_set_security_level(context->native_handle(), 0);
      SSL_CTX_set_min_proto_version(context->native_handle(), version);
      SSL_CTX_set_max_proto_version(context->native_handle(), version);
      const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), server.port());
      const auto deadline = deadline_after(seconds(2));
      auto plain = co_await net::SocketChannel::connect(std::span(&endpoint, 1), deadline);
      CO_ASSERT_OK(plain);
      auto secured = co_await net::start_tls(std::move(*plain), context, "", deadline);
      EXPECT_EQ(secured.has_value(), version != TLS1_1_VERSION) << version;
      if (!secured) continue;
      test::RawConnection connection(std::move(*secured));
      co_await connection.send("GET /v HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
      EXPECT_THAT(co_await connection.read_to_end(), testing::EndsWith("\r\n\r\n/v"));
      EXPECT_TRUE(connection.ended());  // with close_notify
    }
    co_await server.stop();
  });
}

TEST(Tls, PlainTextOnEitherSideIsToldApart) {
  const auto& c = certificates();
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TestServer plain(executor, ok);
    TestServer secure(executor, ok, {.tls = identity(c.server)});
    {
      TestClient client(executor, {.tls = trust(c.authority)});
      Url url = plain.url("localhost");
      url.scheme = "https";
      const auto refused = co_await client.get(url);
      CO_ASSERT_TRUE(!refused);
      EXPECT_EQ(refused.error().code, ErrorCode::tls);
      EXPECT_THAT(refused.error().message, HasSubstr("the peer does not speak TLS"));
      url = secure.url();
      url.scheme = "http";
      EXPECT_FALSE(co_await client.get(url));
    }
    co_await plain.stop();
    co_await secure.stop();
  });
}

TEST(Tls, TruncationIsNotAnEnd) {
  const auto& c = certificates();
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    test::HttpScript origin(executor, {[](test::RawConnection& connection) -> Task<> {
                              co_await connection.read_head();
                              co_await connection.send("HTTP/1.1 200 OK\r\n\r\nhalf of i");
                              co_await connection.read_to_end();
                            }},
                            identity(c.server));
    // An attacker in the middle who closes the TCP connection without a TLS close_notify.
    Event cut(executor);
    bool now = false;
    test::HttpScript middle(executor, {[&](test::RawConnection& connection) -> Task<> {
                              TaskGroup tasks(executor);
                              tasks.spawn("join", [&]() -> Task<> {
                                co_await test::join(connection,
                                                    co_await test::raw_connect(origin.port()));
                              });
                              while (!now) co_await cut.wait();
                              tasks.cancel();
                              co_await tasks.join();
                            }});
    {
      TestClient client(executor, {.tls = trust(c.authority)});
      Url url = middle.url();
      url.scheme = "https";
      auto exchange = co_await client.client.open(url, {}, deadline_after(seconds(4)));
      CO_ASSERT_OK(exchange);
      CO_ASSERT_OK(co_await exchange->read_head());
      EXPECT_EQ(*co_await exchange->read_some(), "half of i");
      now = true;
      cut.notify_all();
      const auto end = co_await exchange->read_some();
      CO_ASSERT_TRUE(!end);
      EXPECT_EQ(end.error().code, ErrorCode::unavailable);
      EXPECT_THAT(end.error().message, HasSubstr("closed the connection inside of TLS"));
    }
    co_await middle.stop();
    co_await origin.stop();
  });
}

TEST(Tls, AC07_SlowHandshakesEnd) {
  const auto& c = certificates();
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TestServer server(executor, ok, {.tls = identity(c.server), .head_timeout = milliseconds(50)});
    EXPECT_EQ(co_await test::raw_exchange(server.port(), "\x16\x03\x01"), "");
    EXPECT_TRUE(co_await test::eventually([&] { return server.server.connections() == 0; },
                                          "the end of the connection"));
    co_await server.stop();
    // The same on the client's side.
    test::HttpScript silent(executor, {[](test::RawConnection& connection) -> Task<> {
                              co_await connection.read_to_end();
                            }});
    {
      TestClient client(executor, {.tls = trust(c.authority), .connect_timeout = milliseconds(50)});
      Url url = silent.url();
      url.scheme = "https";
      const auto late = co_await client.get(url);
      CO_ASSERT_TRUE(!late);
      EXPECT_EQ(late.error().code, ErrorCode::timeout);
      EXPECT_THAT(late.error().message, HasSubstr("the TLS handshake timed out"));
    }
    co_await silent.stop();
  });
}

TEST(Tls, TunnelsThroughAProxy) {
  const auto& c = certificates();
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TestServer server(executor, ok, {.tls = identity(c.server)});
    // A proxy that joins two connections.
    test::HttpScript proxy(
        executor, {[&](test::RawConnection& connection) -> Task<> {
          const auto head = co_await connection.read_head();
          EXPECT_THAT(head, StartsWith("CONNECT secure.wild.example:443 HTTP/1.1\r\n"));
          co_await connection.send("HTTP/1.1 200 Connection established\r\n\r\n");
          co_await test::join(connection, co_await test::raw_connect(server.port()));
        }});
    {
      Url via = proxy.url();
      TestClient client(executor, {.tls = trust(c.authority), .proxy = {.https = via}});
      for (int i = 0; i < 2; ++i) {
        const auto response =
            co_await client.get(*parse_url("https://secure.wild.example"), "/through");
        CO_ASSERT_OK(response);
        EXPECT_EQ(response->body, "/through");
      }
      EXPECT_EQ(proxy.connections(), 1u);
    }
    co_await proxy.stop();
    co_await server.stop();
  });
}

TEST(Tls, StreamsLargeBodies) {
  const auto& c = certificates();
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TestServer server(executor,
                      [](Exchange& exchange) -> Task<> {
                        auto body = co_await exchange.read_body(20'000'000);
                        CO_ASSERT_OK(body);
                        co_await answer(exchange, std::move(*body));
                      },
                      {.tls = identity(c.server)});
    {
      TestClient client(executor, {.tls = trust(c.authority)});
      // What exceeds the sockets' buffers is passed on by the kernel, in real time.
      const Clock::Hold real_time;
      std::string body;
      for (int i = 0; body.size() < 5'000'000; ++i) body += std::to_string(i);
      const auto echoed = co_await client.post(server.url(), body);
      CO_ASSERT_OK(echoed);
      EXPECT_TRUE(echoed->body == body);
    }
    co_await server.stop();
  });
}

TEST(TlsContext, ErrorsNameTheFile) {
  const auto& c = certificates();
  const auto problem = [](net::TlsContext::Role role, net::TlsOptions options) {
    net::TlsContext context(role, std::move(options));
    const auto got = context.get(Clock::now());
    if (got) return std::string("none");
    EXPECT_EQ(got.error().code, ErrorCode::tls);
    return got.error().message;
  };
  using Role = net::TlsContext::Role;
  const fs::path garbage = c.authority.folder() / "garbage.pem";
  std::ofstream(garbage) << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const fs::path empty = c.authority.folder() / "empty.pem";
  std::ofstream(empty) << "\n";
  EXPECT_THAT(problem(Role::client, {.ca_file = "/nonexistent/ca.pem"}),
              testing::AllOf(HasSubstr("/nonexistent/ca.pem"), HasSubstr("No such file")));
  EXPECT_THAT(problem(Role::client, {.ca_file = garbage}),
              HasSubstr("garbage.pem: a certificate is malformed"));
  EXPECT_THAT(problem(Role::client, {.ca_file = empty}),
              HasSubstr("empty.pem: holds no certificate"));
  EXPECT_THAT(problem(Role::client, {.certificate_file = c.client.cert_file}),
              HasSubstr("must be given together"));
  EXPECT_THAT(problem(Role::client,
                      {.certificate_file = c.client.cert_file, .key_file = c.server.key_file}),
              HasSubstr("does not belong"));
  EXPECT_THAT(
      problem(Role::client, {.certificate_file = c.client.cert_file, .key_pem = Secret("canary")}),
      testing::AllOf(HasSubstr("no usable private key"), testing::Not(HasSubstr("canary"))));
  EXPECT_THAT(problem(Role::server, {}), HasSubstr("needs a certificate"));
  EXPECT_EQ(problem(Role::server, identity(c.server)), "none");
}

TEST(TlsContext, RotatedFilesAreReadAgain) {
  const auto& c = certificates();
  const fs::path ca = c.authority.folder() / "rotating-ca.pem";
  fs::copy_file(c.authority.ca_file(), ca, fs::copy_options::overwrite_existing);
  net::TlsContext context(net::TlsContext::Role::client, {.ca_file = ca});
  auto now = Clock::now();
  const auto first = context.get(now);
  ASSERT_TRUE(first);
  EXPECT_EQ(context.generation(), 1u);
  EXPECT_EQ(*context.get(now += seconds(2)), *first);

  // An unusable file leaves the last good context in use and is logged once.
  test::LogCapture log;
  std::ofstream(ca) << "broken\n";
  EXPECT_EQ(*context.get(now + milliseconds(500)), *first);  // not looked at yet
  EXPECT_EQ(log.count("certificates changed"), 0u);
  EXPECT_EQ(*context.get(now += seconds(2)), *first);
  EXPECT_EQ(*context.get(now += seconds(2)), *first);
  EXPECT_EQ(log.count("certificates changed"), 1u);
  EXPECT_EQ(context.generation(), 1u);

  fs::copy_file(c.other_authority.ca_file(), ca, fs::copy_options::overwrite_existing);
  EXPECT_NE(*context.get(now += seconds(2)), *first);
  EXPECT_EQ(context.generation(), 2u);
}

TEST(Tls, AC29_RotationIsPickedUpByServerAndClient) {
  const auto& c = certificates();
  const fs::path folder = c.authority.folder();
  const auto install = [&](const test::Certificate& certificate, const fs::path& ca) {
    fs::copy_file(certificate.cert_file, folder / "live-cert.pem",
                  fs::copy_options::overwrite_existing);
    fs::copy_file(certificate.key_file, folder / "live-key.pem",
                  fs::copy_options::overwrite_existing);
    fs::copy_file(ca, folder / "live-ca.pem", fs::copy_options::overwrite_existing);
  };
  install(c.server, c.authority.ca_file());
  auto& other = const_cast<test::CertificateAuthority&>(c.other_authority);
  const auto replacement =
      other.issue({.common_name = "server", .organization = {}, .alt_names = {"localhost"}});
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TestServer server(executor, ok,
                      {.tls = net::TlsOptions{.certificate_file = folder / "live-cert.pem",
                                              .key_file = folder / "live-key.pem"}});
    {
      TestClient client(executor, {.tls = {.ca_file = folder / "live-ca.pem"}});
      CO_ASSERT_OK(co_await client.get(server.url("localhost")));
      EXPECT_EQ(client.client.idle_connections(), 1u);
      install(replacement, c.other_authority.ca_file());
      co_await sleep_for(milliseconds(1100));  // files are looked at once per second
      // Works only with both the new certificate and the new CA, on a new connection.
      CO_ASSERT_OK(co_await client.get(server.url("localhost")));
      EXPECT_EQ(server.server.connections(), 2u);
    }
    co_await server.stop();
  });
}

// A connection that began before the rotation and was made after it proves only what the old files
// demand: it answers its request and is not used again.
TEST(Tls, AC29_AConnectionMadeWithOldCertificatesIsNotKept) {
  const auto& c = certificates();
  const fs::path ca = c.authority.folder() / "rotated-while-connecting.pem";
  fs::copy_file(c.authority.ca_file(), ca, fs::copy_options::overwrite_existing);
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TestServer server(executor, ok, {.tls = identity(c.server)});
    Event moved(executor);
    bool asked = false;
    bool rotated = false;
    const auto tunnel = [&server](test::RawConnection& connection) -> Task<> {
      co_await connection.send("HTTP/1.1 200 OK\r\n\r\n");
      co_await test::join(connection, co_await test::raw_connect(server.port()));
    };
    const auto direct = [tunnel](test::RawConnection& connection) -> Task<> {
      co_await connection.read_head();
      co_await tunnel(connection);
    };
    const auto held = [&, tunnel](test::RawConnection& connection) -> Task<> {
      co_await connection.read_head();
      asked = true;
      moved.notify_all();
      while (!rotated) co_await moved.wait();
      co_await tunnel(connection);
    };
    test::HttpScript proxy(executor, {held, direct, direct});
    {
      const Url url = *parse_url("https://secure.wild.example");
      TestClient client(executor, {.tls = {.ca_file = ca}, .proxy = {.https = proxy.url()}});
      TaskGroup tasks(executor);
      tasks.spawn("before",
                  [&client, &url]() -> Task<> { CO_ASSERT_OK(co_await client.get(url)); });
      while (!asked) co_await moved.wait();
      std::ofstream(ca, std::ios::app) << read_file(c.other_authority.ca_file());
      co_await sleep_for(milliseconds(1100));  // files are looked at once per second
      Request after;
      after.headers.set("Connection", "close");
      CO_ASSERT_OK(co_await client.client.send(url, after, deadline_after(seconds(5))));
      rotated = true;
      moved.notify_all();
      co_await tasks.join();
      CO_ASSERT_OK(co_await client.get(url));
      EXPECT_EQ(proxy.connections(), 3u);
    }
    co_await proxy.stop();
    co_await server.stop();
  });
}

}  // namespace
}  // namespace gitops::http
