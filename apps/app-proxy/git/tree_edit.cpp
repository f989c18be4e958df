#include "app-proxy/git/tree_edit.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace gitops::app_proxy::libgit2 {
namespace {

constexpr std::size_t kMaxEditedFile = 32UL * 1024 * 1024;
// Limit of a pointer's size (git-lfs/docs/spec.md).
constexpr std::size_t kMaxPointer = 1024;
constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";

std::unexpected<Error> refuse(const FileChange& change, ErrorCode code, std::string_view why) {
  return fail(code, change.path + " " + std::string(why));
}

// Checks that the file is at the user's revision: its blob, or the commit it was read from.
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

bool is_pointer(std::string_view content) {
  return content.size() < kMaxPointer && content.starts_with(kPointer);
}

// Checks whether the attributes of the commit assign the file to Git LFS.
bool is_for_lfs(git_repository* repository, const git_commit* commit, const std::string& path) {
  if (commit == nullptr) return false;
  git_attr_options options{};
  options.version = GIT_ATTR_OPTIONS_VERSION;
  options.flags = static_cast<unsigned>(GIT_ATTR_CHECK_INDEX_ONLY) |
                  static_cast<unsigned>(GIT_ATTR_CHECK_NO_SYSTEM) |
                  static_cast<unsigned>(GIT_ATTR_CHECK_INCLUDE_COMMIT);
  options.attr_commit_id = *::git_commit_id(commit);
  const char* value = nullptr;
  if (::git_attr_get_ext(&value, repository, &options, path.c_str(), "filter") != 0) return false;
  return ::git_attr_value(value) == GIT_ATTR_VALUE_STRING && std::string_view(value) == "lfs";
}

// Refuses files whose content Git LFS stores elsewhere. Content that is committed instead would not
// be in LFS.
Result<void> check_lfs(git_repository* repository, const git_commit* parent,
                       const FileChange& change, const Found& present, std::string_view content) {
  if (is_pointer(content)) return {};
  bool is_stored_there = false;
  if (present.kind == Found::Kind::file) {
    const auto before = content_of(repository, present.file.blob, kMaxPointer);
    if (!before && before.error().code != ErrorCode::too_large) {
      return std::unexpected(before.error());
    }
    is_stored_there = before && is_pointer(*before);
  } else {
    is_stored_there = is_for_lfs(repository, parent, change.path);
  }
  if (!is_stored_there) return {};
  return refuse(change, ErrorCode::unsupported,
                "is stored by Git LFS, which is not supported here; commit it with git");
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

// Returns the update of the tree for a change; nullopt when it changes nothing.
Result<std::optional<git_tree_update>> update_of(git_repository* repository,
                                                 const git_commit* parent, const git_tree* root,
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
  if (change.kind != FileChange::Kind::write) {
    std::optional<std::string> before;
    if (kind == Found::Kind::file) {
      auto read = content_of(repository, present->file.blob, kMaxEditedFile);
      if (!read) return std::unexpected(std::move(read.error()));
      before = std::move(*read);
    }
    auto after = change.edit(before ? std::optional<std::string_view>(*before) : std::nullopt);
    if (!after) return std::unexpected(std::move(after.error()));
    if (change.kind == FileChange::Kind::look) return std::nullopt;
    if (change.kind == FileChange::Kind::edit_or_remove && after->empty()) {
      if (!before) return std::nullopt;
      update.action = GIT_TREE_UPDATE_REMOVE;
      return update;
    }
    edited = std::move(*after);
    content = edited;
  }
  if (auto checked = check_lfs(repository, parent, change, *present, content); !checked) {
    return std::unexpected(std::move(checked.error()));
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

Result<git_oid> write_empty_tree(git_repository* repository) {
  git_treebuilder* builder = nullptr;
  if (::git_treebuilder_new(&builder, repository, nullptr) != 0) return local_failure("a folder");
  git_oid id{};
  const int written = ::git_treebuilder_write(&id, builder);
  ::git_treebuilder_free(builder);
  if (written != 0) return local_failure("writing a folder");
  return id;
}

}  // namespace

Result<TreePtr> tree_of(git_repository* repository, const git_oid& commit) {
  git_commit* raw = nullptr;
  if (::git_commit_lookup(&raw, repository, &commit) != 0) return local_failure("a commit");
  const CommitPtr owned(raw);
  git_tree* tree = nullptr;
  if (::git_commit_tree(&tree, raw) != 0) return local_failure("the tree of a commit");
  return TreePtr(tree);
}

Result<std::string> content_of(git_repository* repository, const git_oid& blob, std::size_t limit) {
  git_odb* raw_odb = nullptr;
  if (::git_repository_odb(&raw_odb, repository) != 0) return local_failure("its objects");
  const OdbPtr odb(raw_odb);
  std::size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
  if (::git_odb_read_header(&size, &type, raw_odb, &blob) != 0) return local_failure("a file");
  if (size > limit) {
    return fail(ErrorCode::too_large, "the file has more than " + std::to_string(limit) + " bytes");
  }
  git_blob* raw = nullptr;
  if (::git_blob_lookup(&raw, repository, &blob) != 0) return local_failure("a file");
  const BlobPtr owned(raw);
  return std::string(static_cast<const char*>(::git_blob_rawcontent(raw)),
                     static_cast<std::size_t>(::git_blob_rawsize(raw)));
}

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

Result<git_oid> edit_tree(git_repository* repository, const git_commit* parent,
                          const git_tree* root, std::span<const FileChange> changes, bool force) {
  std::vector<git_tree_update> updates;
  for (const auto& change : changes) {
    auto update = update_of(repository, parent, root, change, force);
    if (!update) return std::unexpected(std::move(update.error()));
    if (*update) updates.push_back(**update);
  }
  if (updates.empty()) {
    return root == nullptr ? write_empty_tree(repository) : *::git_tree_id(root);
  }
  git_oid id{};
  // The library takes the root as an input and does not change it.
  if (::git_tree_create_updated(&id, repository, const_cast<git_tree*>(root), updates.size(),
                                updates.data()) != 0) {
    const git_error* last = ::git_error_last();
    if (last != nullptr && last->klass == GIT_ERROR_TREE) {
      return fail(ErrorCode::invalid_argument, std::string("the changes: ") + last->message);
    }
    return local_failure("writing a folder");
  }
  return id;
}

}  // namespace gitops::app_proxy::libgit2
