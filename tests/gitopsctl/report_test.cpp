#include "gitopsctl/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Row about(Row row, std::string subject) {
  row.subject = std::move(subject);
  return row;
}

Report sample() {
  Row server = ok("API server", "v1.36.3, 12 ms");
  server.version = "v1.36.3";
  server.latency = std::chrono::milliseconds(12);
  return {{.id = "kubernetes",
           .title = "Kubernetes",
           .about = "https://127.0.0.1:6443",
           .rows = {server,
                    failed("credentials", {.code = ErrorCode::unauthenticated, .message = "401"},
                           "log in again")}},
          {.id = "rights",
           .title = "Rights",
           .about = "in namespace gitops",
           .rows = {about(skipped("event-reporter", "the credentials were refused"), "get pods"),
                    about(skipped("cluster-event-reporter", "the credentials were refused"),
                          "list pods")}},
          {.id = "argocd",
           .title = "Argo CD",
           .about = "",
           .rows = {not_configured("argocd-server", "no address was given",
                                   "--argocd-server names it")}}};
}

TEST(Verdict, IsThatOfTheWorstRow) {
  const Error error{.code = ErrorCode::timeout, .message = "late"};
  const auto of = [](std::vector<Row> rows) {
    return verdict({{.id = "a", .title = "A", .about = "", .rows = {ok("x", "")}},
                    {.id = "b", .title = "B", .about = "", .rows = std::move(rows)}});
  };
  EXPECT_EQ(of({}), Status::ok);
  EXPECT_EQ(of({ok("y", "")}), Status::ok);
  EXPECT_EQ(of({not_known("y", error, "")}), Status::not_known);
  EXPECT_EQ(of({skipped("y", "")}), Status::not_known);
  EXPECT_EQ(of({not_known("y", error, ""), failed("z", error, "")}), Status::failed);
  EXPECT_EQ(of({denied("y", "no", ""), not_configured("z", "", "")}), Status::failed);
}

TEST(Verdict, DecidesTheExitCode) {
  EXPECT_EQ(exit_code(Status::ok), 0);
  EXPECT_EQ(exit_code(Status::failed), 1);
  EXPECT_EQ(exit_code(Status::not_known), 3);
}

TEST(ReportText, IsATablePerGroupWithTotals) {
  EXPECT_EQ(to_text(sample(), false), R"(Kubernetes  https://127.0.0.1:6443
  ok         API server   v1.36.3, 12 ms
  failed     credentials  401
             hint: log in again; see gitopsctl-checks.md#credentials

Rights  in namespace gitops
  not known  all 2  the credentials were refused

Argo CD
  not known  argocd-server  no address was given
             hint: --argocd-server names it

1 ok, 1 failed, 3 not known
)");
}

TEST(ReportText, RowsForDifferentReasonsStaySeparate) {
  auto report = sample();
  report[1].rows[1].message = "another reason";
  const auto text = to_text(report, false);
  EXPECT_THAT(text, HasSubstr("  not known  event-reporter          get pods: the credentials were "
                              "refused\n"));
  EXPECT_THAT(text, HasSubstr("  not known  cluster-event-reporter  list pods: another reason\n"));
}

TEST(ReportText, ColoursOnlyOnRequest) {
  EXPECT_THAT(to_text(sample(), false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_text(sample(), true), HasSubstr("\x1b[31mfailed   \x1b[0m"));
}

TEST(ReportText, WhatPeersSayCannotControlTheTerminal) {
  const Report report{{.id = "a",
                       .title = "A",
                       .about = "x\x1b]0;title\a",
                       .rows = {ok("b", "v1\x1b[2J\nfailed"), denied("c", "", "h\rh")}}};
  const auto text = to_text(report, false);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
  EXPECT_THAT(text, HasSubstr("v1 [2J failed\n"));
}

TEST(ReportJson, HasTheDocumentedShape) {
  const auto text = to_json(sample());
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(json::parse(text), json::parse(R"({
    "schema": "gitopsctl/check/v1",
    "status": "failed",
    "totals": {"ok": 1, "failed": 1, "not_known": 3},
    "rows": [
      {"group": "kubernetes", "name": "API server", "status": "ok", "message": "v1.36.3, 12 ms",
       "version": "v1.36.3", "latencyMilliseconds": 12},
      {"group": "kubernetes", "name": "credentials", "status": "failed",
       "reason": "unauthenticated", "message": "401", "hint": "log in again",
       "help": "gitopsctl-checks.md#credentials"},
      {"group": "rights", "name": "event-reporter", "subject": "get pods", "status": "not_known",
       "reason": "skipped", "message": "the credentials were refused",
       "help": "gitopsctl-checks.md#rights"},
      {"group": "rights", "name": "cluster-event-reporter", "subject": "list pods",
       "status": "not_known", "reason": "skipped", "message": "the credentials were refused",
       "help": "gitopsctl-checks.md#rights"},
      {"group": "argocd", "name": "argocd-server", "status": "not_known",
       "reason": "not_configured", "message": "no address was given",
       "hint": "--argocd-server names it", "help": "gitopsctl-checks.md#argocd-server"}
    ]})"));
}

TEST(ReportJson, WhatIsNoTextIsReplaced) {
  const Report report{{.id = "a", .title = "A", .about = "", .rows = {ok("b", "\xFF")}}};
  EXPECT_EQ(json::parse(to_json(report))["rows"][0]["message"], "\uFFFD");
}

// A terminal takes U+009B for the begin of a command, and JSON allows it.
TEST(ReportJson, HoldsNoControlCharacterOfAPeer) {
  const Report report{{.id = "a", .title = "A", .about = "", .rows = {ok("b", "v1\u009B2J\x7F")}}};
  const auto text = to_json(report);
  EXPECT_THAT(text, Not(HasSubstr("\u009B")));
  EXPECT_THAT(text, Not(HasSubstr("\x7F")));
  EXPECT_EQ(json::parse(text)["rows"][0]["message"], "v1\u009B2J\x7F");
}

}  // namespace
}  // namespace gitops::ctl
