#include "event-reporter/report/event_id.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/ledger/ledger_entry.hpp"

namespace gitops::reporter {
namespace {

const ResourceId kRollout{"argoproj.io", "v1alpha1", "Rollout", "shop", "checkout"};

TEST(EventId, TellsObjectsPartsSequencesAndContentsApart) {
  EXPECT_EQ(event_id("u-1", part_of(kRollout), 17, kGone),
            "u-1/argoproj.io:v1alpha1:Rollout:shop:checkout/17/gone");
  EXPECT_EQ(event_id("u-1", kApplicationPart, 17, Digest{0xab, 0xcd}),
            "u-1/application/17/abcd0000");
  EXPECT_EQ(part_of({"", "v1", "ConfigMap", "", "c"}), ":v1:ConfigMap::c");
}

TEST(EventId, HoldsNoCharactersThatAHeaderMustNotHave) {
  EXPECT_EQ(event_id("a/b\n", part_of({"", "v1", "Kind", "s:h", "c/d\r"}), 1, kGone),
            "a%2Fb%0A/:v1:Kind:s%3Ah:c%2Fd%0D/1/gone");
}

}  // namespace
}  // namespace gitops::reporter
