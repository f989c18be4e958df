// image/build.py with small programs in place of the daemons.

#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "image/stub_programs.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ImageTest : public testing::Test {
 protected:
  void SetUp() override { make_stub_programs(bin()); }
  fs::path bin() const { return folder_ / "bin"; }

  CommandResult build(const std::string& out, const std::vector<std::string>& more = {},
                      const fs::path& from = {}) const {
    std::vector<std::string> command{"python3",    fs::path(GITOPS_SOURCE_DIR) / "image/build.py",
                                     "--bin",      from.empty() ? bin() : from,
                                     "--out",      folder_ / out,
                                     "--epoch",    "1700000000",
                                     "--revision", "0123abc",
                                     "--level",    "1"};
    command.insert(command.end(), more.begin(), more.end());
    return run_command(command);
  }

  json blob(const std::string& out, const std::string& digest) const {
    return json::parse(
        read_file(folder_ / out / "layout/blobs/sha256" / digest.substr(digest.find(':') + 1)));
  }
  // The manifest of an image.
  json manifest(const std::string& out, const std::string& name) const {
    const auto index = json::parse(read_file(folder_ / out / "layout/index.json"));
    for (const auto& entry : index.at("manifests")) {
      if (entry.at("/annotations/org.opencontainers.image.ref.name"_json_pointer) == name) {
        return blob(out, entry.at("digest"));
      }
    }
    throw std::runtime_error("no image " + name);
  }
  // The image's root, from its layers.
  fs::path unpack(const std::string& out, const std::string& name) const {
    const auto root = folder_ / ("root-" + name);
    fs::create_directories(root);
    for (const auto& layer : manifest(out, name).at("layers")) {
      const std::string digest = layer.at("digest");
      run_or_throw({"tar", "--zstd", "-xf",
                    folder_ / out / "layout/blobs/sha256" / digest.substr(7), "-C", root});
    }
    return root;
  }

  TempDir folder_;
};

TEST_F(ImageTest, HasTheSameDigestsForTheSameInputs) {
  const auto first = build("first");
  ASSERT_TRUE(first.ok()) << first.err;
  // Neither the folder, which is in the symbols, nor the files' times count.
  fs::create_directories(folder_ / "elsewhere");
  for (const auto& name : kPrograms) compile_stub(folder_ / "elsewhere" / name, with_symbols());
  EXPECT_NE(read_file(bin() / kPrograms[0]), read_file(folder_ / "elsewhere" / kPrograms[0]));
  const auto second = build("second", {}, folder_ / "elsewhere");
  ASSERT_TRUE(second.ok()) << second.err;
  const auto index = read_file(folder_ / "first/layout/index.json");
  EXPECT_EQ(index, read_file(folder_ / "second/layout/index.json"));
  EXPECT_EQ(json::parse(index).at("manifests").size(), kPrograms.size());

  const auto later = build("later", {"--epoch", "1700000001"}, folder_ / "elsewhere");
  ASSERT_TRUE(later.ok()) << later.err;
  EXPECT_NE(index, read_file(folder_ / "later/layout/index.json"));
}

TEST_F(ImageTest, HoldsTheClosureOfItsLibraries) {
  const auto built = build("out");
  ASSERT_TRUE(built.ok()) << built.err;
  for (const std::string name : {"request-router", "gitops-runtime"}) {
    const auto root = unpack("out", name);
    const std::string program = name == "gitops-runtime" ? "app-proxy" : name;
    const auto libraries = root / "usr/lib/x86_64-linux-gnu";
    const auto loader = root / "usr/lib64/ld-linux-x86-64.so.2";
    const auto listed = run_command({loader, "--inhibit-cache", "--library-path", libraries,
                                     "--list", root / "usr/bin" / program});
    ASSERT_TRUE(listed.ok()) << listed.err;
    EXPECT_THAT(listed.out, HasSubstr("libz.so.1 => " + libraries.string()));
    EXPECT_THAT(listed.out, HasSubstr("libc.so.6 => " + libraries.string()));
    EXPECT_THAT(listed.out, Not(HasSubstr("=> /lib")));
    const auto ran =
        run_command({loader, "--library-path", libraries, root / "usr/bin" / program, "hello"});
    EXPECT_THAT(ran.out, HasSubstr("hello 1."));
    EXPECT_THAT(read_file(root / "etc/ssl/certs/ca-certificates.crt"), HasSubstr("BEGIN CERT"));
    EXPECT_FALSE(fs::exists(root / "usr/bin/sh"));
  }
}

TEST_F(ImageTest, SaysWhatItIsAndWhoRunsIt) {
  const auto built = build("out", {"--version", "1.2.3", "app-proxy", "gitops-runtime"});
  ASSERT_TRUE(built.ok()) << built.err;
  const auto of = [this](const std::string& name) {
    return blob("out", manifest("out", name).at("/config/digest"_json_pointer));
  };
  const auto config = of("app-proxy");
  EXPECT_EQ(config.at("/config/User"_json_pointer), "65532:65532");
  EXPECT_EQ(config.at("/config/Entrypoint"_json_pointer), json({"/usr/bin/app-proxy"}));
  EXPECT_FALSE(of("gitops-runtime").at("config").contains("Entrypoint"));
  EXPECT_EQ(config.at("created"), "2023-11-14T22:13:20Z");
  const auto& labels = config.at("/config/Labels"_json_pointer);
  EXPECT_EQ(labels.at("org.opencontainers.image.version"), "1.2.3");
  EXPECT_EQ(labels.at("org.opencontainers.image.revision"), "0123abc");
  EXPECT_EQ(labels.at("org.opencontainers.image.licenses"), "Apache-2.0");

  // The lowest layer is stored once.
  const auto first = "/layers/0/digest"_json_pointer;
  EXPECT_EQ(manifest("out", "app-proxy").at(first), manifest("out", "gitops-runtime").at(first));
}

TEST_F(ImageTest, HasALinkForEachProgramInTheImageOfAll) {
  const auto built = build("out", {"gitops-runtime"});
  ASSERT_TRUE(built.ok()) << built.err;
  const auto programs = unpack("out", "gitops-runtime") / "usr/bin";
  for (const auto& name : kPrograms) {
    ASSERT_TRUE(fs::exists(programs / name)) << name;
    EXPECT_EQ(fs::is_symlink(programs / name), name != "gitops-runtime") << name;
    EXPECT_TRUE(fs::equivalent(programs / name, programs / "gitops-runtime")) << name;
  }
}

TEST_F(ImageTest, ListsItsPartsWithVersionsAndLicences) {
  const auto built = build("out", {"app-proxy"});
  ASSERT_TRUE(built.ok()) << built.err;
  const auto text = read_file(folder_ / "out/app-proxy.spdx.json");
  const auto root = unpack("out", "app-proxy");
  EXPECT_EQ(text, read_file(root / "usr/share/sbom/app-proxy.spdx.json"));
  const auto document = json::parse(text);
  EXPECT_EQ(document.at("spdxVersion"), "SPDX-2.3");
  std::set<std::string> names;
  for (const auto& part : document.at("packages")) {
    names.insert(part.at("name"));
    EXPECT_FALSE(part.at("versionInfo").get<std::string>().empty());
    if (!part.contains("externalRefs")) continue;
    if (part.at("licenseDeclared") == "BSL-1.0") continue;  // asks for no copy
    const std::string licence = part.at("licenseComments");
    EXPECT_TRUE(fs::exists(root / licence.substr(5, licence.size() - 6))) << licence;
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"app-proxy", "libc6", "zlib1g", "ca-certificates",
                                            "libgit2-dev", "libboost1.81-dev"}));
}

TEST_F(ImageTest, KeepsSymbolsApart) {
  const auto built = build("out", {"app-proxy"});
  ASSERT_TRUE(built.ok()) << built.err;
  const auto root = unpack("out", "app-proxy");
  EXPECT_THAT(run_or_throw({"readelf", "-SW", root / "usr/bin/app-proxy"}),
              testing::AllOf(Not(HasSubstr(".debug_info")), Not(HasSubstr(".symtab"))));
  EXPECT_THAT(run_or_throw({"readelf", "-SW", folder_ / "out/symbols/app-proxy.debug"}),
              testing::AllOf(HasSubstr(".debug_info"), HasSubstr(".symtab")));
  // Debuggers find them by their id.
  const auto id_of = [](const fs::path& file) {
    const auto notes = run_or_throw({"readelf", "-n", file});
    const std::string before = "Build ID: ";
    const auto at = notes.find(before);
    return at == std::string::npos ? notes : notes.substr(at + before.size(), 40);
  };
  const auto id = id_of(root / "usr/bin/app-proxy");
  EXPECT_EQ(id.size(), 40U);
  const auto found =
      folder_ / "out/symbols/.build-id" / id.substr(0, 2) / (id.substr(2) + ".debug");
  ASSERT_TRUE(fs::exists(found)) << found;
  EXPECT_EQ(id_of(found), id);
}

TEST_F(ImageTest, RefusesProgramsThatLackHardening) {
  struct Case {
    std::string without;               // one of kHardened
    std::vector<std::string> instead;  // flags in its place
    std::string message;
  };
  const std::vector<Case> cases{
      {"-pie", {"-no-pie", "-fno-pie"}, "position-independent executable"},
      {"-Wl,-z,relro,-z,now", {"-Wl,-z,relro,-z,lazy"}, "binding at the start"},
      {"-Wl,-z,relro,-z,now", {"-Wl,-z,norelro,-z,now"}, "read-only relocations"},
      {"-fstack-protector-strong", {"-fno-stack-protector"}, "stack protector"},
      {"-D_FORTIFY_SOURCE=2", {"-U_FORTIFY_SOURCE"}, "checked calls of the C library"},
      {"-O2", {"-O2", "-Wl,-z,execstack"}, "a stack that is not executable"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.message);
    std::vector<std::string> flags;
    for (const auto& flag : kHardened) {
      if (flag != one.without) flags.push_back(flag);
    }
    flags.insert(flags.end(), one.instead.begin(), one.instead.end());
    fs::remove(bin() / "tunnel-server");
    compile_stub(bin() / "tunnel-server", flags);
    const auto refused = build("out");
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("tunnel-server lacks " + one.message));
    EXPECT_THAT(refused.err, Not(HasSubstr("app-proxy lacks")));
  }
}

// Who only wants to install it can't make it smaller; CI stops who can.
TEST_F(ImageTest, WarnsAboutALargeImageAndRefusesItOnRequest) {
  fs::remove(bin() / "app-proxy");
  compile_stub(bin() / "app-proxy", kHardened, "char large[21000000] = {1};\n");
  const auto made = build("out", {"app-proxy"});
  EXPECT_TRUE(made.ok()) << made.err;
  EXPECT_THAT(made.err, HasSubstr("warning: app-proxy has 2"));
  EXPECT_THAT(made.err, HasSubstr("the limits are 20 and 8"));
  EXPECT_THAT(made.out, testing::ContainsRegex("app-proxy +2[0-9.]+ +[0-9.]+ +-[0-9]+%"));
  EXPECT_TRUE(fs::exists(folder_ / "out/layout/index.json"));

  // A program with libpq may have more.
  fs::copy_file(bin() / "app-proxy", bin() / "control-plane", fs::copy_options::overwrite_existing);
  const auto with_libpq = build("libpq", {"--strict", "control-plane"});
  EXPECT_TRUE(with_libpq.ok()) << with_libpq.err;
  fs::remove(bin() / "control-plane");
  compile_stub(bin() / "control-plane", kHardened, "char large[31000000] = {1};\n");
  const auto too_large = build("too-large", {"--strict", "control-plane"});
  EXPECT_EQ(too_large.exit_code, 1);
  EXPECT_THAT(too_large.err, HasSubstr("the limits are 30 and 11"));

  const auto refused = build("strict", {"--strict", "app-proxy"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("image: app-proxy has 2"));
  // Within the limit, but without room below it.
  fs::remove(bin() / "app-proxy");
  compile_stub(bin() / "app-proxy", kHardened, "char large[16000000] = {1};\n");
  const auto close_to_it = build("close", {"--strict", "app-proxy"});
  EXPECT_EQ(close_to_it.exit_code, 1);
  EXPECT_THAT(close_to_it.err, HasSubstr("image: app-proxy has 1"));
  EXPECT_THAT(close_to_it.err, HasSubstr("of which 10% should be left"));

  const auto small = build("small", {"--strict", "gitopsctl"});
  EXPECT_TRUE(small.ok()) << small.err;
  EXPECT_THAT(small.err, IsEmpty());
}

// Whoever makes images may keep their own files from others.
TEST_F(ImageTest, StartsItsProgramsWhateverTheUmask) {
  fs::remove(bin() / "gitopsctl");
  compile_stub(bin() / "gitopsctl", kHardened,
               "int puts(const char*);\n"
               "__attribute__((constructor)) static void say(void) { puts(\"gitopsctl\"); }\n");
  ASSERT_TRUE(build("out", {"gitopsctl"}).ok());
  for (const std::string umask : {"022", "077"}) {
    const auto started = run_command(
        {"sh", "-c", "umask " + umask + " && exec python3 \"$0\" --out \"$1\" gitopsctl",
         fs::path(GITOPS_SOURCE_DIR) / "image/start.py", folder_ / "out"});
    EXPECT_TRUE(started.ok()) << umask << ": " << started.err;
    EXPECT_THAT(started.out, HasSubstr("gitopsctl: gitopsctl starts"));
  }
}

// As in a container, which may not make namespaces.
TEST_F(ImageTest, SaysWhyNoProgramIsStarted) {
  write_file(folder_ / "unshare",
             "#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2\nexit 1\n");
  fs::permissions(folder_ / "unshare", fs::perms::owner_all);
  const auto refused =
      run_command({"sh", "-c", "PATH=\"$0:$PATH\" exec python3 \"$1\" --out \"$2\"", folder_.path(),
                   fs::path(GITOPS_SOURCE_DIR) / "image/start.py", folder_ / "out"});
  EXPECT_EQ(refused.exit_code, 77);
  EXPECT_THAT(refused.err, HasSubstr("no program was started: unshare failed: Operation not"));
}

TEST_F(ImageTest, SaysWhatIsMissing) {
  EXPECT_THAT(build("out", {"nothing"}).err, HasSubstr("no such image: nothing"));
  fs::remove(bin() / "gitopsctl");
  const auto refused = build("out");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("gitopsctl"));
  EXPECT_THAT(refused.out, IsEmpty());
}

// libpq with the library that images have in the place of OpenLDAP's.
class Ldap : public testing::Test {
 protected:
  CommandResult psql(const std::string& address, const fs::path& services = "/dev/null") const {
    return run_command({"env", "LD_LIBRARY_PATH=" + libraries_.string(),
                        "PGSERVICEFILE=" + services.string(), programs_ / "psql", address, "-Atc",
                        "SELECT 41 + 1"});
  }
  const fs::path libraries_ = fs::path(GITOPS_BIN_DIR).parent_path() / "lib";
  const fs::path programs_ = PostgresServer::programs();
};

TEST_F(Ldap, IsNotInImages) {
  const auto needs = run_or_throw(
      {"env", "LD_LIBRARY_PATH=" + libraries_.string(), "ldd", (programs_ / "psql").string()});
  EXPECT_THAT(needs, HasSubstr((libraries_ / "libldap-2.5.so.0").string()));
  EXPECT_THAT(needs, Not(HasSubstr("gnutls")));
}

TEST_F(Ldap, LibpqConnectsWithoutIt) {
  auto& server = PostgresServer::shared();
  const auto answer = psql(server.new_database());
  EXPECT_EQ(answer.out, "42\n") << answer.err;
}

TEST_F(Ldap, ASettingLookedUpInLdapFailsWithAMessage) {
  const TempDir folder;
  write_file(folder / "services",
             "[prod]\nldap://127.0.0.1:1/dc=example?description?one?(cn=db)\n");
  const auto refused = psql("service=prod", folder / "services");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("could not create LDAP structure"));
}

// The real program of the image for all: what it is called decides what it is.
TEST(AllInOne, IsEachProgramByItsNameOrItsFirstArgument) {
  const fs::path bin = GITOPS_BIN_DIR;
  const auto all = bin / "gitops-runtime";
  const TempDir folder;
  for (const auto& name : kPrograms) {
    if (name == "gitops-runtime") continue;
    SCOPED_TRACE(name);
    const auto expected = run_or_throw({bin / name, "--help"});
    EXPECT_THAT(expected, HasSubstr(name));
    fs::create_symlink(all, folder / name);
    EXPECT_EQ(run_or_throw({folder / name, "--help"}), expected);
    EXPECT_EQ(run_or_throw({all, name, "--help"}), expected);
  }
}

TEST(AllInOne, ListsItsPrograms) {
  const auto all = fs::path(GITOPS_BIN_DIR) / "gitops-runtime";
  for (const auto& arguments : {std::vector<std::string>{}, {"--help"}, {"event-report"}}) {
    std::vector<std::string> command{all};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto answer = run_command(command);
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_THAT(answer.err, HasSubstr("usage: gitops-runtime PROGRAM"));
    for (const auto& name : kPrograms) EXPECT_THAT(answer.err, HasSubstr(name));
  }
}

}  // namespace
}  // namespace gitops::test
