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

// A text as the name or address of an author: without control characters, "<" and ">", and without
// what Git drops at its ends (git-commit(1): ".", ",", ":", ";", quotes, backslashes, blanks).
// Empty when nothing is left.
std::string author_text(std::string_view text);

// One commit to be made.
struct CommitSpec {
  std::vector<FileChange> changes = {};
  std::string message = {};
  // And committer. Of a name that is nothing as author_text(), what stands before the "@" of the
  // address takes the place.
  GitAuthor author = {};
  WallTime time = {};
  bool allow_empty = false;                         // a commit without a difference is not an error
  bool force = false;                               // FileChange::revision is not compared
  std::shared_ptr<const CommitSigner> signer = {};  // none: not signed
};

// What a clone has received so far.
struct FetchProgress {
  std::uint32_t received_objects = 0;
  std::uint32_t indexed_objects = 0;
  std::uint32_t total_objects = 0;
  std::uint64_t bytes = 0;
};

// A bare clone on disk and what is done with it through libgit2: the only user of that library
// besides transport. Every call blocks, so it is for a thread of a WorkerPool; an object is for one
// thread, and only one object of a folder writes at a time. Files of the clone are complete or
// absent at any moment (libgit2 writes beside and renames), so a killed process leaves a clone that
// works, with some unused files.
class BareRepository {
 public:
  // A connection to the server, on which it told where branches are.
  class Session;
  enum class Direction : std::uint8_t { fetch, push };

  BareRepository(BareRepository&&) noexcept;
  BareRepository& operator=(BareRepository&&) noexcept;
  ~BareRepository();

  // kBrokenClone when there is no usable one.
  static Result<BareRepository> open(const std::filesystem::path& folder);
  static Result<BareRepository> create(const std::filesystem::path& folder);

  // Asks the server where these branches are, and its default branch. `wire` outlives the session,
  // and so does this object.
  Result<Session> connect(Wire& wire, Direction direction, std::vector<std::string> branches = {});

  [[nodiscard]] bool has_commit(const std::string& id) const;
  // True when `ancestor` is `tip` or reachable from it; both must be present.
  [[nodiscard]] Result<bool> contains(const std::string& tip, const std::string& ancestor) const;
  // The content of a file; nullopt when there is none. too_large over `limit` bytes.
  [[nodiscard]] Result<std::optional<std::string>> read_file(const std::string& commit,
                                                             std::string_view path,
                                                             std::size_t limit) const;
  // The paths of the files in a folder and below it (empty: all), relative to it; without symbolic links
  // and submodules. Empty when there is no such folder; too_large over `limit` files or 64 levels.
  [[nodiscard]] Result<std::vector<std::string>> list_files(const std::string& commit,
                                                            std::string_view folder,
                                                            std::size_t limit) const;
  // Makes a commit on `parent` (empty: the first one) in the clone alone, and returns its id.
  // invalid_argument: a path goes through a symbolic link, a submodule or a file; not_found: a file
  // to be removed is not there; conflict: it is not the revision that the user saw; unsupported:
  // the file is stored by Git LFS; the error of an Edit. Nothing else differs and !allow_empty:
  // invalid_argument with the subcode kNothingToCommit.
  Result<std::string> commit(const std::string& parent, const CommitSpec& spec);
  // Remembers the tip of a branch, so that its objects count as present in fetches.
  Result<void> remember(const std::string& branch, const std::string& commit);
  // Packs loose objects and small packs when there are many; a clone lives for months.
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

  // The commit of a branch that connect() asked for, or of the default branch; empty when the server
  // has no such branch.
  [[nodiscard]] const std::string& tip(const std::string& branch) const;
  // True when the server has any branch.
  [[nodiscard]] bool has_branches() const;
  // Direction::fetch only: the branch that HEAD names; empty when the server does not tell.
  [[nodiscard]] const std::string& default_branch() const;
  // Direction::fetch only: gets a branch, and remembers its tip. Without progress it ends when the
  // wire is stopped.
  Result<void> fetch(const std::string& branch,
                     const std::function<void(const FetchProgress&)>& progress = {});
  // Direction::push only: moves a branch from tip() to `commit`, never by force.
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
