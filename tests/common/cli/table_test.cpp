#include "common/cli/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::cli {
namespace {

TEST(Table, AlignsColumnsAndLeavesTheLastAsItIs) {
  Table table;
  table.add({{"ok"}, {"API server"}, {"v1.36.3"}});
  table.add({{"not known"}, {"rights"}, {"a long text that no other cell has to be as wide as"}});
  table.add({{"failed"}});
  EXPECT_EQ(table.text(2, false),
            "  ok         API server  v1.36.3\n"
            "  not known  rights      a long text that no other cell has to be as wide as\n"
            "  failed\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table;
  table.add({{"é"}, {"a"}});
  table.add({{"ab"}, {"b"}});
  EXPECT_EQ(table.text(0, false), "é   a\nab  b\n");
}

TEST(Table, ColoursDoNotDisturbTheColumns) {
  Table table;
  table.add({{"ok", Tone::good}, {"a"}});
  table.add({{"failed", Tone::bad}, {"b"}});
  EXPECT_EQ(table.text(0, true), "\x1b[32mok\x1b[0m      a\n\x1b[31mfailed\x1b[0m  b\n");
}

TEST(Table, WideColumnsAreCutToTheWidthOfTheTerminal) {
  Table table;
  table.add({{"NAME"}, {"MESSAGE"}, {"AGE"}});
  table.add({{"a"}, {"größer als das Fenster"}, {"5d"}});
  EXPECT_EQ(table.text(0, false, 20),
            "NAME  MESSAGE    AGE\n"
            "a     größer a…  5d\n");
  EXPECT_EQ(table.text(0, false, 80), table.text(0, false));
  EXPECT_THAT(table.text(0, false, 1), testing::StartsWith("NAME  MESSA…  AGE\n")) << "6 stay";
}

TEST(Table, AnEmptyTableIsNoText) {
  EXPECT_EQ(Table().text(2, true), "");
}

TEST(Printable, EscapeSequencesAndLineEndsBecomeBlanks) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\td\x7f"), "a [31mb c d ");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "31mb"),
            "a 31mb");
}

TEST(Printable, TextOfOtherLanguagesStaysAndWhatIsNoTextIsReplaced) {
  EXPECT_EQ(printable("größe – ok"), "größe – ok");
  // Marks that reorder text, or that some terminals take for the end of a line.
  EXPECT_EQ(printable("a\u202Eb\u2066c\u2069d\u200Fe\u061Cf\u2028g"), "a b c d e f g");
  EXPECT_EQ(printable("“a” – b… \u200B\u2030"), "“a” – b… \u200B\u2030");
  EXPECT_EQ(printable("a\xFFz"), "a\uFFFDz");
}

TEST(OutputFormat, IsTextUnlessJsonIsAskedFor) {
  const auto load = [](const std::vector<std::string>& arguments, OutputFormat& format) {
    ConfigReader reader("sample", "Prints", ProgramKind::command);
    add_output_row(reader, format);
    return reader.load(arguments, {}).mistakes;
  };
  auto format = OutputFormat::text;
  EXPECT_THAT(load({}, format), testing::IsEmpty());
  EXPECT_EQ(format, OutputFormat::text);
  EXPECT_THAT(load({"-o", "json"}, format), testing::IsEmpty());
  EXPECT_EQ(format, OutputFormat::json);
  EXPECT_THAT(load({"-o", "yaml"}, format),
              testing::ElementsAre("flag --output: \"yaml\" is not one of text, json"));
}

}  // namespace
}  // namespace gitops::cli
