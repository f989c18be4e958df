#include "common/core/log.hpp"

#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/log_capture.hpp"

namespace gitops {
namespace {

using nlohmann::json;
using test::LogCapture;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr std::size_t kMaxLine = 8 * 1024;

json only_line(const LogCapture& captured) {
  const auto lines = captured.lines();
  EXPECT_EQ(lines.size(), 1U);
  return lines.empty() ? json() : json::parse(lines.front());
}

TEST(Log, ALineIsOneJsonObjectWithItsFieldsInOrder) {
  const LogCapture captured;
  const std::string name = "guestbook";
  Log("reporter")
      .info("sent", {{"application", name},
                     {"count", 3},
                     {"big", std::numeric_limits<std::uint64_t>::max()},
                     {"negative", std::int64_t{-5}},
                     {"ratio", 0.5},
                     {"first", true},
                     {"literal", "text"}});
  ASSERT_EQ(captured.lines().size(), 1U);
  const std::string line = captured.lines().front();
  EXPECT_EQ(line.substr(line.find(R"(,"level")")),
            R"(,"level":"info","logger":"reporter","message":"sent","application":"guestbook",)"
            R"("count":3,"big":18446744073709551615,"negative":-5,"ratio":0.5,"first":true,)"
            R"("literal":"text"})");
  EXPECT_TRUE(parse_rfc3339(json::parse(line).at("time").get<std::string>()));
}

TEST(Log, LevelsFilter) {
  for (const auto& [level, expected] :
       std::vector<std::pair<LogLevel, std::size_t>>{{LogLevel::debug, 4},
                                                     {LogLevel::info, 3},
                                                     {LogLevel::warning, 2},
                                                     {LogLevel::error, 1},
                                                     {LogLevel::off, 0}}) {
    const LogCapture captured(level);
    const Log log("levels");
    log.debug("x");
    log.info("x");
    log.warning("x");
    log.error("x");
    EXPECT_EQ(captured.lines().size(), expected);
  }
}

TEST(Log, ParsesLevels) {
  EXPECT_EQ(parse_log_level("debug").value(), LogLevel::debug);
  EXPECT_EQ(parse_log_level("info").value(), LogLevel::info);
  EXPECT_EQ(parse_log_level("warn").value(), LogLevel::warning);
  EXPECT_EQ(parse_log_level("warning").value(), LogLevel::warning);
  EXPECT_EQ(parse_log_level("error").value(), LogLevel::error);
  for (const auto* text : {"", "INFO", "off", "trace"}) EXPECT_FALSE(parse_log_level(text)) << text;
}

TEST(Log, NumbersThatJsonDoesNotKnowBecomeNull) {
  const LogCapture captured;
  Log("x").info("x", {{"nan", std::numeric_limits<double>::quiet_NaN()},
                      {"inf", std::numeric_limits<double>::infinity()}});
  const json line = only_line(captured);
  EXPECT_TRUE(line.at("nan").is_null());
  EXPECT_TRUE(line.at("inf").is_null());
}

TEST(Log, NoHtmlEscapesAndNoForgedLines) {
  const LogCapture captured;
  Log("x").info("<b>\n{\"level\":\"error\"}", {{"text", "a&b\r\n"}});
  const json line = only_line(captured);
  EXPECT_EQ(line.at("message"), "<b>\n{\"level\":\"error\"}");
  EXPECT_EQ(line.at("text"), "a&b\r\n");
  EXPECT_THAT(captured.lines().front(), HasSubstr("<b>"));
  EXPECT_THAT(captured.lines().front(), Not(HasSubstr("\n")));
}

TEST(Log, InvalidUtf8IsReplaced) {
  const LogCapture captured;
  Log("x").info("a\xff", {{"value", "\xc3"}});
  const json line = only_line(captured);
  EXPECT_EQ(line.at("message"), "a\ufffd");
  EXPECT_EQ(line.at("value"), "\ufffd");
}

TEST(Log, LongLinesAreCutAndStayValid) {
  const std::vector<std::string> fillers = {"x",    "\"",     "\n",        "\x01",
                                            "\xff", "\u00e4", "\U0001f600"};
  for (const std::string& filler : fillers) {
    std::string text;
    while (text.size() < 20'000) text += filler;
    for (std::size_t shift = 0; shift < 8; ++shift) {
      const std::string shifted = std::string(shift, 'a') + text;
      const LogCapture captured;
      Log("x").info(shifted, {{"later", 1}});
      Log("x").info("short", {{"value", shifted}, {"later", 1}});
      for (const std::string& line : captured.lines()) {
        EXPECT_LE(line.size(), kMaxLine);
        EXPECT_GT(line.size(), kMaxLine - 40);
        const json parsed = json::parse(line, nullptr, false);
        ASSERT_FALSE(parsed.is_discarded()) << line;
        EXPECT_TRUE(parsed.at("truncated").get<bool>());
        EXPECT_FALSE(parsed.contains("later"));
        if (filler != "\xff") EXPECT_THAT(line, Not(HasSubstr("\\ufffd")));
      }
    }
  }
}

TEST(Log, ManyFieldsAreCutAndStayValid) {
  const LogCapture captured;
  const std::string part(3000, 'y');
  Log("x").info("m", {{"a", part}, {"b", part}, {"c", part}, {"d", part}, {"number", 5}});
  const json line = only_line(captured);
  EXPECT_EQ(line.at("a"), part);
  EXPECT_EQ(line.at("b"), part);
  EXPECT_LT(line.at("c").get<std::string>().size(), part.size());
  EXPECT_FALSE(line.contains("d"));
  EXPECT_FALSE(line.contains("number"));
  EXPECT_TRUE(line.at("truncated").get<bool>());
}

TEST(Log, LinesThatJustFitAreNotMarked) {
  for (std::size_t size = 8000; size < 8200; ++size) {
    const LogCapture captured;
    Log("x").info(std::string(size, 'z'));
    const json line = only_line(captured);
    EXPECT_LE(captured.lines().front().size(), kMaxLine);
    EXPECT_EQ(line.contains("truncated"), line.at("message").get<std::string>().size() < size);
  }
}

TEST(AC28_Log, ValuesUnderSecretKeysNeverAppear) {
  const std::string canary = "CANARY-5b1d0f";
  for (const LogFormat format : {LogFormat::json, LogFormat::text}) {
    const LogCapture captured(LogLevel::debug, format);
    for (const auto* key :
         {"authorization", "Authorization", "proxy_authorization", "token", "access_token",
          "refreshToken", "password", "passwd", "cookie", "Set-Cookie", "secret", "client_secret",
          "SECRET", "api_key", "x-api-key", "apikey", "private_key", "credentials",
          "codefresh.token"}) {
      Log("x").info("m", {{key, canary}});
      Log("x").info("m", {{key, 5551212}});
    }
    EXPECT_EQ(captured.count("[redacted]"), 38U);
    EXPECT_EQ(captured.count(canary), 0U);
    EXPECT_EQ(captured.count("5551212"), 0U);
  }
}

TEST(AC28_Log, KeysThatOnlyReferToASecretAreShown) {
  for (const auto* key : {"secret_name", "token_file", "password-path", "secret_namespace",
                          "message", "application", "path", "Content-Type", "key", "host"}) {
    EXPECT_FALSE(is_sensitive_key(key)) << key;
  }
}

TEST(Log, TextIsForPeople) {
  const LogCapture captured(LogLevel::debug, LogFormat::text);
  const Log log("reporter");
  log.info("sent \"it\" \\o/", {{"application", "guestbook"},
                                {"count", 3},
                                {"empty", ""},
                                {"words", "two words"},
                                {"ok", true},
                                {"token", "abc"}});
  log.warning("late\nforged line");
  log.debug("d");
  log.error("e");
  const auto lines = captured.lines();
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(
      lines[0].substr(24),
      R"( INFO  reporter: sent "it" \o/ application=guestbook count=3 empty="" words="two words" )"
      R"(ok=true token=[redacted])");
  EXPECT_TRUE(parse_rfc3339(lines[0].substr(0, 24))) << lines[0];
  EXPECT_EQ(lines[1].substr(24), R"( WARN  reporter: late\nforged line)");
  EXPECT_EQ(lines[2].substr(24), " DEBUG reporter: d");
  EXPECT_EQ(lines[3].substr(24), " ERROR reporter: e");
}

TEST(Log, LongTextLinesAreCutToo) {
  const LogCapture captured(LogLevel::debug, LogFormat::text);
  Log("x").info("m", {{"value", std::string(20'000, 'a')}, {"later", 1}});
  Log("x").info(std::string(20'000, '\n'));
  for (const std::string& line : captured.lines()) {
    EXPECT_LE(line.size(), kMaxLine);
    EXPECT_TRUE(line.ends_with(" truncated=true")) << line;
    EXPECT_THAT(line, Not(HasSubstr("later")));
  }
}

TEST(RepeatFilter, LetsALineThroughOncePerPeriodAndCountsTheRest) {
  RepeatFilter filter(std::chrono::seconds(10));
  const Clock::time_point start{};
  const auto at = [&](int second) { return start + std::chrono::seconds(second); };
  EXPECT_TRUE(filter.check("a", at(0)).pass);
  EXPECT_FALSE(filter.check("a", at(1)).pass);
  EXPECT_FALSE(filter.check("a", at(9)).pass);
  EXPECT_TRUE(filter.check("b", at(9)).pass);
  const auto again = filter.check("a", at(10));
  EXPECT_TRUE(again.pass);
  EXPECT_EQ(again.suppressed, 2U);
  EXPECT_FALSE(filter.check("a", at(11)).pass);
  const auto later = filter.check("a", at(60));
  EXPECT_TRUE(later.pass);
  EXPECT_EQ(later.suppressed, 1U);
}

TEST(RepeatFilter, ForgetsTheOldestKeyBeyondAThousand) {
  RepeatFilter filter(std::chrono::hours(1));
  const Clock::time_point now{};
  for (int i = 0; i < 1001; ++i) EXPECT_TRUE(filter.check(std::to_string(i), now).pass);
  EXPECT_FALSE(filter.check("1000", now).pass);
  EXPECT_FALSE(filter.check("1", now).pass);
  EXPECT_TRUE(filter.check("0", now).pass);
}

}  // namespace
}  // namespace gitops
