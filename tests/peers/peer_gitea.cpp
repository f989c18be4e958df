#include "peers/peer_gitea.hpp"

#include <stdexcept>
#include <vector>

#include <unistd.h>

namespace gitops::test {
namespace {

std::string user_name() {
  std::string name = run_or_throw({"id", "-un"});
  return name;
}

}  // namespace

std::optional<std::string> PeerGitea::missing() {
  if (!find_program(peer_program("gitea").string())) return "gitea is not built: run ./dev peers";
  if (!find_program("git")) return "git is not installed";
  return std::nullopt;
}

PeerGitea::PeerGitea()
    : certificate_(authority_.issue(
          {.common_name = "gitea", .organization = {}, .alt_names = {"localhost", "127.0.0.1"}})) {
  if (const auto reason = missing()) throw std::runtime_error(*reason);
  write_file(programs_.folder() / "app.ini", settings());
  programs_.start(
      "gitea",
      {peer_program("gitea").string(), "web", "-c", (programs_.folder() / "app.ini").string()},
      {{"GITEA_WORK_DIR", programs_.folder().string()}});
  programs_.await("gitea", [this] {
    return http_call({.url = url() + "/api/v1/version", .ca_file = ca_file()}).ok();
  });
  admin_ = create_user("root-admin", true);
}

std::string PeerGitea::settings() const {
  const std::string folder = programs_.folder().string();
  std::string text =
      "RUN_USER = " + user_name() + "\nRUN_MODE = prod\nWORK_PATH = " + folder + "\n";
  if (::geteuid() == 0) text += "I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true\n";
  return text + "[server]\nPROTOCOL = https\nCERT_FILE = " + certificate_.cert_file.string() +
         "\nKEY_FILE = " + certificate_.key_file.string() +
         "\nHTTP_ADDR = 127.0.0.1\nHTTP_PORT = " + std::to_string(port_) + "\nROOT_URL = " + url() +
         "/\nDISABLE_SSH = true\nOFFLINE_MODE = true\nLFS_START_SERVER = false\nSTATIC_ROOT_PATH "
         "= " +
         (peers_folder() / "share" / "gitea").string() +
         "\n[database]\nDB_TYPE = sqlite3\nPATH = " + folder +
         "/gitea.db\n[repository]\nROOT = " + folder +
         "/repositories\nDEFAULT_BRANCH = main\n[security]\nINSTALL_LOCK = true\nSECRET_KEY = " +
         random_hex(64) +
         "\nPASSWORD_HASH_ALGO = pbkdf2$1000$50\n[service]\nDISABLE_REGISTRATION = true\n"
         "[webhook]\nALLOWED_HOST_LIST = *\nSKIP_TLS_VERIFY = true\n[log]\nLEVEL = Warn\n"
         "[cron.update_checker]\nENABLED = false\n"
         "[oauth2]\nACCESS_TOKEN_EXPIRATION_TIME = 290\n";
}

std::string PeerGitea::admin_command(std::vector<std::string> args) const {
  args.insert(args.begin(), {peer_program("gitea").string(), "admin", "user"});
  args.insert(args.end(), {"-c", (programs_.folder() / "app.ini").string()});
  return run_or_throw(args, {{"GITEA_WORK_DIR", programs_.folder().string()}}, {},
                      std::chrono::seconds(60));
}

PeerGitea::User PeerGitea::create_user(const std::string& name, bool is_admin) {
  User user{.name = name, .email = name + "@example.test", .token = {}, .password = random_hex(24)};
  std::vector<std::string> args = {
      "create",        "--username", name,       "--password",
      user.password,   "--email",    user.email, "--must-change-password=false",
      "--access-token"};
  if (is_admin) args.emplace_back("--admin");
  const std::string out = admin_command(std::move(args));
  // "Access token was successfully created... 0123…": the only word of 40 hex digits.
  for (std::size_t at = 0; at + 40 <= out.size(); ++at) {
    const auto word = out.substr(at, 40);
    if (word.find_first_not_of("0123456789abcdef") == std::string::npos) user.token = word;
  }
  if (user.token.empty()) throw std::runtime_error("gitea printed no token");
  return user;
}

std::string PeerGitea::create_token(const User& user, const std::string& scopes) {
  std::string out = admin_command({"generate-access-token", "--username", user.name, "--token-name",
                                   "token-" + random_hex(6), "--scopes", scopes, "--raw"});
  // The last line; a warning about the user that runs it may come before.
  while (out.ends_with('\n')) out.pop_back();
  return out.substr(out.rfind('\n') + 1);
}

HttpReply PeerGitea::api(const User& user, const std::string& method, const std::string& path,
                         const std::string& json) const {
  return http_call(
      {.method = method,
       .url = url() + "/api/v1" + path,
       .headers = {"Authorization: token " + user.token, "Content-Type: application/json"},
       .body = json,
       .ca_file = ca_file()});
}

std::string PeerGitea::create_repository(const User& owner, const std::string& name) {
  const auto made =
      api(owner, "POST", "/user/repos", "{\"name\":" + json_quote(name) + ",\"auto_init\":true}");
  if (!made.ok()) throw std::runtime_error("gitea made no repository: " + made.body);
  return url() + "/" + owner.name + "/" + name + ".git";
}

CommandResult PeerGitea::git(const User& owner, const std::string& name,
                             const std::vector<std::string>& args) const {
  std::vector<std::string> argv = {
      "git", "--git-dir",
      (programs_.folder() / "repositories" / owner.name / (name + ".git")).string()};
  argv.insert(argv.end(), args.begin(), args.end());
  return run_command(argv);
}

}  // namespace gitops::test
