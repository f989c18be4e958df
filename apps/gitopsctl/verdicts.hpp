#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/core/error.hpp"
#include "gitopsctl/report.hpp"
#include "gitopsctl/rights.hpp"

// From what the peers answered to the rows of the report. No I/O.
namespace gitops::ctl {

// GET /version of an API server. Any answer with a status shows that it is reachable.
Row api_server_row(const Result<std::string>& answer, std::chrono::milliseconds took);

// The request was not even sent: the kubeconfig's program or token file gave no credential.
bool is_without_credential(const Error& error);

// A SelfSubjectReview: whose credentials they are. `user` gets the name.
Row credentials_row(const Result<std::string>& user);

// One verb on one object (or on all) of a right, and what the API server said.
struct RightAnswer {
  std::string verb;
  std::string name;
  Result<bool> allowed;
};
Row right_row(const Right& right, const std::string& ns, const std::vector<RightAnswer>& answers);

// GET /api/version of argocd-server.
Row argocd_row(const Result<std::string>& answer, std::chrono::milliseconds took);

// May the token get every Application? False also where its owner may get only some.
Row argocd_token_row(const Result<bool>& may_get_applications);

// The query `me` of the control plane, which is one call for two rows: is it reachable, and does it
// accept the token?
std::vector<Row> control_plane_rows(const Result<std::string>& account,
                                    std::chrono::milliseconds took);

}  // namespace gitops::ctl
