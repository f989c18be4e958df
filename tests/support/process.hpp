#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

// Child processes, temporary folders and small helpers for tests that drive real programs.
// Everything here throws std::runtime_error for failures of the machine (a missing program or
// file, no memory). Failures that a test may expect are returned as values.
namespace gitops::test {

/// Changes to the parent's environment: a value sets a variable, nullopt removes it.
using Environment = std::map<std::string, std::optional<std::string>>;

struct ProcessOptions {
  std::vector<std::string> argv;  // argv[0] is a path, or a name looked up by find_program()
  Environment env = {};           // on top of the parent's environment
  std::filesystem::path working_dir = {};  // empty: the parent's
  std::filesystem::path log_file = {};     // stdout and stderr are appended here; empty: /dev/null
};

/// One child process in a process group of its own. It inherits no files or sockets of the parent.
/// The object owns it: the destructor kills the whole group and reaps the child. The kernel kills
/// the child when the *thread* that created it ends, so a crashed test leaves no process behind;
/// create it on the main thread. Not thread-safe.
class Process {
 public:
  /// Starts the program and returns once it is executing; throws when that fails.
  explicit Process(ProcessOptions options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  const std::filesystem::path& log_file() const { return log_file_; }
  bool running();

  /// Signals the child, not its group. Does nothing after the child was reaped.
  void signal(int number);

  /// Waits for the child to end. Returns the exit code, 128 + N for signal N, or nullopt after the
  /// timeout. Kills processes that an ended child left in its group.
  std::optional<int> wait(std::chrono::milliseconds timeout);

  /// SIGTERM, then SIGKILL to the group if the child still runs after the grace period.
  /// Returns the exit code as wait() does. May be called again.
  int stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

  /// SIGKILL to the group, then reaps the child. May be called again.
  int kill();

 private:
  void forget() noexcept;

  pid_t pid_ = -1;
  int pid_fd_ = -1;  // readable once the child has ended
  std::optional<int> exit_code_;
  std::filesystem::path log_file_;
};

struct CommandResult {
  int exit_code = -1;  // as Process::wait(); -1 after the timeout
  std::string out;
  std::string err;

  bool ok() const { return exit_code == 0; }
};

/// Runs a program with the given standard input and waits for its end. After the timeout kills its
/// process group, which `err` then states.
CommandResult run_command(const std::vector<std::string>& argv, const Environment& env = {},
                          std::string_view stdin_text = {},
                          std::chrono::milliseconds timeout = std::chrono::seconds(60),
                          const std::filesystem::path& working_dir = {});

/// As run_command(), but throws, with the program's output, unless the exit code is 0.
/// Returns the standard output without trailing newlines.
std::string run_or_throw(const std::vector<std::string>& argv, const Environment& env = {},
                         std::string_view stdin_text = {},
                         std::chrono::milliseconds timeout = std::chrono::seconds(60),
                         const std::filesystem::path& working_dir = {});

/// The path of a program: searches PATH, then the sbin folders that a user's PATH may lack.
std::optional<std::filesystem::path> find_program(std::string_view name);

/// A free TCP port on 127.0.0.1, for programs that cannot bind port 0 and report the result. Lies
/// below the kernel's range of ephemeral ports, so no outgoing connection can take it. Returns each
/// port only once in a process.
int free_port();

/// A temporary folder. The destructor removes it with its contents, unless keep() was called or
/// GITOPS_TEST_KEEP is set in the environment.
class TempDir {
 public:
  explicit TempDir(std::string_view prefix = "gitops-test");
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  void keep() { keep_ = true; }

 private:
  std::filesystem::path path_;
  bool keep_ = false;
};

std::string read_file(const std::filesystem::path& path);

/// Writes the whole file and creates missing parent folders.
void write_file(const std::filesystem::path& path, std::string_view text);

std::string base64_encode(std::string_view bytes);

/// Text as a JSON string literal, quotes included.
std::string json_quote(std::string_view text);

/// Random lower case hexadecimal digits, for passwords of one test run.
std::string random_hex(std::size_t digits);

/// HMAC-SHA256 in lower case hexadecimal digits, by the openssl program.
std::string hmac_sha256(const std::string& key, std::string_view text);

struct HttpCall {
  std::string method = "GET";
  std::string url = {};
  std::vector<std::string> headers = {};  // "Name: value"
  std::string body = {};
  std::filesystem::path ca_file = {};  // trusted roots for https
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
};

struct HttpReply {
  int status = 0;    // 0: no answer
  std::string body;  // without an answer: the error

  bool ok() const { return status >= 200 && status < 300; }
};

/// One HTTP request by the curl program, which shares no code with the code under test.
HttpReply http_call(const HttpCall& call);

}  // namespace gitops::test
