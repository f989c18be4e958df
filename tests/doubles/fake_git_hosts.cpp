#include "doubles/fake_git_hosts.hpp"

#include <algorithm>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::test {

using app_proxy::ProviderKind;

namespace {

std::string_view provider_name(ProviderKind kind) {
  switch (kind) {
    case ProviderKind::github:
      return "github";
    case ProviderKind::gitlab:
      return "gitlab";
    case ProviderKind::bitbucket:
      return "bitbucket";
    case ProviderKind::bitbucket_server:
      return "bitbucket-server";
    case ProviderKind::gitea:
      return "gitea";
  }
  return "";
}

// The token of an Authorization field, in whatever form.
std::string token_of(std::string_view authorization) {
  const auto space = authorization.find(' ');
  if (space == std::string_view::npos) return {};
  const auto rest = authorization.substr(space + 1);
  if (!authorization.starts_with("Basic ")) return std::string(rest);
  const auto plain = base64_decode(rest);
  if (!plain) return {};
  const auto colon = plain->find(':');
  if (colon == std::string::npos || plain->substr(0, colon) != FakeGitHost::kLogin) return {};
  return plain->substr(colon + 1);
}

std::size_t number(const Query& query, std::string_view name, std::size_t otherwise) {
  const auto text = query.get(name);
  return text.empty() ? otherwise : static_cast<std::size_t>(std::stoul(text));
}

nlohmann::json slice(const nlohmann::json& items, std::size_t begin, std::size_t size) {
  auto out = nlohmann::json::array();
  for (std::size_t i = begin; i < std::min(items.size(), begin + size); ++i) {
    out.push_back(items[i]);
  }
  return out;
}

}  // namespace

std::string git_blob_id(std::string_view content) {
  std::string object = "blob " + std::to_string(content.size());
  object += '\0';
  object += content;
  return hex_encode(bytes_of(sha1(object)));
}

FakeGitHost::FakeGitHost(const Executor& executor, ProviderKind kind)
    : DoubleServer(executor, {}), kind_(kind) {
  root_path_ = app_proxy::make_api_root(provider_name(kind), "https://h.test")->url.path;
}

std::string FakeGitHost::organisation() const {
  return kind_ == ProviderKind::bitbucket_server ? "ACME" : kOrganisation;
}

app_proxy::ApiRoot FakeGitHost::api_root() const {
  app_proxy::ApiRoot root{kind_, url()};
  root.url.path = root_path_;
  return root;
}

FakeGitHost::Repository& FakeGitHost::add_repository(const std::string& owner,
                                                     const std::string& name) {
  auto& made = *repositories_.emplace_back(std::make_unique<Repository>());
  made.id = ++last_id_;
  made.owner = owner;
  made.name = name;
  made.branches = {"main"};
  return made;
}

FakeGitHost::Repository* FakeGitHost::find(std::string_view owner, std::string_view name) {
  for (const auto& repository : repositories_) {
    if (repository->owner == owner && repository->name == name) return repository.get();
  }
  return nullptr;
}

std::vector<FakeGitHost::Repository*> FakeGitHost::all(std::string_view part_of_name) {
  std::vector<Repository*> out;
  for (const auto& repository : repositories_) {
    if (repository->name.contains(part_of_name)) out.push_back(repository.get());
  }
  return out;
}

void FakeGitHost::merge(const std::string& owner, const std::string& name, std::size_t number) {
  find(owner, name)->pull_requests.at(number - 1).state = "merged";
}

http::Response FakeGitHost::json(int status, const Json& body) const {
  return json_response(status, body.dump());
}

http::Response FakeGitHost::numbered_page(const ParsedRequest& asked, const Json& items,
                                          std::string_view size_name, std::size_t most) const {
  const auto size = std::min({number(asked.query, size_name, 20), most, page_limit_});
  const auto page = std::max<std::size_t>(number(asked.query, "page", 1), 1);
  auto response = json(200, slice(items, (page - 1) * size, size));
  const bool is_gitea = kind_ == ProviderKind::gitea;
  if (is_gitea) response.headers.add("X-Total-Count", std::to_string(items.size()));
  // Gitea names no next page of tags and webhooks.
  const bool is_counted = is_gitea && (asked.path.back() == "tags" || asked.path.back() == "hooks");
  if (page * size < items.size() && !is_counted) {
    auto target = url();
    target.path = root_path_ + "/next";
    target.query = "page=" + std::to_string(page + 1);
    response.headers.add("Link", "<" + target.to_string() + ">; rel=\"next\"");
  }
  return response;
}

http::Response FakeGitHost::bitbucket_page(const ParsedRequest& asked, const Json& items) const {
  const auto size = std::min({number(asked.query, "pagelen", 10), std::size_t{100}, page_limit_});
  const auto page = std::max<std::size_t>(number(asked.query, "page", 1), 1);
  Json body{{"values", slice(items, (page - 1) * size, size)},
            {"page", page},
            {"pagelen", size},
            {"size", items.size()}};
  if (page * size < items.size()) body["next"] = "https://api.bitbucket.org/2.0/next";
  return json(200, body);
}

http::Response FakeGitHost::bitbucket_server_page(const ParsedRequest& asked,
                                                  const Json& items) const {
  const auto size = std::min({number(asked.query, "limit", 25), std::size_t{1000}, page_limit_});
  const auto start = number(asked.query, "start", 0);
  const auto values = slice(items, start, size);
  Json body{{"values", values}, {"size", values.size()}, {"limit", size}, {"start", start}};
  const bool is_last = start + size >= items.size();
  body["isLastPage"] = is_last;
  body["nextPageStart"] = is_last ? Json() : Json(start + size);
  return json(200, body);
}

Task<> FakeGitHost::handle(http::Exchange& exchange) {
  const auto body = co_await exchange.read_body(1 << 20);
  const auto& request = exchange.request();
  if (is_oauth(request.method, exchange.path())) {
    (void)co_await exchange.reply(answer_oauth(body ? *body : std::string()));
    co_return;
  }
  ParsedRequest asked{.method = request.method,
                      .path = {},
                      .query = Query(exchange.query()),
                      .body = body && !body->empty() ? Json::parse(*body, nullptr, false) : Json(),
                      .token = token_of(request.headers.find("Authorization").value_or(""))};
  asked.may_write = users_.contains(asked.token);
  const bool is_known = asked.may_write || asked.token == kReader;
  std::string_view path = exchange.path();
  if (!is_known || refuses_tokens_) {
    (void)co_await exchange.reply(failure(401));
    co_return;
  }
  if (path.starts_with(root_path_ + "/")) {
    asked.path = path_segments(path.substr(root_path_.size()));
  } else if (kind_ == ProviderKind::bitbucket_server && path.starts_with("/rest/")) {
    asked.path = path_segments(path);
  } else {
    (void)co_await exchange.reply(failure(404));
    co_return;
  }
  auto response = answer(asked);
  if (request.method == "GET" && response.status == 200) {
    if (kind_ == ProviderKind::github) {
      response.headers.set("Cache-Control", "private, max-age=60, s-maxage=60");
    } else if (kind_ == ProviderKind::gitlab || kind_ == ProviderKind::gitea) {
      response.headers.set("Cache-Control", "max-age=0, private, must-revalidate");
    }
  }
  if (request.method == "GET" && response.status == 200 && kind_ != ProviderKind::gitea) {
    // As GitHub does: an answer that has not changed costs nothing.
    const auto etag = "\"" + hex_encode(bytes_of(sha1(response.body))) + "\"";
    response.headers.set("ETag", etag);
    if (request.headers.find("If-None-Match") == etag) {
      response.status = 304;
      response.body.clear();
    }
  }
  (void)co_await exchange.reply(std::move(response));
}

http::Response FakeGitHost::answer(const ParsedRequest& asked) {
  switch (kind_) {
    case ProviderKind::github:
    case ProviderKind::gitea:
      return answer_github(asked);
    case ProviderKind::gitlab:
      return answer_gitlab(asked);
    case ProviderKind::bitbucket:
      return answer_bitbucket(asked);
    case ProviderKind::bitbucket_server:
      return answer_bitbucket_server(asked);
  }
  return failure(500);
}

http::Response FakeGitHost::failure(int status) const {
  const std::string message(http::reason_phrase(status));
  if (kind_ == ProviderKind::bitbucket) {
    return json(status, {{"type", "error"}, {"error", {{"message", message}}}});
  }
  if (kind_ == ProviderKind::bitbucket_server) {
    return json(status, {{"errors", Json::array({{{"context", nullptr}, {"message", message}}})}});
  }
  return json(status, {{"message", message}});
}

}  // namespace gitops::test
