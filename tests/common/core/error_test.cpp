#include "common/core/error.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace gitops {
namespace {

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    names.insert(to_string(static_cast<ErrorCode>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::internal) + 1);
  EXPECT_EQ(to_string(ErrorCode::too_many_requests), "too_many_requests");
}

TEST(Error, StatusesMapToCodes) {
  const std::pair<int, ErrorCode> cases[] = {
      {400, ErrorCode::invalid_argument}, {401, ErrorCode::unauthenticated},
      {403, ErrorCode::forbidden},        {404, ErrorCode::not_found},
      {405, ErrorCode::unsupported},      {408, ErrorCode::timeout},
      {409, ErrorCode::conflict},         {410, ErrorCode::gone},
      {412, ErrorCode::conflict},         {413, ErrorCode::too_large},
      {415, ErrorCode::unsupported},      {418, ErrorCode::invalid_argument},
      {422, ErrorCode::invalid_argument}, {429, ErrorCode::too_many_requests},
      {500, ErrorCode::unavailable},      {501, ErrorCode::unsupported},
      {502, ErrorCode::unavailable},      {503, ErrorCode::unavailable},
      {504, ErrorCode::unavailable},      {200, ErrorCode::protocol},
      {204, ErrorCode::protocol},         {301, ErrorCode::protocol},
      {0, ErrorCode::protocol},           {999, ErrorCode::protocol},
      {-1, ErrorCode::protocol},
  };
  for (const auto& [status, code] : cases) EXPECT_EQ(error_code_of_status(status), code) << status;
}

TEST(Error, OnlyFailuresThatPassAreTransient) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const bool expected = code == ErrorCode::timeout || code == ErrorCode::unavailable ||
                          code == ErrorCode::too_many_requests;
    EXPECT_EQ(Error{.code = code}.is_transient(), expected) << to_string(code);
  }
}

TEST(Error, ContextGoesInFrontAndTheRestStays) {
  const Result<int> inner = std::unexpected(Error{.code = ErrorCode::unavailable,
                                                  .message = "connection refused",
                                                  .retry_after = std::chrono::seconds(3),
                                                  .http_status = 503});
  const Result<int> outer = fail("list applications", inner.error());
  EXPECT_EQ(outer.error().message, "list applications: connection refused");
  EXPECT_EQ(outer.error().code, ErrorCode::unavailable);
  EXPECT_EQ(outer.error().retry_after, std::chrono::seconds(3));
  EXPECT_EQ(outer.error().http_status, 503);
}

}  // namespace
}  // namespace gitops
