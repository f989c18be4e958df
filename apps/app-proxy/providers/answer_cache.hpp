#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "app-proxy/providers/git_types.hpp"
#include "common/core/time.hpp"
#include "common/http/message.hpp"

namespace gitops::app_proxy {

// How long a host lets an answer be used again without a question: its Cache-Control (RFC 9111) with
// `max-age`, less its Age, and at most a minute. Zero when it says nothing, or forbids it.
std::chrono::seconds fresh_for(const http::Headers& headers);

// The last answers of hosts to GET requests, for If-None-Match and for times when a host throttles.
// Each token's answers are its own. When there are too many bytes, the answers that were used
// longest ago go, first those of a token that has more than its share. Pure; one thread.
class AnswerCache {
 public:
  struct Limits {
    std::size_t bytes = 16UL * 1024 * 1024;
    std::size_t bytes_of_owner = 2UL * 1024 * 1024;   // one token's share
    std::size_t bytes_of_answer = 1UL * 1024 * 1024;  // larger ones are not kept
  };
  struct Entry {
    std::string etag;       // empty: the host gave none
    http::Headers headers;  // those that callers read
    std::string body;
    std::shared_ptr<const HostPage> page = {};  // in place of the body, where that was read
    Clock::time_point fresh_until = {};
  };

  explicit AnswerCache(Limits limits) : limits_(limits) {}

  // Null when there is none. Valid until the next put() or forget().
  const Entry* find(std::string_view owner, std::string_view url);
  void put(std::string_view owner, std::string_view url, Entry entry);
  // The host has said that the answer still holds.
  void renew(std::string_view owner, std::string_view url, Clock::time_point fresh_until);
  // The token has changed something at its host: no answer of it is fresh any more.
  void expire(std::string_view owner);
  void forget(std::string_view owner, std::string_view url);
  // Everything of a token.
  void forget(std::string_view owner);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Kept {
    std::string owner;
    std::string key;
    Entry entry;
    std::size_t bytes = 0;
  };
  using Order = std::list<Kept>;  // last used first

  void erase(Order::iterator entry);

  Limits limits_;
  Order order_;
  std::unordered_map<std::string_view, Order::iterator> entries_;  // by Kept::key
  std::unordered_map<std::string, std::size_t> bytes_of_owner_;
  std::size_t bytes_ = 0;
};

}  // namespace gitops::app_proxy
