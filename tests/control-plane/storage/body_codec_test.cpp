// The codec of bodies, and its dictionary: judged on recordings that it was not trained on. recordings/trained.jsonl
// comes from beds with Argo CD 3.2 and from the resource reporter, held_out.jsonl from others, with Argo CD 2.13.
#include "control-plane/storage/body_codec.hpp"

#include <fstream>
#include <iostream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "control-plane/projection/event.hpp"
#include "support/process.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kTests = std::filesystem::path(GITOPS_SOURCE_DIR) / "tests";

// Adds the body of a request that the control plane takes.
void add_body(std::vector<ObjectBody>& bodies, const std::string& request) {
  JsonParser parser(EventLimits().max_depth);
  auto event = read_event(parser, request, {.runtime = "prod"});
  if (event) bodies.push_back(std::move(event->body));
}

std::vector<ObjectBody> recorded(const std::string& name) {
  std::vector<ObjectBody> bodies;
  std::ifstream file(kTests / "control-plane/storage/recordings" / name);
  for (std::string line; std::getline(file, line);) add_body(bodies, line);
  return bodies;
}

// The request of an event in a golden file, where JSON within texts is written out.
std::string request_of(Json event) {
  event["object"] = base64_encode(event["object"].dump());
  for (const auto* manifest : {"actualManifest", "desiredManifest"}) {
    auto& text = event["source"][manifest];
    if (text.is_object()) text = text.dump();
  }
  return Json{{"data", std::move(event)}}.dump();
}

std::vector<ObjectBody> golden() {
  std::vector<ObjectBody> bodies;
  for (const auto& entry : std::filesystem::directory_iterator(kTests / "golden")) {
    const auto expected = Json::parse(test::read_file(entry.path()))["expected"];
    if (expected.contains("application")) add_body(bodies, request_of(expected["application"]));
    for (const auto& [name, event] : expected.value("resources", Json::object()).items()) {
      add_body(bodies, request_of(event));
    }
  }
  return bodies;
}

std::size_t packed_size(const std::vector<ObjectBody>& bodies, BodyCodec codec) {
  std::size_t size = 0;
  for (const auto& body : bodies) size += pack_body(body, codec).bytes.size();
  return size;
}

// Returns the packed size with the newest dictionary, relative to that without one.
double ratio(const std::string& name, const std::vector<ObjectBody>& bodies) {
  const auto with = packed_size(bodies, kBodyCodec);
  const auto without = packed_size(bodies, BodyCodec::zstd);
  const auto ratio = static_cast<double>(with) / static_cast<double>(without);
  std::cout << name << ": " << bodies.size() << " bodies, " << with / bodies.size()
            << " bytes each with the dictionary, " << without / bodies.size() << " without, ratio "
            << ratio << "\n";
  return ratio;
}

TEST(BodyCodec, ABodyComesBackAndDamageIsNoticed) {
  const ObjectBody body{.live = std::string(10'000, 'x'), .in_git = "kind: A\n", .errors = "[]"};
  for (const auto codec : {BodyCodec::zstd, BodyCodec::zstd_dictionary_1}) {
    const auto packed = pack_body(body, codec);
    EXPECT_EQ(packed.codec, codec);
    EXPECT_LT(packed.bytes.size(), 200U);
    const auto back = unpack_body(codec, packed.bytes, packed.size);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, body);
    EXPECT_FALSE(unpack_body(codec, packed.bytes, packed.size - 1));
    EXPECT_FALSE(unpack_body(codec, packed.bytes.substr(1), packed.size));
    EXPECT_FALSE(unpack_body(codec, packed.bytes, std::size_t{1} << 40));
  }
  EXPECT_EQ(kBodyCodec, BodyCodec::zstd_dictionary_1) << "of new bodies";
}

TEST(BodyCodec, TheCodecOfANewerVersionIsNamed) {
  const auto packed = pack_body({.live = "text"});
  for (const std::int64_t number : {0, 3, 258, -1}) {
    const auto body = unpack_body(static_cast<BodyCodec>(number), packed.bytes, packed.size);
    ASSERT_FALSE(body) << number;
    EXPECT_EQ(body.error().code, ErrorCode::unsupported);
    EXPECT_TRUE(body.error().message.contains("codec " + std::to_string(number)))
        << body.error().message;
  }
}

// The texts of an object whose `live` is kStored, as each codec has once stored them.
constexpr std::string_view kStored = R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Application",)"
                                     R"("metadata":{"name":"shop","namespace":"argocd"}})";
constexpr std::string_view kStoredPlain =
    "28b52ffd207eed0200f245131790a73af29d0d4a29cd3ee599cd22ff5e443ddf6cecd2fdc7e163cc"
    "9711af26e6332a9e36ce6f3f6fa830712ab61b2476073e9f448389cbd3122f07816240e95a2dacfb"
    "9c8a6c2102ee6d0054040055086033888a79190fb401";
constexpr std::string_view kStoredWithDictionary1 =
    "28b52ffd21017e0d0100586a006172676f6364227d7d07fc73417bbb9dc423a58395f2e2722811c6"
    "30bbcc";

// A shipped dictionary never changes, since bodies of its codec would be lost.
TEST(BodyCodec, ShippedDictionariesStayReadable) {
  const auto read = [](BodyCodec codec, std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      bytes += static_cast<char>(hex_value(hex[i]) * 16 + hex_value(hex[i + 1]));
    }
    const auto body = unpack_body(codec, bytes, 20 + kStored.size());
    return body ? body->live : body.error().message;
  };
  EXPECT_EQ(read(BodyCodec::zstd, kStoredPlain), kStored);
  EXPECT_EQ(read(BodyCodec::zstd_dictionary_1, kStoredWithDictionary1), kStored);
  EXPECT_LE(dictionary_of(BodyCodec::zstd_dictionary_1).size(), 110U * 1024);
}

TEST(BodyCodec, TheDictionaryHelpsOnRecordingsItWasNotTrainedOn) {
  EXPECT_LE(ratio("held-out recordings", recorded("held_out.jsonl")), 0.36);
  EXPECT_LE(ratio("golden events", golden()), 0.6);
}

TEST(BodyCodec, EveryRecordingComesBack) {
  for (const auto* name : {"trained.jsonl", "held_out.jsonl"}) {
    const auto bodies = recorded(name);
    EXPECT_GT(bodies.size(), 50U);
    for (const auto& body : bodies) {
      const auto packed = pack_body(body);
      const auto back = unpack_body(packed.codec, packed.bytes, packed.size);
      ASSERT_TRUE(back);
      EXPECT_EQ(*back, body);
    }
  }
}

}  // namespace
}  // namespace gitops::control_plane_server
