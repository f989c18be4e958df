#include "app-proxy/http/source_files.hpp"

#include <utility>

#include "app-proxy/http/routes.hpp"
#include "app-proxy/promotions/promotions.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxFolder = std::size_t{4} * 1024 * 1024;  // of all files that are read
constexpr std::size_t kMaxBody = std::size_t{64} * 1024;
// Time limit of a request. A first clone may take longer; it continues after the request has ended.
constexpr auto kTime = std::chrono::seconds(50);

// Returns the status of a failure. Those of a Git host are not passed on: its 401 or 403 concerns one
// repository, and the caller would take it for a verdict on its own token, and ask for no source.
int status_for_caller(const Error& error) {
  using enum ErrorCode;
  switch (error.code) {
    case invalid_argument:
      return 400;
    case unauthenticated:
    case forbidden:
    case not_found:
    case gone:
      return 404;
    case too_large:
      return 413;
    case too_many_requests:
      return 429;
    case unavailable:
      return 503;
    case timeout:
      return 504;
    default:
      return 502;
  }
}

std::string key_of(const PlainFolder& folder) {
  std::string key;
  for (const auto* part :
       {&folder.repository, &folder.commit, &folder.folder, &folder.include, &folder.exclude}) {
    key += std::to_string(part->size()) + ':' + *part;
  }
  return key + (folder.is_recursive ? "r" : "");
}

}  // namespace

// Reads the files. A branch that does not exist may be a tag or a commit; then the commit may be in
// the default branch.
Task<Result<FolderContent>> SourceFiles::content(FolderRequest request, Deadline deadline) {
  auto fallback = request;
  const bool has_branch = !request.branch.empty();
  auto found = co_await dependencies_.reader.read(std::move(request), deadline);
  if (found || !has_branch || found.error().code != ErrorCode::not_found) co_return found;
  fallback.branch.clear();
  co_return co_await dependencies_.reader.read(std::move(fallback), deadline);
}

Task<Result<std::shared_ptr<const std::string>>> SourceFiles::read(PlainFolder folder,
                                                                   Deadline deadline) {
  auto key = key_of(folder);
  if (const auto* kept = kept_.find(key)) co_return *kept;
  auto url =
      repository_of_account(dependencies_.users.own(), folder.repository, dependencies_.scheme);
  if (!url) co_return std::unexpected(std::move(url.error()));
  if (!dependencies_.token.is_set()) {
    co_return std::unexpected(Error{.code = ErrorCode::unavailable,
                                    .message = "the runtime has no Git token (GIT_PASSWORD)",
                                    .http_status = 503});
  }
  // Written on a thread of the pool, and read after that job has ended.
  const auto is_plain = std::make_shared<bool>(true);
  auto found = co_await content({.repository = std::move(*url),
                                 .branch = folder.branch,
                                 .commit = folder.commit,
                                 .folder = folder.folder,
                                 .credential = dependencies_.token.credential(),
                                 .wanted =
                                     [folder, is_plain](std::string_view path) {
                                       if (is_other_source(path)) *is_plain = false;
                                       return *is_plain && is_manifest_file(folder, path);
                                     },
                                 .max_bytes = kMaxFolder},
                                deadline);
  if (!found) co_return std::unexpected(std::move(found.error()));
  std::vector<PlainFile> files;
  for (auto& file : found->files) {
    if (!*is_plain) break;
    files.push_back(
        {.path = folder.folder.empty() ? std::move(file.path) : folder.folder + "/" + file.path,
         .text = std::move(file.content)});
  }
  auto answer = std::make_shared<const std::string>(plain_folder_answer(files));
  kept_.put(std::move(key), answer, answer->size());
  co_return answer;
}

Task<> serve_source_files(http::Exchange& exchange, RequestGate& gate, SourceFiles* files) {
  if (exchange.path().contains("app-proxy/")) {
    (void)co_await exchange.reply(rest_error(404, "there is no such route"));
    co_return;
  }
  const auto admission = co_await gate.authenticate(exchange);
  if (!admission) co_return;
  if (!admission->caller.user->is_runtime) {
    (void)co_await exchange.reply(rest_error(403, "this route is for the runtime itself"));
    co_return;
  }
  const auto body = co_await exchange.read_body(kMaxBody);
  if (!body) {
    (void)co_await exchange.reply(
        rest_error(status_of_unread_body(body.error()), body.error().message));
    co_return;
  }
  auto folder = read_plain_folder(*body);
  if (!folder) {
    (void)co_await exchange.reply(rest_error(400, folder.error().message));
    co_return;
  }
  if (files == nullptr) {
    (void)co_await exchange.reply(
        rest_error(503, "the runtime has no folder for clones; see its log"));
    co_return;
  }
  const auto answer = co_await files->read(std::move(*folder), deadline_after(kTime));
  if (!answer) {
    const auto& error = answer.error();
    (void)co_await exchange.reply(rest_error(status_for_caller(error), error.message));
    co_return;
  }
  http::Response response{.status = 200,
                          .headers = {{"Content-Type", "application/json; charset=utf-8"},
                                      {"Cache-Control", "no-store"}},
                          .body = **answer};
  (void)co_await exchange.reply(std::move(response));
}

}  // namespace gitops::app_proxy
