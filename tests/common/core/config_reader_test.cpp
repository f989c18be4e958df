#include "common/core/config_reader.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace gitops {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Action = ConfigReader::Outcome::Action;
using Environment = std::map<std::string, std::string>;

enum class Colour { red, green };

struct Config {
  std::string url = "https://platform.example";
  std::string empty;
  bool insecure = false;
  bool cache = true;
  std::int64_t port = 8080;
  milliseconds interval = seconds(90);
  std::vector<std::string> namespaces = {"argocd", "apps"};
  std::size_t mode = 1;
  Colour colour = Colour::red;
  Secret token;
  Secret rotating;
  std::string rotating_file;
  std::string ca_file;
};

void bind(ConfigReader& reader, Config& config) {
  reader.group("Control plane");
  reader.add({"url", {"PLATFORM_URL", "CODEFRESH_URL"}, "Address of the control plane"},
             config.url);
  reader.add_secret({"token", {"PLATFORM_TOKEN"}, "Token for the control plane"}, config.token);
  reader.add_secret({"rotating", {"ROTATING"}, "Token that is read again"}, config.rotating,
                    &config.rotating_file);
  reader.add({"tls.ca-file", {}, "Certificates to trust"}, config.ca_file);
  reader.add({"insecure", {"INSECURE"}, "Accept any certificate"}, config.insecure);
  reader.group("Work");
  reader.add({"port", {"LISTEN_PORT"}, "Port to listen on"}, config.port, 1, 65535);
  reader.add(
      {"interval",
       {"INTERVAL"},
       "How often everything is compared again, also when nothing seems to have changed, so that "
       "a lost change is found"},
      config.interval, seconds(1), std::chrono::hours(24));
  reader.add({"namespaces", {"NAMESPACES"}, "Namespaces to watch"}, config.namespaces);
  reader.add_choice({"mode", {"MODE"}, "What to report"}, config.mode, {"app", "resource"});
  reader.add_choice({"colour", {}, "Of the console"}, config.colour, {"red", "green"});
  reader.add({"cache", {"CACHE"}, "Keep what was read"}, config.cache);
  reader.add({"a-flag-with-quite-a-long-name", {}, "Something"}, config.empty);
  reader.check({"port", "interval"}, [&config] {
    return config.port == 1234 ? std::string("1234 is taken by another program") : "";
  });
}

// One load of the sample table, with files in a temporary folder.
class ConfigReaderTest : public testing::Test {
 protected:
  ConfigReaderTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "config-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~ConfigReaderTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  ConfigReader::Outcome load(const std::vector<std::string>& arguments,
                             const Environment& environment = {}) {
    config_ = Config();
    ConfigReader reader("sample", "Shows what a table gives");
    bind(reader, config_);
    return reader.load(arguments, environment);
  }
  ConfigReader::Outcome load_yaml(const std::string& text, std::vector<std::string> arguments = {},
                                  const Environment& environment = {}) {
    arguments.push_back("--config=" + write("c.yaml", text));
    return load(arguments, environment);
  }
  // The mistakes of a file, with its path shortened to its name.
  std::vector<std::string> yaml_mistakes(const std::string& text) {
    auto mistakes = load_yaml(text).mistakes;
    for (std::string& mistake : mistakes) {
      const std::string folder = folder_.string() + '/';
      if (const auto at = mistake.find(folder); at != std::string::npos) {
        mistake.erase(at, folder.size());
      }
    }
    return mistakes;
  }

  std::filesystem::path folder_;
  Config config_;
};

TEST_F(ConfigReaderTest, WithoutSourcesTheDefaultsStay) {
  const auto outcome = load({});
  EXPECT_EQ(outcome.action, Action::run);
  EXPECT_THAT(outcome.mistakes, IsEmpty());
  EXPECT_EQ(config_.url, "https://platform.example");
  EXPECT_EQ(config_.port, 8080);
  EXPECT_THAT(config_.namespaces, ElementsAre("argocd", "apps"));
}

TEST_F(ConfigReaderTest, FlagWinsOverEnvironmentOverFileOverDefault) {
  const std::string yaml = "url: file\nport: 1\ninterval: 1m\n";
  const Environment environment = {{"PLATFORM_URL", "environment"}, {"LISTEN_PORT", "2"}};
  EXPECT_THAT(load_yaml(yaml, {"--url=flag"}, environment).mistakes, IsEmpty());
  EXPECT_EQ(config_.url, "flag");
  EXPECT_EQ(config_.port, 2);
  EXPECT_EQ(config_.interval, seconds(60));
  EXPECT_EQ(config_.mode, 1U);
}

TEST_F(ConfigReaderTest, EmptyEnvironmentIsNotSetAndTheFirstNameCounts) {
  EXPECT_THAT(
      load({}, {{"PLATFORM_URL", ""}, {"CODEFRESH_URL", "alias"}, {"LISTEN_PORT", ""}}).mistakes,
      IsEmpty());
  EXPECT_EQ(config_.url, "alias");
  EXPECT_EQ(config_.port, 8080);
  load({}, {{"PLATFORM_URL", "documented"}, {"CODEFRESH_URL", "alias"}});
  EXPECT_EQ(config_.url, "documented");
}

TEST_F(ConfigReaderTest, EveryTypeFromEverySource) {
  const auto expect_all = [this](const ConfigReader::Outcome& outcome) {
    EXPECT_THAT(outcome.mistakes, IsEmpty());
    EXPECT_EQ(config_.url, "u");
    EXPECT_TRUE(config_.insecure);
    EXPECT_FALSE(config_.cache);
    EXPECT_EQ(config_.port, 65535);
    EXPECT_EQ(config_.interval, milliseconds(1500));
    EXPECT_THAT(config_.namespaces, ElementsAre("a", "b c"));
    EXPECT_EQ(config_.mode, 0U);
  };
  expect_all(load({"--url=u", "--insecure", "--no-cache", "--port", "65535", "--interval", "1.5s",
                   "--namespaces", " a ,,b c,", "--mode=app"}));
  expect_all(load({"--url", "u", "--insecure=yes", "--cache=0", "--port=65535", "--interval=1500ms",
                   "--namespaces=a,b c", "--mode", "app"}));
  expect_all(load({}, {{"PLATFORM_URL", "u"},
                       {"INSECURE", "TRUE"},
                       {"CACHE", "off"},
                       {"LISTEN_PORT", "65535"},
                       {"INTERVAL", "1500ms"},
                       {"NAMESPACES", "a, b c"},
                       {"MODE", "app"}}));
  expect_all(
      load_yaml("url: u\ninsecure: true\ncache: no\nport: 65535\ninterval: 1s500ms\n"
                "namespaces: [a, ' b c ', '']\nmode: app\n"));
}

TEST_F(ConfigReaderTest, EnumeratorsAndDottedNames) {
  EXPECT_THAT(load_yaml("tls:\n  ca-file: /ca.pem\ncolour: green\n").mistakes, IsEmpty());
  EXPECT_EQ(config_.ca_file, "/ca.pem");
  EXPECT_EQ(config_.colour, Colour::green);
  EXPECT_THAT(load_yaml("tls.ca-file: /other.pem\n", {"--colour=red"}).mistakes, IsEmpty());
  EXPECT_EQ(config_.ca_file, "/other.pem");
  EXPECT_EQ(config_.colour, Colour::red);
  EXPECT_THAT(load({"--tls.ca-file=/flag.pem"}).mistakes, IsEmpty());
  EXPECT_EQ(config_.ca_file, "/flag.pem");
}

// A program has no second chance to parse a setting wrongly.
TEST(ConfigReaderParsed, AValueOfAnyTypeIsStoredOrItsMistakeIsReported) {
  std::size_t length = 7;
  std::size_t count = 0;
  ConfigReader reader("program", "");
  reader.add_parsed({"length"}, length, "7 letters", [](const std::string& text) {
    return text.size() < 10 ? Result<std::size_t>(text.size())
                            : fail(ErrorCode::invalid_argument, "too long");
  });
  reader.add_parsed_list({"count", {"COUNT"}}, count, "",
                         [](const std::vector<std::string>& items) {
                           return items.size() < 3 ? Result<std::size_t>(items.size())
                                                   : fail(ErrorCode::invalid_argument, "too many");
                         });
  EXPECT_THAT(reader.load({"--length=four"}, {{"COUNT", "a, ,b"}}).mistakes, IsEmpty());
  EXPECT_EQ(length, 4U);
  EXPECT_EQ(count, 2U);
  EXPECT_THAT(reader.load({"--length=0123456789"}, {{"COUNT", "a,b,c"}}).mistakes,
              ElementsAre("flag --length: too long", "environment COUNT: too many"));
  EXPECT_EQ(length, 4U) << "a mistake stores nothing";
  EXPECT_THAT(reader.help(), HasSubstr("7 letters"));
}

TEST_F(ConfigReaderTest, AnEmptyFlagClearsAText) {
  EXPECT_THAT(load({"--url=", "--namespaces="}).mistakes, IsEmpty());
  EXPECT_EQ(config_.url, "");
  EXPECT_THAT(config_.namespaces, IsEmpty());
}

TEST_F(ConfigReaderTest, TheFileMayBeNamedByTheEnvironment) {
  const auto path = write("e.yaml", "port: 7\n");
  EXPECT_THAT(load({}, {{"GITOPS_CONFIG", path}}).mistakes, IsEmpty());
  EXPECT_EQ(config_.port, 7);
  const auto other = write("f.yaml", "port: 8\n");
  EXPECT_THAT(load({"--config", other}, {{"GITOPS_CONFIG", path}}).mistakes, IsEmpty());
  EXPECT_EQ(config_.port, 8);
}

TEST_F(ConfigReaderTest, SecretsComeFromFilesAndTheEnvironment) {
  const auto file = write("token", "from-file\r\n\n");
  EXPECT_THAT(load({"--token-file", file}).mistakes, IsEmpty());
  EXPECT_EQ(config_.token.reveal(), "from-file");
  EXPECT_THAT(load({}, {{"PLATFORM_TOKEN", "from-env\n"}}).mistakes, IsEmpty());
  EXPECT_EQ(config_.token.reveal(), "from-env");
  EXPECT_THAT(load_yaml("token-file: " + file + "\n").mistakes, IsEmpty());
  EXPECT_EQ(config_.token.reveal(), "from-file");
  EXPECT_THAT(load({"--token-file", file}, {{"PLATFORM_TOKEN", "from-env"}}).mistakes, IsEmpty());
  EXPECT_EQ(config_.token.reveal(), "from-file");
}

TEST_F(ConfigReaderTest, ARotatingSecretKeepsItsPath) {
  const auto file = write("token", "first\n");
  EXPECT_THAT(load({"--rotating-file", file}).mistakes, IsEmpty());
  EXPECT_EQ(config_.rotating_file, file);
  EXPECT_TRUE(config_.rotating.empty());
  EXPECT_THAT(load({}, {{"ROTATING", "value"}}).mistakes, IsEmpty());
  EXPECT_EQ(config_.rotating.reveal(), "value");
  EXPECT_EQ(config_.rotating_file, "");
}

// app-proxy creates the Secret whose file it is told.
TEST_F(ConfigReaderTest, ASecretThatMayComeLaterNeedsNoFileYet) {
  Secret token;
  std::string file;
  ConfigReader reader("sample", "");
  reader.add_secret({"awaited", {}, "Token"}, token, &file,
                    ConfigReader::SecretFile::may_come_later);
  const auto path = (folder_ / "later" / "token").string();
  EXPECT_THAT(reader.load({"--awaited-file", path}, {}).mistakes, IsEmpty());
  EXPECT_EQ(file, path);
  EXPECT_TRUE(token.empty());
  EXPECT_THAT(reader.load({"--awaited-file", folder_.string()}, {}).mistakes,
              ElementsAre("flag --awaited-file: file \"" + folder_.string() + "\" is not a file"));
  EXPECT_THAT(load({"--rotating-file", path}).mistakes,
              ElementsAre("flag --rotating-file: file \"" + path +
                          "\" cannot be read: No such file or directory"));
}

TEST_F(ConfigReaderTest, SecretFilesThatHoldNothingAreMistakes) {
  const auto empty = write("empty", "\n\n");
  const auto big = write("big", std::string(64 * 1024 + 1, 'x'));
  EXPECT_THAT(load({"--token-file", empty}).mistakes,
              ElementsAre("flag --token-file: file \"" + empty + "\" is empty"));
  EXPECT_THAT(load({"--rotating-file", empty}).mistakes,
              ElementsAre("flag --rotating-file: file \"" + empty + "\" is empty"));
  EXPECT_THAT(load({"--token-file", big}).mistakes,
              ElementsAre("flag --token-file: file \"" + big + "\" is larger than 64 KiB"));
  EXPECT_THAT(
      load({"--token-file", "/nowhere/token"}).mistakes,
      ElementsAre("flag --token-file: file \"/nowhere/token\" cannot be read: No such file or "
                  "directory"));
  EXPECT_THAT(load({"--token-file", folder_.string()}).mistakes,
              ElementsAre("flag --token-file: file \"" + folder_.string() + "\" is not a file"));
  EXPECT_THAT(load({}, {{"PLATFORM_TOKEN", "\n"}}).mistakes,
              ElementsAre("environment PLATFORM_TOKEN: is empty"));
}

TEST_F(ConfigReaderTest, FlagMistakesAreAllReported) {
  const auto outcome =
      load({"--port=0", "--interval=2d", "--mode=none", "--insecure=maybe", "--prot=1", "--url",
            "--cache=x", "stray", "-v", "--", "--colour=", "--nonsense-of-a-flag", "--no-url",
            "--check-config=yes", "--namespaces=a", "--namespaces=b", "--interval=1s"});
  EXPECT_THAT(
      outcome.mistakes,
      ElementsAre("flag \"--prot\": unknown, did you mean --port?", "flag --url: needs a value",
                  "argument \"stray\": not expected, settings are given as --name=value",
                  "argument \"-v\": not expected, settings are given as --name=value",
                  "argument \"--\": not expected, settings are given as --name=value",
                  "flag \"--nonsense-of-a-flag\": unknown", "flag \"--no-url\": unknown",
                  "flag --check-config: takes no value", "flag --namespaces: given more than once",
                  "flag --interval: given more than once",
                  "flag --port: \"0\" is out of range, expected 1 to 65535",
                  "flag --interval: \"2d\": a duration without a known unit; write it as 300ms, "
                  "10s, 1m30s or 24h",
                  "flag --mode: \"none\" is not one of app, resource",
                  "flag --insecure: \"maybe\" is not true or false",
                  "flag --cache: \"x\" is not true or false",
                  "flag --colour: \"\" is not one of red, green"));
}

TEST_F(ConfigReaderTest, EverySourceReportsAlsoWhatAStrongerOneHides) {
  const auto path = write("c.yaml", "port: x\ninterval: 0s\n");
  const auto outcome = load({"--config", path, "--port=1", "--url=u", "--mode=m"},
                            {{"LISTEN_PORT", "99999999999999999999"}, {"INSECURE", "2"}});
  EXPECT_THAT(
      outcome.mistakes,
      ElementsAre(
          "flag --mode: \"m\" is not one of app, resource",
          "environment INSECURE: \"2\" is not true or false",
          "environment LISTEN_PORT: \"99999999999999999999\" is out of range, expected 1 to 65535",
          path + ":1 port: \"x\" is not a whole number, expected 1 to 65535",
          path + ":2 interval: \"0s\" is out of range, expected 1s to 24h"));
}

TEST_F(ConfigReaderTest, NumbersAreRead) {
  for (const auto* text : {"", " 1", "1 ", "+1", "0x10", "1.0", "1e3", "one", "--1"}) {
    EXPECT_THAT(load({}, {{"LISTEN_PORT", text}}).mistakes.size(), *text == '\0' ? 0U : 1U) << text;
  }
  EXPECT_THAT(load({"--port", "-5"}).mistakes,
              ElementsAre("flag --port: \"-5\" is out of range, expected 1 to 65535"));
}

TEST_F(ConfigReaderTest, LongAndHostileTextsAreShownShortAndOnOneLine) {
  const auto outcome =
      load({"--port=" + std::string(5000, '9'), "--mode=a\x1b[31m\nflag --forged"});
  ASSERT_EQ(outcome.mistakes.size(), 2U);
  EXPECT_LT(outcome.mistakes[0].size(), 200U);
  EXPECT_EQ(outcome.mistakes[1], R"(flag --mode: "a\u001b[31m..." is not one of app, resource)");
}

TEST_F(ConfigReaderTest, RulesTellTheSourcesOfTheirSettings) {
  EXPECT_THAT(load({"--port=1234"}).mistakes,
              ElementsAre("flag --port: 1234 is taken by another program"));
  EXPECT_THAT(load({"--port=1234"}, {{"INTERVAL", "2s"}, {"LISTEN_PORT", "99"}}).mistakes,
              ElementsAre("flag --port, environment INTERVAL: 1234 is taken by another program"));
}

TEST_F(ConfigReaderTest, RulesRunWhenTheirOwnSettingsAreGood) {
  EXPECT_THAT(load({"--port=1234", "--mode=x", "--prot=1"}).mistakes,
              testing::Contains("flag --port: 1234 is taken by another program"));
  EXPECT_THAT(load({"--port=1234", "--interval=x"}).mistakes, testing::SizeIs(1));
}

TEST_F(ConfigReaderTest, DefaultsThatBreakARuleAreToldAsSuch) {
  Config config;
  config.port = 1234;
  ConfigReader reader("test", "Does nothing");
  bind(reader, config);
  EXPECT_THAT(reader.load({}, {}).mistakes,
              ElementsAre("default of port, interval: 1234 is taken by another program"));
}

TEST_F(ConfigReaderTest, RulesAboutUnknownSettingsAreBugs) {
  ConfigReader reader("test", "Does nothing");
  EXPECT_THROW(reader.check({"prot"}, [] { return std::string(); }), std::logic_error);
}

TEST_F(ConfigReaderTest, ActionsComeBeforeMistakes) {
  EXPECT_EQ(load({"--help"}).action, Action::help);
  EXPECT_EQ(load({"-h"}).action, Action::help);
  EXPECT_EQ(load({"--version"}).action, Action::version);
  EXPECT_EQ(load({"--print-config-table"}).action, Action::table);
  EXPECT_EQ(load({"--check-config"}).action, Action::check);
  const auto help = load({"--port=x", "--version", "--help"});
  EXPECT_EQ(help.action, Action::help);
  EXPECT_THAT(help.mistakes, IsEmpty());
  const auto check = load({"--port=x", "--check-config"});
  EXPECT_EQ(check.action, Action::check);
  EXPECT_EQ(check.mistakes.size(), 1U);
}

TEST_F(ConfigReaderTest, YamlMistakesCarryTheirLine) {
  EXPECT_THAT(
      yaml_mistakes("url: u\n"
                    "prt: 1\n"
                    "namespaces: a\n"
                    "mode: [app]\n"
                    "tls:\n"
                    "  ca-fil: x\n"
                    "  ca-file: {a: b}\n"
                    "port: 1\n"
                    "port: 2\n"
                    "[1, 2]: x\n"
                    "colour:\n"
                    "interval: ''\n"
                    "namespaces: [a, [b]]\n"),
      ElementsAre(
          "c.yaml:2 prt: unknown setting, did you mean port?",
          "c.yaml:3 namespaces: must be a sequence of texts, as in [a, b]",
          "c.yaml:4 mode: must be a single value",
          "c.yaml:6 tls.ca-fil: unknown setting, did you mean tls.ca-file?",
          "c.yaml:7 tls.ca-file: must be a single value",
          "c.yaml:9 port: stands here again, first in line 8",
          "c.yaml:10: a key is not a plain word",
          "c.yaml:13 namespaces: stands here again, first in line 3",
          "c.yaml:12 interval: \"\": empty duration; write it as 300ms, 10s, 1m30s or 24h"));
}

TEST_F(ConfigReaderTest, YamlDocumentsThatHoldNoSettings) {
  EXPECT_THAT(yaml_mistakes(""), IsEmpty());
  EXPECT_THAT(yaml_mistakes("# nothing yet\n"), IsEmpty());
  EXPECT_THAT(yaml_mistakes("---\n"), IsEmpty());
  EXPECT_THAT(yaml_mistakes("{}\n"), IsEmpty());
  EXPECT_THAT(yaml_mistakes("port\n"),
              ElementsAre("c.yaml: must hold settings as in \"name: value\", one a line"));
  EXPECT_THAT(yaml_mistakes("- port\n"),
              ElementsAre("c.yaml: must hold settings as in \"name: value\", one a line"));
  EXPECT_THAT(yaml_mistakes("port: 1\n---\nport: 2\n"),
              ElementsAre("c.yaml: holds more than one YAML document"));
}

TEST_F(ConfigReaderTest, FilesThatAreNoYaml) {
  EXPECT_THAT(yaml_mistakes("port: 1\n  url: [\n"),
              ElementsAre(HasSubstr("c.yaml:2: is not YAML: ")));
  EXPECT_THAT(yaml_mistakes("port: {open\n"), ElementsAre(HasSubstr(": is not YAML: ")));
  EXPECT_THAT(yaml_mistakes("port: *nowhere\n"), ElementsAre(HasSubstr(": is not YAML: ")));
  EXPECT_THAT(yaml_mistakes("\tport: 1\n"), ElementsAre(HasSubstr("c.yaml:1: is not YAML: ")));
  EXPECT_THAT(yaml_mistakes(std::string("url: u\nmode: \0x\n", 16)),
              ElementsAre("c.yaml:2: is not YAML: a control character"));
  EXPECT_THAT(yaml_mistakes("url: u, b]\n] x\n"), Not(IsEmpty()));
  EXPECT_THAT(load({"--config", "/nowhere/c.yaml"}).mistakes,
              ElementsAre("/nowhere/c.yaml: cannot be read: No such file or directory"));
  EXPECT_THAT(load({"--config", folder_.string()}).mistakes,
              ElementsAre(folder_.string() + ": is not a file"));
}

TEST_F(ConfigReaderTest, HugeFilesAndDeepNestingCostLittle) {
  EXPECT_THAT(yaml_mistakes("# " + std::string(1024 * 1024, 'x') + "\n"),
              ElementsAre("c.yaml: is larger than 1024 KiB"));
  for (const char open : {'[', '{'}) {
    EXPECT_THAT(yaml_mistakes("url: " + std::string(50'000, open)),
                ElementsAre(HasSubstr(": is not YAML: ")));
  }
  std::string nested = "tls:\n";
  for (std::size_t depth = 1; depth < 400; ++depth) nested += std::string(depth, ' ') + "tls:\n";
  EXPECT_THAT(yaml_mistakes(nested + std::string(400, ' ') + "x: 1\n"),
              ElementsAre("c.yaml:2 tls.tls: unknown setting"));
  std::string many;
  for (int i = 0; i < 10'500; ++i) many += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(yaml_mistakes(many).size(), 10'001U);
}

TEST_F(ConfigReaderTest, AliasesThatMultiplyAreHarmless) {
  std::string yaml = "url: &a0 x\n";
  for (int i = 1; i < 40; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    yaml +=
        "k" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + ", " + last + "]\n";
  }
  EXPECT_EQ(yaml_mistakes(yaml).size(), 39U);
  EXPECT_EQ(config_.url, "x");
}

TEST_F(ConfigReaderTest, AHelpTextIsComplete) {
  Config config;
  ConfigReader reader("sample", "Shows what a table gives");
  bind(reader, config);
  EXPECT_EQ(reader.help(), R"(sample: Shows what a table gives

Usage: sample [--name=value ...]

Control plane:
  --url TEXT            Address of the control plane (env PLATFORM_URL, CODEFRESH_URL; default
                        https://platform.example)
  --token-file FILE     Token for the control plane (env PLATFORM_TOKEN holds the value itself)
  --rotating-file FILE  Token that is read again (env ROTATING holds the value itself)
  --tls.ca-file TEXT    Certificates to trust
  --insecure            Accept any certificate (env INSECURE; default false)

Work:
  --port NUMBER         Port to listen on (env LISTEN_PORT; default 8080)
  --interval DURATION   How often everything is compared again, also when nothing seems to have
                        changed, so that a lost change is found (env INTERVAL; default 1m30s)
  --namespaces LIST     Namespaces to watch (env NAMESPACES; default argocd,apps)
  --mode app|resource   What to report (env MODE; default resource)
  --colour red|green    Of the console (default red)
  --cache               Keep what was read (env CACHE; default true)
  --a-flag-with-quite-a-long-name TEXT
                        Something

Start:
  --config FILE         YAML file with settings, named as the flags (env GITOPS_CONFIG)
  --check-config        Check the configuration, print every mistake, and end
  --print-config-table  Print all settings as a Markdown table, and end
  --version             Print the version, and end
  --help                Print this text, and end

A flag wins over the environment, the environment over the file, the file over the default.
Flags that take no value are switched off by --no-NAME. Durations: 300ms, 10s, 1m30s, 24h.
)");
}

TEST_F(ConfigReaderTest, AFlagMayHaveALetter) {
  std::string output = "text";
  bool verbose = false;
  const auto load_letters = [&](const std::vector<std::string>& arguments) {
    output = "text";
    verbose = false;
    ConfigReader reader("sample", "Has letters");
    reader.add({.flag = "output", .letter = 'o'}, output);
    reader.add({.flag = "verbose", .letter = 'v'}, verbose);
    return reader.load(arguments, {}).mistakes;
  };
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-o", "json", "-v"}, {"-ojson", "-v"}, {"-v", "-o=json"}}) {
    EXPECT_THAT(load_letters(arguments), IsEmpty());
    EXPECT_EQ(output, "json");
    EXPECT_TRUE(verbose);
  }
  EXPECT_THAT(load_letters({"-v=false"}), IsEmpty());
  EXPECT_FALSE(verbose);
  EXPECT_THAT(load_letters({"-o"}), ElementsAre("flag --output: needs a value"));
  EXPECT_THAT(load_letters({"-ojson", "--output=text"}),
              ElementsAre("flag --output: given more than once"));
  EXPECT_THAT(load_letters({"-vx", "-x"}),
              ElementsAre(HasSubstr("argument \"-vx\""), HasSubstr("argument \"-x\"")));
}

TEST(ConfigReaderRepeats, AFlagThatRepeatsIsAssignedEachTimeInItsOrder) {
  std::vector<std::string> got;
  ConfigReader reader("sample", "Has a flag that repeats");
  reader.add({.flag = "parameter", .letter = 'p', .repeats = true}, "TEXT", "",
             [&got](const std::string& text) -> std::string {
               if (text.empty()) return "is empty";
               got.push_back(text);
               return {};
             });
  EXPECT_THAT(reader.load({"--parameter=a=1", "-p", "b=2", "--parameter="}, {}).mistakes,
              ElementsAre("flag --parameter: is empty"));
  EXPECT_THAT(got, ElementsAre("a=1", "b=2"));
}

TEST_F(ConfigReaderTest, TwoFlagsCannotHaveTheSameLetter) {
  std::string text;
  ConfigReader reader("sample", "Has letters");
  reader.add({.flag = "output", .letter = 'o'}, text);
  EXPECT_THROW(reader.add({.flag = "other", .letter = 'o'}, text), std::logic_error);
  EXPECT_THROW(reader.add({.flag = "host", .letter = 'h'}, text), std::logic_error);
}

TEST_F(ConfigReaderTest, ACommandHasOnlyTheCommonFlagsThatMakeSenseForIt) {
  std::string output = "text";
  ConfigReader reader("sample check", "Looks", ProgramKind::command);
  reader.group("Output");
  reader.add({.flag = "output", .help = "Form of the output", .letter = 'o'}, output);
  EXPECT_EQ(reader.flags_help(), R"(
Output:
  -o, --output TEXT  Form of the output (default text)

Common:
  --config FILE      YAML file with settings, named as the flags (env GITOPS_CONFIG)
  --help             Print this text, and end

A flag wins over the environment, the environment over the file, the file over the default.
Flags that take no value are switched off by --no-NAME. Durations: 300ms, 10s, 1m30s, 24h.
)");
  EXPECT_THAT(reader.load({"--version", "--check-config"}, {}).mistakes,
              ElementsAre("flag \"--version\": unknown", HasSubstr("\"--check-config\": unknown")));
  EXPECT_EQ(reader.load({"--print-config-table"}, {}).action, Action::table);
  EXPECT_THAT(reader.markdown_table(), HasSubstr("| `-o, --output TEXT` |"));
  std::vector<std::string> names;
  for (const auto& flag : reader.flags()) names.push_back(flag.name);
  EXPECT_THAT(names, ElementsAre("output", "config", "help"));
}

TEST_F(ConfigReaderTest, TheMarkdownTableHasARowForEachSetting) {
  Config config;
  ConfigReader reader("sample", "Shows what a table gives");
  bind(reader, config);
  EXPECT_EQ(
      reader.markdown_table(),
      "| Flag | Environment | Default | Meaning |\n"
      "|---|---|---|---|\n"
      "| `--url TEXT` | `PLATFORM_URL`, `CODEFRESH_URL` | `https://platform.example` | Address of "
      "the control plane |\n"
      "| `--token-file FILE` | `PLATFORM_TOKEN` |  | Token for the control plane; the variable "
      "holds the value itself |\n"
      "| `--rotating-file FILE` | `ROTATING` |  | Token that is read again; the variable holds "
      "the value itself |\n"
      "| `--tls.ca-file TEXT` |  |  | Certificates to trust |\n"
      "| `--insecure` | `INSECURE` | `false` | Accept any certificate |\n"
      "| `--port NUMBER` | `LISTEN_PORT` | `8080` | Port to listen on |\n"
      "| `--interval DURATION` | `INTERVAL` | `1m30s` | How often everything is compared again, "
      "also when nothing seems to have changed, so that a lost change is found |\n"
      "| `--namespaces LIST` | `NAMESPACES` | `argocd,apps` | Namespaces to watch |\n"
      "| `--mode app\\|resource` | `MODE` | `resource` | What to report |\n"
      "| `--colour red\\|green` |  | `red` | Of the console |\n"
      "| `--cache` | `CACHE` | `true` | Keep what was read |\n"
      "| `--a-flag-with-quite-a-long-name TEXT` |  |  | Something |\n");
}

TEST_F(ConfigReaderTest, NamesItsEnvironment) {
  Config config;
  ConfigReader reader("sample", "");
  bind(reader, config);
  EXPECT_THAT(
      reader.environment_names(),
      ElementsAre("PLATFORM_URL", "CODEFRESH_URL", "PLATFORM_TOKEN", "ROTATING", "INSECURE",
                  "LISTEN_PORT", "INTERVAL", "NAMESPACES", "MODE", "CACHE", "GITOPS_CONFIG"));
}

TEST_F(ConfigReaderTest, ATableWithTwoRowsOfOneNameIsABug) {
  std::string text;
  ConfigReader reader("sample", "");
  reader.add({"a", {"A"}, ""}, text);
  EXPECT_THROW(reader.add({"a", {}, ""}, text), std::logic_error);
  EXPECT_THROW(reader.add({"b", {"A"}, ""}, text), std::logic_error);
  EXPECT_THROW(reader.add({"config", {}, ""}, text), std::logic_error);
  EXPECT_THROW(reader.add({"b", {"GITOPS_CONFIG"}, ""}, text), std::logic_error);
}

// A secret in the wrong place is a mistake with a hint, and its value is never shown.
TEST_F(ConfigReaderTest, AC28_SecretsInWrongPlacesAreRefusedAndNotShown) {
  const std::string canary = "CANARY-1d2e3f";
  const std::string hint =
      "a secret is not given here, others could read it; name a file by --token-file or set the "
      "environment variable PLATFORM_TOKEN";
  EXPECT_THAT(load({"--token=" + canary}).mistakes, ElementsAre("flag --token: " + hint));
  EXPECT_THAT(load({"--token", canary}).mistakes, ElementsAre("flag --token: " + hint));
  EXPECT_THAT(yaml_mistakes("port: 1\ntoken: " + canary + "\n"),
              ElementsAre("c.yaml:2 token: " + hint));
  EXPECT_THAT(yaml_mistakes("token: {a: " + canary + "}\n"),
              ElementsAre("c.yaml:1 token: " + hint));
  for (const std::string& broken :
       {"token: '" + canary, "token: " + canary + "\n bad: [", "token: \"\\q" + canary + "\"",
        "token: *" + canary, "%" + canary + "\n---\n", "? [" + canary, "!<" + canary,
        "port: 'x\ntoken: " + canary}) {
    for (const std::string& mistake : yaml_mistakes(broken)) {
      EXPECT_THAT(mistake, Not(HasSubstr(canary)));
    }
  }
}

}  // namespace
}  // namespace gitops
