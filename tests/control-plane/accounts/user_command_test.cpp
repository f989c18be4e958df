#include "control-plane/accounts/user_command.hpp"

#include <sstream>

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/identification.hpp"
#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/revocations.hpp"

namespace gitops::control_plane_server {
namespace {

using testing::HasSubstr;
using testing::Not;

struct UserCommand : testing::Test {
  struct Ran {
    std::optional<int> code;
    std::string out;
    std::string err;
  };
  Ran run(std::vector<std::string> arguments) {
    arguments.push_back("--database-file=" + path);
    std::ostringstream out;
    std::ostringstream err;
    cli::Console console{.out = out, .err = err};
    const AccountCommandOptions options{
        .add_location =
            [](ConfigReader& reader, store::Location& location) {
              reader.add({.flag = "database-file", .help = "File of the database"}, location.path);
            },
        .migrations = migrations()};
    const auto code = run_account_command(options, arguments, {}, console);
    return {.code = code, .out = out.str(), .err = err.str()};
  }
  template <class Work>
  auto in_database(Work work) {
    const auto connection = must(store::open_sqlite(path, store::Access::read_write, 1024 * 1024));
    return must(work(*connection));
  }
  // Returns the text after this label in an output.
  static std::string after(const std::string& text, const std::string& label) {
    const auto at = text.find(label);
    if (at == std::string::npos) return {};
    return text.substr(at + label.size(), text.find('\n', at) - at - label.size());
  }

  test::TempDir folder;
  std::string path = (folder / "control-plane.db").string();
};

TEST_F(UserCommand, OtherWordsAreTheDaemons) {
  EXPECT_EQ(run({"--check-config"}).code, std::nullopt);
  EXPECT_EQ(run({}).code, std::nullopt);
}

TEST_F(UserCommand, AnAccountItsUserAndAKeyAreMade) {
  EXPECT_EQ(run({"account", "add", "--name=acme"}).code, cli::kDone);
  const auto added = run({"user", "add", "--name=ann", "--account=acme", "--admin"});
  EXPECT_EQ(added.code, cli::kDone) << added.err;
  const auto password = after(added.out, "password (shown once): ");
  EXPECT_EQ(password.size(), 26U) << added.out;
  const auto ann = in_database([](store::Connection& db) { return user_of_name(db, "ann"); });
  EXPECT_TRUE(is_password_of(ann.password, Secret(std::string(password))));
  EXPECT_FALSE(ann.is_system_admin);

  const auto key = run({"key", "create", "--user=ann", "--name=ci", "--account=acme"});
  EXPECT_EQ(key.code, cli::kDone) << key.err;
  const auto found = in_database([&](store::Connection& db) {
    return identify(db, Secret(key.out.substr(0, key.out.size() - 1)), micros_at(wall_now()));
  });
  ASSERT_TRUE(found.caller);
  EXPECT_TRUE(found.caller->is_admin);

  EXPECT_THAT(run({"user", "list"}).out, HasSubstr("ann"));
  EXPECT_THAT(run({"account", "list"}).out, HasSubstr("acme"));
  const auto keys = run({"key", "list", "--account=acme"});
  EXPECT_THAT(keys.out, HasSubstr(found.caller->credential_id));
  EXPECT_THAT(keys.out, Not(HasSubstr(key.out.substr(31, 20))));
  const auto revoked =
      run({"key", "revoke", "--account=acme", "--id=" + found.caller->credential_id});
  EXPECT_EQ(revoked.code, cli::kDone) << revoked.err;
  EXPECT_EQ(run({"key", "revoke", "--account=acme", "--id=" + found.caller->credential_id}).code,
            cli::kFailed);
}

TEST_F(UserCommand, TheListShowsScopesAndExpiry) {
  run({"account", "add", "--name=default"});
  run({"user", "add", "--name=ann"});
  const auto wrong = run({"key", "create", "--user=ann", "--name=ci", "--scopes=read,wirte"});
  EXPECT_EQ(wrong.code, cli::kWrongUsage);
  EXPECT_THAT(wrong.err, HasSubstr("there is no scope wirte"));
  const auto made =
      run({"key", "create", "--user=ann", "--name=ci", "--scopes=images,read", "--expires-in=1ms"});
  EXPECT_EQ(made.code, cli::kDone) << made.err;
  run({"key", "create", "--user=ann", "--name=all"});
  const auto list = run({"key", "list"}).out;
  EXPECT_THAT(list, HasSubstr("user ann"));
  EXPECT_THAT(list, HasSubstr("images, read"));
  EXPECT_THAT(list, HasSubstr("Z (expired)"));
  EXPECT_THAT(list, HasSubstr("all "));
  run({"user", "disable", "--name=ann"});
  EXPECT_THAT(run({"key", "list"}).out, HasSubstr("user ann (disabled)"));
}

TEST_F(UserCommand, ARevokedTokenOfARuntimeLosesItsTunnel) {
  run({"account", "add", "--name=default"});
  const auto token = in_database([](store::Connection& db) {
    const auto account = must(account_of_name(db, "default")).number;
    return create_runtime_token(db, account, "prod", kNow);
  });
  const auto revoked = run({"key", "revoke", "--id=" + token.key.id});
  EXPECT_EQ(revoked.code, cli::kDone) << revoked.err;
  EXPECT_THAT(revoked.out, HasSubstr("tunnel of runtime prod"));
  const auto pending = in_database([](store::Connection& db) { return pending_tunnels(db); });
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(pending[0].runtime, "prod");
}

TEST_F(UserCommand, APasswordComesFromAFileAndEndsSessions) {
  run({"account", "add", "--name=default"});
  run({"user", "add", "--name=ann"});
  const auto id = in_database([](store::Connection& db) { return user_of_name(db, "ann"); }).id;
  const auto token = in_database(
      [&](store::Connection& db) { return create_session(db, id, micros_at(wall_now())); });
  const auto file = (folder / "password").string();
  test::write_file(file, "from a file\n");
  const auto changed = run({"user", "password", "--name=ann", "--password-file=" + file});
  EXPECT_EQ(changed.code, cli::kDone) << changed.err;
  EXPECT_FALSE(changed.out.contains("from a file"));
  const auto ann = in_database([](store::Connection& db) { return user_of_name(db, "ann"); });
  EXPECT_TRUE(is_password_of(ann.password, Secret(std::string("from a file"))));
  EXPECT_FALSE(in_database([&](store::Connection& db) {
                 return identify(db, token, micros_at(wall_now()));
               }).caller);
}

TEST_F(UserCommand, APersonIsInvitedByALinkThatIsShownOnce) {
  run({"account", "add", "--name=default"});
  const auto invited = run({"user", "invite", "--email=ann@acme.example", "--admin",
                            "--public-url=https://console.example/"});
  EXPECT_EQ(invited.code, cli::kDone) << invited.err;
  const auto link = after(invited.out, "link (shown once): ");
  EXPECT_THAT(link, testing::StartsWith("https://console.example/invitation?token="));
  const Secret token(link.substr(link.find('=') + 1));
  const auto ann = in_database([&](store::Connection& db) {
    return accept_as_new_user(db, token, "ann", "", micros_at(wall_now()));
  });
  EXPECT_EQ(ann.email, "ann@acme.example");
  EXPECT_EQ(run({"user", "invite", "--email=nobody"}).code, cli::kFailed);
  EXPECT_EQ(run({"user", "invite"}).code, cli::kWrongUsage);
}

TEST_F(UserCommand, AUserIsDisabledAndEnabled) {
  run({"account", "add", "--name=default"});
  run({"user", "add", "--name=ann"});
  EXPECT_EQ(run({"user", "disable", "--name=ann"}).code, cli::kDone);
  const auto ann = [&] {
    return in_database([](store::Connection& db) { return user_of_name(db, "ann"); });
  };
  EXPECT_TRUE(ann().is_disabled);
  EXPECT_EQ(run({"user", "enable", "--name=ann"}).code, cli::kDone);
  EXPECT_FALSE(ann().is_disabled);
}

TEST_F(UserCommand, MistakesAreNamed) {
  EXPECT_EQ(run({"user", "add"}).code, cli::kWrongUsage);
  EXPECT_EQ(run({"user", "ad"}).code, cli::kWrongUsage);
  const auto absent = run({"user", "add", "--name=ann", "--account=nowhere"});
  EXPECT_EQ(absent.code, cli::kFailed);
  EXPECT_THAT(absent.err, HasSubstr("there is no account nowhere"));
  run({"account", "add", "--name=default"});
  run({"user", "add", "--name=ann"});
  const auto twice = run({"user", "add", "--name=ann"});
  EXPECT_EQ(twice.code, cli::kFailed);
  EXPECT_THAT(twice.err, HasSubstr("a user ann exists already"));
}

TEST_F(UserCommand, TheDaemonMustBeStopped) {
  run({"account", "add", "--name=default"});
  Metrics metrics;
  store::Location location;
  location.path = path;
  store::Database daemon({.location = location, .name = "daemon"}, metrics);
  must(daemon.open(migrations()));
  const auto refused = run({"user", "add", "--name=ann"});
  EXPECT_EQ(refused.code, cli::kFailed);
  EXPECT_THAT(refused.err, HasSubstr("in use by another process"));
  EXPECT_THAT(refused.err, HasSubstr("stop control-plane first"));
  daemon.close(std::chrono::seconds(1));
  EXPECT_EQ(run({"user", "add", "--name=ann"}).code, cli::kDone);
}

}  // namespace
}  // namespace gitops::control_plane_server
