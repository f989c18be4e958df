#pragma once

#include <git2.h>
#include <memory>
#include <string>
#include <string_view>

#include "app-proxy/git/transport.hpp"
#include "common/core/error.hpp"

// Owners of libgit2's objects and conversion of its errors, for repository, repository_session and
// tree_edit only.
namespace gitops::app_proxy::libgit2 {

// unique_ptr for an object that a function of the library releases.
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

// Owns the memory of a git_buf.
struct Buffer {
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::git_buf_dispose(&buf); }
  [[nodiscard]] std::string_view view() const { return {buf.ptr, buf.size}; }
  git_buf buf = GIT_BUF_INIT;
};

// Sets up the library for the process: ignores the machine's configuration, bounds memory. Any
// thread.
void start();

// Clears the last failure. Call it before an operation whose failure goes to local_error().
void forget_failures();
// Returns the library's last failure on this thread, as a failure of the clone.
Error local_error(std::string_view what);
std::unexpected<Error> local_failure(std::string_view what);
// The failure of an operation with the server: the reason of the wire, if it has one.
Error remote_error(Wire& wire, std::string_view what);

std::string text_of(const git_oid& id);
// Parses an id. Returns all zeros when the text is not an id.
git_oid id_of(const std::string& text);

// Points a reference of the clone to this commit, and replaces an existing one.
Result<void> set_reference(git_repository* repository, const std::string& name,
                           const std::string& commit);

}  // namespace gitops::app_proxy::libgit2
