#include "app-proxy/git/git_bed.hpp"

namespace gitops::test {
namespace {

app_proxy::CloneCache::Options with_folder(app_proxy::CloneCache::Options options,
                                           const std::filesystem::path& folder) {
  if (options.folder.empty()) options.folder = folder;
  return options;
}

}  // namespace

GitBed::GitBed(const Executor& executor, Options options)
    : pool({.name = "git", .threads = 4}, metrics),
      cloning({.name = "git_clones", .threads = 6}, metrics),
      resolver(metrics),
      client(executor, resolver, {.tls = {.ca_file = options.ca_file}}),
      clones(executor, pool, cloning, metrics, with_folder(options.clones, folder.path())),
      committer(executor, pool, clones, client, metrics, options.committer) {}

app_proxy::CommitRequest GitBed::request(const std::string& url, const std::string& path,
                                         const std::string& content,
                                         const std::string& author) const {
  app_proxy::CommitRequest request;
  request.repository = app_proxy::parse_repository_url(url, app_proxy::Scheme::http_too).value();
  request.branch = "main";
  request.changes = {{.path = path, .content = content}};
  request.message = "change " + path;
  request.author = {.name = author, .email = author + "@example.test"};
  request.credential = credential;
  return request;
}

Task<> GitBed::stop() {
  co_await committer.stop();
  co_await clones.stop();
  client.close_idle();
  cloning.stop(std::chrono::seconds(5));
  pool.stop(std::chrono::seconds(5));
}

}  // namespace gitops::test
