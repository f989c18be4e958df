#include "common/net/tls_certificate.hpp"

#include "common/net/channel_pair.hpp"

namespace gitops::net {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

TEST(TlsCertificate, IsReadFromAServerThatNobodyTrusts) {
  test::run_in_test_time([]() -> Task<> {
    auto pair = memory_pair(co_await asio::this_coro::executor);
    TlsChannel server(std::move(pair.right), tls_context(TlsContext::Role::server));
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("server", [&]() -> Task<> { (void)co_await server.handshake_server(); });
    const auto found =
        co_await read_certificate(std::move(pair.left), "another.name", Clock::now() + seconds(5));
    co_await tasks.join();
    CO_ASSERT_OK(found);
    EXPECT_EQ(found->subject, "CN=server");
    EXPECT_EQ(found->issuer, "CN=Test CA");
    EXPECT_LT(found->not_before, found->not_after);
  });
}

TEST(TlsCertificate, AServerWithoutTlsHasNone) {
  test::run_in_test_time([]() -> Task<> {
    auto pair = memory_pair(co_await asio::this_coro::executor);
    CO_ASSERT_OK(co_await pair.right->write("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const auto found =
        co_await read_certificate(std::move(pair.left), "a", Clock::now() + seconds(5));
    CO_ASSERT_TRUE(!found);
    EXPECT_EQ(found.error().code, ErrorCode::tls);
  });
}

}  // namespace
}  // namespace gitops::net
