#include "k8s-client/record.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/sample_application.hpp"

namespace gitops::k8s {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Kind = ObjectDecoder::Kind;

ObjectDecoder decoder_of(std::vector<std::string> fields, ObjectLimits limits = {}) {
  return ObjectDecoder(FieldSet(std::move(fields)), {}, limits);
}

// An object with this metadata (members only) and these further members (", …").
std::string object(const std::string& metadata, const std::string& rest = "") {
  return R"({"apiVersion":"v1","metadata":{)" + metadata + "}" + rest + "}";
}
const std::string kGood = object(
    R"("name":"good","namespace":"shop","resourceVersion":"7","uid":"u")", R"(,"data":{"a":"b"})");

std::string list_of(const std::vector<std::string>& items) {
  std::string text = R"({"apiVersion":"v1","items":[)";
  for (const auto& item : items) text += item + ",";
  if (!items.empty()) text.pop_back();
  return text + R"(],"kind":"List","metadata":{"continue":"next","resourceVersion":"99"}})";
}

struct Collected {
  std::vector<std::string> names;
  std::vector<std::string> texts;
  std::vector<Quarantined> bad;
  Result<ObjectDecoder::ListMeta> meta = fail(ErrorCode::internal, "not run");
};

Collected collect(ObjectDecoder& decoder, const std::string& json) {
  Collected all;
  all.meta = decoder.decode_list(
      json,
      [&](Record&& record, std::string_view text) {
        all.names.emplace_back(record.name());
        all.texts.emplace_back(text);
      },
      [&](Quarantined&& bad) { all.bad.push_back(std::move(bad)); });
  return all;
}

// ---- fields ----

TEST(FieldSet, RefusesRepeatedAndMalformedPaths) {
  EXPECT_THROW(FieldSet({"spec.project", "spec.project"}), std::invalid_argument);
  EXPECT_THROW(FieldSet({"spec..project"}), std::invalid_argument);
  EXPECT_THROW(FieldSet({"", ""}), std::invalid_argument);
  EXPECT_EQ(FieldSet({""}).size(), 1U) << "the whole object";
  EXPECT_EQ(FieldSet({"spec.project", "spec"}).size(), 2U);
}

TEST(Record, EmptyOneHasNoIdentityAndNoFields) {
  const Record record;
  EXPECT_EQ(record.name(), "");
  EXPECT_EQ(record.field(0), std::nullopt);
}

TEST(ObjectDecoder, KeepsIdentityAndAskedForFields) {
  auto decoder = decoder_of({"spec.project", "status.sync.status", "status.sync.revision",
                             "metadata.generation", "spec.missing", "metadata.name"});
  const auto decoded = decoder.decode(test::sample_application("argocd", "web", "123"));
  ASSERT_EQ(decoded.kind, Kind::object) << decoded.quarantined.reason;
  const auto& record = decoded.record;
  EXPECT_EQ(record.ns(), "argocd");
  EXPECT_EQ(record.name(), "web");
  EXPECT_EQ(record.uid(), "7d1c3a52-0b6e-4b7e-9a43-web");
  EXPECT_EQ(record.resource_version(), "123");
  EXPECT_EQ(record.key(), (ObjectKey{"argocd", "web"}));
  EXPECT_EQ(record.field(0), "default");
  EXPECT_EQ(record.field(1), "Synced");
  EXPECT_EQ(record.field(2), "5b1e0f2f7c8d9a4b3c6e1d0f9a8b7c6d5e4f3a2b");
  EXPECT_EQ(record.field(3), "42");
  EXPECT_EQ(record.field(4), std::nullopt);
  EXPECT_EQ(record.field(5), "web");
  EXPECT_EQ(record.field(6), std::nullopt);
}

TEST(ObjectDecoder, KeepsValuesOfAnyTypeAsJsonTextAndNullAsAbsent) {
  auto decoder = decoder_of({"a", "b", "c", "d", "e", "f", "g", "h"});
  const auto decoded = decoder.decode(object(
      R"("name":"x")",
      R"(,"a":{"k":[1, 2]},"b":[ ],"c":true,"d":-1.5e3,"e":null,"f":"","g":"ü\n\u00fc\ud83d\ude00\"","h" : "spaced" )"));
  ASSERT_EQ(decoded.kind, Kind::object) << decoded.quarantined.reason;
  EXPECT_EQ(decoded.record.field(0), R"({"k":[1, 2]})");
  EXPECT_EQ(decoded.record.field(1), "[ ]");
  EXPECT_EQ(decoded.record.field(2), "true");
  EXPECT_EQ(decoded.record.field(3), "-1.5e3");
  EXPECT_EQ(decoded.record.field(4), std::nullopt);
  EXPECT_EQ(decoded.record.field(5), "");
  EXPECT_EQ(decoded.record.field(6), "ü\nü😀\"");
  EXPECT_EQ(decoded.record.field(7), "spaced");
}

TEST(ObjectDecoder, FollowsPathsThroughOneAnotherAndDotsInKeys) {
  auto decoder = decoder_of({"metadata.annotations", R"(metadata.annotations.argocd\.io/refresh)",
                             "status", "status.health.status"});
  const auto decoded =
      decoder.decode(object(R"("annotations":{"argocd.io/refresh":"hard"},"name":"x")",
                            R"(,"status":{"health":{"status":"Healthy"}})"));
  ASSERT_EQ(decoded.kind, Kind::object) << decoded.quarantined.reason;
  EXPECT_EQ(decoded.record.field(0), R"({"argocd.io/refresh":"hard"})");
  EXPECT_EQ(decoded.record.field(1), "hard");
  EXPECT_EQ(decoded.record.field(2), R"({"health":{"status":"Healthy"}})");
  EXPECT_EQ(decoded.record.field(3), "Healthy");
}

TEST(ObjectDecoder, ReadsEscapedKeysAndAnyWhiteSpaceAndOrder) {
  auto decoder = decoder_of({"spec.project"});
  const auto decoded = decoder.decode(
      "\n{ \"spec\" :\t{\"pro\\u006aect\": \"p\" } ,\r\n\"metadata\" : { \"uid\":\"u\" , "
      "\"na\\u006de\" : "
      "\"\\u0077eb\" } }\n");
  ASSERT_EQ(decoded.kind, Kind::object) << decoded.quarantined.reason;
  EXPECT_EQ(decoded.record.name(), "web");
  EXPECT_EQ(decoded.record.field(0), "p");
}

TEST(ObjectDecoder, TakesUnexpectedTypesOnTheWayAsAbsent) {
  auto decoder = decoder_of({"status.sync.status"});
  for (const auto* status :
       {"null", "[]", "\"text\"", "{}", R"({"sync":7})", R"({"sync":{"status":null}})"}) {
    const auto decoded =
        decoder.decode(object(R"("name":"x")", std::string(",\"status\":") + status));
    ASSERT_EQ(decoded.kind, Kind::object) << status;
    EXPECT_EQ(decoded.record.field(0), std::nullopt) << status;
  }
}

// Every field of many objects as a DOM parser reads it.
TEST(ObjectDecoder, AgreesWithADomParser) {
  const std::vector<std::string> paths{"spec",
                                       "spec.source.path",
                                       "status.history",
                                       "status.health.status",
                                       "metadata.annotations",
                                       "status.operationState.operation.retry.limit"};
  auto decoder = decoder_of(paths);
  for (int resources = 0; resources < 40; ++resources) {
    const auto text =
        test::sample_application("ns", "app-" + std::to_string(resources), "5", resources);
    const auto dom = nlohmann::json::parse(text);
    const auto pretty = dom.dump(resources % 4);
    const auto decoded = decoder.decode(pretty);
    ASSERT_EQ(decoded.kind, Kind::object) << decoded.quarantined.reason;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      std::string pointer = "/" + paths[i];
      std::ranges::replace(pointer, '.', '/');
      const auto& expected = dom.at(nlohmann::json::json_pointer(pointer));
      const auto value = decoded.record.field(i);
      ASSERT_TRUE(value.has_value()) << paths[i];
      EXPECT_EQ(expected.is_string() ? nlohmann::json(std::string(*value))
                                     : nlohmann::json::parse(*value),
                expected);
    }
  }
}

// ---- keep ----

TEST(ObjectDecoder, DropsWhatKeepRefuses) {
  ObjectDecoder decoder(FieldSet({"spec"}), [](std::string_view ns, std::string_view name) {
    return ns == "shop" && name != "other";
  });
  EXPECT_EQ(decoder.decode(kGood).kind, Kind::object);
  const auto dropped = decoder.decode(object(
      R"("name":"other","namespace":"shop","resourceVersion":"12")", R"(,"spec":{"a":[{}]})"));
  EXPECT_EQ(dropped.kind, Kind::dropped);
  EXPECT_EQ(dropped.resource_version, "12");
  // Also when it is bad, as long as its name can be read.
  EXPECT_EQ(decoder.decode(object(R"("name":"other","namespace":"shop","uid":1)")).kind,
            Kind::dropped);
  EXPECT_EQ(decoder.decode(object("\"name\":\"other\",\"namespace\":\"shop\",\"a\":\"\xff\"")).kind,
            Kind::dropped);
}

TEST(ObjectDecoder, NoticesWhenADroppedObjectIsCutShort) {
  ObjectDecoder decoder(FieldSet({}), [](auto, auto) { return false; });
  auto text = object(R"("name":"x")", R"(,"a":{"b":1})");
  EXPECT_EQ(decoder.decode(text).kind, Kind::dropped);
  text.pop_back();
  EXPECT_EQ(decoder.decode(text).kind, Kind::dropped);  // known to be another's all the same
  text = list_of({text, kGood});
  EXPECT_FALSE(collect(decoder, text).meta);
}

// ---- lists ----

TEST(ObjectDecoder, ReadsListsWithMetadataInFrontOrBehind) {
  auto decoder = decoder_of({});
  for (const auto& text :
       {list_of({kGood, object(R"("name":"two")")}),
        R"({"kind":"List","metadata":{"resourceVersion":"99","continue":"next"},"items":[)" +
            kGood + "," + object(R"("name":"two")") + "]}"}) {
    const auto all = collect(decoder, text);
    ASSERT_TRUE(all.meta) << all.meta.error().message;
    EXPECT_EQ(all.meta->resource_version, "99");
    EXPECT_EQ(all.meta->continue_token, "next");
    EXPECT_THAT(all.names, ElementsAre("good", "two"));
    EXPECT_EQ(all.texts.front(), kGood);
    EXPECT_TRUE(all.bad.empty());
  }
}

TEST(ObjectDecoder, TakesEmptyAndNullItemsAsEmptyList) {
  auto decoder = decoder_of({});
  EXPECT_TRUE(collect(decoder, list_of({})).meta);
  EXPECT_TRUE(collect(decoder, R"({"items":null,"metadata":{"resourceVersion":"1"}})").meta);
}

TEST(ObjectDecoder, RefusesListsWithoutAUsableFrameBeforeCallingAnything) {
  auto decoder = decoder_of({});
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("null"), std::string(R"({"kind":"Status"})"),
        R"({"items":[)" + kGood, R"({"items":[)" + kGood + "]",
        R"({"items":[)" + kGood + R"(],"a")", R"({"items":[)" + kGood + R"(],"items":[]})",
        R"({"items":[)" + kGood + ",]}", R"({"items":[)" + kGood + "]} x",
        std::string(R"({"items":{"a":1}})"),
        R"({"items":[)" + kGood + R"(],"metadata":{"resourceVersion":5}})",
        R"({"items":[)" + kGood + R"(],"b":"unclosed})"}) {
    const auto all = collect(decoder, text);
    ASSERT_FALSE(all.meta) << text;
    EXPECT_EQ(all.meta.error().code, ErrorCode::invalid_data);
    EXPECT_TRUE(all.names.empty() && all.bad.empty()) << text;
  }
}

TEST(ObjectDecoder, ReadsTextUpToTheLastByteOfAPageWithEveryKernel) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = 8;
  auto* memory = static_cast<char*>(mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + pages * page, page, PROT_NONE), 0);
  const auto* const original = simdjson::get_active_implementation().operator->();
  for (const auto* kernel : simdjson::get_available_implementations()) {
    if (!kernel->supported_by_runtime_system()) continue;
    simdjson::get_active_implementation() = kernel;
    auto decoder = decoder_of({"data.a"});  // takes its kernel at the first text
    for (std::size_t padding = 0; padding < 130; ++padding) {
      const auto text =
          object(R"("name":"x","l":")" + std::string(padding, 'y') + "\"", R"(,"data":{"a":12})");
      auto* const begin = memory + pages * page - text.size();
      std::memcpy(begin, text.data(), text.size());
      const auto decoded = decoder.decode({begin, text.size()});
      ASSERT_EQ(decoded.kind, Kind::object) << kernel->name();
      ASSERT_EQ(decoded.record.field(0), "12");
    }
  }
  simdjson::get_active_implementation() = original;
  munmap(memory, (pages + 1) * page);
}

// ---- bad objects ----

struct BadCase {
  const char* what;
  std::string text;
  const char* reason;
  const char* name;  // as far as it can be read
};

std::vector<BadCase> bad_cases() {
  return {
      {"name of another type", object(R"("name":7,"namespace":"shop")"),
       "metadata.name is not a string", ""},
      {"namespace of another type", object(R"("name":"p","namespace":{})"),
       "metadata.namespace is not a string", "p"},
      {"uid of another type", object(R"("name":"p","uid":[1])"), "metadata.uid is not a string",
       "p"},
      {"version of another type", object(R"("name":"p","resourceVersion":12)"),
       "metadata.resourceVersion is not a string", "p"},
      {"no name", object(R"("namespace":"shop")"), "metadata.name is missing", ""},
      {"empty name", object(R"("name":"")"), "metadata.name is missing", ""},
      {"no metadata", R"({"kind":"x"})", "metadata.name is missing", ""},
      {"metadata of another type", R"({"metadata":[1]})", "metadata.name is missing", ""},
      {"not an object", R"([{"metadata":{"name":"p"}}])", "not an object", ""},
      {"a scalar", "17", "not an object", ""},
      {"NUL in the name", object(R"("name":"p\u0000q")"), "metadata.name holds a control character",
       ""},
      {"NUL in the uid", object(R"("name":"p","uid":"\u0000")"),
       "metadata.uid holds a control character", "p"},
      {"name twice", object(R"("name":"p","name":"q")"), "metadata.name appears twice", "p"},
      {"name twice, once escaped", object(R"("name":"p","n\u0061me":"q")"),
       "metadata.name appears twice", "p"},
      {"metadata twice", object(R"("name":"p")", R"(,"metadata":{"name":"q"})"),
       "metadata appears twice", "p"},
      {"asked-for field twice", object(R"("name":"p")", R"(,"spec":{"a":1,"a":2})"),
       "spec.a appears twice", "p"},
      {"asked-for field without grammar", object(R"("name":"p")", R"(,"spec":{"a":tru})"),
       "spec.a is not JSON", "p"},
      {"number without grammar", object(R"("name":"p")", R"(,"spec":{"a":01})"),
       "spec.a is not JSON", "p"},
      {"unknown escape", object(R"("name":"p")", R"(,"spec":{"a":"\x"})"),
       "spec.a holds an unknown escape", "p"},
      {"missing comma", object(R"("name":"p")", R"( "spec":1)"), "malformed JSON", "p"},
      {"missing value", object(R"("name":"p")", R"(,"spec":)"), "malformed JSON", "p"},
      {"key without quotes", object(R"("name":"p")", ",spec:1"), "malformed JSON", "p"},
      {"invalid UTF-8", object("\"name\":\"p\",\"x\":\"\xc3\x28\""), "invalid UTF-8", "p"},
      {"overlong UTF-8", object("\"name\":\"p\",\"x\":\"\xc0\xaf\""), "invalid UTF-8", "p"},
      {"surrogate in UTF-8", object("\"name\":\"p\",\"x\":\"\xed\xa0\x80\""), "invalid UTF-8", "p"},
      {"raw control character", object("\"name\":\"p\",\"x\":\"\x01\""),
       "control character in a string", "p"},
      {"raw NUL", object(std::string("\"name\":\"p\",\"x\":\"") + '\0' + "\""),
       "control character in a string", "p"},
      {"too large", object(R"("name":"p")", ",\"x\":\"" + std::string(3000, 'x') + "\""),
       "larger than 2000 bytes", "p"},
      {"too deep", object(R"("name":"p")", ",\"x\":" + std::string(30, '[') + std::string(30, ']')),
       "nested deeper than 20", "p"},
  };
}

TEST(ObjectDecoder, AC24_AC25_QuarantinesBadObjectsWithTheirReason) {
  auto decoder = decoder_of({"spec.a"}, {.max_bytes = 2000, .max_depth = 20});
  for (const auto& bad : bad_cases()) {
    const auto decoded = decoder.decode(bad.text);
    EXPECT_EQ(decoded.kind, Kind::bad) << bad.what;
    EXPECT_EQ(decoded.quarantined.reason, bad.reason) << bad.what;
    EXPECT_EQ(decoded.quarantined.key.name, bad.name) << bad.what;
    EXPECT_EQ(decoded.quarantined.bytes, bad.text.size()) << bad.what;
    EXPECT_EQ(decoder.decode(kGood).kind, Kind::object) << "after " << bad.what;
  }
}

TEST(ObjectDecoder, AC24_AC25_BadItemsLeaveTheRestOfTheirListUsable) {
  auto decoder = decoder_of({"spec.a"}, {.max_bytes = 2000, .max_depth = 20});
  for (const auto& bad : bad_cases()) {
    const auto all = collect(decoder, list_of({kGood, bad.text, object(R"("name":"last")")}));
    ASSERT_TRUE(all.meta) << bad.what << ": " << all.meta.error().message;
    EXPECT_EQ(all.meta->resource_version, "99") << bad.what;
    EXPECT_EQ(all.meta->continue_token, "next") << bad.what;
    EXPECT_THAT(all.names, ElementsAre("good", "last")) << bad.what;
    EXPECT_EQ(all.texts.front(), kGood) << bad.what;
    ASSERT_EQ(all.bad.size(), 1U) << bad.what;
    EXPECT_EQ(all.bad[0].reason, bad.reason) << bad.what;
    EXPECT_EQ(all.bad[0].key.name, bad.name) << bad.what;
  }
}

TEST(ObjectDecoder, AC25_NoticesTruncationAtEveryByte) {
  auto decoder = decoder_of({"status.sync.status", "spec"});
  const auto text = test::sample_application("argocd", "web", "5", 2);
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto decoded = decoder.decode(std::string_view(text).substr(0, size));
    ASSERT_EQ(decoded.kind, Kind::bad) << size;
    ASSERT_FALSE(decoded.quarantined.reason.empty());
  }
  EXPECT_EQ(decoder.decode(text).kind, Kind::object);
  EXPECT_EQ(decoder.decode(text + "}").kind, Kind::bad);
  EXPECT_EQ(decoder.decode(text + text).kind, Kind::bad);
}

TEST(ObjectDecoder, AC25_ReadsTheNameOfAnObjectThatIsCutShort) {
  auto decoder = decoder_of({});
  const auto text = kGood.substr(0, kGood.find("\"data\""));
  const auto decoded = decoder.decode(text);
  ASSERT_EQ(decoded.kind, Kind::bad);
  EXPECT_EQ(decoded.quarantined.key, (ObjectKey{"shop", "good"}));
  EXPECT_EQ(decoded.quarantined.reason, "truncated JSON");
  EXPECT_EQ(decoded.resource_version, "7");
}

TEST(ObjectDecoder, AC25_KeepsHugeNumbersAsText) {
  auto decoder = decoder_of({"a", "b", "c"});
  const std::string digits(2000, '9');
  const auto decoded = decoder.decode(
      object(R"("name":"x")", ",\"a\":" + digits + ",\"b\":1e999999999,\"c\":-" + digits + ".5"));
  ASSERT_EQ(decoded.kind, Kind::object) << decoded.quarantined.reason;
  EXPECT_EQ(decoded.record.field(0), digits);
  EXPECT_EQ(decoded.record.field(1), "1e999999999");
}

TEST(ObjectDecoder, AC25_SurvivesLargeAndDeepObjects) {
  auto decoder = decoder_of({"metadata.annotations"});
  const auto large =
      object(R"("annotations":{"a":")" + std::string(1'500'000, 'x') + R"("},"name":"large")");
  EXPECT_EQ(decoder.decode(large).kind, Kind::object);
  const std::string open(1'000'000, '[');
  const auto deep =
      decoder.decode(object(R"("name":"deep")", ",\"x\":" + open + std::string(open.size(), ']')));
  ASSERT_EQ(deep.kind, Kind::bad);
  EXPECT_EQ(deep.quarantined.reason, "nested deeper than 256");
  EXPECT_EQ(deep.quarantined.key.name, "deep");
  EXPECT_EQ(decoder.decode(object(R"("name":"deep")", ",\"x\":" + open)).kind, Kind::bad);
  const auto over =
      decoder.decode(object(R"("name":"over","a":")" + std::string(8'400'000, 'x') + "\""));
  ASSERT_EQ(over.kind, Kind::bad);
  EXPECT_THAT(over.quarantined.reason, HasSubstr("larger than 8388608 bytes"));
  decoder.release_scratch();
  EXPECT_EQ(decoder.decode(kGood).kind, Kind::object);
}

TEST(ObjectDecoder, AC25_CountsDepthPerObjectNotPerList) {
  auto decoder = decoder_of({}, {.max_bytes = 2000, .max_depth = 2});
  const auto all = collect(decoder, list_of({kGood, object(R"("name":"deep","a":{})"), kGood}));
  ASSERT_TRUE(all.meta);
  EXPECT_THAT(all.names, ElementsAre("good", "good"));
  ASSERT_EQ(all.bad.size(), 1U);
  EXPECT_EQ(all.bad[0].reason, "nested deeper than 2");
}

TEST(ObjectDecoder, AC24_LoneSurrogatesBecomeReplacementCharacters) {
  auto decoder = decoder_of({"a"});
  const auto decoded =
      decoder.decode(object(R"("name":"x")", R"(,"a":"\ud800-\udc00-\ud800\u0041")"));
  ASSERT_EQ(decoded.kind, Kind::object);
  EXPECT_EQ(decoded.record.field(0),
            "\xef\xbf\xbd-\xef\xbf\xbd-\xef\xbf\xbd"
            "A");
}

}  // namespace
}  // namespace gitops::k8s
