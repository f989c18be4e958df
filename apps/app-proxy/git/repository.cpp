#include "app-proxy/git/repository.hpp"

#include <algorithm>
#include <git2/sys/commit.h>
#include <git2/sys/odb_backend.h>
#include <system_error>
#include <utility>

#include "app-proxy/git/git_url.hpp"
#include "app-proxy/git/libgit2.hpp"
#include "app-proxy/git/tree_edit.hpp"

namespace gitops::app_proxy {

using namespace libgit2;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxMessage = 64UL * 1024;
// Thresholds of compact(): number of loose objects or packs, and size of packs to repack.
constexpr std::size_t kManyLoose = 4'096;
constexpr std::size_t kManyPacks = 40;
constexpr std::uintmax_t kSmallPack = 16UL * 1024 * 1024;

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

// Passes the ids of loose objects to `add`, from their file names.
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

std::string author_text(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f && c != '<' && c != '>') plain += c;
  }
  constexpr std::string_view kDropped = " .,:;\"\\'";
  const auto first = plain.find_first_not_of(kDropped);
  if (first == std::string::npos) return {};
  return plain.substr(first, plain.find_last_not_of(kDropped) - first + 1);
}

struct BareRepository::State {
  RepositoryPtr repository;
  fs::path folder;
};

BareRepository::BareRepository(std::unique_ptr<State> state) : state_(std::move(state)) {}
BareRepository::BareRepository(BareRepository&&) noexcept = default;
BareRepository& BareRepository::operator=(BareRepository&&) noexcept = default;
BareRepository::~BareRepository() = default;

Result<BareRepository> BareRepository::open(const fs::path& folder) {
  start();
  forget_failures();
  git_repository* raw = nullptr;
  if (::git_repository_open_bare(&raw, folder.c_str()) != 0) return local_failure("opening it");
  return BareRepository(
      std::make_unique<State>(State{.repository = RepositoryPtr(raw), .folder = folder}));
}

Result<BareRepository> BareRepository::create(const fs::path& folder) {
  start();
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

Result<BareRepository::Session> BareRepository::connect(Wire& wire, Direction direction,
                                                        std::vector<std::string> branches) {
  return Session::open(state_->repository.get(), wire, direction, std::move(branches));
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
    std::string path;  // with a trailing '/'
    std::size_t level;
  };
  std::vector<std::string> files;
  std::vector<Folder> open;
  if (folder.empty()) {
    open.push_back({std::move(*root), "", 0});
  } else {
    // libgit2 answers alike for a path that is not there and for a tree that the clone has lost.
    const auto found = find(repository, root->get(), folder);
    if (!found) return std::unexpected(found.error());
    if (found->kind != Found::Kind::folder) return files;
    git_tree_entry* entry = nullptr;
    if (::git_tree_entry_bypath(&entry, root->get(), std::string(folder).c_str()) != 0) {
      return local_failure("a folder");
    }
    const EntryPtr owned(entry);
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
  auto edited = edit_tree(repository, base.get(), root.get(), spec.changes, spec.force);
  if (!edited) return std::unexpected(std::move(edited.error()));
  git_tree* raw_tree = nullptr;
  if (::git_tree_lookup(&raw_tree, repository, &*edited) != 0) return local_failure("a folder");
  const TreePtr tree(raw_tree);
  const bool same = root ? ::git_oid_equal(&*edited, ::git_tree_id(root.get())) != 0
                         : ::git_tree_entrycount(raw_tree) == 0;
  if (same && !spec.allow_empty) {
    return std::unexpected(
        Error{.code = ErrorCode::invalid_argument,
              .message = "nothing to commit: the branch has these contents already",
              .subcode = kNothingToCommit});
  }

  git_signature* raw_author = nullptr;
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(spec.time).time_since_epoch().count();
  std::string name = author_text(spec.author.name);
  std::string email = author_text(spec.author.email);
  if (name.empty()) name = author_text(email.substr(0, email.find('@')));
  if (name.empty()) name = "GitOps Runtime";
  if (email.empty()) email = "noreply@invalid";
  if (::git_signature_new(&raw_author, name.c_str(), email.c_str(), seconds, 0) != 0) {
    return fail(ErrorCode::invalid_argument, "the author's name or address cannot be used");
  }
  const SignaturePtr author(raw_author);
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
  return set_reference(state_->repository.get(), "refs/heads/" + branch, commit);
}

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

}  // namespace gitops::app_proxy
