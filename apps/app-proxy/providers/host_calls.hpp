#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app-proxy/providers/git_host_client.hpp"
#include "app-proxy/providers/git_types.hpp"
#include "app-proxy/providers/page_range.hpp"

namespace gitops::app_proxy {

// Limits for the number of branches and of tags that are read of a repository, and for the items of
// other lists.
inline constexpr std::size_t kMaxRefs = 3'000;
inline constexpr std::size_t kMaxListed = 10'000;

// Adds a page to a list of at most `most` items. Returns false when some items did not fit; the
// list is then marked as truncated.
template <class T>
bool add_page(Answer<std::vector<T>>& list, std::vector<T> page, std::size_t most) {
  for (auto& item : page) {
    if (list.value.size() >= most) {
      list.is_truncated = true;
      return false;
    }
    list.value.push_back(std::move(item));
  }
  return true;
}

inline Answer<BranchesAndTags> joined(Answer<std::vector<std::string>> branches,
                                      Answer<std::vector<std::string>> tags) {
  return {.value = {.branches = std::move(branches.value),
                    .tags = std::move(tags.value),
                    .is_truncated = branches.is_truncated || tags.is_truncated},
          .is_last_known = branches.is_last_known || tags.is_last_known};
}

// Client of one provider's host: API root, style of the token, and common steps of its operations.
// Decoders are pure functions from a body to a Result. Their errors become `protocol`, or keep a
// code other than invalid_data; the message begins with the request and the host.
class HostCalls {
 public:
  HostCalls(GitHostClient& client, ApiRoot root, AuthStyle style, std::string accept)
      : client_(client), root_(std::move(root)), style_(style), accept_(std::move(accept)) {}

  [[nodiscard]] const ApiRoot& root() const { return root_; }

  Task<Result<ApiAnswer>> send(const GitAccess& access, ApiRequest request, Deadline deadline) {
    if (request.accept == "application/json") request.accept = accept_;
    return client_.send(root_, style_, access, std::move(request), deadline);
  }

  // Returns a page of repositories, perhaps a cached one (GitHostClient::page()). `decode` makes a
  // HostPage of the response's body and headers.
  template <class Decode>
  Task<Result<Answer<std::shared_ptr<const HostPage>>>> page(const GitAccess& access,
                                                             ApiRequest request, Deadline deadline,
                                                             Decode decode) {
    if (request.accept == "application/json") request.accept = accept_;
    auto read = [this, what = request.what, decode](
                    std::string_view body, const http::Headers& headers) -> Result<HostPage> {
      Result<HostPage> out = decode(body, headers);
      if (!out) return std::unexpected(unreadable(what, std::move(out.error())));
      return out;
    };
    return client_.page(root_, style_, access, std::move(request), std::move(read), deadline);
  }

  // Returns the result of `decode` for the response's body.
  template <class T, class Decode>
  Task<Result<Answer<T>>> get(const GitAccess& access, std::string path, std::string what,
                              Deadline deadline, Decode decode) {
    auto answer = co_await send(access, {.path = std::move(path), .what = what}, deadline);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    auto value = decode(std::string_view(answer->body));
    if (!value) co_return std::unexpected(unreadable(what, std::move(value.error())));
    co_return Answer<T>{std::move(*value), answer->is_last_known};
  }

  template <class T, class Decode>
  Task<Result<T>> post(const GitAccess& access, std::string path, std::string body,
                       std::string what, Deadline deadline, Decode decode) {
    auto answer = co_await send(
        access, {.method = "POST", .path = std::move(path), .body = std::move(body), .what = what},
        deadline);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    auto value = decode(std::string_view(answer->body));
    if (!value) co_return std::unexpected(unreadable(what, std::move(value.error())));
    co_return std::move(*value);
  }

  // Returns the profile with the primary mail address of the user, from /user/emails. The request
  // needs a scope of its own; without it, or without such an address, the profile is unchanged.
  // `decode` returns the address, empty when there is none.
  template <class Decode>
  Task<Result<Answer<Profile>>> with_primary_mail(const GitAccess& access, Answer<Profile> profile,
                                                  Deadline deadline, Decode decode) {
    const std::string what = "mail addresses of the Git token's user";
    auto mails = co_await send(
        access, {.path = "/user/emails", .what = what, .also = {401, 403, 404}}, deadline);
    // Commits carry the address that is found here, until the user registers again.
    if (!mails) co_return std::unexpected(std::move(mails.error()));
    if (mails->status != 200) co_return profile;
    Result<std::string> mail = decode(std::string_view(mails->body));
    if (!mail) co_return std::unexpected(unreadable(what, std::move(mail.error())));
    if (!mail->empty()) profile.value.mail = std::move(*mail);
    co_return profile;
  }

  // Returns the items of a list with numbered pages, at most `most` of them. `path` already has a
  // query. `decode` returns a vector of T. A page that is not full is the last one, unless a Link
  // field names a next page, or the host reports more items.
  template <class T, class Decode>
  Task<Result<Answer<std::vector<T>>>> all_pages(const GitAccess& access, std::string path,
                                                 std::string page_size_name, std::size_t page_size,
                                                 std::string what, std::size_t most,
                                                 Deadline deadline, Decode decode) {
    Answer<std::vector<T>> out;
    std::size_t seen = 0;
    const char joint = path.contains('?') ? '&' : '?';
    for (std::size_t page = 1;; ++page) {
      auto answer =
          co_await send(access,
                        {.path = path + joint + page_size_name + "=" + std::to_string(page_size) +
                                 "&page=" + std::to_string(page),
                         .what = what},
                        deadline);
      if (!answer) co_return std::unexpected(std::move(answer.error()));
      auto items = decode(std::string_view(answer->body));
      if (!items) co_return std::unexpected(unreadable(what, std::move(items.error())));
      out.is_last_known = out.is_last_known || answer->is_last_known;
      const auto count = items->size();
      if (!add_page(out, std::move(*items), most)) break;
      seen += count;
      const bool has_next =
          next_link(answer->headers).has_value() || seen < total_count(answer->headers).value_or(0);
      if (count == 0 || (count < page_size && !has_next)) break;
    }
    co_return out;
  }

  // Fails with `too_large` for a truncated list. For lists of which a part would mislead.
  template <class T>
  [[nodiscard]] Result<Answer<std::vector<T>>> whole(Result<Answer<std::vector<T>>> list,
                                                     std::string_view what) const {
    if (!list || !list->is_truncated) return list;
    return std::unexpected(Error{.code = ErrorCode::too_large,
                                 .message = std::string(what) + " at " + root_.url.host_header() +
                                            ": more than " + std::to_string(list->value.size()) +
                                            ", which are too many to be read",
                                 .subcode = git_errors::kRefused});
  }

  [[nodiscard]] Error unreadable(std::string_view what, Error error) const {
    if (error.code != ErrorCode::invalid_data) {
      error.message = std::string(what) + ": " + error.message;
      if (error.subcode.empty()) error.subcode = git_errors::kRefused;
      return error;
    }
    return bad_answer({root_, what}, error.message);
  }

 private:
  GitHostClient& client_;
  ApiRoot root_;
  AuthStyle style_;
  std::string accept_;
};

}  // namespace gitops::app_proxy
