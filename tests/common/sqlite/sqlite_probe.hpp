#pragma once

#include <filesystem>
#include <string>

// What tests do to a SQLite file and to the disk under it.
namespace gitops::test {

/// A connection of another program. Throws std::runtime_error when SQLite refuses.
class SqlSession {
 public:
  explicit SqlSession(const std::filesystem::path& file);
  ~SqlSession();
  SqlSession(const SqlSession&) = delete;
  SqlSession& operator=(const SqlSession&) = delete;

  /// Runs statements; the first column of the last row, empty when there was none.
  std::string run(const std::string& sql);

 private:
  struct State;
  State* state_;
};

/// Every write, sync and growth of a file by SQLite in this process fails with that errno while the
/// object lives. One at a time.
class BrokenDisk {
 public:
  explicit BrokenDisk(int error);
  ~BrokenDisk();
  BrokenDisk(const BrokenDisk&) = delete;
  BrokenDisk& operator=(const BrokenDisk&) = delete;
};

/// Makes temporary folders in memory where the system has a place for them: what is tested here
/// does not depend on a disk, and would wait for one hundreds of times.
void use_memory_for_temporary_files();

}  // namespace gitops::test
