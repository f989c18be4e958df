// image/release.py: the folder of a release, made of small programs in place of the daemons, and what proves it. The
// real helm packs the charts in tests/peers.

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "image/stub_programs.hpp"
#include "support/process.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kVersion = "9.8.7";
const std::vector<std::string> kImages{"gitops-runtime", "gitopsctl"};

fs::path tree() {
  return GITOPS_SOURCE_DIR;
}

CommandResult release(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"python3", tree() / "image/release.py"});
  return run_command(arguments, {}, {}, std::chrono::seconds(120));
}

// A key pair, as docs/operations/release.md makes it.
struct Keys {
  Keys(const fs::path& folder, const std::string& name, const std::vector<std::string>& algorithm)
      : secret(folder / (name + ".pem")), open(folder / (name + ".pub")) {
    std::vector<std::string> command{"openssl", "genpkey", "-out", secret};
    command.insert(command.end(), algorithm.begin(), algorithm.end());
    run_or_throw(command);
    run_or_throw({"openssl", "pkey", "-in", secret, "-pubout", "-out", open});
  }
  fs::path secret, open;
};
const std::vector<std::string> kRsa{"-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"};
const std::vector<std::string> kEcdsa{"-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"};

class ReleaseTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = std::make_unique<Shared>();
    const auto done = make(made(), rsa(), bin());
    if (!done.ok()) throw std::runtime_error(done.err);
  }
  static void TearDownTestSuite() { shared_.reset(); }

  // A release with a signature by RSA, which only tests read.
  static fs::path made() { return shared_->folder / "made"; }
  static const Keys& rsa() { return shared_->rsa; }
  // A copy of it that a test may change.
  fs::path copy_of_made() const {
    fs::copy(made(), folder_ / "copy", fs::copy_options::recursive);
    return folder_ / "copy";
  }
  static CommandResult make(const fs::path& out, const Keys& keys, const fs::path& bin) {
    return release({"make", "--bin", bin, "--out", out, "--key", keys.secret, "--helm",
                    shared_->folder / "helm", "--without-argo", "--version", kVersion, "--level",
                    "1", kImages[0], kImages[1]});
  }
  static CommandResult verify(const fs::path& out, const Keys& keys) {
    return release({"verify", out, "--key", keys.open});
  }
  static fs::path bin() { return shared_->folder / "bin"; }
  // The content of each file, by its path.
  static std::map<std::string, std::string> files(const fs::path& out) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(out)) {
      if (entry.is_directory()) continue;
      all[fs::relative(entry.path(), out)] = read_file(entry.path());
    }
    return all;
  }

  TempDir folder_;

 private:
  struct Shared {
    Shared() {
      make_stub_programs(folder / "bin");
      write_file(folder / "helm",
                 "#!/bin/sh\n"
                 "[ \"$1\" = package ] || exit 1\n"
                 "version=$(sed -n 's/^version: //p' \"$2/Chart.yaml\")\n"
                 "cd \"$2/..\" && tar -czf \"$4/$(basename \"$2\")-$version.tgz\" \"$(basename "
                 "\"$2\")\"\n");
      fs::permissions(folder / "helm", fs::perms::owner_all);
    }
    TempDir folder;
    Keys rsa{folder.path(), "rsa", kRsa};
  };
  static inline std::unique_ptr<Shared> shared_;
};

TEST_F(ReleaseTest, HasTheSameBytesFromAnotherFolderUnderAnotherUmask) {
  make_stub_programs(folder_ / "elsewhere/bin");
  fs::permissions(folder_ / "elsewhere/bin/gitopsctl", fs::perms::owner_all);
  const auto mask = ::umask(077);
  const auto second = make(folder_ / "a/second", rsa(), folder_ / "elsewhere/bin");
  ::umask(mask);
  ASSERT_TRUE(second.ok()) << second.err;
  const auto ours = files(made());
  const auto others = files(folder_ / "a/second");
  ASSERT_EQ(ours.size(), others.size());
  for (const auto& [path, content] : ours) {
    EXPECT_TRUE(others.contains(path) && others.at(path) == content) << path;
  }
}

TEST_F(ReleaseTest, HasImagesChartsProgramsAndBillsOfMaterials) {
  const auto all = files(made());
  for (const auto* path :
       {"NOTES.md", "SHA256SUMS", "SHA256SUMS.sig", "charts/gitops-control-plane-9.8.7.spdx.json",
        "charts/gitops-control-plane-9.8.7.tgz", "charts/gitops-runtime-9.8.7.spdx.json",
        "charts/gitops-runtime-9.8.7.tgz", "images/gitops-runtime.spdx.json",
        "images/gitops-runtime.tar", "images/gitopsctl.spdx.json", "images/gitopsctl.tar",
        "images/layout/index.json", "images/signatures/index.json",
        "programs/gitops-runtime-9.8.7-linux-amd64.spdx.json",
        "programs/gitops-runtime-9.8.7-linux-amd64.tar.gz",
        "programs/gitopsctl-9.8.7-linux-amd64.spdx.json",
        "programs/gitopsctl-9.8.7-linux-amd64.tar.gz"}) {
    EXPECT_TRUE(all.contains(path)) << path;
  }
  for (const auto& [path, content] : all) {
    if (path.ends_with(".spdx.json")) {
      EXPECT_EQ(json::parse(content).at("spdxVersion"), "SPDX-2.3") << path;
    }
  }
  const auto index = json::parse(all.at("images/layout/index.json"));
  for (const auto& entry : index.at("manifests")) {
    EXPECT_THAT(all.at("NOTES.md"), HasSubstr(entry.at("digest").get<std::string>()));
  }
  EXPECT_THAT(all.at("NOTES.md"), StartsWith("# GitOps Runtime 9.8.7\n\nThe first release."));
  const auto chart = run_or_throw(
      {"tar", "-xzOf", made() / "charts/gitops-runtime-9.8.7.tgz", "gitops-runtime/Chart.yaml"});
  EXPECT_THAT(chart, HasSubstr("\nversion: 9.8.7\nappVersion: 9.8.7\n"));
  EXPECT_THAT(chart, HasSubstr("image: gitops-runtime:9.8.7"));
}

TEST_F(ReleaseTest, HasProgramsThatRunWithTheLibrariesThatTheyName) {
  run_or_throw({"tar", "-xzf", made() / "programs/gitops-runtime-9.8.7-linux-amd64.tar.gz", "-C",
                folder_.path()});
  const auto top = folder_ / "gitops-runtime-9.8.7-linux-amd64";
  for (const auto* name : {"tunnel-client", "gitops-demo"}) {
    EXPECT_THAT(run_or_throw({top / name, "hello"}), StartsWith("hello 1.")) << name;
  }
  EXPECT_EQ(read_file(top / "NEEDS"), "libc6\nzlib1g\n");
  EXPECT_EQ(read_file(top / "LICENSE"), read_file(tree() / "LICENSE"));
  const auto document = json::parse(read_file(top / "gitops-runtime.spdx.json"));
  std::set<std::string> dynamic;
  for (const auto& relation : document.at("relationships")) {
    if (relation.at("relationshipType") == "DYNAMIC_LINK") {
      dynamic.insert(relation.at("relatedSpdxElement"));
    }
  }
  EXPECT_THAT(dynamic, ElementsAre("SPDXRef-deb-libc6", "SPDXRef-deb-zlib1g"));
  const auto of_demo = json::parse(read_file(top / "gitops-demo.spdx.json"));
  EXPECT_EQ(of_demo.at("/packages/0/name"_json_pointer), "gitops-demo");
}

TEST_F(ReleaseTest, NamesWhatTheDemoNeedsAndIsRefusedWithoutIt) {
  fs::copy(bin(), folder_ / "bin");
  compile_stub(folder_ / "bin/gitops-demo", [] {
    auto flags = with_symbols();
    flags.insert(flags.end(), {"-Wl,--no-as-needed", "-ldeflate"});
    return flags;
  }());
  const auto with_demo = make(folder_ / "out", rsa(), folder_ / "bin");
  ASSERT_TRUE(with_demo.ok()) << with_demo.err;
  EXPECT_EQ(run_or_throw({"tar", "-xzOf",
                          folder_ / "out/programs/gitops-runtime-9.8.7-linux-amd64.tar.gz",
                          "gitops-runtime-9.8.7-linux-amd64/NEEDS"}),
            "libc6\nlibdeflate0\nzlib1g");
  fs::remove(folder_ / "bin/gitops-demo");
  EXPECT_THAT(make(folder_ / "out", rsa(), folder_ / "bin").err, HasSubstr("gitops-demo"));
}

// As `cosign verify --key` reads it: a tag for the image's digest, one layer, which is signed.
TEST_F(ReleaseTest, SignsImagesInTheFormOfCosign) {
  const Keys ecdsa(folder_.path(), "ecdsa", kEcdsa);
  const auto by_ecdsa = make(folder_ / "out", ecdsa, bin());
  ASSERT_TRUE(by_ecdsa.ok()) << by_ecdsa.err;
  for (const auto& [keys, out] : {std::pair(rsa(), made()), std::pair(ecdsa, folder_ / "out")}) {
    auto all = files(out);
    const auto in = [&](const std::string& layout, const json& descriptor) {
      return all.at("images/" + layout + "/blobs/sha256/" +
                    descriptor.at("digest").get<std::string>().substr(7));
    };
    std::set<std::string> tags;
    for (const auto& entry : json::parse(all.at("images/layout/index.json")).at("manifests")) {
      auto tag = entry.at("digest").get<std::string>() + ".sig";
      tags.insert(tag.replace(6, 1, "-"));
    }
    for (const auto& entry : json::parse(all.at("images/signatures/index.json")).at("manifests")) {
      const std::string tag =
          entry.at("/annotations/org.opencontainers.image.ref.name"_json_pointer);
      EXPECT_EQ(tags.erase(tag), 1U);
      const auto layer = json::parse(in("signatures", entry)).at("/layers/0"_json_pointer);
      EXPECT_EQ(layer.at("mediaType"), "application/vnd.dev.cosign.simplesigning.v1+json");
      const auto payload = in("signatures", layer);
      const auto critical = json::parse(payload).at("critical");
      EXPECT_EQ(critical.at("type"), "cosign container image signature");
      const std::string digest = critical.at("/image/docker-manifest-digest"_json_pointer);
      EXPECT_EQ("sha256-" + digest.substr(7) + ".sig", tag);
      write_file(folder_ / "payload", payload);
      write_file(
          folder_ / "signature.base64",
          layer.at("annotations").at("dev.cosignproject.cosign/signature").get<std::string>());
      run_or_throw({"openssl", "base64", "-d", "-A", "-in", folder_ / "signature.base64", "-out",
                    folder_ / "signature"});
      EXPECT_EQ(run_or_throw({"openssl", "dgst", "-sha256", "-verify", keys.open, "-signature",
                              folder_ / "signature", folder_ / "payload"}),
                "Verified OK");
    }
    EXPECT_THAT(tags, IsEmpty());
  }
}

TEST_F(ReleaseTest, FindsEachChangedByte) {
  const auto out = copy_of_made();
  const auto right = verify(out, rsa());
  ASSERT_TRUE(right.ok()) << right.err;
  EXPECT_THAT(right.out, HasSubstr("the signatures of 2 images are right"));
  const auto changed =
      run_command({"python3", tree() / "tests/image/changed_bytes.py", out, rsa().open, "5"}, {},
                  {}, std::chrono::seconds(200));
  // Nothing but the number of changes.
  EXPECT_THAT(changed.out, testing::MatchesRegex("[0-9]+\n")) << changed.err;
  EXPECT_GT(std::atoi(changed.out.c_str()), 120);
}

TEST_F(ReleaseTest, FindsOtherKeysAndFilesThatAreMissingOrAdded) {
  const auto out = copy_of_made();
  const Keys other(folder_.path(), "other", kRsa);
  EXPECT_THAT(verify(out, other).err, HasSubstr("SHA256SUMS: its signature is not by this key"));

  write_file(out / "charts/extra.tgz", "x");
  EXPECT_THAT(verify(out, rsa()).err, HasSubstr("charts/extra.tgz: not in SHA256SUMS"));
  fs::remove(out / "charts/extra.tgz");
  write_file(out / "images/signatures/extra", "x");
  EXPECT_THAT(verify(out, rsa()).err, HasSubstr("images/signatures/extra: not as it was signed"));
  fs::remove(out / "images/signatures/extra");

  // A link to the right content could be changed afterwards.
  fs::rename(out / "NOTES.md", folder_ / "notes");
  EXPECT_THAT(verify(out, rsa()).err, HasSubstr("NOTES.md: missing"));
  fs::create_symlink(folder_ / "notes", out / "NOTES.md");
  EXPECT_THAT(verify(out, rsa()).err, HasSubstr("NOTES.md: its checksum is another one"));
}

TEST_F(ReleaseTest, FindsTheSignaturesOfAnotherRelease) {
  const auto out = copy_of_made();
  fs::copy(bin(), folder_ / "bin");
  compile_stub(folder_ / "bin/gitopsctl", with_symbols(), "int other = 1;\n");
  const auto another = make(folder_ / "another", rsa(), folder_ / "bin");
  ASSERT_TRUE(another.ok()) << another.err;
  fs::remove_all(out / "images/signatures");
  fs::rename(folder_ / "another/images/signatures", out / "images/signatures");
  const auto refused = verify(out, rsa());
  EXPECT_THAT(refused.err, HasSubstr("image gitopsctl, sha256:"));
  EXPECT_THAT(refused.err, HasSubstr("no signature by this key"));
}

TEST_F(ReleaseTest, RefusesKeysThatCosignWouldNotTake) {
  const auto out = folder_ / "out";
  const Keys ed25519(folder_.path(), "ed25519", {"-algorithm", "ED25519"});
  EXPECT_THAT(make(out, ed25519, bin()).err,
              HasSubstr("neither an ECDSA key on P-256 nor an RSA key"));
  const Keys short_one(folder_.path(), "short",
                       {"-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"});
  EXPECT_THAT(make(out, short_one, bin()).err, HasSubstr("nor an RSA key of 2048 bits or more"));
  write_file(folder_ / "ed25519.pem", "x");
  EXPECT_THAT(make(out, ed25519, bin()).err, HasSubstr("is no key that openssl reads"));
  EXPECT_FALSE(fs::exists(out));
}

// -- the tree --

class ReleaseTree : public testing::Test {
 protected:
  static constexpr const char* kPlaces[] = {"CMakeLists.txt",
                                            "CHANGELOG.md",
                                            "charts/gitops-control-plane/Chart.yaml",
                                            "charts/gitops-runtime/Chart.yaml",
                                            "apps/control-plane/console/package.json",
                                            "apps/control-plane/console/package-lock.json",
                                            "tests/console/package.json",
                                            "tests/console/package-lock.json"};

  void SetUp() override {
    for (const auto* place : kPlaces) write_file(folder_ / place, read_file(tree() / place));
    git({"init", "--quiet"});
    commit();
  }
  void git(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"git", "-C", folder_.path(), "-c", "user.name=Dana", "-c",
                                         "user.email=dana@example.com"});
    run_or_throw(arguments);
  }
  void commit() {
    git({"add", "."});
    git({"commit", "--quiet", "-m", "x"});
  }
  CommandResult check() const { return release({"check", "--source", folder_.path()}); }

  TempDir folder_;
};

TEST_F(ReleaseTree, IsRefusedWithChangesThatAreNotCommitted) {
  const auto right = check();
  ASSERT_TRUE(right.ok()) << right.err;
  write_file(folder_ / "new", "x");
  EXPECT_THAT(check().err, HasSubstr("changes that are not committed: new"));
  commit();
  EXPECT_TRUE(check().ok());
  write_file(folder_ / "new", "y");
  EXPECT_FALSE(check().ok());
}

TEST_F(ReleaseTree, IsRefusedWhenAnyPlaceHasAnotherVersion) {
  const auto right = check();
  ASSERT_TRUE(right.ok()) << right.err;
  const auto version = right.out.substr(0, right.out.find('\n'));
  for (const auto* place : kPlaces) {
    const auto before = read_file(folder_ / place);
    std::size_t changed = 0;
    for (auto at = before.find(version); at != std::string::npos;
         at = before.find(version, at + 1)) {
      // The versions of others, and dates.
      const auto line = before.substr(before.rfind('\n', at) + 1, at - before.rfind('\n', at) - 1);
      const bool is_lock = std::string(place).ends_with("-lock.json");
      if (is_lock && changed == 2) break;
      if (std::string(place) == "CHANGELOG.md" && !line.starts_with("## [")) continue;
      auto text = before;
      text.replace(at, version.size(), "7.7.7");
      write_file(folder_ / place, text);
      commit();
      const auto refused = check();
      EXPECT_FALSE(refused.ok()) << place << ": " << line;
      EXPECT_THAT(refused.err, HasSubstr(version)) << place << ": " << line;
      ++changed;
    }
    EXPECT_GT(changed, 0U) << place;
    write_file(folder_ / place, before);
    commit();
  }
}

}  // namespace
}  // namespace gitops::test
