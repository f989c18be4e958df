#include "app-proxy/git/tree_reader.hpp"

#include <utility>

#include "app-proxy/git/http_bridge.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxFiles = 10'000;
constexpr Clock::duration kStall = std::chrono::seconds(30);

Result<FolderContent> read_on_pool(HttpBridge& bridge, const std::stop_token& stop,
                                   const FolderRequest& request,
                                   const std::filesystem::path& folder) {
  auto repository = BareRepository::open(folder);
  if (!repository) return std::unexpected(std::move(repository.error()));
  Wire wire(request.repository, request.credential, WireCalls::over(bridge), stop, {});
  std::vector<std::string> branches;
  if (!request.branch.empty()) branches.push_back(request.branch);
  auto session = repository->connect(wire, BareRepository::Direction::fetch, std::move(branches));
  if (!session) return std::unexpected(std::move(session.error()));
  FolderContent content{.commit = request.commit, .branch = request.branch, .files = {}};
  if (content.branch.empty()) content.branch = session->default_branch();
  const std::string tip = content.branch.empty() ? std::string() : session->tip(content.branch);
  if (tip.empty()) {
    return std::unexpected(
        Error{.code = ErrorCode::not_found,
              .message = request.repository.name + " has no branch " + content.branch,
              .subcode = kNoBranch});
  }
  if (!repository->has_commit(tip)) {
    if (auto fetched = session->fetch(content.branch); !fetched) {
      return std::unexpected(std::move(fetched.error()));
    }
  }
  if (content.commit.empty()) content.commit = tip;
  const auto is_inside = repository->has_commit(content.commit)
                             ? repository->contains(tip, content.commit)
                             : Result<bool>(false);
  if (!is_inside) return std::unexpected(is_inside.error());
  if (!*is_inside) {
    return fail(ErrorCode::not_found, "branch " + content.branch + " of " +
                                          request.repository.name + " has no commit " +
                                          content.commit);
  }
  auto paths = repository->list_files(content.commit, request.folder, kMaxFiles);
  if (!paths) return std::unexpected(std::move(paths.error()));
  std::size_t left = request.max_bytes;
  for (auto& path : *paths) {
    if (stop.stop_requested()) return fail(ErrorCode::unavailable, "cancelled");
    if (!request.wanted(path)) continue;
    auto text = repository->read_file(
        content.commit, request.folder.empty() ? path : request.folder + "/" + path, left);
    if (!text) return std::unexpected(std::move(text.error()));
    if (!*text) continue;
    left -= (*text)->size();
    content.files.push_back({.path = std::move(path), .content = std::move(**text)});
  }
  return content;
}

}  // namespace

Task<Result<FolderContent>> TreeReader::read(FolderRequest request, Deadline deadline) {
  if (request.branch == "HEAD") request.branch.clear();
  if (!request.branch.empty()) {
    auto branch = parse_branch(request.branch);
    if (!branch) co_return std::unexpected(std::move(branch.error()));
    request.branch = std::move(*branch);
  }
  if (!request.commit.empty() && !is_object_id(request.commit)) {
    co_return fail(ErrorCode::invalid_argument, "expected the full id of a commit");
  }
  auto lease = co_await clones_.get(request.repository, request.credential, client_, deadline);
  if (!lease) co_return std::unexpected(std::move(lease.error()));
  auto content = co_await run_with_http(pool_, lease->key(), client_, deadline, kStall,
                                        [request = std::move(request), folder = lease->folder()](
                                            HttpBridge& bridge, const std::stop_token& stop) {
                                          return read_on_pool(bridge, stop, request, folder);
                                        });
  if (!content && content.error().subcode == kBrokenClone) lease->discard();
  co_return content;
}

Task<Result<bool>> TreeReader::has(RepositoryUrl repository, std::string ref,
                                   GitCredential credential, Deadline deadline) {
  const auto key = repository.key();
  co_return co_await run_with_http(
      pool_, key, client_, deadline, kStall,
      [repository = std::move(repository), ref = std::move(ref),
       credential = std::move(credential)](HttpBridge& bridge,
                                           const std::stop_token& stop) -> Result<bool> {
        Wire wire(repository, credential, WireCalls::over(bridge), stop);
        auto found = wire.has(ref);
        if (!found) found.error().message = wire.quoted(found.error().message);
        return found;
      });
}

}  // namespace gitops::app_proxy
