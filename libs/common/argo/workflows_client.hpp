#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"

namespace gitops::argo {

// Options for the logs of a Workflow's pods; an empty field leaves the choice to the server.
struct WorkflowLogOptions {
  std::string pod = {};        // empty: all of them
  std::string container = {};  // empty: main
  std::string grep = {};       // lines that fit this regular expression
  std::string selector = {};   // pods with these labels
  bool follow = false;
  bool timestamps = false;  // each line begins with its time; `grep` sees it, too
  std::optional<std::uint64_t> tail_lines = {};
  std::optional<std::chrono::seconds> since = {};
};

// A client for the API server of Argo Workflows (REST, as in its api/openapi-spec/swagger.json),
// with the calls that this project needs. Results are the JSON text as received, at most
// `max_answer` bytes (too_large); a response that is not JSON is a failure (`unavailable`).
// Failures contain the server's message. Loop thread only.
class WorkflowsClient {
 public:
  struct Options {
    http::Url server;  // its path comes before /api
    std::size_t max_answer = std::size_t{16} << 20;
  };
  // `token` is called before each request; an empty token is not sent. A server in mode `client`
  // sends it to Kubernetes.
  WorkflowsClient(http::Client& http, Options options, std::function<Secret()> token);

  // Returns a Workflow. `fields` is the server's parameter of that name: "metadata,status.phase".
  Task<Result<std::string>> workflow(std::string ns, std::string name, std::string fields,
                                     Deadline deadline);
  Task<Result<std::string>> workflow_template(std::string ns, std::string name, Deadline deadline);
  // PUT …/{name}/{verb} with a JSON object: terminate, stop, suspend, resume, retry, resubmit, set. Returns
  // the Workflow, or the new one of `resubmit`.
  Task<Result<std::string>> put(std::string ns, std::string name, std::string verb,
                                std::string options, Deadline deadline);
  // Deletes a Workflow; `force` removes its finalizers first.
  Task<Result<void>> remove(std::string ns, std::string name, bool force, Deadline deadline);
  // Creates a Workflow from a template and returns it. `options` is submitOptions.
  Task<Result<std::string>> submit(std::string ns, std::string workflow_template,
                                   std::string options, Deadline deadline);
  // Requests logs (GET …/log) and returns before the head of the response is read, since it may come with
  // the first line only. Each line of the body is {"result":{"content","podName"}} or {"error":{"message"}}.
  Task<Result<http::ClientExchange>> logs(std::string ns, std::string name,
                                          WorkflowLogOptions options, Deadline deadline);

 private:
  Task<Result<std::string>> call(std::string method, std::string target, std::string body,
                                 std::string what, Deadline deadline);
  http::Client& http_;
  Options options_;
  std::function<Secret()> token_;
};

}  // namespace gitops::argo
