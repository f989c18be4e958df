#include "app-proxy/git/answer_check.hpp"

#include <gtest/gtest.h>

#include "app-proxy/git/packs.hpp"

namespace gitops::app_proxy {
namespace {

using test::pack_object;
using test::pack_of;
using test::packet;
using test::PackType;

const std::string kId(40, '1');
const std::string kZero(40, '0');
const std::string kService = packet("# service=git-upload-pack\n") + "0000";

// The list that libgit2 sees, or the error; alike byte by byte.
std::string shown(const std::string& list, const std::vector<std::string>& branches = {"a"}) {
  std::string first;
  for (const std::size_t piece : {list.size() + 1, std::size_t{1}}) {
    ReferenceList check("git-upload-pack", branches);
    std::string out;
    for (std::size_t at = 0; at < list.size(); at += piece) {
      if (const auto fed = check.feed(std::string_view(list).substr(at, piece), out); !fed) {
        out = fed.error().message;
        break;
      }
    }
    if (piece > list.size()) {
      first = out;
    } else {
      EXPECT_EQ(out, first);
    }
  }
  return first;
}

std::string line(const std::string& name, const std::string& capabilities = {}) {
  return packet(kId + " " + name + (capabilities.empty() ? "" : '\0' + capabilities) + "\n");
}

TEST(ReferenceList, KeepsWhatIsUsed) {
  EXPECT_EQ(shown(kService +
                      line("HEAD",
                           "multi_ack thin-pack side-band-64k ofs-delta shallow no-progress "
                           "symref=HEAD:refs/heads/main symref=refs/x:refs/y agent=git/2.39") +
                      line("refs/heads/main") + line("refs/pull/1/head") + line("refs/tags/v1") +
                      line("refs/tags/v1^{}") + line("refs/heads/x") + "0000",
                  {"x"}),
            kService +
                line("HEAD", "multi_ack side-band-64k ofs-delta symref=HEAD:refs/heads/main") +
                line("refs/heads/main") + line("refs/heads/x") + "0000");
  // Capabilities go with the first line that is kept.
  EXPECT_EQ(shown(kService + line("refs/changes/1", "ofs-delta") + line("refs/heads/a") + "0000"),
            kService + line("refs/heads/a", "ofs-delta") + "0000");
  const auto none = packet(kZero + " capabilities^{}" + '\0' + "ofs-delta\n") + "0000";
  EXPECT_EQ(shown(kService + none), kService + none);
  EXPECT_EQ(shown(kService + line("refs/tags/v1", "ofs-delta") + "0000"), kService + none);
  EXPECT_EQ(shown(kService + "0000"), kService + "0000");
}

// Forms of the protocol that exist are named, so that nobody looks for a broken server.
TEST(ReferenceList, SaysWhatIsNotSupported) {
  const auto long_id = std::string(64, '1');
  const auto is_unsupported = [](const std::string& list, std::string_view word) {
    ReferenceList check("git-upload-pack", {"a"});
    std::string out;
    const auto fed = check.feed(list, out);
    ASSERT_FALSE(fed) << word;
    EXPECT_EQ(fed.error().code, ErrorCode::unsupported) << fed.error().message;
    EXPECT_TRUE(fed.error().message.contains(word)) << fed.error().message;
  };
  is_unsupported(kService + packet(long_id + " HEAD" + '\0' + "ofs-delta object-format=sha256\n"),
                 "SHA-256");
  is_unsupported(kService + packet(std::string(64, '0') + " capabilities^{}" + '\0' +
                                   "report-status object-format=sha256 agent=git\n"),
                 "SHA-256");
  is_unsupported(kService + line("refs/heads/a", "ofs-delta") + packet("shallow " + kId + "\n"),
                 "shallow");
  is_unsupported(packet("version 2\n") + packet("ls-refs=unborn\n") + "0000", "version 2");
  EXPECT_EQ(shown(kService + line("refs/heads/a", "ofs-delta object-format=sha1") + "0000"),
            kService + line("refs/heads/a", "ofs-delta") + "0000");
}

TEST(UnbornHead, IsAskedForAndRead) {
  EXPECT_TRUE(announces_unborn_head(packet("version 2\n") + packet("agent=git/2.39\n") +
                                    packet("ls-refs=unborn\n") + "0000"));
  EXPECT_TRUE(
      announces_unborn_head(kService + packet("version 2\n") + packet("ls-refs=x unborn\n")));
  for (const auto& other : {packet("version 2\n") + packet("ls-refs\n") + "0000",
                            kService + line("HEAD", "ofs-delta"), std::string("<html>")}) {
    EXPECT_FALSE(announces_unborn_head(other)) << other;
  }
  EXPECT_EQ(head_request(),
            "0014command=ls-refs\n0001000csymrefs\n000bunborn\n0014ref-prefix HEAD\n0000");
  EXPECT_EQ(branch_of_head(packet("unborn HEAD symref-target:refs/heads/trunk\n") + "0000"),
            "trunk");
  EXPECT_EQ(branch_of_head(packet(kId + " HEAD symref-target:refs/heads/a/b\n") + "0000"), "a/b");
  for (const auto& other :
       {std::string(), std::string("0000"), packet(kId + " HEAD\n"),
        packet("unborn HEAD symref-target:refs/heads/../x\n"), packet("unborn\n"), packet("\n")}) {
    EXPECT_EQ(branch_of_head(other), "") << other;
  }
}

// A server with thousands of branches costs no more than the ones that a commit needs.
TEST(ReferenceList, ShowsBranchesThatAreAskedForAndTheDefaultOne) {
  std::string others;
  for (int i = 0; i < 1'000; ++i) others += line("refs/heads/other/" + std::to_string(i));
  EXPECT_EQ(shown(kService + line("HEAD", "symref=HEAD:refs/heads/main ofs-delta") + others +
                      line("refs/heads/main") + line("refs/heads/work") + line("refs/heads/work2") +
                      "0000",
                  {"work", "absent"}),
            kService + line("HEAD", "symref=HEAD:refs/heads/main ofs-delta") +
                line("refs/heads/main") + line("refs/heads/work") + "0000");
  // Each once, however often the server repeats it.
  const auto again = line("refs/heads/a") + line("HEAD");
  EXPECT_EQ(shown(kService + line("HEAD", "ofs-delta") + again + again + again + "0000"),
            kService + line("HEAD", "ofs-delta") + line("refs/heads/a") + "0000");
  EXPECT_EQ(
      shown(kService + line("HEAD", "symref=HEAD:refs/heads/x symref=HEAD:refs/heads/y ofs-delta") +
            line("refs/heads/x") + line("refs/heads/y") + "0000"),
      kService + line("HEAD", "symref=HEAD:refs/heads/x ofs-delta") + line("refs/heads/x") +
          "0000");
}

TEST(ReferenceList, KnowsWhichOfTheNamesItHas) {
  ReferenceList list("git-upload-pack", {"a", "b", "refs/tags/b"});
  std::string out;
  ASSERT_TRUE(list.feed(kService + line("refs/heads/a", "ofs-delta") + line("refs/heads/c") +
                            line("refs/tags/b") + "0000",
                        out));
  EXPECT_TRUE(list.has("refs/heads/a"));
  EXPECT_TRUE(list.has("refs/tags/b"));
  EXPECT_FALSE(list.has("refs/heads/b"));
  EXPECT_FALSE(list.has("refs/heads/c")) << "nobody asked for it";
}

TEST(ReferenceList, KnowsBranchesThatItDoesNotShow) {
  for (const auto& [name, has] : {std::pair{"refs/heads/other", true},
                                  {"refs/tags/v1", false},
                                  {"refs/heads/a..b", false},
                                  {"HEAD", false}}) {
    ReferenceList list("git-upload-pack", {"a"});
    std::string out;
    ASSERT_TRUE(list.feed(kService + line(name, "ofs-delta") + "0000", out)) << name;
    EXPECT_EQ(list.has_branches(), has) << name;
  }
}

// [AC-39]: names that would lead elsewhere, as references of the clone or in a message.
TEST(ReferenceList, AC39_DropsNamesThatNoBranchMayHave) {
  for (const std::string name :
       {"refs/heads/../../config", "refs/heads/a..b", "refs/heads//etc", "refs/heads/x.lock",
        "refs/heads/-x", "refs/heads/a b", "refs/heads/\x1b[31m", "refs/heads/", "../HEAD",
        "HEAD/../../x", "refs/heads/@{1}"}) {
    EXPECT_EQ(shown(kService + line("refs/heads/a", "ofs-delta") + line(name) + "0000"),
              kService + line("refs/heads/a", "ofs-delta") + "0000")
        << name;
  }
  const std::string huge = "refs/heads/" + std::string(65'000, 'a');
  EXPECT_EQ(shown(kService + line(huge, "ofs-delta") + "0000"),
            kService + packet(kZero + " capabilities^{}" + '\0' + "ofs-delta\n") + "0000");
  EXPECT_EQ(shown(kService + line("HEAD", "symref=HEAD:refs/heads/../x ofs-delta") + "0000"),
            kService + line("HEAD", "ofs-delta") + "0000");
}

// [AC-40]: libgit2 would take such packets for branches.
TEST(ReferenceList, AC40_RefusesPacketsThatAreNoReferences) {
  for (const std::string& wrong : std::vector<std::string>{
           packet("ACK " + kId + "\n"), packet("NAK\n"), packet("ok x\n"), packet("unpack ok\n"),
           packet("\1data"), packet("# comment\n"), packet(kId + "\n"), packet(kId),
           packet("111 refs/heads/a\n"), "0004", "0001", "zzzz", "PACK"}) {
    for (const bool is_first : {true, false}) {
      const auto text = shown(kService + (is_first ? "" : line("HEAD", "ofs-delta")) + wrong);
      EXPECT_TRUE(text.contains("the server's answer")) << wrong << ": " << text;
    }
  }
  EXPECT_EQ(shown(kService + packet("ERR go away\n")), "the server reports: go away");
  EXPECT_TRUE(shown(packet("# service=git-receive-pack\n") + "0000").contains("no list"));
  EXPECT_TRUE(shown("0000").contains("no list"));
  EXPECT_TRUE(shown("<html>").contains("malformed packet"));
}

// What a push report says, alike byte by byte.
std::pair<std::string, std::string> reported(const std::string& answer) {
  PushReport whole;
  whole.feed(answer);
  PushReport pieces;
  for (std::size_t at = 0; at < answer.size(); ++at) {
    pieces.feed(std::string_view(answer).substr(at, 1));
  }
  EXPECT_EQ(whole.refusal(), pieces.refusal());
  EXPECT_EQ(whole.words(), pieces.words());
  return {whole.refusal(), whole.words()};
}

TEST(PushReport, TellsARefusalAndTheWordsBesideIt) {
  using Said = std::pair<std::string, std::string>;
  const auto ok = packet("unpack ok\n") + packet("ok refs/heads/a\n") + "0000";
  EXPECT_EQ(reported(ok), (Said{"", ""}));
  EXPECT_EQ(reported(packet("\1" + ok) + "0000"), (Said{"", ""}));
  const auto declined = packet("unpack ok\n") + packet("ng refs/heads/a hook declined\n") + "0000";
  EXPECT_EQ(reported(declined).first, "hook declined");
  // In a side band, also in parts of it, with keep-alives.
  EXPECT_EQ(
      reported(packet("\2Checking: 10% (1/10)\rChecking: 100% (10/10)\n") + packet("\2no tick") +
               packet("\2et\r\n==\nask Ann") + packet("\1") + packet("\1" + declined.substr(0, 7)) +
               packet("\1" + declined.substr(7)) + "0000"),
      (Said{"hook declined", "no ticket ask Ann"}));
  // The reason of the branch says only that there is another one.
  EXPECT_EQ(reported(packet("unpack index-pack abnormal exit\n") +
                     packet("ng refs/heads/a unpacker error\n") + "0000")
                .first,
            "unpack index-pack abnormal exit");
  EXPECT_EQ(reported(packet("\3the disk is full\n")).first, "the disk is full");
  EXPECT_EQ(reported(packet("ERR go away\n")).first, "go away");
  EXPECT_EQ(reported(packet("ng refs/heads/a\n")).first, "no reason");
}

TEST(PushReport, AMalformedAnswerSaysNothing) {
  for (const std::string& answer :
       {std::string(), std::string("<html>"), std::string("0000"), packet("\1zzzz"),
        packet("\1"
               "0004"),
        std::string("PACK") + packet("ng refs/heads/a no\n"), packet("hello\n")}) {
    EXPECT_EQ(reported(answer).first, "") << answer;
  }
}

// [AC-40]
TEST(PushReport, AC40_EndlessWordsAreBounded) {
  PushReport report;
  for (int i = 0; i < 1'000; ++i) report.feed(packet("\2" + std::string(1'000, 'x')));
  for (int i = 0; i < 1'000; ++i) report.feed(packet("\2another line\n"));
  EXPECT_LT(report.words().size(), 4'000U);
}

Result<void> answered(const std::string& answer) {
  FetchAnswer check;
  return check.feed(answer);
}

const std::string kPack = pack_of({pack_object(PackType::blob, "hello\n")});

TEST(FetchAnswer, TakesPacksInASideBandAndBare) {
  EXPECT_TRUE(answered(packet("NAK\n") + kPack));
  EXPECT_TRUE(answered(packet("ACK " + kId + " common\n") + packet("ACK " + kId + " ready\n") +
                       packet("ACK " + kId + "\n") + kPack));
  EXPECT_TRUE(answered(packet("NAK\n") + packet("\2counting\r") +
                       packet("\1" + kPack.substr(0, 9)) + packet("\1") +
                       packet("\1" + kPack.substr(9)) + "0000"));
  EXPECT_TRUE(answered(packet("ACK " + kId + " common\n") + packet("NAK\n")));  // a round before it
}

// [AC-40]
TEST(FetchAnswer, AC40_RefusesWhatLibgit2WouldReadAsSomethingElse) {
  // Data before the acknowledgement, which libgit2 drops: the pack would be another one than was
  // checked.
  EXPECT_FALSE(answered(packet("\1" + kPack) + packet("NAK\n")));
  EXPECT_FALSE(answered(packet("ACK " + kId + " common\n") + packet("\1" + kPack)));
  EXPECT_FALSE(answered(packet("ACK " + kId + " common\n") + kPack));
  EXPECT_FALSE(answered(packet("NAK\n") + packet("\1" + kPack) + packet("\1" + kPack)));
  EXPECT_FALSE(answered(packet("NAK\n") + packet("\1" + kPack.substr(0, 20)) + "0000"));
  EXPECT_FALSE(answered(packet("NAK\n") + packet("\2x") + kPack));
  EXPECT_FALSE(answered(packet("NAK\n") + packet("NAK\n")));
  EXPECT_FALSE(answered(packet("NAK\n") + packet(kId + " refs/heads/a\n")));
  EXPECT_FALSE(answered(packet("NAK\n") + packet("\4x")));
  EXPECT_FALSE(answered("0000"));
  EXPECT_FALSE(answered(packet("shallow " + kId)));
  EXPECT_FALSE(answered(packet("ACK " + kId + " maybe\n")));
  const auto said = answered(packet("NAK\n") + packet("\3the disk is full\n"));
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().message, "the server reports: the disk is full");
}

// [AC-40]
TEST(FetchAnswer, AC40_EndlessProgressIsCutOff) {
  FetchAnswer check;
  ASSERT_TRUE(check.feed(packet("NAK\n")));
  const auto report = packet("\2" + std::string(1'000, '.'));
  int sent = 0;
  while (sent < 10'000 && check.feed(report)) ++sent;
  EXPECT_LT(sent, 1'100);
  EXPECT_GT(sent, 900);
}

}  // namespace
}  // namespace gitops::app_proxy
