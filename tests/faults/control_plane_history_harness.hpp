#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"
#include "daemons/control_plane_process.hpp"
#include "faults/answer_proxy.hpp"
#include "support/postgres_server.hpp"
#include "support/tiny_disk.hpp"

namespace gitops::test {

// The real control plane on a database of its own, between faults: kill -9, a PostgreSQL that stops, a full disk, and
// answers that get lost behind it and before it. Main thread.
class ControlPlaneHistoryHarness {
 public:
  explicit ControlPlaneHistoryHarness(store::Engine engine);

  // Creates the account and its administrator, and starts the program.
  void start();
  // Returns the token of a new runtime.
  std::string register_runtime(const std::string& name);
  // The URL for reporters, which stays the same after a restart.
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(http_.port());
  }
  ControlPlaneProcess& program() { return *program_; }
  [[nodiscard]] const std::string& administrator_key() const { return key_; }
  [[nodiscard]] bool is_postgres() const { return postgres_ != nullptr; }
  // The end of the program's log and of PostgreSQL's, for people.
  [[nodiscard]] std::string end_of_log() const;

  // -- faults --
  void kill() { program_->kill(); }
  void restart();
  // PostgreSQL: an immediate stop.
  void stop_database() { postgres_->crash(); }
  void start_database();
  // PostgreSQL: kill -9 of one of its processes, after which it recovers by itself.
  void kill_database_process(std::size_t which) { postgres_->kill_child(which); }
  // Whether the disk of the database can be filled: where mounting is allowed, and always for SQLite.
  [[nodiscard]] bool has_disk() const { return disk_ != nullptr || !is_postgres(); }
  // The next bytes that the database writes find no room.
  void fill_disk();
  // SQLite: every write fails from this offset of a file on, as on a broken disk.
  void limit_files();
  void make_room();
  // Loses the answers to so many requests, after the commit.
  void lose_answers(std::size_t count) { http_.lose_answers(count); }
  // PostgreSQL: loses so many answers to COMMIT.
  void lose_commits(std::size_t count) { commits_->lose_answers(count); }
  void end_faults();

  [[nodiscard]] std::size_t lost_answers() const { return http_.lost(); }
  [[nodiscard]] std::size_t lost_commits() const { return commits_ ? commits_->lost() : 0; }
  // Answers of 200 that reached their client.
  [[nodiscard]] std::size_t acknowledgements() const { return http_.forwarded(); }

  // -- a database that goes back in time --
  enum class Restore {
    backup,    // SQLite: `control-plane backup` beside the program, and `restore`
    volume,    // the files of the database are put back, as by a snapshot of a volume
    recovery,  // PostgreSQL: the same, and a recovery, which begins another timeline
  };
  // Keeps the present state, and puts it back; the program runs afterwards.
  void back_up(Restore how);
  void roll_back(Restore how);

  // -- what is stored --
  struct Row {
    control_plane_server::ObjectState state = {};
    control_plane_server::ObjectBody body = {};
    std::vector<std::uint64_t> milestones = {};
  };
  // Reads the database beside the program. Throws when that is not possible.
  [[nodiscard]] std::vector<Row> rows() const;
  // The names of the Applications that a user sees in this runtime.
  [[nodiscard]] std::vector<std::string> applications_at_control_plane(
      const std::string& runtime) const;

 private:
  [[nodiscard]] std::unique_ptr<store::Connection> connect(bool for_writing = false) const;
  void set_file_limit(std::uint64_t bytes);
  void copy_database_file(const std::string& from, const std::string& to);

  TempDir folder_;
  std::unique_ptr<TinyDisk> disk_;  // null where mounting is not allowed
  std::unique_ptr<PostgresServer> postgres_;
  std::unique_ptr<AnswerProxy> commits_;  // before PostgreSQL
  AnswerProxy http_;                      // before the program
  store::Location location_;
  std::optional<ControlPlaneProcess> program_;
  std::string key_;
};

}  // namespace gitops::test
