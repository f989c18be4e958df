#include "control-plane/views/page.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "control-plane/views/image_name.hpp"
#include "control-plane/views/view_json.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

PageItem item(const std::string& name, std::int64_t id) {
  return {.node = R"({"name":")" + name + "\"}", .key = {.numbers = {id}, .text = name}};
}

std::vector<std::string> names(const Json& slice) {
  std::vector<std::string> found;
  for (const auto& edge : slice["edges"]) found.push_back(edge["node"]["name"]);
  return found;
}

Json page(const SliceArguments& arguments) {
  const auto window = page_window(arguments, 1);
  EXPECT_TRUE(window) << window.error().message;
  if (!window) return {};
  return Json::parse(slice_json(
      *window, items_in(*window, {item("d", 1), item("a", 9), item("b", 3), item("b", 2)})));
}

TEST(Page, ACursorComesBackAsItsKey) {
  const SortKey key{.numbers = {-3, 1'772'615'520'000'000}, .text = "a:b/ü\"~?"};
  const auto cursor = cursor_of(key);
  EXPECT_EQ(cursor.find_first_of("+/= \""), std::string::npos) << "it may stand in a URL";
  const auto window = page_window({.after = cursor}, 2);
  ASSERT_TRUE(window) << window.error().message;
  EXPECT_EQ(window->from, key);
  EXPECT_FALSE(window->is_backward);
}

TEST(Page, WithoutArgumentsAListIsWhole) {
  const auto window = page_window({.after = ""}, 1);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->limit, kMaxPage);
  EXPECT_FALSE(window->from);
  const auto slice = page({});
  EXPECT_THAT(names(slice), ElementsAre("a", "b", "b", "d"));
  EXPECT_EQ(slice["pageInfo"]["hasNextPage"], false);
  EXPECT_EQ(slice["pageInfo"]["hasPrevPage"], false);
}

TEST(Page, PagesFollowEachOtherWithoutGapOrRepeat) {
  auto slice = page({.first = 2});
  EXPECT_THAT(names(slice), ElementsAre("a", "b"));
  EXPECT_EQ(slice["pageInfo"]["hasNextPage"], true);
  EXPECT_EQ(slice["edges"][1]["cursor"], slice["pageInfo"]["endCursor"]);
  slice = page({.after = slice["pageInfo"]["endCursor"], .first = 2});
  EXPECT_THAT(names(slice), ElementsAre("b", "d"));
  EXPECT_EQ(slice["pageInfo"]["hasNextPage"], false);
  EXPECT_EQ(slice["pageInfo"]["hasPrevPage"], true);
  slice = page({.before = slice["pageInfo"]["startCursor"], .last = 1});
  EXPECT_THAT(names(slice), ElementsAre("b"));
  EXPECT_EQ(slice["pageInfo"]["hasPrevPage"], true);
  EXPECT_EQ(slice["pageInfo"]["hasNextPage"], true);
}

TEST(Page, AnEmptyPageNeverHasANextOne) {
  const auto window = page_window({.before = cursor_of({.numbers = {0}, .text = ""})}, 1);
  ASSERT_TRUE(window);
  const auto slice = Json::parse(slice_json(*window, {}));
  EXPECT_EQ(slice["pageInfo"], Json::parse(R"({"startCursor": null, "endCursor": null,
                                               "hasNextPage": false, "hasPrevPage": false})"));
  EXPECT_EQ(Json::parse(empty_slice_json())["edges"], Json::array());
}

TEST(Page, APageThatWasNotReadToItsEndHasANextOne) {
  const SortKey key{.numbers = {7}, .text = "m"};
  auto slice = Json::parse(slice_json({}, {}, key));
  EXPECT_EQ(slice["edges"], Json::array());
  EXPECT_EQ(slice["pageInfo"]["endCursor"], cursor_of(key));
  EXPECT_EQ(slice["pageInfo"]["hasNextPage"], true);
  slice = Json::parse(slice_json({.is_backward = true}, {item("z", 1)}, key));
  EXPECT_EQ(slice["pageInfo"]["startCursor"], cursor_of(key));
  EXPECT_EQ(slice["pageInfo"]["hasPrevPage"], true);
}

TEST(Page, WrongArgumentsAreRefused) {
  const auto is_refused = [](const SliceArguments& arguments) {
    const auto window = page_window(arguments, 1);
    return !window && window.error().code == ErrorCode::invalid_argument;
  };
  EXPECT_TRUE(is_refused({.first = 0}));
  EXPECT_TRUE(is_refused({.last = -1}));
  EXPECT_TRUE(is_refused({.first = 1, .last = 1}));
  const auto cursor = cursor_of({.numbers = {1}, .text = "a"});
  EXPECT_TRUE(is_refused({.after = cursor, .before = cursor}));
  EXPECT_TRUE(is_refused({.after = cursor, .last = 1}));
  EXPECT_TRUE(is_refused({.after = "%%%"}));
  EXPECT_TRUE(is_refused({.after = cursor_of({.numbers = {}, .text = "a"})}));
  EXPECT_TRUE(is_refused({.after = base64url_encode(std::string_view("1:\0", 3))}));
  EXPECT_TRUE(is_refused({.after = base64url_encode("1:\xff")}));
  EXPECT_TRUE(is_refused({.after = base64url_encode("99999999999999999999:a")}));
  EXPECT_EQ(page_window({.first = 100'000}, 1)->limit, kMaxPage);
}

TEST(Page, ACursorHasOneSpelling) {
  const auto is_refused = [](const std::string& cursor) {
    return !page_window({.after = cursor}, 1);
  };
  const auto cursor = cursor_of({.numbers = {1}, .text = "?>~~"});
  ASSERT_TRUE(cursor.contains('_'));
  EXPECT_FALSE(is_refused(cursor));
  auto standard = cursor;
  std::ranges::replace(standard, '_', '/');
  EXPECT_TRUE(is_refused(standard)) << "the standard alphabet";
  EXPECT_TRUE(is_refused(cursor + "=")) << "padding";
  EXPECT_TRUE(is_refused(cursor.substr(0, 2) + " " + cursor.substr(2))) << "a blank";
}

TEST(ViewJson, NumbersFitGraphqlsInt) {
  const auto json = Json::parse(object_json([](ObjectJson& out) {
    out.number("large", 9'000'000'000);
    out.number("small", -9'000'000'000);
    out.text("text", "a\"\n\x01");
    out.text_or_null("empty", "");
    out.time_or_null("time", 1'772'615'520'412'000);
    out.time_or_null("never", 0);
  }));
  EXPECT_EQ(json["large"], 2'147'483'647);
  EXPECT_EQ(json["small"], -2'147'483'648);
  EXPECT_EQ(json["text"], "a\"\n\x01");
  EXPECT_TRUE(json["empty"].is_null());
  EXPECT_EQ(json["time"], "2026-03-04T09:12:00.412Z");
  EXPECT_TRUE(json["never"].is_null());
}

TEST(ImageName, ItsPartsAreFound) {
  const auto full = image_name("localhost:5000/team/web:2.1@sha256:abc");
  EXPECT_EQ(full.registry, "localhost:5000");
  EXPECT_EQ(full.repository, "team/web");
  EXPECT_EQ(full.tag, "2.1");
  EXPECT_EQ(full.digest, "sha256:abc");
  EXPECT_EQ(full.short_name(), "web");
  EXPECT_EQ(full.full_repository(), "localhost:5000/team/web");
  const auto plain = image_name("acme/web");
  EXPECT_EQ(plain.registry, "");
  EXPECT_EQ(plain.full_repository(), "acme/web");
  EXPECT_EQ(plain.tag, "");
  EXPECT_EQ(image_name("").repository, "");
}

TEST(ImageName, RegistriesHaveTypes) {
  EXPECT_EQ(registry_type(""), "DOCKER_HUB");
  EXPECT_EQ(registry_type("quay.io"), "QUAY");
  EXPECT_EQ(registry_type("ghcr.io"), "GHCR");
  EXPECT_EQ(registry_type("eu.gcr.io"), "GCR");
  EXPECT_EQ(registry_type("123.dkr.ecr.eu-west-1.amazonaws.com"), "ECR");
  EXPECT_EQ(registry_type("acme.jfrog.io"), "JFROG");
  EXPECT_EQ(registry_type("registry.example"), "OTHER");
}

}  // namespace
}  // namespace gitops::control_plane_server
