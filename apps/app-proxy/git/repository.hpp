#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/commit_signer.hpp"
#include "app-proxy/git/failure_codes.hpp"
#include "app-proxy/git/push_rules.hpp"
#include "app-proxy/git/transport.hpp"
#include "app-proxy/git/tree_path.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"

struct git_repository;  // of libgit2

namespace gitops::app_proxy {

struct GitAuthor {
  std::string name = {};
  std::string email = {};
};

// Converts a text to the name or address of an author: without control characters, "<" and ">", and
// without the characters that Git drops at its ends (git-commit(1): ".", ",", ":", ";", quotes,
// backslashes, blanks). May return an empty string.
std::string author_text(std::string_view text);

// A commit to be made.
struct CommitSpec {
  std::vector<FileChange> changes = {};
  std::string message = {};
  // Author and committer. If the name is empty after author_text(), the part of the address before
  // "@" replaces it.
  GitAuthor author = {};
  WallTime time = {};
  bool allow_empty = false;                         // allows a commit without changes
  bool force = false;                               // skips the check of FileChange::revision
  std::shared_ptr<const CommitSigner> signer = {};  // none: not signed
};

// Progress of a fetch.
struct FetchProgress {
  std::uint32_t received_objects = 0;
  std::uint32_t indexed_objects = 0;
  std::uint32_t total_objects = 0;
  std::uint64_t bytes = 0;
};

// A bare clone on disk and its operations through libgit2; only this class and transport use that
// library. Every call blocks, so it belongs on a thread of a WorkerPool. An object is for one
// thread, and only one object of a folder writes at a time. Files of the clone are complete or
// absent at any moment (libgit2 writes a temporary file and renames it), so a killed process leaves
// a working clone with some unused files.
class BareRepository {
 public:
  // A connection to the server and its list of branches.
  class Session;
  enum class Direction : std::uint8_t { fetch, push };

  BareRepository(BareRepository&&) noexcept;
  BareRepository& operator=(BareRepository&&) noexcept;
  ~BareRepository();

  // Opens the clone. kBrokenClone when there is no usable one.
  static Result<BareRepository> open(const std::filesystem::path& folder);
  static Result<BareRepository> create(const std::filesystem::path& folder);

  // Asks the server for these branches and its default branch. `wire` and this object outlive the
  // session.
  Result<Session> connect(Wire& wire, Direction direction, std::vector<std::string> branches = {});

  [[nodiscard]] bool has_commit(const std::string& id) const;
  // Checks whether `ancestor` is `tip` or reachable from it. Both must be present.
  [[nodiscard]] Result<bool> contains(const std::string& tip, const std::string& ancestor) const;
  // Returns the content of a file; nullopt when there is none. `too_large` over `limit` bytes.
  [[nodiscard]] Result<std::optional<std::string>> read_file(const std::string& commit,
                                                             std::string_view path,
                                                             std::size_t limit) const;
  // Returns the paths of all files in a folder (empty: the root) and below it, relative to it,
  // without symbolic links and submodules. Empty when there is no such folder; `too_large` over
  // `limit` files or 64 levels.
  [[nodiscard]] Result<std::vector<std::string>> list_files(const std::string& commit,
                                                            std::string_view folder,
                                                            std::size_t limit) const;
  // Makes a commit on `parent` (empty: the first one) in the clone alone, and returns its id.
  // Errors: invalid_argument (a path goes through a symbolic link, a submodule or a file),
  // not_found (a file to be removed does not exist), conflict (the file is not at the user's
  // revision), unsupported (Git LFS stores the file), the error of an Edit. Without changes and
  // without allow_empty: invalid_argument with the subcode kNothingToCommit.
  Result<std::string> commit(const std::string& parent, const CommitSpec& spec);
  // Records the tip of a branch, so that its objects count as present in fetches.
  Result<void> remember(const std::string& branch, const std::string& commit);
  // Packs loose objects and small packs when there are many, since a clone is used for months.
  Result<void> compact();

 private:
  struct State;
  explicit BareRepository(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class BareRepository::Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // The commit of a branch that was passed to connect(), or of the default branch; empty when the
  // server has no such branch.
  [[nodiscard]] const std::string& tip(const std::string& branch) const;
  // True when the server has any branch.
  [[nodiscard]] bool has_branches() const;
  // The branch that HEAD names; empty when the server does not report it. Direction::fetch only.
  [[nodiscard]] const std::string& default_branch() const;
  // Fetches a branch and remembers its tip. Fails without progress when the wire is stopped.
  // Direction::fetch only.
  Result<void> fetch(const std::string& branch,
                     const std::function<void(const FetchProgress&)>& progress = {});
  // Moves a branch from tip() to `commit`, never by force. Direction::push only.
  PushAnswer push(const std::string& branch, const std::string& commit);

 private:
  friend class BareRepository;
  struct State;
  static Result<Session> open(git_repository* repository, Wire& wire, Direction direction,
                              std::vector<std::string> branches);
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gitops::app_proxy
