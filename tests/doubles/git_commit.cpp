#include "doubles/git_commit.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/core/encoding.hpp"
#include "common/core/time.hpp"
#include "support/git_server.hpp"
#include "support/process.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {

namespace {

Result<std::string> git(const std::filesystem::path& mirror, std::vector<std::string> args,
                        const Environment& environment, std::string_view input = {}) {
  std::vector<std::string> argv{"git", "-C", mirror.string()};
  argv.insert(argv.end(), args.begin(), args.end());
  auto result = run_command(argv, environment, input, std::chrono::seconds(20));
  if (result.ok()) return std::move(result.out);
  return fail(ErrorCode::unavailable, "git " + args.front() + ": " + result.err);
}

Environment environment_for(const std::filesystem::path& mirror, const GitSource& source) {
  auto environment = isolated_git_environment(mirror);
  if (source.username.empty()) return environment;
  // Through the environment: an argument list would show the password.
  environment["GIT_CONFIG_COUNT"] = "1";
  environment["GIT_CONFIG_KEY_0"] = "http.extraHeader";
  environment["GIT_CONFIG_VALUE_0"] =
      "Authorization: Basic " + base64_encode(source.username + ":" + source.password);
  return environment;
}

Result<void> update_mirror(const std::filesystem::path& mirror, const GitSource& source,
                           const Environment& environment) {
  if (!std::filesystem::exists(mirror)) {
    std::filesystem::create_directories(mirror);
    if (auto made = git(mirror, {"init", "--quiet", "--bare"}, environment); !made) {
      return std::unexpected(made.error());
    }
  }
  auto fetched = git(mirror,
                     {"fetch", "--quiet", "--prune", source.url, "+refs/heads/*:refs/heads/*",
                      "+HEAD:refs/gitops/HEAD"},
                     environment);
  if (!fetched) return std::unexpected(fetched.error());
  return {};
}

// Revision and metadata.
Result<GitCommit> read_head(const std::filesystem::path& mirror, const std::string& revision,
                            const Environment& environment) {
  auto shown =
      git(mirror, {"show", "-s", "--format=%H%n%an <%ae>%n%at%n%B", revision, "--"}, environment);
  if (!shown) return std::unexpected(shown.error());
  std::array<std::string, 3> head;
  std::string_view rest = *shown;
  for (auto& line : head) {
    const auto end = std::min(rest.find('\n'), rest.size());
    line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  GitCommit commit;
  commit.revision = head[0];
  commit.metadata = {{"author", head[1]},
                     {"date", format_rfc3339(WallTime(std::chrono::seconds(std::stoll(head[2]))))},
                     {"message", std::string(rest)}};
  return commit;
}

// The manifest files of a folder, as "COMMIT:PATH".
Result<std::vector<std::string>> list_files(const std::filesystem::path& mirror,
                                            const std::string& revision, const std::string& folder,
                                            const Environment& environment) {
  std::vector<std::string> listing{"ls-tree", "-z", "--name-only", revision};
  if (folder != ".") listing.push_back(folder + "/");
  auto names = git(mirror, std::move(listing), environment);
  if (!names) return std::unexpected(names.error());
  std::vector<std::string> files;
  for (std::string_view left = *names; !left.empty();) {
    const auto name = left.substr(0, left.find('\0'));
    left.remove_prefix(std::min(name.size() + 1, left.size()));
    if (name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json")) {
      files.push_back(revision + ":" + std::string(name));
    }
  }
  return files;
}

Result<void> read_manifests(const std::filesystem::path& mirror,
                            const std::vector<std::string>& files, const Environment& environment,
                            std::vector<nlohmann::json>& out) {
  std::string asked;
  for (const auto& file : files) asked += file + "\n";
  auto contents = git(mirror, {"cat-file", "--batch"}, environment, asked);
  if (!contents) return std::unexpected(contents.error());
  // Per file: "<id> blob <size>\n<content>\n".
  std::string_view left = *contents;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto line = left.substr(0, left.find('\n'));
    const auto size = std::stoull(std::string(line.substr(line.rfind(' ') + 1)));
    const auto content = left.substr(line.size() + 1, size);
    left.remove_prefix(line.size() + 1 + size + 1);
    auto documents = parse_manifests(std::string(content));
    if (!documents) return std::unexpected(documents.error());
    for (auto& document : *documents) out.push_back(std::move(document));
  }
  return {};
}

}  // namespace

Result<GitCommit> read_git_commit(const std::filesystem::path& mirror, const GitSource& source) {
  const auto environment = environment_for(mirror, source);
  if (auto updated = update_mirror(mirror, source, environment); !updated) {
    return std::unexpected(updated.error());
  }
  const auto wanted = source.revision == "HEAD" ? "refs/gitops/HEAD" : source.revision;
  auto commit = read_head(mirror, wanted, environment);
  if (!commit) return commit;
  const auto files = list_files(mirror, commit->revision, source.path, environment);
  if (!files) return std::unexpected(files.error());
  if (files->empty()) return commit;
  if (auto read = read_manifests(mirror, *files, environment, commit->manifests); !read) {
    return std::unexpected(read.error());
  }
  return commit;
}

}  // namespace gitops::test
