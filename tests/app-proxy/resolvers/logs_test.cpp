#include "app-proxy/resolvers/logs.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

TEST(RenderLogLine, HasTheFieldsOfItsType) {
  const LogLine line{.pod = "p", .container = "c", .timestamp = "t", .content = "x"};
  const Json common{{"podName", "p"}, {"timestamp", "t"}, {"content", "x"}};
  EXPECT_EQ(Json::parse(render_line(LogShape::application, line)), common);
  EXPECT_EQ(Json::parse(render_line(LogShape::workflow, line)), common);
  Json component = common;
  component["componentName"] = "cap";
  component["containerName"] = "c";
  EXPECT_EQ(Json::parse(render_line(LogShape::component, line, "cap")), component);
  EXPECT_EQ(Json::parse(render_line(
                LogShape::pod_events,
                {.pod = "p", .timestamp = "t", .content = "m", .reason = "r", .type = "Normal"})),
            (Json{{"podName", "p"},
                  {"timestamp", "t"},
                  {"message", "m"},
                  {"reason", "r"},
                  {"type", "Normal"}}));
}

// The schema wants a time of an Application's line, and none of a Workflow's.
TEST(RenderLogLine, AnUnknownTime) {
  const LogLine line{.pod = "p", .content = std::string("\xff\n", 2)};
  EXPECT_EQ(Json::parse(render_line(LogShape::application, line))["timestamp"], "");
  EXPECT_FALSE(Json::parse(render_line(LogShape::workflow, line)).contains("timestamp"));
}

}  // namespace
}  // namespace gitops::app_proxy
