#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>

#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/git_bed.hpp"
#include "app-proxy/git/packs.hpp"
#include "common/core/encoding.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "test_http/canned_server.hpp"
#include "test_http/http_script.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::GitBed;
using test::growing_delta;
using test::pack_distance;
using test::pack_number;
using test::pack_object;
using test::pack_of;
using test::packet;
using test::PackType;
using test::run_coro;

const char* const kListType = "application/x-git-upload-pack-advertisement";

http::Response list_of(std::string body, std::string type = kListType) {
  return {.status = 200, .headers = {{"Content-Type", std::move(type)}}, .body = std::move(body)};
}

const std::string kId(40, '1');

// Lists with one branch, or none.
std::string list_for_fetch(const std::string& capabilities = "ofs-delta") {
  return packet("# service=git-upload-pack\n") + "0000" +
         packet(kId + " HEAD" + '\0' + "symref=HEAD:refs/heads/main " + capabilities + "\n") +
         packet(kId + " refs/heads/main\n") + "0000";
}
std::string empty_list(const std::string& service) {
  return packet("# service=" + service + "\n") + "0000" +
         packet(std::string(40, '0') + " capabilities^{}" + '\0' + "report-status ofs-delta\n") +
         "0000";
}
http::Response fetch_answer(std::string body) {
  return list_of(std::move(body), "application/x-git-upload-pack-result");
}
http::Response push_list(std::string body) {
  return list_of(std::move(body), "application/x-git-receive-pack-advertisement");
}
http::Response push_answer(std::string body) {
  return list_of(std::move(body), "application/x-git-receive-pack-result");
}

constexpr const char* kCanary = "Canary-51c";

// Commits to a server that gives these answers; returns the error.
void commit_to(std::vector<http::Response> answers, GitBed::Options options,
               const std::function<void(const Error&, CannedServer&)>& check) {
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        CannedServer server(executor, answers);
        GitBed bed(executor, options);
        bed.credential = {.username = "ann", .password = Secret(kCanary)};
        test::LogCapture logs;
        const auto done = co_await bed.committer.commit(
            bed.request(server.url().to_string() + "/o/r.git", "x", "1\n"), deadline_after(3s));
        CO_ASSERT_TRUE(!done);
        check(done.error(), server);
        // The credential is nowhere but in its header, also when the server repeats it.
        const auto pair = base64_encode(std::string("ann:") + kCanary);
        std::vector<std::string> seen{done.error().message, logs.text(), bed.metrics.expose()};
        for (const auto& entry : std::filesystem::recursive_directory_iterator(bed.folder.path())) {
          seen.push_back(entry.path().string());
          if (entry.is_regular_file()) seen.push_back(test::read_file(entry.path()));
        }
        for (std::string& text : seen) {
          std::ranges::transform(text, text.begin(),
                                 [](unsigned char c) { return std::tolower(c); });
          EXPECT_FALSE(text.contains("canary")) << text;
          EXPECT_FALSE(text.contains(pair)) << text;
        }
        EXPECT_LT(done.error().message.size(), 600U);
        co_await bed.stop();
        // Nothing of an attempt is left on the disk.
        for (const auto& entry : std::filesystem::directory_iterator(bed.folder.path())) {
          EXPECT_THAT(entry.path().filename().string(), testing::EndsWith(".git"));
        }
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

// Nobody listens: that is told after a few tries, long before the deadline.
TEST(HostileServer, AServerThatRefusesConnectionsIsGivenUp) {
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        asio::ip::tcp::acceptor listener(executor, {asio::ip::address_v4::loopback(), 0});
        const auto url = "http://127.0.0.1:" + std::to_string(listener.local_endpoint().port());
        listener.close();
        GitBed bed(executor, {.committer = {.refused_pause = 20ms}});
        const auto done = co_await bed.committer.commit(bed.request(url + "/o/r.git", "x", "1\n"),
                                                        deadline_after(60s));
        CO_ASSERT_TRUE(!done);
        EXPECT_EQ(done.error().code, ErrorCode::unavailable);
        EXPECT_THAT(done.error().message, testing::HasSubstr("connection refused"));
        EXPECT_TRUE(bed.metrics.expose().contains("clones_made_total{result=\"failed\"} 3"));
        co_await bed.stop();
      },
      20s);
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
  const std::string list = list_for_fetch();
  const std::string header = std::string("PACK\0\0\0\2", 8);
  for (const std::string& pack : std::vector<std::string>{
           header + std::string("\xff\xff\xff\xff", 4) + std::string(1000, 'x'),
           header + std::string("\0\0\0\1", 4) +
               std::string("\xbf\xff\xff\xff\xff\xff\xff\xff\xff\x7f") + std::string(1000, 'x')}) {
    commit_to({list_of(list), fetch_answer(packet("NAK\n") + pack)}, {},
              [](const Error& error, CannedServer&) {
                EXPECT_EQ(error.code, ErrorCode::too_large) << error.message;
              });
  }
}

// AC-40: 8 GiB by a delta of 12 bytes.
TEST(HostileServer, AC40_ADeltaBomb) {
  const std::string text(100, 'a');
  const auto blob = pack_object(PackType::blob, text);
  const auto bomb =
      pack_object(PackType::ofs_delta,
                  pack_number(text.size()) + pack_number(std::uint64_t{8} << 30U) + "\x90\x64",
                  pack_distance(blob.size()));
  commit_to({list_of(list_for_fetch()), fetch_answer(packet("NAK\n") + pack_of({blob, bomb}))}, {},
            [](const Error& error, CannedServer&) {
              EXPECT_EQ(error.code, ErrorCode::too_large) << error.message;
            });
}

// AC-40: two deltas that make the same object, by the id of a base within the pack. libgit2 1.5 tries
// the second one again for ever, and loses its memory each time.
TEST(HostileServer, AC40_APackWithoutAnEnd) {
  const std::string text(100, 'a');
  const auto header = "blob 100" + std::string(1, '\0') + text;
  const auto sum = sha1(header);
  const auto delta =
      pack_object(PackType::ref_delta, growing_delta(text.size(), 50), bytes_of(sum));
  commit_to(
      {list_of(list_for_fetch()),
       fetch_answer(packet("NAK\n") + pack_of({pack_object(PackType::blob, text), delta, delta}))},
      {}, [](const Error& error, CannedServer&) {
        EXPECT_EQ(error.code, ErrorCode::invalid_data) << error.message;
      });
}

// AC-40: reports of progress instead of a pack.
TEST(HostileServer, AC40_ProgressWithoutAnEnd) {
  std::string answer = packet("NAK\n");
  for (int i = 0; i < 3'000; ++i) answer += packet("\2" + std::string(1'000, '.'));
  commit_to({list_of(list_for_fetch("side-band-64k ofs-delta")), fetch_answer(answer)}, {},
            [](const Error& error, CannedServer&) {
              EXPECT_EQ(error.code, ErrorCode::protocol) << error.message;
              EXPECT_TRUE(error.message.contains("progress")) << error.message;
            });
}

// AC-40: acknowledgements among the branches. libgit2 takes them for branches when it sorts names.
TEST(HostileServer, AC40_APacketThatIsNoBranch) {
  const std::string list = packet("# service=git-receive-pack\n") + "0000" +
                           packet(kId + " refs/heads/b" + '\0' + "report-status\n") +
                           packet("ACK " + kId + "\n") + packet("ACK " + kId + "\n") + "0000";
  const std::string report = packet("unpack ok\n") + packet("ok refs/heads/main\n") + "0000";
  commit_to({list_of(empty_list("git-upload-pack")), push_list(list), push_answer(report)}, {},
            [](const Error& error, CannedServer&) {
              EXPECT_EQ(error.code, ErrorCode::protocol) << error.message;
            });
}

// AC-28, AC-42: a server that repeats the credential in every place that we quote.
TEST(HostileServer, AC28_AC42_ACredentialThatTheServerRepeats) {
  const std::string said = std::string("use ") + kCanary + " or " +
                           base64_encode(std::string("ann:") + kCanary) + "\x1b[31m!\n";
  const std::string service = packet("# service=git-upload-pack\n") + "0000";
  const auto ends_with = [](std::string_view expected) {
    return [expected](const Error& error, CannedServer&) {
      EXPECT_TRUE(error.message.contains(expected)) << error.message;
      EXPECT_FALSE(error.message.contains('\x1b'));
    };
  };
  commit_to({list_of(service + packet("ERR " + said))}, {}, ends_with("use [redacted] or"));
  commit_to({list_of(list_for_fetch("side-band-64k ofs-delta")),
             fetch_answer(packet("NAK\n") + packet("\3" + said))},
            {}, ends_with("use [redacted] or"));
  commit_to({{.status = 302,
              .headers = {{"Location", std::string("http://") + kCanary +
                                           ".test/o/r.git/info/refs?service=git-upload-pack"}},
              .body = {}}},
            {}, ends_with("redirects to http://[redacted].test"));
  const auto nothing = list_of(empty_list("git-upload-pack"));
  const auto to_push = push_list(empty_list("git-receive-pack"));
  commit_to({nothing, to_push,
             push_answer(packet("unpack ok\n") + packet("ng refs/heads/main " + said) + "0000"),
             push_list(empty_list("git-receive-pack"))},
            {}, ends_with("use [redacted] or"));
  commit_to({nothing, to_push, push_answer(packet("ERR " + said))}, {},
            [](const Error& error, auto&) {
              EXPECT_FALSE(error.message.contains('\x1b')) << error.message;
            });
  // 60,000 bytes of a reason.
  commit_to({nothing, to_push,
             push_answer(packet("unpack ok\n") +
                         packet("ng refs/heads/main " + std::string(60'000, 'x') + "\n") + "0000"),
             push_list(empty_list("git-receive-pack"))},
            {}, ends_with("xxx"));
}

// What an answer with a status tells is quoted where it is text; a push that it refuses is not
// pushed again, and its outcome is known.
TEST(HostileServer, TheBodiesOfRefusalsAreQuoted) {
  const auto says = [](std::string_view expected, ErrorCode code) {
    return [expected, code](const Error& error, CannedServer&) {
      EXPECT_EQ(error.code, code) << error.message;
      EXPECT_TRUE(error.message.contains(expected)) << error.message;
      EXPECT_FALSE(error.message.contains("not known")) << error.message;
    };
  };
  const auto answer = [](int status, std::string type, std::string body) {
    return http::Response{
        .status = status, .headers = {{"Content-Type", std::move(type)}}, .body = std::move(body)};
  };
  const auto to_push = push_list(empty_list("git-receive-pack"));
  const auto nothing = list_of(empty_list("git-upload-pack"));
  commit_to({answer(403, "text/plain; charset=UTF-8",
                    std::string("Write access to ") + kCanary + " not granted.\n")},
            {}, says("it says: \"Write access to [redacted] not granted.\"", ErrorCode::forbidden));
  commit_to({answer(401, "application/json", R"({"message":"The token is expired"})")}, {},
            says("it says: \"The token is expired\"", ErrorCode::unauthenticated));
  commit_to({nothing, to_push, answer(413, "text/plain", "too large\n"), to_push}, {},
            says("takes no request of this size; it says: \"too large\"", ErrorCode::too_large));
  commit_to({nothing, to_push, answer(403, "text/html", "<h1>Forbidden</h1>"), to_push}, {},
            [](const Error& error, CannedServer&) {
              EXPECT_EQ(error.code, ErrorCode::forbidden);
              EXPECT_FALSE(error.message.contains('<')) << error.message;
            });
}

// As of a proxy with a login or of a captive portal: the lists pass, and the push does not.
TEST(HostileServer, ARedirectOfAPushIsARefusal) {
  const auto nothing = list_of(empty_list("git-upload-pack"));
  const auto to_push = push_list(empty_list("git-receive-pack"));
  for (const int status : {302, 307, 511}) {
    commit_to({nothing,
               to_push,
               {.status = status, .headers = {{"Location", "/login"}}, .body = {}},
               to_push},
              {}, [status](const Error& error, CannedServer&) {
                EXPECT_EQ(error.http_status, status) << error.message;
                EXPECT_FALSE(error.message.contains("not known")) << error.message;
              });
  }
}

// As of a page to log in. Git's servers report a push in a media type of its own.
TEST(HostileServer, APageInAnswerToAPushIsARefusal) {
  const auto nothing = list_of(empty_list("git-upload-pack"));
  const auto to_push = push_list(empty_list("git-receive-pack"));
  commit_to({nothing, to_push, list_of("<html>Log in</html>", "text/html"), to_push}, {},
            [](const Error& error, CannedServer& server) {
              EXPECT_EQ(error.code, ErrorCode::protocol) << error.message;
              EXPECT_TRUE(error.message.contains("does not speak Git")) << error.message;
              EXPECT_FALSE(error.message.contains("not known")) << error.message;
              EXPECT_EQ(server.seen().size(), 4U);
            });
}

// AC-40: a list that never ends, a byte now and then. The commit ends at its deadline, and meanwhile
// and afterwards others are served.
TEST(HostileServer, AC40_ASlowServerDelaysNobodyElse) {
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        const auto drip = [](test::RawConnection& connection) -> Task<> {
          co_await connection.read_head();
          co_await connection.send("HTTP/1.1 200 OK\r\nContent-Type: " + std::string(kListType) +
                                   "\r\n\r\n" + packet("# service=git-upload-pack\n") + "0000");
          const auto line = packet(kId + " refs/tags/v\n");
          for (std::size_t at = 0; co_await connection.send(line.substr(at % line.size(), 1));
               ++at) {
            co_await sleep_for(5ms);
          }
        };
        test::HttpScript slow(executor, std::vector<test::HttpScript::Script>(6, drip));
        CannedServer quick(executor, {list_of("", "text/html")});
        GitBed bed(executor, {});
        TaskGroup users(executor);
        int timed_out = 0;
        for (int i = 0; i < 6; ++i) {
          users.spawn("slow", [&, i]() -> Task<> {
            const auto done = co_await bed.committer.commit(
                bed.request(slow.url().to_string() + "/o/" + std::to_string(i) + ".git", "x",
                            "1\n"),
                deadline_after(10s));
            if (!done && done.error().code == ErrorCode::timeout) ++timed_out;
          });
        }
        EXPECT_TRUE(co_await test::eventually([&] { return slow.connections() > 0; },
                                              "a connection to the slow server"));
        const auto done = co_await bed.committer.commit(
            bed.request(quick.url().to_string() + "/o/r.git", "x", "1\n"), deadline_after(9s));
        CO_ASSERT_TRUE(!done);
        EXPECT_EQ(done.error().code, ErrorCode::protocol) << done.error().message;
        EXPECT_EQ(timed_out, 0);
        co_await users.join();
        EXPECT_EQ(timed_out, 6);
        co_await bed.stop();
        co_await slow.stop();
        co_await quick.stop();
      },
      60s);
}

}  // namespace
}  // namespace gitops::app_proxy
