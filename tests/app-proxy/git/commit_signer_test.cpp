#include "app-proxy/git/commit_signer.hpp"

#include <gtest/gtest.h>

#include "app-proxy/git/repository.hpp"
#include "common/core/encoding.hpp"
#include "support/git_server.hpp"
#include "support/process.hpp"

namespace gitops::app_proxy {
namespace {

// A key made by ssh-keygen, of a type and with a passphrase.
std::string key_of(const test::TempDir& folder, const std::string& type,
                   const std::string& passphrase = {}) {
  const auto file = folder / ("key-" + type + passphrase);
  test::run_or_throw(
      {"ssh-keygen", "-q", "-t", type, "-N", passphrase, "-C", "runtime", "-f", file.string()});
  return test::read_file(file);
}

TEST(CommitSigner, SshKeygenAcceptsItsSignatures) {
  const test::TempDir folder;
  const auto signer = CommitSigner::from_openssh_key(key_of(folder, "ed25519"));
  ASSERT_TRUE(signer) << signer.error().message;
  EXPECT_EQ(signer->public_key() + " runtime\n", test::read_file(folder / "key-ed25519.pub"));
  test::write_file(folder / "allowed", "runtime@example.test " + signer->public_key() + "\n");
  for (const std::string& text :
       {std::string(), std::string("tree 1\n"), std::string(100'000, 'x')}) {
    test::write_file(folder / "signature", signer->sign(text) + "\n");
    const auto verify = [&](const std::string& name_space, const std::string& signed_text) {
      return test::run_command(
          {"ssh-keygen", "-Y", "verify", "-f", (folder / "allowed").string(), "-I",
           "runtime@example.test", "-n", name_space, "-s", (folder / "signature").string()},
          {}, signed_text);
    };
    const auto verified = verify("git", text);
    EXPECT_TRUE(verified.ok()) << verified.out << verified.err;
    EXPECT_FALSE(verify("git", text + " ").ok());
    EXPECT_FALSE(verify("file", text).ok());
  }
}

// [AC-42]
TEST(CommitSigner, AC42_GitVerifiesTheCommit) {
  const test::TempDir folder;
  const auto signer = std::make_shared<const CommitSigner>(
      CommitSigner::from_openssh_key(key_of(folder, "ed25519")).value());
  const auto bare = folder / "r.git";
  auto repository = BareRepository::create(bare).value();
  CommitSpec spec{.changes = {{.path = "a", .content = "1\n"}},
                  .message = "signed\n\nwith a body",
                  .author = {.name = "Ann", .email = "ann@example.test"},
                  .time = WallTime(std::chrono::hours(490'000)),
                  .signer = signer};
  const auto first = repository.commit({}, spec);
  ASSERT_TRUE(first) << first.error().message;
  spec.changes[0].content = "2\n";
  const auto second = repository.commit(*first, spec);
  spec.changes[0].content = "3\n";
  spec.signer = {};
  const auto unsigned_one = repository.commit(*second, spec);
  ASSERT_TRUE(unsigned_one);
  test::write_file(folder / "allowed", "ann@example.test " + signer->public_key() + "\n");
  const auto verify = [&](const std::string& commit, const std::string& allowed) {
    return test::run_command({"git", "--git-dir", bare.string(), "-c", "gpg.format=ssh", "-c",
                              "gpg.ssh.allowedSignersFile=" + allowed, "verify-commit", commit},
                             test::isolated_git_environment(folder.path()));
  };
  for (const auto& commit : {*first, *second}) {
    const auto verified = verify(commit, (folder / "allowed").string());
    EXPECT_TRUE(verified.ok()) << verified.err;
    EXPECT_TRUE(verified.err.contains("Good \"git\" signature for ann@example.test"))
        << verified.err;
  }
  EXPECT_FALSE(verify(*unsigned_one, (folder / "allowed").string()).ok());
  test::write_file(folder / "others", "");
  EXPECT_FALSE(verify(*second, (folder / "others").string()).ok());
}

TEST(CommitSigner, RefusesOtherKeys) {
  const test::TempDir folder;
  const auto error_of = [](std::string_view text) {
    const auto signer = CommitSigner::from_openssh_key(text);
    return signer ? std::string() : signer.error().message;
  };
  EXPECT_TRUE(error_of(key_of(folder, "ecdsa")).contains("ssh-ed25519"));
  EXPECT_TRUE(error_of(key_of(folder, "ed25519", "secret")).contains("passphrase"));
  EXPECT_TRUE(error_of("").contains("OpenSSH"));
  EXPECT_TRUE(error_of("-----BEGIN RSA PRIVATE KEY-----\n").contains("OpenSSH"));
  const auto good = key_of(folder, "ed25519");
  // Cut short, and with each byte changed: an error or the key, never anything else.
  for (std::size_t size = 0; size < good.size(); size += 7) {
    EXPECT_NE(error_of(good.substr(0, size)), "") << size;
  }
  const auto expected = CommitSigner::from_openssh_key(good)->public_key();
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    const auto signer = CommitSigner::from_openssh_key(changed);
    if (signer) EXPECT_EQ(signer->public_key(), expected) << at;
  }
}

TEST(SigningKey, FollowsItsFile) {
  const test::TempDir folder;
  const auto file = folder / "ssh-privatekey";
  SigningKey missing((folder / "none").string());
  ASSERT_FALSE(missing.current());
  EXPECT_EQ(missing.current().error().subcode, kNoSigningKey);
  test::write_file(file, "no key\n");
  SigningKey damaged(file.string());
  ASSERT_FALSE(damaged.current());
  EXPECT_TRUE(damaged.current().error().message.contains("OpenSSH"));
  test::write_file(file, key_of(folder, "ed25519"));
  SigningKey key(file.string());
  const auto first = key.current();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(key.current(), *first);  // not read again
  EXPECT_EQ((*first)->public_key() + " runtime\n", test::read_file(folder / "key-ed25519.pub"));
}

}  // namespace
}  // namespace gitops::app_proxy
