#include "gitopsctl/verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::ctl {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr milliseconds kTook(12);

// An error of a client; `status` 0: the peer did not answer.
Error error(ErrorCode code, int status = 0) {
  return {.code = code, .message = "it failed", .http_status = status};
}
std::unexpected<Error> fails(ErrorCode code, int status = 0) {
  return std::unexpected(error(code, status));
}

TEST(ApiServerRow, TellsVersionAndLatency) {
  const Row row =
      api_server_row(k8s::ServerVersion{.major = 1, .minor = 36, .git_version = "v1.36.3"}, kTook);
  EXPECT_EQ(row.status, Status::ok);
  EXPECT_EQ(row.message, "v1.36.3, 12 ms");
  EXPECT_EQ(row.version, "v1.36.3");
  EXPECT_EQ(row.latency, kTook);
}

TEST(ApiServerRow, ARefusalShowsThatItIsThere) {
  for (const auto& [code, status] :
       {std::pair{ErrorCode::unauthenticated, 401}, std::pair{ErrorCode::forbidden, 403}}) {
    const Row row = api_server_row(fails(code, status), kTook);
    EXPECT_EQ(row.status, Status::ok);
    EXPECT_EQ(row.message, "answered in 12 ms");
    EXPECT_EQ(row.version, std::nullopt);
  }
}

TEST(ApiServerRow, NobodyThereHasAHint) {
  for (const auto code : {ErrorCode::unavailable, ErrorCode::timeout, ErrorCode::not_found,
                          ErrorCode::tls, ErrorCode::protocol}) {
    const Row row = api_server_row(fails(code), kTook);
    EXPECT_EQ(row.status, Status::failed);
    EXPECT_EQ(row.reason, to_string(code));
    EXPECT_EQ(row.message, "it failed");
    EXPECT_NE(row.hint, "");
  }
}

TEST(CredentialsRow, NamesTheUser) {
  const Row row = credentials_row(std::string("jane"));
  EXPECT_EQ(row.status, Status::ok);
  EXPECT_EQ(row.message, "accepted as jane");
}

TEST(CredentialsRow, OnlyARefusalOfTheCredentialsIsAFailure) {
  EXPECT_EQ(credentials_row(fails(ErrorCode::unauthenticated, 401)).status, Status::failed);
  for (const auto& [code, status] :
       {std::pair{ErrorCode::timeout, 0}, std::pair{ErrorCode::unavailable, 503},
        std::pair{ErrorCode::forbidden, 403}}) {
    EXPECT_EQ(credentials_row(fails(code, status)).status, Status::not_known);
  }
  const Row old = credentials_row(fails(ErrorCode::unavailable, 404));
  EXPECT_EQ(old.status, Status::not_known);
  EXPECT_THAT(old.hint, HasSubstr("1.28"));
}

TEST(CredentialsRow, ThoseThatCannotBeObtainedAreNoFaultOfTheServer) {
  for (const char* message : {"GET /version: exec plugin aws: cannot be started",
                              "GET /version: token file /t: cannot be read"}) {
    const Error without{.code = ErrorCode::unavailable,
                        .message = message,
                        .subcode = k8s::subcodes::kNoCredential};
    EXPECT_TRUE(is_without_credential(without));
    const Row row = credentials_row(std::unexpected(without));
    EXPECT_EQ(row.status, Status::failed);
    EXPECT_EQ(row.message, message);
    EXPECT_THAT(row.hint, HasSubstr("kubectl"));
  }
  EXPECT_FALSE(is_without_credential(error(ErrorCode::unavailable)));
  EXPECT_FALSE(is_without_credential({.code = ErrorCode::unavailable,
                                      .message = "GET /version: 503: exec plugin ",
                                      .http_status = 503}));
}

const Permission kPermission{.daemon = "event-reporter",
                             .group = "",
                             .resource = "secrets",
                             .verbs = {"get", "update"},
                             .names = {"a"},
                             .purpose = "do its work"};

TEST(RightRow, IsOkWhenEveryVerbIsAllowed) {
  const Row row = permission_row(kPermission, "ns", {{"get", "a", true}, {"update", "a", true}});
  EXPECT_EQ(row.status, Status::ok);
  EXPECT_EQ(row.name, "event-reporter");
  EXPECT_EQ(row.subject, "get, update secrets a in namespace ns");
  EXPECT_EQ(row.message, "");
}

TEST(RightRow, NamesWhatIsMissing) {
  const Row some = permission_row(kPermission, "ns", {{"get", "a", true}, {"update", "a", false}});
  EXPECT_EQ(some.status, Status::failed);
  EXPECT_EQ(some.reason, "denied");
  EXPECT_EQ(some.message, "not allowed to update a");
  EXPECT_EQ(some.hint, "needed to do its work; a Role in namespace ns grants it");
  const Row all = permission_row(kPermission, "ns", {{"get", "a", false}, {"update", "a", false}});
  EXPECT_EQ(all.message, "not allowed");
  Permission everywhere = kPermission;
  everywhere.everywhere = true;
  EXPECT_THAT(permission_row(everywhere, "ns", {{"get", "a", false}}).hint,
              HasSubstr("a ClusterRole"));
}

TEST(RightRow, AFailedQuestionIsNotKnownAndNeverMissing) {
  const Row row = permission_row(
      kPermission, "ns", {{"get", "a", true}, {"update", "a", fails(ErrorCode::unavailable, 503)}});
  EXPECT_EQ(row.status, Status::not_known);
  EXPECT_EQ(row.reason, "unavailable");
  EXPECT_EQ(row.message, "it failed");
}

TEST(RightRow, WhatIsMissingForSureOutweighsAFailedQuestion) {
  const Row row = permission_row(kPermission, "ns",
                                 {{"get", "a", fails(ErrorCode::timeout)}, {"update", "a", false}});
  EXPECT_EQ(row.status, Status::failed);
  EXPECT_EQ(row.message, "not allowed to update a");
}

TEST(ArgoCdRow, TellsVersionAndLatency) {
  const Row row = argocd_row(R"({"Version":"v3.2.11"})", kTook);
  EXPECT_EQ(row.status, Status::ok);
  EXPECT_EQ(row.message, "v3.2.11, 12 ms");
}

TEST(ArgoCdRow, HintsFollowTheReason) {
  EXPECT_THAT(argocd_row(fails(ErrorCode::unavailable), kTook).hint, HasSubstr("port-forward"));
  EXPECT_THAT(argocd_row(fails(ErrorCode::tls), kTook).hint, HasSubstr("--argocd-ca-file"));
  EXPECT_THAT(argocd_row(fails(ErrorCode::protocol), kTook).hint, HasSubstr("https://"));
  EXPECT_THAT(argocd_row(fails(ErrorCode::not_found, 404), kTook).hint,
              HasSubstr("--argocd-server-path"));
  EXPECT_THAT(argocd_row(fails(ErrorCode::not_found), kTook).hint, HasSubstr("port-forward"));
}

TEST(ArgoCdClustersRow, NamesThePolicyThatIsMissing) {
  EXPECT_EQ(argocd_clusters_row(true).status, Status::ok);
  const Row weak = argocd_clusters_row(false);
  EXPECT_EQ(weak.status, Status::failed);
  EXPECT_EQ(weak.reason, "denied");
  EXPECT_NE(weak.hint.find(" p, NAME, clusters, get, *, allow"), std::string::npos) << weak.hint;
  EXPECT_EQ(argocd_clusters_row(fails(ErrorCode::timeout)).status, Status::not_known);
}

TEST(ArgoCdTokenRow, TellsAcceptedRefusedAndTooWeakApart) {
  EXPECT_EQ(argocd_token_row(true).status, Status::ok);
  const Row weak = argocd_token_row(false);
  EXPECT_EQ(weak.status, Status::failed);
  EXPECT_EQ(weak.reason, "denied");
  EXPECT_THAT(weak.hint, HasSubstr(" p, NAME, applications, get, */*, allow"));  // not role:NAME
  const Row refused = argocd_token_row(fails(ErrorCode::unauthenticated, 401));
  EXPECT_EQ(refused.status, Status::failed);
  EXPECT_EQ(refused.reason, "unauthenticated");
  EXPECT_EQ(argocd_token_row(fails(ErrorCode::unavailable, 503)).status, Status::not_known);
  EXPECT_EQ(argocd_token_row(fails(ErrorCode::timeout)).status, Status::not_known);
}

// A proxy that refuses its credentials says nothing about the peer or its token.
TEST(AllRows, ARefusalByAProxyIsNoAnswerOfThePeer) {
  for (const auto code : {ErrorCode::unauthenticated, ErrorCode::forbidden}) {
    for (const Row& row : {api_server_row(fails(code), kTook), argocd_row(fails(code), kTook),
                           control_plane_rows(fails(code), kTook)[0]}) {
      EXPECT_EQ(row.status, Status::failed) << row.name;
      EXPECT_EQ(row.reason, to_string(code));
      EXPECT_THAT(row.hint, HasSubstr("HTTPS_PROXY"));
    }
    EXPECT_EQ(argocd_token_row(fails(code)).status, Status::not_known);
  }
}

TEST(ControlPlaneRows, OneAnswerDecidesBoth) {
  const auto good = control_plane_rows(std::string("acme"), kTook);
  ASSERT_EQ(good.size(), 2U);
  EXPECT_EQ(good[0].status, Status::ok);
  EXPECT_EQ(good[1].status, Status::ok);
  EXPECT_EQ(good[1].message, "accepted, of account acme");
  EXPECT_EQ(control_plane_rows(std::string(), kTook)[1].message, "accepted");

  const auto refused = control_plane_rows(fails(ErrorCode::unauthenticated, 401), kTook);
  EXPECT_EQ(refused[0].status, Status::ok);
  EXPECT_EQ(refused[1].status, Status::failed);

  const auto away = control_plane_rows(fails(ErrorCode::tls), kTook);
  EXPECT_EQ(away[0].status, Status::failed);
  EXPECT_THAT(away[0].hint, HasSubstr("--control-plane-ca-file"));
  EXPECT_EQ(away[1].status, Status::not_known);
  EXPECT_EQ(away[1].reason, "skipped");
}

}  // namespace
}  // namespace gitops::ctl
