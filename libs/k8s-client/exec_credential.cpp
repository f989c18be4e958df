#include "k8s-client/exec_credential.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <spawn.h>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/race.hpp"
#include "common/core/small_file.hpp"
#include "common/http/message.hpp"

namespace gitops::k8s {
namespace {

using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

constexpr std::chrono::minutes kPluginTimeout{1};
constexpr std::size_t kMaxOutput = 1024 * 1024;
constexpr std::size_t kKeptStderr = 4096;
constexpr std::size_t kMaxHint = 500;

std::unexpected<Error> system_failure(std::string_view what, int error) {
  return fail(ErrorCode::unavailable,
              std::string(what) + ": " + std::generic_category().message(error));
}

// A started program. Its process group is killed when this object is destroyed.
class Child {
 public:
  Child(const Executor& executor, pid_t pid, int pidfd) : pid_(pid), exit_(executor, pidfd) {}
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for the end of the program, then kills the rest of its process group.
  Task<> wait() {
    co_await exit_.async_wait(Descriptor::wait_read, use_task);
    kill();
  }
  void kill() { ::kill(-pid_, SIGKILL); }
  // Kills the process group and returns the status of waitpid.
  int end() {
    if (pid_ == 0) return status_;
    kill();
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status_;
  }

 private:
  pid_t pid_;
  int status_ = 0;
  Descriptor exit_;
};

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) == 0) std::tie(read, write) = std::pair(ends[0], ends[1]);
  }
  ~Pipe() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
};

// Returns the process id, or a negative error number.
pid_t spawn(const ExecPlugin& plugin, const std::string& info, const Pipe& output,
            const Pipe& errors) {
  std::vector<std::string> texts{plugin.command};
  texts.insert(texts.end(), plugin.arguments.begin(), plugin.arguments.end());
  const std::size_t argument_count = texts.size();
  for (const auto& [name, value] : plugin.environment) {
    if (name != "KUBERNETES_EXEC_INFO") texts.push_back(name + "=" + value);
  }
  texts.push_back("KUBERNETES_EXEC_INFO=" + info);
  std::vector<char*> arguments;
  std::vector<char*> environment;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    (i < argument_count ? arguments : environment).push_back(texts[i].data());
  }
  arguments.push_back(nullptr);
  environment.push_back(nullptr);

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, output.write, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, errors.write, STDERR_FILENO);
  // Asio's sockets are not close-on-exec.
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);

  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, plugin.command.c_str(), &files, &attributes,
                                   arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return error == 0 ? pid : -error;
}

// Reads the output to its end. Kills the program and fails when the output exceeds the limit.
Task<Result<std::string>> read_output(Descriptor& pipe, Child& child) {
  std::string text;
  std::array<char, 4096> buffer;
  boost::system::error_code error;
  while (!error) {
    const std::size_t n =
        co_await pipe.async_read_some(asio::buffer(buffer), asio::redirect_error(use_task, error));
    text.append(buffer.data(), n);
    if (text.size() > kMaxOutput) {
      child.kill();
      co_return fail(ErrorCode::too_large, "printed more than 1 MiB");
    }
  }
  co_return text;
}

Task<std::string> read_errors(Descriptor& pipe) {
  std::string text;
  std::array<char, 4096> buffer;
  boost::system::error_code error;
  while (!error) {
    const std::size_t n =
        co_await pipe.async_read_some(asio::buffer(buffer), asio::redirect_error(use_task, error));
    text.append(buffer.data(), std::min(n, kKeptStderr - text.size()));
  }
  co_return text;
}

// Returns the part of a program's standard error that may be shown: the first line, without words
// that are long enough to be a credential.
std::string first_line(std::string_view text) {
  constexpr std::size_t kMaxWord = 30;
  constexpr std::size_t kMaxLine = 200;
  std::string shown;
  std::string word;
  for (const char c : std::string(text.substr(0, text.find('\n'))) + ' ') {
    if (c > ' ') {
      word += c;
      continue;
    }
    if (word.empty()) continue;
    if (!shown.empty()) shown += ' ';
    shown += word.size() > kMaxWord ? "[...]" : word;
    word.clear();
  }
  return shown.substr(0, kMaxLine);
}

// Joins the lines of a text for a message.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMaxHint)) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!blank) out += c;
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string how_it_ended(int status, std::string_view errors) {
  std::string text = WIFEXITED(status)
                         ? "ended with exit code " + std::to_string(WEXITSTATUS(status))
                         : "was ended by signal " + std::to_string(WTERMSIG(status));
  if (const std::string line = first_line(errors); !line.empty()) text += " (" + line + ")";
  return text;
}

// Runs the program and returns its output.
Task<Result<std::string>> run_program(const ExecPlugin& plugin, std::string info) {
  const auto executor = co_await asio::this_coro::executor;
  Pipe output;
  Pipe errors;
  if (output.read < 0 || errors.read < 0) co_return system_failure("no pipe", errno);
  const pid_t pid = spawn(plugin, info, output, errors);
  if (pid < 0) {
    auto failure = system_failure("cannot be started", -pid);
    if (-pid == ENOENT && !plugin.install_hint.empty()) {
      failure.error().message += "; how to install it: " + one_line(plugin.install_hint);
    }
    co_return failure;
  }
  // glibc 2.36 declares pidfd_open without C linkage.
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const int error = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    co_return system_failure("cannot be watched", error);
  }
  Child child(executor, pid, pidfd);
  ::close(std::exchange(output.write, -1));
  ::close(std::exchange(errors.write, -1));
  Descriptor output_end(executor, std::exchange(output.read, -1));
  Descriptor errors_end(executor, std::exchange(errors.read, -1));

  auto all = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, read_output(output_end, child), asio::deferred),
      asio::co_spawn(executor, read_errors(errors_end), asio::deferred),
      asio::co_spawn(executor, child.wait(), asio::deferred));
  auto [order, failure, printed, complaint_failure, complaint, wait_failure] =
      co_await all.async_wait(asio::experimental::wait_for_all(), use_task);
  for (const auto& exception : {failure, complaint_failure, wait_failure}) {
    if (exception) std::rethrow_exception(exception);
  }
  const int status = child.end();
  if (!printed) co_return std::move(printed);
  if (status != 0) co_return fail(ErrorCode::unavailable, how_it_ended(status, complaint));
  co_return std::move(printed);
}

}  // namespace

Result<std::string> exec_info(const ClusterConfig& config) {
  nlohmann::json spec{{"interactive", false}};
  if (config.exec->provide_cluster_info) {
    nlohmann::json cluster{{"server", config.server.to_string()}};
    if (!config.tls.server_name.empty()) cluster["tls-server-name"] = config.tls.server_name;
    if (config.tls.insecure_skip_verify) cluster["insecure-skip-tls-verify"] = true;
    std::string ca = config.tls.ca_pem;
    if (!config.tls.ca_file.empty()) {
      auto text = read_small_file(config.tls.ca_file);
      if (!text) return fail(config.tls.ca_file, std::move(text.error()));
      ca = std::move(*text);
    }
    if (!ca.empty()) cluster["certificate-authority-data"] = base64_encode(ca);
    if (config.proxy) cluster["proxy-url"] = config.proxy->to_string();
    if (!config.exec->cluster_settings.empty()) {
      cluster["config"] = nlohmann::json::parse(config.exec->cluster_settings, nullptr, false);
    }
    spec["cluster"] = std::move(cluster);
  }
  const nlohmann::json credential{
      {"apiVersion", config.exec->api_version}, {"kind", "ExecCredential"}, {"spec", spec}};
  return to_text(credential);
}

Result<ExecCredential> parse_exec_credential(std::string_view text, std::string_view api_version) {
  const auto bad = [](std::string_view what) {
    return fail(ErrorCode::invalid_data, "its output " + std::string(what));
  };
  const auto json = parse_json_object(text);
  if (!json.is_object()) return bad("is not a JSON object");
  if (string_at(json, {"kind"}) != "ExecCredential") return bad("is not an ExecCredential");
  if (string_at(json, {"apiVersion"}) != api_version) {
    return bad("has another apiVersion than the kubeconfig asks for");
  }
  const nlohmann::json& status = value_at(json, {"status"});
  if (!status.is_object()) return bad("has no status");
  std::string token = string_at(status, {"token"});
  ExecCredential credential{
      .token = {},
      .certificate = {.certificate_pem = string_at(status, {"clientCertificateData"}),
                      .key_pem = Secret(string_at(status, {"clientKeyData"}))}};
  const ClientCertificate& certificate = credential.certificate;
  if (certificate.certificate_pem.empty() != certificate.key_pem.empty()) {
    return bad("has only one of status.clientCertificateData and status.clientKeyData");
  }
  if (token.empty() && certificate.key_pem.empty()) {
    return bad("has neither status.token nor status.clientCertificateData");
  }
  if (!http::is_field_value(token)) return bad("has a status.token with control characters");
  credential.token = Secret(std::move(token));
  if (status.contains("expirationTimestamp")) {
    auto expires = parse_rfc3339(string_at(status, {"expirationTimestamp"}));
    if (!expires) return bad("has an unreadable status.expirationTimestamp");
    credential.expires = *expires;
  }
  return credential;
}

Task<Result<ExecCredential>> run_exec_plugin(const ClusterConfig& config, Deadline deadline) {
  const ExecPlugin& plugin = *config.exec;
  auto printed = exec_info(config);
  if (printed) {
    printed = co_await with_timeout(std::min(deadline, Clock::now() + kPluginTimeout),
                                    run_program(plugin, std::move(*printed)));
  }
  Result<ExecCredential> credential;
  if (printed) {
    credential = parse_exec_credential(*printed, plugin.api_version);
    const Secret wiped(std::move(*printed));
  } else {
    credential = std::unexpected(std::move(printed.error()));
  }
  if (!credential) co_return fail("exec plugin " + plugin.command, std::move(credential.error()));
  co_return credential;
}

}  // namespace gitops::k8s
