#include <gtest/gtest.h>

#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/git_bed.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "test_http/canned_server.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::GitBed;
using test::run_coro;

const char* const kListType = "application/x-git-upload-pack-advertisement";

http::Response list_of(std::string body, std::string type = kListType) {
  return {.status = 200, .headers = {{"Content-Type", std::move(type)}}, .body = std::move(body)};
}

std::string packet(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t size = text.size() + 4;
  std::string head;
  for (const unsigned shift : {12U, 8U, 4U, 0U}) head += kDigits[(size >> shift) & 15U];
  return head + text;
}

// Commits to a server that gives these answers; returns the error.
void commit_to(std::vector<http::Response> answers, GitBed::Options options,
               const std::function<void(const Error&, CannedServer&)>& check) {
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        CannedServer server(executor, answers);
        GitBed bed(executor, options);
        bed.credential = {.username = "ann", .password = Secret("canary-51c")};
        test::LogCapture logs;
        const auto done = co_await bed.committer.commit(
            bed.request(server.url().to_string() + "/o/r.git", "x", "1\n"), deadline_after(3s));
        CO_ASSERT_TRUE(!done);
        EXPECT_FALSE(done.error().message.contains("canary"));
        EXPECT_FALSE(logs.text().contains("canary"));
        check(done.error(), server);
        // Nothing of an attempt is left on the disk.
        for (const auto& entry : std::filesystem::directory_iterator(bed.folder.path())) {
          ADD_FAILURE() << entry.path();
        }
        co_await bed.stop();
        co_await server.stop();
      },
      20s);
}

// AC-39: the credential goes to no other origin, and no request does.
TEST(HostileServer, AC39_RedirectsToAnotherOriginAreNotFollowed) {
  for (const std::string location :
       {"http://127.0.0.2:1/o/r.git/info/refs?service=git-upload-pack",
        "//127.0.0.2:1/o/r.git/info/refs?service=git-upload-pack",
        "http://ann:x@127.0.0.1/o/r.git/info/refs?service=git-upload-pack", "file:///etc/passwd",
        "/elsewhere", "http://169.254.169.254/latest/info/refs?service=git-upload-pack"}) {
    commit_to({{.status = 302, .headers = {{"Location", location}}, .body = {}}}, {},
              [&](const Error& error, CannedServer& server) {
                EXPECT_TRUE(error.code == ErrorCode::forbidden || error.code == ErrorCode::protocol)
                    << location << ": " << error.message;
                EXPECT_EQ(server.seen().size(), 1U) << location;
              });
  }
}

TEST(HostileServer, AC39_RedirectsWithoutEndAreAnError) {
  commit_to({{.status = 301,
              .headers = {{"Location", "/o/again.git/info/refs?service=git-upload-pack"}},
              .body = {}}},
            {}, [](const Error& error, CannedServer& server) {
              EXPECT_EQ(error.code, ErrorCode::protocol);
              EXPECT_EQ(server.seen().size(), 6U);
              EXPECT_EQ(server.seen().back().target,
                        "/o/again.git/info/refs?service=git-upload-pack");
            });
}

// AC-40: a list of branches without end costs its limit and no more.
TEST(HostileServer, AC40_AHugeListOfBranches) {
  std::string list = packet("# service=git-upload-pack\n") + "0000";
  for (int i = 0; i < 20'000; ++i) {
    list += packet("1111111111111111111111111111111111111111 refs/heads/b" + std::to_string(i) +
                   (i == 0 ? std::string("\0ofs-delta", 10) : "") + "\n");
  }
  GitBed::Options options;
  options.clones.limits.advertisement = 256 * 1024;
  commit_to({list_of(list + "0000")}, options, [](const Error& error, CannedServer&) {
    EXPECT_EQ(error.code, ErrorCode::too_large) << error.message;
  });
}

TEST(HostileServer, AC40_WhatIsNoListOfBranches) {
  const std::string service = packet("# service=git-upload-pack\n") + "0000";
  for (const std::string& body : std::vector<std::string>{
           std::string(), std::string("<html>"), service, service + "ffff", service + "0001",
           service + "zzzz", service + packet("1111 refs/heads/main\n"),
           service + packet("ERR no\n"), service + packet(std::string(60'000, 'a')) + "0000"}) {
    commit_to({list_of(body)}, {}, [&](const Error& error, CannedServer&) {
      EXPECT_NE(error.code, ErrorCode::internal) << body.substr(0, 40) << ": " << error.message;
    });
  }
  commit_to({list_of(service, "text/html")}, {},
            [](const Error& error, CannedServer&) { EXPECT_EQ(error.code, ErrorCode::protocol); });
}

// AC-40: a pack that says it has four billion objects, and one whose object claims 8 EiB.
TEST(HostileServer, AC40_PacksThatClaimTooMuch) {
  const std::string list =
      packet("# service=git-upload-pack\n") + "0000" +
      packet("1111111111111111111111111111111111111111 HEAD" + std::string(1, '\0') +
             "symref=HEAD:refs/heads/main ofs-delta\n") +
      packet("1111111111111111111111111111111111111111 refs/heads/main\n") + "0000";
  const std::string header = std::string("PACK\0\0\0\2", 8);
  for (const std::string& pack : std::vector<std::string>{
           header + std::string("\xff\xff\xff\xff", 4) + std::string(1000, 'x'),
           header + std::string("\0\0\0\1", 4) +
               std::string("\xbf\xff\xff\xff\xff\xff\xff\xff\xff\x7f") + std::string(1000, 'x')}) {
    http::Response answer = list_of(packet("NAK\n") + pack, "application/x-git-upload-pack-result");
    commit_to({list_of(list), answer}, {}, [](const Error& error, CannedServer&) {
      EXPECT_EQ(error.code, ErrorCode::invalid_data) << error.message;
    });
  }
}

}  // namespace
}  // namespace gitops::app_proxy
