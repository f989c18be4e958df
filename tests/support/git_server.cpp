#include "support/git_server.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> find_http_backend() {
  if (!find_program("git")) return std::nullopt;
  const CommandResult result = run_command({"git", "--exec-path"});
  std::string folder = result.out;
  while (folder.ends_with('\n')) folder.pop_back();
  return find_program(folder + "/git-http-backend");
}

/// Modules of lighttpd that the configuration loads and that Debian ships as separate packages.
bool has_tls_module() {
  for (const char* folder :
       {"/usr/lib/lighttpd", "/usr/lib64/lighttpd", "/usr/local/lib/lighttpd"}) {
    if (fs::exists(fs::path(folder) / "mod_openssl.so")) return true;
  }
  return false;
}

}  // namespace

Environment isolated_git_environment(const fs::path& home) {
  return {{"HOME", home.string()},          {"XDG_CONFIG_HOME", home.string()},
          {"GIT_CONFIG_NOSYSTEM", "1"},     {"GIT_CONFIG_GLOBAL", "/dev/null"},
          {"GIT_TERMINAL_PROMPT", "0"},     {"GIT_ASKPASS", std::nullopt},
          {"GIT_DIR", std::nullopt},        {"GIT_WORK_TREE", std::nullopt},
          {"GIT_INDEX_FILE", std::nullopt}, {"GIT_SSL_CAINFO", std::nullopt},
          {"CURL_CA_BUNDLE", std::nullopt}, {"SSL_CERT_FILE", std::nullopt},
          {"SSL_CERT_DIR", std::nullopt},   {"http_proxy", std::nullopt},
          {"https_proxy", std::nullopt},    {"HTTP_PROXY", std::nullopt},
          {"HTTPS_PROXY", std::nullopt},    {"ALL_PROXY", std::nullopt}};
}

std::optional<std::string> GitServer::missing() {
  for (const char* program : {"git", "lighttpd", "openssl", "curl"}) {
    if (!find_program(program)) return std::string(program) + " is not installed";
  }
  if (!find_http_backend()) return "git-http-backend is not installed";
  return std::nullopt;
}

GitServer::GitServer(const Certificate* tls)
    : folder_("gitops-git"), password_(random_hex(24)), port_(free_port()) {
  const auto backend = find_http_backend();
  if (!backend) throw std::runtime_error("git-http-backend is not installed");
  const std::string base = folder_.path().string();
  fs::create_directories(folder_ / "repos");
  add_user(username_, password_);
  std::string modules =
      R"("mod_alias","mod_auth","mod_authn_file","mod_setenv","mod_cgi","mod_accesslog")";
  std::string tls_section;
  if (tls != nullptr) {
    if (!has_tls_module()) throw std::runtime_error("lighttpd-mod-openssl is not installed");
    tls_port_ = free_port();
    modules += R"(,"mod_openssl")";
    tls_section = "$SERVER[\"socket\"] == \"127.0.0.1:" + std::to_string(tls_port_) +
                  "\" { ssl.engine = \"enable\"  ssl.pemfile = \"" + tls->pem_file.string() +
                  "\" }\n";
  }
  write_file(folder_ / "lighttpd.conf",
             "server.modules = (" + modules + ")\n" + "server.document-root = \"" + base +
                 "/repos\"\n" + "server.bind = \"127.0.0.1\"\n" +
                 "server.port = " + std::to_string(port_) + "\n" +
                 "server.stream-request-body = 1\n"
                 "server.stream-response-body = 1\n" +
                 "accesslog.filename = \"" + base + "/access.log\"\n" + tls_section +
                 "alias.url = (\"/git\" => \"" + backend->string() + "\")\n" +
                 "auth.backend = \"htpasswd\"\n" + "auth.backend.htpasswd.userfile = \"" + base +
                 "/htpasswd\"\n" + "$HTTP[\"url\"] =~ \"^/git/\" { cgi.assign = (\"\" => \"\")\n" +
                 "  setenv.set-environment = (\"GIT_PROJECT_ROOT\" => \"" + base +
                 "/repos\", "
                 "\"GIT_HTTP_EXPORT_ALL\" => \"1\", \"GIT_CONFIG_NOSYSTEM\" => \"1\", "
                 "\"HOME\" => \"" +
                 base + "\")\n" +
                 "  auth.require = (\"/git/\" => (\"method\" => \"basic\", \"realm\" => \"git\", "
                 "\"require\" => \"valid-user\")) }\n");
  process_ = std::make_unique<Process>(
      ProcessOptions{.argv = {"lighttpd", "-D", "-f", base + "/lighttpd.conf"},
                     .env = {},
                     .working_dir = folder_.path(),
                     .log_file = folder_ / "lighttpd.log"});
  require_until(
      [&] {
        if (!process_->running()) {
          throw std::runtime_error("lighttpd ended: " + read_file(process_->log_file()));
        }
        return http_call({.url = url("probe")}).status == 401;
      },
      std::chrono::seconds(10), "the Git server");
}

void GitServer::add_user(const std::string& name, const std::string& password) {
  const auto file = folder_ / "htpasswd";
  const std::string others = fs::exists(file) ? read_file(file) : "";
  write_file(file, others + name + ":" +
                       run_or_throw({"openssl", "passwd", "-apr1", "-stdin"}, {}, password) + "\n");
}

std::string GitServer::url(const std::string& name) const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/git/" + name + ".git";
}

std::string GitServer::tls_url(const std::string& name) const {
  if (tls_port_ == 0) throw std::runtime_error("the Git server has no certificate");
  return "https://localhost:" + std::to_string(tls_port_) + "/git/" + name + ".git";
}

fs::path GitServer::bare(const std::string& repository) const {
  return folder_ / "repos" / (repository + ".git");
}

std::string GitServer::create_repository(const std::string& name) {
  run_or_throw({"git", "init", "--quiet", "--bare", "--initial-branch=main", bare(name).string()},
               isolated_git_environment(folder_.path()));
  return url(name);
}

std::string GitServer::commit(const std::string& repository, const FileChanges& changes,
                              const std::string& message, const CommitAuthor& author) {
  const fs::path clone = folder_ / "clones" / repository;
  Environment env = isolated_git_environment(folder_.path());
  env["GIT_AUTHOR_NAME"] = env["GIT_COMMITTER_NAME"] = author.name;
  env["GIT_AUTHOR_EMAIL"] = env["GIT_COMMITTER_EMAIL"] = author.email;
  const auto git_in_clone = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"git", "-c", "gc.auto=0"});
    return run_or_throw(args, env, {}, std::chrono::seconds(60), clone);
  };
  if (!fs::exists(clone)) {
    std::string address = url(repository);
    address.insert(std::string_view("http://").size(), username_ + ":" + password_ + "@");
    fs::create_directories(clone.parent_path());
    run_or_throw({"git", "clone", "--quiet", address, clone.string()}, env);
  } else if (!head(repository).empty()) {
    git_in_clone({"fetch", "--quiet", "origin", "main"});
    git_in_clone({"checkout", "--quiet", "--force", "-B", "main", "FETCH_HEAD"});
  }
  for (const auto& [path, content] : changes) {
    if (content) {
      write_file(clone / path, *content);
    } else {
      fs::remove(clone / path);
    }
  }
  git_in_clone({"add", "--all"});
  git_in_clone({"commit", "--quiet", "--allow-empty", "--message", message});
  git_in_clone({"push", "--quiet", "origin", "HEAD:main"});
  return git_in_clone({"rev-parse", "HEAD"});
}

std::string GitServer::head(const std::string& repository) const {
  CommandResult result = git(repository, {"rev-parse", "--verify", "--quiet", "refs/heads/main"});
  while (result.out.ends_with('\n')) result.out.pop_back();
  return std::move(result.out);
}

std::optional<std::string> GitServer::file_at_head(const std::string& repository,
                                                   const std::string& path) const {
  CommandResult result = git(repository, {"cat-file", "blob", "refs/heads/main:" + path});
  if (!result.ok()) return std::nullopt;
  return std::move(result.out);
}

CommandResult GitServer::git(const std::string& repository,
                             const std::vector<std::string>& args) const {
  std::vector<std::string> argv = {"git", "--git-dir", bare(repository).string()};
  argv.insert(argv.end(), args.begin(), args.end());
  return run_command(argv, isolated_git_environment(folder_.path()));
}

}  // namespace gitops::test
