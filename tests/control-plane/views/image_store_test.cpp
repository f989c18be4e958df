#include "control-plane/views/image_store.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/views/image_view.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using store::Engine;

constexpr const char* kImage = "quay.io/acme/web:2";

struct ImageContract : testing::TestWithParam<Engine> {
  store::Connection& db() { return bed.connection(); }
  Json image(std::int64_t account = 1) {
    const auto row = must(find_image(db(), account, kImage));
    return row ? Json::parse(image_binary_json(*row, {.account = "acme-id"})) : Json();
  }
  StoreBed bed{GetParam()};
};

std::string binary() {
  return Json{{"id", "sha256:1"},
              {"created", "2026-03-04T09:00:00Z"},
              {"imageName", kImage},
              {"size", 12.5},
              {"commit", nullptr}}
      .dump();
}

TEST_P(ImageContract, PatchesAndBinariesComeInAnyOrder) {
  const auto patch = Json{{"commit", "c0ffee"}, {"author", {{"username", "dana"}}}}.dump();
  must(patch_image_binary(db(), 1, kImage, patch, 5));
  EXPECT_EQ(image()["id"], "") << "not reported yet";
  must(put_image_binary(db(), 1, binary(), 6));
  const auto first = image();
  EXPECT_EQ(first["id"], "sha256:1");
  EXPECT_EQ(first["commit"], "c0ffee") << "a null does not take it back";
  EXPECT_EQ(first["author"]["username"], "dana");
  EXPECT_EQ(first["size"], 12.5);
  EXPECT_EQ(first["repositoryName"], "acme/web");
  EXPECT_EQ(first["imageDomain"], "QUAY");
  EXPECT_EQ(first["accountId"], "acme-id");
  EXPECT_TRUE(first["branch"].is_null());
  must(patch_image_binary(db(), 1, kImage, R"({"commit":"beef"})", 7));
  EXPECT_EQ(image()["commit"], "beef");
  EXPECT_TRUE(image(2).is_null());
}

TEST_P(ImageContract, RegistriesOfArchitecturesAreKeptSideBySide) {
  const auto registry = [](const char* id, bool is_list) {
    return Json{{"binaryId", id},
                {"created", "t"},
                {"imageName", kImage},
                {"repoDigest", std::string("digest of ") + id},
                {"registry", {{"domain", "ghcr.io"}}},
                {"manifestList", is_list}}
        .dump();
  };
  must(put_image_registry(db(), 1, registry("list", true), 1));
  EXPECT_EQ(image()["id"], "") << "a list is no image";
  must(put_image_registry(db(), 1, registry("amd64", false), 1));
  must(put_image_registry(db(), 1, registry("arm64", false), 1));
  const auto row = must(find_image(db(), 1, kImage));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->id, "amd64");
  EXPECT_EQ(Json::parse(row->registry).size(), 3U);
  EXPECT_EQ(image()["imageRegistryDomains"], Json({"GHCR", "QUAY"}));
}

TEST_P(ImageContract, LayersAreKeptWithTheirImage) {
  must(put_image_binary(db(), 1, binary(), 1));
  must(put_image_layers(db(), 1, R"({"image":"sha256:1","layers":[{"size":1}]})", 2));
  must(put_image_layers(db(), 1, R"({"image":"unknown","layers":[]})", 2));
  const auto row = must(find_image(db(), 1, kImage));
  EXPECT_EQ(Json::parse(row->data)["layers"]["layers"][0]["size"], 1);
  EXPECT_EQ(row->updated_at, 2);
}

TEST_P(ImageContract, AnnotationsOfOneKeyAreMerged) {
  const auto issue = [](const Json& value) {
    return Json{{"entityType", "image"},
                {"logicEntityId", {{"id", kImage}}},
                {"key", "SHOP-1"},
                {"type", "issue"},
                {"issueValue", value}}
        .dump();
  };
  must(save_annotation(db(), 1, issue({{"url", "u"}, {"status", "Open"}}), 1));
  must(save_annotation(db(), 1, issue({{"url", nullptr}, {"status", "Done"}}), 2));
  const auto rows = must(list_annotations(db(), 1, "image", kImage));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(Json::parse(rows[0].value), Json::parse(R"({"url":"u","status":"Done"})"));
  EXPECT_TRUE(must(list_annotations(db(), 2, "image", kImage)).empty());
  must(save_annotation(db(), 1,
                       R"({"entityType":"app","k8sEntityId":{"name":"shop"},"key":"k","type":"t",
                           "genericValue":"text"})",
                       3));
  EXPECT_EQ(must(list_annotations(db(), 1, "app", R"({"name":"shop"})"))[0].value, "\"text\"");
}

TEST_P(ImageContract, BadInputIsRefused) {
  const auto code = [](const auto& result) {
    return result ? std::optional<ErrorCode>() : result.error().code;
  };
  EXPECT_EQ(code(put_image_binary(db(), 1, R"({"id":"1"})", 1)), ErrorCode::invalid_argument);
  EXPECT_EQ(code(put_image_binary(db(), 1, R"({"imageName":"a"})", 1)),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code(patch_image_binary(db(), 1, std::string("a\0b", 3), "{}", 1)),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code(patch_image_binary(db(), 1, std::string(2'000, 'a'), "{}", 1)),
            ErrorCode::invalid_argument);
  const auto large = Json{{"info", std::string(kMaxImageData, 'x')}}.dump();
  EXPECT_EQ(code(patch_image_binary(db(), 1, "a", large, 1)), ErrorCode::too_large);
  EXPECT_EQ(code(save_annotation(db(), 1, R"({"entityType":"image","key":"k"})", 1)),
            ErrorCode::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Engines, ImageContract, testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

// Two replicas get the reports of one build.
struct TwoReplicas : testing::Test {
  TwoReplicas() { must(store::migrate(*first, migrations())); }
  [[nodiscard]] std::unique_ptr<store::PostgresConnection> open() const {
    return must(store::open_postgres(files.location(), "test"));
  }
  // Runs `report` at the second replica while a transaction of the first one is open.
  Result<void> store_meanwhile(const std::function<Result<void>()>& report) {
    std::atomic<bool> is_over = false;
    Result<void> stored;
    std::thread thread([&] {
      stored = second->transact(report);
      is_over = true;
    });
    constexpr store::Statement kWaits{.name = "test.waits",
                                      .sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"};
    while (!is_over && must(watching->run(kWaits)).number(0, 0) == 0) std::this_thread::yield();
    must(first->run_script("COMMIT"));
    thread.join();
    return stored;
  }

  test::TestDatabase files{Engine::postgres};
  std::unique_ptr<store::PostgresConnection> first = open();
  std::unique_ptr<store::PostgresConnection> second = open();
  std::unique_ptr<store::PostgresConnection> watching = open();
};

TEST_F(TwoReplicas, TwoFirstReportsOfAnImageAreMerged) {
  must(first->run_script("BEGIN"));
  must(put_image_binary(*first, 1, binary(), 1));
  const auto stored = store_meanwhile([&] {
    const auto registry = Json{{"binaryId", "sha256:1"}, {"imageName", kImage}}.dump();
    return put_image_registry(*second, 1, registry, 2);
  });
  ASSERT_TRUE(stored) << stored.error().message;
  const auto row = must(find_image(*watching, 1, kImage));
  ASSERT_TRUE(row);
  EXPECT_EQ(Json::parse(row->data)["size"], 12.5);
  EXPECT_EQ(Json::parse(row->registry).size(), 1U);
}

TEST_F(TwoReplicas, TwoFirstAnnotationsOfAKeyAreMerged) {
  const auto issue = [](const char* field) {
    return Json{{"entityType", "image"},
                {"logicEntityId", {{"id", kImage}}},
                {"key", "SHOP-1"},
                {"type", "issue"},
                {"issueValue", {{field, "set"}}}}
        .dump();
  };
  must(first->run_script("BEGIN"));
  must(save_annotation(*first, 1, issue("url"), 1));
  const auto stored =
      store_meanwhile([&] { return save_annotation(*second, 1, issue("status"), 2); });
  ASSERT_TRUE(stored) << stored.error().message;
  const auto rows = must(list_annotations(*watching, 1, "image", kImage));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(Json::parse(rows[0].value), Json::parse(R"({"url":"set","status":"set"})"));
}

TEST(MergedObject, NullsAndBrokenTextsChangeNothing) {
  EXPECT_EQ(Json::parse(merged_object(R"({"a":1,"b":{"c":1}})", R"({"a":null,"b":{"d":2}})")),
            Json::parse(R"({"a":1,"b":{"d":2}})"));
  EXPECT_EQ(merged_object("broken", R"({"a":1})"), R"({"a":1})");
  EXPECT_EQ(merged_object(R"({"a":1})", "[]"), R"({"a":1})");
}

}  // namespace
}  // namespace gitops::control_plane_server
