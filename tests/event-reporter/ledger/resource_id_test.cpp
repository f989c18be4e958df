#include "event-reporter/ledger/resource_id.hpp"

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

TEST(ResourceId, ReadsBackWhatItWrote) {
  for (const ResourceId& id : {ResourceId{"apps", "v1", "Deployment", "ns", "n"},
                               ResourceId{"", "v1", "Namespace", "", "n"},
                               ResourceId{"rbac", "v1", "Role", "ns", "system:x"}}) {
    EXPECT_EQ(ResourceId::parse(id.to_string()), id);
  }
  EXPECT_EQ(ResourceId::parse("nonsense").kind, "");
}

}  // namespace
}  // namespace gitops::reporter
