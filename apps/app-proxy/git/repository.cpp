#include "app-proxy/git/repository.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <git2.h>
#include <git2/sys/commit.h>
#include <git2/sys/odb_backend.h>
#include <map>
#include <mutex>
#include <span>

#include <system_error>

#include "app-proxy/git/git_url.hpp"
#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMapWindow = 8UL * 1024 * 1024;
constexpr std::size_t kMapLimit = 256UL * 1024 * 1024;
constexpr ssize_t kObjectCache = 16L * 1024 * 1024;

constexpr std::size_t kMaxEditedFile = 32UL * 1024 * 1024;
constexpr std::size_t kMaxMessage = 64UL * 1024;
// compact(): at so many loose objects or packs, those packs that are at most so large.
constexpr std::size_t kManyLoose = 4'096;
constexpr std::size_t kManyPacks = 40;
constexpr std::uintmax_t kSmallPack = 16UL * 1024 * 1024;

template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};
template <class T, auto release>
using Owned = std::unique_ptr<T, Release<release>>;

using RepositoryPtr = Owned<git_repository, &git_repository_free>;
using RemotePtr = Owned<git_remote, &git_remote_free>;
using TreePtr = Owned<git_tree, &git_tree_free>;
using CommitPtr = Owned<git_commit, &git_commit_free>;
using BlobPtr = Owned<git_blob, &git_blob_free>;
using EntryPtr = Owned<git_tree_entry, &git_tree_entry_free>;
using SignaturePtr = Owned<git_signature, &git_signature_free>;
using OdbPtr = Owned<git_odb, &git_odb_free>;
using PackBuilderPtr = Owned<git_packbuilder, &git_packbuilder_free>;
using ReferencePtr = Owned<git_reference, &git_reference_free>;

struct Buffer {
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::git_buf_dispose(&buf); }
  [[nodiscard]] std::string_view view() const { return {buf.ptr, buf.size}; }
  git_buf buf = GIT_BUF_INIT;
};

// The library's state of the process: no configuration of the machine, bounded memory.
void start_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::git_libgit2_init();
    for (const int level : {GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM,
                            GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL}) {
      ::git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
    }
    ::git_libgit2_opts(GIT_OPT_SET_MWINDOW_SIZE, kMapWindow);
    ::git_libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, kMapLimit);
    ::git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, kObjectCache);
    ::git_libgit2_opts(GIT_OPT_SET_PACK_MAX_OBJECTS, std::size_t{PackLimits{}.objects});
    ::git_libgit2_opts(GIT_OPT_SET_PACK_MAX_OBJECT_SIZE, std::size_t{PackLimits{}.object});
    // The folder may belong to another user id, as on OpenShift; it holds nothing but our clones.
    ::git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    // Looked for with every pack otherwise; nobody else keeps packs here.
    ::git_libgit2_opts(GIT_OPT_DISABLE_PACK_KEEP_FILE_CHECKS, 1);
  });
}

// Before an operation whose failure local_error() tells.
void forget_failures() {
  ::git_error_clear();
  errno = 0;
}

// What libgit2 says about its last failure on this thread, as a failure of the clone.
Error local_error(std::string_view what) {
  const int errno_now = errno;
  const git_error* last = ::git_error_last();
  const std::string detail = last == nullptr ? "unknown" : last->message;
  Error error{.code = ErrorCode::unavailable,
              .message = "the local clone: " + std::string(what) + ": " + detail,
              .reason = std::string(kBrokenClone)};
  // Of some failures libgit2 has no text. errno is that of forget_failures() or of a call since.
  for (const int code : {ENOSPC, EDQUOT, EFBIG}) {
    if (errno_now == code || detail.contains(std::strerror(code))) error.reason = kDiskFull;
  }
  return error;
}

std::unexpected<Error> local_failure(std::string_view what) {
  return std::unexpected(local_error(what));
}

// A failure of an operation with the server: its own reason if it has one.
Error remote_error(Wire& wire, std::string_view what) {
  if (auto error = wire.take_error()) {
    error->message = std::string(what) + ": " + error->message;
    return std::move(*error);
  }
  if (wire.stopped()) return {.code = ErrorCode::unavailable, .message = "cancelled"};
  const git_error* last = ::git_error_last();
  const int kind = last == nullptr ? static_cast<int>(GIT_ERROR_NONE) : last->klass;
  if (kind == GIT_ERROR_NET || kind == GIT_ERROR_HTTP) {
    return {.code = ErrorCode::protocol,
            .message = std::string(what) + ": " + wire.url().http.host_header() + ": " +
                       (last == nullptr ? "unknown" : wire.quoted(last->message))};
  }
  return local_error(what);
}

std::string text_of(const git_oid& id) {
  std::string text(GIT_OID_HEXSZ, '\0');
  ::git_oid_fmt(text.data(), &id);
  return text;
}

git_oid id_of(const std::string& text) {
  git_oid id{};
  if (::git_oid_fromstrn(&id, text.data(), text.size()) != 0 || text.size() != GIT_OID_HEXSZ) {
    return git_oid{};
  }
  return id;
}

// A name or address that cannot break a commit's header.
std::string header_text(std::string_view text, std::string_view otherwise) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f && c != '<' && c != '>') result += c;
  }
  result = trimmed(result);
  return result.empty() ? std::string(otherwise) : result;
}

Result<std::string> message_text(std::string_view text) {
  if (text.contains('\0')) {
    return fail(ErrorCode::invalid_argument, "the commit message has a NUL character in it");
  }
  if (text.size() > kMaxMessage) {
    return fail(ErrorCode::too_large, "the commit message is longer than 64 KiB");
  }
  std::string result(text);
  std::erase(result, '\r');
  while (result.ends_with('\n') || result.ends_with(' ')) result.pop_back();
  if (result.empty()) return fail(ErrorCode::invalid_argument, "the commit message is empty");
  return result + "\n";
}

std::unexpected<Error> refuse(const FileChange& change, ErrorCode code, std::string_view why) {
  return fail(code, change.path + " " + std::string(why));
}

// A file in a tree.
struct FileEntry {
  git_oid blob{};
  git_filemode_t mode = GIT_FILEMODE_BLOB;
};
// What a path names.
struct Found {
  enum class Kind : std::uint8_t { nothing, file, folder, link, submodule, below_file };
  Kind kind = Kind::nothing;
  FileEntry file = {};
};

// Walks the path by itself, so that nothing but folders is walked through.
Result<Found> find(git_repository* repository, const git_tree* root, std::string_view path) {
  TreePtr folder;
  const git_tree* at = root;
  while (at != nullptr) {
    const auto slash = path.find('/');
    const std::string name(path.substr(0, slash));
    const git_tree_entry* entry = ::git_tree_entry_byname(at, name.c_str());
    if (entry == nullptr) return Found{};
    const bool last = slash == std::string_view::npos;
    switch (::git_tree_entry_filemode(entry)) {
      case GIT_FILEMODE_TREE:
        break;
      case GIT_FILEMODE_LINK:
        return Found{.kind = Found::Kind::link};
      case GIT_FILEMODE_COMMIT:
        return Found{.kind = Found::Kind::submodule};
      default:
        if (!last) return Found{.kind = Found::Kind::below_file};
        return Found{.kind = Found::Kind::file,
                     .file = {.blob = *::git_tree_entry_id(entry),
                              .mode = ::git_tree_entry_filemode(entry)}};
    }
    if (last) return Found{.kind = Found::Kind::folder};
    git_tree* next = nullptr;
    if (::git_tree_lookup(&next, repository, ::git_tree_entry_id(entry)) != 0) {
      return local_failure("a folder");
    }
    folder.reset(next);
    at = next;
    path.remove_prefix(slash + 1);
  }
  return Found{};
}

Result<TreePtr> tree_of(git_repository* repository, const git_oid& commit) {
  git_commit* raw = nullptr;
  if (::git_commit_lookup(&raw, repository, &commit) != 0) return local_failure("a commit");
  const CommitPtr owned(raw);
  git_tree* tree = nullptr;
  if (::git_commit_tree(&tree, raw) != 0) return local_failure("the tree of a commit");
  return TreePtr(tree);
}

Result<std::string> content_of(git_repository* repository, const git_oid& id, std::size_t limit) {
  OdbPtr odb;
  git_odb* raw_odb = nullptr;
  if (::git_repository_odb(&raw_odb, repository) != 0) return local_failure("its objects");
  odb.reset(raw_odb);
  std::size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
  if (::git_odb_read_header(&size, &type, raw_odb, &id) != 0) return local_failure("a file");
  if (size > limit) {
    return fail(ErrorCode::too_large, "the file has more than " + std::to_string(limit) + " bytes");
  }
  git_blob* raw = nullptr;
  if (::git_blob_lookup(&raw, repository, &id) != 0) return local_failure("a file");
  const BlobPtr blob(raw);
  return std::string(static_cast<const char*>(::git_blob_rawcontent(raw)),
                     static_cast<std::size_t>(::git_blob_rawsize(raw)));
}

// Whether the file is the version that the user saw: its blob, or the commit it was read from.
Result<void> check_revision(git_repository* repository, const FileChange& change,
                            const Found& present) {
  const git_oid seen = id_of(change.revision);
  const auto changed = [&] {
    return refuse(change, ErrorCode::conflict,
                  "was changed by someone else after revision " + change.revision);
  };
  if (present.kind == Found::Kind::file && ::git_oid_equal(&seen, &present.file.blob) != 0)
    return {};
  git_commit* raw = nullptr;
  if (::git_commit_lookup(&raw, repository, &seen) != 0) return changed();
  const CommitPtr commit(raw);
  auto tree = tree_of(repository, seen);
  if (!tree) return std::unexpected(std::move(tree.error()));
  auto then = find(repository, tree->get(), change.path);
  if (!then) return std::unexpected(std::move(then.error()));
  const bool same =
      then->kind == present.kind && (present.kind != Found::Kind::file ||
                                     ::git_oid_equal(&then->file.blob, &present.file.blob) != 0);
  if (!same) return changed();
  return {};
}

std::string_view fault_of(Found::Kind kind) {
  switch (kind) {
    case Found::Kind::link:
      return "is a symbolic link, or lies behind one";
    case Found::Kind::submodule:
      return "is a submodule, or lies in one";
    case Found::Kind::below_file:
      return "lies below a file";
    default:
      return {};
  }
}

// The update of the tree that a change asks for; nullopt when it changes nothing.
Result<std::optional<git_tree_update>> update_of(git_repository* repository, const git_tree* root,
                                                 const FileChange& change, bool force) {
  auto present = find(repository, root, change.path);
  if (!present) return std::unexpected(std::move(present.error()));
  const auto kind = present->kind;
  if (const auto fault = fault_of(kind); !fault.empty()) {
    return refuse(change, ErrorCode::invalid_argument, fault);
  }
  if (!force && !change.revision.empty()) {
    if (auto same = check_revision(repository, change, *present); !same) {
      return std::unexpected(std::move(same.error()));
    }
  }
  git_tree_update update{};
  update.path = change.path.c_str();
  if (change.kind == FileChange::Kind::remove || change.kind == FileChange::Kind::remove_folder) {
    const bool whole = change.kind == FileChange::Kind::remove_folder;
    if (kind == Found::Kind::nothing) {
      if (whole) return std::nullopt;
      return refuse(change, ErrorCode::not_found, "does not exist in the branch");
    }
    if (kind == Found::Kind::folder && !whole) {
      return refuse(change, ErrorCode::invalid_argument, "is a folder");
    }
    update.action = GIT_TREE_UPDATE_REMOVE;
    return update;
  }
  if (kind == Found::Kind::folder) {
    return refuse(change, ErrorCode::invalid_argument, "is a folder");
  }
  std::string edited;
  std::string_view content = change.content;
  if (change.kind == FileChange::Kind::edit) {
    std::optional<std::string> before;
    if (kind == Found::Kind::file) {
      auto read = content_of(repository, present->file.blob, kMaxEditedFile);
      if (!read) return std::unexpected(std::move(read.error()));
      before = std::move(*read);
    }
    auto after = change.edit(before ? std::optional<std::string_view>(*before) : std::nullopt);
    if (!after) return std::unexpected(std::move(after.error()));
    edited = std::move(*after);
    content = edited;
  }
  if (::git_blob_create_from_buffer(&update.id, repository, content.data(), content.size()) != 0) {
    return local_failure("writing a file");
  }
  update.action = GIT_TREE_UPDATE_UPSERT;
  update.filemode = present->file.mode;
  if (kind == Found::Kind::file && ::git_oid_equal(&update.id, &present->file.blob) != 0) {
    return std::nullopt;
  }
  return update;
}

}  // namespace

struct BareRepository::State {
  RepositoryPtr repository;
  fs::path folder;
};

BareRepository::BareRepository(std::unique_ptr<State> state) : state_(std::move(state)) {}
BareRepository::BareRepository(BareRepository&&) noexcept = default;
BareRepository& BareRepository::operator=(BareRepository&&) noexcept = default;
BareRepository::~BareRepository() = default;

Result<BareRepository> BareRepository::open(const fs::path& folder) {
  start_library();
  forget_failures();
  git_repository* raw = nullptr;
  if (::git_repository_open_bare(&raw, folder.c_str()) != 0) return local_failure("opening it");
  return BareRepository(
      std::make_unique<State>(State{.repository = RepositoryPtr(raw), .folder = folder}));
}

Result<BareRepository> BareRepository::create(const fs::path& folder) {
  start_library();
  forget_failures();
  git_repository* raw = nullptr;
  git_repository_init_options options;
  ::git_repository_init_options_init(&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
  options.flags =
      GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKDIR | GIT_REPOSITORY_INIT_NO_REINIT;
  if (::git_repository_init_ext(&raw, folder.c_str(), &options) != 0) {
    return local_failure("creating it");
  }
  return BareRepository(
      std::make_unique<State>(State{.repository = RepositoryPtr(raw), .folder = folder}));
}

bool BareRepository::has_commit(const std::string& id) const {
  const git_oid oid = id_of(id);
  git_commit* raw = nullptr;
  if (::git_commit_lookup(&raw, state_->repository.get(), &oid) != 0) return false;
  ::git_commit_free(raw);
  return true;
}

Result<bool> BareRepository::contains(const std::string& tip, const std::string& ancestor) const {
  if (tip == ancestor) return true;
  const git_oid above = id_of(tip);
  const git_oid below = id_of(ancestor);
  const int found = ::git_graph_descendant_of(state_->repository.get(), &above, &below);
  if (found < 0) return local_failure("its history");
  return found == 1;
}

Result<std::optional<std::string>> BareRepository::read_file(const std::string& commit,
                                                             std::string_view path,
                                                             std::size_t limit) const {
  if (auto checked = check_tree_path(path); !checked) return std::unexpected(checked.error());
  auto tree = tree_of(state_->repository.get(), id_of(commit));
  if (!tree) return std::unexpected(std::move(tree.error()));
  auto found = find(state_->repository.get(), tree->get(), path);
  if (!found) return std::unexpected(std::move(found.error()));
  if (found->kind != Found::Kind::file) return std::optional<std::string>();
  auto content = content_of(state_->repository.get(), found->file.blob, limit);
  if (!content) return std::unexpected(std::move(content.error()));
  return std::optional<std::string>(std::move(*content));
}

Result<std::vector<std::string>> BareRepository::list_files(const std::string& commit,
                                                            std::string_view folder,
                                                            std::size_t limit) const {
  constexpr std::size_t kMaxLevels = 64;
  if (!folder.empty()) {
    if (auto checked = check_tree_path(folder); !checked) return std::unexpected(checked.error());
  }
  git_repository* repository = state_->repository.get();
  auto root = tree_of(repository, id_of(commit));
  if (!root) return std::unexpected(std::move(root.error()));
  struct Folder {
    TreePtr tree;
    std::string path;  // with a '/' at its end
    std::size_t level;
  };
  std::vector<std::string> files;
  std::vector<Folder> open;
  if (folder.empty()) {
    open.push_back({std::move(*root), "", 0});
  } else {
    git_tree_entry* entry = nullptr;
    if (::git_tree_entry_bypath(&entry, root->get(), std::string(folder).c_str()) != 0)
      return files;
    const std::unique_ptr<git_tree_entry, decltype(&::git_tree_entry_free)> owned(
        entry, ::git_tree_entry_free);
    if (::git_tree_entry_filemode(entry) != GIT_FILEMODE_TREE) return files;
    git_tree* tree = nullptr;
    if (::git_tree_lookup(&tree, repository, ::git_tree_entry_id(entry)) != 0) {
      return local_failure("a folder");
    }
    open.push_back({TreePtr(tree), "", 0});
  }
  while (!open.empty()) {
    const Folder at = std::move(open.back());
    open.pop_back();
    for (std::size_t i = 0; i < ::git_tree_entrycount(at.tree.get()); ++i) {
      const git_tree_entry* entry = ::git_tree_entry_byindex(at.tree.get(), i);
      const std::string path = at.path + ::git_tree_entry_name(entry);
      const auto mode = ::git_tree_entry_filemode(entry);
      if (mode == GIT_FILEMODE_LINK || mode == GIT_FILEMODE_COMMIT) continue;
      if (files.size() + open.size() >= limit || at.level >= kMaxLevels) {
        return fail(ErrorCode::too_large,
                    "the folder has more than " + std::to_string(limit) + " files");
      }
      if (mode != GIT_FILEMODE_TREE) {
        files.push_back(path);
        continue;
      }
      git_tree* tree = nullptr;
      if (::git_tree_lookup(&tree, repository, ::git_tree_entry_id(entry)) != 0) {
        return local_failure("a folder");
      }
      open.push_back({TreePtr(tree), path + "/", at.level + 1});
    }
  }
  std::ranges::sort(files);
  return files;
}

Result<std::string> BareRepository::commit(const std::string& parent, const CommitSpec& spec) {
  git_repository* repository = state_->repository.get();
  forget_failures();
  if (auto checked = check_changes(spec.changes); !checked) return std::unexpected(checked.error());
  auto message = message_text(spec.message);
  if (!message) return message;

  CommitPtr base;
  TreePtr root;
  if (!parent.empty()) {
    const git_oid id = id_of(parent);
    git_commit* raw = nullptr;
    if (::git_commit_lookup(&raw, repository, &id) != 0) return local_failure("a commit");
    base.reset(raw);
    auto tree = tree_of(repository, id);
    if (!tree) return std::unexpected(std::move(tree.error()));
    root = std::move(*tree);
  }
  std::vector<git_tree_update> updates;
  for (const auto& change : spec.changes) {
    auto update = update_of(repository, root.get(), change, spec.force);
    if (!update) return std::unexpected(std::move(update.error()));
    if (*update) updates.push_back(**update);
  }
  git_oid tree_id{};
  if (!updates.empty()) {
    if (::git_tree_create_updated(&tree_id, repository, root.get(), updates.size(),
                                  updates.data()) != 0) {
      const git_error* last = ::git_error_last();
      if (last != nullptr && last->klass == GIT_ERROR_TREE) {
        return fail(ErrorCode::invalid_argument, std::string("the changes: ") + last->message);
      }
      return local_failure("writing a folder");
    }
  } else if (root) {
    tree_id = *::git_tree_id(root.get());
  } else {
    git_treebuilder* builder = nullptr;
    if (::git_treebuilder_new(&builder, repository, nullptr) != 0) return local_failure("a folder");
    const int written = ::git_treebuilder_write(&tree_id, builder);
    ::git_treebuilder_free(builder);
    if (written != 0) return local_failure("writing a folder");
  }
  const bool same =
      root ? ::git_oid_equal(&tree_id, ::git_tree_id(root.get())) != 0 : updates.empty();
  if (same && !spec.allow_empty) {
    return std::unexpected(
        Error{.code = ErrorCode::invalid_argument,
              .message = "nothing to commit: the branch has these contents already",
              .reason = std::string(kNothingToCommit)});
  }

  git_signature* raw_author = nullptr;
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(spec.time).time_since_epoch().count();
  const std::string name = header_text(spec.author.name, "GitOps Runtime");
  const std::string email = header_text(spec.author.email, "noreply@invalid");
  if (::git_signature_new(&raw_author, name.c_str(), email.c_str(), seconds, 0) != 0) {
    return fail(ErrorCode::invalid_argument, "the author's name or address cannot be used");
  }
  const SignaturePtr author(raw_author);
  git_tree* raw_tree = nullptr;
  if (::git_tree_lookup(&raw_tree, repository, &tree_id) != 0) return local_failure("a folder");
  const TreePtr tree(raw_tree);
  const git_commit* parents[] = {base.get()};
  Buffer text;
  if (::git_commit_create_buffer(&text.buf, repository, author.get(), author.get(), nullptr,
                                 message->c_str(), tree.get(), base ? 1 : 0, parents) != 0) {
    return local_failure("making a commit");
  }
  git_oid id{};
  if (spec.signer) {
    const auto signature = spec.signer->sign(text.view());
    if (::git_commit_create_with_signature(&id, repository, text.buf.ptr, signature.c_str(),
                                           "gpgsig") != 0) {
      return local_failure("writing a commit");
    }
    return text_of(id);
  }
  git_odb* raw_odb = nullptr;
  if (::git_repository_odb(&raw_odb, repository) != 0) return local_failure("its objects");
  const OdbPtr odb(raw_odb);
  if (::git_odb_write(&id, raw_odb, text.buf.ptr, text.buf.size, GIT_OBJECT_COMMIT) != 0) {
    return local_failure("writing a commit");
  }
  return text_of(id);
}

Result<void> BareRepository::remember(const std::string& branch, const std::string& commit) {
  const git_oid id = id_of(commit);
  git_reference* raw = nullptr;
  if (::git_reference_create(&raw, state_->repository.get(), ("refs/heads/" + branch).c_str(), &id,
                             1, nullptr) != 0) {
    return local_failure("naming a branch");
  }
  ::git_reference_free(raw);
  return {};
}

namespace {

// The ids of loose objects, by their files; `add` gets each.
std::size_t each_loose(const fs::path& objects,
                       const std::function<void(const fs::path&, const git_oid&)>& add) {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& folder : fs::directory_iterator(objects, ignored)) {
    const std::string start = folder.path().filename();
    if (start.size() != 2) continue;
    for (const auto& file : fs::directory_iterator(folder.path(), ignored)) {
      const std::string id = start + file.path().filename().string();
      if (!is_object_id(id)) continue;
      ++count;
      if (add) add(file.path(), id_of(id));
    }
  }
  return count;
}

std::vector<fs::path> small_packs(const fs::path& objects) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(objects / "pack", ignored)) {
    if (file.path().extension() != ".pack") continue;
    if (file.file_size(ignored) <= kSmallPack) found.push_back(file.path());
  }
  return found;
}

int insert_into(const git_oid* id, void* builder) {
  return ::git_packbuilder_insert(static_cast<git_packbuilder*>(builder), id, nullptr);
}

}  // namespace

Result<void> BareRepository::compact() {
  const fs::path objects = state_->folder / "objects";
  const auto packs = small_packs(objects);
  const std::size_t loose = each_loose(objects, {});
  if (loose < kManyLoose && packs.size() < kManyPacks) return {};
  git_packbuilder* raw = nullptr;
  if (::git_packbuilder_new(&raw, state_->repository.get()) != 0) return local_failure("packing");
  const PackBuilderPtr builder(raw);
  ::git_packbuilder_set_threads(raw, 1);
  std::vector<fs::path> replaced;
  bool complete = true;
  each_loose(objects, [&](const fs::path& file, const git_oid& id) {
    if (insert_into(&id, raw) == 0) replaced.push_back(file);
  });
  for (const auto& pack : packs) {
    fs::path index = pack;
    index.replace_extension(".idx");
    git_odb* odb = nullptr;
    git_odb_backend* backend = nullptr;
    if (::git_odb_new(&odb) != 0) return local_failure("packing");
    const OdbPtr owned(odb);
    if (::git_odb_backend_one_pack(&backend, index.c_str()) != 0) continue;
    if (::git_odb_add_backend(odb, backend, 1) != 0 ||
        ::git_odb_foreach(odb, insert_into, raw) != 0) {
      complete = false;
      break;
    }
    replaced.push_back(index);
    replaced.push_back(pack);
  }
  if (!complete || ::git_packbuilder_object_count(raw) == 0) return {};
  if (::git_packbuilder_write(raw, (objects / "pack").c_str(), 0, nullptr, nullptr) != 0) {
    return local_failure("packing");
  }
  const char* name = ::git_packbuilder_name(raw);
  for (const auto& file : replaced) {
    std::error_code ignored;
    if (name == nullptr || !file.filename().string().contains(name)) fs::remove(file, ignored);
  }
  return {};
}

struct BareRepository::Session::State {
  git_repository* repository = nullptr;
  Wire* wire = nullptr;
  RemotePtr remote;
  std::map<std::string, std::string> branches;  // short name → commit; those asked for
  bool has_branches = false;
  std::string default_branch;
  const std::function<void(const FetchProgress&)>* progress = nullptr;
  std::string refusal;  // of the push, by the server
  bool reported = false;

  git_remote_callbacks callbacks();
  static int on_progress(const git_indexer_progress* stats, void* state);
  static int on_push_progress(unsigned, unsigned, std::size_t, void* state);
  static int on_pack_progress(int, std::uint32_t, std::uint32_t, void* state);
  static int on_reference(const char* name, const char* status, void* state);
  static int on_transport(git_transport** out, git_remote* owner, void* state);
};

int BareRepository::Session::State::on_progress(const git_indexer_progress* stats, void* state) {
  auto& self = *static_cast<State*>(state);
  if (self.progress != nullptr && *self.progress) {
    (*self.progress)({.received_objects = stats->received_objects,
                      .indexed_objects = stats->indexed_objects + stats->indexed_deltas,
                      .total_objects = stats->total_objects,
                      .bytes = stats->received_bytes});
  }
  return self.wire->stopped() ? -1 : 0;
}

int BareRepository::Session::State::on_push_progress(unsigned, unsigned, std::size_t, void* state) {
  return static_cast<State*>(state)->wire->stopped() ? -1 : 0;
}

int BareRepository::Session::State::on_pack_progress(int, std::uint32_t, std::uint32_t,
                                                     void* state) {
  return static_cast<State*>(state)->wire->stopped() ? -1 : 0;
}

int BareRepository::Session::State::on_reference(const char* /*name*/, const char* status,
                                                 void* state) {
  auto& self = *static_cast<State*>(state);
  self.reported = true;
  if (status != nullptr) self.refusal = *status == '\0' ? "no reason" : status;
  return 0;
}

int BareRepository::Session::State::on_transport(git_transport** out, git_remote* owner,
                                                 void* state) {
  return Wire::make_transport(out, owner, static_cast<State*>(state)->wire);
}

git_remote_callbacks BareRepository::Session::State::callbacks() {
  git_remote_callbacks callbacks;
  ::git_remote_init_callbacks(&callbacks, GIT_REMOTE_CALLBACKS_VERSION);
  callbacks.transfer_progress = on_progress;
  callbacks.pack_progress = on_pack_progress;
  callbacks.push_transfer_progress = on_push_progress;
  callbacks.push_update_reference = on_reference;
  callbacks.transport = on_transport;
  callbacks.payload = this;
  return callbacks;
}

BareRepository::Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
BareRepository::Session::Session(Session&&) noexcept = default;
BareRepository::Session& BareRepository::Session::operator=(Session&&) noexcept = default;
BareRepository::Session::~Session() = default;

Result<BareRepository::Session> BareRepository::connect(Wire& wire, Direction direction,
                                                        std::vector<std::string> branches) {
  auto state = std::make_unique<Session::State>();
  state->repository = state_->repository.get();
  state->wire = &wire;
  wire.take_error();
  wire.show(std::move(branches));
  forget_failures();
  git_remote_create_options made;
  ::git_remote_create_options_init(&made, GIT_REMOTE_CREATE_OPTIONS_VERSION);
  made.repository = state->repository;
  made.flags = GIT_REMOTE_CREATE_SKIP_INSTEADOF | GIT_REMOTE_CREATE_SKIP_DEFAULT_FETCHSPEC;
  git_remote* remote = nullptr;
  if (::git_remote_create_with_opts(&remote, wire.url().to_string().c_str(), &made) != 0) {
    return local_failure("naming the server");
  }
  state->remote.reset(remote);
  git_remote_connect_options options;
  ::git_remote_connect_options_init(&options, GIT_REMOTE_CONNECT_OPTIONS_VERSION);
  options.callbacks = state->callbacks();
  const auto way = direction == Direction::fetch ? GIT_DIRECTION_FETCH : GIT_DIRECTION_PUSH;
  const git_remote_head** heads = nullptr;
  std::size_t count = 0;
  if (::git_remote_connect_ext(remote, way, &options) != 0 ||
      ::git_remote_ls(&heads, &count, remote) != 0) {
    return std::unexpected(remote_error(wire, "asking for branches"));
  }
  state->has_branches = wire.has_branches();
  constexpr std::string_view kBranches = "refs/heads/";
  for (const git_remote_head* head : std::span(heads, count)) {
    const std::string_view name(head->name);
    if (name.starts_with(kBranches)) {
      state->branches.emplace(name.substr(kBranches.size()), text_of(head->oid));
    } else if (name == "HEAD" && head->symref_target != nullptr &&
               std::string_view(head->symref_target).starts_with(kBranches)) {
      state->default_branch = std::string_view(head->symref_target).substr(kBranches.size());
    }
  }
  return Session(std::move(state));
}

const std::string& BareRepository::Session::tip(const std::string& branch) const {
  static const std::string kNone;
  const auto found = state_->branches.find(branch);
  return found == state_->branches.end() ? kNone : found->second;
}

bool BareRepository::Session::has_branches() const {
  return state_->has_branches;
}

const std::string& BareRepository::Session::default_branch() const {
  return state_->default_branch;
}

Result<void> BareRepository::Session::fetch(
    const std::string& branch, const std::function<void(const FetchProgress&)>& progress) {
  const std::string commit = tip(branch);
  if (commit.empty()) {
    return fail(ErrorCode::not_found, state_->wire->url().name + " has no branch " + branch);
  }
  state_->progress = &progress;
  forget_failures();
  git_fetch_options options;
  ::git_fetch_options_init(&options, GIT_FETCH_OPTIONS_VERSION);
  options.callbacks = state_->callbacks();
  options.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE;
  std::string spec = "+refs/heads/" + branch + ":refs/heads/" + branch;
  char* specs[] = {spec.data()};
  const git_strarray refspecs{.strings = specs, .count = 1};
  const int failed = ::git_remote_download(state_->remote.get(), &refspecs, &options);
  state_->progress = nullptr;
  if (failed != 0) return std::unexpected(remote_error(*state_->wire, "fetching"));
  const git_oid id = id_of(commit);
  git_reference* raw = nullptr;
  if (::git_reference_create(&raw, state_->repository, ("refs/heads/" + branch).c_str(), &id, 1,
                             nullptr) != 0) {
    return local_failure("naming a branch");
  }
  ::git_reference_free(raw);
  return {};
}

PushAnswer BareRepository::Session::push(const std::string& branch, const std::string& commit) {
  Wire& wire = *state_->wire;
  wire.take_error();
  wire.expect_push();
  forget_failures();
  wire.spool_in(std::filesystem::path(::git_repository_path(state_->repository)));
  state_->refusal.clear();
  state_->reported = false;
  git_push_options options;
  ::git_push_options_init(&options, GIT_PUSH_OPTIONS_VERSION);
  options.callbacks = state_->callbacks();
  options.pb_parallelism = 1;
  // libgit2 pushes what has a name.
  constexpr const char* kPushed = "refs/gitops/pushed";
  const git_oid id = id_of(commit);
  git_reference* raw = nullptr;
  if (::git_reference_create(&raw, state_->repository, kPushed, &id, 1, nullptr) != 0) {
    return {.kind = PushAnswer::Kind::not_sent, .error = local_error("naming a commit")};
  }
  ::git_reference_free(raw);
  std::string spec = std::string(kPushed) + ":refs/heads/" + branch;
  char* specs[] = {spec.data()};
  const git_strarray refspecs{.strings = specs, .count = 1};
  const int failed = ::git_remote_upload(state_->remote.get(), &refspecs, &options);
  if (!state_->refusal.empty()) {
    return {.kind = PushAnswer::Kind::refused,
            .error = {.code = ErrorCode::forbidden,
                      .message = wire.url().http.host_header() + " refuses the push to " + branch +
                                 ": " + wire.quoted(state_->refusal)}};
  }
  if (failed == 0 && state_->reported) return {.kind = PushAnswer::Kind::accepted};
  const bool began = wire.push_began();
  if (failed == 0) {
    return {.kind = began ? PushAnswer::Kind::lost : PushAnswer::Kind::not_sent,
            .error = {.code = ErrorCode::protocol, .message = "the server reports no result"}};
  }
  if (failed == GIT_ENONFASTFORWARD) {
    return {.kind = PushAnswer::Kind::refused,
            .error = {.code = ErrorCode::conflict, .message = "the branch has moved on"}};
  }
  Error error = remote_error(wire, "pushing");
  // An answer with a status is an answer: nothing was taken.
  const bool answered = error.http_status >= 400 && error.http_status < 500;
  if (answered) return {.kind = PushAnswer::Kind::refused, .error = std::move(error)};
  return {.kind = began ? PushAnswer::Kind::lost : PushAnswer::Kind::not_sent,
          .error = std::move(error)};
}

}  // namespace gitops::app_proxy
