#include "event-reporter/ledger/ledger_entry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ResourceId kDeployment{"apps", "v1", "Deployment", "shop", "web"};
const ResourceId kService{"", "v1", "Service", "shop", "web"};

Digest digest(std::uint8_t value) {
  return Digest{value};
}

LedgerEntry sample() {
  LedgerEntry entry{.uid = "u1", .change = digest(7)};
  entry.announce(digest(1), 1'000'000);
  entry.acknowledge(digest(1));
  entry.announce(kDeployment, digest(2), 1'000'100);
  entry.acknowledge(kDeployment, digest(2));
  entry.acknowledge(kService, digest(3));
  return entry;
}

TEST(LedgerEntry, AnApplicationRecreatedStartsFromNothing) {
  auto entry = sample();
  entry.belong_to("u1");
  EXPECT_EQ(entry, sample());
  entry.belong_to("u2");
  EXPECT_EQ(entry, LedgerEntry{.uid = "u2"});
}

TEST(LedgerEntry, NamesItsResourcesWithTheVersionTheyWereReportedWith) {
  EXPECT_THAT(sample().resource_ids(), ElementsAre(kService, kDeployment));
  LedgerEntry odd{.uid = "u1"};
  const ResourceId strange{"", "v1/with/slashes", "Kind", "", "na/me"};
  odd.acknowledge(strange, digest(1));
  EXPECT_THAT(odd.resource_ids(), ElementsAre(strange));
}

// -- announced and acknowledged --

TEST(LedgerEntry, AnEventKeepsItsSequenceUntilItIsAcknowledged) {
  LedgerEntry entry{.uid = "u1"};
  EXPECT_EQ(entry.announce(digest(1), 10), 10U);
  EXPECT_EQ(entry.announce(digest(1), 11), 10U) << "sent again";
  EXPECT_EQ(entry.announce(kService, digest(1), 12), 12U);
  EXPECT_EQ(entry.announce(kService, digest(1), 13), 12U);
  EXPECT_EQ(entry.announce(kService, kGone, 14), 14U) << "another content";
  EXPECT_EQ(entry.announce(kService, digest(1), 15), 15U) << "back to the former content";
  EXPECT_EQ(entry.sequence, 15U);
  entry.acknowledge(kService, digest(1));
  EXPECT_TRUE(entry.resources.begin()->second.last.has(digest(1)));
  EXPECT_FALSE(entry.application->has(digest(1)));
  EXPECT_EQ(entry.announce(kService, digest(1), 16), 16U) << "a new event";
}

TEST(LedgerEntry, WhatIsDistrustedIsDueWithANewSequence) {
  LedgerEntry entry{.uid = "u1", .change = digest(7)};
  entry.announce(digest(1), 10);
  entry.announce(kService, digest(1), 10);
  entry.distrust();
  EXPECT_FALSE(entry.change);
  EXPECT_EQ(entry.announce(digest(1), 20), 20U);
  EXPECT_EQ(entry.announce(kService, digest(1), 20), 20U);
  EXPECT_EQ(entry.sequence, 20U);
}

// -- as bytes --

TEST(LedgerEntry, ARefusalBelongsToOneContentOfOnePart) {
  const WallTime noon{std::chrono::milliseconds(1'772'625'600'000)};
  auto entry = sample();
  entry.announce(digest(5), 2'000'000);
  entry.refuse(422, noon, "no such kind");
  entry.announce(kService, kGone, 2'000'000);
  entry.refuse(kService, 400, noon, std::string(1000, 'x'));
  EXPECT_TRUE(entry.is_refused({}, digest(5)));
  EXPECT_FALSE(entry.is_refused({}, digest(1)));
  EXPECT_TRUE(entry.is_refused(kService.identity(), kGone));
  EXPECT_FALSE(entry.is_refused(kDeployment.identity(), digest(2)));

  const auto bytes = encode(entry);
  EXPECT_EQ(*decode_entry(bytes), entry);
  const auto head = *decode_head(bytes);
  EXPECT_EQ(head, head_of(entry));
  ASSERT_EQ(head.refused.size(), 2U);
  EXPECT_EQ(head.refused[0].status, 422);
  EXPECT_EQ(head.refused[0].sequence, 2'000'000U);
  EXPECT_EQ(head.refused[0].since, 1'772'625'600);
  EXPECT_EQ(head.refused[1].reason.size(), kMaxReason);

  EXPECT_EQ(entry.announce(digest(5), 3'000'000), 2'000'000U) << "tried once more";
  EXPECT_TRUE(entry.is_refused({}, digest(5)));
  entry.announce(digest(6), 3'000'000);
  EXPECT_FALSE(entry.is_refused({}, digest(5))) << "another content";
  entry.forget(kService);
  EXPECT_TRUE(entry.refused.empty());
}

// Ledgers of the version before.
TEST(LedgerEntry, ReadsTheFormatWithoutSequences) {
  using namespace std::string_literals;
  const std::string bytes =
      "\1\2\2u1"s + std::string(16, 'a') + "\0\7a/b/c/d\1v"s + std::string(16, 'd');
  const auto entry = decode_entry(bytes);
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->sequence, 0U);
  Digest a{};
  a.fill('a');
  EXPECT_EQ(entry->application,
            (LedgerEntry::Part{.digest = a, .sequence = 0, .acknowledged = true}));
  EXPECT_TRUE(entry->resources.at("a/b/c/d").last.acknowledged);
  EXPECT_EQ(decode_head(bytes)->uid, "u1");
  EXPECT_EQ(*decode_entry(encode(*entry)), *entry);
}

TEST(LedgerEntry, SurvivesEncoding) {
  auto entry = sample();
  entry.acknowledge({"x", std::string(200, 'v'), "Kind", "", std::string(20'000, 'n')}, digest(8));
  entry.acknowledge({"y", "", "Kind\0nul", "\xff\xfe", ""}, digest(9));
  const auto bytes = encode(entry);
  const auto decoded = decode_entry(bytes);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, entry);
  EXPECT_EQ(*decode_head(bytes),
            (LedgerHead{.uid = "u1", .change = digest(7), .sequence = 1'000'100}));

  for (const auto& small :
       {LedgerEntry{}, LedgerEntry{.uid = "u1"},
        LedgerEntry{
            .uid = "u1", .change = {}, .application = LedgerEntry::Part{.digest = digest(4)}}}) {
    EXPECT_EQ(*decode_entry(encode(small)), small);
  }
}

TEST(LedgerEntry, DecodesOnlyWhatItWouldEncode) {
  const auto good = encode(sample());
  const auto check = [](const std::string& bytes) {
    const auto decoded = decode_entry(bytes);
    if (decoded) {
      EXPECT_EQ(encode(*decoded), bytes);
      EXPECT_EQ(decode_head(bytes)->uid, decoded->uid);
    }
    return decoded.has_value();
  };
  EXPECT_FALSE(check(""));
  std::size_t whole = 0;
  for (std::size_t size = 0; size < good.size(); ++size) whole += check(good.substr(0, size));
  EXPECT_EQ(whole, 2U);  // cut after the head, and after the first resource
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto flipped = good;
      flipped[at] = static_cast<char>(static_cast<unsigned char>(flipped[at]) ^ (1U << bit));
      check(flipped);
    }
  }
}

TEST(LedgerEntry, RefusesWhatNobodyWrites) {
  using namespace std::string_literals;
  const auto code = [](const std::string& bytes) {
    const auto decoded = decode_entry(bytes);
    return decoded ? std::string("none") : std::string(to_string(decoded.error().code));
  };
  const auto resource = [](std::string_view identity) {
    return "\0"s + static_cast<char>(identity.size()) + std::string(identity) + "\1v" +
           std::string(16, 'd') + "\1";
  };
  const auto after = [](char shared, std::string_view rest) {
    return std::string(1, shared) + static_cast<char>(rest.size()) + std::string(rest) + "\1v" +
           std::string(16, 'd') + "\1";
  };
  const auto head = "\2\0\2u1\x05"s;
  EXPECT_EQ(code(head), "none");
  EXPECT_EQ(code(head + resource("a/b/c/d") + resource("b/b/c/d")), "none");
  EXPECT_EQ(code("\3\0\2u1\0"s), "invalid_data") << "another format";
  EXPECT_EQ(code("\2\4\2u1\0"s), "invalid_data") << "a flag without its content";
  EXPECT_EQ(code("\2\x40\2u1\0"s), "invalid_data") << "an unknown flag";
  EXPECT_EQ(code("\2\0\x82\0u1\0"s), "invalid_data") << "a length with more digits than it needs";
  EXPECT_EQ(code("\2\0\xff\xff\xff\xff\x7f"s), "invalid_data") << "a length beyond the end";
  EXPECT_EQ(code("\2\0\2u1"s + std::string(9, '\xff') + "\x7f"), "invalid_data") << "above 64 bits";
  EXPECT_EQ(code("\2\0\2u1"s + std::string(9, '\xff') + "\x01"), "invalid_data")
      << "no room for an age";
  EXPECT_EQ(code("\2\0\2u1"s + std::string(9, '\xff')), "invalid_data") << "a sequence without end";
  EXPECT_EQ(code("\2\2\2u1\x05"s + std::string(16, 'd') + "\x0b"), "none");
  EXPECT_EQ(code("\2\2\2u1\x05"s + std::string(16, 'd') + "\x0c"), "invalid_data")
      << "older than all";
  EXPECT_EQ(code(head + resource("b/b/c/d") + resource("a/b/c/d")), "invalid_data") << "order";
  EXPECT_EQ(code(head + resource("a/b/c/d") + resource("a/b/c/d")), "invalid_data") << "twice";
  EXPECT_EQ(code(head + resource("a/b/c/d") + after(6, "e")), "none");
  EXPECT_EQ(code(head + resource("a/b/c/d") + after(5, "/e")), "invalid_data") << "shares more";
  EXPECT_EQ(code(head + resource("a/b/c/d") + after(9, "e")), "invalid_data") << "shares too much";
  EXPECT_EQ(code(head + resource("abc")), "invalid_data") << "not an identity";
  EXPECT_EQ(code(head + std::string(kMaxEntryBytes, 'x')), "too_large");
}

TEST(LedgerEntry, AFewBytesDoNotBecomeManyMegabytes) {
  const std::string name(2'000'000, 'n');
  LedgerEntry entry{.uid = "u1"};
  for (int i = 0; i < 10; ++i) entry.acknowledge({"g", "v", "k", "", name + char('0' + i)}, {});
  const auto bytes = encode(entry);
  EXPECT_LT(bytes.size(), 2'001'000U);
  EXPECT_EQ(decode_entry(bytes).error().code, ErrorCode::too_large);
}

TEST(LedgerEntry, AChecksumBelongsToItsKey) {
  EXPECT_EQ(row_checksum("ns/a", "x"), row_checksum("ns/a", "x"));
  EXPECT_NE(row_checksum("ns/a", "x"), row_checksum("ns/b", "x"));
  EXPECT_NE(row_checksum("ns/a", "x"), row_checksum("ns/", "ax"));
}

TEST(LedgerEntry, ForgottenContentsAreDueAgainWithNewSequencesAndRefusalsStay) {
  const ResourceId id{.group = {}, .version = "v1", .kind = "ConfigMap", .ns = "shop", .name = "c"};
  LedgerEntry entry{.uid = "u"};
  const Digest content{1};
  entry.announce(content, 5);
  entry.acknowledge(content);
  entry.announce(id, content, 5);
  entry.refuse(id, 400, {}, "no");
  entry.change = content;
  entry.forget_contents();
  EXPECT_FALSE(entry.change);
  EXPECT_TRUE(entry.is_refused(id.identity(), content));
  EXPECT_EQ(entry.announce(content, 6), 6U);
  EXPECT_EQ(entry.announce(id, content, 6), 6U);
  EXPECT_EQ(entry.resource_ids().size(), 1U) << "so that its deletion is found";
}

}  // namespace
}  // namespace gitops::reporter
