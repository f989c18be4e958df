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
// Everything here throws std::runtime_error when the machine refuses (no such program, no such
// file, no memory); what a test may expect to fail comes back as a value.
namespace gitops::test {

/// Changes to the parent's environment: a value sets a variable, nullopt removes it.
using Environment = std::map<std::string, std::optional<std::string>>;

struct ProcessOptions {
  std::vector<std::string> argv;  // argv[0] is a path, or a name looked up by find_program()
  Environment env = {};           // on top of the parent's environment
  std::filesystem::path working_dir = {};  // empty: the parent's
  std::filesystem::path log_file = {};     // stdout and stderr are appended here; empty: /dev/null
};

/// One child process in a process group of its own, without the files and sockets of the parent.
/// The object owns it: the destructor kills the whole group and reaps the child. The kernel kills
/// the child when the *thread* that created it ends, so that a crashed test leaves nothing behind:
/// create it from the main thread. Not for use from several threads at once.
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

  /// Signals the child alone, not its group. Does nothing once the child was reaped.
  void signal(int number);

  /// Waits for the end: the exit code, 128 + N for a death by signal N, nullopt after the timeout.
  /// Helpers that an ended child left in its group are killed.
  std::optional<int> wait(std::chrono::milliseconds timeout);

  /// SIGTERM, then SIGKILL to the group when the child is still there after the grace period.
  /// Returns the exit code as wait() does. Safe to call again.
  int stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

  /// SIGKILL to the group, then reaps the child. Safe to call again.
  int kill();

 private:
  void forget() noexcept;

  pid_t pid_ = -1;
  int pid_fd_ = -1;  // readable once the child has ended
  std::optional<int> exit_code_;
  std::filesystem::path log_file_;
};

struct CommandResult {
  int exit_code = -1;  // as Process::wait(); -1 when the time ran out
  std::string out;
  std::string err;

  bool ok() const { return exit_code == 0; }
};

/// Runs a program to its end with the given standard input. After the timeout its process group is
/// killed and `err` says so.
CommandResult run_command(const std::vector<std::string>& argv, const Environment& env = {},
                          std::string_view stdin_text = {},
                          std::chrono::milliseconds timeout = std::chrono::seconds(60),
                          const std::filesystem::path& working_dir = {});

/// As run_command(), but anything else than exit code 0 throws with the program's output.
/// Returns its standard output without trailing newlines.
std::string run_or_throw(const std::vector<std::string>& argv, const Environment& env = {},
                         std::string_view stdin_text = {},
                         std::chrono::milliseconds timeout = std::chrono::seconds(60),
                         const std::filesystem::path& working_dir = {});

/// Where a program lies: PATH, then the folders for daemons that a user's PATH may lack.
std::optional<std::filesystem::path> find_program(std::string_view name);

/// Polls until the predicate holds. After the timeout it prints "timed out … waiting for WHAT" to
/// stderr and returns false.
bool wait_until(const std::function<bool()>& predicate, std::chrono::milliseconds timeout,
                std::string_view what,
                std::chrono::milliseconds interval = std::chrono::milliseconds(25));

/// From now on every wait_until() that would wait throws "interrupted". May be called from a signal
/// handler.
void interrupt_waits() noexcept;

/// As wait_until(), but throws when the time runs out.
void require_until(const std::function<bool()>& predicate, std::chrono::milliseconds timeout,
                   std::string_view what,
                   std::chrono::milliseconds interval = std::chrono::milliseconds(25));

/// A TCP port on 127.0.0.1 that nobody listens on, for programs that cannot bind port 0 and report
/// it. Lies below the range the kernel takes outgoing ports from, so that a connection made in the
/// meantime cannot take it; never handed out twice by one process.
int free_port();

/// A folder that is removed with everything in it when the object ends, unless keep() was called
/// or GITOPS_TEST_KEEP is set in the environment.
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

/// Writes the whole file, creating the folders above it.
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
  std::string body;  // or what went wrong, when there was no answer

  bool ok() const { return status >= 200 && status < 300; }
};

/// One HTTP request by the curl program, which shares no code with what is tested here.
HttpReply http_call(const HttpCall& call);

}  // namespace gitops::test
