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
