#include "k8s-client/retry.hpp"

#include <gtest/gtest.h>

namespace gitops::k8s {
namespace {

using namespace std::chrono_literals;
using Sent = Retry::Sent;

const Clock::time_point kNow = Clock::time_point() + 1h;
const RetryPolicy kThree{.attempts = 3, .backoff = {.initial = 100ms, .max = 1s}};

Error answered(int status, std::chrono::milliseconds retry_after = 0ms) {
  return {.code = error_code_of_status(status), .retry_after = retry_after, .http_status = status};
}

bool repeats(const Error& error, Sent sent, bool idempotent) {
  return Retry(kThree, idempotent, 1).after(error, sent, kNow, kNever).has_value();
}

TEST(Retry, SendsAnythingAgainThatTheServerHasNotActedOn) {
  const Error no_connection{.code = ErrorCode::unavailable};
  for (const bool idempotent : {true, false}) {
    EXPECT_TRUE(repeats(answered(429), Sent::maybe, idempotent));
    EXPECT_TRUE(repeats(no_connection, Sent::nothing, idempotent));
  }
}

TEST(Retry, SendsOnlyIdempotentRequestsAgainThatMayHaveTakenEffect) {
  const Error connection_lost{.code = ErrorCode::unavailable};
  for (const Error& error : {connection_lost, answered(408), answered(500), answered(502),
                             answered(503), answered(504)}) {
    EXPECT_TRUE(repeats(error, Sent::maybe, true)) << error.http_status;
    EXPECT_FALSE(repeats(error, Sent::maybe, false)) << error.http_status;
  }
}

TEST(Retry, GivesUpOnWhatAnotherAttemptDoesNotMend) {
  for (const int status : {301, 400, 401, 403, 404, 405, 409, 410, 413, 422, 501}) {
    EXPECT_FALSE(repeats(answered(status), Sent::maybe, true)) << status;
  }
  for (const ErrorCode code : {ErrorCode::timeout, ErrorCode::tls, ErrorCode::protocol,
                               ErrorCode::too_large, ErrorCode::internal}) {
    EXPECT_FALSE(repeats({.code = code}, Sent::nothing, true)) << to_string(code);
  }
}

TEST(Retry, EndsAfterTheLastAttempt) {
  Retry retry(kThree, true, 1);
  EXPECT_TRUE(retry.after(answered(503), Sent::maybe, kNow, kNever));
  EXPECT_TRUE(retry.after(answered(503), Sent::maybe, kNow, kNever));
  EXPECT_FALSE(retry.after(answered(503), Sent::maybe, kNow, kNever));
  EXPECT_FALSE(Retry({}, true, 1).after(answered(503), Sent::maybe, kNow, kNever))
      << "one attempt is the standard";
}

TEST(Retry, WaitsAsLongAsTheServerAsksFor) {
  Retry retry(kThree, true, 1);
  EXPECT_LE(retry.after(answered(503), Sent::maybe, kNow, kNever), 100ms);
  EXPECT_GE(retry.after(answered(429, 7s), Sent::maybe, kNow, kNever), 7s);
}

TEST(Retry, DoesNotWaitPastTheDeadline) {
  Retry retry(kThree, true, 1);
  EXPECT_FALSE(retry.after(answered(429, 7s), Sent::maybe, kNow, kNow + 7s));
  EXPECT_FALSE(retry.after(answered(503), Sent::maybe, kNow, kNow - 1s));
  EXPECT_TRUE(retry.after(answered(429, 7s), Sent::maybe, kNow, kNow + 8s));
}

}  // namespace
}  // namespace gitops::k8s
