#include "support/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

[[noreturn]] void fail(const std::string& what, int error_number) {
  throw std::runtime_error(what + ": " + std::strerror(error_number));
}

/// A file descriptor, closed by the destructor.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

Fd open_or_throw(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) fail(path.string(), errno);
  return Fd(fd);
}

Fd memory_file(const char* name) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) fail("memfd_create", errno);
  return Fd(fd);
}

std::vector<std::string> merged_environment(const Environment& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!changes.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (value) merged.push_back(name + "=" + *value);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Child {
  pid_t pid;
  int pid_fd;
};

/// Forks and executes; returns when the program is executing. Between fork and exec it makes only
/// calls that are safe in the child of a process with threads.
Child spawn(std::vector<std::string> argv, const Environment& env, const fs::path& working_dir,
            int in, int out, int err) {
  if (argv.empty()) throw std::runtime_error("no program given");
  const auto program = find_program(argv.front());
  if (!program) throw std::runtime_error(argv.front() + ": no such program");
  auto environment = merged_environment(env);
  const auto argv_pointers = pointers(argv);
  const auto environment_pointers = pointers(environment);
  std::array<int, 2> report{};  // closed by exec, or carries its errno
  if (::pipe2(report.data(), O_CLOEXEC) != 0) fail("pipe", errno);
  const Fd report_read(report[0]);
  Fd report_write(report[1]);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) fail("fork", errno);
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    // A full disk that a test plays for itself is not its children's.
    rlimit files{};
    ::getrlimit(RLIMIT_FSIZE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_FSIZE, &files);
    const bool ready = (working_dir.empty() || ::chdir(working_dir.c_str()) == 0) &&
                       ::dup2(in, 0) >= 0 && ::dup2(out, 1) >= 0 && ::dup2(err, 2) >= 0;
    // Inherited listening sockets would keep a port open after the test has closed it.
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    if (ready) ::execve(program->c_str(), argv_pointers.data(), environment_pointers.data());
    const int error_number = errno;
    [[maybe_unused]] const auto written =
        ::write(report_write.get(), &error_number, sizeof error_number);
    ::_exit(127);
  }
  ::setpgid(pid, pid);  // parent and child both set it, so the order does not matter
  report_write.reset();
  int error_number = 0;
  ssize_t got = 0;
  do {
    got = ::read(report_read.get(), &error_number, sizeof error_number);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    ::waitpid(pid, nullptr, 0);
    fail(program->string(), error_number);
  }
  const auto pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) {
    const int reason = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    fail("pidfd_open", reason);
  }
  return {.pid = pid, .pid_fd = pid_fd};
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Reaps the child if it ends in time. Kills the rest of its group first: the process id cannot be
/// reused before the child is reaped.
std::optional<int> reap(pid_t pid, int pid_fd, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd event{.fd = pid_fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&event, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    ::kill(-pid, SIGKILL);
    int status = 0;
    if (::waitpid(pid, &status, 0) != pid) return 127;  // reaped elsewhere
    return exit_code_of(status);
  }
}

std::string read_memory_file(int fd) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(fd, 0, SEEK_END))), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got =
        ::pread(fd, text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

bool can_execute(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Process::Process(ProcessOptions options) : log_file_(std::move(options.log_file)) {
  if (!log_file_.empty() && log_file_.has_parent_path()) {
    fs::create_directories(log_file_.parent_path());
  }
  const Fd in = open_or_throw("/dev/null", O_RDONLY);
  const Fd log = log_file_.empty() ? open_or_throw("/dev/null", O_WRONLY)
                                   : open_or_throw(log_file_, O_WRONLY | O_CREAT | O_APPEND);
  const Child child = spawn(std::move(options.argv), options.env, options.working_dir, in.get(),
                            log.get(), log.get());
  pid_ = child.pid;
  pid_fd_ = child.pid_fd;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::exchange(other.pid_fd_, -1)),
      exit_code_(std::exchange(other.exit_code_, std::nullopt)),
      log_file_(std::move(other.log_file_)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    forget();
    pid_ = std::exchange(other.pid_, -1);
    pid_fd_ = std::exchange(other.pid_fd_, -1);
    exit_code_ = std::exchange(other.exit_code_, std::nullopt);
    log_file_ = std::move(other.log_file_);
  }
  return *this;
}

Process::~Process() {
  forget();
}

void Process::forget() noexcept {
  if (pid_ < 0) return;
  kill();
  ::close(pid_fd_);
  pid_ = -1;
}

bool Process::running() {
  return pid_ >= 0 && !wait(milliseconds(0));
}

void Process::signal(int number) {
  if (running()) ::kill(pid_, number);
}

std::optional<int> Process::wait(milliseconds timeout) {
  if (!exit_code_ && pid_ >= 0) exit_code_ = reap(pid_, pid_fd_, timeout);
  return exit_code_;
}

int Process::stop(milliseconds grace) {
  signal(SIGTERM);
  wait(grace);
  return kill();
}

int Process::kill() {
  if (pid_ < 0) return exit_code_.value_or(127);
  if (!exit_code_) ::kill(-pid_, SIGKILL);
  return wait(std::chrono::seconds(30)).value_or(127);
}

CommandResult run_command(const std::vector<std::string>& argv, const Environment& env,
                          std::string_view stdin_text, milliseconds timeout,
                          const fs::path& working_dir) {
  const Fd in = memory_file("stdin");
  const Fd out = memory_file("stdout");
  const Fd err = memory_file("stderr");
  std::size_t written = 0;
  while (written < stdin_text.size()) {
    const ssize_t count =
        ::write(in.get(), stdin_text.data() + written, stdin_text.size() - written);
    if (count < 0) fail("write", errno);
    written += static_cast<std::size_t>(count);
  }
  ::lseek(in.get(), 0, SEEK_SET);
  const Child child = spawn(argv, env, working_dir, in.get(), out.get(), err.get());
  const Fd pid_fd(child.pid_fd);
  const auto code = reap(child.pid, child.pid_fd, timeout);
  if (!code) {
    ::kill(-child.pid, SIGKILL);
    reap(child.pid, child.pid_fd, std::chrono::seconds(30));
  }
  CommandResult result{.exit_code = code.value_or(-1),
                       .out = read_memory_file(out.get()),
                       .err = read_memory_file(err.get())};
  if (!code)
    result.err += argv.front() + ": killed after " + std::to_string(timeout.count()) + " ms";
  return result;
}

std::string run_or_throw(const std::vector<std::string>& argv, const Environment& env,
                         std::string_view stdin_text, milliseconds timeout,
                         const fs::path& working_dir) {
  CommandResult result = run_command(argv, env, stdin_text, timeout, working_dir);
  if (!result.ok()) {
    std::string command;
    for (const std::string& word : argv) command += word + " ";
    throw std::runtime_error(command + "failed with " + std::to_string(result.exit_code) + ":\n" +
                             result.out + result.err);
  }
  while (result.out.ends_with('\n')) result.out.pop_back();
  return std::move(result.out);
}

std::optional<fs::path> find_program(std::string_view name) {
  if (name.contains('/')) {
    return can_execute(name) ? std::optional<fs::path>(name) : std::nullopt;
  }
  const char* from_environment = std::getenv("PATH");
  std::string folders = from_environment == nullptr ? "/usr/local/bin:/usr/bin" : from_environment;
  folders += ":/usr/local/sbin:/usr/sbin:/sbin";
  for (std::size_t start = 0; start <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', start), folders.size());
    fs::path candidate = fs::path(folders.substr(start, end - start)) / name;
    if (candidate.is_absolute() && can_execute(candidate)) return candidate;
    start = end + 1;
  }
  return std::nullopt;
}

int free_port() {
  static std::set<int> taken;
  static std::mt19937 random{std::random_device{}()};
  std::uniform_int_distribution<int> range(10240, 32767);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int port = range(random);
    if (taken.contains(port)) continue;
    const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);  // some peers listen on all interfaces
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      taken.insert(port);
      return port;
    }
  }
  throw std::runtime_error("no free TCP port found");
}

TempDir::TempDir(std::string_view prefix) {
  std::string pattern = (fs::temp_directory_path() / (std::string(prefix) + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) fail(pattern, errno);
  path_ = pattern;
}

TempDir::TempDir(TempDir&& other) noexcept
    : path_(std::exchange(other.path_, fs::path())), keep_(other.keep_) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(keep_, other.keep_);
  return *this;
}

TempDir::~TempDir() {
  if (path_.empty()) return;
  if (keep_ || std::getenv("GITOPS_TEST_KEEP") != nullptr) {
    std::fprintf(stderr, "kept %s\n", path_.c_str());
    return;
  }
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void write_file(const fs::path& path, std::string_view text) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

std::string base64_encode(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kDigits[group >> (18U - 6U * k) & 63U] : '=';
    }
  }
  return text;
}

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      quoted += escape.data();
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string random_hex(std::size_t digits) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string text;
  while (text.size() < digits) text += kDigits[random() & 15U];
  return text;
}

std::string hmac_sha256(const std::string& key, std::string_view text) {
  const auto line = run_or_throw({"openssl", "dgst", "-sha256", "-hmac", key, "-hex"}, {}, text);
  return line.substr(line.rfind(' ') + 1);
}

HttpReply http_call(const HttpCall& call) {
  const auto seconds = std::to_string(static_cast<double>(call.timeout.count()) / 1000.0);
  std::vector<std::string> argv = {"curl",      "--disable", "--silent",    "--show-error",
                                   "--noproxy", "*",         "--max-time",  seconds,
                                   "--request", call.method, "--write-out", "\n%{http_code}"};
  if (!call.ca_file.empty()) argv.insert(argv.end(), {"--cacert", call.ca_file.string()});
  for (const std::string& header : call.headers) argv.insert(argv.end(), {"--header", header});
  if (!call.body.empty()) argv.insert(argv.end(), {"--data-binary", "@-"});
  argv.push_back(call.url);
  const Environment env = {{"CURL_CA_BUNDLE", std::nullopt},
                           {"SSL_CERT_FILE", std::nullopt},
                           {"SSL_CERT_DIR", std::nullopt}};
  CommandResult result = run_command(argv, env, call.body, call.timeout + std::chrono::seconds(5));
  const std::size_t line = result.out.rfind('\n');
  if (!result.ok() || line == std::string::npos) return {.status = 0, .body = result.err};
  const int status = std::atoi(result.out.c_str() + line + 1);
  result.out.resize(line);
  return {.status = status, .body = std::move(result.out)};
}

}  // namespace gitops::test
